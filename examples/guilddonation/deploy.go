package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// database is the name of the shards' database on servers of the program's own.
const database = "game"

// servers are the MariaDB servers that the program started; none for other shards.
type servers []*testutil.MariaDB

// deploy turns the spec into a cluster, with servers of its own where it asks for them.
func deploy(ctx context.Context, opts options.Options, dir string, tr *trace.Trace, log *slog.Logger) (dal.Cluster, servers, error) {
	switch opts.Shards.Kind {
	case options.SQLite:
		return dal.SQLiteCluster(dir, opts.Shards.N), nil, nil
	case options.URLs:
		return urls(opts.Shards), nil, nil
	}
	secret, err := secretIn(dir)
	if err != nil {
		return dal.Cluster{}, nil, err
	}
	names := make([]string, opts.Shards.N, opts.Shards.N+1)
	for i := range names {
		names[i] = fmt.Sprintf("s%d", i+1)
	}
	if hasDedicated(tr) {
		names = append(names, "dedicated")
	}
	all := make(servers, len(names))
	g := errgroup.Group{}
	for i, name := range names {
		g.Go(func() (err error) {
			all[i], err = testutil.StartMariaDB(ctx, testutil.MariaDBConfig{Dir: filepath.Join(dir, name), Secret: secret, Logger: log, Restart: true})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return dal.Cluster{}, nil, errors.Join(err, all.stop())
	}
	ends := make([]dal.Endpoint, len(all))
	for i, m := range all {
		ends[i] = dal.Endpoint{Dialect: dal.MySQL, Network: "unix", Address: m.Socket(), User: m.User(), Password: m.Password(), Database: database}
	}
	c := dal.MySQLCluster(ends[:opts.Shards.N]...)
	c.LoginSecret = secret
	if len(ends) > opts.Shards.N {
		c.Dedicated = &ends[opts.Shards.N]
	}
	return c, all, nil
}

// urls is the cluster of servers that run already.
func urls(spec options.Spec) dal.Cluster {
	ends := make([]dal.Endpoint, len(spec.URLs))
	for i, u := range spec.URLs {
		ends[i] = dal.Endpoint{Network: "tcp", Address: u.Addr(), User: u.User, Password: os.Getenv(options.PasswordEnv), Database: u.Database}
	}
	return dal.MySQLCluster(ends...)
}

func hasDedicated(tr *trace.Trace) bool {
	for _, t := range tr.Tenants {
		if t.Model == tenant.OwnDatabase {
			return true
		}
	}
	return false
}

// stop stops every server that was started.
func (s servers) stop() error {
	errs := make([]error, len(s))
	g := errgroup.Group{}
	for i, m := range s {
		if m == nil {
			continue
		}
		g.Go(func() error {
			errs[i] = m.Stop(context.Background())
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

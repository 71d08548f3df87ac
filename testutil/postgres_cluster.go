package testutil

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tenantdal/tenantdal/dal"
)

// RequirePostgresEnv is the environment variable that makes [RequirePostgres] fail a test instead of skipping it. Any value but "" and "0" counts.
// `make test` sets it.
const RequirePostgresEnv = "TENANTDAL_REQUIRE_POSTGRES"

// RequirePostgres skips the test, with the reason, where [FindPostgres] finds no server. With [RequirePostgresEnv] set it fails the test instead.
func RequirePostgres(tb TB) {
	tb.Helper()
	_, err := FindPostgres()
	skipOrFail(tb, RequirePostgresEnv, err)
}

// NewPostgresCluster starts n servers, in parallel and from empty, and returns when all of them answer. They are killed and their data removed when the
// test is over; on Linux also when the test process is killed or panics. The test may stop, kill and restart them as it likes.
//
// len(result) == n. It calls [RequirePostgres], and fails the test when a server does not come up. It must run on the goroutine of the test.
func NewPostgresCluster(tb TB, n int) []*Postgres {
	tb.Helper()
	RequirePostgres(tb)
	c, err := newPostgresCluster()
	if err == nil {
		tb.Cleanup(func() {
			if err := c.close(); err != nil {
				tb.Errorf("NewPostgresCluster(%d): cleanup: %v", n, err)
			}
		})
		err = c.grow(n)
	}
	if err != nil {
		tb.Fatalf("NewPostgresCluster(%d): %v", n, err)
	}
	return slices.Clone(c.servers)
}

// sharedPostgres is the cluster of [SharedPostgres]; nil before the first use.
var (
	sharedPostgresMu sync.Mutex // guards sharedPostgres and is held over the start, so that one caller starts it and the others wait
	sharedPostgres   *postgresCluster
)

// SharedPostgres returns n servers that all tests of this process share: the first call starts them, later ones start what is missing or down. Tests keep
// apart by databases of their own, see [NewPostgresDatabase], and must not stop the servers.
//
// The servers end with the process, however it ends, or by [StopSharedPostgres]. Where the operating system is not Linux nothing would end them, so there
// each call is a [NewPostgresCluster].
//
// len(result) == n; calls return the same servers in the same order. It calls [RequirePostgres], and fails the test when a server does not come up. It
// must run on the goroutine of the test.
func SharedPostgres(tb TB, n int) []*Postgres {
	tb.Helper()
	if !canReap {
		return NewPostgresCluster(tb, n)
	}
	RequirePostgres(tb)
	sharedPostgresMu.Lock()
	defer sharedPostgresMu.Unlock()
	err := error(nil)
	if sharedPostgres == nil {
		sharedPostgres, err = newPostgresCluster()
	}
	if err == nil {
		err = sharedPostgres.grow(n)
	}
	if err != nil {
		tb.Fatalf("SharedPostgres(%d): %v", n, err)
	}
	return slices.Clone(sharedPostgres.servers[:n])
}

// StopSharedPostgres ends the servers of [SharedPostgres] and removes their data; a TestMain that looks for leaked goroutines calls it first. A later
// SharedPostgres starts new servers.
func StopSharedPostgres() error {
	sharedPostgresMu.Lock()
	defer sharedPostgresMu.Unlock()
	if sharedPostgres == nil {
		return nil
	}
	c := sharedPostgres
	sharedPostgres = nil
	return c.close()
}

// NewPostgresDatabase makes an empty database with a random name on the server, and returns its endpoint with the server's login. The database is dropped
// when the test is over, together with those that [github.com/tenantdal/tenantdal/migrations/schema.Up] named after it, whoever is connected to them.
// Nothing is dropped from a server that is down by then.
func NewPostgresDatabase(tb TB, p *Postgres) dal.Endpoint {
	tb.Helper()
	name := "t_" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
	defer cancel()
	if err := p.exec(ctx, postgresAdmin, `CREATE DATABASE "`+name+`" TEMPLATE template0`); err != nil {
		tb.Fatalf("NewPostgresDatabase: %v", err)
	}
	tb.Cleanup(func() {
		if p.Pid() == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
		defer cancel()
		if err := p.DropDatabases(ctx, name); err != nil {
			tb.Errorf("NewPostgresDatabase: cleanup: drop %s: %v", name, err)
		}
	})
	return p.Endpoint(name)
}

// DropDatabases drops the database with that name and those whose names go on with _, whoever is connected to them.
func (p *Postgres) DropDatabases(ctx context.Context, name string) error {
	names, err := p.list(ctx, "SELECT datname FROM pg_database WHERE datname = $1 OR starts_with(datname, $2)", name, name+"_")
	if err != nil {
		return err
	}
	for _, n := range names {
		err = errors.Join(err, p.exec(ctx, postgresAdmin, `DROP DATABASE IF EXISTS "`+n+`" WITH (FORCE)`))
	}
	return err
}

// postgresCluster is a number of servers in one directory, and the process that reaps them when this one dies.
type postgresCluster struct {
	root    string // absolute, without symbolic links, as the servers' command lines have it
	reaper  *reaper
	servers []*Postgres
}

// newPostgresCluster returns a cluster of no servers in a new temporary directory, which the servers' user can pass.
func newPostgresCluster() (*postgresCluster, error) {
	root, err := os.MkdirTemp("", "tdal-postgres-")
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err == nil {
		err = os.Chmod(root, 0o711)
	}
	var r *reaper
	if err == nil {
		r, err = startReaper(root)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the reaper: %w", err), os.RemoveAll(root))
	}
	return &postgresCluster{root: root, reaper: r}, nil
}

// grow starts servers until there are n, and those of the first n that are down.
func (c *postgresCluster) grow(n int) error {
	ctx := context.Background() // each start has its own limit
	var group errgroup.Group
	for _, p := range c.servers[:min(n, len(c.servers))] {
		group.Go(func() error { return p.Start(ctx) })
	}
	more := make([]*Postgres, max(0, n-len(c.servers)))
	for i := range more {
		group.Go(func() (err error) {
			more[i], err = StartPostgres(ctx, filepath.Join(c.root, strconv.Itoa(len(c.servers)+i)))
			return err
		})
	}
	err := group.Wait()
	for _, p := range more {
		if p != nil {
			c.servers = append(c.servers, p)
		}
	}
	return err
}

// close ends the servers at once, since their data goes with them, and then the reaper.
func (c *postgresCluster) close() error {
	var group errgroup.Group
	for _, p := range c.servers {
		group.Go(func() error { return errors.Join(p.Kill(), p.removeSocket()) })
	}
	return errors.Join(group.Wait(), c.reaper.dismiss(), os.RemoveAll(c.root))
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// The environment variables that hold what no command line should.
const (
	passwordEnv    = "TENANTDAL_PASSWORD"
	loginSecretEnv = "TENANTDAL_LOGIN_SECRET"
)

// routeLimit bounds how long the control database is waited for.
const routeLimit = 30 * time.Second

type routeOptions struct {
	dir, urls             string
	tenant, keyspace, key string
	json                  bool
}

func newRouteExplain() *cobra.Command {
	var o routeOptions
	c := &cobra.Command{
		Use:   "explain --tenant T --keyspace K --key X (--dir DIR | --urls URL,...)",
		Short: "Say where a key lives and why",
		Long: `Explain asks the control database where a key of a tenant lives, and says what decided it:

  pin    the key was placed there by hand
  room   the room was assigned
  range  the range that holds the key is of that shard
  hash   the keyspace's strategy placed it

The key is taken byte for byte: 7 and 007 are two keys. The control database is control.db in DIR, or on the server of the first URL,
mysql://user@host:port/database or postgres://user@host:port/database, with the password in ` + passwordEnv + `; on PostgreSQL its login is made
from ` + loginSecretEnv + `, or from the password if the service has no secret of its own. Nothing is changed.

Exit codes: 0 done, 2 wrong arguments, a tenant, keyspace or room that is not there, a database that cannot be read.`,
		Example: `  tdal route explain --dir /var/lib/game --tenant acme --keyspace player --key 7
  ` + passwordEnv + `=... tdal route explain --urls mysql://game@db1:3306/game --tenant acme --keyspace player --key 7 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return routeExplain(c.Context(), o, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&o.dir, "dir", "", "folder of the SQLite files")
	c.Flags().StringVar(&o.urls, "urls", "", "servers, one a shard, the first shard's first")
	c.Flags().StringVar(&o.tenant, "tenant", "", "tenant (required)")
	c.Flags().StringVar(&o.keyspace, "keyspace", "", "keyspace (required)")
	c.Flags().StringVar(&o.key, "key", "", "shard key (required)")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func routeExplain(ctx context.Context, o routeOptions, out io.Writer) error {
	cluster, err := o.cluster()
	if err != nil {
		return err
	}
	for _, f := range [][2]string{{"--tenant", o.tenant}, {"--keyspace", o.keyspace}, {"--key", o.key}} {
		if f[1] == "" {
			return fmt.Errorf("%s is missing", f[0])
		}
	}
	ctx, cancel := context.WithTimeout(ctx, routeLimit)
	defer cancel()
	x, err := dal.ExplainRoute(ctx, cluster, tenant.ID(o.tenant), o.keyspace, shardrouter.Key(o.key))
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(out).Encode(x)
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "shard\t%s\nplace\t%s\nby\t%s\n", x.Shard, x.Place, because(x))
	fmt.Fprintf(w, "strategy\t%s\nstate\t%s\n", x.Strategy, x.State)
	if x.Zone != "" {
		fmt.Fprintf(w, "zone\t%s\n", x.Zone)
	}
	shards := "default"
	if x.Dedicated {
		shards = "the tenant's own"
	}
	fmt.Fprintf(w, "shards\t%s\ntenant\t%s, %s\nepoch\t%d\n", shards, x.Model, x.Status, x.Epoch)
	return w.Flush()
}

// because says what decided.
func because(x dal.RouteExplanation) string {
	switch {
	case x.Split != nil && x.Split.From == "":
		return x.By + " from the least key"
	case x.Split != nil:
		return fmt.Sprintf("%s from %s", x.By, x.Split.From)
	case x.By == shardrouter.ByHash:
		return fmt.Sprintf("%s %016x", x.By, x.Hash)
	}
	return x.By
}

// cluster is as much of the deployment as the control database needs.
func (o routeOptions) cluster() (dal.Cluster, error) {
	switch {
	case (o.dir == "") == (o.urls == ""):
		return dal.Cluster{}, errors.New("give --dir or --urls")
	case o.dir != "":
		return dal.SQLiteCluster(o.dir, 1), nil
	}
	c, err := dal.ParseURLs(o.urls, os.Getenv(passwordEnv))
	c.LoginSecret = os.Getenv(loginSecretEnv)
	return c, err
}

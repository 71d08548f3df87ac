package testutil

import (
	"context"
	"errors"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
)

// NewSQLiteCluster makes the databases of cfg in a temporary directory of the test's own, by [schema.Up], and returns cfg with its Cluster filled in:
// for tests that open and close stores themselves.
//
// A zero cfg.Cluster means two shards. A SQLite cluster with a number of shards and without a Dir gets the directory; any other is used as it is. The
// directory is removed when the test is over; a store that is still open then keeps it on systems that do not remove open files, so close it in a
// Cleanup registered later.
//
// It fails the test when the schema cannot be made. It must run on the goroutine of the test.
func NewSQLiteCluster(tb TB, cfg dal.Config, sets ...schema.Set) dal.Config {
	tb.Helper()
	if cfg.Cluster.Dialect == "" && len(cfg.Cluster.Shards) == 0 {
		cfg.Cluster.Shards = dal.SQLiteCluster("", 2).Shards
	}
	if cfg.Cluster.Dialect == "" {
		cfg.Cluster.Dialect = dal.SQLite
	}
	if cfg.Cluster.Dialect != dal.SQLite {
		tb.Fatalf("NewSQLiteCluster: %v", errors.New("testutil: the cluster is not one of SQLite files"))
	}
	if cfg.Cluster.Dir == "" {
		cfg.Cluster.Dir = tb.TempDir()
	}
	if _, err := schema.Up(tb.Context(), cfg, sets...); err != nil {
		tb.Fatalf("NewSQLiteCluster: %v", err)
	}
	return cfg
}

// NewSQLiteStore returns a store over real databases that need nothing but Go: SQLite files in a temporary directory, one a shard, made by
// [NewSQLiteCluster]. The store is closed when the test is over, and the test fails if it cannot be.
//
//	store := testutil.NewSQLiteStore(t, dal.Config{Tables: tables, Registry: registry}, schema.Saga(), schema.Set{Name: "game", FS: files})
//
// It fails the test when the store cannot be opened. It must run on the goroutine of the test.
func NewSQLiteStore(tb TB, cfg dal.Config, sets ...schema.Set) *dal.Store {
	tb.Helper()
	cfg = NewSQLiteCluster(tb, cfg, sets...)
	store, err := dal.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatalf("NewSQLiteStore: %v", err)
	}
	tb.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			tb.Errorf("NewSQLiteStore: close: %v", err)
		}
	})
	return store
}

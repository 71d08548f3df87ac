package testutil_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// heroSet is the schema of Hero and Motto.
func heroSet() schema.Set {
	file := func(up, down string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("-- +goose Up\n" + up + ";\n\n-- +goose Down\n" + down + ";\n")}
	}
	return schema.Set{Name: "hero", FS: fstest.MapFS{
		"sqlite/0001_heros.sql": file("CREATE TABLE IF NOT EXISTS heros (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, name TEXT, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))", "DROP TABLE IF EXISTS heros"),
		"mysql/0001_heros.sql":  file("CREATE TABLE IF NOT EXISTS heros (tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, player_id VARBINARY(64) NOT NULL, name TEXT, created_at DATETIME(6), updated_at DATETIME(6), PRIMARY KEY (tenant_id, id))", "DROP TABLE IF EXISTS heros"),
		"sqlite/0002_motto.sql": file("CREATE TABLE IF NOT EXISTS motto (id INTEGER NOT NULL PRIMARY KEY, text TEXT)", "DROP TABLE IF EXISTS motto"),
		"mysql/0002_motto.sql":  file("CREATE TABLE IF NOT EXISTS motto (id BIGINT NOT NULL PRIMARY KEY, text TEXT)", "DROP TABLE IF EXISTS motto"),
	}}
}

func TestNewSQLiteStore(t *testing.T) {
	t.Parallel()
	registry, err := tenant.NewStatic(
		tenant.Tenant{ID: "acme", Model: tenant.SharedTable}, tenant.Tenant{ID: "zeta", Model: tenant.OwnSchema}, tenant.Tenant{ID: "big", Model: tenant.OwnDatabase})
	if err != nil {
		t.Fatal(err)
	}
	store := testutil.NewSQLiteStore(t, dal.Config{Tables: heroTables()[:2], Registry: registry}, heroSet(), schema.Saga())
	places, err := store.Places(tenant.System(t.Context(), "test", "heros"))
	if err != nil || len(places) != 5 {
		t.Errorf("Places: %v, %v; want 2 shared ones, 2 of zeta, 1 of big", places, err)
	}
	for _, id := range []tenant.ID{"acme", "zeta", "big"} {
		db := store.On(as(t.Context(), id), dal.Key("player", "7"))
		if err := db.Create(&Hero{PlayerID: "7", Name: string(id)}).Error; err != nil {
			t.Errorf("tenant %s: Create: %v", id, err)
		}
		var heroes []Hero
		if err := db.Find(&heroes).Error; err != nil || len(heroes) != 1 || heroes[0].Name != string(id) {
			t.Errorf("tenant %s: Find: %+v, %v", id, heroes, err)
		}
	}
}

func TestNewSQLiteCluster_Shards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		cluster dal.Cluster
		want    []string
	}{
		"default": {dal.Cluster{}, []string{"control.db", "s1.db", "s2.db"}},
		"number":  {dal.SQLiteCluster("", 3), []string{"control.db", "s1.db", "s2.db", "s3.db"}},
		"folder":  {dal.SQLiteCluster(dir, 1), []string{"control.db", "s1.db"}},
	} {
		cfg := testutil.NewSQLiteCluster(t, dal.Config{Cluster: c.cluster, Tables: heroTables()[:1]}, heroSet())
		if c.cluster.Dir != "" && cfg.Cluster.Dir != dir {
			t.Errorf("%s: it is made in %s", name, cfg.Cluster.Dir)
		}
		files, err := filepath.Glob(filepath.Join(cfg.Cluster.Dir, "*.db"))
		for i, f := range files {
			files[i] = filepath.Base(f)
		}
		if slices.Sort(files); err != nil || !slices.Equal(files, c.want) {
			t.Errorf("%s: files %v, %v; want %v", name, files, err, c.want)
		}
	}
}

func TestNewSQLiteStore_Failures(t *testing.T) {
	t.Parallel()
	f := runFake(t, func(tb testing.TB) {
		testutil.NewSQLiteStore(tb, dal.Config{Tables: heroTables()[:1]}) // without its schema
	})
	f.failedWith(t, "NewSQLiteStore")
	f = runFake(t, func(tb testing.TB) {
		testutil.NewSQLiteStore(tb, dal.Config{Tables: []dal.Table{dal.Tenant[Motto]("player", "id")}}, heroSet())
	})
	f.failedWith(t, "NewSQLiteCluster", "tenant_id")
	f = runFake(t, func(tb testing.TB) {
		testutil.NewSQLiteStore(tb, dal.Config{Cluster: dal.MySQLCluster(dal.Endpoint{Address: "localhost:1", Database: "d"})}, heroSet())
	})
	f.failedWith(t, "not one of SQLite files")

	cfg := testutil.NewSQLiteCluster(t, dal.Config{Tables: heroTables()[:1]}, heroSet())
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(cfg.Cluster.Dir, "s1.db")); err != nil {
		t.Fatal(err)
	}
	if _, err := dal.Open(t.Context(), cfg); !errors.Is(err, dal.ErrNotMigrated) || !strings.Contains(err.Error(), "s1") {
		t.Errorf("Open without a shard's file: %v", err)
	}
}

package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/testutil"
)

// bench is one control database, and opens as many stores over it as a test has processes.
type bench struct {
	dialect  string
	path     string        // SQLite
	mysql    *mysql.Config // MariaDB
	postgres *dal.Endpoint
}

// onBoth runs a test on both databases, each with the control tables and nothing in them.
func onEach(t *testing.T, test func(t *testing.T, b bench)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		b := bench{dialect: "sqlite", path: filepath.Join(t.TempDir(), "control.db")}
		b.migrate(t)
		test(t, b)
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		b := bench{dialect: "mysql", mysql: testutil.NewDatabase(t, testutil.SharedMariaDB(t, 1)[0])}
		b.migrate(t)
		test(t, b)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		b := onPostgres(t)
		b.migrate(t)
		test(t, b)
	})
}

func onPostgres(t *testing.T) bench {
	t.Helper()
	e := testutil.NewPostgresDatabase(t, testutil.SharedPostgres(t, 1)[0])
	return bench{dialect: "postgres", postgres: &e}
}

func (b bench) pool(t *testing.T, observer wire.Observer) *wire.Pool {
	t.Helper()
	var pool *wire.Pool
	var err error
	opts := wire.Options{Shard: "control", Observer: observer}
	switch {
	case b.mysql != nil:
		pool, err = wire.OpenMySQL(b.mysql, opts)
	case b.postgres != nil:
		e := b.postgres
		pool, err = wire.OpenPostgres(wire.Postgres{Network: e.Network, Address: e.Address, User: e.User, Password: e.Password, Database: e.Database}, opts)
	default:
		pool, err = wire.OpenSQLite(wire.SQLite{Path: b.path, Create: true}, opts)
	}
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if b.path != "" {
		pool.SetMaxOpenConns(1)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return pool
}

func (b bench) store(t *testing.T) *control.Store {
	t.Helper()
	return control.New(b.pool(t, nil), b.dialect)
}

func (b bench) migrate(t *testing.T) {
	t.Helper()
	dialect := goose.DialectSQLite3
	switch {
	case b.mysql != nil:
		dialect = goose.DialectMySQL
	case b.postgres != nil:
		dialect = goose.DialectPostgres
	}
	files := os.DirFS(filepath.Join("..", "..", "migrations", "schema", "sql", "control", b.dialect))
	p, err := goose.NewProvider(dialect, b.pool(t, nil).DB, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatalf("goose: %v", err)
	}
	if _, err := p.Up(migrator(t.Context())); err != nil {
		t.Fatalf("goose up: %v", err)
	}
}

// edit changes the control database by hand.
func (b bench) edit(t *testing.T, text string, args ...any) {
	t.Helper()
	if _, err := b.pool(t, nil).ExecContext(migrator(t.Context()), b.text(text), args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// text returns a text with the placeholders of the database.
func (b bench) text(s string) string {
	if b.postgres != nil {
		return wire.Dollars(s)
	}
	return s
}

func migrator(ctx context.Context) context.Context {
	return wire.With(ctx, &wire.Mark{Kind: wire.Migration})
}

var (
	twoShards = []shardrouter.ShardID{"s1", "s2"}
	keyspaces = []shardrouter.Keyspace{{Name: "player"}, {Name: "guild", VirtualNodes: 256}}
)

// initialised returns a store whose topology is two shards and two keyspaces.
func initialised(t *testing.T, b bench) *control.Store {
	t.Helper()
	s := b.store(t)
	if _, err := s.InitTopology(t.Context(), twoShards, keyspaces, ""); err != nil {
		t.Fatalf("InitTopology: %v", err)
	}
	return s
}

func wantIs(t *testing.T, call string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got %v, want an error that is %v", call, got, want)
	}
}

func TestNew_UnknownDialect(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Fatal("New with an unknown dialect did not panic")
		}
	}()
	control.New(nil, "oracle")
}

func TestStore_NotMigrated(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, s *control.Store) {
		t.Helper()
		ctx := t.Context()
		_, err := s.Topology(ctx)
		wantIs(t, "Topology", err, control.ErrNotMigrated)
		_, err = s.Epoch(ctx)
		wantIs(t, "Epoch", err, control.ErrNotMigrated)
		_, err = s.LeaseNode(ctx, "p", minute)
		wantIs(t, "LeaseNode", err, control.ErrNotMigrated)
		wantIs(t, "PutTenant", s.PutTenant(ctx, shared("acme")), control.ErrNotMigrated)
	}
	checkTables := func(t *testing.T, s *control.Store) {
		t.Helper()
		ctx := t.Context()
		check(t, s)
		_, err := s.Tenants(ctx)
		wantIs(t, "Tenants", err, control.ErrNotMigrated)
		_, err = s.Tenant(ctx, "acme")
		wantIs(t, "Tenant", err, control.ErrNotMigrated)
		_, _, err = s.Versions(ctx)
		wantIs(t, "Versions", err, control.ErrNotMigrated)
		_, err = s.InitTopology(ctx, twoShards, nil, "")
		wantIs(t, "InitTopology", err, control.ErrNotMigrated)
	}
	t.Run("empty tables", func(t *testing.T) {
		t.Parallel()
		onEach(t, func(t *testing.T, b bench) { check(t, b.store(t)) })
	})
	t.Run("sqlite without tables", func(t *testing.T) {
		t.Parallel()
		b := bench{dialect: "sqlite", path: filepath.Join(t.TempDir(), "control.db")}
		checkTables(t, b.store(t))
	})
	t.Run("sqlite without file", func(t *testing.T) {
		t.Parallel()
		pool, err := wire.OpenSQLite(wire.SQLite{Path: filepath.Join(t.TempDir(), "control.db")}, wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pool.Close() })
		checkTables(t, control.New(pool, "sqlite"))
	})
	t.Run("mariadb without tables", func(t *testing.T) {
		t.Parallel()
		b := bench{dialect: "mysql", mysql: testutil.NewDatabase(t, testutil.SharedMariaDB(t, 1)[0])}
		checkTables(t, b.store(t))
	})
	t.Run("postgres without tables", func(t *testing.T) {
		t.Parallel()
		checkTables(t, onPostgres(t).store(t))
	})
	t.Run("postgres without database", func(t *testing.T) {
		t.Parallel()
		b := onPostgres(t)
		b.postgres.Database = "no_such_database"
		checkTables(t, b.store(t))
	})
	t.Run("mariadb without database", func(t *testing.T) {
		t.Parallel()
		b := bench{dialect: "mysql", mysql: testutil.SharedMariaDB(t, 1)[0].MySQLConfig()}
		b.mysql.DBName = "no_such_database"
		checkTables(t, b.store(t))
	})
}

// Every statement is a constant of the registry, so a pool refuses whatever else somebody sends over it.
func TestStore_OnlyRegisteredStatements(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		seen := &recorder{}
		s := control.New(b.pool(t, seen), b.dialect)
		ctx := t.Context()
		if _, err := s.InitTopology(ctx, twoShards, keyspaces, ""); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"acme", "acme", "zeta"} {
			if err := s.PutTenant(ctx, shared(id)); err != nil {
				t.Fatal(err)
			}
		}
		lease, err := s.LeaseNode(ctx, "p", minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ReleaseNode(ctx, lease); err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for _, st := range wire.Statements() {
			known[st.Text()] = st.System()
		}
		events := seen.all()
		if len(events) < 10 {
			t.Fatalf("recorded %d statements, want more", len(events))
		}
		for _, e := range events {
			if e.Text != "" && !known[e.Text] {
				t.Errorf("statement %q is no registered system statement", e.Text)
			}
		}
	})
}

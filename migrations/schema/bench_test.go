package schema_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// bench is one deployment of a test.
type bench struct {
	t   *testing.T
	cfg dal.Config
	m   schema.Migrator
}

// onBoth runs a test on SQLite and on MariaDB, each time with a deployment of n shards in which nothing exists yet.
func onEach(t *testing.T, n int, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, onSQLite(t, n))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		test(t, onMariaDB(t, n))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, onPostgres(t, n))
	})
}

func onSQLite(t *testing.T, n int) *bench {
	return &bench{t: t, cfg: dal.Config{Cluster: dal.SQLiteCluster(filepath.Join(t.TempDir(), "data"), n)}}
}

func onMariaDB(t *testing.T, n int) *bench {
	server := testutil.SharedMariaDB(t, 1)[0]
	name := "g" + strings.ToLower(rand.Text()[:10])
	var shards []dal.Endpoint
	for i := range n {
		shards = append(shards, dal.Endpoint{Network: "unix", Address: server.Socket(), User: server.User(), Password: server.Password(), Database: fmt.Sprintf("%s_%d", name, i+1)})
	}
	b := &bench{t: t, cfg: dal.Config{Cluster: dal.MySQLCluster(shards...)}}
	b.cfg.Cluster.LoginSecret = "a secret of this test"
	return b
}

func onPostgres(t *testing.T, n int) *bench {
	server := testutil.SharedPostgres(t, 1)[0]
	name := "g" + strings.ToLower(rand.Text()[:10])
	var shards []dal.Endpoint
	for i := range n {
		shards = append(shards, server.Endpoint(fmt.Sprintf("%s_%d", name, i+1)))
	}
	t.Cleanup(func() {
		// A test may have made dozens, and each drop makes the server write a checkpoint.
		ctx, cancel := context.WithTimeout(context.Background(), 10*slow)
		defer cancel()
		if err := server.DropDatabases(ctx, name); err != nil {
			t.Errorf("drop the databases of %s: %v", name, err)
		}
	})
	b := &bench{t: t, cfg: dal.Config{Cluster: dal.PostgresCluster(shards...)}}
	b.cfg.Cluster.LoginSecret = "a secret of this test"
	return b
}

// server reports a deployment on servers, as against files.
func (b *bench) server() bool { return b.cfg.Cluster.Dialect != dal.SQLite }

// mysql reports a deployment on servers that commit DDL by themselves.
func (b *bench) mysql() bool { return b.cfg.Cluster.Dialect == dal.MySQL }

func (b *bench) postgres() bool { return b.cfg.Cluster.Dialect == dal.Postgres }

// text returns a text with the placeholders of the deployment.
func (b *bench) text(s string) string {
	if b.postgres() {
		return wire.Dollars(s)
	}
	return s
}

// tenants gives the deployment a registry.
func (b *bench) tenants(all ...tenant.Tenant) *bench {
	b.t.Helper()
	reg, err := tenant.NewStatic(all...)
	if err != nil {
		b.t.Fatalf("NewStatic: %v", err)
	}
	b.cfg.Registry = reg
	return b
}

func (b *bench) up(sets ...schema.Set) (*schema.Report, error) {
	return b.m.Up(b.t.Context(), b.cfg, sets...)
}

func (b *bench) mustUp(sets ...schema.Set) *schema.Report {
	b.t.Helper()
	rep, err := b.up(sets...)
	if err != nil {
		b.t.Fatalf("Up: %v", err)
	}
	return rep
}

func (b *bench) status(sets ...schema.Set) []schema.PlaceStatus {
	b.t.Helper()
	all, err := schema.Status(b.t.Context(), b.cfg, sets...)
	if err != nil {
		b.t.Fatalf("Status: %v", err)
	}
	return all
}

// wantUpToDate fails the test unless every place has everything.
func (b *bench) wantUpToDate(sets ...schema.Set) {
	b.t.Helper()
	for _, s := range b.status(sets...) {
		if !s.UpToDate() {
			b.t.Fatalf("Status: %+v is not up to date", s)
		}
	}
}

// open opens the database of a place as the operator; the zero place is the control database.
func (b *bench) open(p dal.Place, owner tenant.ID) *wire.Pool {
	b.t.Helper()
	e := b.cfg.Cluster.Control()
	if p != (dal.Place{}) {
		var err error
		if e, err = b.cfg.Cluster.Endpoint(p, owner); err != nil {
			b.t.Fatalf("Endpoint(%v): %v", p, err)
		}
	}
	var pool *wire.Pool
	var err error
	server := b.cfg.Cluster.Server(p)
	switch {
	case b.mysql():
		server.Database = e.Database
		pool, err = wire.OpenMySQL(server.MySQLConfig(), wire.Options{})
	case b.postgres():
		pool, err = wire.OpenPostgres(wire.Postgres{Network: server.Network, Address: server.Address, User: server.User, Password: server.Password, Database: e.Database}, wire.Options{})
	default:
		pool, err = wire.OpenSQLite(wire.SQLite{Path: e.Path}, wire.Options{})
	}
	if err != nil {
		b.t.Fatalf("open %v: %v", p, err)
	}
	pool.SetMaxIdleConns(0) // a test opens many
	b.t.Cleanup(func() { _ = pool.Close() })
	return pool
}

func (b *bench) control() *control.Store {
	return control.New(b.open(dal.Place{}, ""), string(b.cfg.Cluster.Dialect))
}

// exec runs a statement in a place as the operator.
func (b *bench) exec(p dal.Place, owner tenant.ID, text string, args ...any) {
	b.t.Helper()
	if _, err := b.open(p, owner).ExecContext(migrator(b.t.Context()), b.text(text), args...); err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
}

// root runs a statement on the server, as its administrator.
func (b *bench) root(text string) {
	b.t.Helper()
	cfg := testutil.SharedMariaDB(b.t, 1)[0].MySQLConfig()
	pool, err := wire.OpenMySQL(cfg, wire.Options{})
	if err == nil {
		_, err = pool.ExecContext(migrator(b.t.Context()), text)
		err = errors.Join(err, pool.Close())
	}
	if err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
}

// columns lists the columns of a table in a place.
func (b *bench) columns(p dal.Place, owner tenant.ID, table string) []string {
	b.t.Helper()
	text := "SELECT name FROM pragma_table_info(?) ORDER BY name"
	switch {
	case b.mysql():
		text = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY COLUMN_NAME"
	case b.postgres():
		text = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ? ORDER BY column_name"
	}
	return b.list(p, owner, text, table)
}

func (b *bench) list(p dal.Place, owner tenant.ID, text string, args ...any) (out []string) {
	b.t.Helper()
	rows, err := b.open(p, owner).QueryContext(migrator(b.t.Context()), b.text(text), args...)
	if err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s sql.NullString
		if err := rows.Scan(&s); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, s.String)
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func migrator(ctx context.Context) context.Context {
	return wire.With(ctx, &wire.Mark{Kind: wire.Migration})
}

// files makes a set of files that are the same in every dialect, by name: the statement up, a bar, and the statement down.
func files(name string, bodies map[string]string) schema.Set {
	all := fstest.MapFS{}
	for file, body := range bodies {
		for _, d := range []string{"sqlite", "mysql", "postgres"} {
			all[d+"/"+file] = &fstest.MapFile{Data: []byte(gooseFile(body))}
		}
	}
	return schema.Set{Name: name, FS: all}
}

// gooseFile makes a file's text of "up | down".
func gooseFile(body string) string {
	up, down, _ := strings.Cut(body, "|")
	return "-- +goose Up\n" + strings.TrimSpace(up) + ";\n-- +goose Down\n" + strings.TrimSpace(down) + ";\n"
}

const (
	createHero = "CREATE TABLE IF NOT EXISTS hero (tenant_id VARCHAR(63) NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (tenant_id, id)) | DROP TABLE IF EXISTS hero"
	createItem = "CREATE TABLE IF NOT EXISTS item (tenant_id VARCHAR(63) NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (tenant_id, id)) | DROP TABLE IF EXISTS item"
	addLevel   = "ALTER TABLE hero ADD COLUMN level INT NOT NULL DEFAULT 1 | ALTER TABLE hero DROP COLUMN level"
)

// game1 and game2 are two releases of one set.
var (
	game1 = files("game", map[string]string{"0001_hero.sql": createHero})
	game2 = files("game", map[string]string{"0001_hero.sql": createHero, "0002_level.sql": addLevel, "0003_item.sql": createItem})
)

func sharedTenant(id tenant.ID) tenant.Tenant {
	return tenant.Tenant{ID: id, Model: tenant.SharedTable}
}

func schemaTenant(id tenant.ID) tenant.Tenant {
	return tenant.Tenant{ID: id, Model: tenant.OwnSchema}
}

func databaseTenant(id tenant.ID, shards ...string) tenant.Tenant {
	return tenant.Tenant{ID: id, Model: tenant.OwnDatabase, Placement: tenant.Placement{Shards: shards}}
}

// errDied is what a process sees that was killed: nothing, but the test needs a value.
var errDied = errors.New("the process is dead")

// hook is an observer made of a function.
type hook struct {
	mu     sync.Mutex // guards the fields below
	count  int
	before func(n int, e wire.Event) error // n counts from 1
}

func (h *hook) Before(_ context.Context, e wire.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	return h.before(h.count, e)
}

func (h *hook) After(context.Context, wire.Event, error) {}

// upError returns the error as an *UpError or fails the test.
func upError(t *testing.T, err error) *schema.UpError {
	t.Helper()
	var e *schema.UpError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *UpError", err)
	}
	return e
}

func placeNames(places []dal.Place) (names []string) {
	for _, p := range places {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return names
}

// last returns the number of files of one of the library's sets.
func last(t *testing.T, folder fs.FS) int {
	t.Helper()
	entries, err := fs.ReadDir(folder, "sqlite")
	if err != nil || len(entries) == 0 {
		t.Fatalf("got %d files, %v", len(entries), err)
	}
	return len(entries)
}

// slow is how long tests wait for what another goroutine does at once.
const slow = 30 * time.Second

// heroSet is a set whose table fits a declared model: gorm's name for Hero is heros.
func heroSet() schema.Set {
	all := fstest.MapFS{
		"mysql/0001_heros.sql": {Data: []byte(gooseFile(`CREATE TABLE IF NOT EXISTS heros (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	player_id VARBINARY(64) NOT NULL,
	id BIGINT NOT NULL,
	created_at DATETIME(6) NULL,
	updated_at DATETIME(6) NULL,
	PRIMARY KEY (tenant_id, id)
) | DROP TABLE IF EXISTS heros`))},
		"postgres/0001_heros.sql": {Data: []byte(gooseFile(`CREATE TABLE IF NOT EXISTS heros (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	player_id VARCHAR(64) COLLATE "C" NOT NULL,
	id BIGINT NOT NULL,
	created_at TIMESTAMPTZ(6) NULL,
	updated_at TIMESTAMPTZ(6) NULL,
	PRIMARY KEY (tenant_id, id)
) | DROP TABLE IF EXISTS heros`))},
		"sqlite/0001_heros.sql": {Data: []byte(gooseFile(`CREATE TABLE IF NOT EXISTS heros (
	tenant_id TEXT NOT NULL,
	player_id TEXT NOT NULL,
	id INTEGER NOT NULL,
	created_at DATETIME NULL,
	updated_at DATETIME NULL,
	PRIMARY KEY (tenant_id, id)
) | DROP TABLE IF EXISTS heros`))},
	}
	return schema.Set{Name: "heroes", FS: all}
}

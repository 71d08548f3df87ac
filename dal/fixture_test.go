package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// User and its relatives are a small game: a player with items, a guild of another keyspace, a catalogue for all, a job table for nobody.
type User struct {
	dal.Model
	PlayerID  string `gorm:"not null"`
	Name      string
	Gold      int64
	DeletedAt gorm.DeletedAt
	Items     []Item `gorm:"foreignKey:PlayerID;references:PlayerID"`
}

type Item struct {
	dal.Model
	PlayerID string `gorm:"not null"`
	Name     string
	Qty      int64
}

type Guild struct {
	dal.Model
	GuildID string
	Name    string
}

type Line struct {
	TenantID tenant.ID `gorm:"primaryKey;column:tenant_id"`
	No       int64     `gorm:"primaryKey;autoIncrement:false"`
	Note     string
}

type Catalog struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Name string
}

// Job is a row of a system table.
type Job struct {
	ID int64 `gorm:"primaryKey;autoIncrement:false"`
}

// Stranger is declared nowhere.
type Stranger struct {
	ID       int64
	TenantID tenant.ID
}

const ddl = `
CREATE TABLE users (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, name TEXT, gold INTEGER, deleted_at DATETIME, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));
CREATE TABLE items (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, name TEXT, qty INTEGER, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));
CREATE TABLE guilds (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, guild_id TEXT NOT NULL, name TEXT, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));
CREATE TABLE lines (tenant_id TEXT NOT NULL, no INTEGER NOT NULL, note TEXT, PRIMARY KEY (tenant_id, no));
CREATE TABLE catalogs (id INTEGER NOT NULL PRIMARY KEY, name TEXT);
CREATE TABLE jobs (id INTEGER NOT NULL PRIMARY KEY);
`

func gameTables() []dal.Table {
	return []dal.Table{
		dal.Tenant[User]("player", "player_id"), dal.Tenant[Item]("player", "player_id"), dal.Tenant[Guild]("guild", "guild_id"),
		dal.Local[Line](), dal.Global[Catalog](), dal.System[Job](),
	}
}

// recorder notes every operation that leaves, and breaks the ones it is told to.
type recorder struct {
	mu     sync.Mutex
	texts  []string
	begins int
	fail   func(wire.Event) error
}

func (r *recorder) Before(_ context.Context, e wire.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(e); err != nil {
			return err
		}
	}
	switch e.Op {
	case "exec", "query":
		r.texts = append(r.texts, e.Text)
	case "begin":
		r.begins++
	}
	return nil
}

func (r *recorder) After(context.Context, wire.Event, error) {}

// begun returns the number of transactions begun since the last take.
func (r *recorder) begun() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begins
}

// take returns the texts since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.texts
	r.texts, r.begins = nil, 0
	return out
}

func (r *recorder) breaks(f func(wire.Event) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = f
}

// game is two shards on SQLite with the tenants a and b.
type game struct {
	*dal.Store
	rec    *recorder
	a, b   context.Context
	raw    map[shardrouter.ShardID]*sql.DB // beside the store, to look at what is really there
	shards []shardrouter.ShardID
}

type gameOption func(*dal.Config, *[]tenant.Tenant)

func newGame(tb testing.TB, opts ...gameOption) *game {
	tb.Helper()
	return newGameOn(tb, []shardrouter.ShardID{"s1", "s2"}, opts...)
}

// newGameOn is newGame on shards of the caller's.
func newGameOn(tb testing.TB, shards []shardrouter.ShardID, opts ...gameOption) *game {
	tb.Helper()
	g := &game{rec: &recorder{}, raw: map[shardrouter.ShardID]*sql.DB{}, shards: shards}
	dir := tb.TempDir()
	top := together(tb, g.shards)
	tenants := []tenant.Tenant{{ID: "a", Model: tenant.SharedTable}, {ID: "b", Model: tenant.SharedTable}, {ID: "sleepy", Model: tenant.SharedTable, Status: tenant.Suspended}}
	cfg := dal.Config{Tables: gameTables()}
	for _, o := range opts {
		o(&cfg, &tenants)
	}
	reg, err := tenant.NewStatic(tenants...)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Registry = reg
	dsn := func(p dal.Place) string {
		return "file:" + filepath.Join(dir, string(p.Shard)+".db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate&_time_format=sqlite"
	}
	for _, s := range g.shards {
		db, err := sql.Open("sqlite", dsn(dal.Place{Shard: s}))
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := db.Exec(ddl); err != nil {
			tb.Fatal(err)
		}
		g.raw[s] = db
		tb.Cleanup(func() { _ = db.Close() })
	}
	g.Store, err = dal.OpenFixed(dal.WithObserver(cfg, g.rec), dal.Fixed{Topology: top, Dialect: dal.SQLite, Connect: func(p dal.Place) (driver.Connector, error) {
		return sqlite.NewConnector(dsn(p))
	}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			tb.Error(err)
		}
		if _, st := g.Permits("a", "s1"); st.InUse+st.SystemInUse != 0 {
			tb.Errorf("permits left when the test ends: %+v", st)
		}
	})
	g.a, g.b = tenant.NewContext(tb.Context(), "a"), tenant.NewContext(tb.Context(), "b")
	return g
}

// together returns a topology in which both tenants' player 7 is on one shard: a statement that leaves its tenant there meets the other's rows.
func together(tb testing.TB, shards []shardrouter.ShardID) *shardrouter.Topology {
	tb.Helper()
	for nodes := 64; nodes < 512; nodes++ {
		top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: shards, Keyspaces: []shardrouter.Keyspace{
			{Name: "player", VirtualNodes: nodes}, {Name: "guild"},
		}})
		if err != nil {
			tb.Fatal(err)
		}
		a, _ := top.Owner("player", "a", "7")
		if b, _ := top.Owner("player", "b", "7"); a == b {
			return top
		}
	}
	tb.Fatal("no topology brings the tenants together")
	return nil
}

// other returns the shard on which player 7 is not.
func (g *game) other(tb testing.TB) shardrouter.ShardID {
	tb.Helper()
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		tb.Fatal(err)
	}
	if r.Place.Shard == g.shards[0] {
		return g.shards[1]
	}
	return g.shards[0]
}

// player returns a handle of ctx's tenant for player 7.
func (g *game) shardOf(tb testing.TB) shardrouter.ShardID {
	tb.Helper()
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		tb.Fatal(err)
	}
	return r.Place.Shard
}

func (g *game) player(ctx context.Context) *gorm.DB { return g.On(ctx, dal.Key("player", "7")) }

// seed gives both tenants the same rows: equal ids, equal player, other owners and gold.
func (g *game) seed(tb testing.TB) {
	tb.Helper()
	for _, ctx := range []context.Context{g.a, g.b} {
		id, _ := tenant.FromContext(ctx)
		for i := int64(1); i <= 3; i++ {
			u := User{Model: dal.Model{ID: i}, PlayerID: "7", Name: fmt.Sprintf("n%d", i), Gold: i * 10}
			if err := g.player(ctx).Create(&u).Error; err != nil {
				tb.Fatal(err)
			}
			it := Item{Model: dal.Model{ID: i}, PlayerID: "7", Name: string(id) + "-item", Qty: i}
			if err := g.player(ctx).Create(&it).Error; err != nil {
				tb.Fatal(err)
			}
		}
	}
	g.rec.take()
}

// dump returns every row of a tenant's users and items, over all shards, as text: two equal dumps mean that nothing changed.
func (g *game) dump(tb testing.TB, id tenant.ID) string {
	tb.Helper()
	var b strings.Builder
	for _, s := range g.shards {
		for _, q := range []string{
			"SELECT id, player_id, name, gold, COALESCE(deleted_at,''), COALESCE(updated_at,'') FROM users WHERE tenant_id = ? ORDER BY id",
			"SELECT id, player_id, name, qty, '', COALESCE(updated_at,'') FROM items WHERE tenant_id = ? ORDER BY id",
		} {
			rows, err := g.raw[s].Query(q, string(id))
			if err != nil {
				tb.Fatal(err)
			}
			for rows.Next() {
				var i, n int64
				var p, name, d, u string
				if err := rows.Scan(&i, &p, &name, &n, &d, &u); err != nil {
					tb.Fatal(err)
				}
				fmt.Fprintln(&b, s, i, p, name, n, d, u)
			}
			if err := rows.Close(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return b.String()
}

// count returns the number of rows of all tenants that match.
func (g *game) count(tb testing.TB, query string, args ...any) int {
	tb.Helper()
	n := 0
	for _, s := range g.shards {
		var k int
		if err := g.raw[s].QueryRow(query, args...).Scan(&k); err != nil {
			tb.Fatal(err)
		}
		n += k
	}
	return n
}

// refusedAs checks that err is target and that nothing left for a server.
func (g *game) refusedAs(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("error %v, want %v", err, target)
	}
	if n := g.rec.begun(); n != 0 {
		tb.Errorf("%d transactions were begun for what was refused", n)
	}
	for _, text := range g.rec.take() {
		tb.Errorf("a refused statement left: %s", text)
	}
}

// refusedInTx is refusedAs inside a transaction that the test itself began.
func (g *game) refusedInTx(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Errorf("error %v, want %v", err, target)
	}
	for _, text := range g.rec.take() {
		tb.Errorf("a refused statement left: %s", text)
	}
}

// scopedText checks that one statement left and that it carries the tenant's predicate once for its table.
func (g *game) scopedText(tb testing.TB, table string) string {
	tb.Helper()
	texts := g.rec.take()
	if len(texts) != 1 {
		tb.Fatalf("%d statements left, want 1: %q", len(texts), texts)
	}
	if want := "`" + table + "`.`tenant_id` = ?"; strings.Count(texts[0], want) != 1 {
		tb.Errorf("statement %q does not hold %q once", texts[0], want)
	}
	return texts[0]
}

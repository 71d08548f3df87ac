package cache_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/cache"
	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

func TestMain(m *testing.M) {
	// A server that all tests share runs until the process ends.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/tenantdal/tenantdal/testutil.(*MariaDB).watch"),
		goleak.IgnoreAnyFunction("github.com/tenantdal/tenantdal/testutil.(*MariaDB).launch.func1"))
}

// Guild is what the tests keep.
type Guild struct {
	dal.Model
	GuildID string `gorm:"size:255;not null"`
	Name    string
	Gold    int64
}

func guilds() schema.Set {
	file := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + "\n-- +goose Down\nDROP TABLE IF EXISTS guilds;\n")}
	}
	return schema.Set{Name: "game", FS: fstest.MapFS{
		"mysql/0001_guilds.sql": file("CREATE TABLE IF NOT EXISTS guilds (tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, " +
			"guild_id VARBINARY(255) NOT NULL, name VARCHAR(100), gold BIGINT NOT NULL DEFAULT 0, created_at DATETIME(6), updated_at DATETIME(6), PRIMARY KEY (tenant_id, id));"),
		"sqlite/0001_guilds.sql": file("CREATE TABLE IF NOT EXISTS guilds (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, guild_id TEXT NOT NULL, name TEXT, " +
			"gold INTEGER NOT NULL DEFAULT 0, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));"),
	}}
}

// watch sees every operation that leaves; after may hold one up.
type watch struct {
	reads atomic.Int64 // SELECTs of guilds
	after atomic.Pointer[func(context.Context, wire.Event)]
}

func (w *watch) Before(context.Context, wire.Event) error { return nil }

func (w *watch) After(ctx context.Context, e wire.Event, _ error) {
	if !isRead(e) {
		return
	}
	w.reads.Add(1)
	if f := w.after.Load(); f != nil {
		(*f)(ctx, e)
	}
}

func isRead(e wire.Event) bool {
	return e.Op == "query" && strings.HasPrefix(e.Text, "SELECT") && strings.Contains(e.Text, "guilds")
}

// world is a database of two shared tenants, a and b, and one with a schema of its own, c.
type world struct {
	*testing.T
	cfg   dal.Config
	watch *watch
	store *dal.Store
}

func newWorld(t *testing.T, cluster dal.Cluster) *world {
	t.Helper()
	registry, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable}, tenant.Tenant{ID: "b", Model: tenant.SharedTable},
		tenant.Tenant{ID: "c", Model: tenant.OwnSchema})
	if err != nil {
		t.Fatal(err)
	}
	cfg := dal.Config{Cluster: cluster, Registry: registry, NodeID: 1, Tables: []dal.Table{dal.Tenant[Guild]("guild", "guild_id")}}
	cfg.Quota.MaxConns = 16
	if _, err := schema.Up(t.Context(), cfg, guilds()); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, watch: &watch{}}
	w.cfg = dal.WithObserver(cfg, w.watch)
	w.store = w.openStore()
	for _, id := range []tenant.ID{"a", "b", "c"} {
		g := Guild{Model: dal.Model{ID: 1}, GuildID: "g1", Name: "of " + string(id)}
		if err := w.store.On(w.as(id), guildKey).Create(&g).Error; err != nil {
			t.Fatal(err)
		}
	}
	return w
}

var guildKey = dal.Key("guild", "g1")

func onSQLite(t *testing.T) *world {
	t.Helper()
	return newWorld(t, dal.SQLiteCluster(t.TempDir(), 2))
}

func onMariaDB(t *testing.T) *world {
	t.Helper()
	db := testutil.NewDatabase(t, testutil.SharedMariaDB(t, 1)[0])
	c := dal.MySQLCluster(dal.Endpoint{Network: db.Net, Address: db.Addr, User: db.User, Password: db.Passwd, Database: "x" + db.DBName[2:14]})
	c.LoginSecret = "of the tests"
	return newWorld(t, c)
}

// onEach runs f on SQLite and MariaDB.
func onEach(t *testing.T, f func(w *world)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) *world{"sqlite": onSQLite, "mariadb": onMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(open(t))
		})
	}
}

// openStore opens another store over the same databases, as another process would.
func (w *world) openStore() *dal.Store {
	w.Helper()
	store, err := dal.Open(w.Context(), w.cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			w.Errorf("Store.Close: %v", err)
		}
	})
	return store
}

func (w *world) as(id tenant.ID) context.Context { return tenant.NewContext(w.Context(), id) }

type guildCache = cache.Cache[Guild, int64]

// cache starts a cache over store.
func (w *world) cache(store *dal.Store, cfg cache.Config) *guildCache {
	w.Helper()
	c, err := cache.New[Guild, int64](store, cfg)
	if err != nil {
		w.Fatal(err)
	}
	if err := c.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			w.Errorf("Cache.Close: %v", err)
		}
	})
	return c
}

// gold reads guild 1 through the cache.
func (w *world) gold(c *guildCache, id tenant.ID) int64 {
	w.Helper()
	g, err := c.Get(w.as(id), guildKey, 1)
	if err != nil {
		w.Fatalf("Get of %s: %v", id, err)
	}
	if g.TenantID != id || g.Name != "of "+string(id) {
		w.Errorf("Get of %s = %+v: another tenant's row", id, g)
	}
	return g.Gold
}

// set writes guild 1's gold.
func (w *world) set(store *dal.Store, id tenant.ID, gold int64) {
	w.Helper()
	if err := store.On(w.as(id), guildKey).Model(&Guild{}).Where("id = ?", 1).Update("gold", gold).Error; err != nil {
		w.Fatal(err)
	}
}

// tapped is a notifier that says when a subscriber has dealt with a notice.
type tapped struct {
	notify.Notifier
	seen chan notify.Notice
}

func newTapped() *tapped { return &tapped{notify.NewLocal(), make(chan notify.Notice, 100)} }

func (n *tapped) Subscribe(ctx context.Context, topic string, fn func(notify.Notice)) (func(), error) {
	return n.Notifier.Subscribe(ctx, topic, func(m notify.Notice) {
		fn(m)
		n.seen <- m
	})
}

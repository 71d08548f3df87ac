package redisnotify_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/cache"
	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/dal/notify/redisnotify"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// Guild is what the stores hold.
type Guild struct {
	dal.Model
	GuildID string `gorm:"size:255;not null"`
	Gold    int64
}

func guilds() schema.Set {
	file := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + "\n-- +goose Down\nDROP TABLE IF EXISTS guilds;\n")}
	}
	return schema.Set{Name: "game", FS: fstest.MapFS{
		"mysql/0001_guilds.sql": file("CREATE TABLE IF NOT EXISTS guilds (tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, " +
			"guild_id VARBINARY(255) NOT NULL, gold BIGINT NOT NULL DEFAULT 0, created_at DATETIME(6), updated_at DATETIME(6), PRIMARY KEY (tenant_id, id));"),
		"sqlite/0001_guilds.sql": file("CREATE TABLE IF NOT EXISTS guilds (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, guild_id TEXT NOT NULL, " +
			"gold INTEGER NOT NULL DEFAULT 0, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));"),
	}}
}

// onEach runs f with the configuration of a migrated database of two shards, of each kind.
func onEach(t *testing.T, f func(t *testing.T, cfg dal.Config)) {
	t.Helper()
	registry, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable}, tenant.Tenant{ID: "b", Model: tenant.SharedTable})
	if err != nil {
		t.Fatal(err)
	}
	for name, cluster := range map[string]func(t *testing.T) dal.Cluster{
		"sqlite": func(t *testing.T) dal.Cluster { return dal.SQLiteCluster(t.TempDir(), 2) },
		"mariadb": func(t *testing.T) dal.Cluster {
			var ends []dal.Endpoint
			for range 2 {
				db := testutil.NewDatabase(t, testutil.SharedMariaDB(t, 1)[0])
				ends = append(ends, dal.Endpoint{Network: db.Net, Address: db.Addr, User: db.User, Password: db.Passwd, Database: db.DBName})
			}
			c := dal.MySQLCluster(ends...)
			c.LoginSecret = "of the tests"
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: cluster(t), Registry: registry, Tables: []dal.Table{dal.Tenant[Guild]("guild", "guild_id")}}
			if _, err := schema.Up(t.Context(), cfg, guilds()); err != nil {
				t.Fatal(err)
			}
			f(t, cfg)
		})
	}
}

func openStore(t *testing.T, cfg dal.Config) *dal.Store {
	t.Helper()
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Errorf("Store.Close: %v", err)
		}
	})
	return store
}

// One process changes the topology; another routes by the new one long before its poll, even if the notice was lost with the server that carried it.
func TestNotifier_A13_TopologyReachesAnotherStoreBeforeThePoll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg dal.Config) {
		r := testutil.StartRedis(t)
		cfg.TopologyPoll, cfg.TopologyMaxAge = time.Hour, 2*time.Hour
		cfg.Notifier = open(t, r, redisnotify.Config{})
		here := openStore(t, cfg)
		lines := make(records, 1000)
		heard := tapped{open(t, r, redisnotify.Config{}), make(chan notify.Notice, 1000)}
		cfg.Notifier, cfg.Logger = heard, slog.New(slog.NewTextHandler(lines, nil))
		there := openStore(t, cfg)
		if err := there.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx := tenant.NewContext(t.Context(), "a")
		change := func(key string) (*shardrouter.Topology, shardrouter.ShardID) {
			t.Helper()
			route, err := here.Route(ctx, dal.Key("guild", key))
			if err != nil {
				t.Fatal(err)
			}
			to := shardrouter.ShardID("s1")
			if route.Place.Shard == to {
				to = "s2"
			}
			pin := shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "a", Keyspace: "guild", Key: shardrouter.Key(key), Shard: to}}
			next, err := here.Change(tenant.System(t.Context(), "canary", "guilds"), "ops", pin)
			if err != nil {
				t.Fatalf("Change: %v", err)
			}
			return next, to
		}
		seen := func(key string, next *shardrouter.Topology, to shardrouter.ShardID) {
			t.Helper()
			lines.await(t, fmt.Sprintf("epoch=%d", next.Epoch()))
			if route, err := there.Route(ctx, dal.Key("guild", key)); err != nil || route.Place.Shard != to || route.Epoch != next.Epoch() {
				t.Errorf("the other process routes %s to %+v, %v, want %s", key, route, err, to)
			}
		}
		// The first look may see the first change; from then on there are the notices alone.
		for _, key := range []string{"k1", "k2", "k3"} {
			next, to := change(key)
			seen(key, next, to)
		}
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		changed, shard := change("k4") // nobody is told
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for !next(t, heard.seen).Lost {
		}
		seen("k4", changed, shard)
	})
}

// tapped tells when a subscriber has dealt with a notice.
type tapped struct {
	notify.Notifier
	seen chan notify.Notice
}

func (n tapped) Subscribe(ctx context.Context, topic string, fn func(notify.Notice)) (func(), error) {
	return n.Notifier.Subscribe(ctx, topic, func(m notify.Notice) {
		fn(m)
		n.seen <- m
	})
}

// A write in one process drops the row that another keeps, whose age would allow it for long; and so does a notice that was lost with the server.
func TestNotifier_D6_CacheOfAnotherStoreIsInvalidated(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg dal.Config) {
		r := testutil.StartRedis(t)
		key, ctx := dal.Key("guild", "g1"), tenant.NewContext(t.Context(), "a")
		var stores [2]*dal.Store
		var caches [2]*cache.Cache[Guild, int64]
		there := tapped{open(t, r, redisnotify.Config{}), make(chan notify.Notice, 1000)}
		for i, via := range []notify.Notifier{open(t, r, redisnotify.Config{}), there} {
			stores[i] = openStore(t, cfg)
			c, err := cache.New[Guild, int64](stores[i], cache.Config{TTL: 1000 * time.Hour, Notifier: via})
			if err == nil {
				err = c.Start(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(context.Background()); err != nil {
					t.Errorf("Cache.Close: %v", err)
				}
			})
			caches[i] = c
		}
		set := func(gold int64) {
			t.Helper()
			if err := stores[0].On(ctx, key).Model(&Guild{}).Where("id = ?", 1).Update("gold", gold).Error; err != nil {
				t.Fatal(err)
			}
		}
		want := func(gold int64) {
			t.Helper()
			for i, c := range caches {
				if g, err := c.Get(ctx, key, 1); err != nil || g.Gold != gold || g.TenantID != "a" {
					t.Errorf("store %d gives %+v, %v, want %d gold", i, g, err, gold)
				}
			}
		}
		if err := stores[0].On(ctx, key).Create(&Guild{Model: dal.Model{ID: 1}, GuildID: "g1"}).Error; err != nil {
			t.Fatal(err)
		}
		want(0)
		for gold := int64(1); gold <= 5; gold++ {
			set(gold)
			for { // a notice of the write before may have been on its way
				next(t, there.seen)
				if g, err := caches[1].Get(ctx, key, 1); err != nil || g.Gold == gold {
					break
				}
			}
			want(gold)
		}
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		set(6) // nobody is told
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for !next(t, there.seen).Lost {
		}
		want(6)
	})
}

package dal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// onTwo runs the test on SQLite and on MariaDB, with a cluster of two shards and an endpoint for one more.
func onTwo(t *testing.T, test func(t *testing.T, c dal.Cluster, more dal.Endpoint)) {
	t.Helper()
	for name, cluster := range clusters() {
		if name == "postgres" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, more := cluster(t), dal.Endpoint{}
			if name == "mariadb" {
				cfg := testutil.NewDatabase(t, testutil.SharedMariaDB(t, 2)[1])
				more = dal.Endpoint{Dialect: dal.MySQL, Network: cfg.Net, Address: cfg.Addr, User: cfg.User, Password: cfg.Passwd, Database: cfg.DBName}
			}
			test(t, c, more)
		})
	}
}

// follows waits until the store routes by the epoch.
func follows(tb testing.TB, s *dal.Store, epoch shardrouter.Epoch) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	for s.Topology().Epoch() < epoch {
		if ctx.Err() != nil {
			tb.Fatalf("the store is at epoch %d, want %d", s.Topology().Epoch(), epoch)
		}
	}
}

// keyOn returns a key of the keyspace player that the shard owns.
func keyOn(tb testing.TB, top *shardrouter.Topology, id tenant.ID, shard shardrouter.ShardID) string {
	tb.Helper()
	for i := range 10_000 {
		key := fmt.Sprint(i + 1)
		if owner, err := top.Owner("player", string(id), shardrouter.Key(key)); err == nil && owner == shard {
			return key
		}
	}
	tb.Fatalf("shard %s owns nothing of tenant %s", shard, id)
	return ""
}

func TestChange_ShardsThatJoinedBecomeActive(t *testing.T) {
	t.Parallel()
	onTwo(t, func(t *testing.T, c dal.Cluster, more dal.Endpoint) {
		short := dal.Config{Cluster: c, Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, Notifier: notify.NewLocal()}
		up(t, short)
		old := opened(t, short)
		if err := old.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		tenants := []tenant.ID{"shared-a", "schema-c"}
		for _, id := range tenants {
			if err := old.On(tenant.NewContext(t.Context(), id), dal.Key("player", "7")).Create(&Hero{PlayerID: "7"}).Error; err != nil {
				t.Fatal(err)
			}
		}

		long := short
		long.Cluster.Shards = append(slices.Clone(c.Shards), more)
		if _, err := dal.Open(t.Context(), long); !errors.Is(err, dal.ErrUnknownShard) {
			t.Errorf("the longer list before Up: got %v, want ErrUnknownShard", err)
		}
		up(t, long)
		joined := opened(t, long)
		opened(t, short) // one of before that starts again
		if err := joined.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		system := tenant.System(t.Context(), "grow", "heros")
		follows(t, old, joined.Topology().Epoch())
		h := old.Health()
		if i := slices.IndexFunc(h.Shards, func(s dal.ShardHealth) bool { return s.Shard == "s3" }); i < 0 || !h.Shards[i].Missing || h.Shards[i].Info.State != shardrouter.Joining {
			t.Errorf("health of the store with the shorter list: %+v, want s3 missing and joining", h.Shards)
		}
		places, err := old.Places(system)
		if err != nil || slices.ContainsFunc(places, func(p dal.Place) bool { return p.Shard == "s3" }) {
			t.Errorf("places of the shorter list: %v, %v, want none of s3", places, err)
		}
		if places, err = joined.Places(system); err != nil || !slices.Contains(places, dal.Place{Shard: "s3", Schema: "t_schema-c"}) {
			t.Errorf("places of the longer list: %v, %v, want the own schema on s3", places, err)
		}

		active := shardrouter.SetShard{Shard: "s3"}
		var needs *shardrouter.NeedsReshardError
		if _, err := joined.Change(system, "ops", active); !errors.As(err, &needs) || needs.Plan.Empty() {
			t.Fatalf("with rows: got %v, want a *NeedsReshardError with its plan", err)
		}
		for _, id := range tenants {
			db := old.On(tenant.NewContext(t.Context(), id), dal.Key("player", "7")).Where("player_id = ?", "7").Delete(&Hero{})
			if db.Error != nil || db.RowsAffected != 1 {
				t.Fatalf("delete: %d, %v", db.RowsAffected, db.Error)
			}
		}
		before := joined.SystemUses().Uses
		next, err := joined.Change(system, "ops", active)
		if err != nil {
			t.Fatal(err)
		}
		if n := joined.SystemUses().Uses - before; n == 0 || n > uint64(2*len(places)) {
			t.Errorf("the change looked %d times into a table, want once before and once after in each of %d places", n, len(places))
		}
		follows(t, old, next.Epoch())
		for _, id := range tenants {
			ctx, key := tenant.NewContext(t.Context(), id), keyOn(t, next, id, "s3")
			if err := joined.On(ctx, dal.Key("player", key)).Create(&Hero{PlayerID: key}).Error; err != nil {
				t.Errorf("tenant %s: a row on the new shard: %v", id, err)
			}
			var lacks *dal.ShardNotConfiguredError
			if err := old.On(ctx, dal.Key("player", key)).Find(&[]Hero{}).Error; !errors.As(err, &lacks) || lacks.Shard != "s3" {
				t.Errorf("tenant %s: the shorter list, a key of s3: got %v, want a *ShardNotConfiguredError", id, err)
			}
			stays := keyOn(t, next, id, "s1")
			if err := old.On(ctx, dal.Key("player", stays)).Find(&[]Hero{}).Error; err != nil {
				t.Errorf("tenant %s: the shorter list, a key of s1: %v", id, err)
			}
			if err := joined.On(ctx, dal.Key("player", key)).Where("player_id = ?", key).Delete(&Hero{}).Error; err != nil {
				t.Error(err)
			}
		}
		if _, err := dal.Open(t.Context(), short); !errors.Is(err, dal.ErrUnknownShard) {
			t.Errorf("the shorter list once s3 is active: got %v, want ErrUnknownShard", err)
		}

		// One that is removed leaves the list, and the others keep their ids.
		if next, err = joined.Change(system, "ops", shardrouter.RemoveShard{Shard: "s2"}); err != nil {
			t.Fatal(err)
		}
		named := long
		more.Shard = "s3"
		named.Cluster.Shards = []dal.Endpoint{c.Shards[0], more}
		up(t, named)
		rest := opened(t, named)
		if got := rest.Topology(); got.Epoch() != next.Epoch() || !slices.Equal(got.Shards(), []shardrouter.ShardID{"s1", "s3"}) {
			t.Errorf("without s2: epoch %d, shards %v", got.Epoch(), got.Shards())
		}
		key := keyOn(t, next, "shared-a", "s3")
		if err := rest.On(tenant.NewContext(t.Context(), "shared-a"), dal.Key("player", key)).Create(&Hero{PlayerID: key}).Error; err != nil {
			t.Errorf("a row on s3, the second of the list: %v", err)
		}
	})
}

func TestCluster_ShardsByName(t *testing.T) {
	t.Parallel()
	c := dal.SQLiteCluster("dir", 3)
	c.Shards[1].Shard = "eu-7"
	if got := c.ShardIDs(); !slices.Equal(got, []shardrouter.ShardID{"s1", "eu-7", "s3"}) {
		t.Errorf("got %v, want the name in its place", got)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Shards[1].Shard = "s3"
	var twice *shardrouter.DuplicateShardError
	if err := c.Validate(); !errors.As(err, &twice) || twice.Shard != "s3" {
		t.Errorf("an id twice: got %v, want a *DuplicateShardError", err)
	}
	c.Shards[1].Shard = "a/b"
	var bad *shardrouter.InvalidShardError
	if err := c.Validate(); !errors.As(err, &bad) {
		t.Errorf("an ill-formed id: got %v, want an *InvalidShardError", err)
	}
	m := dal.MySQLCluster(dal.Endpoint{Network: "tcp", Address: "a:1", Database: "g"}, dal.Endpoint{Network: "tcp", Address: "b:1", Database: "g", Shard: "s9"})
	if e, err := m.Endpoint(dal.Place{Shard: "s9", Schema: "t_x"}, "x"); err != nil || e.Address != "b:1" || m.Server(dal.Place{Shard: "s9"}).Address != "b:1" {
		t.Errorf("the place of s9: %v, %v", e, err)
	}
}

package control_test

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestTopology_RoundTrip(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		big := tenant.Tenant{ID: "big", Model: tenant.OwnDatabase, Placement: tenant.Placement{Shards: []string{"big-s2", "big-s1"}}}
		if err := s.PutTenant(ctx, big); err != nil {
			t.Fatal(err)
		}
		got, err := s.Topology(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
			Epoch: 2, Hash: shardrouter.HashName, Shards: twoShards, Keyspaces: keyspaces,
			Dedicated: map[string][]shardrouter.ShardID{"big": {"big-s1", "big-s2"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Epoch() != want.Epoch() || got.Hash() != want.Hash() || !reflect.DeepEqual(got.Shards(), want.Shards()) ||
			!reflect.DeepEqual(got.AllShards(), want.AllShards()) || !reflect.DeepEqual(got.Keyspaces(), want.Keyspaces()) ||
			!reflect.DeepEqual(got.Dedicated("big"), want.Dedicated("big")) {
			t.Fatalf("Topology: got %+v, want %+v", got, want)
		}
		for _, id := range []string{"acme", "big"} {
			for n := range int64(200) {
				key, err := shardrouter.KeyOf(n + 1)
				if err != nil {
					t.Fatal(err)
				}
				g, err := got.Owner("player", id, key)
				if err != nil {
					t.Fatal(err)
				}
				if w, _ := want.Owner("player", id, key); g != w {
					t.Fatalf("Owner(player, %s, %d): got %s, want %s", id, n+1, g, w)
				}
			}
		}
		if epoch, err := s.Epoch(ctx); err != nil || epoch != 2 {
			t.Fatalf("Epoch: got %d, %v, want 2", epoch, err)
		}
	})
}

func TestInitTopology_ExistingWins(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		for _, tc := range []struct {
			name      string
			shards    []shardrouter.ShardID
			keyspaces []shardrouter.Keyspace
			hash      string
			want      shardrouter.Epoch // 0: refused
		}{
			{"same", twoShards, keyspaces, shardrouter.HashName, 1},
			{"other order, defaults spelled out", []shardrouter.ShardID{"s2", "s1"}, []shardrouter.Keyspace{{Name: "guild", VirtualNodes: 256}, {Name: "player", Strategy: "ring", VirtualNodes: 128}}, "", 1},
			{"fewer keyspaces", twoShards, keyspaces[:1], "", 1},
			{"one shard more, which is for JoinShards", []shardrouter.ShardID{"s1", "s2", "s3"}, keyspaces, "", 1},
			{"another shard", []shardrouter.ShardID{"s1", "s3"}, keyspaces, "", 0},
			{"one shard fewer", twoShards[:1], keyspaces, "", 0},
			{"another keyspace definition", twoShards, []shardrouter.Keyspace{{Name: "player", VirtualNodes: 64}}, "", 0},
			{"new keyspace beside a changed one", twoShards, []shardrouter.Keyspace{{Name: "alpha"}, {Name: "player", VirtualNodes: 64}}, "", 0},
			{"new keyspace", twoShards, []shardrouter.Keyspace{{Name: "log"}}, "", 2},
			{"new keyspace again", twoShards, []shardrouter.Keyspace{{Name: "log"}}, "", 2},
		} {
			epoch, err := s.InitTopology(ctx, tc.shards, tc.keyspaces, tc.hash)
			if tc.want == 0 {
				var mismatch *control.TopologyMismatchError
				if !errors.As(err, &mismatch) || !errors.Is(err, control.ErrMismatch) {
					t.Fatalf("%s: got %v, want a *TopologyMismatchError", tc.name, err)
				}
				continue
			}
			if err != nil || epoch != tc.want {
				t.Fatalf("%s: got epoch %d, %v, want %d", tc.name, epoch, err, tc.want)
			}
		}
		top, err := s.Topology(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := []shardrouter.Keyspace{{Name: "guild", Strategy: "ring", VirtualNodes: 256}, {Name: "log", Strategy: "ring", VirtualNodes: 128}, {Name: "player", Strategy: "ring", VirtualNodes: 128}}
		if got := top.Keyspaces(); !reflect.DeepEqual(got, want) || top.Epoch() != 2 || !reflect.DeepEqual(top.Shards(), twoShards) {
			t.Fatalf("after refusals: got %v at epoch %d, want %v at 2: a refusal changed something", got, top.Epoch(), want)
		}
	})
}

func TestInitTopology_OtherHash(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		_, err := s.InitTopology(t.Context(), twoShards, keyspaces, "md5/1")
		var unknown *shardrouter.UnknownHashError
		if !errors.As(err, &unknown) {
			t.Fatalf("InitTopology with a hash that this version lacks: got %v", err)
		}
		b.edit(t, "UPDATE tdal_topology SET hash = 'fnv1a-mix/2'")
		_, err = s.InitTopology(t.Context(), twoShards, keyspaces, "")
		wantIs(t, "InitTopology over another hash", err, control.ErrMismatch)
		_, err = s.Topology(t.Context())
		if !errors.As(err, &unknown) {
			t.Fatalf("Topology with a hash that this version lacks: got %v", err)
		}
	})
}

func TestInitTopology_Concurrent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			s := b.store(t)
			wg.Go(func() { _, errs[i] = s.InitTopology(t.Context(), twoShards, keyspaces, "") })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if epoch, err := b.store(t).Epoch(t.Context()); err != nil || epoch != 1 {
			t.Fatalf("Epoch: got %d, %v, want 1", epoch, err)
		}
	})
}

func TestJoinShards_ConcurrentlyWithChanges(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		initialised(t, b)
		const each = 4
		var wg sync.WaitGroup
		errs := make([]error, 2*each)
		joined := make([][]shardrouter.ShardID, each)
		for i := range each {
			join, change := b.store(t), b.store(t)
			wg.Go(func() {
				_, joined[i], errs[i] = join.JoinShards(t.Context(), []shardrouter.ShardID{"s2", "s4", "s1", "s3"}, "up", "grows")
			})
			wg.Go(func() {
				_, _, err := change.ChangeTopology(t.Context(), 1, "ops", "race", nil, shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{Zone: "z"}})
				if !errors.Is(err, control.ErrEpochConflict) {
					errs[each+i] = err
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		won := 0
		for _, ids := range joined {
			if ids != nil {
				won++
				if !reflect.DeepEqual(ids, []shardrouter.ShardID{"s4", "s3"}) {
					t.Errorf("joined %v, want s4 and s3 as listed", ids)
				}
			}
		}
		s := b.store(t)
		top, err := s.Topology(t.Context())
		if err != nil || won != 1 || top.Info("s3").State != shardrouter.Joining || top.Info("s4").State != shardrouter.Joining || len(top.Shards()) != 4 {
			t.Fatalf("%d joined them, topology %+v, %v", won, top, err)
		}
		if _, err := s.MatchShards(t.Context(), []shardrouter.ShardID{"s4", "s1", "s3", "s2"}); err != nil {
			t.Errorf("MatchShards of the same shards: %v", err)
		}
		for _, other := range [][]shardrouter.ShardID{twoShards, {"s1", "s2", "s3", "s4", "s5"}} {
			if _, err := s.MatchShards(t.Context(), other); !errors.Is(err, control.ErrMismatch) {
				t.Errorf("MatchShards of %v: got %v, want ErrMismatch", other, err)
			}
		}
	})
}

func TestTopology_Corrupt(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"shard id":          "INSERT INTO tdal_shards (shard, owner, ord) VALUES ('a b', '', 9)",
		"owner":             "INSERT INTO tdal_shards (shard, owner, ord) VALUES ('x', 'A!', 0)",
		"strategy":          "UPDATE tdal_keyspaces SET strategy = 'dice'",
		"virtual nodes":     "UPDATE tdal_keyspaces SET virtual_nodes = -1",
		"no default shards": "DELETE FROM tdal_shards",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, b bench) {
				s := initialised(t, b)
				b.edit(t, text)
				_, err := s.Topology(t.Context())
				wantIs(t, "Topology", err, control.ErrCorrupt)
			})
		})
	}
}

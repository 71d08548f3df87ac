package control_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
)

func anything(*shardrouter.Plan) error { return nil }

// pinElsewhere is a pin of player 7 of tenant acme on the shard that does not own it.
func pinElsewhere(t *testing.T, top *shardrouter.Topology) shardrouter.Pin {
	t.Helper()
	owner, err := top.Owner("player", "acme", "7")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range top.Shards() {
		if id != owner {
			return shardrouter.Pin{Tenant: "acme", Keyspace: "player", Key: "7", Shard: id}
		}
	}
	t.Fatal("there is one shard only")
	return shardrouter.Pin{}
}

func TestChangeTopology_RoundTrip(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		top, err := s.Topology(ctx)
		if err != nil {
			t.Fatal(err)
		}
		steps := [][]shardrouter.Change{
			{shardrouter.AddShard{Shard: "s3", Info: shardrouter.ShardInfo{State: shardrouter.Joining, Zone: "zürich", Weight: 3}}},
			{shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{State: shardrouter.Draining, Zone: "b"}}},
			{shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "room", Strategy: shardrouter.StrategyRoom}}, shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "log", Strategy: shardrouter.StrategySlots}}},
			{shardrouter.AssignRoom{Room: shardrouter.Room{Tenant: "acme", Keyspace: "room", Key: "r\x00\xff", Shard: "s2"}}},
			{shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "acme", Keyspace: "player", Key: "7", Shard: "s2"}}},
			{shardrouter.SetShard{Shard: "s3", Info: shardrouter.ShardInfo{}}},
			{shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "acme", Keyspace: "player", Key: "7", Shard: "s3"}}, shardrouter.DropRoom{Tenant: "acme", Keyspace: "room", Key: "r\x00\xff"}},
			{shardrouter.DropPin{Tenant: "acme", Keyspace: "player", Key: "7"}, shardrouter.RemoveShard{Shard: "s3"}},
		}
		for i, changes := range steps {
			want, _, err := top.Apply(changes...)
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if top, _, err = s.ChangeTopology(ctx, top.Epoch(), "ops", fmt.Sprint("step ", i), anything, changes...); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			got, err := s.Topology(ctx)
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if g, w := normal(got), normal(want); !reflect.DeepEqual(g, w) {
				t.Fatalf("step %d: read back\n%+v, want\n%+v", i, g, w)
			}
		}
		log, err := s.TopologyLog(ctx, 3)
		if err != nil || len(log) != 3 || log[0].Epoch != top.Epoch() || log[0].Reason != "step 7" || log[2].Actor != "ops" || log[0].At.IsZero() || len(log[0].Changes) != 2 {
			t.Fatalf("TopologyLog: got %+v, %v", log, err)
		}
		if c, err := shardrouter.UnmarshalChange(log[0].Changes[1]); err != nil || c != (shardrouter.RemoveShard{Shard: "s3"}) {
			t.Errorf("the last change reads %#v, %v", c, err)
		}
		// A configuration that names the keyspaces alone does not undo what was changed by hand.
		if _, err := s.InitTopology(ctx, twoShards, []shardrouter.Keyspace{{Name: "room"}, {Name: "log"}}, ""); err != nil {
			t.Errorf("InitTopology over changed keyspaces: %v", err)
		}
	})
}

// normal is a configuration in which weight 0 and weight 1 are one.
func normal(t *shardrouter.Topology) shardrouter.TopologyConfig {
	cfg := t.Config()
	info := map[shardrouter.ShardID]shardrouter.ShardInfo{}
	for id, i := range cfg.Info {
		i.Weight = max(i.Weight, 1)
		if i != (shardrouter.ShardInfo{Weight: 1}) {
			info[id] = i
		}
	}
	cfg.Info = info
	return cfg
}

func TestChangeTopology_A12_S15_WhatMovesKeysIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		top, err := s.Topology(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]shardrouter.Change{
			"one shard more":   shardrouter.AddShard{Shard: "s3"},
			"one shard fewer":  shardrouter.RemoveShard{Shard: "s2"},
			"another strategy": shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "player", Strategy: shardrouter.StrategyModulo}},
			"a weight":         shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{Weight: 2}},
			"a pin":            shardrouter.PutPin{Pin: pinElsewhere(t, top)},
		} {
			_, _, err := s.ChangeTopology(t.Context(), top.Epoch(), "ops", name, nil, c)
			var needs *shardrouter.NeedsReshardError
			if !errors.Is(err, shardrouter.ErrNeedsReshard) || !errors.As(err, &needs) || needs.Plan.Empty() {
				t.Errorf("%s: got %v, want a *NeedsReshardError with its plan", name, err)
			}
		}
		after, err := s.Topology(t.Context())
		if err != nil || !reflect.DeepEqual(normal(after), normal(top)) {
			t.Errorf("a refusal changed something: %+v, %v", after.Config(), err)
		}
		if log, err := s.TopologyLog(t.Context(), 9); err != nil || len(log) != 0 {
			t.Errorf("a refusal is in the history: %+v, %v", log, err)
		}
	})
}

func TestChangeTopology_OneOfManyWins(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		initialised(t, b)
		const writers = 6
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for i := range errs {
			s := b.store(t)
			wg.Go(func() {
				_, _, errs[i] = s.ChangeTopology(t.Context(), 1, fmt.Sprint("writer ", i), "race", nil,
					shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{Zone: fmt.Sprint("z", i)}})
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			var conflict *control.EpochConflictError
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Errorf("writers %d and %d both won", winner, i)
			case !errors.Is(err, control.ErrEpochConflict) || !errors.As(err, &conflict) || conflict.Have != 2 || conflict.Want != 1:
				t.Errorf("writer %d: %v", i, err)
			}
		}
		s := b.store(t)
		top, err := s.Topology(t.Context())
		if err != nil || winner < 0 || top.Epoch() != 2 || top.Info("s1").Zone != fmt.Sprint("z", winner) {
			t.Fatalf("winner %d, topology %+v, %v", winner, top, err)
		}
		if log, err := s.TopologyLog(t.Context(), 9); err != nil || len(log) != 1 || log[0].Actor != fmt.Sprint("writer ", winner) {
			t.Errorf("history %+v, %v", log, err)
		}
	})
}

func TestChangeTopology_BadArguments(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		zone := shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{Zone: string(make([]byte, 65))}}
		for name, c := range map[string]struct {
			actor, reason string
			changes       []shardrouter.Change
		}{
			"no actor":   {"", "why", []shardrouter.Change{shardrouter.SetShard{Shard: "s1"}}},
			"no reason":  {"ops", "", []shardrouter.Change{shardrouter.SetShard{Shard: "s1"}}},
			"no changes": {"ops", "why", nil},
			"nil":        {"ops", "why", []shardrouter.Change{nil}},
			"long zone":  {"ops", "why", []shardrouter.Change{zone}},
		} {
			var bad *control.ChangeArgumentError
			if _, _, err := s.ChangeTopology(t.Context(), 1, c.actor, c.reason, nil, c.changes...); !errors.As(err, &bad) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if epoch, err := s.Epoch(t.Context()); err != nil || epoch != 1 {
			t.Errorf("epoch %d, %v after refusals", epoch, err)
		}
	})
}

package control_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
)

func TestInitTopology_DeclaredStrategies(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s, ctx := b.store(t), t.Context()
		splits := []shardrouter.Split{{Shard: "s2"}, {From: "2026-01-01", Shard: "s1"}}
		declared := []shardrouter.Keyspace{
			{Name: "a", Strategy: shardrouter.StrategyKetama},
			{Name: "b", Strategy: shardrouter.StrategyModulo},
			{Name: "c", Strategy: shardrouter.StrategyRange, Kind: shardrouter.TimeRange, Splits: splits},
			{Name: "d", Strategy: shardrouter.StrategyRendezvous},
			{Name: "e", Strategy: shardrouter.StrategyRing, VirtualNodes: 64},
			{Name: "f", Strategy: shardrouter.StrategyRoom},
			{Name: "g", Strategy: shardrouter.StrategySlots, Slots: []shardrouter.SlotRange{{First: 0, Last: 99, Shard: "s2"}, {First: 100, Last: shardrouter.SlotCount - 1, Shard: "s1"}}},
		}
		if _, err := s.InitTopology(ctx, twoShards, declared, ""); err != nil {
			t.Fatal(err)
		}
		want, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: twoShards, Keyspaces: declared})
		if err != nil {
			t.Fatal(err)
		}
		if top, err := s.Topology(ctx); err != nil || !reflect.DeepEqual(top.Keyspaces(), want.Keyspaces()) {
			t.Fatalf("read back %+v, %v\nwant %+v", top.Keyspaces(), err, want.Keyspaces())
		}
		turned := slices.Clone(declared)
		turned[2].Splits = []shardrouter.Split{splits[1], splits[0]}
		slices.Reverse(turned)
		for i, same := range [][]shardrouter.Keyspace{declared, turned} {
			if epoch, err := s.InitTopology(ctx, twoShards, same, ""); err != nil || epoch != 1 {
				t.Errorf("the same, %d: epoch %d, %v", i, epoch, err)
			}
		}
		for name, k := range map[string]shardrouter.Keyspace{
			"nothing where slots are": {Name: "g"},
			"slots of its own":        {Name: "g", Strategy: shardrouter.StrategySlots},
			"another kind":            {Name: "c", Strategy: shardrouter.StrategyRange, Kind: shardrouter.TextRange, Splits: splits},
			"one split fewer":         {Name: "c", Strategy: shardrouter.StrategyRange, Kind: shardrouter.TimeRange, Splits: splits[:1]},
			"another strategy":        {Name: "b", Strategy: shardrouter.StrategyRendezvous},
		} {
			var mismatch *control.TopologyMismatchError
			if _, err := s.InitTopology(ctx, twoShards, []shardrouter.Keyspace{k}, ""); !errors.As(err, &mismatch) || mismatch.What != "keyspace "+k.Name {
				t.Errorf("InitTopology, %s: got %v, want a *TopologyMismatchError of keyspace %s", name, err, k.Name)
			}
			if err := s.MatchKeyspaces(ctx, []shardrouter.Keyspace{k}); !errors.Is(err, control.ErrMismatch) {
				t.Errorf("MatchKeyspaces, %s: got %v, want ErrMismatch", name, err)
			}
		}
		var unknown *shardrouter.UnknownShardError
		late := shardrouter.Keyspace{Name: "late", Strategy: shardrouter.StrategyRange, Splits: []shardrouter.Split{{Shard: "s9"}}}
		if _, err := s.InitTopology(ctx, twoShards, []shardrouter.Keyspace{late}, ""); !errors.As(err, &unknown) {
			t.Errorf("a range on a shard that is not there: got %v, want an *UnknownShardError", err)
		}
		if top, err := s.Topology(ctx); err != nil || top.Epoch() != 1 || !reflect.DeepEqual(top.Keyspaces(), want.Keyspaces()) {
			t.Errorf("a refusal changed something: %+v, %v", top, err)
		}
	})
}

func TestInitTopology_WhatAChangeMadeIsNoDifference(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s, ctx := b.store(t), t.Context()
		ring := shardrouter.Keyspace{Name: "player", Strategy: shardrouter.StrategyRing}
		log := shardrouter.Keyspace{Name: "log", Strategy: shardrouter.StrategyRange, Kind: shardrouter.TimeRange, Splits: []shardrouter.Split{{Shard: "s1"}}}
		if _, err := s.InitTopology(ctx, twoShards, []shardrouter.Keyspace{ring, log}, ""); err != nil {
			t.Fatal(err)
		}
		slots := shardrouter.Keyspace{Name: "player", Strategy: shardrouter.StrategySlots}
		for i, c := range []shardrouter.Change{
			shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "player", Strategy: shardrouter.StrategyModulo}},
			shardrouter.PutKeyspace{Keyspace: slots},
			shardrouter.SplitRange{Keyspace: "log", At: "2026-06-01", Shard: "s2"},
			shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "room", Strategy: shardrouter.StrategyRoom}},
			shardrouter.AddShard{Shard: "s3", Info: shardrouter.ShardInfo{State: shardrouter.Joining}},
		} {
			if _, _, err := s.ChangeTopology(ctx, shardrouter.Epoch(i+1), "ops", "test", anything, c); err != nil {
				t.Fatal(err)
			}
		}
		threeNow := []shardrouter.ShardID{"s1", "s2", "s3"}
		split := log
		split.Splits = append(slices.Clone(log.Splits), shardrouter.Split{From: "2026-06-01", Shard: "s2"})
		none := log
		none.Splits = nil
		for name, k := range map[string]shardrouter.Keyspace{
			"as declared before":     ring,
			"no strategy":            {Name: "player"},
			"the strategy of now":    slots,
			"the splits of before":   log,
			"the splits of now":      split,
			"no splits":              none,
			"made by a change":       {Name: "room", Strategy: shardrouter.StrategyRoom},
			"made by a change, bare": {Name: "room"},
		} {
			if epoch, err := s.InitTopology(ctx, threeNow, []shardrouter.Keyspace{k}, ""); err != nil || epoch != 6 {
				t.Errorf("%s: epoch %d, %v", name, epoch, err)
			}
		}
		other := split
		other.Splits = []shardrouter.Split{{Shard: "s1"}, {From: "2026-07-01", Shard: "s2"}}
		for name, k := range map[string]shardrouter.Keyspace{
			"a strategy between":       {Name: "player", Strategy: shardrouter.StrategyModulo},
			"a strategy of none":       {Name: "player", Strategy: shardrouter.StrategyKetama},
			"other splits":             other,
			"other than a change made": {Name: "room", Strategy: shardrouter.StrategyRing},
		} {
			if _, err := s.InitTopology(ctx, threeNow, []shardrouter.Keyspace{k}, ""); !errors.Is(err, control.ErrMismatch) {
				t.Errorf("%s: got %v, want ErrMismatch", name, err)
			}
		}
	})
}

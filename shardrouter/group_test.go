package shardrouter_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// A guild of 40 lies on a few shards; what is summed shard by shard is the whole, once.
func TestTopology_Group_A10_GuildOf40(t *testing.T) {
	t.Parallel()
	for shards := 2; shards <= 4; shards++ {
		topo := newTopology(t, shardrouter.TopologyConfig{Epoch: 1, Shards: names(shards), Keyspaces: []shardrouter.Keyspace{{Name: "player"}}})
		var members []shardrouter.Key
		gold := make(map[shardrouter.Key]int)
		want := 0
		for i := range 40 {
			key := shardrouter.Key(fmt.Sprintf("player-%d", i+1))
			members = append(members, key)
			gold[key] = (i + 1) * (i + 1)
			want += gold[key]
		}
		groups, err := topo.Group("player", "acme", members)
		if err != nil {
			t.Fatal(err)
		}
		touched := make(map[shardrouter.ShardID]bool)
		got, n := 0, 0
		for _, g := range groups {
			for _, key := range g.Keys {
				got += gold[key]
				n++
			}
		}
		for _, key := range members {
			owner, err := topo.Owner("player", "acme", key)
			if err != nil {
				t.Fatal(err)
			}
			touched[owner] = true
		}
		if got != want || n != 40 {
			t.Errorf("%d shards: the merged sum is %d over %d members, want %d over 40", shards, got, n, want)
		}
		if len(groups) != len(touched) || len(groups) < 2 || len(groups) > shards {
			t.Errorf("%d shards: %d groups, %d shards touched, want equal and 2 to %d", shards, len(groups), len(touched), shards)
		}
	}
}

func TestTopology_Group_NoKeys(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, config())
	for _, keys := range [][]shardrouter.Key{nil, {}} {
		if groups, err := topo.Group("player", "acme", keys); groups != nil || err != nil {
			t.Errorf("Group(%v) = %v, %v, want nothing", keys, groups, err)
		}
	}
}

func TestTopology_Group_Property(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, config())
	rapid.Check(t, func(t *rapid.T) {
		tenant := rapid.SampledFrom([]string{"acme", "beta", "whale", "minnow"}).Draw(t, "tenant")
		// Few values, so that keys come again.
		key := rapid.Map(rapid.IntRange(1, 30), func(i int) shardrouter.Key { return shardrouter.Key(fmt.Sprint(i)) })
		keys := rapid.SliceOfN(key, 0, 60).Draw(t, "keys")
		given := slices.Clone(keys)
		groups, err := topo.Group("player", tenant, keys)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(keys, given) {
			t.Fatal("Group changed its argument")
		}
		seen := make(map[shardrouter.Key]bool)
		for i, g := range groups {
			if i > 0 && groups[i-1].Shard >= g.Shard {
				t.Fatalf("groups are not sorted: %q before %q", groups[i-1].Shard, g.Shard)
			}
			if len(g.Keys) == 0 || len(g.Keys) != len(g.Index) || !slices.IsSorted(g.Index) {
				t.Fatalf("group %q has keys %v at %v", g.Shard, g.Keys, g.Index)
			}
			for j, key := range g.Keys {
				owner, err := topo.Owner("player", tenant, key)
				if err != nil || owner != g.Shard {
					t.Fatalf("key %s lies in group %q, its owner is %q, %v", key, g.Shard, owner, err)
				}
				if seen[key] || g.Index[j] != slices.Index(keys, key) {
					t.Fatalf("key %s at %d, want once and at %d", key, g.Index[j], slices.Index(keys, key))
				}
				seen[key] = true
			}
		}
		for _, key := range keys {
			if !seen[key] {
				t.Fatalf("key %s is in no group", key)
			}
		}
	})
}

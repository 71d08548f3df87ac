package shardrouter_test

import (
	"fmt"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// benchKeys are keys of one length, as in a game: so many that they do not all lie in the nearest cache.
func benchKeys() []shardrouter.Key {
	keys := make([]shardrouter.Key, 1<<12)
	for i := range keys {
		keys[i] = shardrouter.Key(fmt.Sprintf("player-%09d", i*7919))
	}
	return keys
}

// Claim: Owner allocates nothing, whatever the number of shards.
func BenchmarkRing_Owner(b *testing.B) {
	keys := benchKeys()
	for _, n := range []int{3, 8, 64, 1024} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			r := newRing(b, names(n), 0)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				_ = r.Owner("tenant-00017", keys[i&(len(keys)-1)])
				i++
			}
		})
	}
}

// Claim: the topology adds two map lookups to the ring, and no allocation.
func BenchmarkTopology_Owner(b *testing.B) {
	keys := benchKeys()
	for _, n := range []int{3, 8, 64, 1024} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			topo := newTopology(b, shardrouter.TopologyConfig{
				Epoch: 1, Shards: names(n), Dedicated: map[string][]shardrouter.ShardID{"whale": {"whale-s1"}},
				Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}},
			})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := topo.Owner("player", "tenant-00017", keys[i&(len(keys)-1)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// The floor: hashing alone.
func BenchmarkHash(b *testing.B) {
	keys := benchKeys()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		_ = shardrouter.Hash("tenant-00017", keys[i&(len(keys)-1)])
		i++
	}
}

func BenchmarkNewRing(b *testing.B) {
	for _, n := range []int{8, 1024} {
		b.Run(fmt.Sprintf("shards=%d", n), func(b *testing.B) {
			shards := names(n)
			b.ReportAllocs()
			for b.Loop() {
				newRing(b, shards, 0)
			}
		})
	}
}

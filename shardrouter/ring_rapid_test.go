package shardrouter_test

import (
	"slices"
	"sort"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// naiveRing is the ring as a textbook has it: a map from point to shard and a sorted list of points.
type naiveRing struct {
	owner  map[uint64]shardrouter.ShardID
	points []uint64
}

func newNaiveRing(shards []shardrouter.ShardID, virtualNodes int) *naiveRing {
	n := &naiveRing{owner: make(map[uint64]shardrouter.ShardID)}
	for _, s := range shards {
		for i := range virtualNodes {
			h := shardrouter.HashBare(string(s) + "#" + strconv.Itoa(i))
			other, taken := n.owner[h]
			if !taken {
				n.points = append(n.points, h)
			}
			if !taken || s < other {
				n.owner[h] = s
			}
		}
	}
	slices.Sort(n.points)
	return n
}

func (n *naiveRing) ownerOf(h uint64) shardrouter.ShardID {
	i := sort.Search(len(n.points), func(i int) bool { return n.points[i] >= h })
	return n.owner[n.points[i%len(n.points)]]
}

func drawShards(t *rapid.T) []shardrouter.ShardID {
	id := rapid.Map(rapid.StringMatching(`[A-Za-z0-9._-]{1,8}`), func(s string) shardrouter.ShardID { return shardrouter.ShardID(s) })
	return rapid.SliceOfNDistinct(id, 1, 12, rapid.ID).Draw(t, "shards")
}

// drawHashes draws hashes that are likely to be edges: points, their neighbours, and the ends of the circle.
func drawHashes(t *rapid.T, n *naiveRing) []uint64 {
	hashes := rapid.SliceOfN(rapid.Uint64(), 20, 20).Draw(t, "hashes")
	for range 20 {
		h := rapid.SampledFrom(n.points).Draw(t, "point")
		hashes = append(hashes, h-1, h, h+1)
	}
	return append(hashes, 0, 1, ^uint64(0), n.points[0], n.points[len(n.points)-1]+1)
}

func TestRing_Property_EqualsNaiveRing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shards := drawShards(t)
		virtualNodes := rapid.IntRange(64, 300).Draw(t, "virtualNodes")
		naive := newNaiveRing(shards, virtualNodes)
		r, err := shardrouter.NewRing(shards, virtualNodes)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range drawHashes(t, naive) {
			if got, want := r.OwnerOfHash(h), naive.ownerOf(h); got != want {
				t.Fatalf("OwnerOfHash(%x) = %q, want %q", h, got, want)
			}
		}
		for range 20 {
			tenant := rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,20}`).Draw(t, "tenant")
			key := rapid.StringN(1, 20, 60).Draw(t, "key")
			if got, want := r.Owner(tenant, shardrouter.Key(key)), naive.ownerOf(shardrouter.HashBare(tenant+"\x00"+key)); got != want {
				t.Fatalf("Owner(%q, %q) = %q, want %q", tenant, key, got, want)
			}
			if got, want := r.OwnerBare(key), naive.ownerOf(shardrouter.HashBare(key)); got != want {
				t.Fatalf("OwnerBare(%q) = %q, want %q", key, got, want)
			}
		}
	})
}

func TestRing_Property_AddedShardOnlyReceives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shards := drawShards(t)
		added := shardrouter.ShardID(rapid.StringMatching(`[A-Za-z0-9._-]{9,12}`).Draw(t, "added"))
		before, err := shardrouter.NewRing(shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		after, err := before.AddShard(added)
		if err != nil {
			t.Fatal(err)
		}
		back, err := after.RemoveShard(added)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range drawHashes(t, newNaiveRing(append(slices.Clone(shards), added), 128)) {
			from, to := before.OwnerOfHash(h), after.OwnerOfHash(h)
			if from != to && to != added {
				t.Fatalf("adding %q moved %x from %q to %q", added, h, from, to)
			}
			if got := back.OwnerOfHash(h); got != from {
				t.Fatalf("adding and removing %q moved %x from %q to %q", added, h, from, got)
			}
		}
	})
}

func TestRing_Property_RemovedShardOnlyGives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shards := append(drawShards(t), "other-shard")
		removed := rapid.SampledFrom(shards).Draw(t, "removed")
		before, err := shardrouter.NewRing(shards, 0)
		if err != nil {
			t.Fatal(err)
		}
		after, err := before.RemoveShard(removed)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range drawHashes(t, newNaiveRing(shards, 128)) {
			from, to := before.OwnerOfHash(h), after.OwnerOfHash(h)
			if to == removed || (from != to && from != removed) {
				t.Fatalf("removing %q moved %x from %q to %q", removed, h, from, to)
			}
		}
	})
}

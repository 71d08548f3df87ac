package bench

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/cespare/xxhash/v2"
	jump "github.com/dgryski/go-jump"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// The routers that [RoutingPeers] returns.
const (
	PeerPlainRing = "plain ring"         // [PlainRing]
	PeerRing      = "our ring"           // [shardrouter.Ring]
	PeerSlots     = "our slots"          // [shardrouter.Slots]
	PeerTopology  = "our topology, ring" // [shardrouter.Topology], without pins
	PeerHash      = "our hash alone"     // [shardrouter.HashBare]
	PeerJumpXX    = "go-jump, xxhash"    // github.com/dgryski/go-jump over github.com/cespare/xxhash/v2
	PeerJumpOurs  = "go-jump, our hash"  // the same over [shardrouter.HashBare]
	PeerXXHash    = "xxhash alone"       // github.com/cespare/xxhash/v2
	routingTenant = "tenant-00017"       // of every key
	routingPoints = 128                  // a shard, of both rings
	routingKeys   = 1 << 12              // looked up in one pass: more than the nearest cache holds
	routingFormat = routingTenant + "/player-%09d"
)

// RoutingPeer is one way to find the shard of a key.
type RoutingPeer struct {
	Name string

	// Owner returns the shard of the key; nil for a peer that only hashes.
	Owner func(key string) shardrouter.ShardID

	// Pass looks up all keys, and returns something that depends on each answer. Its loop is the peer's own, so that no call through a pointer is
	// measured beside the lookup.
	Pass func(keys []string) uint64
}

// RoutingKeys returns n keys of 29 bytes with long common prefixes, as one tenant's players have.
func RoutingKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(routingFormat, i*7919%1_000_000_000)
	}
	return keys
}

// ShardNames returns the ids "s1" to "s<n>".
func ShardNames(n int) []shardrouter.ShardID {
	ids := make([]shardrouter.ShardID, n)
	for i := range ids {
		ids[i] = shardrouter.ShardID("s" + strconv.Itoa(i+1))
	}
	return ids
}

// PlainRing is a consistent-hash ring as it is usually written: one sorted list of points, a map from a point to its shard, and [sort.Search]. It places
// every key where [shardrouter.Ring] does, since hash and points are the same.
type PlainRing struct {
	points []uint64
	shards []shardrouter.ShardID // shards[i] has points[i]
}

// NewPlainRing returns the ring with 128 points a shard.
func NewPlainRing(shards []shardrouter.ShardID) *PlainRing {
	type point struct {
		hash  uint64
		shard shardrouter.ShardID
	}
	var all []point
	for _, id := range shards {
		for i := range routingPoints {
			all = append(all, point{plainHash(string(id) + "#" + strconv.Itoa(i)), id})
		}
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].hash < all[j].hash || all[i].hash == all[j].hash && all[i].shard < all[j].shard
	})
	r := &PlainRing{}
	for _, p := range all {
		r.points, r.shards = append(r.points, p.hash), append(r.shards, p.shard)
	}
	return r
}

// Owner returns the shard of the first point at or after the key's hash.
func (r *PlainRing) Owner(key string) shardrouter.ShardID {
	h := plainHash(key)
	i := sort.Search(len(r.points), func(i int) bool { return r.points[i] >= h })
	if i == len(r.points) {
		i = 0
	}
	return r.shards[i]
}

// plainHash is FNV-1a 64, byte by byte, with the finalizer of splitmix64.
func plainHash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// RoutingPeers returns every router over that many shards. The plain ring comes first.
func RoutingPeers(shards int) ([]RoutingPeer, error) {
	ids := ShardNames(shards)
	ring, err := shardrouter.NewRing(ids, routingPoints)
	if err != nil {
		return nil, err
	}
	slots, err := shardrouter.NewSlots(ids, nil)
	if err != nil {
		return nil, err
	}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: ids, Keyspaces: []shardrouter.Keyspace{{Name: "player"}}})
	if err != nil {
		return nil, err
	}
	plain := NewPlainRing(ids)
	return []RoutingPeer{
		{Name: PeerPlainRing, Owner: plain.Owner, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += uint64(len(plain.Owner(k)))
			}
			return sum
		}},
		{Name: PeerRing, Owner: ring.OwnerBare, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += uint64(len(ring.OwnerBare(k)))
			}
			return sum
		}},
		{Name: PeerSlots, Owner: slots.OwnerBare, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += uint64(len(slots.OwnerBare(k)))
			}
			return sum
		}},
		{Name: PeerTopology, Owner: func(key string) shardrouter.ShardID { return topologyOwner(top, key) }, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += uint64(len(topologyOwner(top, k)))
			}
			return sum
		}},
		{Name: PeerHash, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += shardrouter.HashBare(k)
			}
			return sum
		}},
		{Name: PeerJumpXX, Owner: func(key string) shardrouter.ShardID { return ids[jump.Hash(xxhash.Sum64String(key), shards)] }, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += uint64(len(ids[jump.Hash(xxhash.Sum64String(k), shards)]))
			}
			return sum
		}},
		{Name: PeerJumpOurs, Owner: func(key string) shardrouter.ShardID { return ids[jump.Hash(shardrouter.HashBare(key), shards)] }, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += uint64(len(ids[jump.Hash(shardrouter.HashBare(k), shards)]))
			}
			return sum
		}},
		{Name: PeerXXHash, Pass: func(keys []string) (sum uint64) {
			for _, k := range keys {
				sum += xxhash.Sum64String(k)
			}
			return sum
		}},
	}, nil
}

// topologyOwner asks for tenant and key apart, as the library does: the same number of bytes is hashed, 0x00 in the place of the slash.
func topologyOwner(t *shardrouter.Topology, key string) shardrouter.ShardID {
	id, err := t.Owner("player", key[:len(routingTenant)], shardrouter.Key(key[len(routingTenant)+1:]))
	if err != nil {
		panic(err) // the keys are this file's own
	}
	return id
}

// RoutingResult holds the samples of one router over one number of shards.
type RoutingResult struct {
	Shards  int
	Peer    string
	Samples []Sample // one a round, for one lookup
}

// CPU returns the median CPU time of a lookup in ns.
func (r RoutingResult) CPU() float64 {
	return Result{Samples: r.Samples}.Median(func(s Sample) float64 { return s.CPU })
}

// Allocs returns the smallest number of allocations of a lookup: the runtime's own, in other goroutines, can only add to it.
func (r RoutingResult) Allocs() float64 {
	least := r.Samples[0].Allocs
	for _, s := range r.Samples {
		least = min(least, s.Allocs)
	}
	return least
}

// MeasureRouting measures every router over each number of shards in turns, as [Measure] does.
func MeasureRouting(shards []int, rounds int, length time.Duration) ([]RoutingResult, error) {
	keys := RoutingKeys(routingKeys)
	var all []RoutingResult
	for _, n := range shards {
		peers, err := RoutingPeers(n)
		if err != nil {
			return nil, err
		}
		results, passes := make([]RoutingResult, len(peers)), make([]int, len(peers))
		for i, p := range peers {
			results[i] = RoutingResult{Shards: n, Peer: p.Name}
			passes[i], err = calibrate(func() error { sink += p.Pass(keys); return nil }, length)
			if err != nil {
				return nil, err
			}
		}
		for round := range rounds {
			for i := range peers {
				at := (i + round) % len(peers)
				s, err := block(func() error { sink += peers[at].Pass(keys); return nil }, passes[at])
				if err != nil {
					return nil, err
				}
				s.Wall, s.CPU, s.Allocs, s.Bytes = s.Wall/routingKeys, s.CPU/routingKeys, s.Allocs/routingKeys, s.Bytes/routingKeys
				results[at].Samples = append(results[at].Samples, s)
			}
		}
		all = append(all, results...)
	}
	return all, nil
}

// sink keeps the compiler from leaving lookups out. Only one goroutine measures.
var sink uint64

// WriteRoutingTable prints the medians, and their ratios to those of the plain ring, of our hash alone and of go-jump with xxhash in the same run: above
// 1 the router is slower than that peer.
func WriteRoutingTable(w io.Writer, results []RoutingResult) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "shards\trouter\tns/op\tCPU ns/op\tto plain ring\tto our hash alone\tto go-jump, xxhash\tto go-jump, our hash\tallocs/op\t\n")
	of := func(shards int, peer string) float64 {
		i := slices.IndexFunc(results, func(r RoutingResult) bool { return r.Shards == shards && r.Peer == peer })
		return results[i].CPU()
	}
	for _, r := range results {
		wall := Result{Samples: r.Samples}.Median(func(s Sample) float64 { return s.Wall })
		fmt.Fprintf(t, "%d\t%s\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t\n", r.Shards, r.Peer, wall, r.CPU(),
			r.CPU()/of(r.Shards, PeerPlainRing), r.CPU()/of(r.Shards, PeerHash), r.CPU()/of(r.Shards, PeerJumpXX), r.CPU()/of(r.Shards, PeerJumpOurs), r.Allocs())
	}
	return t.Flush()
}

// liveHeap returns the bytes that are reachable.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // the first may only have finished what the one before began
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package shardrouter

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"strconv"
)

const (
	// DefaultVirtualNodes is the number of points per shard that 0 stands for. Shards then differ from the mean by 9 %
	// (one standard deviation, 1/sqrt(128)): the fullest of 8 has some 1.25 times the keys of the emptiest, of 64 some
	// 1.6 times. Four times the points halve the deviation.
	DefaultVirtualNodes = 128

	// MinVirtualNodes is the fewest points per shard. With one point each, two shards can share the keys 966 : 34.
	MinVirtualNodes = 64

	// MaxVirtualNodes is the most points per shard.
	MaxVirtualNodes = 1 << 16

	// maxPoints bounds the whole ring, so that a slip in a configuration is an error and not an exhausted memory.
	maxPoints = 1 << 24
)

var _ Strategy = (*Ring)(nil)

// Ring is a consistent-hash ring. Each shard has a fixed number of points on the circle of 64-bit hashes, at
// [HashBare]("<shard>#<i>") for i from 0, and a key belongs to the first point at or after its hash; past the last point
// the circle begins anew. Where points of two shards coincide, the shard with the lesser id has them, in every process
// and whatever order the shards were listed or added in.
//
// A Ring is immutable and safe for concurrent use. Adding or removing a shard makes a new one, and the old one goes on
// serving, so that both routes can be asked while data moves. An added shard takes keys only for itself, a removed one
// gives away only its own.
//
// A lookup hashes the key and reads one or two cache lines: the points lie sorted in a flat array, with an index on the
// top bits of the hash. It takes no lock and does not allocate.
//
// Source: Karger et al., "Consistent hashing and random trees", 1997; virtual nodes, Stoica et al., "Chord", 2001.
type Ring struct {
	shards       []ShardID // sorted, distinct
	virtualNodes int
	hashes       []uint64 // of the points, ascending; one beside another may be equal
	owners       []uint32 // owners[i] is the index in shards of the owner of hashes[i]
	index        []uint32 // index[b] is the first point whose top bits are at least b; one more entry than buckets
	shift        uint     // hash >> shift is the bucket
	point        pointFunc
}

// pointFunc places the i-th point of a shard. Tests replace it to force collisions.
type pointFunc func(shard ShardID, i int) uint64

// ringPoint is where the points are: '#' cannot occur in a shard id, so no two labels are equal (a concatenation such as
// "11db" could be point 11 of "db" or point 1 of "1db").
func ringPoint(shard ShardID, i int) uint64 {
	return HashBare(string(shard) + "#" + strconv.Itoa(i))
}

// NewRing returns the ring of these shards, with virtualNodes points for each; 0 means [DefaultVirtualNodes]. The order
// of shards does not matter, and the slice is not kept.
//
// It returns, all joined into one error: [ErrNoShards], [*InvalidShardError], [*DuplicateShardError], and a
// [*VirtualNodesError] for fewer than [MinVirtualNodes] points or more than [MaxVirtualNodes].
func NewRing(shards []ShardID, virtualNodes int) (*Ring, error) {
	return newRing(shards, virtualNodes, ringPoint)
}

func newRing(shards []ShardID, virtualNodes int, point pointFunc) (*Ring, error) {
	if virtualNodes == 0 {
		virtualNodes = DefaultVirtualNodes
	}
	sorted, errs := sortShards(shards)
	if virtualNodes < MinVirtualNodes || virtualNodes > MaxVirtualNodes || virtualNodes*len(sorted) > maxPoints {
		errs = append(errs, &VirtualNodesError{VirtualNodes: virtualNodes, Shards: len(sorted)})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &Ring{shards: sorted, virtualNodes: virtualNodes, point: point}
	r.place()
	return r, nil
}

// place fills the arrays.
func (r *Ring) place() {
	type pt struct {
		hash  uint64
		owner uint32
	}
	points := make([]pt, 0, len(r.shards)*r.virtualNodes)
	for s, id := range r.shards {
		for i := range r.virtualNodes {
			points = append(points, pt{r.point(id, i), uint32(s)})
		}
	}
	// Shards are sorted, so their indices order ties by id.
	slices.SortFunc(points, func(a, b pt) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.owner, b.owner))
	})
	r.hashes = make([]uint64, len(points))
	r.owners = make([]uint32, len(points))
	for i, p := range points {
		r.hashes[i], r.owners[i] = p.hash, p.owner
	}

	// One to two buckets per point: a lookup passes less than one point on average before it finds its own.
	bucketBits := uint(bits.Len(uint(len(points))))
	r.shift = 64 - bucketBits
	r.index = make([]uint32, 1<<bucketBits+1)
	next := 0
	for b := range 1 << bucketBits {
		for next < len(points) && r.hashes[next]>>r.shift < uint64(b) {
			next++
		}
		r.index[b] = uint32(next)
	}
	r.index[1<<bucketBits] = uint32(len(points))
}

// Name returns "ring".
func (r *Ring) Name() string { return StrategyRing }

// Shards returns the shards, sorted, as a copy.
func (r *Ring) Shards() []ShardID { return slices.Clone(r.shards) }

// VirtualNodes returns the number of points per shard.
func (r *Ring) VirtualNodes() int { return r.virtualNodes }

// Owner returns the shard that owns the key of the tenant.
func (r *Ring) Owner(tenant string, key Key) ShardID {
	return r.OwnerOfHash(Hash(tenant, key))
}

// OwnerBare returns the shard that owns the bare key, hashed without a tenant: for golden vectors. Data is placed by
// [Ring.Owner].
func (r *Ring) OwnerBare(key string) ShardID {
	return r.OwnerOfHash(HashBare(key))
}

// OwnerOfHash returns the shard that owns the hash: the one of the first point at or after it, or of the first point of
// all when the hash lies past the last.
func (r *Ring) OwnerOfHash(h uint64) ShardID {
	b := h >> r.shift
	i, end := r.index[b], r.index[b+1]
	for i < end && r.hashes[i] < h {
		i++
		// A bucket this full comes only of points that were placed badly; keep the bound of a binary search.
		if end-i > 16 {
			n, _ := slices.BinarySearch(r.hashes[i:end], h)
			i += uint32(n)
			break
		}
	}
	if int(i) == len(r.hashes) {
		i = 0
	}
	return r.shards[r.owners[i]]
}

// AddShard returns a new ring with one more shard; r goes on serving. Keys move only to the new shard.
//
// An id that the ring has already is a [*DuplicateShardError]; an ill-formed one an [*InvalidShardError].
func (r *Ring) AddShard(id ShardID) (*Ring, error) {
	return newRing(append(slices.Clone(r.shards), id), r.virtualNodes, r.point)
}

// RemoveShard returns a new ring without the shard; r goes on serving. Keys move only from the removed shard.
//
// An id that the ring lacks is an [*UnknownShardError]; removing the last shard is [ErrNoShards].
func (r *Ring) RemoveShard(id ShardID) (*Ring, error) {
	i, found := slices.BinarySearch(r.shards, id)
	if !found {
		return nil, &UnknownShardError{Shard: id}
	}
	return newRing(slices.Delete(slices.Clone(r.shards), i, i+1), r.virtualNodes, r.point)
}

package shardrouter

import (
	"errors"
	"maps"
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
	weights      map[ShardID]int // never changed; may be nil
	point        pointFunc
	hashTable
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
	return newRing(shards, virtualNodes, nil, ringPoint)
}

// NewWeightedRing is [NewRing] with weights: a shard of weight w has w times virtualNodes points. A shard that weights
// lacks, or has with 0, has weight 1.
//
// Beside the errors of NewRing it returns a [*WeightError] for a weight out of range. The map is not kept.
func NewWeightedRing(shards []ShardID, virtualNodes int, weights map[ShardID]int) (*Ring, error) {
	return newRing(shards, virtualNodes, maps.Clone(weights), ringPoint)
}

func newRing(shards []ShardID, virtualNodes int, weights map[ShardID]int, point pointFunc) (*Ring, error) {
	if virtualNodes == 0 {
		virtualNodes = DefaultVirtualNodes
	}
	sorted, errs := sortShards(shards)
	errs = append(errs, checkWeights(sorted, weights)...)
	total := 0
	for _, id := range sorted {
		total += weightOf(weights, id)
	}
	if virtualNodes < MinVirtualNodes || virtualNodes > MaxVirtualNodes || virtualNodes*total > maxPoints {
		errs = append(errs, &VirtualNodesError{VirtualNodes: virtualNodes, Shards: len(sorted)})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &Ring{shards: sorted, virtualNodes: virtualNodes, weights: weights, point: point}
	r.place()
	return r, nil
}

// place fills the table.
func (r *Ring) place() {
	points := make([]point, 0, len(r.shards)*r.virtualNodes)
	for s, id := range r.shards {
		for i := range r.virtualNodes * weightOf(r.weights, id) {
			points = append(points, point{r.point(id, i), uint32(s)})
		}
	}
	r.hashTable = newHashTable(points)
}

// weightOf returns the weight of the shard, 1 if none is given.
func weightOf(weights map[ShardID]int, id ShardID) int { return max(weights[id], 1) }

// checkWeights returns a [*WeightError] for each weight out of range, by id.
func checkWeights(shards []ShardID, weights map[ShardID]int) (errs []error) {
	for _, id := range shards {
		if w := weights[id]; w < 0 || w > MaxWeight {
			errs = append(errs, &WeightError{Shard: id, Weight: w})
		}
	}
	return errs
}

// Name returns "ring".
func (r *Ring) Name() string { return StrategyRing }

// Shards returns the shards, sorted, as a copy.
func (r *Ring) Shards() []ShardID { return slices.Clone(r.shards) }

// VirtualNodes returns the number of points of a shard of weight 1.
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
	return r.shards[r.ownerIndex(h)]
}

// Ranges returns which shard owns which hashes, in ascending order; they cover all hashes once.
func (r *Ring) Ranges() []HashRange { return r.ranges(r.shards) }

// AddShard returns a new ring with one more shard; r goes on serving. Keys move only to the new shard.
//
// An id that the ring has already is a [*DuplicateShardError]; an ill-formed one an [*InvalidShardError].
func (r *Ring) AddShard(id ShardID) (*Ring, error) {
	return newRing(append(slices.Clone(r.shards), id), r.virtualNodes, r.weights, r.point)
}

// RemoveShard returns a new ring without the shard; r goes on serving. Keys move only from the removed shard.
//
// An id that the ring lacks is an [*UnknownShardError]; removing the last shard is [ErrNoShards].
func (r *Ring) RemoveShard(id ShardID) (*Ring, error) {
	i, found := slices.BinarySearch(r.shards, id)
	if !found {
		return nil, &UnknownShardError{Shard: id}
	}
	return newRing(slices.Delete(slices.Clone(r.shards), i, i+1), r.virtualNodes, r.weights, r.point)
}

package shardrouter

import (
	"cmp"
	"math/bits"
	"slices"
)

// HashRange is a run of hashes that one shard owns.
type HashRange struct {
	First uint64  // included
	Last  uint64  // included
	Shard ShardID // the owner
}

// RangeMove is a run of hashes that changes its owner.
type RangeMove struct {
	First uint64 // included
	Last  uint64 // included
	From  ShardID
	To    ShardID
}

// point is the end of a run of hashes, with the index of its shard.
type point struct {
	hash  uint64
	owner uint32
}

// hashTable is a circle of 64-bit hashes cut into runs, for every strategy that is one: ring, ketama and slots. A hash
// belongs to the first point at or after it, and past the last point to the first.
type hashTable struct {
	hashes []uint64 // of the points, ascending; one beside another may be equal, and then the first has the hash
	owners []uint32 // owners[i] is the index, in the shards, of the owner of hashes[i]
	index  []uint32 // index[b] is the first point whose top bits are at least b; one more entry than buckets
	shift  uint     // hash >> shift is the bucket
}

// newHashTable sorts the points. Shards are sorted, so their indices order ties by id.
func newHashTable(points []point) hashTable {
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.owner, b.owner))
	})
	t := hashTable{hashes: make([]uint64, len(points)), owners: make([]uint32, len(points))}
	for i, p := range points {
		t.hashes[i], t.owners[i] = p.hash, p.owner
	}

	// One to two buckets per point: a lookup passes less than one point on average before it finds its own.
	// Of a small table, where that costs little, twice as many: fewer buckets then hold a point to compare with.
	bucketBits := uint(bits.Len(uint(len(points))))
	if len(points) < 1<<13 {
		bucketBits++
	}
	t.shift = 64 - bucketBits
	t.index = make([]uint32, 1<<bucketBits+1)
	next := 0
	for b := range 1 << bucketBits {
		for next < len(points) && t.hashes[next]>>t.shift < uint64(b) {
			next++
		}
		t.index[b] = uint32(next)
	}
	t.index[1<<bucketBits] = uint32(len(points))
	return t
}

// ownerIndex returns the index of the shard that owns the hash.
func (t *hashTable) ownerIndex(h uint64) uint32 {
	b := h >> t.shift
	i, end := t.index[b], t.index[b+1]
	for i < end && t.hashes[i] < h {
		i++
		// A bucket this full comes only of points that were placed badly; keep the bound of a binary search.
		if end-i > 16 {
			n, _ := slices.BinarySearch(t.hashes[i:end], h)
			i += uint32(n)
			break
		}
	}
	if int(i) == len(t.hashes) {
		i = 0
	}
	return t.owners[i]
}

// ranges returns the runs in ascending order, neighbours of one shard joined. They cover all hashes once.
func (t *hashTable) ranges(shards []ShardID) []HashRange {
	var out []HashRange
	add := func(first, last uint64, owner uint32) {
		if n := len(out); n > 0 && out[n-1].Shard == shards[owner] {
			out[n-1].Last = last
			return
		}
		out = append(out, HashRange{First: first, Last: last, Shard: shards[owner]})
	}
	first := uint64(0)
	for i, h := range t.hashes {
		if i > 0 && h == t.hashes[i-1] {
			continue
		}
		add(first, h, t.owners[i])
		if first = h + 1; first == 0 {
			return out
		}
	}
	add(first, ^uint64(0), t.owners[0])
	return out
}

// Diff returns the runs of hashes whose owner differs, in ascending order, neighbours with the same shards joined; nil if
// there are none. Both lists cover all hashes once, in ascending order, as Ranges of [Ring], [Ketama] and [Slots] do. A run
// of one strategy compares with a run of another only if both place keys by the same hash: [Ring] and [Slots] do.
func Diff(old, next []HashRange) []RangeMove {
	var moves []RangeMove
	for i, j := 0, 0; i < len(old) && j < len(next); {
		first, last := max(old[i].First, next[j].First), min(old[i].Last, next[j].Last)
		if from, to := old[i].Shard, next[j].Shard; from != to {
			if n := len(moves); n > 0 && moves[n-1].Last+1 == first && moves[n-1].From == from && moves[n-1].To == to {
				moves[n-1].Last = last
			} else {
				moves = append(moves, RangeMove{First: first, Last: last, From: from, To: to})
			}
		}
		endOld, endNext := old[i].Last == last, next[j].Last == last
		if endOld {
			i++
		}
		if endNext {
			j++
		}
	}
	return moves
}

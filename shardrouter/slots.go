package shardrouter

import (
	"errors"
	"maps"
	"slices"
)

const (
	slotBits  = 14
	slotShift = 64 - slotBits

	// SlotCount is the number of slots: 2^14.
	SlotCount = 1 << slotBits
)

var _ Strategy = (*Slots)(nil)

// Slots cuts the circle of hashes into 2^14 equal slots, slot = [Hash] >> 50, and gives each to a shard. Which shard has
// which is a decision that is kept, not a function of the shards: [Slots.Assignment] is persisted.
//
// A Slots is immutable and safe for concurrent use. A lookup takes no lock and does not allocate.
type Slots struct {
	shards  []ShardID // sorted, distinct
	weights map[ShardID]int
	owners  []uint32 // of each slot, the index in shards
	hashTable
}

// NewSlots returns a new table over these shards: slot i is of the shard i*n>>14 of the n shards, sorted by id, each of
// them counted as often as its weight says. A shard that weights lacks, or has with 0, has weight 1.
//
// It returns, all joined into one error: [ErrNoShards], [*InvalidShardError], [*DuplicateShardError], [*WeightError], and
// a [*SlotsError] for more shards, by weight, than slots.
func NewSlots(shards []ShardID, weights map[ShardID]int) (*Slots, error) {
	sorted, errs := sortShards(shards)
	errs = append(errs, checkWeights(sorted, weights)...)
	var parts []uint32
	for s, id := range sorted {
		for range min(weightOf(weights, id), MaxWeight) {
			parts = append(parts, uint32(s))
		}
	}
	if len(parts) > SlotCount {
		errs = append(errs, &SlotsError{Reason: "more shards, by weight, than slots"})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	owners := make([]uint32, SlotCount)
	for i := range owners {
		owners[i] = parts[i*len(parts)>>slotBits]
	}
	return newSlots(sorted, weights, owners), nil
}

// SlotsOf returns the table of an assignment, whose Tenant fields it does not read. Shards without a slot are fine.
//
// Beside the errors of [NewSlots] it returns a [*SlotsError] for slots that are given twice or not at all, and an
// [*UnknownShardError] for a shard that is not listed.
func SlotsOf(shards []ShardID, weights map[ShardID]int, assignment []SlotRange) (*Slots, error) {
	sorted, errs := sortShards(shards)
	errs = append(errs, checkWeights(sorted, weights)...)
	ranges := slices.Clone(assignment)
	slices.SortFunc(ranges, func(a, b SlotRange) int { return int(a.First) - int(b.First) })
	owners := make([]uint32, SlotCount)
	next := 0
	for _, r := range ranges {
		if int(r.First) != next || r.Last < r.First || r.Last >= SlotCount {
			errs = append(errs, &SlotsError{First: r.First, Last: r.Last, Reason: "slots are to be given once each, first to last"})
			break
		}
		s, known := slices.BinarySearch(sorted, r.Shard)
		if !known {
			errs = append(errs, &UnknownShardError{Shard: r.Shard})
		}
		for ; next <= int(r.Last); next++ {
			owners[next] = uint32(s)
		}
	}
	if len(errs) == 0 && next != SlotCount {
		errs = append(errs, &SlotsError{First: uint16(next), Last: SlotCount - 1, Reason: "slots without a shard"})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return newSlots(sorted, weights, owners), nil
}

// newSlots builds the table, where a run of slots of one shard is one point, at its last hash.
func newSlots(sorted []ShardID, weights map[ShardID]int, owners []uint32) *Slots {
	var points []point
	for i, o := range owners {
		if i+1 == SlotCount || owners[i+1] != o {
			points = append(points, point{uint64(i+1)<<slotShift - 1, o})
		}
	}
	return &Slots{shards: sorted, weights: maps.Clone(weights), owners: owners, hashTable: newHashTable(points)}
}

// Name returns "slots".
func (s *Slots) Name() string { return StrategySlots }

// Shards returns the shards, sorted, as a copy.
func (s *Slots) Shards() []ShardID { return slices.Clone(s.shards) }

// Owner returns the shard that owns the key of the tenant.
func (s *Slots) Owner(tenant string, key Key) ShardID { return s.OwnerOfHash(Hash(tenant, key)) }

// OwnerBare returns the shard that owns the bare key, for golden vectors.
func (s *Slots) OwnerBare(key string) ShardID { return s.OwnerOfHash(HashBare(key)) }

// OwnerOfHash returns the shard that owns the hash.
func (s *Slots) OwnerOfHash(h uint64) ShardID { return s.shards[s.slotOwner(h)] }

// slotOwner returns the index of the shard that owns the hash. It reads the slot itself: the search for a run has branches
// that no processor foresees, and costs nearly as much as hashing the key.
func (s *Slots) slotOwner(h uint64) uint32 { return s.owners[h>>slotShift] }

// Ranges returns which shard owns which hashes, in ascending order; they cover all hashes once.
func (s *Slots) Ranges() []HashRange { return s.ranges(s.shards) }

// Assignment returns which shard has which slots, in ascending order, neighbours of one shard joined.
func (s *Slots) Assignment() []SlotRange {
	var out []SlotRange
	for i, o := range s.owners {
		if i == 0 || s.owners[i-1] != o {
			out = append(out, SlotRange{First: uint16(i), Shard: s.shards[o]})
		}
		out[len(out)-1].Last = uint16(i)
	}
	return out
}

// AddShard returns a new table with one more shard of that weight, 0 for 1; s goes on serving. The new shard takes the
// highest-numbered slots of the fullest shards, of equals from the one with the lesser id, until it is as full as they
// are, to one slot. No slot moves between others.
//
// The errors are those of [NewSlots].
func (s *Slots) AddShard(id ShardID, weight int) (*Slots, error) {
	weights := maps.Clone(s.weights)
	if weights == nil {
		weights = make(map[ShardID]int)
	}
	weights[id] = weight
	sorted, errs := sortShards(append(slices.Clone(s.shards), id))
	errs = append(errs, checkWeights(sorted, weights)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	added, _ := slices.BinarySearch(sorted, id)
	owners := slices.Clone(s.owners)
	held := make([][]int, len(sorted)) // slots, ascending
	for i, o := range owners {
		if o >= uint32(added) {
			owners[i]++
		}
		held[owners[i]] = append(held[owners[i]], i)
	}
	weight = weightOf(weights, id)
	for {
		full := 0
		for c := range sorted {
			if len(held[c])*weightOf(weights, sorted[full]) > len(held[full])*weightOf(weights, sorted[c]) {
				full = c
			}
		}
		n := len(held[full])
		if full == added || n*weight <= (len(held[added])+1)*weightOf(weights, sorted[full]) {
			return newSlots(sorted, weights, owners), nil
		}
		slot := held[full][n-1]
		held[full] = held[full][:n-1]
		held[added] = append(held[added], slot)
		owners[slot] = uint32(added)
	}
}

// RemoveShard returns a new table without the shard; s goes on serving. Its slots go, from the lowest, each to the
// emptiest of the others, of equals to the one with the lesser id, but to none of keep: those that take nothing new. No
// slot moves between others.
//
// An id that the table lacks is an [*UnknownShardError]; removing the last shard that takes slots is [ErrNoShards].
func (s *Slots) RemoveShard(id ShardID, keep ...ShardID) (*Slots, error) {
	gone, found := slices.BinarySearch(s.shards, id)
	if !found {
		return nil, &UnknownShardError{Shard: id}
	}
	sorted := slices.Delete(slices.Clone(s.shards), gone, gone+1)
	var takers []int
	for i, other := range sorted {
		if !slices.Contains(keep, other) {
			takers = append(takers, i)
		}
	}
	if len(takers) == 0 {
		return nil, ErrNoShards
	}
	owners := slices.Clone(s.owners)
	var free []int
	held := make([]int, len(sorted))
	for i, o := range owners {
		switch {
		case o == uint32(gone):
			free = append(free, i)
			continue
		case o > uint32(gone):
			owners[i]--
		}
		held[owners[i]]++
	}
	for _, slot := range free {
		low := takers[0]
		for _, c := range takers {
			if held[c]*weightOf(s.weights, sorted[low]) < held[low]*weightOf(s.weights, sorted[c]) {
				low = c
			}
		}
		owners[slot] = uint32(low)
		held[low]++
	}
	weights := maps.Clone(s.weights)
	delete(weights, id)
	return newSlots(sorted, weights, owners), nil
}

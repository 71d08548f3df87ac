package shardrouter

import (
	"errors"
	"maps"
	"slices"
	"strconv"
)

var _ Strategy = (*Rendezvous)(nil)

// Rendezvous places a key on the shard with the highest score: FNV-1a over tenant, 0x00, key, 0x00 and shard, then the
// finalizer of [Hash]. Of equal scores the shard with the lesser id wins. A shard of weight w has w scores, of the labels
// "<shard>", "<shard>#1", "<shard>#2" and so on, and its best counts.
//
// It is even at any number of shards, and a lookup costs in proportion to it: up to some 16 shards.
//
// A Rendezvous is immutable and safe for concurrent use; it does not allocate.
//
// Source: Thaler and Ravishankar, "A name-based mapping scheme for rendezvous", 1996. Without the finalizer, eight shards
// s1 to s8 were given 12.5, 6 times 6.25 and 50 % of the keys.
type Rendezvous struct {
	shards  []ShardID // sorted, distinct
	labels  []string
	ofLabel []uint32 // the index, in shards, of the shard of a label; ascending
}

// NewRendezvous returns the rendezvous of these shards, in any order. A shard that weights lacks, or has with 0, has
// weight 1.
//
// It returns, all joined into one error: [ErrNoShards], [*InvalidShardError], [*DuplicateShardError] and [*WeightError].
func NewRendezvous(shards []ShardID, weights map[ShardID]int) (*Rendezvous, error) {
	sorted, errs := sortShards(shards)
	errs = append(errs, checkWeights(sorted, maps.Clone(weights))...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &Rendezvous{shards: sorted}
	for s, id := range sorted {
		for i := range weightOf(weights, id) {
			label := string(id)
			if i > 0 {
				label += "#" + strconv.Itoa(i)
			}
			r.labels, r.ofLabel = append(r.labels, label), append(r.ofLabel, uint32(s))
		}
	}
	return r, nil
}

// Name returns "rendezvous".
func (r *Rendezvous) Name() string { return StrategyRendezvous }

// Shards returns the shards, sorted, as a copy.
func (r *Rendezvous) Shards() []ShardID { return slices.Clone(r.shards) }

// Owner returns the shard that owns the key of the tenant.
func (r *Rendezvous) Owner(tenant string, key Key) ShardID {
	return r.owner(fnv1a(fnv1a(fnvOffset, tenant)*fnvPrime, string(key)))
}

// OwnerBare returns the shard that owns the bare key, for golden vectors: the score is over key, 0x00 and shard.
func (r *Rendezvous) OwnerBare(key string) ShardID { return r.owner(fnv1a(fnvOffset, key)) }

// owner goes on from FNV-1a over what comes before the shard.
func (r *Rendezvous) owner(h uint64) ShardID {
	h *= fnvPrime // the 0x00 byte
	best, at := uint64(0), uint32(0)
	for i, label := range r.labels {
		// Labels come in the order of the shards, so the first of equals is the one with the lesser id.
		if score := mix(fnv1a(h, label)); score > best {
			best, at = score, r.ofLabel[i]
		}
	}
	return r.shards[at]
}

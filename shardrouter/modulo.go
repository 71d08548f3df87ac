package shardrouter

import (
	"errors"
	"slices"
)

var _ Strategy = (*Modulo)(nil)

// Modulo places a key on the shard whose index among the shards, sorted by id, is the hash modulo their number. Signs
// play no part: the key's text is hashed first. It is even and cheap, and a change of the number moves nearly every key.
//
// A Modulo is immutable and safe for concurrent use.
type Modulo struct {
	shards []ShardID // sorted, distinct
}

// NewModulo returns the modulo of these shards, in any order.
//
// It returns, all joined into one error: [ErrNoShards], [*InvalidShardError] and [*DuplicateShardError].
func NewModulo(shards []ShardID) (*Modulo, error) {
	sorted, errs := sortShards(shards)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Modulo{shards: sorted}, nil
}

// Name returns "modulo".
func (m *Modulo) Name() string { return StrategyModulo }

// Shards returns the shards, sorted, as a copy.
func (m *Modulo) Shards() []ShardID { return slices.Clone(m.shards) }

// Owner returns the shard that owns the key of the tenant.
func (m *Modulo) Owner(tenant string, key Key) ShardID { return m.OwnerOfHash(Hash(tenant, key)) }

// OwnerBare returns the shard that owns the bare key, for golden vectors.
func (m *Modulo) OwnerBare(key string) ShardID { return m.OwnerOfHash(HashBare(key)) }

// OwnerOfHash returns the shard that owns the hash.
func (m *Modulo) OwnerOfHash(h uint64) ShardID { return m.shards[h%uint64(len(m.shards))] }

package shardrouter

import (
	"crypto/md5" //nolint:gosec // libketama's points and keys are md5, which protects nothing here
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
)

const (
	ketamaDigests = 40 // of a shard; each gives four points

	// KetamaPoints is the number of points of a shard.
	KetamaPoints = 4 * ketamaDigests
)

var _ Strategy = (*Ketama)(nil)

// Ketama is the continuum of libketama: a circle of 32-bit hashes where each shard has 160 points, the four
// little-endian words of the md5 of "<shard>-<i>" for i from 0 to 39. A key hashes to the first word of its md5, and
// belongs to the first point at or after it. Where points of two shards coincide, the shard with the lesser id has them.
// The key is tenant, one 0x00 byte and key. Weights are ignored.
//
// A Ketama is immutable and safe for concurrent use. A lookup takes no lock, and allocates for keys over 400 bytes only.
//
// Source: libketama, Richard Jones, last.fm, 2007.
type Ketama struct {
	shards []ShardID // sorted, distinct
	hashTable
}

// NewKetama returns the continuum of these shards, in any order.
//
// It returns, all joined into one error: [ErrNoShards], [*InvalidShardError] and [*DuplicateShardError].
func NewKetama(shards []ShardID) (*Ketama, error) {
	sorted, errs := sortShards(shards)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	points := make([]point, 0, KetamaPoints*len(sorted))
	for s, id := range sorted {
		for i := range ketamaDigests {
			digest := md5.Sum([]byte(string(id) + "-" + strconv.Itoa(i))) //nolint:gosec // see the import
			for w := 0; w < len(digest); w += 4 {
				points = append(points, point{ketamaHash(digest[w:]), uint32(s)})
			}
		}
	}
	return &Ketama{shards: sorted, hashTable: newHashTable(points)}, nil
}

// ketamaHash puts the 32-bit hash into the upper half, where the table expects it: the order stays.
func ketamaHash(word []byte) uint64 { return uint64(binary.LittleEndian.Uint32(word)) << 32 }

// Name returns "ketama".
func (k *Ketama) Name() string { return StrategyKetama }

// Shards returns the shards, sorted, as a copy.
func (k *Ketama) Shards() []ShardID { return slices.Clone(k.shards) }

// Owner returns the shard that owns the key of the tenant.
func (k *Ketama) Owner(tenant string, key Key) ShardID {
	var buf [512]byte
	return k.owner(append(append(append(buf[:0], tenant...), 0), key...))
}

// OwnerBare returns the shard that owns the bare key, for golden vectors: as libketama does.
func (k *Ketama) OwnerBare(key string) ShardID {
	var buf [512]byte
	return k.owner(append(buf[:0], key...))
}

func (k *Ketama) owner(key []byte) ShardID {
	digest := md5.Sum(key) //nolint:gosec // see the import
	return k.shards[k.ownerIndex(ketamaHash(digest[:]))]
}

// Ranges returns which shard owns which hashes, in ascending order; they cover all hashes once. A hash here is the 32-bit
// hash in the upper half.
func (k *Ketama) Ranges() []HashRange { return k.ranges(k.shards) }

package shardrouter

import "slices"

// MaxShardIDLen is the largest length of a [ShardID] in bytes.
const MaxShardIDLen = 64

// ShardID names a shard. Its shape is [A-Za-z0-9._-]{1,64}: usable as a file name, a metric label and, since it holds no
// '#', in the label of a ring point. A shard keeps its id for life: renaming one moves its keys.
type ShardID string

// ParseShardID returns s as a [ShardID], bytes in as bytes out. Any other shape is an [*InvalidShardError], which is
// [ErrInvalidShard].
func ParseShardID(s string) (ShardID, error) {
	if err := ShardID(s).Validate(); err != nil {
		return "", err
	}
	return ShardID(s), nil
}

// Validate returns nil when id has the shape of a [ShardID], else an [*InvalidShardError].
func (id ShardID) Validate() error {
	if len(id) == 0 || len(id) > MaxShardIDLen {
		return &InvalidShardError{Value: clip(string(id))}
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return &InvalidShardError{Value: clip(string(id))}
		}
	}
	return nil
}

// String returns the id as it is.
func (id ShardID) String() string { return string(id) }

// sortShards returns a sorted copy of shards and every fault in the list: none at all, an ill-formed id, one listed
// twice.
func sortShards(shards []ShardID) ([]ShardID, []error) {
	if len(shards) == 0 {
		return nil, []error{ErrNoShards}
	}
	var errs []error
	sorted := slices.Sorted(slices.Values(shards))
	for i, id := range sorted {
		if i > 0 && id == sorted[i-1] {
			// Reported once, however often it is listed.
			if i == 1 || id != sorted[i-2] {
				errs = append(errs, &DuplicateShardError{Shard: id})
			}
			continue
		}
		if err := id.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	return sorted, errs
}

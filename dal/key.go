package dal

import "github.com/tenantdal/tenantdal/shardrouter"

// Integer is any Go integer.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// KeyRef names a shard key in a keyspace. A bad key is reported by the call that uses it.
type KeyRef struct {
	Keyspace string
	key      shardrouter.Key
	err      error
}

// Key returns the reference of a shard key: text, compared byte by byte, or an integer, which is its decimal text. 7 and "7" are one key, "007" is
// another.
//
// Using an empty key fails with [shardrouter.ErrEmptyKey], 0 and "0" with [shardrouter.ErrZeroKey].
func Key[V ~string | Integer](keyspace string, v V) KeyRef {
	k, err := shardrouter.KeyOf(v)
	return KeyRef{Keyspace: keyspace, key: k, err: err}
}

// Text returns the key's canonical text.
func (k KeyRef) Text() string { return string(k.key) }

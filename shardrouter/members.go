package shardrouter

import (
	"slices"
	"strconv"
	"strings"
)

// Members are the instances of a service, which share the keys among them by the same ring as [Ring]: all operations of
// one guild go to one instance, and an instance that comes or goes takes or gives its own keys alone.
//
// Members is immutable and safe for concurrent use; every instance that was given the same members answers alike.
type Members struct {
	names []string // sorted, distinct
	hashTable
}

// NewMembers returns the ring over these instances, in any order: names or addresses of 1 to 255 bytes without '#' and
// NUL, with 128 points each. The slice is not kept.
//
// It returns [ErrNoMembers] for none, and a [*MemberError] for one that is ill-formed or listed twice.
func NewMembers(members []string) (*Members, error) {
	if len(members) == 0 {
		return nil, ErrNoMembers
	}
	names := slices.Sorted(slices.Values(members))
	var points []point
	for m, name := range names {
		if name == "" || len(name) > 255 || strings.ContainsAny(name, "#\x00") {
			return nil, &MemberError{Member: clip(name), Reason: "want 1 to 255 bytes without '#' and NUL"}
		}
		if m > 0 && name == names[m-1] {
			return nil, &MemberError{Member: clip(name), Reason: "listed twice"}
		}
		for i := range DefaultVirtualNodes {
			points = append(points, point{HashBare(name + "#" + strconv.Itoa(i)), uint32(m)})
		}
	}
	return &Members{names: names, hashTable: newHashTable(points)}, nil
}

// Place returns the instance that handles the key of the tenant in the keyspace. It does not allocate.
//
// It returns [ErrInvalidTenant], an [*InvalidKeyspaceError], [ErrEmptyKey] or [ErrZeroKey].
func (m *Members) Place(keyspace, tenant string, key Key) (string, error) {
	if !validKeyspace(keyspace) {
		return "", &InvalidKeyspaceError{Name: clip(keyspace)}
	}
	if !validTenant(tenant) {
		return "", ErrInvalidTenant
	}
	if err := key.Validate(); err != nil {
		return "", err
	}
	h := fnv1a(fnv1a(fnvOffset, tenant)*fnvPrime, keyspace) * fnvPrime
	return m.names[m.ownerIndex(mix(fnv1a(h, string(key))))], nil
}

// Place returns the instance among members that handles the key: [NewMembers] and [Members.Place] in one, for one key.
// Keep a [Members] for many.
func Place(keyspace, tenant string, key Key, members []string) (string, error) {
	m, err := NewMembers(members)
	if err != nil {
		return "", err
	}
	return m.Place(keyspace, tenant, key)
}

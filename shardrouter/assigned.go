package shardrouter

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Pin places one key by hand, above the hash: for a migration, a canary, merged servers. It stays when shards come and
// go.
type Pin struct {
	Tenant   string  `json:"tenant"`
	Keyspace string  `json:"keyspace"` // of any strategy but "room"
	Key      Key     `json:"key"`
	Shard    ShardID `json:"shard"` // one that serves the tenant
}

// Room says where a room of a keyspace of the strategy "room" is. It is assigned when the room is made and stays; a room
// that was never assigned has no shard.
type Room struct {
	Tenant   string  `json:"tenant"`
	Keyspace string  `json:"keyspace"` // of the strategy "room"
	Key      Key     `json:"key"`
	Shard    ShardID `json:"shard"` // one that serves the tenant
}

// assignment is a pin or a room, with the keyspace by its index.
type assignment struct {
	tenant   string
	key      Key
	keyspace uint32
	shard    ShardID
}

func (a *assignment) is(keyspace int, tenant string, key Key) bool {
	return a.key == key && a.keyspace == uint32(keyspace) && a.tenant == tenant
}

// assignments finds a pin or room by the hash of tenant and key, which the caller has anyway: open addressing with linear
// probes, at most half full. The zero value is empty.
type assignments struct {
	entries []assignment // sorted by keyspace, tenant, key
	slots   []uint32     // 1 + index in entries, 0 for none; a power of two of them
	shift   uint
}

// newAssignments builds the table from distinct entries, which it keeps and sorts.
func newAssignments(entries []assignment) assignments {
	slices.SortFunc(entries, compareAssignments)
	a := assignments{entries: entries}
	if len(entries) == 0 {
		return a
	}
	slotBits := uint(bits.Len(uint(2*len(entries) - 1)))
	a.shift = 64 - slotBits
	a.slots = make([]uint32, 1<<slotBits)
	for i := range entries {
		s := Hash(entries[i].tenant, entries[i].key) >> a.shift
		for a.slots[s] != 0 {
			s = (s + 1) & uint64(len(a.slots)-1)
		}
		a.slots[s] = uint32(i + 1)
	}
	return a
}

func compareAssignments(a, b assignment) int {
	return cmp.Or(cmp.Compare(a.keyspace, b.keyspace), strings.Compare(a.tenant, b.tenant), compareKeys(a.key, b.key))
}

// compareKeys orders decimal keys by their number, before all others by their bytes.
func compareKeys(a, b Key) int {
	da, db := decimal(a), decimal(b)
	switch {
	case da && db:
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(string(a), string(b)))
	case da:
		return -1
	case db:
		return 1
	}
	return strings.Compare(string(a), string(b))
}

func decimal(k Key) bool {
	for i := range len(k) {
		if k[i] < '0' || k[i] > '9' {
			return false
		}
	}
	return k != ""
}

// find returns the shard of the key, if it is assigned. h is [Hash] of tenant and key.
func (a *assignments) find(h uint64, keyspace int, tenant string, key Key) (ShardID, bool) {
	if len(a.slots) == 0 {
		return "", false
	}
	for s := h >> a.shift; ; s = (s + 1) & uint64(len(a.slots)-1) {
		i := a.slots[s]
		if i == 0 {
			return "", false
		}
		if e := &a.entries[i-1]; e.is(keyspace, tenant, key) {
			return e.shard, true
		}
	}
}

// addAssignments checks and keeps the pins and rooms.
func (t *Topology) addAssignments(pins []Pin, rooms []Room) error {
	var errs []error
	entries := make([]assignment, 0, len(pins)+len(rooms))
	add := func(what, tenant, keyspace string, key Key, shard ShardID, room bool) {
		e, err := t.assignable(tenant, keyspace, key, shard, room)
		if err != nil {
			errs = append(errs, fmt.Errorf("shardrouter: %s of tenant %q in keyspace %q: %w", what, clip(tenant), clip(keyspace), err))
			return
		}
		entries = append(entries, e)
	}
	for _, p := range pins {
		add("pin", p.Tenant, p.Keyspace, p.Key, p.Shard, false)
	}
	for _, r := range rooms {
		add("room", r.Tenant, r.Keyspace, r.Key, r.Shard, true)
	}
	t.assigned = newAssignments(entries)
	for i := 1; i < len(entries); i++ {
		if compareAssignments(entries[i-1], entries[i]) == 0 {
			e := entries[i]
			errs = append(errs, &DuplicateKeyError{Keyspace: t.keyspaces[e.keyspace].Name, Tenant: e.tenant, Key: e.key})
		}
	}
	return errors.Join(errs...)
}

func (t *Topology) assignable(tenant, keyspace string, key Key, shard ShardID, room bool) (assignment, error) {
	k, ok := t.byName[keyspace]
	if !ok {
		return assignment{}, &UnknownKeyspaceError{Name: clip(keyspace)}
	}
	if room != (t.keyspaces[k].Strategy == StrategyRoom) {
		return assignment{}, &AssignmentError{Keyspace: keyspace, Strategy: t.keyspaces[k].Strategy, Room: room}
	}
	if !validTenant(tenant) {
		return assignment{}, ErrInvalidTenant
	}
	if err := key.Validate(); err != nil {
		return assignment{}, err
	}
	if err := t.serves(tenant, shard); err != nil {
		return assignment{}, err
	}
	if t.info[shard].State == Joining {
		return assignment{}, &ShardStateError{Shard: shard, State: Joining}
	}
	return assignment{tenant: tenant, key: key, keyspace: uint32(k), shard: shard}, nil
}

// serves returns nil if the shard serves the tenant, else an [*InvalidShardError], an [*UnknownShardError] or a
// [*ForeignShardError].
func (t *Topology) serves(tenant string, shard ShardID) error {
	if err := shard.Validate(); err != nil {
		return err
	}
	if _, ours := slices.BinarySearch(t.set(tenant).shards, shard); ours {
		return nil
	}
	if t.Has(shard) {
		return &ForeignShardError{Shard: shard, Tenant: tenant}
	}
	return &UnknownShardError{Shard: shard}
}

package shardrouter

import (
	"errors"
	"fmt"
	"strings"
)

// The states that callers test with errors.Is. All of them may be wrapped.
var (
	// ErrNoShards means that a ring, a topology or a tenant's own list has no shard.
	ErrNoShards = errors.New("shardrouter: no shards: name at least one")

	// ErrEmptyKey means that a shard key is empty.
	ErrEmptyKey = errors.New("shardrouter: empty shard key: a row needs an owner before it is routed")

	// ErrZeroKey means that a shard key is 0 or "0", which is what an id that was never set looks like.
	ErrZeroKey = errors.New("shardrouter: zero shard key: set the id before routing")

	// ErrInvalidTenant means that the tenant of a call is empty or holds a NUL byte.
	ErrInvalidTenant = errors.New("shardrouter: the tenant is empty or holds a NUL byte: pass a parsed tenant id")

	// ErrInvalidShard means that a value is not shaped as a [ShardID]. The error is an [*InvalidShardError].
	ErrInvalidShard = errors.New("shardrouter: invalid shard id")

	// ErrInvalidKeyspace means that a keyspace's name is ill-formed. The error is an [*InvalidKeyspaceError].
	ErrInvalidKeyspace = errors.New("shardrouter: invalid keyspace name")

	// ErrNoEpoch means that a topology has the epoch 0.
	ErrNoEpoch = errors.New("shardrouter: no epoch: a topology's first epoch is 1")

	// ErrVirtualNodes means that a number of virtual nodes is out of range. The error is a [*VirtualNodesError].
	ErrVirtualNodes = errors.New("shardrouter: number of virtual nodes out of range")
)

// maxQuoted is how many bytes of a foreign value an error keeps and shows.
const maxQuoted = 64

func clip(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.Clone(s[:maxQuoted])
}

// InvalidShardError reports a value that is not shaped as a [ShardID]. It is [ErrInvalidShard].
type InvalidShardError struct {
	Value string // the value, cut after 64 bytes
}

// Error names the value, quoted, and the shape wanted.
func (e *InvalidShardError) Error() string {
	return fmt.Sprintf("shardrouter: invalid shard id %q: want [A-Za-z0-9._-]{1,64}", clip(e.Value))
}

// Is reports whether target is [ErrInvalidShard].
func (e *InvalidShardError) Is(target error) bool { return target == ErrInvalidShard }

// DuplicateShardError reports a shard that is listed twice.
type DuplicateShardError struct {
	Shard ShardID
}

// Error names the shard.
func (e *DuplicateShardError) Error() string {
	return fmt.Sprintf("shardrouter: shard %q is listed twice: list it once", clip(string(e.Shard)))
}

// UnknownShardError reports a shard that the ring or topology lacks.
type UnknownShardError struct {
	Shard ShardID
}

// Error names the shard.
func (e *UnknownShardError) Error() string {
	return fmt.Sprintf("shardrouter: unknown shard %q: add it first", clip(string(e.Shard)))
}

// SharedShardError reports a shard that two owners claim: a dedicated shard serves one tenant and no other.
type SharedShardError struct {
	Shard  ShardID
	First  string // the tenant, or "" for the default shards
	Second string // the other tenant
}

// Error names the shard and both owners.
func (e *SharedShardError) Error() string {
	first := "is one of the default shards"
	if e.First != "" {
		first = fmt.Sprintf("is dedicated to tenant %q", clip(e.First))
	}
	return fmt.Sprintf("shardrouter: shard %q %s and to tenant %q as well: give the tenant another", clip(string(e.Shard)), first, clip(e.Second))
}

// InvalidKeyspaceError reports a keyspace whose name is ill-formed. It is [ErrInvalidKeyspace].
type InvalidKeyspaceError struct {
	Name string // the name, cut after 64 bytes
}

// Error names the keyspace, quoted, and the shape wanted.
func (e *InvalidKeyspaceError) Error() string {
	return fmt.Sprintf("shardrouter: invalid keyspace name %q: want [a-z][a-z0-9_]{0,62}", clip(e.Name))
}

// Is reports whether target is [ErrInvalidKeyspace].
func (e *InvalidKeyspaceError) Is(target error) bool { return target == ErrInvalidKeyspace }

// DuplicateKeyspaceError reports a keyspace that is declared twice.
type DuplicateKeyspaceError struct {
	Name string
}

// Error names the keyspace.
func (e *DuplicateKeyspaceError) Error() string {
	return fmt.Sprintf("shardrouter: keyspace %q is declared twice: declare it once", clip(e.Name))
}

// UnknownKeyspaceError reports a keyspace that the topology lacks.
type UnknownKeyspaceError struct {
	Name string
}

// Error names the keyspace.
func (e *UnknownKeyspaceError) Error() string {
	return fmt.Sprintf("shardrouter: unknown keyspace %q: declare it in the topology", clip(e.Name))
}

// UnknownStrategyError reports a strategy that this version does not have. Routing by another one would look for rows
// where they are not.
type UnknownStrategyError struct {
	Keyspace string
	Strategy string
}

// Error names the keyspace and the strategy.
func (e *UnknownStrategyError) Error() string {
	return fmt.Sprintf("shardrouter: keyspace %q: unknown strategy %q: want one of %q", clip(e.Keyspace), clip(e.Strategy), Strategies())
}

// UnknownHashError reports a topology written for a hash that this version does not have. Routing by another hash would
// look for rows where they are not.
type UnknownHashError struct {
	Hash string
}

// Error names the hash.
func (e *UnknownHashError) Error() string {
	return fmt.Sprintf("shardrouter: the topology was made with the hash %q and this version has %q: use a version that knows it; another hash moves every key", clip(e.Hash), HashName)
}

// VirtualNodesError reports a number of virtual nodes out of range. It is [ErrVirtualNodes].
type VirtualNodesError struct {
	VirtualNodes int
	Shards       int // how many shards they were meant for
}

// Error names the number and the range.
func (e *VirtualNodesError) Error() string {
	return fmt.Sprintf("shardrouter: %d virtual nodes for each of %d shards: want %d to %d, and at most %d points in all; 0 means %d",
		e.VirtualNodes, e.Shards, MinVirtualNodes, MaxVirtualNodes, maxPoints, DefaultVirtualNodes)
}

// Is reports whether target is [ErrVirtualNodes].
func (e *VirtualNodesError) Is(target error) bool { return target == ErrVirtualNodes }

// KeyTypeError reports a value whose Go type is not one of a shard key. It does not hold the value.
type KeyTypeError struct {
	Type string // the Go type, "nil" for nil
}

// Error names the type.
func (e *KeyTypeError) Error() string {
	return fmt.Sprintf("shardrouter: a value of type %s is no shard key: want a string, []byte or integer", e.Type)
}

// KeyError reports which key of a list failed.
type KeyError struct {
	Index int   // its position in the list
	Err   error // [ErrEmptyKey] or [ErrZeroKey]
}

// Error names the position and the fault.
func (e *KeyError) Error() string { return fmt.Sprintf("shardrouter: key %d: %v", e.Index, e.Err) }

// Unwrap returns the fault.
func (e *KeyError) Unwrap() error { return e.Err }

// ErrRoomNotFound means that a room was never assigned, or that its shard is gone. The error is a [*RoomNotFoundError].
var ErrRoomNotFound = errors.New("shardrouter: room not found")

// ErrShardDown means that a shard is marked as down. The error is a [*ShardDownError].
var ErrShardDown = errors.New("shardrouter: shard is down")

// RoomNotFoundError reports a room without a shard. It is [ErrRoomNotFound].
type RoomNotFoundError struct {
	Keyspace string
	Tenant   string
	Key      Key
}

// Error names keyspace, tenant and key.
func (e *RoomNotFoundError) Error() string {
	return fmt.Sprintf("shardrouter: keyspace %q: tenant %q has no room %q: assign it first", clip(e.Keyspace), clip(e.Tenant), clip(string(e.Key)))
}

// Is reports whether target is [ErrRoomNotFound].
func (e *RoomNotFoundError) Is(target error) bool { return target == ErrRoomNotFound }

// ShardDownError reports a shard that is marked as down. It is [ErrShardDown].
type ShardDownError struct {
	Shard ShardID
	Epoch Epoch // of the topology that says so
}

// Error names shard and epoch.
func (e *ShardDownError) Error() string {
	return fmt.Sprintf("shardrouter: shard %q is down as of epoch %d: its keys are served when it is back", clip(string(e.Shard)), e.Epoch)
}

// Is reports whether target is [ErrShardDown].
func (e *ShardDownError) Is(target error) bool { return target == ErrShardDown }

// InvalidShardStateError reports a text that names no [ShardState].
type InvalidShardStateError struct {
	Value string // cut after 64 bytes
}

// Error names the value and the states.
func (e *InvalidShardStateError) Error() string {
	return fmt.Sprintf("shardrouter: invalid shard state %q: want %q", clip(e.Value), stateNames[:])
}

// WeightError reports a shard's weight out of range.
type WeightError struct {
	Shard  ShardID
	Weight int
}

// Error names shard, weight and range.
func (e *WeightError) Error() string {
	return fmt.Sprintf("shardrouter: shard %q has weight %d: want 1 to %d, 0 means 1", clip(string(e.Shard)), e.Weight, MaxWeight)
}

// ForeignShardError reports a shard that does not serve the tenant: it is dedicated to another, or the tenant has its own.
type ForeignShardError struct {
	Shard  ShardID
	Tenant string
}

// Error names shard and tenant.
func (e *ForeignShardError) Error() string {
	return fmt.Sprintf("shardrouter: shard %q does not serve tenant %q: name one that does", clip(string(e.Shard)), clip(e.Tenant))
}

// ShardStateError reports a shard whose state forbids what was asked of it.
type ShardStateError struct {
	Shard ShardID
	State ShardState
}

// Error names shard and state.
func (e *ShardStateError) Error() string {
	return fmt.Sprintf("shardrouter: shard %q is %s and takes nothing new: name an active shard", clip(string(e.Shard)), e.State)
}

// DuplicateKeyError reports a key with two pins, or a room with two shards.
type DuplicateKeyError struct {
	Keyspace string
	Tenant   string
	Key      Key
}

// Error names keyspace, tenant and key.
func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("shardrouter: keyspace %q: key %q of tenant %q is assigned twice: assign it once", clip(e.Keyspace), clip(string(e.Key)), clip(e.Tenant))
}

// AssignmentError reports a room in a keyspace that is not of the strategy "room", or a pin in one that is.
type AssignmentError struct {
	Keyspace string
	Strategy string
	Room     bool // a room was given, not a pin
}

// Error names keyspace and strategy.
func (e *AssignmentError) Error() string {
	if e.Room {
		return fmt.Sprintf("shardrouter: keyspace %q places keys by %q and has no rooms: pin the key", clip(e.Keyspace), clip(e.Strategy))
	}
	return fmt.Sprintf("shardrouter: keyspace %q holds rooms and no pins: assign the room", clip(e.Keyspace))
}

// SlotsError reports slots that are given twice, or not at all.
type SlotsError struct {
	First  uint16
	Last   uint16
	Reason string
}

// Error names the slots and the fault.
func (e *SlotsError) Error() string {
	return fmt.Sprintf("shardrouter: slots %d to %d of 0 to %d: %s", e.First, e.Last, SlotCount-1, e.Reason)
}

// RangeKeyError reports a key that is not of the kind of its range keyspace, or a kind that does not exist.
type RangeKeyError struct {
	Kind RangeKind
	Key  Key // cut after 64 bytes
}

// Error names the kind and the key.
func (e *RangeKeyError) Error() string {
	return fmt.Sprintf("shardrouter: key %q has no place in ranges of kind %q: want %q, %q or %q and a key of it", clip(string(e.Key)), clip(string(e.Kind)), IntRange, TimeRange, TextRange)
}

// SplitError reports a split that cannot be.
type SplitError struct {
	At     Key
	Reason string
}

// Error names the key and the fault.
func (e *SplitError) Error() string {
	return fmt.Sprintf("shardrouter: split at %q: %s", clip(string(e.At)), e.Reason)
}

// KeyspaceFieldError reports a keyspace with slots that is not of the strategy "slots", or with splits or a kind that is
// not of the strategy "range".
type KeyspaceFieldError struct {
	Keyspace string
	Strategy string
}

// Error names keyspace and strategy.
func (e *KeyspaceFieldError) Error() string {
	return fmt.Sprintf("shardrouter: keyspace %q of the strategy %q has slots, splits or a kind of key that the strategy does not have", clip(e.Keyspace), clip(e.Strategy))
}

// ErrNeedsReshard means that a change would give existing keys another owner. The error is a [*NeedsReshardError].
var ErrNeedsReshard = errors.New("shardrouter: the change moves keys and needs a reshard")

// ErrNoMembers means that a list of instances is empty.
var ErrNoMembers = errors.New("shardrouter: no members: name at least one instance")

// NeedsReshardError reports a change that would give existing keys another owner. It is [ErrNeedsReshard].
type NeedsReshardError struct {
	Plan *Plan // what would move; not empty
}

// Error says how many moves there are, and names the first.
func (e *NeedsReshardError) Error() string {
	m := e.Plan.Moves[0]
	what := m.Kind
	switch {
	case m.Kind == MoveHash:
		what = "run of hashes"
	case m.Kind == MoveRange:
		what = "range of keys"
	case m.Kind == MoveAll:
		what = "all keys"
	case m.Kind == MoveKey && m.Tenant != "":
		what = fmt.Sprintf("key %q of tenant %q", clip(string(m.Key)), clip(m.Tenant))
	}
	what += fmt.Sprintf(" in keyspace %q", clip(m.Keyspace))
	switch {
	case m.To != "":
		what += fmt.Sprintf(" from shard %q to %q", m.From, m.To)
	case m.From != "":
		what += fmt.Sprintf(" from shard %q to none", m.From)
	}
	return fmt.Sprintf("shardrouter: the change to epoch %d needs a reshard, which this version does not have: moves %d, the first %s", e.Plan.To, len(e.Plan.Moves), what)
}

// Is reports whether target is [ErrNeedsReshard].
func (e *NeedsReshardError) Is(target error) bool { return target == ErrNeedsReshard }

// ShardInUseError reports a shard that is to be removed and has something placed by hand.
type ShardInUseError struct {
	Shard  ShardID
	Pins   int
	Rooms  int
	Ranges int
}

// Error names the shard and what it has.
func (e *ShardInUseError) Error() string {
	return fmt.Sprintf("shardrouter: shard %q has %d pins, %d rooms and %d ranges: rebalance, or move them first", clip(string(e.Shard)), e.Pins, e.Rooms, e.Ranges)
}

// NotAssignedError reports a pin or room that is to be dropped and is not there.
type NotAssignedError struct {
	Keyspace string
	Tenant   string
	Key      Key
}

// Error names keyspace, tenant and key.
func (e *NotAssignedError) Error() string {
	return fmt.Sprintf("shardrouter: keyspace %q: key %q of tenant %q is not assigned", clip(e.Keyspace), clip(string(e.Key)), clip(e.Tenant))
}

// RoomAssignedError reports a room that has a shard already.
type RoomAssignedError struct {
	Room Room // as it is
}

// Error names the room and its shard.
func (e *RoomAssignedError) Error() string {
	return fmt.Sprintf("shardrouter: keyspace %q: room %q of tenant %q is on shard %q and stays there", clip(e.Room.Keyspace), clip(string(e.Room.Key)), clip(e.Room.Tenant), clip(string(e.Room.Shard)))
}

// MemberError reports an instance that is ill-formed or listed twice.
type MemberError struct {
	Member string // cut after 64 bytes
	Reason string
}

// Error names the instance and the fault.
func (e *MemberError) Error() string {
	return fmt.Sprintf("shardrouter: member %q: %s", clip(e.Member), e.Reason)
}

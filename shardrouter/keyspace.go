package shardrouter

import (
	"fmt"
	"slices"
)

// Keyspace is a family of tables that share a shard key.
type Keyspace struct {
	// Name is [a-z][a-z0-9_]{0,62}.
	Name string `json:"name"`

	// Strategy is how keys are placed: one of [Strategies]. Empty means "ring".
	Strategy string `json:"strategy,omitempty"`

	// VirtualNodes is the number of ring points per shard. Other strategies keep and ignore it.
	//
	// Zero means 128; the least is 64.
	VirtualNodes int `json:"virtual_nodes,omitempty"`

	// Slots says which shard has which slots, for the strategy "slots" only. Those of one tenant cover all slots once; a
	// set of shards without any is given a new table, see [NewSlots].
	Slots []SlotRange `json:"slots,omitempty"`

	// Kind is what the keys of the strategy "range" are.
	Kind RangeKind `json:"kind,omitempty"`

	// Splits are the ranges of the strategy "range". A set of shards without any has one range, on its first shard.
	Splits []Split `json:"splits,omitempty"`

	// Moving says that rows of this keyspace may exist on two shards just now, since a reshard copies them: readers across
	// shards must drop rows that the shard does not own.
	Moving bool `json:"moving,omitempty"`
}

// Equal reports whether both keyspaces are the same in every field, the defaults spelled out or not.
func (k Keyspace) Equal(o Keyspace) bool {
	k, o = k.withDefaults(), o.withDefaults()
	return k.Name == o.Name && k.Strategy == o.Strategy && k.VirtualNodes == o.VirtualNodes && k.Kind == o.Kind && k.Moving == o.Moving &&
		slices.Equal(k.Slots, o.Slots) && slices.Equal(k.Splits, o.Splits)
}

func (k Keyspace) withDefaults() Keyspace {
	if k.Strategy == "" {
		k.Strategy = StrategyRing
	}
	if k.VirtualNodes == 0 {
		k.VirtualNodes = DefaultVirtualNodes
	}
	if k.Strategy == StrategyRange && k.Kind == "" {
		k.Kind = IntRange
	}
	return k
}

func (k Keyspace) clone() Keyspace {
	k.Slots, k.Splits = slices.Clone(k.Slots), slices.Clone(k.Splits)
	return k
}

// SlotRange gives a run of slots to a shard.
type SlotRange struct {
	// Tenant is whose shards these are: a tenant with shards of its own, or empty for the default shards.
	Tenant string `json:"tenant,omitempty"`

	// First and Last are slots, both included, in 0 to 2^14-1.
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`

	// Shard has them.
	Shard ShardID `json:"shard"`
}

// Split is one range of keys: from From, which belongs to it, up to the From of the next.
type Split struct {
	// Tenant is whose shards these are: a tenant with shards of its own, or empty for the default shards.
	Tenant string `json:"tenant,omitempty"`

	// From is the least key of the range, as text of the keyspace's [RangeKind]. The first range of a tenant has "", which
	// lies before every key.
	From Key `json:"from"`

	// Shard has the range.
	Shard ShardID `json:"shard"`
}

// RangeKind is how the keys of a range keyspace are ordered. It is persisted by its name.
type RangeKind string

const (
	// IntRange orders keys as integers, -2^63 to 2^64-1. The empty kind means it.
	IntRange RangeKind = "int"

	// TimeRange orders keys as times: text as in RFC 3339, or a date alone, which is its midnight in UTC. Years 1678 to 2261.
	TimeRange RangeKind = "time"

	// TextRange orders keys by their bytes.
	TextRange RangeKind = "text"
)

// Warnings returns what is legal in the keyspace and yet seldom meant, each a sentence; nil if nothing is.
//
// Ranges over integers are warned against: ids that grow put every new player into the last range, so that one shard
// takes all new rows and most of the load, however many shards there are. Ranges are for logs and times, which are split
// as they grow; players belong on a ring or in slots.
func (k Keyspace) Warnings() []string {
	if k = k.withDefaults(); k.Strategy == StrategyRange && k.Kind == IntRange {
		return []string{fmt.Sprintf("keyspace %q: ranges over growing integer ids put all new rows into the last range, which one shard serves: "+
			"use a ring or slots for players, and ranges for logs and times", clip(k.Name))}
	}
	return nil
}

package shardrouter

import (
	"cmp"
	"slices"
	"strings"
)

// Rebalance leaves the shards in Active and removes the others of the set. Pins on shards that stay, stay. A pin on a lost
// shard moves to the shard on which the hash places its key now; where that takes nothing new, the pin is dropped and the
// key goes by the hash, which is the same shard. Rooms on lost shards are dropped, for the layer above to make anew. All
// these are in [Plan.Migrations].
//
// A shard that is not of the set is an [*UnknownShardError] or [*ForeignShardError], one listed twice a
// [*DuplicateShardError], none at all [ErrNoShards]. A lost shard with a range of keys is a [*ShardInUseError].
type Rebalance struct {
	// Tenant is whose shards these are: a tenant with shards of its own, or empty for the default shards.
	Tenant string `json:"tenant,omitempty"`

	// Active are the shards that stay, in any order.
	Active []ShardID `json:"active"`
}

// Kind returns "rebalance".
func (Rebalance) Kind() string { return "rebalance" }

// The kinds of a [Migration].
const (
	MigratePin  = "pin"
	MigrateRoom = "room"
)

// Migration is a pin or room that a [Rebalance] took off a lost shard.
type Migration struct {
	Kind     string  `json:"kind"` // [MigratePin] or [MigrateRoom]
	Keyspace string  `json:"keyspace"`
	Tenant   string  `json:"tenant"`
	Key      Key     `json:"key"`
	From     ShardID `json:"from"`
	To       ShardID `json:"to"` // empty for a room that was dropped
}

// Rebalance returns the topology in which only these of the default shards are left, and every pin and room that moves,
// sorted by kind, keyspace, tenant and key, decimal keys by their number; nil if none does. It is [Topology.Apply] of the
// change [Rebalance].
func (t *Topology) Rebalance(active []ShardID) (*Topology, []Migration, error) {
	next, plan, err := t.Apply(Rebalance{Active: active})
	if err != nil {
		return nil, nil, err
	}
	return next, plan.Migrations, nil
}

func (c Rebalance) apply(e *edit) error {
	active, errs := sortShards(c.Active)
	if len(errs) > 0 {
		return errs[0]
	}
	have := e.cfg.Shards
	if c.Tenant != "" {
		have = e.cfg.Dedicated[c.Tenant]
	}
	for _, id := range active {
		switch {
		case slices.Contains(have, id):
		case e.has(id):
			return &ForeignShardError{Shard: id, Tenant: c.Tenant}
		default:
			return &UnknownShardError{Shard: id}
		}
	}
	lost := keep(have, func(id ShardID) bool { return !slices.Contains(active, id) })
	var pins []Migration
	for at, shard := range e.pins {
		if slices.Contains(lost, shard) {
			pins = append(pins, Migration{Kind: MigratePin, Keyspace: at.keyspace, Tenant: at.tenant, Key: at.key, From: shard})
			delete(e.pins, at)
		}
	}
	for at, shard := range e.rooms {
		if slices.Contains(lost, shard) {
			e.migrations = append(e.migrations, Migration{Kind: MigrateRoom, Keyspace: at.keyspace, Tenant: at.tenant, Key: at.key, From: shard})
			delete(e.rooms, at)
		}
	}
	for _, id := range lost {
		if err := (RemoveShard{Shard: id}).apply(e); err != nil {
			return err
		}
	}
	if len(pins) > 0 {
		// Where the hash places them once the shards are gone.
		after := *e
		after.cfg.Keyspaces = make([]Keyspace, len(e.cfg.Keyspaces))
		for i, k := range e.cfg.Keyspaces {
			after.cfg.Keyspaces[i] = k.clone()
		}
		rest, err := after.build()
		if err != nil {
			return err
		}
		for _, m := range pins {
			if m.To, err = rest.Owner(m.Keyspace, m.Tenant, m.Key); err != nil {
				return err
			}
			e.migrations = append(e.migrations, m)
			if e.cfg.Info[m.To].State == Active {
				e.pins[placed{m.Keyspace, m.Tenant, m.Key}] = m.To
			}
		}
	}
	slices.SortFunc(e.migrations, func(a, b Migration) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Keyspace, b.Keyspace), strings.Compare(a.Tenant, b.Tenant), compareKeys(a.Key, b.Key))
	})
	return nil
}

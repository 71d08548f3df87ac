package shardrouter

import "slices"

// placing is one keyspace's strategy over one set of shards. Exactly one field is set; none means that the first shard
// owns every key.
type placing struct {
	table      *hashTable // ring: by Hash
	slots      *Slots
	modulo     *Modulo
	ketama     *Ketama
	rendezvous *Rendezvous
	ranges     *Range
	room       bool
}

// sameOver reports whether two keyspaces place keys alike over every set of shards, so that they share one placing.
func (k Keyspace) sameOver(o Keyspace) bool {
	return k.Strategy == o.Strategy && (k.Strategy != StrategyRing || k.VirtualNodes == o.VirtualNodes) &&
		k.Kind == o.Kind && slices.Equal(k.Slots, o.Slots) && slices.Equal(k.Splits, o.Splits)
}

// newPlacing builds the placing of the keyspace for the shards of the tenant, "" for the default ones.
func newPlacing(k Keyspace, tenant string, owning []ShardID, weights map[ShardID]int) (p placing, err error) {
	switch k.Strategy {
	case StrategyRoom:
		return placing{room: true}, nil
	case StrategyRange:
		// Also for one shard: what is no key of the kind is refused whatever the number of shards.
		p.ranges, err = NewRange(owning, k.Kind, splitsOf(k.Splits, tenant))
		return p, err
	case StrategySlots:
		assignment := slotsOf(k.Slots, tenant)
		if len(owning) == 1 && len(assignment) == 0 {
			return placing{}, nil
		}
		p.slots, err = newSlotTable(owning, weights, assignment)
		return p, err
	}
	// One shard owns everything, and thousands of tenants may have just one.
	if len(owning) == 1 {
		return placing{}, nil
	}
	switch k.Strategy {
	case StrategyModulo:
		p.modulo, err = NewModulo(owning)
	case StrategyKetama:
		p.ketama, err = NewKetama(owning)
	case StrategyRendezvous:
		p.rendezvous, err = NewRendezvous(owning, weights)
	default:
		var ring *Ring
		if ring, err = NewWeightedRing(owning, k.VirtualNodes, weights); err == nil {
			p.table = &ring.hashTable
		}
	}
	return p, err
}

func newSlotTable(owning []ShardID, weights map[ShardID]int, assignment []SlotRange) (*Slots, error) {
	if len(assignment) == 0 {
		return NewSlots(owning, weights)
	}
	return SlotsOf(owning, weights, assignment)
}

// owner returns the shard of the key over the owning shards, which are those of the placing; h is [Hash] of it.
func (p *placing) owner(owning []ShardID, h uint64, tenant string, key Key) (ShardID, error) {
	switch {
	case p.table != nil:
		return owning[p.table.ownerIndex(h)], nil
	case p.slots != nil:
		return owning[p.slots.slotOwner(h)], nil
	case p.modulo != nil:
		return p.modulo.OwnerOfHash(h), nil
	case p.ketama != nil:
		return p.ketama.Owner(tenant, key), nil
	case p.rendezvous != nil:
		return p.rendezvous.Owner(tenant, key), nil
	case p.ranges != nil:
		return p.ranges.Owner(key)
	case p.room:
		return "", ErrRoomNotFound
	}
	return owning[0], nil
}

// slotsOf and splitsOf return the part that is about the shards of one tenant, "" for the default ones.
func slotsOf(all []SlotRange, tenant string) []SlotRange {
	return keep(all, func(r SlotRange) bool { return r.Tenant == tenant })
}

func splitsOf(all []Split, tenant string) []Split {
	return keep(all, func(s Split) bool { return s.Tenant == tenant })
}

func keep[T any](all []T, want func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !want(v) })
}

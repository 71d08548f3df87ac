package shardrouter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The kinds of a [Move].
const (
	// MoveHash is a run of hashes, by the field Hash.
	MoveHash = "hash"

	// MoveRange is a range of keys.
	MoveRange = "range"

	// MoveKey is one key, which is pinned or a room, before or after.
	MoveKey = "key"

	// MoveAll is a whole keyspace that is placed anew, so that any key may move from any shard to any other: another
	// strategy, another number of shards under modulo, other shards in rendezvous.
	MoveAll = "all"
)

// KetamaHashName names the hash of [Ketama] in a [Move]: the 32-bit hash in the upper half.
const KetamaHashName = "ketama/1"

// Move is a part of the keys that changes its owner. The keys that are pinned or rooms are not of a part but moves by
// themselves, if they move.
type Move struct {
	Kind     string `json:"kind"` // [MoveHash], [MoveRange], [MoveKey] or [MoveAll]
	Keyspace string `json:"keyspace"`

	// Tenant is whose keys move; empty means every tenant without shards of its own.
	Tenant string `json:"tenant,omitempty"`

	// First and Last are hashes, both included, and Hash is the name of their function: [HashName] or [KetamaHashName].
	// For MoveHash only.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
	Hash  string `json:"hash,omitempty"`

	// Key is the key of MoveKey, and the first key of MoveRange, "" for the least; End is the first key after it, "" for
	// none.
	Key Key `json:"key,omitempty"`
	End Key `json:"end,omitempty"`

	// From and To are the shards. To is empty for a room that is dropped; both are empty for MoveAll.
	From ShardID `json:"from,omitempty"`
	To   ShardID `json:"to,omitempty"`

	// Share is the part of all hashes that moves, 0 to 1; for MoveAll an estimate from 16384 keys. It is 0 for keys and
	// ranges of keys, of whose number a topology knows nothing.
	Share float64 `json:"share,omitempty"`
}

// Plan says what a change of a topology moves. It is immutable.
type Plan struct {
	// From and To are the epochs before and after.
	From Epoch `json:"from"`
	To   Epoch `json:"to"`

	// Moves is what moves, sorted by keyspace, tenant and kind, then by hash or key; nil if nothing does.
	Moves []Move `json:"moves,omitempty"`

	// Migrations are the pins and rooms that a [Rebalance] took off lost shards, sorted by kind, keyspace, tenant and key.
	// They are among Moves as well.
	Migrations []Migration `json:"migrations,omitempty"`
}

// Empty reports whether no key that could exist before has another owner after.
func (p *Plan) Empty() bool { return len(p.Moves) == 0 }

// Refuse returns a [*NeedsReshardError], which is [ErrNeedsReshard], with the plan if it is not empty, else nil: the
// answer to a change that would move keys and is not carried by a reshard.
func (p *Plan) Refuse() error {
	if p.Empty() {
		return nil
	}
	return &NeedsReshardError{Plan: p}
}

// Share returns the part of the keyspace's hashes that moves for tenants of those shards, 0 to 1: of the tenant with
// shards of its own, or with "" of all others.
func (p *Plan) Share(keyspace, tenant string) float64 {
	share := 0.0
	for _, m := range p.Moves {
		if m.Keyspace == keyspace && m.Tenant == tenant {
			share += m.Share
		}
	}
	return share
}

func newPlan(old, next *Topology, migrations []Migration) *Plan {
	p := &Plan{From: old.epoch, To: next.epoch, Migrations: migrations}
	tenants := map[string]bool{"": true}
	for tenant := range old.dedicated {
		tenants[tenant] = true
	}
	for tenant := range next.dedicated {
		tenants[tenant] = true
	}
	for k := range old.keyspaces {
		n, still := next.byName[old.keyspaces[k].Name]
		if !still {
			continue
		}
		for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
			a, b := old.set(tenant), next.set(tenant)
			if old.keyspaces[k].sameOver(next.keyspaces[n]) && slices.Equal(a.owning, b.owning) && sameWeights(old, next, a.owning) {
				continue
			}
			moves := diffPlacings(a, b, &a.placings[old.wayOf[k]], &b.placings[next.wayOf[n]])
			for i := range moves {
				moves[i].Keyspace, moves[i].Tenant = old.keyspaces[k].Name, tenant
			}
			p.Moves = append(p.Moves, moves...)
		}
	}
	p.Moves = append(p.Moves, diffAssigned(old, next)...)
	slices.SortStableFunc(p.Moves, func(a, b Move) int {
		return cmp.Or(strings.Compare(a.Keyspace, b.Keyspace), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Kind, b.Kind),
			cmp.Compare(a.First, b.First), moveKeys(a, b))
	})
	return p
}

// moveKeys orders single keys; ranges come in their order already.
func moveKeys(a, b Move) int {
	if a.Kind != MoveKey {
		return 0
	}
	return compareKeys(a.Key, b.Key)
}

func sameWeights(old, next *Topology, shards []ShardID) bool {
	return !slices.ContainsFunc(shards, func(id ShardID) bool { return old.info[id].weight() != next.info[id].weight() })
}

func diffPlacings(a, b *shardSet, from, to *placing) []Move {
	old, hashA := from.hashRanges(a.owning)
	next, hashB := to.hashRanges(b.owning)
	switch {
	case old != nil && next != nil && (hashA == "" || hashB == "" || hashA == hashB):
		var moves []Move
		for _, m := range Diff(old, next) {
			moves = append(moves, Move{
				Kind: MoveHash, First: m.First, Last: m.Last, Hash: cmp.Or(hashA, hashB, HashName), From: m.From, To: m.To,
				Share: (float64(m.Last-m.First) + 1) / (1 << 64),
			})
		}
		return moves
	case from.ranges != nil && to.ranges != nil && from.ranges.kind == to.ranges.kind:
		return diffRanges(from.ranges, to.ranges)
	case from.room && to.room, from.modulo != nil && to.modulo != nil && slices.Equal(from.modulo.shards, to.modulo.shards),
		from.rendezvous != nil && to.rendezvous != nil && slices.Equal(from.rendezvous.labels, to.rendezvous.labels):
		return nil
	case from.room:
		return nil // what was never assigned had no owner
	}
	return []Move{{Kind: MoveAll, Share: sampleShare(a, b, from, to)}}
}

// hashRanges returns the runs of hashes and the name of their function, which is empty if any does; nil if the placing is
// not one of runs.
func (p *placing) hashRanges(owning []ShardID) ([]HashRange, string) {
	switch {
	case p.table != nil:
		return p.table.ranges(owning), HashName
	case p.slots != nil:
		return p.slots.ranges(owning), HashName
	case p.ketama != nil:
		return p.ketama.Ranges(), KetamaHashName
	case p.modulo != nil, p.rendezvous != nil, p.ranges != nil, p.room:
		return nil, ""
	}
	return []HashRange{{Last: ^uint64(0), Shard: owning[0]}}, ""
}

// sampleShare asks both placings for keys that stand for all.
func sampleShare(a, b *shardSet, from, to *placing) float64 {
	const samples = 1 << 14
	moved := 0
	for i := range samples {
		key := Key(fmt.Sprint(i + 1))
		h := Hash("sample", key)
		x, errX := from.owner(a.owning, h, "sample", key)
		y, errY := to.owner(b.owning, h, "sample", key)
		if x != y || (errX == nil) != (errY == nil) {
			moved++
		}
	}
	return float64(moved) / samples
}

func diffRanges(old, next *Range) []Move {
	var moves []Move
	joined := false // the range before this one moved alike
	for i, j := 0, 0; i < len(old.splits) && j < len(next.splits); {
		// The part begins where the later of the two begins.
		first := old.splits[i].From
		if next.from[j].compare(old.from[i]) > 0 {
			first = next.splits[j].From
		}
		var end Key
		endOld, endNext := i+1 < len(old.splits), j+1 < len(next.splits)
		switch {
		case endOld && endNext:
			c := old.from[i+1].compare(next.from[j+1])
			if endOld, endNext = c <= 0, c >= 0; endOld {
				end = old.splits[i+1].From
			} else {
				end = next.splits[j+1].From
			}
		case endOld:
			end = old.splits[i+1].From
		case endNext:
			end = next.splits[j+1].From
		}
		from, to := old.splits[i].Shard, next.splits[j].Shard
		last := len(moves) - 1
		switch {
		case from == to:
			joined = false
		case joined && moves[last].From == from && moves[last].To == to:
			moves[last].End = end
		default:
			moves = append(moves, Move{Kind: MoveRange, Key: first, End: end, From: from, To: to})
			joined = true
		}
		if !endOld && !endNext {
			break
		}
		if endOld {
			i++
		}
		if endNext {
			j++
		}
	}
	return moves
}

// diffAssigned lists the pins and rooms, of before and after, whose owner differs.
func diffAssigned(old, next *Topology) []Move {
	var moves []Move
	add := func(keyspace, tenant string, key Key) {
		from, err := old.Owner(keyspace, tenant, key)
		if err != nil {
			return // it could not exist
		}
		if to, _ := next.Owner(keyspace, tenant, key); to != from {
			moves = append(moves, Move{Kind: MoveKey, Keyspace: keyspace, Tenant: tenant, Key: key, From: from, To: to})
		}
	}
	for _, a := range old.assigned.entries {
		add(old.keyspaces[a.keyspace].Name, a.tenant, a.key)
	}
	for _, a := range next.assigned.entries {
		name := next.keyspaces[a.keyspace].Name
		if k, ok := old.byName[name]; ok {
			if _, before := old.assigned.find(Hash(a.tenant, a.key), k, a.tenant, a.key); before {
				continue
			}
		}
		add(name, a.tenant, a.key)
	}
	return moves
}

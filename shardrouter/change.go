package shardrouter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one change of a topology, to be given to [Topology.Apply]. It is one of [AddShard], [SetShard],
// [RemoveShard], [PutKeyspace], [SetMoving], [SplitRange], [MergeRange], [PutPin], [DropPin], [AssignRoom], [DropRoom] and
// [Rebalance], and is kept as text by [MarshalChange].
type Change interface {
	// Kind is the name under which the change is persisted, such as "add_shard".
	Kind() string

	apply(e *edit) error
}

// AddShard adds a shard. Unless its state is [Joining], it takes its part of the keys.
type AddShard struct {
	Shard ShardID `json:"shard"`

	// Tenant is whom the shard is dedicated to; empty for a default shard. The first shard of a tenant takes the tenant off
	// the default shards.
	Tenant string `json:"tenant,omitempty"`

	Info ShardInfo `json:"info"`
}

// SetShard replaces what is known of a shard: state, zone and weight.
type SetShard struct {
	Shard ShardID   `json:"shard"`
	Info  ShardInfo `json:"info"`
}

// RemoveShard removes a shard that holds no pins and no rooms; [Rebalance] moves those as well. Its slots go to the
// others. A shard that has a range is not removed: give the range to another with [PutKeyspace].
type RemoveShard struct {
	Shard ShardID `json:"shard"`
}

// PutKeyspace adds a keyspace, or replaces one. Without Slots, a keyspace that has slots already keeps them. Moving of one
// that is there stays as it is: see [SetMoving].
type PutKeyspace struct {
	Keyspace Keyspace `json:"keyspace"`
}

// SetMoving sets Moving of a keyspace and nothing else.
type SetMoving struct {
	Keyspace string `json:"keyspace"`
	Moving   bool   `json:"moving"`
}

// SplitRange cuts the range that holds the key At: what begins with At goes to the shard. See [Range.Split].
type SplitRange struct {
	Keyspace string  `json:"keyspace"`
	Tenant   string  `json:"tenant,omitempty"` // one with shards of its own, or empty for the default shards
	At       Key     `json:"at"`
	Shard    ShardID `json:"shard"`
}

// MergeRange joins the range that begins at the key At to the one before it. See [Range.Merge].
type MergeRange struct {
	Keyspace string `json:"keyspace"`
	Tenant   string `json:"tenant,omitempty"` // one with shards of its own, or empty for the default shards
	At       Key    `json:"at"`
}

// PutPin places a key by hand, or elsewhere than it is pinned. The shard must be active.
type PutPin struct {
	Pin Pin `json:"pin"`
}

// DropPin gives a key back to the hash.
type DropPin struct {
	Tenant   string `json:"tenant"`
	Keyspace string `json:"keyspace"`
	Key      Key    `json:"key"`
}

// AssignRoom says where a new room is. The shard must be active. A room stays where it is: assigning it once more to the
// same shard changes nothing, to another is a [*RoomAssignedError].
type AssignRoom struct {
	Room Room `json:"room"`
}

// DropRoom forgets a room.
type DropRoom struct {
	Tenant   string `json:"tenant"`
	Keyspace string `json:"keyspace"`
	Key      Key    `json:"key"`
}

// Kind returns "add_shard".
func (AddShard) Kind() string { return "add_shard" }

// Kind returns "set_shard".
func (SetShard) Kind() string { return "set_shard" }

// Kind returns "remove_shard".
func (RemoveShard) Kind() string { return "remove_shard" }

// Kind returns "put_keyspace".
func (PutKeyspace) Kind() string { return "put_keyspace" }

// Kind returns "set_moving".
func (SetMoving) Kind() string { return "set_moving" }

// Kind returns "split_range".
func (SplitRange) Kind() string { return "split_range" }

// Kind returns "merge_range".
func (MergeRange) Kind() string { return "merge_range" }

// Kind returns "put_pin".
func (PutPin) Kind() string { return "put_pin" }

// Kind returns "drop_pin".
func (DropPin) Kind() string { return "drop_pin" }

// Kind returns "assign_room".
func (AssignRoom) Kind() string { return "assign_room" }

// Kind returns "drop_room".
func (DropRoom) Kind() string { return "drop_room" }

// Apply returns the topology after the changes, in their order, with the next epoch, and what moves by them; t goes on
// serving. It is pure: nothing is persisted, and whether the keys that move have rows is for the caller to know, see
// [Plan.Refuse].
//
// No changes at all make the same topology with the next epoch. The first change that cannot be is an error, wrapped with
// its position: the errors of [NewTopology] and of the kind of change, beside them [*UnknownShardError],
// [*ForeignShardError], [*UnknownKeyspaceError], [*ShardStateError], [*ShardInUseError], [*NotAssignedError] for a pin or
// room that is not there, and [*RoomAssignedError].
func (t *Topology) Apply(changes ...Change) (*Topology, *Plan, error) {
	e := &edit{before: t, cfg: t.Config()}
	e.cfg.Epoch++
	if e.cfg.Info == nil {
		e.cfg.Info = make(map[ShardID]ShardInfo)
	}
	if e.cfg.Dedicated == nil {
		e.cfg.Dedicated = make(map[string][]ShardID)
	}
	e.pins, e.rooms = make(map[placed]ShardID, len(e.cfg.Pins)), make(map[placed]ShardID, len(e.cfg.Rooms))
	for _, p := range e.cfg.Pins {
		e.pins[placed{p.Keyspace, p.Tenant, p.Key}] = p.Shard
	}
	for _, r := range e.cfg.Rooms {
		e.rooms[placed{r.Keyspace, r.Tenant, r.Key}] = r.Shard
	}
	e.cfg.Pins, e.cfg.Rooms = nil, nil
	for i, c := range changes {
		if err := c.apply(e); err != nil {
			return nil, nil, fmt.Errorf("shardrouter: change %d, %s: %w", i, c.Kind(), err)
		}
	}
	next, err := e.build()
	if err != nil {
		return nil, nil, err
	}
	return next, newPlan(t, next, e.migrations), nil
}

// edit is a topology while it is changed.
type edit struct {
	before     *Topology
	cfg        TopologyConfig // without Pins and Rooms
	pins       map[placed]ShardID
	rooms      map[placed]ShardID
	migrations []Migration
}

// placed names what is placed by hand.
type placed struct {
	keyspace string
	tenant   string
	key      Key
}

func comparePlaced(a, b placed) int {
	return cmp.Or(strings.Compare(a.keyspace, b.keyspace), strings.Compare(a.tenant, b.tenant), compareKeys(a.key, b.key))
}

// build makes the topology of the configuration as it is.
func (e *edit) build() (*Topology, error) {
	if err := e.settle(); err != nil {
		return nil, err
	}
	cfg := e.cfg
	for _, at := range slices.SortedFunc(maps.Keys(e.pins), comparePlaced) {
		cfg.Pins = append(cfg.Pins, Pin{Tenant: at.tenant, Keyspace: at.keyspace, Key: at.key, Shard: e.pins[at]})
	}
	for _, at := range slices.SortedFunc(maps.Keys(e.rooms), comparePlaced) {
		cfg.Rooms = append(cfg.Rooms, Room{Tenant: at.tenant, Keyspace: at.keyspace, Key: at.key, Shard: e.rooms[at]})
	}
	return NewTopology(cfg)
}

// settle spells out slots and ranges, which without that would follow from the shards and move with them, and gives slots
// to shards that are new and takes them from shards that are gone.
func (e *edit) settle() error {
	weights := make(map[ShardID]int)
	for id, info := range e.cfg.Info {
		if info.Weight > 1 {
			weights[id] = info.Weight
		}
	}
	for i := range e.cfg.Keyspaces {
		k := &e.cfg.Keyspaces[i]
		old, known := e.before.Keyspace(k.Name)
		if !known || old.Strategy != k.Strategy || k.Strategy != StrategySlots && k.Strategy != StrategyRange {
			continue
		}
		if err := e.settleSet(k, "", &e.before.defaults, e.cfg.Shards, weights); err != nil {
			return fmt.Errorf("shardrouter: keyspace %q: %w", k.Name, err)
		}
		for _, tenant := range slices.Sorted(maps.Keys(e.before.dedicated)) {
			if err := e.settleSet(k, tenant, e.before.dedicated[tenant], e.cfg.Dedicated[tenant], weights); err != nil {
				return fmt.Errorf("shardrouter: keyspace %q: %w", k.Name, err)
			}
		}
	}
	return nil
}

func (e *edit) settleSet(k *Keyspace, tenant string, before *shardSet, shards []ShardID, weights map[ShardID]int) error {
	owning := keep(shards, func(id ShardID) bool { return e.cfg.Info[id].State != Joining })
	slices.Sort(owning)
	if k.Strategy == StrategyRange {
		if len(splitsOf(k.Splits, tenant)) == 0 && !slices.Equal(owning, before.owning) {
			k.Splits = append(k.Splits, Split{Tenant: tenant, Shard: before.owning[0]})
		}
		return nil
	}
	assignment := slotsOf(k.Slots, tenant)
	if len(assignment) == 0 && len(before.owning) == 1 && slices.Equal(owning, before.owning) {
		return nil
	}
	held := slices.Clone(before.owning)
	for _, r := range assignment {
		held = append(held, r.Shard) // one that an assignment names has its slots already
	}
	slices.Sort(held)
	held = slices.Compact(held)
	table, err := newSlotTable(held, weightsOf(weights, e.before, held), assignment)
	if err != nil {
		return err
	}
	for _, id := range owning {
		if _, has := slices.BinarySearch(held, id); !has && e.cfg.Info[id].State == Active {
			if table, err = table.AddShard(id, e.cfg.Info[id].Weight); err != nil {
				return err
			}
		}
	}
	takesNothing := keep(table.Shards(), func(id ShardID) bool { return e.cfg.Info[id].State != Active || !slices.Contains(owning, id) })
	for _, id := range before.owning {
		if _, stays := slices.BinarySearch(owning, id); !stays {
			if table, err = table.RemoveShard(id, takesNothing...); err != nil {
				return err
			}
		}
	}
	k.Slots = keep(k.Slots, func(r SlotRange) bool { return r.Tenant != tenant })
	for _, r := range table.Assignment() {
		r.Tenant = tenant
		k.Slots = append(k.Slots, r)
	}
	return nil
}

// weightsOf returns the weights by which a table that was never spelled out was made: those of the topology before. Shards
// that it lacks have those of now.
func weightsOf(now map[ShardID]int, before *Topology, shards []ShardID) map[ShardID]int {
	weights := maps.Clone(now)
	for _, id := range shards {
		if before.Has(id) {
			weights[id] = before.info[id].Weight
		}
	}
	return weights
}

func (e *edit) has(id ShardID) bool {
	if slices.Contains(e.cfg.Shards, id) {
		return true
	}
	for _, shards := range e.cfg.Dedicated {
		if slices.Contains(shards, id) {
			return true
		}
	}
	return false
}

func (e *edit) keyspace(name string) (*Keyspace, error) {
	for i := range e.cfg.Keyspaces {
		if e.cfg.Keyspaces[i].Name == name {
			return &e.cfg.Keyspaces[i], nil
		}
	}
	return nil, &UnknownKeyspaceError{Name: clip(name)}
}

// takes returns nil if the shard takes what is new. Whether it serves the tenant is judged when the topology is made.
func (e *edit) takes(id ShardID) error {
	if err := id.Validate(); err != nil {
		return err
	}
	if !e.has(id) {
		return &UnknownShardError{Shard: id}
	}
	if s := e.cfg.Info[id].State; s != Active {
		return &ShardStateError{Shard: id, State: s}
	}
	return nil
}

func (c AddShard) apply(e *edit) error {
	if err := c.Shard.Validate(); err != nil {
		return err
	}
	if e.has(c.Shard) {
		return &DuplicateShardError{Shard: c.Shard}
	}
	if c.Tenant == "" {
		e.cfg.Shards = append(e.cfg.Shards, c.Shard)
	} else {
		e.cfg.Dedicated[c.Tenant] = append(e.cfg.Dedicated[c.Tenant], c.Shard)
	}
	e.cfg.Info[c.Shard] = c.Info
	return c.Info.validate(c.Shard)
}

func (c SetShard) apply(e *edit) error {
	if !e.has(c.Shard) {
		return &UnknownShardError{Shard: c.Shard}
	}
	e.cfg.Info[c.Shard] = c.Info
	return c.Info.validate(c.Shard)
}

func (c RemoveShard) apply(e *edit) error {
	if !e.has(c.Shard) {
		return &UnknownShardError{Shard: c.Shard}
	}
	used := &ShardInUseError{Shard: c.Shard}
	for _, shard := range e.pins {
		if shard == c.Shard {
			used.Pins++
		}
	}
	for _, shard := range e.rooms {
		if shard == c.Shard {
			used.Rooms++
		}
	}
	for _, k := range e.cfg.Keyspaces {
		for _, s := range k.Splits {
			if s.Shard == c.Shard {
				used.Ranges++
			}
		}
	}
	if used.Pins+used.Rooms+used.Ranges > 0 {
		return used
	}
	other := func(s ShardID) bool { return s != c.Shard }
	e.cfg.Shards = keep(e.cfg.Shards, other)
	for tenant, shards := range e.cfg.Dedicated {
		if slices.Contains(shards, c.Shard) {
			e.cfg.Dedicated[tenant] = keep(shards, other)
		}
	}
	delete(e.cfg.Info, c.Shard)
	return nil
}

func (c PutKeyspace) apply(e *edit) error {
	k := c.Keyspace.clone().withDefaults()
	old, err := e.keyspace(k.Name)
	if err != nil {
		e.cfg.Keyspaces = append(e.cfg.Keyspaces, k)
		return nil
	}
	if k.Strategy == StrategySlots && old.Strategy == StrategySlots && len(k.Slots) == 0 {
		k.Slots = old.Slots
	}
	// Rows that may be on two shards stay so whatever else is said of the keyspace.
	k.Moving = old.Moving
	*old = k
	return nil
}

func (c SetMoving) apply(e *edit) error {
	k, err := e.keyspace(c.Keyspace)
	if err == nil {
		k.Moving = c.Moving
	}
	return err
}

// reshape changes the ranges of a keyspace for one set of shards.
func (e *edit) reshape(keyspace, tenant string, change func(*Range) (*Range, error)) error {
	k, err := e.keyspace(keyspace)
	if err != nil {
		return err
	}
	if k.Strategy != StrategyRange {
		return &SplitError{Reason: fmt.Sprintf("keyspace %q is of the strategy %q", clip(keyspace), clip(k.Strategy))}
	}
	shards := e.cfg.Shards
	if tenant != "" {
		shards = e.cfg.Dedicated[tenant]
	}
	r, err := NewRange(shards, k.Kind, splitsOf(k.Splits, tenant))
	if err != nil {
		return err
	}
	if r, err = change(r); err != nil {
		return err
	}
	k.Splits = keep(k.Splits, func(s Split) bool { return s.Tenant != tenant })
	for _, s := range r.Splits() {
		s.Tenant = tenant
		k.Splits = append(k.Splits, s)
	}
	return nil
}

func (c SplitRange) apply(e *edit) error {
	return e.reshape(c.Keyspace, c.Tenant, func(r *Range) (*Range, error) { return r.Split(c.At, c.Shard) })
}

func (c MergeRange) apply(e *edit) error {
	return e.reshape(c.Keyspace, c.Tenant, func(r *Range) (*Range, error) { return r.Merge(c.At) })
}

func (c PutPin) apply(e *edit) error {
	if err := e.takes(c.Pin.Shard); err != nil {
		return err
	}
	e.pins[placed{c.Pin.Keyspace, c.Pin.Tenant, c.Pin.Key}] = c.Pin.Shard
	return nil
}

func (c DropPin) apply(e *edit) error {
	return drop(e.pins, placed{c.Keyspace, c.Tenant, c.Key})
}

func (c AssignRoom) apply(e *edit) error {
	at := placed{c.Room.Keyspace, c.Room.Tenant, c.Room.Key}
	if shard, there := e.rooms[at]; there && shard == c.Room.Shard {
		return nil
	} else if there {
		now := c.Room
		now.Shard = shard
		return &RoomAssignedError{Room: now}
	}
	e.rooms[at] = c.Room.Shard
	return e.takes(c.Room.Shard)
}

func (c DropRoom) apply(e *edit) error {
	return drop(e.rooms, placed{c.Keyspace, c.Tenant, c.Key})
}

func drop(from map[placed]ShardID, at placed) error {
	if _, there := from[at]; !there {
		return &NotAssignedError{Keyspace: clip(at.keyspace), Tenant: clip(at.tenant), Key: Key(clip(string(at.key)))}
	}
	delete(from, at)
	return nil
}

// persisted is how a change is kept.
type persisted struct {
	Kind   string          `json:"kind"`
	Change json.RawMessage `json:"change"`
}

// MarshalChange returns the change as JSON: its kind and its fields.
func MarshalChange(c Change) ([]byte, error) {
	fields, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("shardrouter: change %s: %w", c.Kind(), err)
	}
	return json.Marshal(persisted{Kind: c.Kind(), Change: fields})
}

// UnmarshalChange reads what [MarshalChange] wrote. A kind or a field that this version does not have is an error: half a
// change is another one.
func UnmarshalChange(data []byte) (Change, error) {
	var p persisted
	if err := strict(data, &p); err != nil {
		return nil, err
	}
	switch p.Kind {
	case AddShard{}.Kind():
		return change[AddShard](p)
	case SetShard{}.Kind():
		return change[SetShard](p)
	case RemoveShard{}.Kind():
		return change[RemoveShard](p)
	case PutKeyspace{}.Kind():
		return change[PutKeyspace](p)
	case SetMoving{}.Kind():
		return change[SetMoving](p)
	case SplitRange{}.Kind():
		return change[SplitRange](p)
	case MergeRange{}.Kind():
		return change[MergeRange](p)
	case PutPin{}.Kind():
		return change[PutPin](p)
	case DropPin{}.Kind():
		return change[DropPin](p)
	case AssignRoom{}.Kind():
		return change[AssignRoom](p)
	case DropRoom{}.Kind():
		return change[DropRoom](p)
	case Rebalance{}.Kind():
		return change[Rebalance](p)
	}
	return nil, fmt.Errorf("shardrouter: unknown kind of change %q: use a version that knows it", clip(p.Kind))
}

func change[C Change](p persisted) (Change, error) {
	var c C
	if err := strict(p.Change, &c); err != nil {
		return nil, err
	}
	return c, nil
}

func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("shardrouter: a change that this version cannot read: %w", err)
	}
	return nil
}

package shardrouter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Epoch is the version of a topology. The first is 1, and it only grows.
type Epoch uint64

// TopologyConfig is what a topology is made of, and what is persisted of it.
type TopologyConfig struct {
	// Epoch is the version, at least 1.
	Epoch Epoch

	// Hash is the name of the hash that places the keys. Empty means [HashName]; any other is refused.
	Hash string

	// Shards are the default shards, in any order. They serve every tenant that has none of its own.
	Shards []ShardID

	// Dedicated are the shards of tenants that have their own. Such a shard serves that tenant alone. May be nil.
	Dedicated map[string][]ShardID

	// Keyspaces are the families of tables, in any order. A topology without any routes nothing.
	Keyspaces []Keyspace

	// Info is what is known of the shards; a shard that it lacks is active, of weight 1, in no zone. May be nil.
	Info map[ShardID]ShardInfo

	// Pins are the keys placed by hand, in any order. May be nil.
	Pins []Pin

	// Rooms are where the rooms are, in any order. May be nil.
	Rooms []Room
}

// Topology says which shard owns which key: a snapshot with its epoch. It is immutable and safe for concurrent use.
// Processes swap it whole, by an atomic pointer, so a call that loads it once sees one epoch throughout.
//
// Owner is a pure function of (topology, keyspace, tenant, key).
type Topology struct {
	epoch     Epoch
	keyspaces []Keyspace // sorted by name, defaults filled in
	byName    map[string]int
	defaults  shardSet
	dedicated map[string]*shardSet
	all       []ShardID // sorted
	wayOf     []int     // wayOf[k] is the placing, in a shardSet, of keyspaces[k]
	info      map[ShardID]ShardInfo
	weighted  map[ShardID]int // the weights over 1; set while the topology is made
	assigned  assignments
}

// shardSet is a set of shards with one placing per way to place that is in use: keyspaces that agree in it share one.
type shardSet struct {
	shards   []ShardID // sorted
	owning   []ShardID // those that own keys: not the joining ones
	placings []placing
}

// NewTopology returns the topology of cfg, and keeps nothing of it.
//
// It returns every problem, joined into one error: [ErrNoEpoch]; [*UnknownHashError]; for each list of shards
// [ErrNoShards], [*InvalidShardError] and [*DuplicateShardError]; [ErrInvalidTenant]; [*SharedShardError] for a shard
// that is both default and dedicated, or dedicated to two tenants; [*InvalidKeyspaceError], [*DuplicateKeyspaceError],
// [*UnknownStrategyError], [*KeyspaceFieldError] and [*VirtualNodesError] for the keyspaces; [*UnknownShardError], [*InvalidShardStateError] and
// [*WeightError] for what is known of the shards. If all that is well, it returns the first problem of the slots and
// splits, with the errors of [SlotsOf] and [NewRange], [ErrNoShards] if all shards of a list are joining, and then every problem of the pins and rooms:
// [*UnknownKeyspaceError], [*AssignmentError], [ErrInvalidTenant], [ErrEmptyKey], [ErrZeroKey], [*InvalidShardError],
// [*UnknownShardError], [*ForeignShardError], [*ShardStateError] for a joining shard, and [*DuplicateKeyError].
func NewTopology(cfg TopologyConfig) (*Topology, error) {
	t := &Topology{
		epoch:     cfg.Epoch,
		byName:    make(map[string]int, len(cfg.Keyspaces)),
		dedicated: make(map[string]*shardSet, len(cfg.Dedicated)),
	}
	var errs []error
	if cfg.Epoch == 0 {
		errs = append(errs, ErrNoEpoch)
	}
	if cfg.Hash != "" && cfg.Hash != HashName {
		errs = append(errs, &UnknownHashError{Hash: clip(cfg.Hash)})
	}
	errs = append(errs, t.addKeyspaces(cfg.Keyspaces)...)
	errs = append(errs, t.addShards(cfg)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := t.place(); err != nil {
		return nil, err
	}
	if err := t.addAssignments(cfg.Pins, cfg.Rooms); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Topology) addKeyspaces(keyspaces []Keyspace) (errs []error) {
	t.keyspaces = make([]Keyspace, len(keyspaces))
	for i, k := range keyspaces {
		t.keyspaces[i] = k.clone().withDefaults()
	}
	slices.SortStableFunc(t.keyspaces, func(a, b Keyspace) int { return strings.Compare(a.Name, b.Name) })
	for i := range t.keyspaces {
		ks := &t.keyspaces[i]
		if !validKeyspace(ks.Name) {
			errs = append(errs, &InvalidKeyspaceError{Name: clip(ks.Name)})
		}
		if _, dup := t.byName[ks.Name]; dup {
			errs = append(errs, &DuplicateKeyspaceError{Name: ks.Name})
		}
		t.byName[ks.Name] = i
		if !slices.Contains(Strategies(), ks.Strategy) {
			errs = append(errs, &UnknownStrategyError{Keyspace: ks.Name, Strategy: clip(ks.Strategy)})
		}
		if ks.Strategy != StrategySlots && len(ks.Slots) > 0 || ks.Strategy != StrategyRange && (len(ks.Splits) > 0 || ks.Kind != "") {
			errs = append(errs, &KeyspaceFieldError{Keyspace: ks.Name, Strategy: ks.Strategy})
		}
		// Checked here as well as by the ring, since a tenant with one shard has none.
		if ks.VirtualNodes < MinVirtualNodes || ks.VirtualNodes > MaxVirtualNodes {
			errs = append(errs, fmt.Errorf("shardrouter: keyspace %q: %w", clip(ks.Name), &VirtualNodesError{VirtualNodes: ks.VirtualNodes, Shards: 1}))
		}
	}
	return errs
}

func (t *Topology) addShards(cfg TopologyConfig) (errs []error) {
	sorted, bad := sortShards(cfg.Shards)
	errs = append(errs, bad...)
	t.defaults.shards = sorted
	claimed := make(map[ShardID]string, len(sorted))
	for _, id := range sorted {
		claimed[id] = ""
	}
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Dedicated)) {
		if !validTenant(tenant) {
			errs = append(errs, fmt.Errorf("shardrouter: dedicated shards of tenant %q: %w", clip(tenant), ErrInvalidTenant))
			continue
		}
		own, bad := sortShards(cfg.Dedicated[tenant])
		for _, err := range bad {
			errs = append(errs, fmt.Errorf("shardrouter: dedicated shards of tenant %q: %w", clip(tenant), err))
		}
		for _, id := range slices.Compact(slices.Clone(own)) {
			if first, taken := claimed[id]; taken {
				errs = append(errs, &SharedShardError{Shard: id, First: first, Second: tenant})
				continue
			}
			claimed[id] = tenant
		}
		t.dedicated[tenant] = &shardSet{shards: own}
	}
	t.all = slices.Sorted(maps.Keys(claimed))
	t.info = maps.Clone(cfg.Info)
	for _, id := range slices.Sorted(maps.Keys(cfg.Info)) {
		if _, known := claimed[id]; !known {
			errs = append(errs, &UnknownShardError{Shard: id})
		}
		if err := cfg.Info[id].validate(id); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// place makes one placing for each pair of a shard set and a distinct way to place.
func (t *Topology) place() error {
	var ways []Keyspace
	for _, ks := range t.keyspaces {
		i := slices.IndexFunc(ways, ks.sameOver)
		if i < 0 {
			i = len(ways)
			ways = append(ways, ks)
		}
		t.wayOf = append(t.wayOf, i)
	}
	build := func(tenant string, set *shardSet) error {
		set.owning = slices.DeleteFunc(slices.Clone(set.shards), func(id ShardID) bool { return t.info[id].State == Joining })
		if len(set.owning) == 0 {
			return fmt.Errorf("every shard is joining: %w", ErrNoShards)
		}
		var errs []error
		for _, ks := range ways {
			p, err := newPlacing(ks, tenant, set.owning, t.weights())
			if err != nil {
				errs = append(errs, fmt.Errorf("keyspace %q: %w", clip(ks.Name), err))
			}
			set.placings = append(set.placings, p)
		}
		return errors.Join(errs...)
	}
	if err := build("", &t.defaults); err != nil {
		return fmt.Errorf("shardrouter: default shards: %w", err)
	}
	for _, tenant := range slices.Sorted(maps.Keys(t.dedicated)) {
		if err := build(tenant, t.dedicated[tenant]); err != nil {
			return fmt.Errorf("shardrouter: dedicated shards of tenant %q: %w", clip(tenant), err)
		}
	}
	return t.noStrayTenants()
}

// noStrayTenants refuses slots and splits for a tenant without shards of its own.
func (t *Topology) noStrayTenants() error {
	for _, ks := range t.keyspaces {
		check := func(tenant string, shard ShardID) error {
			if _, own := t.dedicated[tenant]; tenant != "" && !own {
				return fmt.Errorf("shardrouter: keyspace %q: %w", clip(ks.Name), &ForeignShardError{Shard: shard, Tenant: tenant})
			}
			return nil
		}
		for _, r := range ks.Slots {
			if err := check(r.Tenant, r.Shard); err != nil {
				return err
			}
		}
		for _, s := range ks.Splits {
			if err := check(s.Tenant, s.Shard); err != nil {
				return err
			}
		}
	}
	return nil
}

// weights returns the weights that are not 1.
func (t *Topology) weights() map[ShardID]int {
	if t.weighted == nil {
		t.weighted = make(map[ShardID]int)
		for id, info := range t.info {
			if info.weight() > 1 {
				t.weighted[id] = info.Weight
			}
		}
	}
	return t.weighted
}

// Epoch returns the version.
func (t *Topology) Epoch() Epoch { return t.epoch }

// Hash returns the name of the hash, [HashName].
func (t *Topology) Hash() string { return HashName }

// Shards returns the default shards, sorted, as a copy.
func (t *Topology) Shards() []ShardID { return slices.Clone(t.defaults.shards) }

// AllShards returns the default and all dedicated shards, sorted, as a copy.
func (t *Topology) AllShards() []ShardID { return slices.Clone(t.all) }

// Keyspaces returns the keyspaces with their defaults filled in, sorted by name, as a copy.
func (t *Topology) Keyspaces() []Keyspace {
	all := make([]Keyspace, len(t.keyspaces))
	for i, k := range t.keyspaces {
		all[i] = k.clone()
	}
	return all
}

// Keyspace returns the keyspace of that name with its defaults filled in, as a copy; ok is false if there is none.
func (t *Topology) Keyspace(name string) (k Keyspace, ok bool) {
	i, ok := t.byName[name]
	if !ok {
		return Keyspace{}, false
	}
	return t.keyspaces[i].clone(), true
}

// Info returns what is known of the shard: the zero value, which is an active shard, if nothing is.
func (t *Topology) Info(id ShardID) ShardInfo { return t.info[id] }

// Check returns nil if the shard is there and not down, a [*ShardDownError], which is [ErrShardDown], if it is marked as
// down, and an [*UnknownShardError]. Which shard owns a key does not depend on it: a shard that is down still has its rows.
func (t *Topology) Check(id ShardID) error {
	if !t.Has(id) {
		return &UnknownShardError{Shard: id}
	}
	if t.info[id].State == Down {
		return &ShardDownError{Shard: id, Epoch: t.epoch}
	}
	return nil
}

// Config returns what the topology is made of, as a copy, with the defaults filled in and every list sorted: what is
// persisted. NewTopology of it is an equal topology.
func (t *Topology) Config() TopologyConfig {
	cfg := TopologyConfig{Epoch: t.epoch, Hash: HashName, Shards: t.Shards(), Keyspaces: t.Keyspaces(), Info: maps.Clone(t.info)}
	if len(t.dedicated) > 0 {
		cfg.Dedicated = make(map[string][]ShardID, len(t.dedicated))
		for tenant, set := range t.dedicated {
			cfg.Dedicated[tenant] = slices.Clone(set.shards)
		}
	}
	for _, a := range t.assigned.entries {
		if ks := t.keyspaces[a.keyspace]; ks.Strategy == StrategyRoom {
			cfg.Rooms = append(cfg.Rooms, Room{Tenant: a.tenant, Keyspace: ks.Name, Key: a.key, Shard: a.shard})
		} else {
			cfg.Pins = append(cfg.Pins, Pin{Tenant: a.tenant, Keyspace: ks.Name, Key: a.key, Shard: a.shard})
		}
	}
	return cfg
}

// Has reports whether the shard is one of [Topology.AllShards].
func (t *Topology) Has(id ShardID) bool {
	_, found := slices.BinarySearch(t.all, id)
	return found
}

// Dedicated returns the tenant's own shards, sorted, as a copy; nil when it has none and the default shards serve it.
func (t *Topology) Dedicated(tenant string) []ShardID {
	if set, own := t.dedicated[tenant]; own {
		return slices.Clone(set.shards)
	}
	return nil
}

// Owner returns the shard that owns the key of the tenant in the keyspace: the one that a pin or room names, else one of
// the tenant's own shards when it has some, else one of the default shards. It performs no I/O and does not allocate.
//
// Ownership does not ask whether the shard answers: see [Topology.Check].
//
// It returns [*UnknownKeyspaceError], [ErrInvalidTenant], [ErrEmptyKey], [ErrZeroKey], and a [*RoomNotFoundError], which
// is [ErrRoomNotFound], for a room without a shard, and a [*RangeKeyError] for a key that has no place in a range. It never falls back to a default keyspace or shard.
func (t *Topology) Owner(keyspace, tenant string, key Key) (ShardID, error) {
	k, set, err := t.route(keyspace, tenant)
	if err != nil {
		return "", err
	}
	return t.owner(k, set, tenant, key)
}

// Owners returns the shards that own the keys: len(result) == len(keys), in the same order, and nil for no keys.
//
// Beside the errors of [Topology.Owner] a bad key is a [*KeyError] with its position. On an error nothing is returned.
func (t *Topology) Owners(keyspace, tenant string, keys []Key) ([]ShardID, error) {
	k, set, err := t.route(keyspace, tenant)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	owners := make([]ShardID, len(keys))
	for i, key := range keys {
		if owners[i], err = t.owner(k, set, tenant, key); err != nil {
			return nil, &KeyError{Index: i, Err: err}
		}
	}
	return owners, nil
}

func (t *Topology) owner(k int, set *shardSet, tenant string, key Key) (ShardID, error) {
	if err := key.Validate(); err != nil {
		return "", err
	}
	h := Hash(tenant, key)
	if shard, ok := t.assigned.find(h, k, tenant, key); ok {
		return shard, nil
	}
	shard, err := set.placings[t.wayOf[k]].owner(set.owning, h, tenant, key)
	switch {
	case err == nil:
		return shard, nil
	case t.keyspaces[k].Strategy == StrategyRoom:
		return "", &RoomNotFoundError{Keyspace: t.keyspaces[k].Name, Tenant: clip(tenant), Key: Key(clip(string(key)))}
	}
	return "", fmt.Errorf("shardrouter: keyspace %q: %w", t.keyspaces[k].Name, err)
}

// route returns the index of the keyspace and the shards that serve the tenant.
func (t *Topology) route(keyspace, tenant string) (int, *shardSet, error) {
	k, ok := t.byName[keyspace]
	if !ok {
		return 0, nil, &UnknownKeyspaceError{Name: clip(keyspace)}
	}
	if !validTenant(tenant) {
		return 0, nil, ErrInvalidTenant
	}
	return k, t.set(tenant), nil
}

func (t *Topology) set(tenant string) *shardSet {
	if set, own := t.dedicated[tenant]; own {
		return set
	}
	return &t.defaults
}

// validTenant keeps the hash unambiguous: a NUL byte is what separates tenant and key in it.
func validTenant(tenant string) bool {
	return tenant != "" && strings.IndexByte(tenant, 0) < 0
}

func validKeyspace(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '_')) {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 63
}

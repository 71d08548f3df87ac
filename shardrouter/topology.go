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

// Keyspace is a family of tables that share a shard key.
type Keyspace struct {
	// Name is [a-z][a-z0-9_]{0,62}.
	Name string

	// Strategy is how keys are placed. Empty means "ring", which is the one there is.
	Strategy string

	// VirtualNodes is the number of ring points per shard.
	//
	// Zero means 128; the least is 64.
	VirtualNodes int
}

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
	dedicated map[string]shardSet
	all       []ShardID // sorted
	ringOf    []int     // ringOf[k] is the ring, in a shardSet, of keyspaces[k]
}

// shardSet is a set of shards with one ring per number of virtual nodes in use: keyspaces that agree in it share one.
type shardSet struct {
	shards []ShardID // sorted
	rings  []*Ring   // nil when there is one shard: it owns everything, and thousands of tenants may have just one
}

// NewTopology returns the topology of cfg, and keeps nothing of it.
//
// It returns every problem, joined into one error: [ErrNoEpoch]; [*UnknownHashError]; for each list of shards
// [ErrNoShards], [*InvalidShardError] and [*DuplicateShardError]; [ErrInvalidTenant]; [*SharedShardError] for a shard
// that is both default and dedicated, or dedicated to two tenants; [*InvalidKeyspaceError], [*DuplicateKeyspaceError],
// [*UnknownStrategyError] and [*VirtualNodesError] for the keyspaces.
func NewTopology(cfg TopologyConfig) (*Topology, error) {
	t := &Topology{
		epoch:     cfg.Epoch,
		byName:    make(map[string]int, len(cfg.Keyspaces)),
		dedicated: make(map[string]shardSet, len(cfg.Dedicated)),
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
	if err := t.buildRings(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Topology) addKeyspaces(keyspaces []Keyspace) (errs []error) {
	t.keyspaces = slices.Clone(keyspaces)
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
		if ks.Strategy == "" {
			ks.Strategy = StrategyRing
		}
		if ks.Strategy != StrategyRing {
			errs = append(errs, &UnknownStrategyError{Keyspace: ks.Name, Strategy: clip(ks.Strategy)})
		}
		if ks.VirtualNodes == 0 {
			ks.VirtualNodes = DefaultVirtualNodes
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
		t.dedicated[tenant] = shardSet{shards: own}
	}
	t.all = slices.Sorted(maps.Keys(claimed))
	return errs
}

// buildRings makes one ring for each distinct pair of shard set and number of virtual nodes.
func (t *Topology) buildRings() error {
	var virtualNodes []int
	for _, ks := range t.keyspaces {
		i := slices.Index(virtualNodes, ks.VirtualNodes)
		if i < 0 {
			i = len(virtualNodes)
			virtualNodes = append(virtualNodes, ks.VirtualNodes)
		}
		t.ringOf = append(t.ringOf, i)
	}
	build := func(shards []ShardID) (set shardSet, err error) {
		set.shards = shards
		if len(shards) == 1 {
			return set, nil
		}
		for _, n := range virtualNodes {
			ring, err := NewRing(shards, n)
			if err != nil {
				return set, err
			}
			set.rings = append(set.rings, ring)
		}
		return set, nil
	}
	var err error
	if t.defaults, err = build(t.defaults.shards); err != nil {
		return err
	}
	for tenant, set := range t.dedicated {
		if t.dedicated[tenant], err = build(set.shards); err != nil {
			return fmt.Errorf("shardrouter: dedicated shards of tenant %q: %w", clip(tenant), err)
		}
	}
	return nil
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
func (t *Topology) Keyspaces() []Keyspace { return slices.Clone(t.keyspaces) }

// Has reports whether the shard is one of [Topology.AllShards].
func (t *Topology) Has(id ShardID) bool {
	_, found := slices.BinarySearch(t.all, id)
	return found
}

// Dedicated returns the tenant's own shards, sorted, as a copy; nil when it has none and the default shards serve it.
func (t *Topology) Dedicated(tenant string) []ShardID {
	return slices.Clone(t.dedicated[tenant].shards)
}

// Owner returns the shard that owns the key of the tenant in the keyspace: one of the tenant's own shards when it has
// some, else one of the default shards. It performs no I/O and does not allocate.
//
// It returns [*UnknownKeyspaceError], [ErrInvalidTenant], [ErrEmptyKey] or [ErrZeroKey]. It never falls back to a
// default keyspace or shard.
func (t *Topology) Owner(keyspace, tenant string, key Key) (ShardID, error) {
	shards, ring, err := t.route(keyspace, tenant)
	if err != nil {
		return "", err
	}
	if err := key.Validate(); err != nil {
		return "", err
	}
	if ring == nil {
		return shards[0], nil
	}
	return ring.Owner(tenant, key), nil
}

// Owners returns the shards that own the keys: len(result) == len(keys), in the same order, and nil for no keys.
//
// Beside the errors of [Topology.Owner] a bad key is a [*KeyError] with its position. On an error nothing is returned.
func (t *Topology) Owners(keyspace, tenant string, keys []Key) ([]ShardID, error) {
	shards, ring, err := t.route(keyspace, tenant)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	owners := make([]ShardID, len(keys))
	for i, key := range keys {
		if err := key.Validate(); err != nil {
			return nil, &KeyError{Index: i, Err: err}
		}
		if ring == nil {
			owners[i] = shards[0]
		} else {
			owners[i] = ring.Owner(tenant, key)
		}
	}
	return owners, nil
}

// route returns the shards that serve the tenant, and the ring over them in this keyspace; no ring for a single shard.
func (t *Topology) route(keyspace, tenant string) ([]ShardID, *Ring, error) {
	k, ok := t.byName[keyspace]
	if !ok {
		return nil, nil, &UnknownKeyspaceError{Name: clip(keyspace)}
	}
	if !validTenant(tenant) {
		return nil, nil, ErrInvalidTenant
	}
	set, own := t.dedicated[tenant]
	if !own {
		set = t.defaults
	}
	if set.rings == nil {
		return set.shards, nil, nil
	}
	return set.shards, set.rings[t.ringOf[k]], nil
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

package shardrouter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// config is a topology with everything in it, listed in no order.
func config() shardrouter.TopologyConfig {
	return shardrouter.TopologyConfig{
		Epoch:     7,
		Shards:    []shardrouter.ShardID{"s3", "s1", "s2"},
		Dedicated: map[string][]shardrouter.ShardID{"whale": {"whale-s2", "whale-s1"}, "minnow": {"minnow-s1"}},
		Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild", Strategy: "ring", VirtualNodes: 128}, {Name: "log", VirtualNodes: 256}},
	}
}

func newTopology(t testing.TB, cfg shardrouter.TopologyConfig) *shardrouter.Topology {
	t.Helper()
	topo, err := shardrouter.NewTopology(cfg)
	if err != nil {
		t.Fatalf("NewTopology = %v", err)
	}
	return topo
}

func TestTopology_Accessors(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, config())
	if topo.Epoch() != 7 || topo.Hash() != "fnv1a-mix/1" {
		t.Errorf("Epoch = %d, Hash = %q", topo.Epoch(), topo.Hash())
	}
	for name, c := range map[string]struct {
		get  func() []shardrouter.ShardID
		want string
	}{
		"Shards":            {topo.Shards, "[s1 s2 s3]"},
		"AllShards":         {topo.AllShards, "[minnow-s1 s1 s2 s3 whale-s1 whale-s2]"},
		"Dedicated(whale)":  {func() []shardrouter.ShardID { return topo.Dedicated("whale") }, "[whale-s1 whale-s2]"},
		"Dedicated(minnow)": {func() []shardrouter.ShardID { return topo.Dedicated("minnow") }, "[minnow-s1]"},
	} {
		if got := c.get(); fmt.Sprint(got) != c.want {
			t.Errorf("%s = %v, want %s", name, got, c.want)
		}
		c.get()[0] = "changed"
		if got := c.get(); fmt.Sprint(got) != c.want {
			t.Errorf("%s = %v after a copy changed, want %s", name, got, c.want)
		}
	}
	if got := topo.Dedicated("acme"); got != nil {
		t.Errorf("Dedicated(acme) = %v, want nil", got)
	}
	want := []shardrouter.Keyspace{
		{Name: "guild", Strategy: "ring", VirtualNodes: 128}, {Name: "log", Strategy: "ring", VirtualNodes: 256}, {Name: "player", Strategy: "ring", VirtualNodes: 128},
	}
	if got := topo.Keyspaces(); !slices.EqualFunc(got, want, shardrouter.Keyspace.Equal) {
		t.Errorf("Keyspaces = %v, want %v", got, want)
	}
	topo.Keyspaces()[0].Name = "changed"
	if got := topo.Keyspaces(); !slices.EqualFunc(got, want, shardrouter.Keyspace.Equal) {
		t.Errorf("Keyspaces = %v after a copy changed", got)
	}
	for id, want := range map[shardrouter.ShardID]bool{"s1": true, "whale-s2": true, "minnow-s1": true, "s4": false, "": false, "S1": false} {
		if got := topo.Has(id); got != want {
			t.Errorf("Has(%q) = %v, want %v", id, got, want)
		}
	}
}

func TestTopology_Owner(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, config())
	defaults := newRing(t, names(3), 128)
	fine := newRing(t, names(3), 256)
	whale := newRing(t, []shardrouter.ShardID{"whale-s1", "whale-s2"}, 128)
	differ := 0
	for i := range 2000 {
		key := shardrouter.Key(fmt.Sprint(i + 1))
		for _, c := range []struct {
			keyspace, tenant string
			want             shardrouter.ShardID
		}{
			{"player", "acme", defaults.Owner("acme", key)},
			{"guild", "acme", defaults.Owner("acme", key)},
			{"log", "acme", fine.Owner("acme", key)},
			{"player", "beta", defaults.Owner("beta", key)},
			{"player", "whale", whale.Owner("whale", key)},
			{"player", "minnow", "minnow-s1"},
			{"log", "minnow", "minnow-s1"},
		} {
			if got, err := topo.Owner(c.keyspace, c.tenant, key); err != nil || got != c.want {
				t.Fatalf("Owner(%s, %s, %s) = %q, %v, want %q", c.keyspace, c.tenant, key, got, err, c.want)
			}
		}
		if defaults.Owner("acme", key) != defaults.Owner("beta", key) {
			differ++
		}
	}
	if differ < 1000 {
		t.Errorf("only %d of 2000 equal keys of two tenants lie apart: the tenant is not in the hash", differ)
	}
}

// The one fact that operators and other languages rely on: a few owners, written out.
func TestTopology_GoldenOwners(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, shardrouter.TopologyConfig{Epoch: 1, Shards: names(4), Keyspaces: []shardrouter.Keyspace{{Name: "player"}}})
	var got []string
	for i := range 12 {
		id, err := topo.Owner("player", "acme", shardrouter.Key(fmt.Sprint(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(id))
	}
	if want := "s3 s1 s4 s4 s1 s4 s4 s2 s1 s2 s4 s4"; strings.Join(got, " ") != want {
		t.Errorf("owners of acme's players 1 to 12 = %s, want %s: a change here moves data", strings.Join(got, " "), want)
	}
}

func TestTopology_Owner_S14_Refused(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, config())
	for name, c := range map[string]struct {
		keyspace, tenant string
		key              shardrouter.Key
		want             error
	}{
		"empty key":                  {"player", "acme", "", shardrouter.ErrEmptyKey},
		"zero key":                   {"player", "acme", "0", shardrouter.ErrZeroKey},
		"empty key, dedicated":       {"player", "whale", "", shardrouter.ErrEmptyKey},
		"zero key, dedicated single": {"player", "minnow", "0", shardrouter.ErrZeroKey},
		"no tenant":                  {"player", "", "1", shardrouter.ErrInvalidTenant},
		"tenant with NUL":            {"player", "ac\x00me", "1", shardrouter.ErrInvalidTenant},
	} {
		if got, err := topo.Owner(c.keyspace, c.tenant, c.key); got != "" || !errors.Is(err, c.want) {
			t.Errorf("%s: Owner = %q, %v, want %v", name, got, err, c.want)
		}
		if got, err := topo.Owners(c.keyspace, c.tenant, []shardrouter.Key{"1", c.key}); got != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: Owners = %v, %v, want %v", name, got, err, c.want)
		}
		if got, err := topo.Group(c.keyspace, c.tenant, []shardrouter.Key{"1", c.key}); got != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: Group = %v, %v, want %v", name, got, err, c.want)
		}
	}
	for _, keyspace := range []string{"", "Player", "player ", "arena"} {
		_, err := topo.Owner(keyspace, "acme", "1")
		var unknown *shardrouter.UnknownKeyspaceError
		if !errors.As(err, &unknown) || unknown.Name != keyspace {
			t.Errorf("Owner(%q) = %v, want an *UnknownKeyspaceError", keyspace, err)
		}
		if _, err := topo.Owners(keyspace, "acme", nil); !errors.As(err, &unknown) {
			t.Errorf("Owners(%q, no keys) = %v, want an *UnknownKeyspaceError", keyspace, err)
		}
	}
	var at *shardrouter.KeyError
	if _, err := topo.Owners("player", "acme", []shardrouter.Key{"1", "2", "0"}); !errors.As(err, &at) || at.Index != 2 {
		t.Errorf("Owners = %v, want a *KeyError at 2", err)
	}
}

func TestTopology_Owners(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, config())
	keys := []shardrouter.Key{"5", "7", "5", "9"}
	for _, tenant := range []string{"acme", "whale", "minnow"} {
		got, err := topo.Owners("player", tenant, keys)
		if err != nil || len(got) != len(keys) {
			t.Fatalf("Owners = %v, %v", got, err)
		}
		for i, key := range keys {
			if want, err := topo.Owner("player", tenant, key); err != nil || got[i] != want {
				t.Errorf("%s: Owners[%d] = %q, want %q, %v", tenant, i, got[i], want, err)
			}
		}
	}
	if got, err := topo.Owners("player", "acme", nil); got != nil || err != nil {
		t.Errorf("Owners of no keys = %v, %v", got, err)
	}
}

func TestNewTopology_Refused(t *testing.T) {
	t.Parallel()
	type cfg = shardrouter.TopologyConfig
	as := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	for name, c := range map[string]struct {
		change func(*cfg)
		want   func(error) bool
	}{
		"no epoch":                 {func(c *cfg) { c.Epoch = 0 }, is(shardrouter.ErrNoEpoch)},
		"S08 other hash":           {func(c *cfg) { c.Hash = "fold/1" }, as(new(*shardrouter.UnknownHashError))},
		"S08 hash, next":           {func(c *cfg) { c.Hash = "fnv1a-mix/2" }, as(new(*shardrouter.UnknownHashError))},
		"no shards":                {func(c *cfg) { c.Shards = nil }, is(shardrouter.ErrNoShards)},
		"duplicate shard":          {func(c *cfg) { c.Shards = append(c.Shards, "s1") }, as(new(*shardrouter.DuplicateShardError))},
		"ill-formed shard":         {func(c *cfg) { c.Shards = append(c.Shards, "s#1") }, is(shardrouter.ErrInvalidShard)},
		"empty shard":              {func(c *cfg) { c.Shards = append(c.Shards, "") }, is(shardrouter.ErrInvalidShard)},
		"dedicated: none":          {func(c *cfg) { c.Dedicated["x"] = nil }, is(shardrouter.ErrNoShards)},
		"dedicated: twice":         {func(c *cfg) { c.Dedicated["x"] = []shardrouter.ShardID{"x1", "x1"} }, as(new(*shardrouter.DuplicateShardError))},
		"dedicated: bad":           {func(c *cfg) { c.Dedicated["x"] = []shardrouter.ShardID{"x/1"} }, is(shardrouter.ErrInvalidShard)},
		"dedicated: default":       {func(c *cfg) { c.Dedicated["x"] = []shardrouter.ShardID{"s1"} }, as(new(*shardrouter.SharedShardError))},
		"dedicated: another":       {func(c *cfg) { c.Dedicated["x"] = []shardrouter.ShardID{"x1", "whale-s1"} }, as(new(*shardrouter.SharedShardError))},
		"dedicated: nobody":        {func(c *cfg) { c.Dedicated[""] = []shardrouter.ShardID{"x1"} }, is(shardrouter.ErrInvalidTenant)},
		"dedicated: NUL":           {func(c *cfg) { c.Dedicated["a\x00"] = []shardrouter.ShardID{"x1"} }, is(shardrouter.ErrInvalidTenant)},
		"keyspace name":            {func(c *cfg) { c.Keyspaces[0].Name = "Player" }, is(shardrouter.ErrInvalidKeyspace)},
		"keyspace no name":         {func(c *cfg) { c.Keyspaces[0].Name = "" }, is(shardrouter.ErrInvalidKeyspace)},
		"keyspace digit":           {func(c *cfg) { c.Keyspaces[0].Name = "1a" }, is(shardrouter.ErrInvalidKeyspace)},
		"keyspace long":            {func(c *cfg) { c.Keyspaces[0].Name = strings.Repeat("a", 64) }, is(shardrouter.ErrInvalidKeyspace)},
		"keyspace quote":           {func(c *cfg) { c.Keyspaces[0].Name = "a`b" }, is(shardrouter.ErrInvalidKeyspace)},
		"keyspace twice":           {func(c *cfg) { c.Keyspaces[0].Name = "guild" }, as(new(*shardrouter.DuplicateKeyspaceError))},
		"strategy":                 {func(c *cfg) { c.Keyspaces[0].Strategy = "maglev" }, as(new(*shardrouter.UnknownStrategyError))},
		"strategy case":            {func(c *cfg) { c.Keyspaces[0].Strategy = "Ring" }, as(new(*shardrouter.UnknownStrategyError))},
		"S03 virtual nodes":        {func(c *cfg) { c.Keyspaces[0].VirtualNodes = 63 }, is(shardrouter.ErrVirtualNodes)},
		"negative":                 {func(c *cfg) { c.Keyspaces[0].VirtualNodes = -1 }, is(shardrouter.ErrVirtualNodes)},
		"too many in all":          {func(c *cfg) { c.Shards, c.Keyspaces[0].VirtualNodes = names(1024), 1<<16 }, is(shardrouter.ErrVirtualNodes)},
		"too many, dedicated":      {func(c *cfg) { c.Dedicated["x"], c.Keyspaces[0].VirtualNodes = prefixed("x", 1024), 1<<16 }, is(shardrouter.ErrVirtualNodes)},
		"virtual nodes, one shard": {func(c *cfg) { c.Shards, c.Dedicated, c.Keyspaces[0].VirtualNodes = names(1), nil, 1 }, is(shardrouter.ErrVirtualNodes)},
	} {
		cfg := config()
		c.change(&cfg)
		topo, err := shardrouter.NewTopology(cfg)
		if topo != nil || err == nil || !c.want(err) {
			t.Errorf("%s: NewTopology = %v, %v", name, topo, err)
		}
	}
}

func prefixed(prefix string, n int) []shardrouter.ShardID {
	out := names(n)
	for i := range out {
		out[i] = shardrouter.ShardID(prefix) + out[i]
	}
	return out
}

func TestNewTopology_AllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	bad := shardrouter.TopologyConfig{
		Hash:      "x/1",
		Shards:    []shardrouter.ShardID{"s1", "s1", "s 2"},
		Dedicated: map[string][]shardrouter.ShardID{"a": {"s1"}, "b": {"x1"}, "c": {"x1"}, "d": {}},
		Keyspaces: []shardrouter.Keyspace{{Name: "A", Strategy: "x", VirtualNodes: 1}, {Name: "p"}, {Name: "p"}},
	}
	_, err := shardrouter.NewTopology(bad)
	if err == nil {
		t.Fatal("NewTopology accepts it")
	}
	for _, want := range []string{
		"no epoch", `hash "x/1"`, `shard "s1" is listed twice`, `invalid shard id "s 2"`, `shard "s1" is one of the default shards and to tenant "a"`,
		`shard "x1" is dedicated to tenant "b" and to tenant "c"`, `tenant "d": shardrouter: no shards`, `keyspace name "A"`, `strategy "x"`, "1 virtual nodes", `keyspace "p" is declared twice`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	for range 20 { // map order must not show
		if _, again := shardrouter.NewTopology(bad); again.Error() != err.Error() {
			t.Fatalf("the error reads differently each time:\n%v\n%v", err, again)
		}
	}
}

func TestNewTopology_A2_OrderAndCopies(t *testing.T) {
	t.Parallel()
	cfg := config()
	topo := newTopology(t, cfg)
	other := config()
	slices.Reverse(other.Shards)
	slices.Reverse(other.Keyspaces)
	slices.Reverse(other.Dedicated["whale"])
	twin := newTopology(t, other)
	// The topology keeps nothing of what it was made from.
	cfg.Shards[0], cfg.Dedicated["whale"][0], cfg.Keyspaces[0].Name = "x", "y", "z"
	delete(cfg.Dedicated, "minnow")
	for i := range 1000 {
		key := shardrouter.Key(fmt.Sprint(i + 1))
		for _, tenant := range []string{"acme", "whale", "minnow"} {
			for _, keyspace := range []string{"player", "guild", "log"} {
				a, err1 := topo.Owner(keyspace, tenant, key)
				b, err2 := twin.Owner(keyspace, tenant, key)
				if a != b || err1 != nil || err2 != nil {
					t.Fatalf("Owner(%s, %s, %s) = %q, %v and %q, %v", keyspace, tenant, key, a, err1, b, err2)
				}
			}
		}
	}
}

func TestNewTopology_WithoutKeyspacesRoutesNothing(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, shardrouter.TopologyConfig{Epoch: 1, Shards: names(3), Dedicated: map[string][]shardrouter.ShardID{"w": {"w1", "w2"}}})
	var unknown *shardrouter.UnknownKeyspaceError
	for _, tenant := range []string{"acme", "w"} {
		if _, err := topo.Owner("player", tenant, "1"); !errors.As(err, &unknown) {
			t.Errorf("Owner = %v, want an *UnknownKeyspaceError", err)
		}
	}
}

func TestTopology_S19_SwapWhileRouting(t *testing.T) {
	t.Parallel()
	// In epoch e the shards are e-s1 to e-s4, so each owner tells its epoch.
	at := func(e shardrouter.Epoch) *shardrouter.Topology {
		return newTopology(t, shardrouter.TopologyConfig{
			Epoch: e, Shards: prefixed(fmt.Sprintf("%d-", e), 4),
			Dedicated: map[string][]shardrouter.ShardID{"whale": prefixed(fmt.Sprintf("%d-w", e), 2)},
			Keyspaces: []shardrouter.Keyspace{{Name: "player"}},
		})
	}
	var current atomic.Pointer[shardrouter.Topology]
	current.Store(at(1))
	snapshots := []*shardrouter.Topology{at(2), at(3), at(4), at(5)}
	var done atomic.Bool
	var lookups atomic.Int64
	var wg sync.WaitGroup
	for reader := range 8 {
		wg.Go(func() {
			for i := 0; !done.Load() || i < 200; i++ {
				topo := current.Load()
				prefix := fmt.Sprintf("%d-", topo.Epoch())
				key := shardrouter.Key(fmt.Sprint(reader*1_000_000 + i + 1))
				for _, tenant := range []string{"acme", "whale"} {
					owner, err := topo.Owner("player", tenant, key)
					if err != nil || !strings.HasPrefix(string(owner), prefix) || !topo.Has(owner) {
						t.Errorf("epoch %d: Owner = %q, %v", topo.Epoch(), owner, err)
						return
					}
				}
				if _, err := topo.Group("player", "acme", []shardrouter.Key{key, "1", "2"}); err != nil {
					t.Errorf("Group = %v", err)
					return
				}
				lookups.Add(1)
			}
		})
	}
	for i := range 1000 {
		current.Store(snapshots[i%len(snapshots)])
	}
	done.Store(true)
	wg.Wait()
	if lookups.Load() < 8*200 {
		t.Errorf("only %d lookups ran", lookups.Load())
	}
}

func TestTopology_OwnerAllocations(t *testing.T) {
	topo := newTopology(t, config())
	ring := newRing(t, names(64), 0)
	for name, call := range map[string]func(){
		"Owner":            func() { _, _ = topo.Owner("player", "acme", "player-1") },
		"Owner, dedicated": func() { _, _ = topo.Owner("player", "whale", "player-1") },
		"Owner, single":    func() { _, _ = topo.Owner("player", "minnow", "player-1") },
		"Owner, zero key":  func() { _, _ = topo.Owner("player", "acme", "0") },
		"Ring.Owner":       func() { _ = ring.Owner("acme", "player-1") },
		"Ring.OwnerBare":   func() { _ = ring.OwnerBare("player-1") },
		"Hash":             func() { _ = shardrouter.Hash("acme", "player-1") },
		"Has":              func() { _ = topo.Has("s2") },
	} {
		if got := testing.AllocsPerRun(100, call); got != 0 {
			t.Errorf("%s: %v allocations, want 0", name, got)
		}
	}
}

// Through the topology every strategy answers as it does by itself, for the default and for a tenant's own shards, and
// without allocating.
func TestTopology_A6_EveryStrategy(t *testing.T) {
	cfg := config()
	cfg.Keyspaces = nil
	for name := range build {
		cfg.Keyspaces = append(cfg.Keyspaces, shardrouter.Keyspace{Name: name, Strategy: name})
	}
	cfg.Keyspaces = append(cfg.Keyspaces, shardrouter.Keyspace{Name: "log", Strategy: "range", Splits: []shardrouter.Split{{Shard: "s2"}, {From: "500", Shard: "s3"}, {Tenant: "whale", Shard: "whale-s2"}}})
	cfg.Info = map[shardrouter.ShardID]shardrouter.ShardInfo{"s2": {Weight: 2}}
	topo := newTopology(t, cfg)
	again := newTopology(t, topo.Config())
	for name := range build {
		for tenant, shards := range map[string][]shardrouter.ShardID{"acme": cfg.Shards, "whale": cfg.Dedicated["whale"]} {
			first, err := build[name](shards, weights{"s2": 2})
			s := must(t, first, err)
			for i := range 500 {
				key := shardrouter.Key(fmt.Sprint(i + 1))
				got, err := topo.Owner(name, tenant, key)
				twin, _ := again.Owner(name, tenant, key)
				if want := s.Owner(tenant, key); got != want || twin != want || err != nil {
					t.Fatalf("%s: Owner(%s, %s) = %q, %v, persisted %q, want %q", name, tenant, key, got, err, twin, want)
				}
			}
			if n := testing.AllocsPerRun(100, func() { _, _ = topo.Owner(name, tenant, "player-1") }); n != 0 {
				t.Errorf("%s: Owner allocates %v times", name, n)
			}
		}
	}
	for key, want := range map[shardrouter.Key]shardrouter.ShardID{"499": "s2", "500": "s3"} {
		if got, err := topo.Owner("log", "acme", key); got != want || err != nil {
			t.Errorf("Owner(log, %s) = %q, %v, want %q", key, got, err, want)
		}
	}
	if got, err := topo.Owner("log", "whale", "700"); got != "whale-s2" || err != nil {
		t.Errorf("the ranges of whale: %q, %v", got, err)
	}
	var notKey *shardrouter.RangeKeyError
	if got, err := topo.Owner("log", "minnow", "x"); got != "" || !errors.As(err, &notKey) {
		t.Errorf("a key that is no integer, one shard: %q, %v", got, err)
	}

	var field *shardrouter.KeyspaceFieldError
	var foreign *shardrouter.ForeignShardError
	for _, c := range []struct {
		k    shardrouter.Keyspace
		want any
	}{
		{shardrouter.Keyspace{Name: "x", Splits: []shardrouter.Split{{Shard: "s1"}}}, &field},
		{shardrouter.Keyspace{Name: "x", Kind: "int"}, &field},
		{shardrouter.Keyspace{Name: "x", Strategy: "range", Slots: []shardrouter.SlotRange{{}}}, &field},
		{shardrouter.Keyspace{Name: "x", Strategy: "range", Splits: []shardrouter.Split{{Shard: "s1"}, {Tenant: "acme", Shard: "s1"}}}, &foreign},
	} {
		bad := config()
		bad.Keyspaces = append(bad.Keyspaces, c.k)
		if topo, err := shardrouter.NewTopology(bad); topo != nil || !errors.As(err, c.want) {
			t.Errorf("%+v: %v, %v", c.k, topo, err)
		}
	}
}

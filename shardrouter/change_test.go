package shardrouter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/shardrouter"
)

func apply(t testing.TB, topo *shardrouter.Topology, changes ...shardrouter.Change) (*shardrouter.Topology, *shardrouter.Plan) {
	t.Helper()
	next, plan, err := topo.Apply(changes...)
	if err != nil {
		t.Fatalf("Apply(%+v) = %v", changes, err)
	}
	if next.Epoch() != topo.Epoch()+1 || plan.From != topo.Epoch() || plan.To != next.Epoch() {
		t.Fatalf("epoch %d after %d, plan %d to %d", next.Epoch(), topo.Epoch(), plan.From, plan.To)
	}
	return next, plan
}

// everyStrategy has a keyspace per strategy, a room and a log, and something placed by hand.
func everyStrategy() shardrouter.TopologyConfig {
	cfg := assignedConfig()
	for name := range build {
		cfg.Keyspaces = append(cfg.Keyspaces, shardrouter.Keyspace{Name: name, Strategy: name})
	}
	cfg.Keyspaces = append(cfg.Keyspaces, shardrouter.Keyspace{Name: "times", Strategy: "range", Splits: []shardrouter.Split{{Shard: "s1"}, {From: "1000", Shard: "s2"}}})
	return cfg
}

// covers reports what the plan says of a key by a table of hashes or single keys.
func covers(p *shardrouter.Plan, keyspace, tenant string, own bool, key shardrouter.Key) (from, to shardrouter.ShardID, moved, known bool) {
	h := shardrouter.Hash(tenant, key)
	for _, m := range p.Moves {
		if m.Keyspace != keyspace {
			continue
		}
		switch m.Kind {
		case shardrouter.MoveKey:
			if m.Tenant == tenant && m.Key == key {
				return m.From, m.To, true, true
			}
		case shardrouter.MoveAll:
			if m.Tenant == tenant || m.Tenant == "" && !own {
				return "", "", false, false
			}
		case shardrouter.MoveHash:
			if (m.Tenant == tenant || m.Tenant == "" && !own) && m.Hash == shardrouter.HashName && m.First <= h && h <= m.Last {
				from, to, moved = m.From, m.To, true
			}
		}
	}
	return from, to, moved, true
}

// The plan says of every key what the two topologies say.
func TestPlan_Property_EqualsOwners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		before := newTopology(t, everyStrategy())
		var changes []shardrouter.Change
		for i := range rapid.IntRange(1, 4).Draw(rt, "changes") {
			switch rapid.IntRange(0, 5).Draw(rt, "change") {
			case 0:
				changes = append(changes, shardrouter.AddShard{Shard: shardrouter.ShardID(fmt.Sprintf("t%d", i)), Info: shardrouter.ShardInfo{Weight: rapid.IntRange(0, 3).Draw(rt, "weight")}})
			case 1:
				changes = append(changes, shardrouter.AddShard{Shard: shardrouter.ShardID(fmt.Sprintf("w%d", i)), Tenant: rapid.SampledFrom([]string{"whale", "minnow", "acme2"}).Draw(rt, "tenant")})
			case 2:
				changes = append(changes, shardrouter.SetShard{Shard: "s2", Info: shardrouter.ShardInfo{Weight: rapid.IntRange(0, 3).Draw(rt, "weight"), State: shardrouter.ShardState(rapid.IntRange(0, 2).Draw(rt, "state"))}})
			case 3:
				changes = append(changes, shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "acme", Keyspace: "player", Key: shardrouter.Key(fmt.Sprint(rapid.IntRange(1, 25).Draw(rt, "pin"))), Shard: "s1"}})
			case 4:
				changes = append(changes, shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "guild", Strategy: rapid.SampledFrom([]string{"ring", "slots", "modulo"}).Draw(rt, "strategy")}})
			case 5:
				changes = append(changes, shardrouter.SetMoving{Keyspace: "player", Moving: true})
			}
		}
		after, plan, err := before.Apply(changes...)
		if err != nil {
			rt.Fatal(err)
		}
		all := after.Keyspaces()
		differs := false
		for _, k := range all {
			for _, tenant := range []string{"acme", "acme2", "whale", "minnow"} {
				own := before.Dedicated(tenant) != nil || after.Dedicated(tenant) != nil
				for i := 1; i <= 25; i++ {
					key := shardrouter.Key(fmt.Sprint(i))
					from, errFrom := before.Owner(k.Name, tenant, key)
					to, errTo := after.Owner(k.Name, tenant, key)
					if (errFrom == nil) != (errTo == nil) {
						rt.Fatalf("%s, %s, %s: %v, then %v", k.Name, tenant, key, errFrom, errTo)
					}
					differs = differs || from != to
					if k.Strategy == "ketama" || k.Strategy == "range" {
						continue
					}
					pFrom, pTo, moved, known := covers(plan, k.Name, tenant, own, key)
					pinned := slices.ContainsFunc(after.Config().Pins, func(p shardrouter.Pin) bool { return p.Tenant == tenant && p.Keyspace == k.Name && p.Key == key })
					if pinned && from == to {
						continue // the run that holds its hash may move, the pin does not
					}
					if known && (moved != (from != to) || moved && (pFrom != from || pTo != to)) {
						rt.Fatalf("%s, %s, %s goes from %q to %q, the plan says %q to %q (%v)", k.Name, tenant, key, from, to, pFrom, pTo, moved)
					}
				}
			}
		}
		if differs && plan.Empty() {
			rt.Fatal("keys move and the plan is empty")
		}
		if plan.Empty() != (plan.Refuse() == nil) {
			rt.Fatal("Refuse and Empty differ")
		}
		again := newTopology(t, after.Config())
		if !reflect.DeepEqual(again.Config(), after.Config()) {
			rt.Fatal("what is persisted comes back otherwise")
		}
	})
}

func TestApply_A12_S15_ModuloIsRefused(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, shardrouter.TopologyConfig{Epoch: 1, Shards: names(4), Keyspaces: []shardrouter.Keyspace{{Name: "m", Strategy: "modulo"}}})
	_, plan := apply(t, topo, shardrouter.AddShard{Shard: "s5"})
	if len(plan.Moves) != 1 || plan.Moves[0].Kind != shardrouter.MoveAll || plan.Share("m", "") < 0.6 {
		t.Errorf("4 to 5 shards: %+v", plan.Moves)
	}
	var needs *shardrouter.NeedsReshardError
	if err := plan.Refuse(); !errors.Is(err, shardrouter.ErrNeedsReshard) || !errors.As(err, &needs) || needs.Plan != plan {
		t.Errorf("Refuse = %v", err)
	}
	if got, want := needs.Error(), `moves 1, the first all keys in keyspace "m"`; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want the end %q", got, want)
	}
	for _, harmless := range []shardrouter.Change{
		shardrouter.AddShard{Shard: "s5", Info: shardrouter.ShardInfo{State: shardrouter.Joining}},
		shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{State: shardrouter.Down, Zone: "b"}},
		shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "new", Strategy: "slots"}},
		shardrouter.AddShard{Shard: "x1", Tenant: "nobody", Info: shardrouter.ShardInfo{}},
	} {
		next, plan, err := topo.Apply(harmless)
		if err != nil || next == nil {
			t.Fatal(err)
		}
		if _, dedicated := harmless.(shardrouter.AddShard); dedicated && harmless.(shardrouter.AddShard).Tenant != "" {
			// The keys that the tenant has, if it has any, leave the default shards.
			if plan.Empty() || plan.Moves[0].Tenant != "nobody" {
				t.Errorf("a tenant's first own shard: %+v", plan.Moves)
			}
			continue
		}
		if !plan.Empty() || plan.Refuse() != nil {
			t.Errorf("%+v moves %+v", harmless, plan.Moves)
		}
	}
}

func TestApply_Slots_B3_SpelledOutAndMinimal(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, shardrouter.TopologyConfig{Epoch: 1, Shards: names(3), Keyspaces: []shardrouter.Keyspace{{Name: "p", Strategy: "slots"}}})
	grown, plan := apply(t, topo, shardrouter.AddShard{Shard: "s0"})
	for _, m := range plan.Moves {
		if m.To != "s0" || m.Kind != shardrouter.MoveHash {
			t.Errorf("adding s0 moves %+v", m)
		}
	}
	if share := plan.Share("p", ""); share < 0.2499 || share > 0.2501 {
		t.Errorf("share %v, want a quarter", share)
	}
	// A weight is for what comes: the slots that are there stay. A draining shard takes none.
	drained, plan := apply(t, grown, shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{State: shardrouter.Draining}}, shardrouter.SetShard{Shard: "s2", Info: shardrouter.ShardInfo{Weight: 5}})
	if !plan.Empty() {
		t.Errorf("draining moves %+v", plan.Moves)
	}
	_, plan = apply(t, drained, shardrouter.RemoveShard{Shard: "s3"})
	if plan.Empty() {
		t.Error("removing s3 moves nothing")
	}
	for _, m := range plan.Moves {
		if m.From != "s3" || m.To == "s1" {
			t.Errorf("removing s3 moves %+v", m)
		}
	}
	var unknown *shardrouter.UnknownShardError
	if _, _, err := topo.Apply(shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "p", Strategy: "slots", Slots: []shardrouter.SlotRange{{Last: 16383, Shard: "s9"}}}}); !errors.As(err, &unknown) {
		t.Errorf("slots for s9: %v", err)
	}
}

func TestApply_A6_Ranges(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, shardrouter.TopologyConfig{Epoch: 1, Shards: names(3), Keyspaces: []shardrouter.Keyspace{{Name: "log", Strategy: "range"}}})
	cut, plan := apply(t, topo, shardrouter.SplitRange{Keyspace: "log", At: "100", Shard: "s2"}, shardrouter.SplitRange{Keyspace: "log", At: "200", Shard: "s3"}, shardrouter.SplitRange{Keyspace: "log", At: "300", Shard: "s1"})
	want := []shardrouter.Move{
		{Kind: "range", Keyspace: "log", Key: "100", End: "200", From: "s1", To: "s2"},
		{Kind: "range", Keyspace: "log", Key: "200", End: "300", From: "s1", To: "s3"},
	}
	if !slices.Equal(plan.Moves, want) {
		t.Errorf("Moves = %+v, want %+v", plan.Moves, want)
	}
	_, plan = apply(t, cut, shardrouter.MergeRange{Keyspace: "log", At: "200"})
	if want := []shardrouter.Move{{Kind: "range", Keyspace: "log", Key: "200", End: "300", From: "s3", To: "s2"}}; !slices.Equal(plan.Moves, want) {
		t.Errorf("Moves = %+v, want %+v", plan.Moves, want)
	}
	// A lesser shard does not become the first range's by being first.
	if _, plan = apply(t, topo, shardrouter.AddShard{Shard: "a"}); !plan.Empty() {
		t.Errorf("a new shard takes %+v", plan.Moves)
	}
	var used *shardrouter.ShardInUseError
	if _, _, err := cut.Apply(shardrouter.RemoveShard{Shard: "s3"}); !errors.As(err, &used) || used.Ranges != 1 {
		t.Errorf("removing s3: %v", err)
	}
}

func TestTopology_A5_S18_Rebalance(t *testing.T) {
	t.Parallel()
	cfg := shardrouter.TopologyConfig{
		Epoch: 4, Shards: names(4), Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "room", Strategy: "room"}},
		Info: map[shardrouter.ShardID]shardrouter.ShardInfo{"s1": {State: shardrouter.Draining}},
		Pins: []shardrouter.Pin{
			{Tenant: "acme", Keyspace: "player", Key: "42", Shard: "s3"}, {Tenant: "acme", Keyspace: "player", Key: "5", Shard: "s3"}, {Tenant: "acme", Keyspace: "player", Key: "6", Shard: "s2"},
		},
		Rooms: []shardrouter.Room{{Tenant: "acme", Keyspace: "room", Key: "7", Shard: "s3"}, {Tenant: "acme", Keyspace: "room", Key: "9", Shard: "s1"}},
	}
	topo := newTopology(t, cfg)
	next, got, err := topo.Rebalance([]shardrouter.ShardID{"s4", "s1", "s2"})
	if err != nil {
		t.Fatal(err)
	}
	ring := newRing(t, []shardrouter.ShardID{"s1", "s2", "s4"}, 0)
	want := []shardrouter.Migration{
		{Kind: "pin", Keyspace: "player", Tenant: "acme", Key: "5", From: "s3", To: ring.Owner("acme", "5")},
		{Kind: "pin", Keyspace: "player", Tenant: "acme", Key: "42", From: "s3", To: ring.Owner("acme", "42")},
		{Kind: "room", Keyspace: "room", Tenant: "acme", Key: "7", From: "s3"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("migrations %+v, want %+v", got, want)
	}
	if _, err := next.Owner("room", "acme", "7"); !errors.Is(err, shardrouter.ErrRoomNotFound) {
		t.Errorf("room 7: %v", err)
	}
	if shard, err := next.Owner("room", "acme", "9"); shard != "s1" || err != nil {
		t.Errorf("room 9 = %q, %v: a draining shard keeps its rooms", shard, err)
	}
	if shard, _ := next.Owner("player", "acme", "6"); shard != "s2" {
		t.Errorf("the pin on s2 is on %q", shard)
	}
	for i := 100; i < 1100; i++ {
		key := shardrouter.Key(fmt.Sprint(i))
		from, _ := topo.Owner("player", "acme", key)
		to, err := next.Owner("player", "acme", key)
		if err != nil || to == "s3" || from != "s3" && from != to {
			t.Fatalf("%s goes from %q to %q, %v", key, from, to, err)
		}
	}
	var state *shardrouter.ShardStateError
	if _, _, err := next.Apply(shardrouter.AssignRoom{Room: shardrouter.Room{Tenant: "acme", Keyspace: "room", Key: "10", Shard: "s1"}}); !errors.As(err, &state) || state.State != shardrouter.Draining {
		t.Errorf("a new room on the draining shard: %v", err)
	}
	if _, _, err := next.Apply(shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "acme", Keyspace: "player", Key: "10", Shard: "s1"}}); !errors.As(err, &state) {
		t.Errorf("a new pin on the draining shard: %v", err)
	}

	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 { // in whatever order things are listed
		rnd.Shuffle(len(cfg.Pins), func(i, j int) { cfg.Pins[i], cfg.Pins[j] = cfg.Pins[j], cfg.Pins[i] })
		rnd.Shuffle(len(cfg.Shards), func(i, j int) { cfg.Shards[i], cfg.Shards[j] = cfg.Shards[j], cfg.Shards[i] })
		active := []shardrouter.ShardID{"s1", "s2", "s4"}
		rnd.Shuffle(len(active), func(i, j int) { active[i], active[j] = active[j], active[i] })
		twin, again, err := newTopology(t, cfg).Rebalance(active)
		if err != nil || !slices.Equal(again, want) || !reflect.DeepEqual(twin.Config(), next.Config()) {
			t.Fatalf("in another order: %+v, %v", again, err)
		}
	}
	if _, got, err := topo.Rebalance(names(4)); err != nil || got != nil {
		t.Errorf("with all shards: %+v, %v", got, err)
	}
	var unknown *shardrouter.UnknownShardError
	var dup *shardrouter.DuplicateShardError
	if _, _, err := topo.Rebalance(nil); !errors.Is(err, shardrouter.ErrNoShards) {
		t.Errorf("no shards: %v", err)
	}
	if _, _, err := topo.Rebalance([]shardrouter.ShardID{"s1", "s9"}); !errors.As(err, &unknown) {
		t.Errorf("unknown shard: %v", err)
	}
	if _, _, err := topo.Rebalance([]shardrouter.ShardID{"s1", "s1"}); !errors.As(err, &dup) {
		t.Errorf("twice: %v", err)
	}
}

func TestApply_A3_A4_PinsAndRooms(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, assignedConfig())
	type pin = shardrouter.Pin
	type room = shardrouter.Room
	here, _ := topo.Owner("player", "acme", "1")
	_, plan := apply(t, topo, shardrouter.PutPin{Pin: pin{"acme", "player", "1", here}})
	if !plan.Empty() {
		t.Errorf("a pin where the key is: %+v", plan.Moves)
	}
	there := shardrouter.ShardID("s1")
	if here == there {
		there = "s2"
	}
	pinned, plan := apply(t, topo, shardrouter.PutPin{Pin: pin{"acme", "player", "1", there}})
	if want := []shardrouter.Move{{Kind: "key", Keyspace: "player", Tenant: "acme", Key: "1", From: here, To: there}}; !slices.Equal(plan.Moves, want) {
		t.Errorf("Moves = %+v, want %+v", plan.Moves, want)
	}
	_, plan = apply(t, pinned, shardrouter.DropPin{Tenant: "acme", Keyspace: "player", Key: "1"})
	if want := []shardrouter.Move{{Kind: "key", Keyspace: "player", Tenant: "acme", Key: "1", From: there, To: here}}; !slices.Equal(plan.Moves, want) {
		t.Errorf("Moves = %+v, want %+v", plan.Moves, want)
	}
	more, plan := apply(t, topo, shardrouter.AssignRoom{Room: room{"acme", "room", "8", "s1"}}, shardrouter.AssignRoom{Room: room{"acme", "room", "7", "s3"}})
	if got, err := more.Owner("room", "acme", "8"); got != "s1" || err != nil || !plan.Empty() {
		t.Errorf("a new room: %q, %v, moves %+v", got, err, plan.Moves)
	}
	_, plan = apply(t, more, shardrouter.DropRoom{Tenant: "acme", Keyspace: "room", Key: "8"})
	if want := []shardrouter.Move{{Kind: "key", Keyspace: "room", Tenant: "acme", Key: "8", From: "s1"}}; !slices.Equal(plan.Moves, want) {
		t.Errorf("Moves = %+v, want %+v", plan.Moves, want)
	}
	if got, want := plan.Refuse().Error(), `moves 1, the first key "8" of tenant "acme" in keyspace "room" from shard "s1" to none`; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want the end %q", got, want)
	}
	for name, c := range map[string]struct {
		change shardrouter.Change
		want   any
	}{
		"another place for a room": {shardrouter.AssignRoom{Room: room{"acme", "room", "7", "s1"}}, new(*shardrouter.RoomAssignedError)},
		"no such pin":              {shardrouter.DropPin{Tenant: "acme", Keyspace: "player", Key: "1"}, new(*shardrouter.NotAssignedError)},
		"no such room":             {shardrouter.DropRoom{Tenant: "acme", Keyspace: "room", Key: "1"}, new(*shardrouter.NotAssignedError)},
		"pin on unknown":           {shardrouter.PutPin{Pin: pin{"acme", "player", "1", "s9"}}, new(*shardrouter.UnknownShardError)},
		"pin on another's":         {shardrouter.PutPin{Pin: pin{"acme", "player", "1", "whale-s1"}}, new(*shardrouter.ForeignShardError)},
		"shard with pins":          {shardrouter.RemoveShard{Shard: "s3"}, new(*shardrouter.ShardInUseError)},
		"shard twice":              {shardrouter.AddShard{Shard: "whale-s1"}, new(*shardrouter.DuplicateShardError)},
		"unknown shard":            {shardrouter.SetShard{Shard: "s9"}, new(*shardrouter.UnknownShardError)},
		"weight":                   {shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{Weight: -1}}, new(*shardrouter.WeightError)},
		"unknown keyspace":         {shardrouter.SetMoving{Keyspace: "x"}, new(*shardrouter.UnknownKeyspaceError)},
		"no ranges":                {shardrouter.MergeRange{Keyspace: "player", At: "1"}, new(*shardrouter.SplitError)},
		"foreign active":           {shardrouter.Rebalance{Active: []shardrouter.ShardID{"whale-s1"}}, new(*shardrouter.ForeignShardError)},
	} {
		if next, plan, err := topo.Apply(c.change); next != nil || plan != nil || !errors.As(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := topo.Apply(shardrouter.RemoveShard{Shard: "minnow-s1"}); !errors.Is(err, shardrouter.ErrNoShards) {
		t.Errorf("a tenant's last shard: %v: the tenant does not fall back to the default shards", err)
	}
}

func TestChange_JSON(t *testing.T) {
	t.Parallel()
	for _, c := range []shardrouter.Change{
		shardrouter.AddShard{Shard: "s1", Tenant: "t", Info: shardrouter.ShardInfo{State: shardrouter.Joining, Zone: "z", Weight: 2}},
		shardrouter.SetShard{Shard: "s1", Info: shardrouter.ShardInfo{State: shardrouter.Down}},
		shardrouter.RemoveShard{Shard: "s1"},
		shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "p", Strategy: "range", Kind: "time", Splits: []shardrouter.Split{{Shard: "s1"}, {From: "2026-01-01", Shard: "s2"}}, Moving: true}},
		shardrouter.SetMoving{Keyspace: "p", Moving: true},
		shardrouter.SplitRange{Keyspace: "p", At: "5", Shard: "s1"},
		shardrouter.MergeRange{Keyspace: "p", Tenant: "t", At: "5"},
		shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "t", Keyspace: "p", Key: "1", Shard: "s1"}},
		shardrouter.DropPin{Tenant: "t", Keyspace: "p", Key: "1"},
		shardrouter.AssignRoom{Room: shardrouter.Room{Tenant: "t", Keyspace: "p", Key: "1", Shard: "s1"}},
		shardrouter.DropRoom{Tenant: "t", Keyspace: "p", Key: "1"},
		shardrouter.Rebalance{Tenant: "t", Active: names(2)},
	} {
		data, err := shardrouter.MarshalChange(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := shardrouter.UnmarshalChange(data)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s comes back as %+v, %v", data, got, err)
		}
	}
	for _, bad := range []string{"", "{}", `{"kind":"explode","change":{}}`, `{"kind":"remove_shard","change":{"shard":"s1","force":true}}`, `{"kind":"set_shard","change":{"shard":"s1","info":{"state":"gone"}}}`} {
		if got, err := shardrouter.UnmarshalChange([]byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, got)
		}
	}
	topo := newTopology(t, everyStrategy())
	_, plan := apply(t, topo, shardrouter.AddShard{Shard: "t1"})
	data, err := json.Marshal(plan)
	var back shardrouter.Plan
	if err != nil || json.Unmarshal(data, &back) != nil || !reflect.DeepEqual(&back, plan) {
		t.Errorf("a plan does not come back from its JSON: %v", err)
	}
}

func TestTopology_Explain(t *testing.T) {
	t.Parallel()
	cfg := everyStrategy()
	cfg.Info = map[shardrouter.ShardID]shardrouter.ShardInfo{"s3": {State: shardrouter.Draining, Zone: "b"}}
	topo := newTopology(t, cfg)
	for _, c := range []struct {
		keyspace, tenant string
		key              shardrouter.Key
		by               string
	}{{"player", "acme", "42", "pin"}, {"room", "acme", "7", "room"}, {"times", "acme", "1500", "range"}, {"slots", "acme", "1", "hash"}, {"player", "minnow", "1", "hash"}} {
		x, err := topo.Explain(c.keyspace, c.tenant, c.key)
		owner, _ := topo.Owner(c.keyspace, c.tenant, c.key)
		if err != nil || x.By != c.by || x.Shard != owner || x.Epoch != 7 || x.Hash != shardrouter.Hash(c.tenant, c.key) || x.Dedicated != (c.tenant == "minnow") {
			t.Errorf("%+v: %+v, %v", c, x, err)
		}
		if c.by == "pin" && (x.State != shardrouter.Draining || x.Zone != "b") || c.by == "range" && (x.Split == nil || x.Split.From != "1000") {
			t.Errorf("%+v", x)
		}
	}
	if _, err := topo.Explain("room", "acme", "8"); !errors.Is(err, shardrouter.ErrRoomNotFound) {
		t.Errorf("a room that is not there: %v", err)
	}
}

func TestMembers_A15_Place(t *testing.T) {
	t.Parallel()
	instances := []string{"10.0.0.3:8080", "10.0.0.1:8080", "10.0.0.2:8080"}
	m, err := shardrouter.NewMembers(instances)
	if err != nil {
		t.Fatal(err)
	}
	grown, err := shardrouter.NewMembers(append(slices.Clone(instances), "10.0.0.4:8080"))
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	seen := map[string]int{}
	for i := 1; i <= 5000; i++ {
		key := shardrouter.Key(fmt.Sprint(i))
		at, err := m.Place("guild", "acme", key)
		if err != nil {
			t.Fatal(err)
		}
		seen[at]++
		if to, _ := grown.Place("guild", "acme", key); to != at {
			moved++
			if to != "10.0.0.4:8080" {
				t.Fatalf("guild %s goes from %s to %s", key, at, to)
			}
		}
	}
	if len(seen) != 3 || moved < 5000*15/100 || moved > 5000*40/100 {
		t.Errorf("%v, %d moved", seen, moved)
	}
	one, err := shardrouter.Place("guild", "acme", "7", []string{instances[2], instances[0], instances[1]})
	if again, _ := m.Place("guild", "acme", "7"); err != nil || one != again {
		t.Errorf("Place = %q, %v, want %q", one, err, again)
	}
	var bad *shardrouter.MemberError
	for _, list := range [][]string{{""}, {"a", "a"}, {"a#1"}} {
		if _, err := shardrouter.NewMembers(list); !errors.As(err, &bad) {
			t.Errorf("%q: %v", list, err)
		}
	}
	if _, err := shardrouter.NewMembers(nil); !errors.Is(err, shardrouter.ErrNoMembers) {
		t.Errorf("none: %v", err)
	}
	if _, err := m.Place("guild", "acme", "0"); !errors.Is(err, shardrouter.ErrZeroKey) {
		t.Errorf("zero key: %v", err)
	}
}

// A keyspace whose rows may be on two shards stays so when it is put anew, and only SetMoving says otherwise.
func TestApply_S43_PutKeyspaceKeepsMoving(t *testing.T) {
	t.Parallel()
	topo := newTopology(t, shardrouter.TopologyConfig{Epoch: 1, Shards: names(2), Keyspaces: []shardrouter.Keyspace{{Name: "player"}}})
	for _, step := range []struct {
		change shardrouter.Change
		want   bool
	}{
		{shardrouter.SetMoving{Keyspace: "player", Moving: true}, true},
		{shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "player", VirtualNodes: 256}}, true},
		{shardrouter.SetMoving{Keyspace: "player"}, false},
		{shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "player", Moving: true}}, false},
	} {
		next, _, err := topo.Apply(step.change)
		if err != nil {
			t.Fatal(err)
		}
		if k, _ := next.Keyspace("player"); k.Moving != step.want {
			t.Errorf("%s: Moving is %v, want %v", step.change.Kind(), k.Moving, step.want)
		}
		topo = next
	}
}

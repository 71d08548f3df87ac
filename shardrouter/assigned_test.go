package shardrouter_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// assignedConfig has pins in player and rooms in room.
func assignedConfig() shardrouter.TopologyConfig {
	cfg := config()
	cfg.Keyspaces = append(cfg.Keyspaces, shardrouter.Keyspace{Name: "room", Strategy: shardrouter.StrategyRoom})
	cfg.Pins = []shardrouter.Pin{{Tenant: "acme", Keyspace: "player", Key: "42", Shard: "s3"}, {Tenant: "whale", Keyspace: "player", Key: "42", Shard: "whale-s2"}}
	cfg.Rooms = []shardrouter.Room{{Tenant: "acme", Keyspace: "room", Key: "7", Shard: "s3"}}
	return cfg
}

func TestTopology_A1_A3_A4_PinsAndRooms(t *testing.T) {
	t.Parallel()
	cfg := assignedConfig()
	plain := newTopology(t, config())
	topo := newTopology(t, cfg)
	for i := 1; i < 2000; i++ {
		key := shardrouter.Key(fmt.Sprint(i))
		want, _ := plain.Owner("player", "acme", key)
		if i == 42 {
			want = "s3"
		}
		if got, err := topo.Owner("player", "acme", key); got != want || err != nil {
			t.Fatalf("Owner(%s) = %q, %v, want %q", key, got, err, want)
		}
	}
	if got, err := topo.Owner("player", "whale", "42"); got != "whale-s2" || err != nil {
		t.Errorf("the pin of whale: %q, %v", got, err)
	}
	if got, err := topo.Owner("room", "acme", "7"); got != "s3" || err != nil {
		t.Errorf("room 7: %q, %v", got, err)
	}
	var notFound *shardrouter.RoomNotFoundError
	for _, tenant := range []string{"other", "whale", "minnow"} { // minnow has one shard: not even then is it guessed
		if got, err := topo.Owner("room", tenant, "7"); got != "" || !errors.Is(err, shardrouter.ErrRoomNotFound) || !errors.As(err, &notFound) {
			t.Errorf("room 7 of %s: %q, %v", tenant, got, err)
		}
	}

	// What is persisted makes the same topology.
	again := newTopology(t, topo.Config())
	if a, b := fmt.Sprint(topo.Config()), fmt.Sprint(again.Config()); a != b {
		t.Errorf("Config changes on the way:\n%s\n%s", a, b)
	}
}

func TestTopology_A3_PinsRefused(t *testing.T) {
	t.Parallel()
	as := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	type pin = shardrouter.Pin
	for name, c := range map[string]struct {
		pin  pin
		want func(error) bool
	}{
		"unknown shard":      {pin{"acme", "player", "1", "s9"}, as(new(*shardrouter.UnknownShardError))},
		"empty shard":        {pin{"acme", "player", "1", ""}, is(shardrouter.ErrInvalidShard)},
		"zero key":           {pin{"acme", "player", "0", "s1"}, is(shardrouter.ErrZeroKey)},
		"empty key":          {pin{"acme", "player", "", "s1"}, is(shardrouter.ErrEmptyKey)},
		"no tenant":          {pin{"", "player", "1", "s1"}, is(shardrouter.ErrInvalidTenant)},
		"keyspace":           {pin{"acme", "nope", "1", "s1"}, as(new(*shardrouter.UnknownKeyspaceError))},
		"another's shard":    {pin{"acme", "player", "1", "whale-s1"}, as(new(*shardrouter.ForeignShardError))},
		"default of a own":   {pin{"whale", "player", "1", "s1"}, as(new(*shardrouter.ForeignShardError))},
		"twice":              {pin{"acme", "player", "42", "s1"}, as(new(*shardrouter.DuplicateKeyError))},
		"pin among rooms":    {pin{"acme", "room", "1", "s1"}, as(new(*shardrouter.AssignmentError))},
		"a shard that joins": {pin{"acme", "player", "1", "s2"}, as(new(*shardrouter.ShardStateError))},
	} {
		cfg := assignedConfig()
		cfg.Info = map[shardrouter.ShardID]shardrouter.ShardInfo{"s2": {State: shardrouter.Joining}}
		cfg.Pins = append(cfg.Pins, c.pin)
		if topo, err := shardrouter.NewTopology(cfg); topo != nil || err == nil || !c.want(err) {
			t.Errorf("%s: %v, %v", name, topo, err)
		}
	}
	cfg := assignedConfig()
	cfg.Rooms = append(cfg.Rooms, shardrouter.Room{Tenant: "acme", Keyspace: "player", Key: "1", Shard: "s1"})
	var notRooms *shardrouter.AssignmentError
	if _, err := shardrouter.NewTopology(cfg); !errors.As(err, &notRooms) || !notRooms.Room {
		t.Errorf("a room among players: %v", err)
	}
}

func TestTopology_States(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.Info = map[shardrouter.ShardID]shardrouter.ShardInfo{"s1": {State: shardrouter.Joining}, "s2": {State: shardrouter.Down, Zone: "z"}, "s3": {State: shardrouter.Draining}}
	topo := newTopology(t, cfg)
	ring := newRing(t, []shardrouter.ShardID{"s2", "s3"}, 0)
	var seen []shardrouter.ShardID
	for i := 1; i < 500; i++ {
		key := shardrouter.Key(fmt.Sprint(i))
		got, err := topo.Owner("player", "acme", key)
		if want := ring.Owner("acme", key); got != want || err != nil {
			t.Fatalf("Owner(%s) = %q, %v, want %q: a joining shard owns nothing, the others what they had", key, got, err, want)
		}
		seen = append(seen, got)
	}
	slices.Sort(seen)
	if got := slices.Compact(seen); len(got) != 2 {
		t.Errorf("owners %v", got)
	}
	var unknown *shardrouter.UnknownShardError
	if err := topo.Check("s2"); !errors.Is(err, shardrouter.ErrShardDown) {
		t.Errorf("Check(s2) = %v", err)
	}
	if err := topo.Check("s3"); err != nil {
		t.Errorf("Check(s3) = %v", err)
	}
	if err := topo.Check("s9"); !errors.As(err, &unknown) {
		t.Errorf("Check(s9) = %v", err)
	}
	if got := topo.Info("s2"); got.Zone != "z" {
		t.Errorf("Info(s2) = %+v", got)
	}
	for id, info := range map[shardrouter.ShardID]shardrouter.ShardInfo{"s9": {}, "s1": {State: 9}, "s2": {Weight: -1}, "s3": {Weight: 1001}} {
		cfg.Info = map[shardrouter.ShardID]shardrouter.ShardInfo{id: info}
		if _, err := shardrouter.NewTopology(cfg); err == nil {
			t.Errorf("%s with %+v is accepted", id, info)
		}
	}
	cfg.Info = map[shardrouter.ShardID]shardrouter.ShardInfo{"s1": {State: 3}, "s2": {State: 3}, "s3": {State: 3}}
	if _, err := shardrouter.NewTopology(cfg); !errors.Is(err, shardrouter.ErrNoShards) {
		t.Errorf("every shard joining: %v", err)
	}
	for s := range shardrouter.ShardState(4) {
		if got, err := shardrouter.ParseShardState(s.String()); got != s || err != nil {
			t.Errorf("ParseShardState(%s) = %v, %v", s, got, err)
		}
	}
	if _, err := shardrouter.ParseShardState("Active"); err == nil {
		t.Error("ParseShardState(Active) is accepted")
	}
}

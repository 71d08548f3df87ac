package dal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
)

// opened opens a store that the test closes.
func opened(tb testing.TB, cfg dal.Config) *dal.Store {
	tb.Helper()
	s, err := dal.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func TestConfig_RoutingIsPersistedAndCompared(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: cluster(t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			cfg.Routing = []shardrouter.Keyspace{{Name: "player", Strategy: shardrouter.StrategySlots}}
			up(t, cfg)
			store := opened(t, cfg)
			if k, ok := store.Topology().Keyspace("player"); !ok || k.Strategy != shardrouter.StrategySlots {
				t.Errorf("the topology has %+v, want slots", k)
			}
			other := cfg
			other.Routing = []shardrouter.Keyspace{{Name: "player", Strategy: shardrouter.StrategyModulo}}
			var mismatch *control.TopologyMismatchError
			if _, err := dal.Open(t.Context(), other); !errors.As(err, &mismatch) || mismatch.What != "keyspace player" {
				t.Errorf("Open with another strategy: got %v, want a *TopologyMismatchError", err)
			}
			if _, err := schema.Up(t.Context(), other, heroes("", "")); !errors.As(err, &mismatch) {
				t.Errorf("Up with another strategy: got %v, want a *TopologyMismatchError", err)
			}
			up(t, cfg)
			if was, is := store.Topology().Epoch(), opened(t, cfg).Topology().Epoch(); was != is {
				t.Errorf("the refusal or the second run made epoch %d of %d", is, was)
			}
		})
	}
}

func TestConfig_A11_RangesOverGrowingIDsAreWarnedOf(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	cfg := dal.Config{
		Cluster: dal.SQLiteCluster(t.TempDir(), 2), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")},
		Routing: []shardrouter.Keyspace{{Name: "player", Strategy: shardrouter.StrategyRange}},
		Logger:  slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	warned := func(what string) {
		t.Helper()
		if got := text.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "keyspace=player") || !strings.Contains(got, "growing integer ids") {
			t.Errorf("%s logged %q, want one warning with the reason", what, got)
		}
		text.Reset()
	}
	up(t, cfg)
	warned("schema.Up")
	opened(t, cfg)
	warned("Open")
	cfg.Cluster.Dir, cfg.Routing[0].Kind = t.TempDir(), shardrouter.TimeRange
	up(t, cfg)
	opened(t, cfg)
	if text.Len() != 0 {
		t.Errorf("ranges of time are warned of: %s", &text)
	}
}

func TestConfig_RoutingThatCannotBe(t *testing.T) {
	t.Parallel()
	slots := shardrouter.Keyspace{Name: "player", Strategy: shardrouter.StrategySlots}
	moving := slots
	moving.Moving = true
	for name, c := range map[string]struct {
		routing []shardrouter.Keyspace
		want    any // of package shardrouter; nil for none
	}{
		"twice":               {[]shardrouter.Keyspace{slots, slots}, nil},
		"of no table":         {[]shardrouter.Keyspace{{Name: "guild"}}, nil},
		"moving":              {[]shardrouter.Keyspace{moving}, nil},
		"an unknown strategy": {[]shardrouter.Keyspace{{Name: "player", Strategy: "dice"}}, new(*shardrouter.UnknownStrategyError)},
		"splits of a ring":    {[]shardrouter.Keyspace{{Name: "player", Splits: []shardrouter.Split{{Shard: "s1"}}}}, new(*shardrouter.KeyspaceFieldError)},
		"a split elsewhere":   {[]shardrouter.Keyspace{{Name: "player", Strategy: shardrouter.StrategyRange, Splits: []shardrouter.Split{{Shard: "s9"}}}}, new(*shardrouter.UnknownShardError)},
		"two virtual nodes":   {[]shardrouter.Keyspace{{Name: "player", VirtualNodes: 2}}, new(*shardrouter.VirtualNodesError)},
	} {
		cfg := dal.Config{Cluster: dal.SQLiteCluster("nowhere", 2), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, Routing: c.routing}
		var bad *dal.RoutingError
		if err := cfg.Validate(); !errors.As(err, &bad) || bad.Keyspace != c.routing[0].Name || c.want != nil && !errors.As(err, c.want) {
			t.Errorf("%s: got %v, want a *RoutingError around %T", name, err, c.want)
		}
	}
}

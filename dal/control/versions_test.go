package control_test

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
)

func TestVersions_RoundTrip(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		if got, targets, err := s.Versions(ctx); err != nil || len(got) != 0 || len(targets) != 0 {
			t.Fatalf("Versions: got %v, %v, %v, want nothing", got, targets, err)
		}
		want := []control.PlaceVersion{
			{Shard: "s1", Set: "game", Version: 3},
			{Shard: "s1", Set: "saga", Version: 0},
			{Shard: "s1", Schema: "t_acme", Set: "game", Version: 2},
			{Shard: "s2", Set: "game", Version: 3},
		}
		for i := len(want) - 1; i >= 0; i-- { // in another order, and with another version first
			v := want[i]
			v.Version += 4
			if err := s.SetVersion(ctx, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range want {
			if err := s.SetVersion(ctx, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range []int64{2, 5, 3, 5} {
			if err := s.SetTarget(ctx, "game", n); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SetTarget(ctx, "saga", 0); err != nil {
			t.Fatal(err)
		}
		got, targets, err := s.Versions(ctx)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("Versions: got %v, %v, want %v", got, err, want)
		}
		if w := map[string]int64{"game": 5, "saga": 0}; !reflect.DeepEqual(targets, w) {
			t.Fatalf("Versions: got targets %v, want %v: a target never shrinks", targets, w)
		}
		for place, want := range map[[2]string][]control.SetVersion{
			{"s1", ""}:       {{Set: "game", Version: 3, Target: 5}, {Set: "saga", Version: 0, Target: 0}},
			{"s1", "t_acme"}: {{Set: "game", Version: 2, Target: 5}, {Set: "saga", Version: -1, Target: 0}},
			{"s9", ""}:       {{Set: "game", Version: -1, Target: 5}, {Set: "saga", Version: -1, Target: 0}},
		} {
			if got, err := s.VersionsAt(ctx, shardrouter.ShardID(place[0]), place[1]); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("VersionsAt(%v): got %v, %v, want %v", place, got, err, want)
			}
		}
	})
}

func TestSetTarget_Concurrent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		initialised(t, b)
		const processes = 5
		var wg sync.WaitGroup
		errs := make([]error, processes)
		for i := range processes {
			s := b.store(t)
			wg.Go(func() {
				for n := range int64(8) {
					errs[i] = errors.Join(errs[i], s.SetTarget(t.Context(), "game", (n*7+int64(i))%10))
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if _, targets, err := b.store(t).Versions(t.Context()); err != nil || targets["game"] != 9 {
			t.Fatalf("Versions: got targets %v, %v, want game at 9", targets, err)
		}
	})
}

func TestVersions_BadArguments(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		for _, set := range []string{"", "Game", "1game", "ga-me", "g`", "a234567890123456789012345678901234"} {
			if err := s.SetTarget(t.Context(), set, 1); err == nil {
				t.Errorf("SetTarget(%q): got nil, want an error", set)
			}
			if err := s.SetVersion(t.Context(), control.PlaceVersion{Shard: "s1", Set: set}); err == nil {
				t.Errorf("SetVersion(%q): got nil, want an error", set)
			}
		}
		if err := s.SetTarget(t.Context(), "game", -1); err == nil {
			t.Error("SetTarget(-1): got nil, want an error")
		}
		for _, v := range []control.PlaceVersion{{Shard: "a b", Set: "game"}, {Shard: "s1", Set: "game", Version: -1}} {
			if err := s.SetVersion(t.Context(), v); err == nil {
				t.Errorf("SetVersion(%+v): got nil, want an error", v)
			}
		}
		b.edit(t, "INSERT INTO tdal_versions (shard, schema_name, set_name, version) VALUES ('s1', '', 'game', -4)")
		_, _, err := s.Versions(t.Context())
		wantIs(t, "Versions", err, control.ErrCorrupt)
	})
}

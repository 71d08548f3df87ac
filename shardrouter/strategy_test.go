package shardrouter_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// bare is what every strategy by hash has beside [shardrouter.Strategy].
type bare interface {
	shardrouter.Strategy
	OwnerBare(key string) shardrouter.ShardID
}

var (
	_ bare = (*shardrouter.Ring)(nil)
	_ bare = (*shardrouter.Modulo)(nil)
	_ bare = (*shardrouter.Ketama)(nil)
	_ bare = (*shardrouter.Rendezvous)(nil)
	_ bare = (*shardrouter.Slots)(nil)
)

type weights = map[shardrouter.ShardID]int

// build makes each strategy by hash over the shards.
var build = map[string]func(shards []shardrouter.ShardID, w weights) (bare, error){
	"ring":       func(s []shardrouter.ShardID, w weights) (bare, error) { return shardrouter.NewWeightedRing(s, 0, w) },
	"modulo":     func(s []shardrouter.ShardID, _ weights) (bare, error) { return shardrouter.NewModulo(s) },
	"ketama":     func(s []shardrouter.ShardID, _ weights) (bare, error) { return shardrouter.NewKetama(s) },
	"rendezvous": func(s []shardrouter.ShardID, w weights) (bare, error) { return shardrouter.NewRendezvous(s, w) },
	"slots":      func(s []shardrouter.ShardID, w weights) (bare, error) { return shardrouter.NewSlots(s, w) },
}

func must(t interface{ Fatal(...any) }, s bare, err error) bare {
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// grow adds a shard the way each strategy does: by its shards, or, for slots, to the table that is there.
func grow(t interface{ Fatal(...any) }, s bare, added shardrouter.ShardID, w weights) bare {
	if slots, ok := s.(*shardrouter.Slots); ok {
		grown, err := slots.AddShard(added, w[added])
		return must(t, grown, err)
	}
	next, err := build[s.Name()](append(s.Shards(), added), w)
	return must(t, next, err)
}

// The file was computed in another language from the definitions in the documentation, so that a change of any strategy
// shows: it would move data.
func TestStrategies_S08_Golden(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/strategies-golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Keys  []string
		Cases []struct {
			Strategy string
			Shards   []shardrouter.ShardID
			Weights  weights
			Added    shardrouter.ShardID // to a table of slots of the other shards
			Owner    []int               // of each key, the index in the sorted shards
		}
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	total, seen := 0, map[string]bool{}
	for _, c := range golden.Cases {
		shards := slices.DeleteFunc(slices.Clone(c.Shards), func(id shardrouter.ShardID) bool { return id == c.Added })
		slices.Reverse(shards)
		first, err := build[c.Strategy](shards, c.Weights)
		s := must(t, first, err)
		if c.Added != "" {
			s = grow(t, s, c.Added, nil)
		}
		sorted := s.Shards()
		for i, key := range golden.Keys {
			if got, want := s.OwnerBare(key), sorted[c.Owner[i]]; got != want {
				t.Errorf("%s over %v (weights %v, added %q): OwnerBare(%q) = %q, want %q", c.Strategy, c.Shards, c.Weights, c.Added, key, got, want)
			}
			total++
		}
		seen[c.Strategy] = true
	}
	if total < 5*1000 || len(seen) != len(build) {
		t.Errorf("%d keys of %v, want 1000 of each strategy", total, seen)
	}
}

// With the tenant in front, the key is the same bytes with a NUL between.
func TestStrategies_OwnerIsOwnerBareOfBoth(t *testing.T) {
	t.Parallel()
	for name, make := range build {
		first, err := make(names(9), weights{"s3": 2})
		s := must(t, first, err)
		if s.Name() != name || !slices.Equal(s.Shards(), slices.Sorted(slices.Values(names(9)))) {
			t.Errorf("%s: Name %q, Shards %v", name, s.Name(), s.Shards())
		}
		for i := range 2000 {
			key := fmt.Sprintf("k%d", i)
			if got, want := s.Owner("acme", shardrouter.Key(key)), s.OwnerBare("acme\x00"+key); got != want {
				t.Fatalf("%s: Owner(acme, %s) = %q, want %q", name, key, got, want)
			}
		}
	}
}

func TestStrategies_Property_S16_A2_B8_OnlyToTheNewShard(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shards := drawShards(t)
		added := shardrouter.ShardID(rapid.StringMatching(`[A-Za-z0-9._-]{9,12}`).Draw(t, "added"))
		w := weights{}
		for _, id := range append(slices.Clone(shards), added) {
			w[id] = rapid.IntRange(0, 4).Draw(t, "weight")
		}
		keys := rapid.SliceOfN(rapid.StringN(1, 20, 60), 1, 60).Draw(t, "keys")
		for _, name := range slices.Sorted(maps.Keys(build)) {
			first, err := build[name](shards, w)
			before := must(t, first, err)
			shuffled := rapid.Permutation(shards).Draw(t, "order")
			first, err = build[name](shuffled, w)
			twin := must(t, first, err)
			after := grow(t, before, added, w)
			for _, key := range keys {
				from, to := before.OwnerBare(key), after.OwnerBare(key)
				if got := twin.OwnerBare(key); got != from {
					t.Fatalf("%s: %q is of %q, and of %q in another order", name, key, from, got)
				}
				if !slices.Contains(shards, from) {
					t.Fatalf("%s: owner %q of %v", name, from, shards)
				}
				if name != "modulo" && from != to && to != added {
					t.Fatalf("%s: adding %q moved %q from %q to %q", name, added, key, from, to)
				}
			}
		}
	})
}

// Three to four shards, as the requirement has it; and eight to nine.
func TestStrategies_A9_S15_S16_Shares(t *testing.T) {
	t.Parallel()
	const keys = 10_000
	for _, n := range []int{3, 8} {
		for name, make := range build {
			first, err := make(names(n), nil)
			before := must(t, first, err)
			added := shardrouter.ShardID(fmt.Sprintf("s%d", n+1))
			after := grow(t, before, added, nil)
			moved := 0
			for i := range keys {
				if key := shardrouter.Key(fmt.Sprintf("player-%09d", i)); before.Owner("acme", key) != after.Owner("acme", key) {
					moved++
				}
			}
			share := float64(moved) / keys
			lo, hi := 0.5/float64(n+1), 2/float64(n+1)
			if n == 3 {
				lo, hi = 0.15, 0.40
			}
			if name == "modulo" {
				lo, hi = 0.6, 1
			}
			if share < lo || share > hi {
				t.Errorf("%s, %d to %d: %.3f of the keys moved, want %.3f to %.3f", name, n, n+1, share, lo, hi)
			}
		}
	}
	for name, make := range build {
		first, err := make(names(4), nil)
		s := must(t, first, err)
		if ratio, empty := spread(names(4), 20_000, func(i int) shardrouter.ShardID {
			return s.Owner("tenant-00017", shardrouter.Key(fmt.Sprintf("player-%09d", i)))
		}); ratio > 1.6 || empty > 0 {
			t.Errorf("%s: max/min %.3f over 4 shards, %d empty", name, ratio, empty)
		}
	}
}

// Ids as text and as they are in memory: with raw FNV-1a as the score, s8 had 4 times the mean.
func TestRendezvous_S02_Even(t *testing.T) {
	t.Parallel()
	first, err := shardrouter.NewRendezvous(names(8), nil)
	s := must(t, first, err)
	const ids = 100_000
	for what, key := range map[string]func(i uint64) string{
		"text":   func(i uint64) string { return fmt.Sprint(i) },
		"memory": func(i uint64) string { return string([]byte{byte(i), byte(i >> 8), byte(i >> 16), 0, 0, 0, 0, 0}) },
	} {
		counts := map[shardrouter.ShardID]int{}
		for i := range uint64(ids) {
			counts[s.OwnerBare(key(i+1))]++
		}
		for id, n := range counts {
			if dev := float64(n)*8/ids - 1; dev < -0.05 || dev > 0.05 || len(counts) != 8 {
				t.Errorf("%s: %s has %d of %d ids", what, id, n, ids)
			}
		}
	}
}

func TestStrategies_S09_SignedIDs(t *testing.T) {
	t.Parallel()
	for name, make := range build {
		first, err := make(names(8), nil)
		s := must(t, first, err)
		want := s.Owner("acme", "-3")
		for _, v := range []any{-3, int32(-3), int64(-3), "-3", []byte("-3")} {
			key, err := shardrouter.KeyOf(v)
			if got := s.Owner("acme", key); err != nil || got != want || !slices.Contains(names(8), got) {
				t.Errorf("%s: %T -3 is of %q, %v, want %q", name, v, got, err, want)
			}
		}
	}
}

func TestStrategies_Weights(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ring", "rendezvous", "slots"} {
		first, err := build[name](names(4), weights{"s2": 3})
		s := must(t, first, err)
		n := 0
		for i := range 60_000 {
			if s.OwnerBare(fmt.Sprint(i)) == "s2" {
				n++
			}
		}
		if share := float64(n) / 60_000; share < 0.42 || share > 0.58 {
			t.Errorf("%s: weight 3 of 6 has %.3f of the keys", name, share)
		}
		var bad *shardrouter.WeightError
		for _, w := range []int{-1, shardrouter.MaxWeight + 1} {
			if _, err := build[name](names(4), weights{"s2": w}); !errors.As(err, &bad) {
				t.Errorf("%s: weight %d: %v", name, w, err)
			}
		}
	}
}

func TestStrategies_S07_Refused(t *testing.T) {
	t.Parallel()
	var dup *shardrouter.DuplicateShardError
	for name, make := range build {
		if _, err := make(nil, nil); !errors.Is(err, shardrouter.ErrNoShards) {
			t.Errorf("%s: no shards: %v", name, err)
		}
		if _, err := make([]shardrouter.ShardID{"a", "a"}, nil); !errors.As(err, &dup) {
			t.Errorf("%s: twice: %v", name, err)
		}
		if _, err := make([]shardrouter.ShardID{"a", "b#1"}, nil); !errors.Is(err, shardrouter.ErrInvalidShard) {
			t.Errorf("%s: ill-formed: %v", name, err)
		}
	}
	slots, err := shardrouter.NewSlots(names(3), nil)
	if err != nil {
		t.Fatal(err)
	}
	var unknown *shardrouter.UnknownShardError
	if _, err := slots.RemoveShard("s9"); !errors.As(err, &unknown) {
		t.Errorf("removing s9: %v", err)
	}
	if _, err := slots.AddShard("s1", 0); !errors.As(err, &dup) {
		t.Errorf("adding s1: %v", err)
	}
}

func slotSizes(s *shardrouter.Slots) map[shardrouter.ShardID]int {
	sizes := map[shardrouter.ShardID]int{}
	for _, id := range s.Shards() {
		sizes[id] = 0
	}
	for _, r := range s.Assignment() {
		sizes[r.Shard] += int(r.Last) - int(r.First) + 1
	}
	return sizes
}

func TestSlots_Property_S16_GrowAndShrink(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, err := shardrouter.NewSlots(names(rapid.IntRange(1, 9).Draw(t, "n")), nil)
		if err != nil {
			t.Fatal(err)
		}
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			before := s
			if n := len(s.Shards()); n > 1 && rapid.Bool().Draw(t, "shrink") {
				gone := rapid.SampledFrom(s.Shards()).Draw(t, "gone")
				if s, err = s.RemoveShard(gone); err != nil {
					t.Fatal(err)
				}
				for _, m := range shardrouter.Diff(before.Ranges(), s.Ranges()) {
					if m.From != gone {
						t.Fatalf("removing %q moves %+v", gone, m)
					}
				}
			} else {
				added := shardrouter.ShardID(fmt.Sprintf("n%d", step))
				if s, err = s.AddShard(added, 0); err != nil {
					t.Fatal(err)
				}
				for _, m := range shardrouter.Diff(before.Ranges(), s.Ranges()) {
					if m.To != added {
						t.Fatalf("adding %q moves %+v", added, m)
					}
				}
			}
			sizes := slices.Sorted(maps.Values(slotSizes(s)))
			if sizes[len(sizes)-1]-sizes[0] > 1 {
				t.Fatalf("sizes %v", sizes)
			}
			again, err := shardrouter.SlotsOf(s.Shards(), nil, s.Assignment())
			if err != nil || !slices.Equal(again.Assignment(), s.Assignment()) {
				t.Fatalf("the assignment does not come back: %v", err)
			}
		}
	})
}

func TestSlotsOf_Refused(t *testing.T) {
	t.Parallel()
	type r = shardrouter.SlotRange
	var bad *shardrouter.SlotsError
	for name, ranges := range map[string][]r{
		"none":    {},
		"gap":     {{First: 0, Last: 9, Shard: "s1"}, {First: 11, Last: 16383, Shard: "s1"}},
		"twice":   {{First: 0, Last: 9, Shard: "s1"}, {First: 9, Last: 16383, Shard: "s1"}},
		"end":     {{First: 0, Last: 16382, Shard: "s1"}},
		"beyond":  {{First: 0, Last: 16384, Shard: "s1"}},
		"inverse": {{First: 0, Last: 9, Shard: "s1"}, {First: 10, Last: 8, Shard: "s1"}},
	} {
		if _, err := shardrouter.SlotsOf(names(2), nil, ranges); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var unknown *shardrouter.UnknownShardError
	if _, err := shardrouter.SlotsOf(names(2), nil, []r{{Last: 16383, Shard: "s9"}}); !errors.As(err, &unknown) {
		t.Errorf("unknown: %v", err)
	}
}

// Diff says of every hash what the two tables say.
func TestDiff_Property_EqualsLookup(t *testing.T) {
	t.Parallel()
	type ranged interface {
		Ranges() []shardrouter.HashRange
		OwnerOfHash(h uint64) shardrouter.ShardID
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func() ranged {
			shards := drawShards(t)
			if rapid.Bool().Draw(t, "slots") {
				s, err := shardrouter.NewSlots(shards, nil)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			r, err := shardrouter.NewRing(shards, 64)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		old, next := draw(), draw()
		next0 := uint64(0)
		for i, r := range old.Ranges() {
			if r.First != next0 || r.Last < r.First || old.OwnerOfHash(r.First) != r.Shard || old.OwnerOfHash(r.Last) != r.Shard {
				t.Fatalf("range %d is %+v", i, r)
			}
			next0 = r.Last + 1
		}
		if next0 != 0 {
			t.Fatal("the ranges do not cover all hashes")
		}
		moves := shardrouter.Diff(old.Ranges(), next.Ranges())
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		hashes := []uint64{0, ^uint64(0)}
		for range 200 {
			hashes = append(hashes, rnd.Uint64())
		}
		for _, m := range moves {
			hashes = append(hashes, m.First-1, m.First, m.Last, m.Last+1)
		}
		for _, h := range hashes {
			i := slices.IndexFunc(moves, func(m shardrouter.RangeMove) bool { return m.First <= h && h <= m.Last })
			from, to := old.OwnerOfHash(h), next.OwnerOfHash(h)
			if (i >= 0) != (from != to) || i >= 0 && (moves[i].From != from || moves[i].To != to) {
				t.Fatalf("hash %x goes from %q to %q, Diff has %d", h, from, to, i)
			}
		}
	})
}

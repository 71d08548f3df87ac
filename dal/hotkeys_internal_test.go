package dal

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// Whatever comes, every bound holds, the weights add up, and what is heavy is there.
func TestSketch_BoundsHold(t *testing.T) {
	t.Parallel()
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a seeded sequence
	zipf := rand.NewZipf(r, 1.2, 1, 5000)
	var s sketch
	truth := map[HotKey]uint64{}
	var total uint64
	for range 100_000 {
		k := HotKey{"a", "player", shardrouter.Key(fmt.Sprint(zipf.Uint64()))}
		w := 1 + r.Uint64N(3)
		s.add(k, w)
		truth[k] += w
		total += w
	}
	if len(s.entries) != hotWatched || len(s.at) != hotWatched {
		t.Fatalf("%d entries, %d in the index, want %d", len(s.entries), len(s.at), hotWatched)
	}
	var sum uint64
	seen := map[HotKey]bool{}
	for i, e := range s.entries {
		sum += e.most
		seen[e.key] = true
		if s.at[e.key] != i {
			t.Errorf("seed %d: %v is at %d, the index says %d", seed, e.key, i, s.at[e.key])
		}
		if n := truth[e.key]; n > e.most || n < e.most-e.over || e.over > total/hotWatched {
			t.Errorf("seed %d: %v weighs %d, said %d to %d of %d", seed, e.key, n, e.most-e.over, e.most, total)
		}
	}
	if sum != total {
		t.Errorf("seed %d: the entries weigh %d, all of it %d", seed, sum, total)
	}
	for k, n := range truth {
		if n > total/hotWatched && !seen[k] {
			t.Errorf("seed %d: %v weighs %d of %d and is not listed", seed, k, n, total)
		}
	}
}

// A key that is watched costs no memory.
func TestHot_NoteAllocatesNothing(t *testing.T) {
	s := &Store{hot: newHot()}
	b := &binding{store: s, db: &database{place: Place{Shard: "s1"}}, keyspace: "player", key: "7"}
	b.tenant.ID = "a"
	s.hot.note(b, 1, 5)
	if n := testing.AllocsPerRun(100, func() { s.hot.note(b, 1, 5) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	got := s.HotKeys("s1")
	if len(got.Statements) != 1 || got.Statements[0] != (HotCount{HotKey{"a", "player", "7"}, 102, 102}) || len(got.Time) != 1 || got.Time[0].Most != 510 || got.Time[0].Least != 510 {
		t.Errorf("%+v", got)
	}
}

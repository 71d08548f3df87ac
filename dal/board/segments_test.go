package board_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
)

// The bounds hold for every player as of the count, are refreshed by age, by a refresher and on demand, and are the tenant's own.
func TestBoard_RankApprox(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, b := open(t, cluster)
		now := time.UnixMicro(1_000_000).UTC()
		cfg := board.Config{Name: "arena", Groups: 8, SegmentsAge: time.Minute, Now: func() time.Time { return now }}
		mine, theirs := opened(t, a, store, cfg), opened(t, b, store, cfg)
		want, random := oracle{}, rand.New(rand.NewPCG(5, 6))
		for i := range 80 {
			e := board.Entry{Player: fmt.Sprint("p", i), Score: random.Int64N(40), At: now}
			want.update(board.Set, e)
			if err := mine.UpdateAt(a, e.Player, e.Score, e.At); err != nil {
				t.Fatal(err)
			}
		}
		if err := theirs.Update(b, "p1", 7); err != nil {
			t.Fatal(err)
		}
		ties := map[int64]int64{}
		for _, e := range want {
			ties[e.Score]++
		}
		for i, e := range want.sorted() {
			got, entry, err := mine.RankApprox(a, e.Player)
			if rank := int64(i + 1); err != nil || entry != e || got.Least > rank || got.Most < rank || got.Most-got.Least > ties[e.Score] {
				t.Errorf("%v: %+v, %v, %v, want rank %d, of %d with its score", e, got, entry, err, rank, ties[e.Score])
			}
		}
		if got, _, err := theirs.RankApprox(b, "p1"); err != nil || got.Least != 1 || got.Most > 2 {
			t.Errorf("the other tenant's: %+v, %v", got, err)
		}

		// New entries do not count until the counts are too old; the player's own entry is read anew.
		counted := now
		for i := range 5 {
			if err := mine.Update(a, fmt.Sprint("new", i), 1000); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Minute)
		got, entry, err := mine.RankApprox(a, "new1")
		if err != nil || got != (board.Bounds{Least: 1, Most: 1, CountedAt: counted, Age: time.Minute}) || entry.Score != 1000 {
			t.Errorf("within the age: %+v, %v, %v", got, entry, err)
		}
		now = now.Add(time.Microsecond)
		if got, _, err = mine.RankApprox(a, "new1"); err != nil || got != (board.Bounds{Least: 1, Most: 6, CountedAt: now}) {
			t.Errorf("beyond the age: %+v, %v", got, err)
		}
		for name, count := range map[string]func() error{
			"CountSegments": func() error { return mine.CountSegments(a) },
			"a refresher":   func() error { return board.RefreshOnce(a, mine) },
		} {
			now = now.Add(time.Second)
			if err := count(); err != nil {
				t.Fatal(err)
			}
			if got, _, err = mine.RankApprox(a, "new1"); err != nil || !got.CountedAt.Equal(now) || got.Age != 0 {
				t.Errorf("after %s: %+v, %v", name, got, err)
			}
		}
		if _, _, err := mine.RankApprox(a, "nobody"); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("nobody: %v", err)
		}
		var other *board.TenantError
		if _, _, err := mine.RankApprox(b, "p1"); !errors.As(err, &other) {
			t.Errorf("under another tenant: %v", err)
		}
		if err := mine.CountSegments(b); !errors.As(err, &other) {
			t.Errorf("counted under another tenant: %v", err)
		}
	})
}

// A cached answer needs the player's shard alone: the others may be without their entries. A count that fails leaves the old counts.
func TestBoard_RankApproxReadsOneRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, a, _ := open(t, dal.SQLiteCluster(dir, 3))
	arena := opened(t, a, store, board.Config{Name: "arena"})
	players := make([]string, 30)
	for i := range players {
		players[i] = fmt.Sprint("p", i)
		if err := arena.Update(a, players[i], int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := arena.CountSegments(a); err != nil {
		t.Fatal(err)
	}
	loseEntriesOf(t, dir, "s1.db")
	answered := 0
	for i, p := range players {
		if got, _, err := arena.RankApprox(a, p); err == nil {
			answered++
			if rank := int64(len(players) - i); got.Least > rank || got.Most < rank {
				t.Errorf("%s: %+v, want rank %d", p, got, rank)
			}
		}
	}
	if answered == 0 || answered == len(players) {
		t.Errorf("%d of %d answered, want those of the other two shards", answered, len(players))
	}
	if err := arena.CountSegments(a); err == nil {
		t.Error("counted without a shard's entries")
	}
}

// Callers at once, some of which find no counts: under -race.
func TestBoard_RankApproxAtOnce(t *testing.T) {
	t.Parallel()
	store, a, _ := world(t)
	arena := opened(t, a, store, board.Config{Name: "arena", SegmentsAge: time.Nanosecond})
	if err := arena.Update(a, "p", 7); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if got, _, err := arena.RankApprox(a, "p"); err != nil || got.Least != 1 || got.Most != 2 {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestConfig_SegmentsAge(t *testing.T) {
	t.Parallel()
	store, a, _ := world(t)
	var bad *board.ConfigError
	if _, err := board.Open(a, store, board.Config{Name: "arena", SegmentsAge: -1}); !errors.As(err, &bad) {
		t.Errorf("a negative age: %v", err)
	}
}

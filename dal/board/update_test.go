package board_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
)

// Callers that update the same new players of new groups at once, through two handles as of two processes: Add is exact, Best keeps the best and of equal ones
// the earliest, and Set keeps one of the updates whole.
func TestBoard_UpdatesOfOnePlayerAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, _ := open(t, cluster)
		const callers, players, each = 8, 4, 6
		for name, mode := range map[string]board.Mode{"set": board.Set, "best": board.Best, "add": board.Add} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cfg := board.Config{Name: name, Groups: 2, Mode: mode}
				boards := []*board.Board{opened(t, a, store, cfg), opened(t, a, store, cfg)}
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() {
						for i := range each {
							for p := range players {
								score := int64(1 + c*each + i)
								if err := boards[c%2].UpdateAt(a, fmt.Sprint("p", p), score, time.UnixMicro(score)); err != nil {
									t.Error(err)
								}
							}
						}
					})
				}
				wg.Wait()
				top, err := boards[0].Top(a, players+1)
				if err != nil || len(top) != players {
					t.Fatalf("top: %v, %v, want %d players", top, err, players)
				}
				const all = callers * each
				for _, e := range top {
					switch mode {
					case board.Set:
						if e.Score != e.At.UnixMicro() || e.Score < 1 || e.Score > all || (e.Score-1)%each != each-1 {
							t.Errorf("set: %v, want one caller's last update as a whole", e)
						}
					case board.Best:
						if e.Score != all || e.At.UnixMicro() != all {
							t.Errorf("best: %v, want %d", e, all)
						}
					case board.Add:
						if e.Score != all*(all+1)/2 {
							t.Errorf("add: %v, want %d", e, all*(all+1)/2)
						}
					}
				}
			})
		}
	})
}

// A worse score, an equal one and an unchanged one end, and change nothing.
func TestBoard_UpdatesThatChangeNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, _ := open(t, cluster)
		at := time.UnixMicro(5).UTC()
		for name, mode := range map[string]board.Mode{"set": board.Set, "best": board.Best, "add": board.Add} {
			arena := opened(t, a, store, board.Config{Name: name, Mode: mode})
			score := int64(3)
			if err := arena.UpdateAt(a, "p", 3, at); err != nil {
				t.Fatal(err)
			}
			if mode == board.Add {
				score = 0
			}
			if err := arena.UpdateAt(a, "p", score, at); err != nil {
				t.Errorf("%s, the same again: %v", name, err)
			}
			if mode == board.Best {
				if err := errors.Join(arena.UpdateAt(a, "p", 2, at), arena.UpdateAt(a, "p", 3, at.Add(time.Second))); err != nil {
					t.Errorf("%s, not better: %v", name, err)
				}
			}
			if _, e, err := arena.Rank(a, "p"); err != nil || e != (board.Entry{Player: "p", Score: 3, At: at}) {
				t.Errorf("%s: %v, %v", name, e, err)
			}
		}
	})
}

// Extreme scores are kept; a sum beyond them is a typed error that changes nothing.
func TestBoard_AddOverflows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, _ := open(t, cluster)
		arena := opened(t, a, store, board.Config{Name: "arena", Mode: board.Add})
		at := time.UnixMicro(5).UTC()
		for player, score := range map[string]int64{"most": math.MaxInt64, "least": math.MinInt64} {
			if err := arena.UpdateAt(a, player, score, at); err != nil {
				t.Fatal(err)
			}
			var over *board.OverflowError
			step := int64(1)
			if score < 0 {
				step = -1
			}
			if err := arena.UpdateAt(a, player, step, at.Add(time.Second)); !errors.As(err, &over) || over.Tenant != "a" || over.Board != "arena" {
				t.Errorf("%s: %v", player, err)
			}
			if _, e, err := arena.Rank(a, player); err != nil || e.Score != score || !e.At.Equal(at) {
				t.Errorf("%s after the overflow: %v, %v", player, e, err)
			}
			if err := arena.UpdateAt(a, player, -step, at); err != nil {
				t.Errorf("%s away from the end: %v", player, err)
			}
		}
	})
}

func TestBoard_Remove(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, b := open(t, cluster)
		cfg := board.Config{Name: "arena", Groups: 4}
		mine, theirs := opened(t, a, store, cfg), opened(t, b, store, cfg)
		if err := mine.Remove(a, "p"); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("from an empty board: %v", err)
		}
		if err := errors.Join(mine.Update(a, "p", 7), mine.Update(a, "q", 6), theirs.Update(b, "p", 5)); err != nil {
			t.Fatal(err)
		}
		if err := mine.Remove(a, "p"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := mine.Rank(a, "p"); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("rank of the removed: %v", err)
		}
		if rank, _, err := mine.Rank(a, "q"); err != nil || rank != 1 {
			t.Errorf("rank of the other: %d, %v", rank, err)
		}
		if err := mine.Remove(a, "p"); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("removed again: %v", err)
		}
		if rank, _, err := theirs.Rank(b, "p"); err != nil || rank != 1 {
			t.Errorf("the other tenant's: %d, %v", rank, err)
		}
		var other *board.TenantError
		if err := mine.Remove(b, "p"); !errors.As(err, &other) {
			t.Errorf("under another tenant: %v", err)
		}
		if err := mine.Update(a, "p", 1); err != nil {
			t.Errorf("back again: %v", err)
		}
	})
}

func TestBoard_UpdateInsideATransaction(t *testing.T) {
	t.Parallel()
	store, a, _ := world(t)
	arena := opened(t, a, store, board.Config{Name: "arena"})
	err := store.Transaction(a, dal.Key(board.Keyspace, "arena/1"), func(ctx context.Context, _ *gorm.DB) error {
		return arena.Update(ctx, "p", 1)
	})
	if !errors.Is(err, dal.ErrNested) {
		t.Errorf("update inside a transaction: %v", err)
	}
}

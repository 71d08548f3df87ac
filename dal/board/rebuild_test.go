package board_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
	"github.com/tenantdal/tenantdal/tenant"
)

// While callers add through two handles, as of two processes, and read, the board is rebuilt several times: every update that was not refused counts once, no
// score that was read ever falls, and no read misses a player.
func TestBoard_RebuildUnderUpdates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, _ := open(t, cluster)
		const players, callers = 12, 4
		cfg := board.Config{Name: "arena", Groups: 4, Keep: 50, Mode: board.Add}
		boards := []*board.Board{opened(t, a, store, cfg), opened(t, a, store, cfg), opened(t, a, store, cfg)}
		var sums [players]atomic.Int64
		for p := range players {
			if err := boards[0].Update(a, fmt.Sprint("p", p), 1); err != nil {
				t.Fatal(err)
			}
			sums[p].Add(1)
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		ended := func() bool {
			select {
			case <-stop:
				return true
			default:
				return false
			}
		}
		var applied, refused, reads atomic.Int64
		for c := range callers {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(9, uint64(c)))
				for !ended() {
					p := random.IntN(players)
					switch err := boards[c%2].Update(a, fmt.Sprint("p", p), int64(c+1)); {
					case err == nil:
						applied.Add(1)
						sums[p].Add(int64(c + 1))
					case errors.Is(err, board.ErrRebuilding):
						refused.Add(1)
					default:
						t.Errorf("update: %v", err)
						return
					}
				}
			})
		}
		wg.Go(func() {
			last := map[string]int64{}
			for !ended() {
				top, err := boards[1].Top(a, 50)
				if err != nil || len(top) != players {
					t.Errorf("top: %v, %v, want %d players", top, err, players)
					return
				}
				for _, e := range top {
					if e.Score < last[e.Player] {
						t.Errorf("%s had %d and has %d", e.Player, last[e.Player], e.Score)
					}
					last[e.Player] = e.Score
				}
				if _, e, err := boards[1].RankApprox(a, "p3"); err != nil || e.Score < last["p3"] {
					t.Errorf("p3 had %d, and RankApprox reads %v, %v", last["p3"], e, err)
				}
				reads.Add(1)
			}
		})
		for _, to := range []struct{ groups, keep int }{{7, 60}, {3, 50}, {8, 70}} {
			before := applied.Load()
			for applied.Load() < before+20 && !t.Failed() { // some in each layout
				if _, err := boards[2].Top(a, 1); err != nil {
					t.Fatal(err)
				}
			}
			if err := boards[2].Rebuild(a, to.groups, to.keep); err != nil {
				t.Errorf("rebuild to %v: %v", to, err)
				break
			}
		}
		close(stop)
		wg.Wait()
		t.Logf("%d updates, %d refused, %d reads", applied.Load(), refused.Load(), reads.Load())
		for _, b := range boards {
			top, err := b.Top(a, 70)
			if err != nil || len(top) != players {
				t.Fatalf("top: %v, %v", top, err)
			}
			for _, e := range top {
				var p int
				if _, err := fmt.Sscanf(e.Player, "p%d", &p); err != nil || e.Score != sums[p].Load() {
					t.Errorf("%v, want %d", e, sums[p].Load())
				}
			}
		}
	})
}

// A group is not closed while an update of it has not ended: not with the one that changes an entry, and not with the one that makes it.
func TestBoard_RebuildWaitsForUpdates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, _ := open(t, cluster)
		for name, mode := range map[string]board.Mode{"set": board.Set, "best": board.Best, "add": board.Add} {
			arena := opened(t, a, store, board.Config{Name: name, Groups: 1, Mode: mode})
			if err := arena.Update(a, "old", 1); err != nil {
				t.Fatal(err)
			}
			for _, player := range []string{"old", "new"} {
				err := board.HeldUpdate(a, arena, player, 2, func(closeGroup func(context.Context) error) {
					ctx, cancel := context.WithTimeout(a, 200*time.Millisecond)
					defer cancel()
					if err := closeGroup(ctx); err == nil {
						t.Errorf("%s: the group was closed while an update of %s was under way", name, player)
					}
				})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

// A rebuild dies before each of its steps in turn. Until it is taken up again reads answer as before and updates are applied or refused; then the board is
// whole in its new groups, and no row of the old ones is left.
func TestBoard_RebuildDiesAnywhere(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, b := open(t, cluster)
		died := 0
		for n := range 30 {
			cfg := board.Config{Name: fmt.Sprint("arena", n), Groups: 3, Keep: 20}
			one, two, theirs := opened(t, a, store, cfg), opened(t, a, store, cfg), opened(t, b, store, cfg)
			want := oracle{}
			for i := range 9 {
				e := board.Entry{Player: fmt.Sprint("p", i), Score: int64(i % 4), At: time.UnixMicro(int64(i)).UTC()}
				want.update(board.Set, e)
				if err := errors.Join(one.UpdateAt(a, e.Player, e.Score, e.At), theirs.UpdateAt(b, e.Player, e.Score, e.At)); err != nil {
					t.Fatal(err)
				}
			}
			err := board.RebuildUntil(a, one, 4, 10, n, -time.Second)
			if err != nil && !errors.Is(err, board.ErrDied) {
				t.Fatalf("step %d: %v", n, err)
			}
			if err != nil {
				died++
			}
			for i := range 9 {
				e := board.Entry{Player: fmt.Sprint("p", i), Score: 10 + int64(i), At: time.UnixMicro(1).UTC()}
				switch err := two.UpdateAt(a, e.Player, e.Score, e.At); {
				case err == nil:
					want.update(board.Set, e)
				case !errors.Is(err, board.ErrRebuilding):
					t.Fatalf("step %d, update: %v", n, err)
				}
			}
			if top, err := two.Top(a, 10); err != nil || !reflect.DeepEqual(top, want.sorted()) {
				t.Fatalf("step %d, before it goes on: %v, %v, want %v", n, top, err, want.sorted())
			}
			if err := two.Rebuild(a, 4, 10); err != nil {
				t.Fatalf("step %d, goes on: %v", n, err)
			}
			for _, h := range []*board.Board{one, two} {
				if top, err := h.Top(a, 10); err != nil || !reflect.DeepEqual(top, want.sorted()) {
					t.Fatalf("step %d, after it: %v, %v, want %v", n, top, err, want.sorted())
				}
				var deep *board.TooDeepError
				if _, err := h.Top(a, 11); !errors.As(err, &deep) || deep.Keep != 10 {
					t.Errorf("step %d: top 11: %v", n, err)
				}
			}
			if rows := entriesOf(t, store, a, cfg.Name); rows != 9 {
				t.Fatalf("step %d: %d rows are left, want 9", n, rows)
			}
			if err := errors.Join(one.Update(a, "p1", 50), two.Remove(a, "p2")); err != nil {
				t.Fatalf("step %d, used again: %v", n, err)
			}
			if top, err := theirs.Top(b, 20); err != nil || len(top) != 9 {
				t.Fatalf("step %d: the other tenant's: %v, %v", n, top, err)
			}
		}
		if died < 15 || died == 30 {
			t.Errorf("%d of 30 died, want one for each step", died)
		}
	})
}

// A rebuild stops before each of its steps in turn, is thought dead, and goes on when another has ended what it began and players were updated, removed and
// added: it brings nothing back.
func TestBoard_RebuildComesBack(t *testing.T) {
	t.Parallel()
	store, a, _ := world(t)
	stopped := 0
	for n := range 30 {
		cfg := board.Config{Name: fmt.Sprint("arena", n), Groups: 3, Keep: 20}
		one, two := opened(t, a, store, cfg), opened(t, a, store, cfg)
		want := oracle{}
		update := func(player string, score int64) {
			e := board.Entry{Player: player, Score: score, At: time.UnixMicro(1).UTC()}
			want.update(board.Set, e)
			if err := one.UpdateAt(a, e.Player, e.Score, e.At); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 9 {
			update(fmt.Sprint("p", i), int64(i))
		}
		err := board.RebuildStopped(a, two, 4, 20, n, func() {
			stopped++
			if err := one.Rebuild(a, 4, 20); err != nil {
				t.Fatalf("step %d: the other: %v", n, err)
			}
			for i := range 3 {
				update(fmt.Sprint("p", i), 100)
				update(fmt.Sprint("new", i), 50)
				gone := fmt.Sprint("p", i+3)
				delete(want, gone)
				if err := one.Remove(a, gone); err != nil {
					t.Fatal(err)
				}
			}
			if n%2 == 1 { // and the board is rebuilt once more
				if err := one.Rebuild(a, 2, 20); err != nil {
					t.Fatalf("step %d: once more: %v", n, err)
				}
			}
		})
		if err != nil && !errors.Is(err, board.ErrRebuilding) {
			t.Errorf("step %d: came back: %v", n, err)
		}
		for _, h := range []*board.Board{one, two} {
			if top, err := h.Top(a, 20); err != nil || !reflect.DeepEqual(top, want.sorted()) {
				t.Fatalf("step %d: %v, %v, want %v", n, top, err, want.sorted())
			}
		}
		if rows := entriesOf(t, store, a, cfg.Name); rows != int64(len(want)) {
			t.Errorf("step %d: %d rows, want %d", n, rows, len(want))
		}
		update("p1", 200)
	}
	if stopped < 15 || stopped == 30 {
		t.Errorf("%d of 30 stopped, want one for each step", stopped)
	}
}

// entriesOf counts the rows of a board on all shards.
func entriesOf(t *testing.T, store *dal.Store, ctx context.Context, name string) (n int64) {
	t.Helper()
	var mu sync.Mutex
	_, err := store.FanOut(ctx, dal.FanOutSpec{Keyspace: board.Keyspace}, func(_ context.Context, _ *dal.ShardRead, db *gorm.DB) error {
		var rows int64
		err := board.EntriesOf(db, name).Count(&rows).Error
		mu.Lock()
		defer mu.Unlock()
		n += rows
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Other numbers are refused while a rebuild has not ended, equal ones while it lives. A Keep alone changes at once.
func TestBoard_RebuildRefusals(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, b := open(t, cluster)
		cfg := board.Config{Name: "arena", Groups: 3, Keep: 20}
		one, two := opened(t, a, store, cfg), opened(t, a, store, cfg)
		var bad *board.ConfigError
		for _, to := range [][2]int{{0, 20}, {3, 0}, {-1, 5}, {board.MaxGroups + 1, 5}} {
			if err := one.Rebuild(a, to[0], to[1]); !errors.As(err, &bad) {
				t.Errorf("to %v: %v", to, err)
			}
		}
		var other *board.TenantError
		if err := one.Rebuild(b, 4, 20); !errors.As(err, &other) {
			t.Errorf("under another tenant: %v", err)
		}
		if err := one.Rebuild(t.Context(), 4, 20); !errors.Is(err, tenant.ErrNoTenant) {
			t.Errorf("without a tenant: %v", err)
		}
		if err := one.Rebuild(a, 3, 20); err != nil {
			t.Errorf("to what it is: %v", err)
		}
		if err := one.Rebuild(a, 3, 30); err != nil {
			t.Errorf("another Keep: %v", err)
		}
		for _, h := range []*board.Board{one, two} {
			if _, err := h.Top(a, 30); err != nil {
				t.Errorf("top 30: %v", err)
			}
		}
		if err := one.Update(a, "p", 1); err != nil {
			t.Fatal(err)
		}
		// One that has the lease stops in the middle of the copy, and lives.
		if err := board.RebuildUntil(a, one, 4, 30, 8, time.Hour); !errors.Is(err, board.ErrDied) {
			t.Fatal(err)
		}
		for _, to := range [][2]int{{4, 30}, {5, 30}, {4, 31}, {3, 30}} {
			var runs *board.RebuildingError
			if err := two.Rebuild(a, to[0], to[1]); !errors.As(err, &runs) || runs.Groups != 4 || runs.Keep != 30 || runs.Tenant != "a" || !errors.Is(err, board.ErrRebuilding) {
				t.Errorf("to %v while one runs to 4, 30: %v", to, err)
			}
		}
		if err := two.Update(a, "p", 2); !errors.Is(err, board.ErrRebuilding) {
			t.Errorf("update: %v", err)
		}
		if err := two.Remove(a, "p"); !errors.Is(err, board.ErrRebuilding) {
			t.Errorf("remove: %v", err)
		}
		if rank, _, err := two.Rank(a, "p"); err != nil || rank != 1 {
			t.Errorf("rank: %d, %v", rank, err)
		}
		var changed *board.GroupsChangedError
		if _, err := board.Open(a, store, board.Config{Name: "arena", Groups: 4, Keep: 30}); !errors.As(err, &changed) {
			t.Errorf("opened with the numbers to come: %v", err)
		}
	})
}

// A rebuild whose context ends gives its lease up: the next one goes on at once.
func TestBoard_RebuildCancelled(t *testing.T) {
	t.Parallel()
	store, a, _ := world(t)
	cfg := board.Config{Name: "arena", Groups: 3, Keep: 20}
	arena := opened(t, a, store, cfg)
	for i := range 5 {
		if err := arena.Update(a, fmt.Sprint("p", i), int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(a)
	if err := board.RebuildCancelled(ctx, arena, 4, 20, 8, cancel); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if err := arena.Rebuild(a, 4, 20); err != nil {
		t.Fatalf("goes on: %v", err)
	}
	if top, err := arena.Top(a, 20); err != nil || len(top) != 5 {
		t.Errorf("top: %v, %v", top, err)
	}
	if _, err := board.Open(a, store, board.Config{Name: "arena", Groups: 4, Keep: 20}); err != nil {
		t.Errorf("opened with the new numbers: %v", err)
	}
}

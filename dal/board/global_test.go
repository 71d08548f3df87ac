package board_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

func TestBoard_Global(t *testing.T) {
	t.Parallel()
	global(t, dal.SQLiteCluster(t.TempDir(), 3))
}

func TestBoard_GlobalOnMariaDB(t *testing.T) {
	t.Parallel()
	global(t, mariaCluster(t, testutil.SharedMariaDB(t, 3)))
}

func TestBoard_GlobalOnPostgres(t *testing.T) {
	t.Parallel()
	global(t, postgresCluster(t, 3))
}

// The materialised board is the best Keep as of its refresh, each tenant's its own; an older refresh does not replace a newer one.
func global(t *testing.T, cluster dal.Cluster) {
	t.Helper()
	store, a, b := open(t, cluster)
	now := time.UnixMicro(1_000_000).UTC()
	cfg := board.Config{Name: "arena", Groups: 16, Keep: 5, Now: func() time.Time { return now }}
	mine, err := board.Open(a, store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := board.Open(b, store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Global(a); !errors.Is(err, board.ErrNeverRefreshed) {
		t.Errorf("before the first refresh: %v", err)
	}
	for i := range 8 {
		if err := mine.Update(a, fmt.Sprint("p\xff", i), int64(i)); err != nil { // not UTF-8
			t.Fatal(err)
		}
	}
	if err := mine.Refresh(a); err != nil {
		t.Fatal(err)
	}
	first := now
	want, err := mine.Top(a, 5)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(3 * time.Second)
	if err := mine.Update(a, "late", 100); err != nil {
		t.Fatal(err)
	}
	got, err := mine.Global(a)
	if err != nil || !reflect.DeepEqual(got, board.Snapshot{Entries: want, ComputedAt: first, Age: 3 * time.Second}) || len(want) != 5 {
		t.Errorf("global: %+v, %v, want %v", got, err, want)
	}
	if _, err := theirs.Global(b); !errors.Is(err, board.ErrNeverRefreshed) {
		t.Errorf("the other tenant's: %v", err)
	}
	if err := mine.Refresh(a); err != nil {
		t.Fatal(err)
	}
	late := now
	now = now.Add(-time.Second) // a refresh that began earlier ends later
	if err := mine.Update(a, "later", 200); err != nil {
		t.Fatal(err)
	}
	if err := mine.Refresh(a); err != nil {
		t.Fatal(err)
	}
	if got, err = mine.Global(a); err != nil || !got.ComputedAt.Equal(late) || got.Entries[0].Player != "late" || got.Age != 0 {
		t.Errorf("after an older refresh: %+v, %v", got, err)
	}
	var other *board.TenantError
	if err := mine.Refresh(b); !errors.As(err, &other) {
		t.Errorf("refreshed under another tenant: %v", err)
	}
	if _, err := mine.Global(b); !errors.As(err, &other) {
		t.Errorf("read under another tenant: %v", err)
	}
}

// A shard without its entries fails the refresh; the board that is stored stays.
func TestBoard_RefreshThatFailsKeepsTheOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, a, _ := open(t, dal.SQLiteCluster(dir, 3))
	arena, err := board.Open(a, store, board.Config{Name: "arena", Keep: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(arena.Update(a, "p", 7), arena.Refresh(a)); err != nil {
		t.Fatal(err)
	}
	before, err := arena.Global(a)
	if err != nil {
		t.Fatal(err)
	}
	loseEntries(t, dir)
	if err := arena.Refresh(a); err == nil {
		t.Error("a refresh without the entries of a shard succeeded")
	}
	after, err := arena.Global(a)
	if err != nil || !after.ComputedAt.Equal(before.ComputedAt) || !reflect.DeepEqual(after.Entries, before.Entries) {
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
}

// loseEntries renames the table of entries in every database file under dir that has one.
func loseEntries(t *testing.T, dir string) {
	t.Helper()
	loseEntriesOf(t, dir, "*")
}

func loseEntriesOf(t *testing.T, dir, pattern string) {
	t.Helper()
	lost := 0
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		db, err := sql.Open("sqlite", f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "ALTER TABLE board_entries RENAME TO lost"); err == nil {
			lost++
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if lost == 0 {
		t.Fatal("no entries found")
	}
}

func TestRefresher_RefreshesAtItsInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		fails := errors.New("a shard is away")
		r := board.RefresherOf(time.Minute, func(ctx context.Context) error {
			if calls.Add(1) == 2 {
				return fails
			}
			return ctx.Err()
		})
		synctest.Wait()
		if n := calls.Load(); n != 0 {
			t.Errorf("%d refreshes before Start", n)
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []error{nil, fails, nil} {
			synctest.Wait()
			if n := calls.Load(); n != int64(i+1) || !errors.Is(r.Err(), want) {
				t.Errorf("after %d minutes: %d refreshes, %v, want %v", i, n, r.Err(), want)
			}
			time.Sleep(time.Minute)
		}
		if err := r.Start(t.Context()); !errors.Is(err, board.ErrStarted) {
			t.Errorf("started twice: %v", err)
		}
		if err := errors.Join(r.Close(t.Context()), r.Close(t.Context())); err != nil {
			t.Error(err)
		}
		ended := calls.Load()
		time.Sleep(time.Hour)
		if n := calls.Load(); n != ended {
			t.Errorf("%d refreshes after Close", n-ended)
		}
	})
}

func TestRefresher_CloseCancelsARefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended error
		r := board.RefresherOf(time.Minute, func(ctx context.Context) error {
			<-ctx.Done()
			ended = ctx.Err()
			return ended
		})
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := r.Close(t.Context()); err != nil || !errors.Is(ended, context.Canceled) {
			t.Errorf("%v, the refresh ended with %v", err, ended)
		}
	})
}

func TestRefresher_Refusals(t *testing.T) {
	t.Parallel()
	store, a, b := world(t)
	arena, err := board.Open(a, store, board.Config{Name: "arena"})
	if err != nil {
		t.Fatal(err)
	}
	var bad *board.ConfigError
	if _, err := board.NewRefresher(arena, 0); !errors.As(err, &bad) {
		t.Errorf("no interval: %v", err)
	}
	r, err := board.NewRefresher(arena, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var other *board.TenantError
	if err := r.Start(b); !errors.As(err, &other) {
		t.Errorf("another tenant: %v", err)
	}
	if err := r.Start(t.Context()); !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("no tenant: %v", err)
	}
	if err := r.Close(a); err != nil {
		t.Errorf("closed without Start: %v", err)
	}
	if err := r.Start(a); !errors.Is(err, board.ErrStarted) {
		t.Errorf("started after Close: %v", err)
	}
}

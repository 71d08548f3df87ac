package dal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func eightShards() (ids []shardrouter.ShardID) {
	for i := range 8 {
		ids = append(ids, shardrouter.ShardID(fmt.Sprint("s", i+1)))
	}
	return ids
}

// One shard of eight holds a connection and never answers: its deadline ends it, the error names it, nothing is left over.
func TestFanOut_S44_OneShardHangs(t *testing.T) {
	t.Parallel()
	for _, partial := range []bool{true, false} {
		g := newGameOn(t, eightShards())
		look := func(_ context.Context, at *dal.ShardRead, db *gorm.DB) error {
			var items []Item
			err := db.Find(&items).Error
			at.Rows += int64(len(items))
			return err
		}
		// Every place is open before the deadline counts.
		if _, err := g.FanOut(g.a, dal.FanOutSpec{Keyspace: "player", Timeout: time.Minute}, look); err != nil {
			t.Fatal(err)
		}
		spec := dal.FanOutSpec{Op: "look", Keyspace: "player", Timeout: 3 * time.Second, Partial: partial}
		report, err := g.FanOut(g.a, spec, func(ctx context.Context, at *dal.ShardRead, db *gorm.DB) error {
			if at.Shard == "s3" {
				rows, err := db.Model(&Item{}).Rows()
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				<-ctx.Done()
				return ctx.Err()
			}
			return look(ctx, at, db)
		})
		var fan *dal.FanOutError
		if !errors.As(err, &fan) || len(fan.Failed) != 1 || !errors.Is(fan.Failed["s3"], context.DeadlineExceeded) || len(fan.Done) != 7 || fan.Op != "look" {
			t.Fatalf("error %v, want s3 alone to have failed by its deadline", err)
		}
		if len(report.Shards) != 8 || report.Epoch != 1 || report.Shards[2].Elapsed < spec.Timeout {
			t.Errorf("report %+v", report)
		}
		for _, id := range g.shards {
			if n, _ := g.Permits("a", id); n != 0 {
				t.Errorf("shard %s: %d connections are still held", id, n)
			}
		}
	}
}

// The first failure cancels those that run, and those whose turn has not come.
func TestFanOut_S44_FirstFailureCancels(t *testing.T) {
	t.Parallel()
	g := newGameOn(t, eightShards())
	broken := errors.New("broken")
	var ready sync.WaitGroup
	ready.Add(2)
	called := make(chan shardrouter.ShardID, 8)
	_, err := g.FanOut(g.a, dal.FanOutSpec{Keyspace: "player", Parallel: 3}, func(ctx context.Context, at *dal.ShardRead, _ *gorm.DB) error {
		called <- at.Shard
		if at.Shard == "s2" {
			ready.Wait()
			return broken
		}
		ready.Done()
		<-ctx.Done()
		return ctx.Err()
	})
	var fan *dal.FanOutError
	if !errors.As(err, &fan) || !errors.Is(err, broken) || len(fan.Failed) != 1 || fan.Failed["s2"] == nil || len(fan.Done) != 0 || len(fan.Cancelled) != 7 || len(called) != 3 {
		t.Errorf("error %v (%d called), want s2 to have failed and seven to be cancelled", err, len(called))
	}
	ctx, cancel := context.WithCancelCause(g.a)
	gone := errors.New("the caller is gone")
	cancel(gone)
	if _, err := g.FanOut(ctx, dal.FanOutSpec{Keyspace: "player"}, func(context.Context, *dal.ShardRead, *gorm.DB) error { return nil }); !errors.Is(err, gone) {
		t.Errorf("the caller ended it: %v", err)
	}
}

func TestFanOut_OnlyReads(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "a")
	_, err := g.FanOut(g.a, dal.FanOutSpec{Keyspace: "player"}, func(ctx context.Context, _ *dal.ShardRead, db *gorm.DB) error {
		for name, err := range map[string]error{
			"create": db.Create(&Item{PlayerID: "7"}).Error, "update": db.Model(&Item{}).Where("qty > 0").Update("qty", 9).Error,
			"delete": db.Where("qty > 0").Delete(&Item{}).Error, "exec": db.Exec("UPDATE items SET qty = 9 WHERE qty > 0").Error,
			"raw":         db.Raw("DELETE FROM items WHERE qty > 0").Scan(&[]Item{}).Error,
			"transaction": db.Transaction(func(tx *gorm.DB) error { return nil }),
		} {
			if !errors.Is(err, dal.ErrReadOnly) {
				t.Errorf("%s: %v, want ErrReadOnly", name, err)
			}
		}
		if _, err := db.DB(); !errors.Is(err, dal.ErrReadOnly) {
			t.Errorf("DB(): %v", err)
		}
		var keyspace *dal.KeyspaceError
		if err := db.Find(&[]Guild{}).Error; !errors.As(err, &keyspace) {
			t.Errorf("another keyspace: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := g.dump(t, "a"); after != before {
		t.Errorf("rows changed: %s", after)
	}
}

// Each tenant sees its own rows, and keys touch the shards that own them alone.
func TestFanOut_KeysAndTenant(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	read := func(ctx context.Context, keys []shardrouter.Key) (ids []tenant.ID, report dal.FanOutReport) {
		var mu sync.Mutex
		report, err := g.FanOut(ctx, dal.FanOutSpec{Keyspace: "player", Keys: keys}, func(_ context.Context, at *dal.ShardRead, db *gorm.DB) error {
			var items []Item
			err := db.Find(&items).Error
			at.Rows += int64(len(items))
			mu.Lock()
			defer mu.Unlock()
			for _, it := range items {
				ids = append(ids, it.TenantID)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids, report
	}
	if ids, report := read(g.a, nil); !slices.Equal(ids, []tenant.ID{"a", "a", "a"}) || len(report.Shards) != 2 || report.Rows() != 3 {
		t.Errorf("rows of %v, report %+v", ids, report)
	}
	if ids, report := read(g.b, []shardrouter.Key{"7", "7"}); !slices.Equal(ids, []tenant.ID{"b", "b", "b"}) || len(report.Shards) != 1 || !slices.Equal(report.Shards[0].Keys, []shardrouter.Key{"7"}) {
		t.Errorf("rows of %v, report %+v", ids, report)
	}
	if ids, report := read(g.b, []shardrouter.Key{}); len(ids) != 0 || len(report.Shards) != 0 {
		t.Errorf("no keys: rows of %v, report %+v", ids, report)
	}
	groups, err := g.Group(g.a, "player", "7", shardrouter.Key(g.keyOn(t, g.other(t))), "7")
	if err != nil || len(groups) != 2 {
		t.Errorf("groups %+v, %v", groups, err)
	}
}

func TestFanOut_Refused(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	try := func(ctx context.Context, spec dal.FanOutSpec) error {
		_, err := g.FanOut(ctx, spec, func(context.Context, *dal.ShardRead, *gorm.DB) error {
			t.Error("called")
			return nil
		})
		return err
	}
	g.refusedAs(t, try(t.Context(), dal.FanOutSpec{Keyspace: "player"}), tenant.ErrNoTenant)
	g.refusedAs(t, try(tenant.NewContext(t.Context(), "sleepy"), dal.FanOutSpec{Keyspace: "player"}), tenant.ErrSuspended)
	g.refusedAs(t, try(g.a, dal.FanOutSpec{Keyspace: "player", Keys: []shardrouter.Key{"0"}}), shardrouter.ErrZeroKey)
	g.refusedAs(t, try(g.a, dal.FanOutSpec{Keyspace: "player", Parallel: -1}), dal.ErrShape)
	var unknown *shardrouter.UnknownKeyspaceError
	if err := try(g.a, dal.FanOutSpec{Keyspace: "nowhere"}); !errors.As(err, &unknown) {
		t.Errorf("unknown keyspace: %v", err)
	}
	err := g.Transaction(g.a, dal.Key("player", "7"), func(ctx context.Context, _ *gorm.DB) error {
		return try(ctx, dal.FanOutSpec{Keyspace: "player"})
	})
	if !errors.Is(err, dal.ErrNested) {
		t.Errorf("inside a transaction: %v", err)
	}
	func() {
		defer func() {
			if p := recover(); p != "of a reader" {
				t.Errorf("recovered %v", p)
			}
		}()
		_, _ = g.FanOut(g.a, dal.FanOutSpec{Keyspace: "player"}, func(context.Context, *dal.ShardRead, *gorm.DB) error { panic("of a reader") })
	}()
}

// A call inside a call that is cancelled says so: it was not whole.
func TestFanOut_InsideAnotherThatIsCancelled(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	broken := errors.New("broken")
	inner := make(chan error, 1)
	began := make(chan struct{})
	_, err := g.FanOut(g.a, dal.FanOutSpec{Keyspace: "player"}, func(ctx context.Context, at *dal.ShardRead, _ *gorm.DB) error {
		if at.Shard == g.shards[0] {
			<-began
			return broken
		}
		_, err := g.FanOut(ctx, dal.FanOutSpec{Keyspace: "player"}, func(ctx context.Context, at *dal.ShardRead, _ *gorm.DB) error {
			if at.Shard == g.shards[0] {
				close(began)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		inner <- err
		return err
	})
	var fan *dal.FanOutError
	if !errors.As(<-inner, &fan) || len(fan.Failed) != len(g.shards) || len(fan.Done) != 0 {
		t.Errorf("the inner call: %v, want every shard to have failed", fan)
	}
	if !errors.As(err, &fan) || !errors.Is(err, broken) || len(fan.Failed) != 1 || len(fan.Cancelled) != 1 || len(fan.Done) != 0 {
		t.Errorf("the outer call: %v, want one shard to have failed and one to be cancelled", err)
	}
}

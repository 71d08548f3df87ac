package cache_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/cache"
	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestCache_T43_TenantsWithEqualKeys(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		c := w.cache(w.store, cache.Config{})
		var wg sync.WaitGroup
		for range 10 { // in flight together, then kept
			for _, id := range []tenant.ID{"a", "b", "c"} {
				wg.Go(func() { w.gold(c, id) })
			}
		}
		wg.Wait()
		before := w.watch.reads.Load()
		for _, id := range []tenant.ID{"a", "b", "c"} {
			w.gold(c, id)
		}
		if n := w.watch.reads.Load() - before; n != 0 {
			w.Errorf("%d reads of rows that are kept", n)
		}
		for name, want := range map[string]struct {
			ctx context.Context
			err error
		}{
			"no tenant":      {w.Context(), tenant.ErrNoTenant},
			"system":         {tenant.System(w.Context(), "a report", "guilds"), tenant.ErrSystemScope},
			"unknown tenant": {w.as("nobody"), tenant.ErrUnknownTenant},
		} {
			if g, err := c.Get(want.ctx, guildKey, 1); !errors.Is(err, want.err) || g.ID != 0 {
				w.Errorf("%s: Get = %+v, %v, want %v", name, g, err, want.err)
			}
		}
		if _, err := c.Get(w.as("a"), guildKey, 2); !errors.Is(err, gorm.ErrRecordNotFound) {
			w.Errorf("Get of no row = %v, want ErrRecordNotFound", err)
		}
	})
}

// Whatever way a write takes, the next Get sees it.
func TestCache_D6_EveryWriteDrops(t *testing.T) {
	t.Parallel()
	writes := map[string]func(ctx context.Context, s *dal.Store) error{
		"Update": func(ctx context.Context, s *dal.Store) error {
			return s.On(ctx, guildKey).Model(&Guild{}).Where("id = ?", 1).Update("gold", gorm.Expr("gold + 1")).Error
		},
		"Save": func(ctx context.Context, s *dal.Store) error {
			var g Guild
			if err := s.On(ctx, guildKey).First(&g, 1).Error; err != nil {
				return err
			}
			g.Gold++
			return s.On(ctx, guildKey).Save(&g).Error
		},
		"Exec": func(ctx context.Context, s *dal.Store) error {
			return s.On(ctx, guildKey).Exec("UPDATE guilds SET gold = gold + 1 WHERE id = ?", 1).Error
		},
		"SkipDefaultTransaction": func(ctx context.Context, s *dal.Store) error {
			return s.On(ctx, guildKey).Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&Guild{}).Where("id = ?", 1).Update("gold", gorm.Expr("gold + 1")).Error
		},
		"Delete and Create": func(ctx context.Context, s *dal.Store) error {
			return s.On(ctx, guildKey).Transaction(func(tx *gorm.DB) error {
				var g Guild
				if err := tx.First(&g, 1).Error; err != nil {
					return err
				}
				g.Gold++
				return errors.Join(tx.Delete(&Guild{}, 1).Error, tx.Create(&g).Error)
			})
		},
		"Store.Transaction": func(ctx context.Context, s *dal.Store) error {
			return s.Transaction(ctx, guildKey, func(ctx context.Context, tx *gorm.DB) error {
				return s.On(ctx, guildKey).Model(&Guild{}).Where("id = ?", 1).Update("gold", gorm.Expr("gold + 1")).Error
			})
		},
		"DB": func(ctx context.Context, s *dal.Store) error {
			db, err := s.On(ctx, guildKey).DB()
			if err != nil {
				return err
			}
			_, err = db.ExecContext(ctx, "UPDATE guilds SET gold = gold + 1 WHERE tenant_id = ? AND id = ?", "a", 1)
			return err
		},
		"transaction of DB": func(ctx context.Context, s *dal.Store) error {
			db, err := s.On(ctx, guildKey).DB()
			if err != nil {
				return err
			}
			tx, err := db.BeginTx(ctx, &sql.TxOptions{})
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "UPDATE guilds SET gold = gold + 1 WHERE tenant_id = ? AND id = ?", "a", 1)
			return errors.Join(err, tx.Commit())
		},
	}
	onEach(t, func(w *world) {
		c := w.cache(w.store, cache.Config{})
		other := w.gold(c, "b")
		for name, write := range writes {
			before := w.gold(c, "a")
			if err := write(w.as("a"), w.store); err != nil {
				w.Fatalf("%s: %v", name, err)
			}
			if after := w.gold(c, "a"); after != before+1 {
				w.Errorf("%s: Get gives %d after the write, want %d", name, after, before+1)
			}
		}
		reads := w.watch.reads.Load()
		if got := w.gold(c, "b"); got != other || w.watch.reads.Load() != reads {
			w.Errorf("writes of a have dropped rows of b: %d, %d reads", got, w.watch.reads.Load()-reads)
		}
		for _, id := range []tenant.ID{"a", "b"} {
			w.gold(c, id)
		}
		sys := tenant.System(w.Context(), "a gift for all", "guilds")
		places, err := w.store.Places(sys)
		if err != nil {
			w.Fatal(err)
		}
		for _, p := range places {
			if err := w.store.OnPlace(sys, p).Model(&Guild{}).Where("1 = 1").Update("gold", 1_000).Error; err != nil {
				w.Fatal(err)
			}
		}
		for _, id := range []tenant.ID{"a", "b", "c"} {
			if got := w.gold(c, id); got != 1_000 {
				w.Errorf("after a write under a system scope %s has %d, want 1000", id, got)
			}
		}
	})
}

// RETURNING commits when its rows are closed, after the statement was answered.
func TestCache_WriteThatReturnsRows(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	c := w.cache(w.store, cache.Config{})
	for range 3 {
		before := w.gold(c, "a")
		var got int64
		if err := w.store.On(w.as("a"), guildKey).Raw("UPDATE guilds SET gold = gold + 1 WHERE id = ? RETURNING gold", 1).Scan(&got).Error; err != nil {
			t.Fatal(err)
		}
		if after := w.gold(c, "a"); after != before+1 || got != after {
			t.Errorf("Get gives %d after the write returned %d, want %d", after, got, before+1)
		}
	}
}

func TestCache_InsideATransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		c := w.cache(w.store, cache.Config{})
		w.gold(c, "a")
		wanted := errors.New("roll back")
		err := w.store.Transaction(w.as("a"), guildKey, func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Model(&Guild{}).Where("id = ?", 1).Update("gold", 77).Error; err != nil {
				return err
			}
			if g, err := c.Get(ctx, guildKey, 1); err != nil || g.Gold != 77 {
				w.Errorf("Get does not see its own transaction's write: %d, %v", g.Gold, err)
			}
			if w.gold(c, "a") != 0 {
				w.Error("Get outside of the transaction sees what is not committed")
			}
			return wanted
		})
		if !errors.Is(err, wanted) {
			w.Fatal(err)
		}
		if got := w.gold(c, "a"); got != 0 {
			w.Errorf("after the rollback Get gives %d, want 0", got)
		}
	})
}

// A load that has read before a write must not fill after it, nor be joined by a Get that begins after it.
func TestCache_D6_LoadBeganBeforeAWrite(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		c := w.cache(w.store, cache.Config{})
		hasRead, goOn := make(chan struct{}), make(chan struct{})
		var first atomic.Bool
		hold := func(context.Context, wire.Event) {
			if first.CompareAndSwap(false, true) {
				close(hasRead)
				<-goOn
			}
		}
		w.watch.after.Store(&hold)
		old := make(chan int64)
		go func() {
			g, err := c.Get(w.as("a"), guildKey, 1)
			if err != nil {
				w.Error(err)
			}
			old <- g.Gold
		}()
		<-hasRead
		w.set(w.store, "a", 5)
		if got := w.gold(c, "a"); got != 5 {
			w.Errorf("while the old load is under way Get gives %d, want 5", got)
		}
		w.set(w.store, "a", 6)
		close(goOn)
		<-old // what it gives is as old as its Get
		if got := w.gold(c, "a"); got != 6 {
			w.Errorf("the old load has filled the cache: Get gives %d, want 6", got)
		}
	})
}

func TestCache_OneLoadForAllThatWait(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	c := w.cache(w.store, cache.Config{})
	hasRead, goOn := make(chan struct{}), make(chan struct{})
	hold := func(context.Context, wire.Event) {
		close(hasRead) // a second load would panic
		<-goOn
	}
	w.watch.after.Store(&hold)
	before := w.watch.reads.Load()
	quits, cancel := context.WithCancelCause(w.as("a"))
	gaveUp := make(chan error)
	go func() {
		_, err := c.Get(quits, guildKey, 1)
		gaveUp <- err
	}()
	<-hasRead
	why := errors.New("enough")
	cancel(why)
	if err := <-gaveUp; !errors.Is(err, why) {
		t.Errorf("the caller that gave up has %v, want its cause", err)
	}
	var wg sync.WaitGroup
	const callers = 50
	for range callers {
		wg.Go(func() { w.gold(c, "a") })
	}
	for c.Stats().Misses < callers+1 {
		runtime.Gosched()
	}
	close(goOn)
	wg.Wait()
	w.gold(c, "a")
	if n := w.watch.reads.Load() - before; n != 1 {
		t.Errorf("%d reads for %d callers, want 1", n, callers+2)
	}
}

// No Get gives less than what a write had reached before the Get began.
func TestCache_D6_LoadsBesideWrites(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		c := w.cache(w.store, cache.Config{})
		var reached [2]atomic.Int64
		var done atomic.Bool
		var writers, readers sync.WaitGroup
		for i, id := range []tenant.ID{"a", "b"} {
			writers.Go(func() {
				for gold := int64(1); gold <= 100; gold++ {
					w.set(w.store, id, gold)
					reached[i].Store(gold)
				}
			})
			for range 3 {
				readers.Go(func() {
					for !done.Load() {
						floor := reached[i].Load()
						if got := w.gold(c, id); got < floor {
							w.Errorf("%s: Get gives %d after %d was written", id, got, floor)
							return
						}
					}
				})
			}
		}
		writers.Wait()
		done.Store(true)
		readers.Wait()
	})
}

func TestCache_D6_TwoStoresHearOfEachOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(w *world) {
		here, there := newTapped(), newTapped()
		there.Notifier = here.Notifier
		cfg := cache.Config{TTL: 1000 * time.Hour}
		cfg.Notifier = here
		one := w.cache(w.store, cfg)
		far := w.openStore()
		cfg.Notifier = there
		two := w.cache(far, cfg)
		for gold := int64(1); gold <= 5; gold++ {
			w.gold(one, "a")
			w.gold(two, "a")
			w.gold(two, "b")
			drops := one.Stats().Drops
			w.set(w.store, "a", gold)
			<-there.seen
			if got := w.gold(two, "a"); got != gold {
				w.Errorf("the other process gives %d, want %d", got, gold)
			}
			<-here.seen
			if n := one.Stats().Drops - drops; n > 2 { // the wire may tell twice; the notice of its own drops nothing
				w.Errorf("one write has dropped %d times in its own process", n)
			}
		}
		// Known losses and notices that nobody can read drop everything.
		before := two.Stats().Drops
		if err := here.Publish(w.Context(), "tenantdal.cache.guilds", []byte("what is this")); err != nil {
			w.Fatal(err)
		}
		<-there.seen
		if two.Stats().Drops != before+1 {
			w.Error("a notice that cannot be read has dropped nothing")
		}
	})
}

// deaf loses every notice, and fails to publish.
type deaf struct{}

func (deaf) Publish(context.Context, string, []byte) error { return errors.New("nobody hears") }

func (deaf) Subscribe(context.Context, string, func(notify.Notice)) (func(), error) {
	return func() {}, nil
}

func TestCache_TTLBoundsLostNotices(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	var now atomic.Int64
	c := w.cache(w.store, cache.Config{TTL: time.Minute, Notifier: deaf{}, Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	w.gold(c, "a")
	w.set(w.openStore(), "a", 9)
	now.Add(59)
	if got := w.gold(c, "a"); got != 0 {
		t.Errorf("within TTL Get gives %d: the test shows nothing", got)
	}
	now.Add(1)
	if got := w.gold(c, "a"); got != 9 {
		t.Errorf("after TTL Get gives %d, want 9", got)
	}
}

func TestCache_Bounded(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	c := w.cache(w.store, cache.Config{MaxEntries: 1})
	for i := range int64(20) {
		if err := w.store.On(w.as("a"), guildKey).Create(&Guild{Model: dal.Model{ID: 100 + i}, GuildID: "g1"}).Error; err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for i := range int64(20) {
			if g, err := c.Get(w.as("a"), guildKey, 100+i); err != nil || g.ID != 100+i {
				t.Fatalf("Get = %+v, %v", g, err)
			}
		}
	}
	if s := c.Stats(); s.Misses < 30 {
		t.Errorf("of 40 calls %d had to load with room for one row", s.Misses)
	}
}

func TestCache_BeforeStartAndAfterClose(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	c, err := cache.New[Guild, int64](w.store, cache.Config{})
	if err != nil {
		t.Fatal(err)
	}
	loads := func(when string, want int64) {
		before := w.watch.reads.Load()
		w.gold(c, "a")
		w.gold(c, "a")
		if n := w.watch.reads.Load() - before; n != want {
			t.Errorf("%s: %d loads for two calls, want %d", when, n, want)
		}
	}
	loads("before Start", 2)
	for range 2 {
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	loads("started", 1)
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	loads("after Close", 2)
	if err := c.Start(t.Context()); !errors.Is(err, dal.ErrClosed) {
		t.Errorf("Start after Close = %v, want ErrClosed", err)
	}
}

type twoKeys struct {
	TenantID tenant.ID `gorm:"primaryKey;column:tenant_id"`
	One      int64     `gorm:"primaryKey;autoIncrement:false"`
	Two      int64     `gorm:"primaryKey;autoIncrement:false"`
}

func TestNew_Refused(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	if _, err := cache.New[twoKeys, int64](w.store, cache.Config{}); !errors.Is(err, cache.ErrModel) {
		t.Errorf("two key columns: %v, want ErrModel", err)
	}
	if _, err := cache.New[Guild, string](w.store, cache.Config{}); !errors.Is(err, cache.ErrModel) {
		t.Errorf("an id of another type: %v, want ErrModel", err)
	}
	if _, err := cache.New[int, int64](w.store, cache.Config{}); !errors.Is(err, cache.ErrModel) {
		t.Errorf("no struct: %v, want ErrModel", err)
	}
	_, err := cache.New[Guild, int64](w.store, cache.Config{MaxEntries: -1, TTL: -1, LoadTimeout: -1})
	for _, field := range []string{"MaxEntries", "TTL", "LoadTimeout"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("Validate does not name %s: %v", field, err)
		}
	}
}

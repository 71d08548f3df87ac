package saga_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// brisk is a configuration that tries again soon.
func brisk() saga.Config {
	return saga.Config{
		VoidAfter: saga.Never, PollMin: time.Millisecond, PollMax: 20 * time.Millisecond, RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond,
		Handover: 20 * time.Millisecond,
	}
}

// eventually waits until the condition holds, on real time, since real servers work on it.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	for start := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			w.Fatalf("after 30s still not: %s", what)
		}
	}
}

// stands reports whether the donation is in that state.
func (w *world) stands(d *saga.Donations, id tenant.ID, don saga.Donation, want saga.State) func() bool {
	return func() bool {
		rec, err := d.State(w.as(id), don.Player, don.Key)
		return err == nil && rec.State == want
	}
}

// to returns a fresh donation whose guild lives, or does not live, in the place.
func (w *world) to(d *saga.Donations, id tenant.ID, p dal.Place, there bool) saga.Donation {
	w.Helper()
	for {
		don := w.fresh(d, id, 10, 4)
		if (w.targetOf(d, id, don) == p) == there {
			return don
		}
	}
}

// A guild's place that is away keeps its own donations pending and nobody else's. Their time over they wait to be voided; when the place is back, the
// void decides.
func TestRelay_TargetAway(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(brisk())
		away := dal.Place{Shard: "s2"}
		stuck := w.to(d, acme, away, true)
		for w.sourceOf(d, acme, stuck) == away {
			stuck = w.to(d, acme, away, true)
		}
		w.watch.onBefore(func(_ context.Context, e wire.Event) error {
			if e.Shard == away.String() && e.Op != "rollback" {
				return driver.ErrBadConn
			}
			return nil
		})
		w.must(d.Start(w.Context()))
		_, err := d.Donate(w.as(acme), stuck)
		w.must(err)
		w.watch.off() // grants go to any place
		var others []saga.Donation
		for range 10 {
			don := w.to(d, acme, away, false)
			for w.sourceOf(d, acme, don) == away {
				don = w.to(d, acme, away, false)
			}
			others = append(others, don)
		}
		late := w.to(d, acme, away, true)
		for w.sourceOf(d, acme, late) == away {
			late = w.to(d, acme, away, true)
		}
		w.watch.onBefore(func(_ context.Context, e wire.Event) error {
			if e.Shard == away.String() && e.Op != "rollback" {
				return driver.ErrBadConn
			}
			return nil
		})
		_, err = d.Donate(w.as(acme), late)
		w.must(err)
		for _, don := range others {
			_, err := d.Donate(w.as(acme), don)
			w.must(err)
		}
		for _, don := range others {
			w.eventually("the others end", w.stands(d, acme, don, saga.Settled))
		}
		w.wantState(d, acme, late, saga.Pending, "")
		w.eventually("it is tried again and again", func() bool { return w.journal(d, acme, late).Attempts > 3 })
		w.expire(d, acme, late)
		w.eventually("its time is over", w.stands(d, acme, late, saga.Voiding))
		attempts := w.journal(d, acme, late).Attempts
		w.eventually("it stays voiding, however often", func() bool { return w.journal(d, acme, late).Attempts > attempts+20 })
		w.wantState(d, acme, late, saga.Voiding, "")
		if got := w.bag(acme, late.Player, late.Item); got != 6 {
			t.Errorf("bag = %d while the guild's place is away, want 6: nothing is refunded on a guess", got)
		}
		w.watch.off()
		w.eventually("it is voided", w.stands(d, acme, late, saga.Refunded))
		w.wantState(d, acme, late, saga.Refunded, saga.ReasonTimeout)
		w.eventually("the first one ends", func() bool {
			rec, err := d.State(w.as(acme), stuck.Player, stuck.Key)
			return err == nil && rec.State.Final()
		})
		w.wantConserved(d)
	}, everyModel[0])
}

// A place that hangs delays itself alone, and each step against it ends by itself.
func TestRelay_Q37_Q38_TargetHangs(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 3, everyModel[0])
	cfg := brisk()
	cfg.StepTimeout = 50 * time.Millisecond
	d := w.donations(cfg)
	hung := dal.Place{Shard: "s2"}
	one := func(there bool) saga.Donation {
		for {
			if don := w.to(d, acme, hung, there); w.sourceOf(d, acme, don) != hung {
				return don
			}
		}
	}
	stuck, other := one(true), one(false)
	w.must(d.Start(w.Context()))
	var timeouts atomic.Int64
	w.watch.onBefore(func(ctx context.Context, e wire.Event) error {
		if e.Shard != hung.String() || e.Op == "rollback" {
			return nil
		}
		<-ctx.Done()
		timeouts.Add(1)
		return ctx.Err()
	})
	for _, don := range []saga.Donation{stuck, other} {
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
	}
	w.eventually("the other ends", w.stands(d, acme, other, saga.Settled))
	w.eventually("the hung step ends by its deadline", func() bool { return timeouts.Load() > 3 })
	w.wantState(d, acme, stuck, saga.Pending, "")
	w.watch.off()
	w.eventually("the hung place answers", w.stands(d, acme, stuck, saga.Settled))
	w.wantConserved(d)
}

// forge changes a journal row behind the library's back.
func (w *world) forge(d *saga.Donations, don saga.Donation, set string, args ...any) {
	w.Helper()
	x := sagaID(acme, don)
	conn, err := w.raw(w.sourceOf(d, acme, don), acme).Conn(w.Context())
	w.must(err)
	defer func() { _ = conn.Close() }()
	if w.cfg.Cluster.Dialect == dal.SQLite {
		_, err = conn.ExecContext(w.Context(), "PRAGMA ignore_check_constraints = ON")
		w.must(err)
	}
	_, err = conn.ExecContext(w.Context(), "UPDATE saga_out SET "+set+" WHERE tenant_id = ? AND saga_id = ?", append(args, "acme", x[:])...)
	w.must(err)
}

func TestRelay_Q17_Q18_PoisonIsQuarantinedAndDelaysNobody(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		cfg := brisk()
		cfg.MaxAttempts = 3
		donor := w.donations(quiet())
		donate := func() saga.Donation {
			don := w.fresh(donor, acme, 10, 4)
			_, err := donor.Donate(w.as(acme), don)
			w.must(err)
			return don
		}
		tampered, unroutable, mismatched, refused := donate(), donate(), donate(), donate()
		w.forge(donor, tampered, "qty = 9")
		if w.cfg.Cluster.Dialect == dal.SQLite { // a hash that the column's CHECK would refuse
			w.forge(donor, tampered, "body_hash = X'00'")
		}
		zero := saga.BodyHash("0", "gold", 4)
		w.forge(donor, unroutable, "guild_id = ?, body_hash = ?", w.text("0"), zero[:])
		x, other := sagaID(acme, mismatched), saga.BodyHash(mismatched.Guild, "gold", 1)
		_, err := w.raw(w.targetOf(donor, acme, mismatched), acme).ExecContext(w.Context(),
			"INSERT INTO saga_in (tenant_id, saga_id, outcome, player_id, guild_id, item_id, qty, body_hash, reason, epoch, decided_at) VALUES ('acme', ?, 1, ?, ?, ?, 1, ?, ?, 1, 1)",
			x[:], w.text(mismatched.Player), w.text(mismatched.Guild), w.text("gold"), other[:], w.text(""))
		w.must(err)
		// The database refuses the values of one donation, whatever is in the transaction with it.
		w.watch.onBefore(func(_ context.Context, e wire.Event) error {
			if strings.HasPrefix(e.Text, "UPDATE warehouse") && fmt.Sprint(e.Args[2].Value) == fmt.Sprint(w.text(refused.Guild)) {
				return &mysql.MySQLError{Number: 4025, Message: "CONSTRAINT failed"}
			}
			return nil
		})
		var good []saga.Donation
		for range 40 {
			good = append(good, donate())
		}
		d := w.donations(cfg)
		w.must(d.Start(w.Context()))
		for _, don := range good {
			w.eventually("the others end", w.stands(d, acme, don, saga.Settled))
		}
		want := map[saga.ID]saga.Reason{
			sagaID(acme, tampered): saga.ReasonBadRow, sagaID(acme, unroutable): saga.ReasonBadRoute,
			sagaID(acme, mismatched): saga.ReasonBodyMismatch, sagaID(acme, refused): saga.ReasonBadData,
		}
		for _, don := range []saga.Donation{tampered, unroutable, mismatched, refused} {
			w.eventually("it is quarantined", w.stands(d, acme, don, saga.Quarantined))
			if got := w.bag(acme, don.Player, don.Item); got != 6 {
				t.Errorf("bag = %d, want 6: the items stay pending", got)
			}
		}
		list, err := d.Quarantined(w.sys)
		w.must(err)
		if len(list) != len(want) {
			t.Errorf("Quarantined = %+v, want %d", list, len(want))
		}
		for _, q := range list {
			if want[q.SagaID] != q.Reason {
				t.Errorf("%s is quarantined for %q, want %q", q.SagaID, q.Reason, want[q.SagaID])
			}
		}
		if n := w.journal(d, acme, refused).Attempts; n < 3 {
			t.Errorf("quarantined after %d attempts, want MaxAttempts 3", n)
		}
		pending, err := d.Pending(w.sys)
		w.must(err)
		n := int64(0)
		for _, b := range pending {
			n += b.Quarantined
			if b.Quarantined > 0 && b.Oldest <= 0 {
				t.Errorf("age of the oldest in %s = %v", b.Place, b.Oldest)
			}
		}
		if n != 4 {
			t.Errorf("Pending counts %d quarantined, want 4", n)
		}
		// Replayed as it is, it is quarantined again. Of replays at once, one does it. Mended and replayed, it ends.
		w.watch.off()
		for _, q := range list {
			var did atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if ok, err := d.Replay(w.sys, q); err != nil {
						t.Errorf("Replay: %v", err)
					} else if ok {
						did.Add(1)
					}
				})
			}
			wg.Wait()
			if q.Reason == saga.ReasonBadData && did.Load() != 1 {
				t.Errorf("%d of 8 replays at once did it, want 1", did.Load())
			}
		}
		w.eventually("what was mended ends", w.stands(d, acme, refused, saga.Settled))
		w.eventually("what was not is quarantined again", w.stands(d, acme, tampered, saga.Quarantined))
		w.eventually("what was not is quarantined again", w.stands(d, acme, mismatched, saga.Quarantined))
		w.eventually("what was not is quarantined again", w.stands(d, acme, unroutable, saga.Quarantined))
		whole := saga.BodyHash(tampered.Guild, tampered.Item, 4)
		w.forge(d, tampered, "qty = 4, body_hash = ?", whole[:])
		list, err = d.Quarantined(w.sys)
		w.must(err)
		for _, q := range list {
			if q.SagaID == sagaID(acme, tampered) {
				_, err := d.Replay(w.sys, q)
				w.must(err)
			}
		}
		w.eventually("what was mended ends", w.stands(d, acme, tampered, saga.Settled))
	})
}

// One round serves every tenant: a backlog of 50,000 rows does not delay another tenant's donation by more than that.
func TestRelay_BacklogDelaysNoOtherTenantByMoreThanARound(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 1, everyModel[0], everyModel[1])
	d := w.donations(quiet())
	big := w.fresh(d, acme, 50_000, 1)
	small := w.fresh(d, globex, 10, 4)
	raw := w.raw(w.sourceOf(d, acme, big), acme)
	tx, err := raw.BeginTx(w.Context(), nil)
	w.must(err)
	const insert = "INSERT INTO saga_out (tenant_id, saga_id, state, player_id, request_key, guild_id, item_id, qty, body_hash, epoch, attempts," +
		" due_at, void_at, lease_owner, lease_until, fence, reason, created_at, ended_at)"
	hash := saga.BodyHash(big.Guild, big.Item, 1)
	for i := range 200 { // more than a round takes
		big.Key = fmt.Sprint("k", i)
		x := sagaID(acme, big)
		_, err := tx.ExecContext(w.Context(), insert+" VALUES ('acme', ?, 1, ?, ?, ?, 'gold', 1, ?, 1, 0, ?, ?, X'', 0, 0, '', 1, 0)",
			x[:], big.Player, big.Key, big.Guild, hash[:], i, int64(math.MaxInt64))
		w.must(err)
	}
	_, err = tx.ExecContext(w.Context(), "WITH RECURSIVE n(i) AS (SELECT 200 UNION ALL SELECT i + 1 FROM n WHERE i < 49999) "+insert+
		" SELECT 'acme', randomblob(16), 1, 'p', 'k', 'g', 'gold', 1, randomblob(16), 1, 0, i, 9223372036854775807, X'', 0, 0, '', 1, 0 FROM n")
	w.must(err)
	_, err = tx.ExecContext(w.Context(), "UPDATE bag SET qty = 0 WHERE tenant_id = 'acme'")
	w.must(err)
	w.must(tx.Commit())
	_, err = d.Donate(w.as(globex), small) // due last
	w.must(err)
	before := w.store.Stats()
	ended, err := d.Step(w.sys)
	w.must(err)
	if got := w.store.Stats().Sub(before); got.Statements+got.Polls > 250 {
		t.Errorf("a round over a backlog of 50,000 cost %+v", got)
	}
	w.wantState(d, globex, small, saga.Settled, "")
	if ended.Settled != 64+1 {
		t.Errorf("the round settled %d, want 64 of the backlog and the small tenant's one", ended.Settled)
	}
	w.wantConserved(d)
}

// Whatever the queue has no room for is found by polls.
func TestRelay_FullQueueLosesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		cfg := brisk()
		cfg.QueueSize, cfg.Batch, cfg.PerTenant = 1, 2, 3
		d := w.donations(cfg)
		c := crowd{tenants: []tenant.ID{acme, globex, delta, omega}, players: 6, guilds: 7, items: []string{"gold"}}
		c.setUp(w, d)
		w.must(d.Start(w.Context()))
		c.rush(w, 16, 200, func(ctx context.Context, don saga.Donation) error {
			_, err := d.Donate(ctx, don)
			return err
		})
		w.eventually("all end without a drain", func() bool {
			all, err := d.Pending(w.sys)
			w.must(err)
			n := int64(0)
			for _, b := range all {
				n += b.Open()
			}
			return n == 0
		})
		w.wantConserved(d)
	})
}

// Two processes with leases so short that they always cross.
func TestRelay_TwoProcessesCross(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		cfg := brisk()
		cfg.LeaseFor, cfg.StepTimeout, cfg.Handover = 2*time.Second, 2*time.Second, time.Millisecond
		cfg.VoidAfter = 40 * time.Millisecond // and with voids in between
		one, two := w.donations(cfg), w.donationsOver(w.openStore(), cfg)
		c := crowd{tenants: []tenant.ID{acme, globex, delta, omega}, players: 6, guilds: 7, items: []string{"gold"}}
		c.setUp(w, one)
		for _, d := range []*saga.Donations{one, two} {
			w.must(d.Start(w.Context()))
		}
		var n atomic.Int64
		c.rush(w, 16, 300, func(ctx context.Context, don saga.Donation) error {
			d := []*saga.Donations{one, two}[n.Add(1)%2]
			_, err := d.Donate(ctx, don)
			return err
		})
		for _, d := range []*saga.Donations{two, one} {
			_, err := d.Reconcile(w.sys)
			w.must(err)
			_, err = d.Drain(w.sys)
			w.must(err)
		}
		w.eventually("all end", func() bool {
			_, err := one.Drain(w.sys)
			w.must(err)
			all, err := one.Pending(w.sys)
			w.must(err)
			open := int64(0)
			for _, b := range all {
				open += b.Open()
			}
			return open == 0
		})
		rep, err := one.Reconcile(w.sys)
		if err != nil || len(rep.Alarms)+len(rep.Quarantine) > 0 {
			t.Errorf("Reconcile = %+v, %v", rep, err)
		}
		w.wantConserved(one)
	})
}

// Times come from the databases: no argument of any statement is a clock reading, so no process's clock can matter.
func TestRelay_Q34_NoProcessClockInAnyStatement(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2)
	now := time.Now()
	var seen atomic.Int64
	w.watch.onBefore(func(_ context.Context, e wire.Event) error {
		for _, a := range e.Args {
			switch v := a.Value.(type) {
			case time.Time:
				t.Errorf("%.60s has a time as argument", e.Text)
			case int64:
				for _, unit := range []int64{now.Unix(), now.UnixMilli(), now.UnixMicro(), now.UnixNano()} {
					if float64(v) > float64(unit)*0.99 && float64(v) < float64(unit)*1.01 {
						t.Errorf("%.60s has %d as argument, which is a clock reading", e.Text, v)
					}
				}
			}
		}
		seen.Add(1)
		return nil
	})
	d := w.donations(saga.Config{})
	for range 3 {
		don := w.fresh(d, acme, 10, 4)
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		_, err = d.Step(w.sys)
		w.must(err)
	}
	if seen.Load() < 20 {
		t.Errorf("%d operations seen", seen.Load())
	}
}

// Idle places are polled ever more rarely; a donation is carried on at once all the same.
func TestRelay_IdlePlacesArePolledRarely(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, dal.Config{Cluster: dal.SQLiteCluster(dir, 2)}, everyModel[0])
		d := w.donations(saga.Config{})
		don := w.fresh(d, acme, 10, 4)
		w.must(d.Start(w.Context()))
		before := w.store.Stats()
		time.Sleep(time.Hour)
		got := w.store.Stats().Sub(before)
		// Two places, a poll each 5s with a jitter of a quarter, and a few at the start.
		if got.Polls < 2*3600/7 || got.Polls > 2*3600/3 || got.Statements > 0 {
			t.Errorf("an idle hour cost %+v, want about a poll each 5s for each of 2 places and nothing else", got)
		}
		start := time.Now()
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		synctest.Wait()
		w.wantState(d, acme, don, saga.Settled, "")
		if took := time.Since(start); took > 0 {
			t.Errorf("a donation waited %v for a poll", took)
		}
	})
}

// A Close that is cut short says what it left, and leaves it pending.
func TestClose_CutShort(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2, everyModel[0])
	d, err := saga.NewDonations(w.store, quiet())
	w.must(err)
	don := w.fresh(d, acme, 10, 4)
	w.must(d.Start(w.Context()))
	reached := make(chan struct{})
	var once sync.Once
	w.watch.onBefore(func(ctx context.Context, e wire.Event) error {
		if strings.HasPrefix(e.Text, "INSERT INTO saga_in") {
			once.Do(func() { close(reached) })
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	_, err = d.Donate(w.as(acme), don)
	w.must(err)
	<-reached
	gone := errors.New("no more time")
	ctx, cancel := context.WithCancelCause(w.Context())
	cancel(gone)
	if err := d.Close(ctx); !errors.Is(err, gone) || !strings.Contains(err.Error(), "1 donation") {
		t.Errorf("Close = %v, want what was left and why", err)
	}
	w.must(d.Close(w.Context()))
	w.watch.off()
	w.wantState(d, acme, don, saga.Pending, "")
	next := w.donations(quiet())
	_, err = next.Drain(w.sys)
	w.must(err)
	w.wantState(next, acme, don, saga.Settled, "")
	w.wantConserved(next)
}

// A donor that hangs in its own transaction does not keep a Close beyond its ctx.
func TestClose_DonorHangs(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2, everyModel[0])
	d := w.donations(quiet())
	don := w.fresh(d, acme, 10, 4)
	w.must(d.Start(w.Context()))
	reached, goOn := make(chan struct{}), make(chan struct{})
	w.watch.onBefore(func(_ context.Context, e wire.Event) error {
		if strings.HasPrefix(e.Text, "INSERT INTO saga_out") {
			close(reached)
			<-goOn
		}
		return nil
	})
	donated := make(chan error, 1)
	go func() {
		_, err := d.Donate(w.as(acme), don)
		donated <- err
	}()
	<-reached
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	if err := d.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close = %v, want context.Canceled", err)
	}
	close(goOn)
	w.must(<-donated)
	w.watch.off()
	w.wantState(d, acme, don, saga.Pending, "")
	w.must(d.Close(w.Context())) // nothing is under way any more
}

// Of relays that poll at once, one claims a donation.
func TestRelay_ClaimsAreExclusive(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(w *world) {
		d := w.donations(quiet())
		var all []saga.Donation
		base := w.fresh(d, acme, 1000, 1)
		for i := range 60 {
			don := base
			don.Key = fmt.Sprint(i)
			_, err := d.Donate(w.as(acme), don)
			w.must(err)
			all = append(all, don)
		}
		var wg sync.WaitGroup
		var settled atomic.Int64
		for range 6 {
			relay := w.donationsOver(w.store, quiet())
			wg.Go(func() {
				ended, err := relay.Step(w.sys)
				if err != nil {
					t.Errorf("Step: %v", err)
				}
				settled.Add(int64(ended.Settled))
			})
		}
		wg.Wait()
		if n := settled.Load(); n != 60 {
			t.Errorf("%d settled, want 60", n)
		}
		for _, don := range all {
			if row := w.journal(d, acme, don); row.Attempts != 1 || row.Fence != 1 {
				t.Fatalf("%s was claimed %d times, want once: %+v", don.Key, row.Fence, row)
			}
		}
	}, everyModel[0])
}

// growing is a registry to which tenants are added.
type growing struct {
	mu  sync.Mutex
	all []tenant.Tenant
}

func (g *growing) add(t tenant.Tenant) error {
	t, err := tenant.Place(t)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, t)
	return err
}

func (g *growing) Tenant(_ context.Context, id tenant.ID) (tenant.Tenant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.all {
		if t.ID == id {
			return t, nil
		}
	}
	return tenant.Tenant{}, &tenant.UnknownTenantError{ID: id}
}

func (g *growing) Tenants(context.Context) ([]tenant.Tenant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]tenant.Tenant(nil), g.all...), nil
}

// A relay that runs finds the places of tenants that come later.
func TestRelay_FindsThePlacesOfNewTenants(t *testing.T) {
	t.Parallel()
	registry := &growing{}
	if err := registry.add(everyModel[0]); err != nil {
		t.Fatal(err)
	}
	w := openWith(t, dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), 2)}, registry)
	cfg := brisk()
	cfg.PlacesEvery = 5 * time.Millisecond
	relay, donor := w.donations(cfg), w.donations(quiet())
	w.must(relay.Start(w.Context()))
	w.must(registry.add(tenant.Tenant{ID: delta, Model: tenant.OwnSchema}))
	_, err := schema.Provision(w.Context(), w.cfg, delta, schema.Saga())
	w.must(err)
	don := w.fresh(donor, delta, 10, 4)
	_, err = donor.Donate(w.as(delta), don)
	w.must(err)
	w.eventually("the new tenant's donation ends", w.stands(donor, delta, don, saga.Settled))
}

// records keeps what a logger is told.
type records struct {
	mu  sync.Mutex
	all []map[string]string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) Handle(_ context.Context, rec slog.Record) error {
	m := map[string]string{"msg": rec.Message, "level": rec.Level.String()}
	rec.Attrs(func(a slog.Attr) bool {
		m[a.Key] = a.Value.Resolve().String()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, m)
	return nil
}

// Whatever ends a donation is found in the log by tenant, shard and saga: at warn what the library does by itself, at debug what goes as it should.
func TestRelay_Q44_LogsNameTenantShardAndSaga(t *testing.T) {
	t.Parallel()
	logged := &records{}
	w := open(t, dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), 2), Logger: slog.New(logged)}, everyModel[0])
	d := w.donations(quiet())
	donate := func() saga.Donation {
		don := w.fresh(d, acme, 10, 4)
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		return don
	}
	good, refused, late, poison := donate(), donate(), donate(), donate()
	again := good // a second one of the same player, settled with the first
	again.Key = "k2"
	_, err := d.Donate(w.as(acme), again)
	w.must(err)
	w.must(d.SetGuild(w.as(acme), refused.Guild, false))
	w.expire(d, acme, late)
	w.forge(d, poison, "qty = 9")
	_, err = d.Drain(w.sys)
	w.must(err)
	type line struct{ msg, saga, shard, reason string }
	want := map[line]bool{
		{"donation refunded", sagaID(acme, refused).String(), w.sourceOf(d, acme, refused).String(), string(saga.ReasonClosed)}:  true,
		{"donation voided", sagaID(acme, late).String(), w.targetOf(d, acme, late).String(), ""}:                                 true,
		{"donation refunded", sagaID(acme, late).String(), w.sourceOf(d, acme, late).String(), string(saga.ReasonTimeout)}:       true,
		{"donation quarantined", sagaID(acme, poison).String(), w.sourceOf(d, acme, poison).String(), string(saga.ReasonBadRow)}: true,
	}
	logged.mu.Lock()
	lines := slices.Clone(logged.all)
	logged.mu.Unlock()
	settled := map[string]int{}
	for _, m := range lines {
		if m["msg"] == "donations settled" {
			if m["level"] != "DEBUG" || m["tenant"] != "acme" || m["shard"] == "" {
				t.Errorf("settled: %v", m)
			}
			for _, id := range strings.Fields(strings.Trim(m["sagas"], "[]")) {
				settled[id+" in "+m["shard"]]++
			}
		}
		if m["level"] != "WARN" {
			continue
		}
		l := line{m["msg"], m["saga"], m["shard"], m["reason"]}
		if l.msg == "donation voided" {
			l.reason = "" // of the system scope
		}
		if !want[l] || m["tenant"] != "acme" {
			t.Errorf("warned of %v", m)
		}
		delete(want, l)
	}
	for l := range want {
		t.Errorf("no warning %+v", l)
	}
	for _, don := range []saga.Donation{good, again} {
		w.wantState(d, acme, don, saga.Settled, "")
		if key := sagaID(acme, don).String() + " in " + w.sourceOf(d, acme, don).String(); settled[key] != 1 {
			t.Errorf("%q is logged as settled %d times, want once: %v", key, settled[key], settled)
		}
	}
	if len(settled) != 2 {
		t.Errorf("settled in the log: %v, want two", settled)
	}
}

// Donations end in any order with the same sums.
func TestRelay_Q15_AnyOrderGivesTheSameSums(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2, everyModel[0])
	d := w.donations(quiet())
	base := w.fresh(d, acme, 1000, 1)
	var all []saga.Donation
	sum := int64(0)
	for i := range 30 {
		don := base
		don.Key, don.Qty = fmt.Sprint(i), int64(i+1)
		sum += don.Qty
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		all = append(all, don)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, don := range all[:20] {
		_, _, err := d.DecideForTest(w.as(acme), don, false)
		w.must(err)
	}
	_, err := d.Drain(w.sys)
	w.must(err)
	w.wantBalances(acme, base, 1000-sum, sum)
	w.wantConserved(d)
}

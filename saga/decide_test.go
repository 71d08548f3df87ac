package saga_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/saga"
)

func TestDecide_Q01_DuplicateDelivery(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		other := w.donationsOver(w.openStore(), quiet()) // a second process
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				consumer := []*saga.Donations{d, other}[i%2]
				if outcome, reason, err := consumer.DecideForTest(w.as(acme), don, false); err != nil || outcome != saga.Applied || reason != "" {
					t.Errorf("delivery %d: %v %q, %v, want applied", i, outcome, reason, err)
				}
			})
		}
		wg.Wait()
		if rows := w.decisions(acme, don); len(rows) != 1 || rows[0].Outcome != saga.Applied {
			t.Errorf("decision rows: %+v, want one, applied", rows)
		}
		w.wantBalances(acme, don, 6, 4)
		w.wantConserved(d) // applied, not settled yet
		_, err = d.Drain(w.sys)
		w.must(err)
		w.wantState(d, acme, don, saga.Settled, "")
		w.wantConserved(d)
	})
}

// A process dies between the commit of the credit and its answer. The row counts both attempts.
func TestDecide_Q02_CrashAfterCommitBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		first := w.donations(quiet())
		don := w.fresh(first, acme, 10, 4)
		w.must(first.Start(w.Context()))
		dead := errors.New("the process is dead")
		w.watch.onBefore(func(_ context.Context, e wire.Event) error {
			if strings.HasPrefix(e.Text, "UPDATE saga_out") { // the settlement
				return dead
			}
			return nil
		})
		_, err := first.Donate(w.as(acme), don)
		w.must(err)
		w.must(first.Close(w.Context()))
		w.watch.off()
		w.wantState(first, acme, don, saga.Pending, "")
		w.wantBalances(acme, don, 6, 4)
		w.wantConserved(first)

		second := w.donations(quiet())
		rep, err := second.Reconcile(w.sys)
		if err != nil || rep.Settled != 1 || rep.Refunded+rep.Quarantined > 0 || len(rep.Alarms) > 0 {
			t.Errorf("Reconcile = %+v, %v, want one settled", rep, err)
		}
		if row := w.journal(second, acme, don); row.Attempts != 2 || row.State != saga.Settled {
			t.Errorf("journal row = %+v, want settled at the 2nd attempt", row)
		}
		w.wantBalances(acme, don, 6, 4)
		w.wantConserved(second)
	})
}

func TestDecide_Q03_Q05_VoidBeforeApply(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		for range 3 {
			if outcome, reason, err := d.DecideForTest(w.as(acme), don, true); err != nil || outcome != saga.Voided || reason != saga.ReasonTimeout {
				t.Fatalf("void: %v %q, %v, want voided", outcome, reason, err)
			}
		}
		// Q05: the row is there for everybody, not in a transaction that never commits.
		x := sagaID(acme, don)
		var outcome int
		w.must(w.raw(w.targetOf(d, acme, don), acme).QueryRowContext(w.Context(), "SELECT outcome FROM saga_in WHERE tenant_id = ? AND saga_id = ?", "acme", x[:]).Scan(&outcome))
		if saga.Outcome(outcome) != saga.Voided {
			t.Errorf("another connection reads outcome %d, want voided", outcome)
		}
		w.wantBalances(acme, don, 6, 0)
		w.wantConserved(d)
		// Q04: the apply that comes late credits nothing, before and after the refund.
		if outcome, _, err := d.DecideForTest(w.as(acme), don, false); err != nil || outcome != saga.Voided {
			t.Errorf("late apply: %v, %v, want voided", outcome, err)
		}
		ended, err := d.Drain(w.sys)
		if err != nil || ended.Refunded != 1 {
			t.Errorf("Drain = %+v, %v, want one refund", ended, err)
		}
		w.wantState(d, acme, don, saga.Refunded, saga.ReasonTimeout)
		w.wantBalances(acme, don, 10, 0)
		w.wantConserved(d)
	})
}

// A relay claimed a donation to apply it and hangs; its time passes, another relay voids and refunds it; then the first goes on.
func TestDecide_Q04_Q29_ApplyArrivesAfterVoidAndRefund(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		slow := w.donations(quiet())
		result := w.hang(slow)
		w.expire(d, acme, don)
		other := w.donations(quiet())
		ended, err := other.Drain(w.sys)
		if err != nil || ended.Refunded != 1 {
			t.Errorf("Drain = %+v, %v, want one refund", ended, err)
		}
		if got := result(); got.Settled+got.Refunded > 0 {
			t.Errorf("the slow relay ended %+v under its old fence, want nothing", got)
		}
		w.wantState(d, acme, don, saga.Refunded, saga.ReasonTimeout)
		w.wantBalances(acme, don, 10, 0)
		w.wantConserved(d)
	})
}

// The other order: the credit was committed when the void arrives. The void reads APPLIED, and nothing is refunded.
func TestDecide_Q29_VoidArrivesAfterApply(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		if outcome, _, err := d.DecideForTest(w.as(acme), don, false); err != nil || outcome != saga.Applied {
			t.Fatalf("apply: %v, %v", outcome, err)
		}
		w.expire(d, acme, don)
		if outcome, _, err := d.DecideForTest(w.as(acme), don, true); err != nil || outcome != saga.Applied {
			t.Errorf("void after apply: %v, %v, want applied", outcome, err)
		}
		ended, err := d.Drain(w.sys)
		if err != nil || ended.Settled != 1 || ended.Refunded != 0 {
			t.Errorf("Drain = %+v, %v, want one settled", ended, err)
		}
		w.wantState(d, acme, don, saga.Settled, "")
		w.wantBalances(acme, don, 6, 4)
		w.wantConserved(d)
	})
}

// hang lets a relay claim what is due and stops it before it decides. The function that it returns lets it go on and returns what it ended.
func (w *world) hang(d *saga.Donations) func() saga.Ended {
	w.Helper()
	type slowKey struct{}
	claimed, go_ := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.watch.onAfter(func(ctx context.Context, e wire.Event, _ error) {
		if ctx.Value(slowKey{}) != nil && strings.HasPrefix(e.Text, "SELECT saga_id, state, player_id") {
			once.Do(func() {
				close(claimed)
				<-go_
			})
		}
	})
	done := make(chan saga.Ended, 1)
	go func() {
		ended, err := d.Step(context.WithValue(w.sys, slowKey{}, true))
		if err != nil {
			w.Errorf("the slow relay: %v", err)
		}
		done <- ended
	}()
	<-claimed
	return func() saga.Ended {
		close(go_)
		return <-done
	}
}

// A lease that ran out while its holder works costs a second call and nothing else; the holder's settlement under the old fence changes no row.
func TestRelay_Q33_LeaseExpiresWhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		result := w.hang(w.donations(quiet()))
		old := w.journal(d, acme, don)
		x := sagaID(acme, don)
		_, err = w.raw(w.sourceOf(d, acme, don), acme).ExecContext(w.Context(), "UPDATE saga_out SET lease_until = 1, due_at = 1 WHERE tenant_id = ? AND saga_id = ?", "acme", x[:])
		w.must(err)
		other := w.donations(quiet())
		ended, err := other.Step(w.sys)
		if err != nil || ended.Settled != 1 {
			t.Errorf("the second relay: %+v, %v, want one settled", ended, err)
		}
		row := w.journal(d, acme, don)
		if row.Fence <= old.Fence {
			t.Errorf("fence %d after the takeover, %d before: it must grow", row.Fence, old.Fence)
		}
		if got := result(); got.Settled != 0 {
			t.Errorf("the first relay settled %d under its old fence, want 0", got.Settled)
		}
		if after := w.journal(d, acme, don); after.State != saga.Settled || after.EndedAt != row.EndedAt {
			t.Errorf("journal row changed from %+v to %+v after its end", row, after)
		}
		w.wantBalances(acme, don, 6, 4)
		w.wantConserved(d)
	})
}

func TestRefund_Q06_Twice(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		w.must(d.SetGuild(w.as(acme), don.Guild, false))
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		if outcome, reason, err := d.DecideForTest(w.as(acme), don, false); err != nil || outcome != saga.Rejected || reason != saga.ReasonClosed {
			t.Fatalf("apply: %v %q, %v, want rejected", outcome, reason, err)
		}
		other := w.donationsOver(w.openStore(), quiet())
		var wg sync.WaitGroup
		refunds := make(chan bool, 16)
		for i := range cap(refunds) {
			wg.Go(func() {
				did, err := []*saga.Donations{d, other}[i%2].RefundForTest(w.as(acme), don, 0)
				if err != nil {
					t.Errorf("refund %d: %v", i, err)
				}
				refunds <- did
			})
		}
		wg.Wait()
		close(refunds)
		n := 0
		for did := range refunds {
			if did {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of %d calls refunded, want 1", n, cap(refunds))
		}
		w.wantState(d, acme, don, saga.Refunded, saga.ReasonClosed)
		w.wantBalances(acme, don, 10, 0)
		_, err = d.Drain(w.sys)
		w.must(err)
		w.wantBalances(acme, don, 10, 0)
		w.wantConserved(d)
	})
}

func TestDecide_Q27_RefusalsHaveTheirReasons(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		for name, c := range map[string]struct {
			arrange func(don saga.Donation)
			want    saga.Reason
			stock   int64
		}{
			"full":      {func(don saga.Donation) { w.must(d.Stock(w.as(acme), "stock", don.Guild, don.Item, math.MaxInt64-3)) }, saga.ReasonOverflow, math.MaxInt64 - 3},
			"closed":    {func(don saga.Donation) { w.must(d.SetGuild(w.as(acme), don.Guild, false)) }, saga.ReasonClosed, 0},
			"disbanded": {func(don saga.Donation) { w.disband(d, don) }, saga.ReasonNoGuild, 0},
		} {
			for _, between := range []bool{false, true} { // before T1, or between T1 and T2
				don := w.fresh(d, acme, 10, 4)
				if !between {
					c.arrange(don)
				}
				_, err := d.Donate(w.as(acme), don)
				w.must(err)
				if between {
					c.arrange(don)
				}
				ended, err := d.Drain(w.sys)
				if err != nil || ended.Refunded != 1 || ended.Settled != 0 {
					t.Errorf("%s: Drain = %+v, %v, want one refund", name, ended, err)
				}
				w.wantState(d, acme, don, saga.Refunded, c.want)
				w.wantBalances(acme, don, 10, c.stock)
				if rows := w.decisions(acme, don); len(rows) != 1 || rows[0].Outcome != saga.Rejected || rows[0].Reason != c.want {
					t.Errorf("%s: decision rows %+v, want one, rejected for %q", name, rows, c.want)
				}
				rec, err := d.Donate(w.as(acme), don)
				if err != nil || rec.State != saga.Refunded || rec.Reason != c.want {
					t.Errorf("%s: the same donation again: %+v, %v, want its end", name, rec, err)
				}
			}
		}
		w.wantConserved(d)
		// Exactly up to the edge is no overflow.
		don := w.fresh(d, acme, 10, 3)
		w.must(d.Stock(w.as(acme), "stock", don.Guild, don.Item, math.MaxInt64-3))
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		_, err = d.Drain(w.sys)
		w.must(err)
		w.wantBalances(acme, don, 7, math.MaxInt64)
		w.wantConserved(d) // the tenant's sum is past 2^63-1
	})
}

// disband removes the guild's row, as the service's own code does.
func (w *world) disband(d *saga.Donations, don saga.Donation) {
	w.Helper()
	_, err := w.raw(w.targetOf(d, acme, don), acme).ExecContext(w.Context(), "DELETE FROM guild WHERE tenant_id = ? AND guild_id = ?", "acme", w.text(don.Guild))
	w.must(err)
}

// The bag's cell is gone, or is so full that the refund does not fit.
func TestRefund_Q32_BagGoneOrFull(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		cfg := quiet()
		cfg.MaxAttempts = 2
		d := w.donations(cfg)
		gone := w.fresh(d, acme, 4, 4)
		_, err := d.Donate(w.as(acme), gone)
		w.must(err)
		_, err = w.raw(w.sourceOf(d, acme, gone), acme).ExecContext(w.Context(), "DELETE FROM bag WHERE tenant_id = ? AND player_id = ?", "acme", w.text(gone.Player))
		w.must(err)
		full := w.fresh(d, acme, 10, 4)
		_, err = d.Donate(w.as(acme), full)
		w.must(err)
		w.must(d.Grant(w.as(acme), "more", full.Player, full.Item, math.MaxInt64-6))
		w.must(d.SetGuild(w.as(acme), gone.Guild, false))
		w.must(d.SetGuild(w.as(acme), full.Guild, false))

		for range 3 {
			_, err = d.Drain(w.sys)
			w.must(err)
		}
		w.wantState(d, acme, gone, saga.Refunded, saga.ReasonClosed)
		w.wantBalances(acme, gone, 4, 0)
		w.wantState(d, acme, full, saga.Quarantined, saga.ReasonBagFull)
		w.wantBalances(acme, full, math.MaxInt64, 0)
		w.wantConserved(d)

		w.must(d.Burn(w.as(acme), "room", full.Player, full.Item, 100))
		list, err := d.Quarantined(w.sys)
		if err != nil || len(list) != 1 || list[0].Donation != full || list[0].Reason != saga.ReasonBagFull || list[0].Tenant != acme {
			t.Fatalf("Quarantined = %+v, %v", list, err)
		}
		did, err := d.Replay(w.sys, list[0])
		if err != nil || !did {
			t.Errorf("Replay = %v, %v", did, err)
		}
		_, err = d.Drain(w.sys)
		w.must(err)
		w.wantState(d, acme, full, saga.Refunded, saga.ReasonClosed)
		w.wantBalances(acme, full, math.MaxInt64-96, 0)
		w.wantConserved(d)
	})
}

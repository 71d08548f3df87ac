package saga_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// Reconcile finds exactly what is half done, in every way that it can be, and ends it.
func TestReconcile_EndsWhatIsHalfDone(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		fresh := func(id tenant.ID) saga.Donation {
			don := w.fresh(d, id, 10, 4)
			_, err := d.Donate(w.as(id), don)
			w.must(err)
			return don
		}
		ended := fresh(acme)
		_, err := d.Drain(w.sys)
		w.must(err)
		want := map[saga.State][]saga.Donation{}
		owner := map[saga.Donation]tenant.ID{ended: acme}
		for _, id := range []tenant.ID{acme, globex, delta, omega} {
			note := func(state saga.State, don saga.Donation) saga.Donation {
				want[state] = append(want[state], don)
				owner[don] = id
				return don
			}
			note(saga.Settled, fresh(id)) // not sent
			applied := note(saga.Settled, fresh(id))
			_, _, err := d.DecideForTest(w.as(id), applied, false) // credited, not settled
			w.must(err)
			rejected := note(saga.Refunded, fresh(id))
			w.must(d.SetGuild(w.as(id), rejected.Guild, false)) // refused, not refunded
			_, _, err = d.DecideForTest(w.as(id), rejected, false)
			w.must(err)
			voided := note(saga.Refunded, fresh(id))
			_, _, err = d.DecideForTest(w.as(id), voided, true) // voided, not refunded
			w.must(err)
			late := note(saga.Refunded, fresh(id)) // its time over, not voided
			w.expire(d, id, late)
		}
		w.wantConserved(d)
		rep, err := w.donationsOver(w.openStore(), quiet()).Reconcile(w.sys)
		if err != nil || rep.Settled != len(want[saga.Settled]) || rep.Refunded != len(want[saga.Refunded]) || rep.Ended.Quarantined != 0 || len(rep.Alarms)+len(rep.Quarantine) > 0 {
			t.Errorf("Reconcile = %+v, %v, want %d settled and %d refunded", rep, err, len(want[saga.Settled]), len(want[saga.Refunded]))
		}
		for state, dons := range want {
			for _, don := range dons {
				rec, err := d.State(w.as(owner[don]), don.Player, don.Key)
				if err != nil || rec.State != state {
					t.Errorf("%+v stands at %+v, %v, want %v", don, rec, err, state)
				}
			}
		}
		w.wantNothingOpen(d)
		w.wantConserved(d)
		rep, err = d.Reconcile(w.sys)
		if err != nil || rep.Settled+rep.Refunded > 0 {
			t.Errorf("a second Reconcile = %+v, %v, want nothing to do", rep, err)
		}
	})
}

// Corruptions are listed, exactly these, and never mended.
func TestReconcile_ListsCreditsWithoutADonation(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		var all []saga.Donation
		for range 12 {
			don := w.fresh(d, acme, 10, 4)
			_, err := d.Donate(w.as(acme), don)
			w.must(err)
			all = append(all, don)
		}
		_, err := d.Drain(w.sys)
		w.must(err)
		lost, forged, refunded, mismatched := all[0], all[3], all[5], all[7]
		exec := func(p dal.Place, text string, args ...any) {
			t.Helper()
			_, err := w.raw(p, acme).ExecContext(w.Context(), text, args...)
			w.must(err)
		}
		id := func(don saga.Donation) []byte { x := sagaID(acme, don); return x[:] }
		exec(w.sourceOf(d, acme, lost), "DELETE FROM saga_out WHERE tenant_id = 'acme' AND saga_id = ?", id(lost))
		forgedID := slices.Repeat([]byte{7}, 16)
		exec(w.targetOf(d, acme, forged), "INSERT INTO saga_in SELECT tenant_id, ?, outcome, player_id, guild_id, item_id, qty, body_hash, reason, epoch, decided_at"+
			" FROM saga_in WHERE tenant_id = 'acme' AND saga_id = ?", forgedID, id(forged))
		exec(w.sourceOf(d, acme, refunded), "UPDATE saga_out SET state = 5 WHERE tenant_id = 'acme' AND saga_id = ?", id(refunded))
		exec(w.targetOf(d, acme, mismatched), "UPDATE saga_in SET body_hash = ? WHERE tenant_id = 'acme' AND saga_id = ?", forgedID, id(mismatched))

		rep, err := d.Reconcile(w.sys)
		w.must(err)
		want := map[saga.ID]saga.AlarmKind{
			sagaID(acme, lost): saga.AlarmOrphan, saga.ID(forgedID): saga.AlarmOrphan,
			sagaID(acme, refunded): saga.AlarmRefunded, sagaID(acme, mismatched): saga.AlarmMismatch,
		}
		if len(rep.Alarms) != len(want) {
			t.Errorf("%d alarms, want %d: %+v", len(rep.Alarms), len(want), rep.Alarms)
		}
		for _, a := range rep.Alarms {
			if want[a.SagaID] != a.Kind || a.Tenant != acme || a.Qty != 4 || a.Item != "gold" || a.Place == (dal.Place{}) {
				t.Errorf("alarm %+v, want kind %q", a, want[a.SagaID])
			}
		}
		w.wantBalances(acme, lost, 6, 4)
		w.wantBalances(acme, refunded, 6, 4)
	})
}

// A place that is away is named, and the others are done.
func TestReconcile_PlaceAway(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 3, everyModel[0])
	d := w.donations(quiet())
	away := dal.Place{Shard: "s2"}
	var there, elsewhere saga.Donation
	for there.Key == "" || elsewhere.Key == "" {
		don := w.fresh(d, acme, 10, 4)
		if w.sourceOf(d, acme, don) == away {
			there = don
		} else if w.targetOf(d, acme, don) != away {
			elsewhere = don
		}
	}
	for _, don := range []saga.Donation{there, elsewhere} {
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
	}
	gone := errors.New("the disk is gone")
	w.watch.onBefore(func(_ context.Context, e wire.Event) error {
		if e.Shard == away.String() {
			return gone
		}
		return nil
	})
	rep, err := d.Reconcile(w.sys)
	var failed *saga.PlacesError
	if !errors.As(err, &failed) || !errors.Is(err, gone) || len(failed.Failed) != 1 || failed.Failed[away] == nil || !strings.Contains(err.Error(), "s2") {
		t.Errorf("Reconcile = %v, want a PlacesError of s2", err)
	}
	if rep.Settled != 1 || len(rep.Open) != 2 {
		t.Errorf("report beside the error: %+v, want the other places' one settled donation and 2 places counted", rep)
	}
	if all, err := d.Conservation(w.sys); !errors.As(err, &failed) || all != nil {
		t.Errorf("Conservation = %v, %v, want no sums", all, err)
	}
	w.watch.off()
	w.wantState(d, acme, elsewhere, saga.Settled, "")
	w.wantState(d, acme, there, saga.Pending, "")
	rep, err = d.Reconcile(w.sys)
	if err != nil || rep.Settled != 1 {
		t.Errorf("Reconcile = %+v, %v", rep, err)
	}
	w.wantConserved(d)
}

// Sums past 2^63-1, and the one account that was touched by hand.
func TestConservation_SumsAndCorruption(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(w *world) {
		d := w.donations(quiet())
		for _, player := range []string{"1", "2", "3"} {
			w.must(d.Grant(w.as(acme), "max", player, "gold", math.MaxInt64))
			w.must(d.Grant(w.as(globex), "max", player, "gold", 7))
			w.must(d.Grant(w.as(delta), "max", player, "gold ", 8))
		}
		for _, guild := range []string{"1", "2"} {
			w.must(d.Stock(w.as(acme), "max", guild, "gold", math.MaxInt64))
		}
		w.must(d.Burn(w.as(acme), "burn", "1", "gold", 5))
		w.must(d.BurnStock(w.as(acme), "burn", "1", "gold", 6))
		w.must(d.SetGuild(w.as(globex), "9", true))
		_, err := d.Donate(w.as(globex), saga.Donation{Key: "k", Player: "1", Guild: "9", Item: "gold", Qty: 3})
		w.must(err)
		w.wantConserved(d)
		got, err := d.Conservation(w.sys)
		w.must(err)
		limit := big.NewInt(math.MaxInt64)
		times := func(n, less int64) *big.Int {
			return new(big.Int).Sub(new(big.Int).Mul(limit, big.NewInt(n)), big.NewInt(less))
		}
		want := []saga.Balance{
			{Tenant: acme, Item: "gold", Minted: times(5, 0), Burned: big.NewInt(11), Bags: times(3, 5), Pending: new(big.Int), Warehouses: times(2, 6)},
			{Tenant: delta, Item: "gold ", Minted: big.NewInt(24), Burned: new(big.Int), Bags: big.NewInt(24), Pending: new(big.Int), Warehouses: new(big.Int)},
			{Tenant: globex, Item: "gold", Minted: big.NewInt(21), Burned: new(big.Int), Bags: big.NewInt(18), Pending: big.NewInt(3), Warehouses: new(big.Int)},
		}
		if len(got) != len(want) {
			t.Fatalf("Conservation = %+v, want %d accounts", got, len(want))
		}
		for i, b := range got {
			x := want[i]
			if b.Tenant != x.Tenant || b.Item != x.Item || b.Minted.Cmp(x.Minted) != 0 || b.Burned.Cmp(x.Burned) != 0 || b.Bags.Cmp(x.Bags) != 0 ||
				b.Pending.Cmp(x.Pending) != 0 || b.Warehouses.Cmp(x.Warehouses) != 0 {
				t.Errorf("account %d = %+v, want %+v", i, b, x)
			}
		}
		for _, text := range []string{
			"UPDATE bag SET qty = qty + 1 WHERE tenant_id = 'globex' AND player_id = '2'",
			"UPDATE bag SET qty = qty - 1 WHERE tenant_id = 'globex' AND player_id = '2'",
		} {
			r, err := w.store.Route(w.as(globex), dal.Key("player", "2"))
			w.must(err)
			_, err = w.raw(r.Place, globex).ExecContext(w.Context(), text)
			w.must(err)
			got, err := d.Conservation(w.sys)
			w.must(err)
			for _, b := range got {
				touched := b.Tenant == globex && strings.Contains(text, "+")
				if b.Conserved() == touched {
					t.Errorf("after %q: %+v: Conserved = %v", text, b, b.Conserved())
				}
			}
		}
	})
}

// A credit that was forged shows, also while real ones come in.
func TestConservation_ForgedCredit(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2, everyModel[0])
	d := w.donations(quiet())
	don := w.fresh(d, acme, 10, 4)
	_, err := d.Donate(w.as(acme), don)
	w.must(err)
	ghost := don
	ghost.Key = "never started"
	if outcome, _, err := d.DecideForTest(w.as(acme), ghost, false); err != nil || outcome != saga.Applied {
		t.Fatalf("forged event: %v, %v", outcome, err)
	}
	all, err := d.Conservation(w.sys)
	w.must(err)
	if len(all) != 1 || all[0].Conserved() {
		t.Errorf("Conservation after a forged credit = %+v, want it to show", all)
	}
	_, err = d.Drain(w.sys)
	w.must(err)
	rep, err := d.Reconcile(w.sys)
	if err != nil || len(rep.Alarms) != 1 || rep.Alarms[0].SagaID != sagaID(acme, ghost) || rep.Alarms[0].Kind != saga.AlarmOrphan {
		t.Errorf("Reconcile = %+v, %v, want the forged credit", rep, err)
	}
}

// A donation that is refused everywhere keeps nobody waiting in a drain.
func TestDrain_EndsWhileATargetIsAway(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2, everyModel[0])
	d := w.donations(quiet())
	away := dal.Place{Shard: "s2"}
	var don saga.Donation
	for don = w.fresh(d, acme, 10, 4); w.targetOf(d, acme, don) != away || w.sourceOf(d, acme, don) == away; don = w.fresh(d, acme, 10, 4) {
	}
	_, err := d.Donate(w.as(acme), don)
	w.must(err)
	w.watch.onBefore(func(_ context.Context, e wire.Event) error {
		if e.Shard == away.String() && e.Op == "begin" {
			return driver.ErrBadConn
		}
		return nil
	})
	ended, err := d.Drain(w.sys)
	if err != nil || ended != (saga.Ended{}) {
		t.Errorf("Drain = %+v, %v, want nothing ended and no error", ended, err)
	}
	w.watch.off()
	all, err := d.Pending(w.sys)
	w.must(err)
	if n := all[0].Pending; n != 1 {
		t.Errorf("Pending = %+v, want one", all)
	}
	w.wantConserved(d)
}

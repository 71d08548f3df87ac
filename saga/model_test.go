package saga_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/saga"
)

// The model of a donation: what was decided, and where its items are.
type modelled struct {
	don     saga.Donation
	state   saga.State // Pending, Settled or Refunded
	outcome saga.Outcome
	reason  saga.Reason
	expired bool
}

// Any order of donations, repeats, conflicting repeats, applies, voids and passed deadlines, by any of two relays, with guilds that open and close and
// mints and burns between, gives the balances of a model that is a few integers.
func TestDonations_Model(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2, everyModel[0])
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		a, err := saga.NewDonations(w.store, quiet())
		if err != nil {
			t.Fatal(err)
		}
		b, err := saga.NewDonations(w.store, quiet())
		if err != nil {
			t.Fatal(err)
		}
		relays := []*saga.Donations{a, b}
		ctx := w.as(acme)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		players, guilds := make([]string, 2), make([]string, 2)
		for i := range players {
			players[i], guilds[i] = fmt.Sprintf("p%d-%d", n, i), fmt.Sprintf("g%d-%d", n, i)
		}
		bags, warehouses, open := map[string]int64{}, map[string]int64{}, map[string]bool{}
		var all []*modelled
		mints := 0
		mintID := func() string { mints++; return fmt.Sprint("m", mints) }
		pick := func(t *rapid.T) *modelled {
			if len(all) == 0 {
				t.Skip("no donation yet")
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "donation")]
		}
		relay := func(t *rapid.T) *saga.Donations { return relays[rapid.IntRange(0, 1).Draw(t, "relay")] }
		// decide is what a decision row is, and what the first writer of it does.
		decide := func(m *modelled, void bool) {
			switch {
			case m.outcome != 0:
			case void:
				m.outcome, m.reason = saga.Voided, saga.ReasonTimeout
			case !open[m.don.Guild]:
				m.outcome, m.reason = saga.Rejected, saga.ReasonClosed
				if _, known := open[m.don.Guild]; !known {
					m.reason = saga.ReasonNoGuild
				}
			case warehouses[m.don.Guild] > math.MaxInt64-m.don.Qty:
				m.outcome, m.reason = saga.Rejected, saga.ReasonOverflow
			default:
				m.outcome = saga.Applied
				warehouses[m.don.Guild] += m.don.Qty
			}
		}
		end := func(m *modelled) {
			if m.state != saga.Pending {
				return
			}
			decide(m, m.expired)
			if m.outcome == saga.Applied {
				m.state = saga.Settled
				return
			}
			m.state = saga.Refunded
			bags[m.don.Player] += m.don.Qty
		}
		// An order of its own for donations that a drain ends at once would be another model: each is decided for itself, and sums commute, unless two
		// of them race for the last room of a cell, which the quantities below leave to the one that is filled.
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				p, qty := rapid.SampledFrom(players).Draw(t, "player"), rapid.Int64Range(1, 20).Draw(t, "qty")
				must(relay(t).Grant(ctx, mintID(), p, "gold", qty))
				bags[p] += qty
			},
			"fill": func(t *rapid.T) {
				g := rapid.SampledFrom(guilds).Draw(t, "guild")
				if warehouses[g] > 1<<40 {
					t.Skip("full")
				}
				// Room for nothing.
				qty := math.MaxInt64 - warehouses[g]
				must(relay(t).Stock(ctx, mintID(), g, "gold", qty))
				warehouses[g] += qty
			},
			"set guild": func(t *rapid.T) {
				g, on := rapid.SampledFrom(guilds).Draw(t, "guild"), rapid.Bool().Draw(t, "open")
				must(relay(t).SetGuild(ctx, g, on))
				open[g] = on
			},
			"burn": func(t *rapid.T) {
				p, qty := rapid.SampledFrom(players).Draw(t, "player"), rapid.Int64Range(1, 10).Draw(t, "qty")
				err := relay(t).Burn(ctx, mintID(), p, "gold", qty)
				if (err == nil) != (bags[p] >= qty) {
					t.Fatalf("Burn(%d) of %d: %v", qty, bags[p], err)
				}
				if err == nil {
					bags[p] -= qty
				}
			},
			"donate": func(t *rapid.T) {
				don := saga.Donation{
					Key: fmt.Sprint("k", len(all)), Player: rapid.SampledFrom(players).Draw(t, "player"), Guild: rapid.SampledFrom(guilds).Draw(t, "guild"),
					Item: "gold", Qty: rapid.Int64Range(-1, 15).Draw(t, "qty"),
				}
				rec, err := relay(t).Donate(ctx, don)
				if ok := don.Qty > 0 && bags[don.Player] >= don.Qty; ok != (err == nil) {
					t.Fatalf("Donate(%+v) from %d: %+v, %v", don, bags[don.Player], rec, err)
				}
				if err == nil {
					bags[don.Player] -= don.Qty
					all = append(all, &modelled{don: don, state: saga.Pending})
				}
			},
			"donate again": func(t *rapid.T) {
				m := pick(t)
				rec, err := relay(t).Donate(ctx, m.don)
				if err != nil || !rec.Replayed || rec.State != m.state && !(m.state == saga.Pending && rec.State == saga.Voiding) {
					t.Fatalf("Donate(%+v) again: %+v, %v, want %v", m.don, rec, err, m.state)
				}
				other := m.don
				other.Qty++
				if _, err := relay(t).Donate(ctx, other); err == nil {
					t.Fatalf("Donate(%+v) with another quantity: no error", other)
				}
			},
			"apply": func(t *rapid.T) {
				m := pick(t)
				decide(m, false)
				if outcome, reason, err := relay(t).DecideForTest(ctx, m.don, false); err != nil || outcome != m.outcome || reason != m.reason {
					t.Fatalf("apply of %+v: %v %q, %v, want %v %q", m.don, outcome, reason, err, m.outcome, m.reason)
				}
			},
			"void": func(t *rapid.T) {
				m := pick(t)
				decide(m, true)
				if outcome, reason, err := relay(t).DecideForTest(ctx, m.don, true); err != nil || outcome != m.outcome || reason != m.reason {
					t.Fatalf("void of %+v: %v %q, %v, want %v %q", m.don, outcome, reason, err, m.outcome, m.reason)
				}
			},
			"deadline": func(t *rapid.T) {
				m := pick(t)
				w.expire(a, acme, m.don)
				m.expired = true
			},
			"drain": func(t *rapid.T) {
				_, err := relay(t).Drain(w.sys)
				must(err)
				for _, m := range all {
					end(m)
				}
			},
			"": func(t *rapid.T) {
				for _, p := range players {
					if got := w.bag(acme, p, "gold"); got != bags[p] {
						t.Fatalf("bag of %s = %d, want %d", p, got, bags[p])
					}
				}
				for _, g := range guilds {
					if got := w.warehouse(acme, g, "gold"); got != warehouses[g] {
						t.Fatalf("warehouse of %s = %d, want %d", g, got, warehouses[g])
					}
				}
				for _, m := range all {
					rec, err := a.State(ctx, m.don.Player, m.don.Key)
					if err != nil || rec.State != m.state && !(m.state == saga.Pending && rec.State == saga.Voiding) {
						t.Fatalf("%+v stands at %+v, %v, want %v", m.don, rec, err, m.state)
					}
				}
			},
		})
		sums, err := a.Conservation(w.sys)
		must(err)
		for _, b := range sums {
			if !b.Conserved() {
				t.Fatalf("not conserved: %+v", b)
			}
		}
		if _, err := a.Drain(w.sys); err != nil { // nothing is left for the next run
			t.Fatal(err)
		}
		must(a.Close(w.Context()))
		must(b.Close(w.Context()))
	})
}

package saga_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// dump returns every row of a tenant in a place, as text.
func (w *world) dump(p dal.Place, id tenant.ID) string {
	w.Helper()
	var b strings.Builder
	db := w.raw(p, id)
	for _, table := range saga.TableNames() {
		rows, err := db.QueryContext(w.Context(), "SELECT * FROM "+table+" WHERE tenant_id = ? ORDER BY 1, 2, 3", string(id))
		w.must(err)
		columns, err := rows.Columns()
		w.must(err)
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			w.must(rows.Scan(into...))
			fmt.Fprintf(&b, "%s %v\n", table, values)
		}
		w.must(rows.Err())
		w.must(rows.Close())
	}
	return b.String()
}

// Two tenants in one place with equal players, guilds, items, keys and mint ids. Every constant of this package runs for one of them, and no row of the
// other changes.
func TestStatements_Q44_EveryOneOfThemLeavesTheOtherTenantAlone(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(w *world) {
		var lose atomic.Int64
		store, _ := w.overLossy(func() (bool, bool) { return lose.Add(-1) >= 0, true })
		cfg := quiet()
		cfg.MaxAttempts = 2
		d := w.donationsOver(store, cfg)
		p := dal.Place{Shard: "s1"}
		don := saga.Donation{Key: "k", Player: "7", Guild: "12", Item: "gold", Qty: 1}
		n := 0
		next := func() saga.Donation {
			n++
			x := don
			x.Key = fmt.Sprint("k", n)
			return x
		}
		w.must(d.Grant(w.as(globex), "m", don.Player, don.Item, 1000))
		w.must(d.Stock(w.as(globex), "m2", don.Guild, "new", 5))
		w.must(d.SetGuild(w.as(globex), don.Guild, true))
		for range 140 { // as acme will have, and some more
			_, err := d.Donate(w.as(globex), next())
			w.must(err)
		}
		n = 0
		half, err := d.Drain(w.sys)
		if err != nil || half.Settled != 140 {
			t.Fatalf("Drain = %+v, %v", half, err)
		}
		before := w.dump(p, globex)
		if len(before) < 1000 {
			t.Fatalf("globex has the rows %q", before)
		}

		var mu sync.Mutex
		ran := map[string]bool{}
		record := func(fail func(e wire.Event) error) {
			w.watch.onBefore(func(_ context.Context, e wire.Event) error {
				mu.Lock()
				ran[e.Text] = true
				mu.Unlock()
				if fail != nil {
					return fail(e)
				}
				return nil
			})
		}
		record(nil)
		ctx := w.as(acme)
		// Bags, warehouses and guilds.
		for range 2 {
			w.must(d.Grant(ctx, "m", don.Player, don.Item, 1000))
		}
		w.must(d.Grant(ctx, "m2", don.Player, "new", 1))
		w.must(d.Stock(ctx, "m2", don.Guild, "new", 1))
		w.must(d.Burn(ctx, "m3", don.Player, "new", 1))
		w.must(d.BurnStock(ctx, "m3", don.Guild, "new", 1))
		w.must(d.SetGuild(ctx, don.Guild, true))
		w.must(d.SetGuild(ctx, "another", true))
		// Every length of a list: claimed, failed, postponed; summed up while open; claimed again and settled; audited.
		for i, size := range []int{1, 1, 2, 4, 8, 16, 32, 64} {
			for range size {
				_, err := d.Donate(ctx, next())
				w.must(err)
			}
			record(func(e wire.Event) error {
				if strings.HasPrefix(e.Text, "INSERT INTO saga_in") {
					return driver.ErrBadConn
				}
				return nil
			})
			_, err := d.Step(w.sys)
			w.must(err)
			record(nil)
			_, err = d.Conservation(w.sys)
			w.must(err)
			if i < 2 {
				_, err = d.Reconcile(w.sys)
			} else {
				_, err = d.Drain(w.sys)
			}
			w.must(err)
			_, err = d.Reconcile(w.sys)
			w.must(err)
		}
		// A new cell, a refusal with a refund to a bag whose cell is gone, a donation decided before, and one whose COMMIT was lost.
		w.must(d.Grant(ctx, "m4", "8", "wood", 1))
		_, err = d.Donate(ctx, saga.Donation{Key: "k", Player: "8", Guild: "another", Item: "wood", Qty: 1})
		w.must(err)
		_, err = d.Drain(w.sys)
		w.must(err)
		w.must(d.Grant(ctx, "m5", "9", "wood", 3))
		for i, guild := range []string{"nobody", "another", "another"} {
			x := saga.Donation{Key: fmt.Sprint(i), Player: "9", Guild: guild, Item: "wood", Qty: 1}
			lose.Store(int64(i / 2))
			_, err = d.Donate(ctx, x)
			w.must(err)
			if i == 1 {
				_, _, err = d.DecideForTest(ctx, x, false)
				w.must(err)
			}
		}
		_, err = w.raw(p, acme).ExecContext(t.Context(), "DELETE FROM bag WHERE tenant_id = 'acme' AND player_id = ?", w.text("9"))
		w.must(err)
		_, err = d.Drain(w.sys)
		w.must(err)
		// A quarantine and a replay; the state.
		x := saga.Donation{Key: "q", Player: don.Player, Guild: don.Guild, Item: don.Item, Qty: 1}
		_, err = d.Donate(ctx, x)
		w.must(err)
		w.forge(d, x, "qty = 2")
		_, err = d.Drain(w.sys)
		w.must(err)
		list, err := d.Quarantined(w.sys)
		if err != nil || len(list) != 1 {
			t.Fatalf("Quarantined = %+v, %v", list, err)
		}
		w.forge(d, x, "qty = 1")
		_, err = d.Replay(w.sys, list[0])
		w.must(err)
		_, err = d.Drain(w.sys)
		w.must(err)
		_, err = d.State(ctx, x.Player, x.Key)
		w.must(err)
		_, err = d.Pending(w.sys)
		w.must(err)
		w.watch.off()

		if after := w.dump(p, globex); after != before {
			t.Errorf("globex's rows changed from\n%s\nto\n%s", before, after)
		}
		suffix := "/" + string(w.cfg.Cluster.Dialect)
		for _, st := range wire.Statements() {
			if strings.HasPrefix(st.Name(), "saga.") && strings.HasSuffix(st.Name(), suffix) && !ran[st.Text()] {
				t.Errorf("%s did not run", st.Name())
			}
		}
		w.wantConserved(d)
	})
}

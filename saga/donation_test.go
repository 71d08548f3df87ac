package saga_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestDonate_EndsInTheWarehouse(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		w.must(d.Start(w.Context()))
		for _, id := range []tenant.ID{acme, globex, delta, omega} {
			don := w.fresh(d, id, 10, 4)
			rec, err := d.Donate(w.as(id), don)
			if err != nil || rec.State != saga.Pending || rec.Replayed || rec.SagaID != sagaID(id, don) {
				t.Errorf("Donate = %+v, %v", rec, err)
			}
			_, err = d.Drain(w.sys)
			w.must(err)
			w.wantState(d, id, don, saga.Settled, "")
			w.wantBalances(id, don, 6, 4)
		}
		w.wantNothingOpen(d)
		w.wantConserved(d)
	})
}

// The promise of the package's documentation: 2 + 2 + 1 statements in 3 commits, without a claim, when the cells exist.
func TestDonate_CostsFiveStatementsInThreeCommits(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		w.must(d.Start(w.Context()))
		don := w.fresh(d, acme, 10, 4)
		w.must(d.Stock(w.as(acme), "stock", don.Guild, don.Item, 1))
		before := w.store.Stats()
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		w.must(d.Close(w.Context()))
		got := w.store.Stats().Sub(before)
		if got.Statements != 5 || got.Commits != 3 || got.Polls != 0 || got.Rollbacks != 0 {
			t.Errorf("a donation cost %+v, want 5 statements, 3 commits, no poll", got)
		}
		w.wantState(d, acme, don, saga.Settled, "")
	})
}

func TestDonate_Q23_SameKey(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		first, err := d.Donate(w.as(acme), don)
		w.must(err)
		again, err := d.Donate(w.as(acme), don)
		if err != nil || !again.Replayed || again.State != saga.Pending || again.SagaID != first.SagaID {
			t.Errorf("same body, pending: %+v, %v", again, err)
		}
		other := don
		other.Qty++
		var conflict *saga.ConflictError
		if _, err := d.Donate(w.as(acme), other); !errors.As(err, &conflict) || !errors.Is(err, saga.ErrConflict) || conflict.SagaID != first.SagaID {
			t.Errorf("other quantity: %v, want a ConflictError", err)
		}
		other = don
		other.Guild += "x"
		if _, err := d.Donate(w.as(acme), other); !errors.Is(err, saga.ErrConflict) {
			t.Errorf("other guild: %v, want ErrConflict", err)
		}
		w.wantBalances(acme, don, 6, 0)
		_, err = d.Drain(w.sys)
		w.must(err)
		again, err = d.Donate(w.as(acme), don)
		if err != nil || !again.Replayed || again.State != saga.Settled {
			t.Errorf("same body, settled: %+v, %v", again, err)
		}
		// An emptied bag must not turn the answer: the journal is read before the bag is called too small.
		w.must(d.Burn(w.as(acme), "burn", don.Player, don.Item, 6))
		if again, err = d.Donate(w.as(acme), don); err != nil || again.State != saga.Settled {
			t.Errorf("same body, bag empty: %+v, %v", again, err)
		}
		if _, err := d.Donate(w.as(acme), other); !errors.Is(err, saga.ErrConflict) {
			t.Errorf("other guild, bag empty: %v, want ErrConflict", err)
		}
		w.wantBalances(acme, don, 0, 4)
		w.wantConserved(d)
	})
}

func TestDonate_Q26_ZeroNegativeOverflow(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2)
	d := w.donations(quiet())
	don := w.fresh(d, acme, 10, 1)
	before := w.store.Stats()
	for _, qty := range []int64{0, -5, math.MinInt64} {
		don.Qty = qty
		var bad *saga.QuantityError
		if _, err := d.Donate(w.as(acme), don); !errors.As(err, &bad) || bad.Qty != qty {
			t.Errorf("Donate of %d: %v, want a QuantityError", qty, err)
		}
	}
	if got := w.store.Stats().Sub(before); got.Statements+got.Begins > 0 {
		t.Errorf("refused quantities cost %+v, want nothing sent", got)
	}
	don.Qty = math.MaxInt64
	var short *saga.InsufficientError
	if _, err := d.Donate(w.as(acme), don); !errors.As(err, &short) || short.Qty != math.MaxInt64 || short.Tenant != acme {
		t.Errorf("Donate of 2^63-1: %v, want an InsufficientError", err)
	}
	if _, err := d.State(w.as(acme), don.Player, don.Key); !errors.Is(err, saga.ErrNoDonation) {
		t.Errorf("State after a refusal: %v, want ErrNoDonation: the key stays free", err)
	}
	don.Qty = 10
	if _, err := d.Donate(w.as(acme), don); err != nil {
		t.Errorf("Donate under the key that stayed free: %v", err)
	}
}

func TestDonate_RefusesBadFieldsBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2)
	d := w.donations(quiet())
	good := w.fresh(d, acme, 10, 1)
	before := w.store.Stats()
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		field string
		bend  func(*saga.Donation)
		is    error
	}{
		{"Key", func(x *saga.Donation) { x.Key = "" }, nil},
		{"Key", func(x *saga.Donation) { x.Key = long }, nil},
		{"Player", func(x *saga.Donation) { x.Player = "" }, nil},
		{"Player", func(x *saga.Donation) { x.Player = "0" }, shardrouter.ErrZeroKey},
		{"Guild", func(x *saga.Donation) { x.Guild = "" }, nil},
		{"Guild", func(x *saga.Donation) { x.Guild = "0" }, shardrouter.ErrZeroKey},
		{"Guild", func(x *saga.Donation) { x.Guild = long }, nil},
		{"Item", func(x *saga.Donation) { x.Item = "" }, nil},
		{"Item", func(x *saga.Donation) { x.Item = long }, nil},
	} {
		don := good
		c.bend(&don)
		var bad *saga.FieldError
		_, err := d.Donate(w.as(acme), don)
		if !errors.As(err, &bad) || bad.Field != c.field || !errors.Is(err, saga.ErrField) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("Donate(%+v) = %v, want a FieldError of %s", don, err, c.field)
		}
	}
	if got := w.store.Stats().Sub(before); got.Statements+got.Begins > 0 {
		t.Errorf("refused fields cost %+v, want nothing sent", got)
	}
}

func TestDonate_Q44_TenantMissingOrCrossed(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		don := w.fresh(d, acme, 10, 4)
		for name, c := range map[string]struct {
			ctx  context.Context
			want error
		}{
			"none":      {w.Context(), tenant.ErrNoTenant},
			"system":    {w.sys, tenant.ErrSystemScope},
			"unknown":   {w.as("nobody"), tenant.ErrUnknownTenant},
			"suspended": {w.as("asleep"), tenant.ErrSuspended},
			"ill":       {w.as("Acme"), tenant.ErrInvalidID},
		} {
			if _, err := d.Donate(c.ctx, don); !errors.Is(err, c.want) {
				t.Errorf("Donate, tenant %s: %v, want %v", name, err, c.want)
			}
			if _, err := d.State(c.ctx, don.Player, don.Key); !errors.Is(err, c.want) {
				t.Errorf("State, tenant %s: %v, want %v", name, err, c.want)
			}
			if err := d.Grant(c.ctx, "m", don.Player, don.Item, 1); !errors.Is(err, c.want) {
				t.Errorf("Grant, tenant %s: %v, want %v", name, err, c.want)
			}
		}
		// Work across tenants needs a system scope over these tables.
		for name, f := range map[string]func(context.Context) error{
			"Drain":        func(ctx context.Context) error { _, err := d.Drain(ctx); return err },
			"Step":         func(ctx context.Context) error { _, err := d.Step(ctx); return err },
			"Pending":      func(ctx context.Context) error { _, err := d.Pending(ctx); return err },
			"Quarantined":  func(ctx context.Context) error { _, err := d.Quarantined(ctx); return err },
			"Reconcile":    func(ctx context.Context) error { _, err := d.Reconcile(ctx); return err },
			"Conservation": func(ctx context.Context) error { _, err := d.Conservation(ctx); return err },
			"Replay": func(ctx context.Context) error {
				_, err := d.Replay(ctx, saga.QuarantinedDonation{Tenant: acme})
				return err
			},
		} {
			if err := f(w.as(acme)); !errors.Is(err, tenant.ErrNotSystem) {
				t.Errorf("%s under a tenant: %v, want ErrNotSystem", name, err)
			}
			if err := f(tenant.System(w.Context(), "test", "bag")); !errors.Is(err, saga.ErrScope) {
				t.Errorf("%s under a scope over bag alone: %v, want ErrScope", name, err)
			}
		}
		// The same player, key and guild in another tenant are another donation.
		w.must(d.Grant(w.as(globex), "grant", don.Player, don.Item, 7))
		w.must(d.SetGuild(w.as(globex), don.Guild, true))
		_, err := d.Donate(w.as(acme), don)
		w.must(err)
		if _, err := d.State(w.as(globex), don.Player, don.Key); !errors.Is(err, saga.ErrNoDonation) {
			t.Errorf("State in the other tenant: %v, want ErrNoDonation", err)
		}
		_, err = d.Drain(w.sys)
		w.must(err)
		w.wantBalances(acme, don, 6, 4)
		w.wantBalances(globex, don, 7, 0)
		_, err = d.Donate(w.as(globex), don)
		w.must(err)
		_, err = d.Drain(w.sys)
		w.must(err)
		w.wantBalances(globex, don, 3, 4)
		w.wantConserved(d)
	})
}

// Texts are compared byte by byte, with everything that breaks naive code in them.
func TestDonate_TextsAreBytes(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		texts := []string{"a", "A", "a ", " a", "á", "a\u0301", `a'"%_\`, "a\x00b", "a\x00", "7", "007", "\xff\xfe", strings.Repeat("ä", 127)}
		for i, item := range texts {
			don := saga.Donation{Key: item, Player: item, Guild: item, Item: item, Qty: int64(i + 1)}
			w.must(d.Grant(w.as(acme), item, item, item, 100))
			w.must(d.SetGuild(w.as(acme), item, true))
			rec, err := d.Donate(w.as(acme), don)
			if err != nil || rec.Replayed {
				t.Fatalf("Donate(%q) = %+v, %v", item, rec, err)
			}
		}
		_, err := d.Drain(w.sys)
		w.must(err)
		for i, item := range texts {
			don := saga.Donation{Key: item, Player: item, Guild: item, Item: item, Qty: int64(i + 1)}
			w.wantState(d, acme, don, saga.Settled, "")
			w.wantBalances(acme, don, 100-don.Qty, don.Qty)
		}
		w.wantConserved(d)
	})
}

func TestDonate_NeedsNoStart(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2)
	d := w.donations(quiet())
	don := w.fresh(d, acme, 10, 4)
	_, err := d.Donate(w.as(acme), don)
	w.must(err)
	w.wantState(d, acme, don, saga.Pending, "")
	ended, err := d.Step(w.sys)
	if err != nil || ended.Settled != 1 {
		t.Errorf("Step = %+v, %v, want 1 settled", ended, err)
	}
	w.wantState(d, acme, don, saga.Settled, "")
}

func TestDonations_Lifecycle(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2)
	if _, err := saga.NewDonations(nil, saga.Config{}); err == nil {
		t.Error("NewDonations(nil): no error")
	}
	if _, err := saga.NewDonations(w.store, saga.Config{Batch: -1}); err == nil {
		t.Error("NewDonations with a bad Config: no error")
	}
	d := w.donations(saga.Config{})
	w.must(d.Start(w.Context()))
	if err := d.Start(w.Context()); !errors.Is(err, saga.ErrStarted) {
		t.Errorf("second Start: %v, want ErrStarted", err)
	}
	w.must(d.Close(w.Context()))
	w.must(d.Close(w.Context()))
	d.Cancel()
	if err := d.Start(w.Context()); !errors.Is(err, saga.ErrClosed) {
		t.Errorf("Start after Close: %v, want ErrClosed", err)
	}
	if _, err := d.Donate(w.as(acme), saga.Donation{Key: "k", Player: "1", Guild: "1", Item: "i", Qty: 1}); !errors.Is(err, saga.ErrClosed) {
		t.Errorf("Donate after Close: %v, want ErrClosed", err)
	}
	never := w.donations(saga.Config{})
	w.must(never.Close(w.Context()))
	never.Cancel()
}

func TestMint_OnceForEachID(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(w *world) {
		d := w.donations(quiet())
		ctx := w.as(acme)
		for range 3 {
			w.must(d.Grant(ctx, "line-1", "7", "gold", 10))
			w.must(d.Stock(ctx, "line-2", "12", "gold", 20))
			w.must(d.Burn(ctx, "line-3", "7", "gold", 4))
			w.must(d.BurnStock(ctx, "line-4", "12", "gold", 5))
			w.must(d.Grant(ctx, "line-1", "8", "gold", 1)) // another player's grant of that name
		}
		don := saga.Donation{Player: "7", Guild: "12", Item: "gold"}
		w.wantBalances(acme, don, 6, 15)
		if got := w.bag(acme, "8", "gold"); got != 1 {
			t.Errorf("bag of player 8 = %d, want 1", got)
		}
		for name, err := range map[string]error{
			"other quantity": d.Grant(ctx, "line-1", "7", "gold", 11),
			"other item":     d.Grant(ctx, "line-1", "7", "silver", 10),
			"other kind":     d.Burn(ctx, "line-1", "7", "gold", 10),
		} {
			var conflict *saga.MintConflictError
			if !errors.As(err, &conflict) || !errors.Is(err, saga.ErrConflict) {
				t.Errorf("%s under a used id: %v, want a MintConflictError", name, err)
			}
		}
		for name, err := range map[string]error{
			"Burn":      d.Burn(ctx, "more", "7", "gold", 7),
			"BurnStock": d.BurnStock(ctx, "more", "12", "gold", 16),
			"no cell":   d.Burn(ctx, "more", "7", "silver", 1),
		} {
			if !errors.Is(err, saga.ErrInsufficient) {
				t.Errorf("%s of too much: %v, want ErrInsufficient", name, err)
			}
		}
		w.must(d.Burn(ctx, "more", "7", "gold", 6)) // the id stayed free
		for name, err := range map[string]error{
			"Grant": d.Grant(ctx, "big", "8", "gold", math.MaxInt64),
			"Stock": d.Stock(ctx, "big", "12", "gold", math.MaxInt64),
		} {
			var over *saga.OverflowError
			if !errors.As(err, &over) || !errors.Is(err, saga.ErrOverflow) {
				t.Errorf("%s past 2^63-1: %v, want an OverflowError", name, err)
			}
		}
		w.must(d.Grant(ctx, "big", "8", "gold", math.MaxInt64-1)) // up to the edge, under the id that stayed free
		for _, err := range []error{d.Grant(ctx, "", "7", "gold", 1), d.Grant(ctx, "m", "7", "", 1), d.Stock(ctx, "m", "0", "gold", 1), d.SetGuildOnce(ctx, "", "12", true), d.SetGuild(ctx, "", true)} {
			if !errors.Is(err, saga.ErrField) {
				t.Errorf("bad field: %v, want ErrField", err)
			}
		}
		if err := d.Stock(ctx, "m", "12", "gold", 0); !errors.Is(err, saga.ErrQuantity) {
			t.Errorf("Stock of 0: %v, want ErrQuantity", err)
		}
		w.wantConserved(d)
	})
}

func TestSetGuild(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(w *world) {
		d := w.donations(quiet())
		ctx := w.as(acme)
		status := func() int8 {
			var rows []saga.Guild
			w.must(w.store.On(ctx, dal.Key("guild", "12")).Find(&rows).Error)
			if len(rows) != 1 {
				t.Fatalf("%d rows of the guild, want 1", len(rows))
			}
			return rows[0].Status
		}
		for _, open := range []bool{true, true, false, false, true} {
			w.must(d.SetGuild(ctx, "12", open))
			if got, want := status() == 1, open; got != want {
				t.Errorf("open = %v after SetGuild(%v)", got, want)
			}
		}
		w.must(d.SetGuildOnce(ctx, "line-1", "12", false))
		w.must(d.SetGuildOnce(ctx, "line-2", "12", true))
		w.must(d.SetGuildOnce(ctx, "line-1", "12", false)) // happened already
		if status() != 1 {
			t.Error("a status change that had happened was done again")
		}
		if err := d.SetGuildOnce(ctx, "line-1", "12", true); !errors.Is(err, saga.ErrConflict) {
			t.Errorf("another status under a used id: %v, want ErrConflict", err)
		}
	})
}

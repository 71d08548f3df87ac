package saga_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/saga"
)

// Whatever takes every try away, the caller gets an error that it can name, after Config.Retries tries, with nothing changed; and the same call
// succeeds when the rows are quiet again.
func TestRetries_UsedUpAreAContendedError(t *testing.T) {
	t.Parallel()
	duplicate, deadlock := &mysql.MySQLError{Number: 1062}, &mysql.MySQLError{Number: 1213}
	w := onSQLite(t, 2)
	cfg := quiet()
	cfg.Retries = 3
	d := w.donations(cfg)
	don := w.fresh(d, acme, 10, 4)
	for name, c := range map[string]struct {
		at   string // the statement that fails
		err  error
		call func() error
	}{
		"Donate, a row that comes and goes": {"INSERT INTO saga_out", duplicate, func() error { _, err := d.Donate(w.as(acme), don); return err }},
		"Donate, deadlocks":                 {"UPDATE bag", deadlock, func() error { _, err := d.Donate(w.as(acme), don); return err }},
		"Grant, a row that comes and goes":  {"INSERT INTO bag", duplicate, func() error { return d.Grant(w.as(acme), "m1", don.Player, "wood", 1) }},
		"Grant, deadlocks":                  {"INSERT INTO ledger", deadlock, func() error { return d.Grant(w.as(acme), "m2", don.Player, "wood", 1) }},
		"Stock, a row that comes and goes":  {"INSERT INTO warehouse", duplicate, func() error { return d.Stock(w.as(acme), "m3", don.Guild, "wood", 1) }},
		"Burn, deadlocks":                   {"UPDATE bag", deadlock, func() error { return d.Burn(w.as(acme), "m4", don.Player, "gold", 1) }},
		"SetGuild, a row that comes":        {"INSERT INTO guild", duplicate, func() error { return d.SetGuild(w.as(acme), "new", true) }},
	} {
		var tries atomic.Int64
		w.watch.onBefore(func(_ context.Context, e wire.Event) error {
			if strings.HasPrefix(e.Text, c.at) {
				tries.Add(1)
				return c.err
			}
			return nil
		})
		err := c.call()
		w.watch.off()
		var contended *saga.ContendedError
		if !errors.Is(err, saga.ErrContended) || !errors.As(err, &contended) || contended.Tries != 3 || tries.Load() != 3 {
			t.Errorf("%s: %v after %d tries, want a ContendedError after 3", name, err, tries.Load())
		}
		if c.err == deadlock && !dal.IsRetryable(err) {
			t.Errorf("%s: %v hides its cause", name, err)
		}
		w.wantConserved(d)
	}
	w.wantBalances(acme, don, 10, 0)
	if n := w.bag(acme, don.Player, "wood"); n != 0 {
		t.Errorf("%d minted by calls that failed, want none", n)
	}
	_, err := d.Donate(w.as(acme), don)
	w.must(err)
	w.must(d.Grant(w.as(acme), "m1", don.Player, "wood", 1))
	w.must(d.SetGuild(w.as(acme), "new", true))
	w.wantBalances(acme, don, 6, 0)
	w.wantConserved(d)
}

// Where every COMMIT breaks, a donation is known not to have been started, and of a mint nobody knows: the errors say so. The same calls later find
// nothing or what happened, and do it once.
func TestRetries_UsedUpByBrokenCommits(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2)
	for name, after := range map[string]bool{"lost before it arrived": false, "lost with its answer": true} {
		var breaks func(commit int64) bool // set while nothing runs
		var commits atomic.Int64
		store, _ := w.overLossy(func() (bool, bool) { return breaks != nil && breaks(commits.Add(1)), after })
		cfg := quiet()
		cfg.Retries = 3
		d := w.donationsOver(store, cfg)
		don := w.fresh(d, acme, 10, 4)

		breaks = func(int64) bool { return true }
		err := d.Grant(w.as(acme), "more", don.Player, don.Item, 1)
		if after { // the second try meets the row of the first
			w.must(err)
		} else if !errors.Is(err, saga.ErrContended) || !errors.Is(err, dal.ErrOutcomeUnknown) || commits.Load() != 3 {
			t.Errorf("%s: Grant = %v after %d commits, want ErrContended and ErrOutcomeUnknown after 3", name, err, commits.Load())
		}
		breaks = nil
		w.must(d.Grant(w.as(acme), "more", don.Player, don.Item, 1))
		w.wantBalances(acme, don, 11, 0)

		if !after {
			commits.Store(0)
			breaks = func(commit int64) bool { return commit%2 == 1 } // between them the journal is read
			_, err = d.Donate(w.as(acme), don)
			if !errors.Is(err, saga.ErrContended) || errors.Is(err, saga.ErrUnknownOutcome) || commits.Load() != 6 {
				t.Errorf("%s: Donate = %v after %d commits, want ErrContended after 6", name, err, commits.Load())
			}
			breaks = nil
			w.wantBalances(acme, don, 11, 0)
		}
		rec, err := d.Donate(w.as(acme), don)
		if err != nil || rec.Replayed {
			t.Errorf("%s: Donate = %+v, %v, want a fresh donation", name, rec, err)
		}
		w.wantBalances(acme, don, 7, 0)
		w.wantConserved(d)
	}
}

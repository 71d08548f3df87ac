package saga_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// crash ends a "process" at one boundary: before an operation is sent or after it was carried out. From then on nothing of it reaches a database.
// Operations are BEGIN, each statement and COMMIT of the call and of the relay that carries it on; the polls of all places, which run side by side, are
// no points of their own. A rollback passes, as servers roll back for those who die.
type crash struct {
	point int // 2k: before operation k; 2k+1: after it
	once  bool

	mu   sync.Mutex
	seen int
	dead bool
	hit  string
}

// set arms the world's watcher with a crash.
func (c *crash) set(w *world) *crash {
	w.watch.onBefore(func(_ context.Context, e wire.Event) error {
		if e.Op == "rollback" {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.dead && !isPoll(e) && 2*c.seen == c.point {
			c.die("before", e)
			if c.once {
				c.dead = false
				c.seen++
				return driver.ErrBadConn
			}
		}
		if c.dead {
			return driver.ErrBadConn // as a connection that is gone: the pool throws it away, and the server rolls back
		}
		return nil
	})
	w.watch.onAfter(func(_ context.Context, e wire.Event, _ error) {
		if e.Op == "rollback" || isPoll(e) {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.dead && 2*c.seen+1 == c.point {
			c.die("after", e)
		}
		c.seen++
	})
	return c
}

// isPoll reports the statement that lists the tenants with work.
func isPoll(e wire.Event) bool {
	return strings.HasPrefix(e.Text, "WITH RECURSIVE") || strings.HasPrefix(e.Text, "SELECT state, tenant_id")
}

func (c *crash) die(when string, e wire.Event) {
	c.dead = true
	text := e.Text
	if len(text) > 40 {
		text = text[:40]
	}
	c.hit = fmt.Sprintf("%s %s in %s: %s", when, e.Op, e.Shard, text)
}

// story is one way that a donation can go.
type story struct {
	name      string
	arrange   func(w *world, d *saga.Donations, don saga.Donation)
	mid       func(w *world, d *saga.Donations, don saga.Donation) // after T1
	end       saga.State
	bag       int64 // at the end; 10 are granted and 4 donated
	warehouse int64
}

var stories = []story{
	{name: "applied", end: saga.Settled, bag: 6, warehouse: 5, arrange: func(w *world, d *saga.Donations, don saga.Donation) {
		w.must(d.Stock(w.as(acme), "stock", don.Guild, don.Item, 1))
	}},
	{name: "applied to a new cell", end: saga.Settled, bag: 6, warehouse: 4},
	{name: "rejected", end: saga.Refunded, bag: 10, arrange: func(w *world, d *saga.Donations, don saga.Donation) {
		w.must(d.SetGuild(w.as(acme), don.Guild, false))
	}},
	{name: "voided", end: saga.Refunded, bag: 10, mid: func(w *world, d *saga.Donations, don saga.Donation) { w.expire(d, acme, don) }},
}

// act is what one process does: the client's call, again if it was made before, and the relay's work.
func (s story) act(w *world, d *saga.Donations, don saga.Donation) {
	_, _ = d.Donate(w.as(acme), don)
	if s.mid != nil {
		if _, err := d.State(w.as(acme), don.Player, don.Key); err == nil {
			s.mid(w, d, don)
		}
	}
	_, _ = d.Drain(w.sys) // also what a process that died had leased
}

// check looks at the databases after the last process: whatever happened, the donation ended once, or was never begun and can be. With all, the sums and
// the audit of the whole world are looked at too.
func (s story) check(w *world, don saga.Donation, hit string, all bool) {
	w.Helper()
	d := w.donations(quiet())
	rec, stateErr := d.State(w.as(acme), don.Player, don.Key)
	if s.mid != nil && stateErr == nil && !rec.State.Final() {
		s.mid(w, d, don)
	}
	open := 0
	if stateErr == nil && !rec.State.Final() {
		open = 1
	}
	// The conservation of this one donation, right after the crash.
	pending := 4 * int64(open)
	if rows := w.decisions(acme, don); pending > 0 && len(rows) == 1 && rows[0].Outcome == saga.Applied {
		pending = 0
	}
	if got := w.bag(acme, don.Player, don.Item) + pending + w.warehouse(acme, don.Guild, don.Item); got != 10+stocked(s) {
		w.Errorf("%s, %s: %d items are held, want %d", s.name, hit, got, 10+stocked(s))
	}
	if all {
		w.wantConserved(d)
		rep, err := d.Reconcile(w.sys)
		if err != nil || rep.Settled+rep.Refunded != open || len(rep.Alarms)+len(rep.Quarantine) > 0 {
			w.Errorf("%s, %s: Reconcile = %+v, %v with %d open", s.name, hit, rep, err, open)
		}
	} else if ended, err := d.Drain(w.sys); err != nil || ended.Settled+ended.Refunded != open {
		w.Errorf("%s, %s: Drain = %+v, %v with %d open", s.name, hit, ended, err, open)
	}
	if stateErr != nil { // never begun: nothing may have moved, and the key is free
		w.wantBalances(acme, don, 10, stocked(s))
		s.act(w, d, don)
	}
	w.wantState(d, acme, don, s.end, reasonOf(s))
	w.wantBalances(acme, don, s.bag, s.warehouse)
	w.wantNothingOpen(d)
	if all {
		w.wantConserved(d)
	}
	if w.Failed() {
		w.Fatalf("%s: crash %s", s.name, hit)
	}
}

func stocked(s story) int64 {
	if s.end == saga.Settled {
		return s.warehouse - 4
	}
	return 0
}

func reasonOf(s story) saga.Reason {
	switch s.name {
	case "rejected":
		return saga.ReasonClosed
	case "voided":
		return saga.ReasonTimeout
	}
	return ""
}

// Every point of every story, one crash each.
func TestCrash_EverySinglePoint(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(w *world) {
		for _, s := range stories {
			points := 0
			for point := 0; ; point++ {
				don := w.begin(s)
				d := w.donations(quiet())
				c := (&crash{point: point}).set(w)
				s.act(w, d, don)
				w.watch.off()
				if c.hit == "" {
					break
				}
				points++
				s.check(w, don, c.hit, true)
			}
			w.Logf("%s: %d crash points", s.name, points)
			if points < 2*12 { // 4 to start, 3 to claim, 4 to decide, 1 to settle; others have more
				t.Errorf("%s: only %d crash points found", s.name, points)
			}
		}
	}, justAcme)
}

// justAcme keeps the number of places small.
var justAcme = tenant.Tenant{ID: acme, Model: tenant.SharedTable}

// Every pair: the process dies, its successor dies too. With -short or the race detector one pair in seven.
func TestCrash_EveryPairOfPoints(t *testing.T) {
	t.Parallel()
	stride := 1
	if testing.Short() || slow {
		stride = 7
	}
	for _, s := range stories[1:] { // the first is the second with fewer points
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := onSQLite(t, 2, justAcme)
			pairs := 0
			for first, again := 0, true; again; first++ {
				again = false
				for second := first % stride; ; second += stride {
					don := w.begin(s)
					c := (&crash{point: first}).set(w)
					s.act(w, w.donations(quiet()), don)
					if c.hit == "" {
						w.watch.off()
						break
					}
					again = true
					c2 := (&crash{point: second}).set(w)
					s.act(w, w.donations(quiet()), don)
					w.watch.off()
					s.check(w, don, c.hit+", then "+c2.hit, false)
					if c2.hit == "" {
						break
					}
					pairs++
				}
			}
			w.Logf("%d pairs of crash points", pairs)
			d := w.donations(quiet())
			w.wantConserved(d)
			if rep, err := d.Reconcile(w.sys); err != nil || len(rep.Alarms)+len(rep.Quarantine) > 0 {
				t.Errorf("Reconcile = %+v, %v", rep, err)
			}
		})
	}
}

// A connection that breaks once, at every point, and a process that lives on: it mends what broke by itself or leaves it to the next poll.
func TestBrokenConnection_EverySinglePoint(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(w *world) {
		for _, s := range stories {
			for point := 0; ; point += 2 {
				don := w.begin(s)
				d := w.donations(quiet())
				c := (&crash{point: point, once: true}).set(w)
				s.act(w, d, don)
				w.watch.off()
				if c.hit == "" {
					break
				}
				s.check(w, don, c.hit, true)
			}
		}
	}, justAcme)
}

// begin arranges a fresh donation of the story.
func (w *world) begin(s story) saga.Donation {
	w.Helper()
	d := w.donations(quiet())
	don := w.fresh(d, acme, 10, 4)
	if s.arrange != nil {
		s.arrange(w, d, don)
	}
	return don
}

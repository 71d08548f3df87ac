package saga_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// crowd is a set of players and guilds of all tenants with bags that suffice for anything.
type crowd struct {
	tenants []tenant.ID
	players int
	guilds  int
	items   []string
	once    bool // no donation twice
}

func (c crowd) setUp(w *world, d *saga.Donations) {
	w.Helper()
	var wg sync.WaitGroup
	for _, id := range c.tenants {
		wg.Go(func() {
			ctx := w.as(id)
			for p := range c.players {
				for _, item := range c.items {
					if err := d.Grant(ctx, "grant "+item, c.player(p), item, 1<<40); err != nil {
						w.Error(err)
					}
				}
			}
			for g := range c.guilds {
				if err := d.SetGuild(ctx, c.guild(g), g%7 != 6); err != nil {
					w.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// Every seventh guild is closed.
func (c crowd) guild(g int) string { return fmt.Sprintf("g%d", g+1) }

func (c crowd) player(p int) string { return fmt.Sprintf("p%d", p+1) }

func (c crowd) donation(r *rand.Rand, n int64) (tenant.ID, saga.Donation) {
	return c.tenants[r.IntN(len(c.tenants))], saga.Donation{
		Key: fmt.Sprintf("k%d", n), Player: c.player(r.IntN(c.players)), Guild: c.guild(r.IntN(c.guilds)), Item: c.items[r.IntN(len(c.items))], Qty: 1 + r.Int64N(5),
	}
}

// rush makes n donations with some donors at a time, every tenth of them twice unless once is set.
func (c crowd) rush(w *world, donors int, n int64, donate func(ctx context.Context, don saga.Donation) error) {
	w.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for i := range donors {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for {
				k := next.Add(1)
				if k > n {
					return
				}
				id, don := c.donation(r, k)
				times := 1 + k%10/9
				if c.once {
					times = 1
				}
				for range times {
					if err := donate(w.as(id), don); err != nil {
						w.Errorf("Donate(%+v): %v", don, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// conserved sums every account up, on whatever goroutine.
func conserved(w *world, d *saga.Donations) error {
	all, err := d.Conservation(w.sys)
	if err == nil && len(all) == 0 {
		err = errors.New("no accounts")
	}
	for _, b := range all {
		if !b.Conserved() {
			err = errors.Join(err, fmt.Errorf("not conserved: %+v: held %v", b, b.Held()))
		}
	}
	return err
}

// 5,000 donations of all tenant models over three places end, exactly once, and the sums agree while it goes on.
func TestDonate_FiveThousandByManyDonors(t *testing.T) {
	onEach(t, 3, func(w *world) {
		d := w.donations(saga.Config{})
		c := crowd{tenants: []tenant.ID{acme, globex, delta, omega}, players: 40, guilds: 14, items: []string{"gold", "wood"}}
		c.setUp(w, d)
		w.must(d.Start(w.Context()))
		// Every 500th call sums up first, while the other donors go on: the number of sums depends on no clock.
		var calls, sums atomic.Int64
		before, start := w.store.Stats(), time.Now()
		c.rush(w, 16, 5000, func(ctx context.Context, don saga.Donation) error {
			if calls.Add(1)%500 == 0 {
				sums.Add(1)
				if err := conserved(w, d); err != nil {
					return err
				}
			}
			_, err := d.Donate(ctx, don)
			return err
		})
		donated := time.Since(start)
		_, err := d.Drain(w.sys)
		w.must(err)
		took := time.Since(start)
		if got, want := sums.Load(), calls.Load()/500; got != want || got != 11 {
			t.Errorf("%d sums beside %d donations, want 11", got, calls.Load())
		}
		got := w.store.Stats().Sub(before)
		w.Logf("donated in %v, ended in %v; %+v", donated, took, got)
		w.wantNothingOpen(d)
		w.wantConserved(d)
		rep, err := d.Reconcile(w.sys)
		w.must(err)
		if len(rep.Alarms)+len(rep.Quarantine)+rep.Settled+rep.Refunded > 0 {
			t.Errorf("Reconcile found %+v", rep)
		}
	})
}

package quota_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// tenantID returns the i-th tenant.
func tenantID(i int) tenant.ID { return tenant.ID(fmt.Sprintf("tenant-%07d", i)) }

// A million tenants come by, 100 active at a time. State is kept for those active of late, though nothing runs in the background.
func TestAdmit_Q58_IdleTenantsAreDropped(t *testing.T) {
	t.Parallel()
	total := 1_000_000
	if testing.Short() || raceEnabled {
		total = 100_000
	}
	for name, cfg := range map[string]quota.Config{"Unlimited": {}, "Limited": {Rate: 1000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQuota(t, cfg)
				const active = 100
				held := make([]*quota.Permit, active)
				most := 0
				for i := range total {
					if p := held[i%active]; p != nil {
						p.Release()
					}
					held[i%active] = admit(t, q, tenantID(i), "s1", none, 0)
					if i%active == 0 {
						time.Sleep(100 * time.Millisecond)
					}
					if i%1000 == 999 {
						most = max(most, q.Stats().Tenants)
					}
				}
				// 1000 come in a second; those of the last 2 s or so are kept.
				if most > 3000+active {
					t.Errorf("state of %d tenants at most, want it bounded by those active of late", most)
				}
				for _, p := range held {
					p.Release()
				}
				time.Sleep(time.Second)
				q.Sweep(time.Now())
				if n := q.Stats().Tenants; n != 0 {
					t.Errorf("%d tenants are left after Sweep, want 0", n)
				}
				settled(t, q, uint64(total))
			})
		})
	}
}

// After a peak the traffic of few gives the memory back, and the heap shows it.
func TestAdmit_Q58_MemoryShrinksAfterAPeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const peak, few = 10_000, 500
		q := newQuota(t, quota.Config{})
		before := heap()
		held := make([]*quota.Permit, peak)
		for i := range held {
			held[i] = admit(t, q, tenantID(i), "s1", none, 0)
		}
		for _, p := range held {
			p.Release()
		}
		clear(held)
		full := heap() - before
		// Sixteen admissions move the hand of their stripe by one tenant, unless it rests; two rounds drop those not used since.
		for i := range 5 * 16 * peak {
			if i%few == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			admit(t, q, tenantID(i%few), "s1", none, 0).Release()
		}
		if n := q.Stats().Tenants; n > few+peak/10 {
			t.Errorf("state of %d tenants is left while %d are active", n, few)
		}
		left := heap() - before
		t.Logf("%d tenants: %d bytes each; afterwards %d bytes in all", peak, full/peak, left)
		if left > full/4 {
			t.Errorf("%d bytes are left of %d", left, full)
		}
		runtime.KeepAlive(q)
		runtime.KeepAlive(held)
	})
}

// Tenants that stay active keep their state: with 10,000 of them in turn, an admission costs what it costs with one.
func TestAdmit_Q58_ActiveTenantsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const active = 10_000
		q := newQuota(t, quota.Config{})
		for i := range 20 * active {
			if i%active == 0 {
				time.Sleep(400 * time.Millisecond)
			}
			admit(t, q, tenantID(i%active), "s1", none, 0).Release()
			if i >= active && i%1000 == 0 {
				// Each comes again after 0.4 s.
				if n := q.Stats().Tenants; n != active {
					t.Fatalf("state of %d tenants after %d admissions, want all %d", n, i, active)
				}
			}
		}
	})
}

// heap returns the bytes in live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestSweep_Q58_LosesNoDebt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 1, Burst: 5})
		q.Charge("debtor", none, 8)                     // 3 in debt: 8 s to full
		admit(t, q, "spender", "s1", none, 0).Release() // 4 of 5: 1 s to full
		holder := admit(t, q, "holder", "s1", none, 0)  // full in 1 s, but holds a permit
		full := tenant.Limits{Rate: -1}                 // always full
		admit(t, q, "idle", "s1", full, 0).Release()
		for second, want := range []struct{ dropped, kept int }{
			{1, 3}, // idle
			{1, 2}, // spender
			{0, 2},
			{0, 2},
			{0, 2},
			{0, 2},
			{0, 2},
			{0, 2},
			{1, 1}, // debtor
			{0, 1},
		} {
			if second < 4 {
				_, err := q.TryAdmit("debtor", "s1", none, 0)
				if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != time.Duration(4-second)*time.Second {
					t.Errorf("after %d s the debtor may come in %v, want %ds", second, e.RetryAfter, 4-second)
				}
			}
			if n := q.Sweep(time.Now()); n != want.dropped {
				t.Errorf("after %d s Sweep dropped %d, want %d", second, n, want.dropped)
			}
			if n := q.Stats().Tenants; n != want.kept {
				t.Errorf("after %d s %d tenants are kept, want %d", second, n, want.kept)
			}
			time.Sleep(time.Second)
		}
		if n, _ := burstOf(t, q, "debtor", none); n != 5 {
			t.Errorf("a tenant that was dropped starts with %d tokens, want 5", n)
		}
		holder.Release()
	})
}

// The eviction that admissions do is as careful as Sweep: other tenants' traffic does not wash off a debt, a permit or a place in line.
func TestAdmit_Q58_TrafficOfOthersLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 1, Burst: 4, MaxWait: time.Minute})
		holder := admit(t, q, "holder", "s1", none, 0)
		one := tenant.Limits{MaxConns: 1}
		blocker := admit(t, q, "queued", "s1", one, 0)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := start(ctx, q, "queued", "s1", one, 0)
		for i := range 100 {
			q.Charge(tenantID(i), none, 12) // 8 in debt: the next token in 9 s
		}
		for i := range 40_000 {
			if i%5000 == 0 {
				time.Sleep(time.Second)
			}
			admit(t, q, tenantID(1000+i), "s1", tenant.Limits{Rate: -1}, 0).Release()
		}
		if n := q.Stats().Tenants; n > 20_000 {
			t.Errorf("state of %d tenants is kept: too little was dropped for this test", n)
		}
		for i := range 100 {
			_, err := q.TryAdmit(tenantID(i), "s1", none, 0)
			if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != time.Second {
				t.Fatalf("RetryAfter = %v, want 1s", e.RetryAfter)
			}
		}
		if n := q.InUse("holder", "s1"); n != 1 {
			t.Errorf("InUse of a tenant that holds a permit = %d, want 1", n)
		}
		if !pending(w) {
			t.Errorf("the waiter has an answer: %+v", <-w)
		}
		blocker.Release()
		synctest.Wait()
		granted(t, w).Release()
		holder.Release()
	})
}

// Idle lanes of a busy tenant go too; busy ones and the count of permits stay.
func TestSweep_DropsIdleLanes(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{MaxConns: 1})
	p := admit(t, q, "acme", "s0", none, 0)
	for i := range 100 {
		admit(t, q, "acme", fmt.Sprintf("s%d", i+1), none, 0).Release()
	}
	if n := q.Sweep(time.Now()); n != 0 {
		t.Errorf("Sweep dropped %d tenants, want 0: acme holds a permit", n)
	}
	_, err := q.TryAdmit("acme", "s0", none, 0)
	exceeded(t, err, quota.LimitConns)
	held := admit(t, q, "acme", "s1", none, 0)
	_, err = q.TryAdmit("acme", "s1", none, 0)
	exceeded(t, err, quota.LimitConns)
	// Limits still reach both lanes.
	if err := q.SetLimits("acme", tenant.Limits{MaxConns: 2}); err != nil {
		t.Fatal(err)
	}
	for _, shard := range []string{"s0", "s1"} {
		admit(t, q, "acme", shard, tenant.Limits{MaxConns: 2}, 0).Release()
	}
	p.Release()
	held.Release()
	if n := q.Sweep(time.Now()); n != 1 {
		t.Errorf("Sweep dropped %d tenants, want 1", n)
	}
	settled(t, q, 106)
}

// Eviction races with admissions for real: no permit is lost or counted twice.
func TestSweep_Q58_RacesAdmit(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{MaxConns: 1, MaxWait: time.Minute})
	stop := make(chan struct{})
	var sweeper, workers sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				q.Sweep(time.Now())
			}
		}
	})
	var inside [8]int // guarded by the permit of the tenant: the race detector sees a second holder
	const rounds = 4000
	for w := range 8 {
		workers.Go(func() {
			for i := range rounds {
				n := (i + w) % len(inside)
				p, err := q.Admit(context.Background(), tenantID(n), "s1", none, 0)
				if err != nil {
					t.Error(err)
					return
				}
				inside[n]++
				if inside[n] != 1 {
					t.Errorf("%d holders of the only permit", inside[n])
				}
				inside[n]--
				p.Release()
			}
		})
	}
	workers.Wait()
	close(stop)
	sweeper.Wait()
	settled(t, q, 8*rounds)
	q.Sweep(time.Now())
	if n := q.Stats().Tenants; n != 0 {
		t.Errorf("%d tenants left, want 0", n)
	}
}

func TestSystemAdmit_Q54_TenantsDoNotDelayIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 0.001, Burst: 1, MaxConns: 1})
		ctx := context.Background()
		tenants := admit(t, q, "acme", "s1", none, 0)
		q.Charge("acme", none, 100)
		line := start(ctx, q, "acme", "s1", tenant.Limits{Rate: -1}, 0)
		synctest.Wait()

		// Two permits, whatever the tenants do, and no rate.
		var held []*quota.Permit
		for range 1000 {
			p, err := q.SystemAdmit(ctx, "s1", 2, 1)
			if err != nil {
				t.Fatalf("SystemAdmit = %v", err)
			}
			if p.Tenant() != "" || p.Shard() != "s1" {
				t.Fatalf("permit of %q on %q, want no tenant on s1", p.Tenant(), p.Shard())
			}
			if held = append(held, p); len(held) == 2 {
				held[0].Release()
				held = held[1:]
			}
		}
		p, err := q.SystemAdmit(ctx, "s1", 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, p)

		// Its own bounds hold: one waits, the next is refused; shards are apart.
		w := make(chan answer, 1)
		go func() {
			p, err := q.SystemAdmit(ctx, "s1", 2, 1)
			w <- answer{p, err}
		}()
		synctest.Wait()
		_, err = q.SystemAdmit(ctx, "s1", 2, 1)
		if e := exceeded(t, err, quota.LimitQueue); e.Tenant != "" || e.Shard != "s1" || e.Queued != 1 {
			t.Errorf("refusal = %+v, want the system's on s1 behind 1", e)
		}
		_, err = q.SystemAdmit(ctx, "s1", 2, -1)
		exceeded(t, err, quota.LimitConns)
		other, err := q.SystemAdmit(ctx, "s2", 1, -1)
		if err != nil {
			t.Fatalf("SystemAdmit on another shard = %v", err)
		}
		if st := q.Stats(); st.InUse != 4 || st.SystemInUse != 3 || st.Waiting != 2 || st.SystemWaiting != 1 {
			t.Errorf("Stats() = %+v, want 4 in use, 3 of them the system's, 2 waiting, 1 of them the system's", st)
		}
		if n := q.SystemInUse("s1"); n != 2 {
			t.Errorf("SystemInUse(s1) = %d, want 2", n)
		}
		if n := q.InUse("", "s1"); n != 0 {
			t.Errorf("InUse of no tenant = %d, want 0", n)
		}

		// Under its own permit it never waits for itself. A tenant's permit is another matter.
		nested := quota.WithPermit(ctx, held[0])
		if _, err := q.SystemAdmit(nested, "s1", 2, 1); !errors.Is(err, quota.ErrNestedAcquire) {
			t.Errorf("nested SystemAdmit = %v, want ErrNestedAcquire", err)
		}
		if q.Held(nested, "", "s1") != held[0] || q.Held(nested, "acme", "s1") != nil {
			t.Error("Held takes the system's permit for a tenant's, or does not find it")
		}
		held[0].Release()
		synctest.Wait()
		held[0] = granted(t, w)

		for _, p := range append(held, other, tenants) {
			p.Release()
		}
		synctest.Wait()
		granted(t, line).Release()
		st := q.Stats()
		settled(t, q, st.Granted+st.Refused)
	})
}

// The system's lanes of many shards share no limits, though they share locks.
func TestSystemAdmit_ShardsAreApart(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{})
	for i := range 1000 {
		shard := fmt.Sprintf("s%d", i)
		for range i%3 + 1 {
			if _, err := q.SystemAdmit(context.Background(), shard, i%3+1, -1); err != nil {
				t.Fatalf("SystemAdmit(%s) = %v", shard, err)
			}
		}
	}
	for i := range 1000 {
		shard := fmt.Sprintf("s%d", i)
		_, err := q.SystemAdmit(context.Background(), shard, i%3+1, -1)
		exceeded(t, err, quota.LimitConns)
		if n := q.SystemInUse(shard); n != i%3+1 {
			t.Errorf("SystemInUse(%s) = %d, want %d", shard, n, i%3+1)
		}
	}
	if p, err := q.SystemAdmit(context.Background(), "s1", -2, 1); p != nil || !errors.Is(err, quota.ErrInvalidLimits) {
		t.Errorf("SystemAdmit with max -2 = %v, %v, want ErrInvalidLimits", p, err)
	}
}

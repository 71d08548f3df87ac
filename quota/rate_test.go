package quota_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// burstOf admits and releases until the rate refuses, and returns the number admitted and the refusal.
func burstOf(t *testing.T, q *quota.Quota, id tenant.ID, l tenant.Limits) (int, *quota.ExceededError) {
	t.Helper()
	for n := 0; ; n++ {
		p, err := q.TryAdmit(id, "s1", l, 0)
		if err != nil {
			return n, exceeded(t, err, quota.LimitRate)
		}
		p.Release()
	}
}

func TestAdmit_Rate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 10, Burst: 3})
		n, e := burstOf(t, q, "acme", none)
		if n != 3 || e.RetryAfter != 100*time.Millisecond || e.Tenant != "acme" || e.Shard != "s1" || e.Queued != 0 {
			t.Errorf("admitted %d, then %+v; want 3, then acme on s1 to retry after 100ms", n, e)
		}
		// Another tenant has a bucket of its own, and all shards of a tenant have one.
		if n, _ := burstOf(t, q, "umbrella", none); n != 3 {
			t.Errorf("another tenant was admitted %d times, want 3", n)
		}
		_, err := q.TryAdmit("acme", "s2", none, 0)
		exceeded(t, err, quota.LimitRate)

		time.Sleep(e.RetryAfter)
		if n, _ := burstOf(t, q, "acme", none); n != 1 {
			t.Errorf("after the retry-after %d were admitted, want 1", n)
		}
		time.Sleep(time.Hour)
		if n, _ := burstOf(t, q, "acme", none); n != 3 {
			t.Errorf("after an hour %d were admitted, want the burst, 3", n)
		}
	})
}

func TestAdmit_Q45_RateOfLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 10, Burst: 3})
		for _, tt := range []struct {
			id     tenant.ID
			limits tenant.Limits
			burst  int
			retry  time.Duration
		}{
			{"default", tenant.Limits{}, 3, 100 * time.Millisecond},
			{"own-rate", tenant.Limits{Rate: 4.5}, 5, 222222222 * time.Nanosecond},
			{"own-burst", tenant.Limits{Burst: 7}, 7, 100 * time.Millisecond},
			{"both", tenant.Limits{Rate: 2, Burst: 1}, 1, 500 * time.Millisecond},
			{"slow", tenant.Limits{Rate: 0.5}, 1, 2 * time.Second},
		} {
			if n, e := burstOf(t, q, tt.id, tt.limits); n != tt.burst || e.RetryAfter != tt.retry {
				t.Errorf("%s: admitted %d, retry after %v; want %d, %v", tt.id, n, e.RetryAfter, tt.burst, tt.retry)
			}
		}
		unlimited := tenant.Limits{Rate: -1}
		for range 10_000 {
			admit(t, q, "unlimited", "s1", unlimited, 0).Release()
		}
	})
}

// Refusals take nothing: asking again and again does not push the next token away, whatever the ctx's deadline.
func TestAdmit_Q48_RefusalTakesNoToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 10, Burst: 1})
		admit(t, q, "acme", "s1", none, 0).Release()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		for range 1000 {
			_, err := q.Admit(ctx, "acme", "s1", none, 0)
			if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 100*time.Millisecond {
				t.Fatalf("RetryAfter = %v, want 100ms", e.RetryAfter)
			}
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("1000 refusals took %v, want no waiting", d)
		}
		time.Sleep(100 * time.Millisecond)
		admit(t, q, "acme", "s1", none, 0).Release()
	})
}

// A call that got a token and no permit gives the token back, in each of the ways to be refused.
func TestAdmit_Q50_TokenBackWithoutPermit(t *testing.T) {
	t.Parallel()
	limits := tenant.Limits{Rate: 1, Burst: 2, MaxConns: 1}
	refusals := map[string]func(t *testing.T, q *quota.Quota, held *quota.Permit){
		"Try": func(t *testing.T, q *quota.Quota, _ *quota.Permit) {
			_, err := q.TryAdmit("acme", "s1", limits, 0)
			exceeded(t, err, quota.LimitConns)
		},
		"NoQueue": func(t *testing.T, q *quota.Quota, _ *quota.Permit) {
			l := limits
			l.MaxQueue = -1
			_, err := q.Admit(context.Background(), "acme", "s1", l, 0)
			exceeded(t, err, quota.LimitConns)
		},
		"Cancel": func(t *testing.T, q *quota.Quota, _ *quota.Permit) {
			ctx, cancel := context.WithCancel(context.Background())
			w := start(ctx, q, "acme", "s1", limits, 0)
			synctest.Wait()
			cancel()
			synctest.Wait()
			exceeded(t, refused(t, w), quota.LimitWait)
		},
		"Nested": func(t *testing.T, q *quota.Quota, held *quota.Permit) {
			_, err := q.Admit(quota.WithPermit(context.Background(), held), "acme", "s1", limits, 0)
			if !errors.Is(err, quota.ErrNestedAcquire) {
				t.Fatalf("nested Admit = %v, want ErrNestedAcquire", err)
			}
		},
		"EndedCtx": func(t *testing.T, q *quota.Quota, _ *quota.Permit) {
			ctx, cancel := context.WithTimeout(context.Background(), 0)
			defer cancel()
			_, err := q.Admit(ctx, "acme", "s1", limits, 0)
			exceeded(t, err, quota.LimitWait)
		},
		"ServedTooLate": func(t *testing.T, q *quota.Quota, held *quota.Permit) {
			ctx := newLateCtx()
			w := start(ctx, q, "acme", "s1", limits, 0)
			synctest.Wait()
			held.Retain()
			ctx.end()
			held.Release() // one reference is left, so nothing happens
			synctest.Wait()
			if !pending(w) {
				t.Fatal("the waiter has an answer before its time")
			}
			// Its 5 s would refill the bucket. So the wait ends by a permit that is raised for it, and that it passes on.
			raised := limits
			raised.MaxConns = 2
			if err := q.SetLimits("acme", raised); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			exceeded(t, refused(t, w), quota.LimitWait)
			if err := q.SetLimits("acme", limits); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQuota(t, quota.Config{})
				held := admit(t, q, "acme", "s1", limits, 0)
				for range 5 {
					refuse(t, q, held)
				}
				held.Release()
				if n, e := burstOf(t, q, "acme", limits); n != 1 || e.RetryAfter != time.Second {
					t.Errorf("%d tokens were left, next in %v; want the 1 that no refusal took, next in 1s", n, e.RetryAfter)
				}
			})
		})
	}
}

// The queue is full: one waits (and holds a token), the others are refused and give theirs back.
func TestAdmit_Q50_TokenBackFromAFullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := tenant.Limits{Rate: 0.001, Burst: 4, MaxConns: 1, MaxQueue: 1}
		q := newQuota(t, quota.Config{})
		held := admit(t, q, "acme", "s1", limits, 0)
		w := start(context.Background(), q, "acme", "s1", limits, 0)
		synctest.Wait()
		for range 10 {
			_, err := q.Admit(context.Background(), "acme", "s1", limits, 0)
			if e := exceeded(t, err, quota.LimitQueue); e.Queued != 1 {
				t.Fatalf("Queued = %d, want 1", e.Queued)
			}
		}
		held.Release()
		synctest.Wait()
		granted(t, w).Release()
		if n, _ := burstOf(t, q, "acme", limits); n != 2 {
			t.Errorf("%d tokens were left of 4 after two admissions, want 2", n)
		}
	})
}

func TestCharge_Q47_DebtComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 10, Burst: 5, DebtBursts: 2})
		p := admit(t, q, "acme", "s1", none, 0)
		begin := time.Now()
		for range 10 {
			q.Charge("acme", none, 1) // 4 tokens, then 6 of debt
		}
		q.Charge("acme", none, 0)
		q.Charge("acme", none, -100)
		if d := time.Since(begin); d != 0 {
			t.Errorf("Charge waited %v", d)
		}
		p.Release()
		_, err := q.TryAdmit("acme", "s1", none, 0)
		if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 700*time.Millisecond {
			t.Errorf("with a debt of 6 RetryAfter = %v, want 700ms", e.RetryAfter)
		}
		if n := q.Stats().DebtDropped; n != 0 {
			t.Errorf("DebtDropped = %d before the bound, want 0", n)
		}
		q.Charge("acme", none, 100) // 4 more to the bound of 10
		if n := q.Stats().DebtDropped; n != 96 {
			t.Errorf("DebtDropped = %d, want 96", n)
		}
		_, err = q.TryAdmit("acme", "s1", none, 0)
		if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 1100*time.Millisecond {
			t.Errorf("at the bound RetryAfter = %v, want 1.1s", e.RetryAfter)
		}
		time.Sleep(1100 * time.Millisecond)
		admit(t, q, "acme", "s1", none, 0).Release()
		// Others owe nothing, and unlimited tenants never do.
		admit(t, q, "umbrella", "s1", none, 0).Release()
		q.Charge("free", tenant.Limits{Rate: -1}, math.MaxInt)
		admit(t, q, "free", "s1", tenant.Limits{Rate: -1}, 0).Release()
		if n := q.Stats().DebtDropped; n != 96 {
			t.Errorf("DebtDropped = %d, want still 96", n)
		}
	})
}

// A tenant that is first seen inside a transaction is charged from a full bucket, at its own limits or, if these are invalid, at the defaults.
func TestCharge_UnknownTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{Rate: 10, Burst: 5})
		q.Charge("acme", none, 3)
		if n, _ := burstOf(t, q, "acme", none); n != 2 {
			t.Errorf("%d tokens left of 5 after Charge(3), want 2", n)
		}
		q.Charge("odd", tenant.Limits{Rate: math.NaN()}, 4)
		if n, _ := burstOf(t, q, "odd", none); n != 1 {
			t.Errorf("%d tokens left of 5 after Charge(4) under invalid limits, want 1", n)
		}
		q.Charge("odd", tenant.Limits{Rate: math.NaN()}, 5)
		_, err := q.TryAdmit("odd", "s1", none, 0)
		if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 600*time.Millisecond {
			t.Errorf("RetryAfter = %v, want 600ms for the debt of 5", e.RetryAfter)
		}
	})
}

// Limits that change between calls re-price the bucket; a tenant cannot wash its debt off by them, unless it is made unlimited.
func TestAdmit_Q49_RateChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{})
		slow, fast := tenant.Limits{Rate: 10, Burst: 10}, tenant.Limits{Rate: 1000, Burst: 10}
		q.Charge("acme", slow, 15)
		_, err := q.TryAdmit("acme", "s1", slow, 0)
		if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 600*time.Millisecond {
			t.Errorf("at 10/s RetryAfter = %v, want 600ms", e.RetryAfter)
		}
		_, err = q.TryAdmit("acme", "s1", fast, 0)
		if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 6*time.Millisecond {
			t.Errorf("at 1000/s RetryAfter = %v, want 6ms", e.RetryAfter)
		}
		if err := q.SetLimits("acme", slow); err != nil {
			t.Fatal(err)
		}
		_, err = q.TryAdmit("acme", "s1", slow, 0)
		if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 600*time.Millisecond {
			t.Errorf("back at 10/s RetryAfter = %v, want 600ms", e.RetryAfter)
		}
		// The debt shrinks to the bound of the smaller burst, and what goes is counted.
		tiny := tenant.Limits{Rate: 10, Burst: 1}
		_, err = q.TryAdmit("acme", "s1", tiny, 0)
		if e := exceeded(t, err, quota.LimitRate); e.RetryAfter != 300*time.Millisecond {
			t.Errorf("at burst 1 RetryAfter = %v, want 300ms", e.RetryAfter)
		}
		if n := q.Stats().DebtDropped; n != 3 {
			t.Errorf("DebtDropped = %d, want 3", n)
		}
	})
}

package quota_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestAdmit_MaxConnsPerTenantAndShard(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{MaxConns: 2})
	var held []*quota.Permit
	for _, id := range []tenant.ID{"acme", "umbrella"} {
		for _, shard := range []string{"s1", "s2"} {
			for range 2 {
				held = append(held, admit(t, q, id, shard, none, 0))
			}
			_, err := q.TryAdmit(id, shard, none, 0)
			if e := exceeded(t, err, quota.LimitConns); e.Tenant != id || e.Shard != shard || e.RetryAfter != 0 {
				t.Errorf("refusal = %+v, want %s on %s without a retry-after", e, id, shard)
			}
			if n := q.InUse(id, shard); n != 2 {
				t.Errorf("InUse(%s, %s) = %d, want 2", id, shard, n)
			}
		}
	}
	if st := q.Stats(); st.InUse != 8 || st.Tenants != 2 || st.Granted != 8 || st.Refused != 4 {
		t.Errorf("Stats() = %+v, want 8 in use by 2 tenants, 8 granted, 4 refused", st)
	}
	for _, p := range held {
		p.Release()
	}
	settled(t, q, 12)
}

func TestAdmit_PoolMaxCaps(t *testing.T) {
	t.Parallel()
	q := newQuota(t, quota.Config{MaxConns: 5})
	for _, tt := range []struct {
		conns, poolMax, want int
	}{
		{0, 0, 5}, {0, 3, 3}, {0, 9, 5}, {4, 0, 4}, {4, 3, 3}, {7, 6, 6}, {-1, 6, 6}, {-1, 1, 1}, {2, -1, 2},
	} {
		id := tenant.ID(fmt.Sprintf("t%d-%d", tt.conns+1, tt.poolMax+1))
		n := 0
		for ; n < 100; n++ {
			if _, err := q.TryAdmit(id, "s1", tenant.Limits{MaxConns: tt.conns}, tt.poolMax); err != nil {
				break
			}
		}
		if n != tt.want {
			t.Errorf("MaxConns %d, pool of %d: %d permits, want %d", tt.conns, tt.poolMax, n, tt.want)
		}
	}
	for range 1000 {
		admit(t, q, "free", "s1", tenant.Limits{MaxConns: -1}, 0)
	}
}

func TestAdmit_FIFO(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 1})
		held := admit(t, q, "acme", "s1", none, 0)
		waiters := make([]<-chan answer, 20)
		for i := range waiters {
			waiters[i] = start(context.Background(), q, "acme", "s1", none, 0)
			synctest.Wait()
		}
		if st := q.Stats(); st.Waiting != 20 || st.InUse != 1 {
			t.Errorf("Stats() = %+v, want 20 waiting for the 1 in use", st)
		}
		// Whoever cannot wait does not overtake them either.
		_, err := q.TryAdmit("acme", "s1", none, 0)
		if e := exceeded(t, err, quota.LimitConns); e.Queued != 20 {
			t.Errorf("Queued = %d, want 20", e.Queued)
		}
		for i, w := range waiters {
			time.Sleep(time.Millisecond)
			held.Release()
			synctest.Wait()
			held = granted(t, w)
			for _, later := range waiters[i+1:] {
				if !pending(later) {
					t.Fatalf("waiter %d was served, and one behind it too", i)
				}
			}
		}
		held.Release()
		settled(t, q, 22)
	})
}

func TestAdmit_QueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 1, MaxQueue: 3})
		held := admit(t, q, "acme", "s1", none, 0)
		var waiters []<-chan answer
		for range 3 {
			waiters = append(waiters, start(context.Background(), q, "acme", "s1", none, 0))
			synctest.Wait()
		}
		_, err := q.Admit(context.Background(), "acme", "s1", none, 0)
		if e := exceeded(t, err, quota.LimitQueue); e.Queued != 3 || e.RetryAfter != 0 {
			t.Errorf("refusal = %+v, want 3 queued and no retry-after while nobody was served", e)
		}
		time.Sleep(70 * time.Millisecond)
		held.Release()
		synctest.Wait()
		held = granted(t, waiters[0])
		waiters = append(waiters, start(context.Background(), q, "acme", "s1", none, 0))
		synctest.Wait()
		_, err = q.Admit(context.Background(), "acme", "s1", none, 0)
		if e := exceeded(t, err, quota.LimitQueue); e.RetryAfter != 70*time.Millisecond {
			t.Errorf("RetryAfter = %v, want 70ms, which the waiter served last had waited", e.RetryAfter)
		}
		// A tenant may have a line of its own length, or none.
		two := start(context.Background(), q, "acme", "s1", tenant.Limits{MaxQueue: 4}, 0)
		synctest.Wait()
		if !pending(two) {
			t.Error("a fourth waiter was refused by MaxQueue 4")
		}
		_, err = q.Admit(context.Background(), "acme", "s1", tenant.Limits{MaxQueue: -1}, 0)
		exceeded(t, err, quota.LimitConns)

		held.Release()
		for _, w := range append(waiters[1:], two) {
			synctest.Wait()
			granted(t, w).Release()
		}
		settled(t, q, 9)
	})
}

func TestAdmit_MaxWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 1, MaxWait: 300 * time.Millisecond})
		held := admit(t, q, "acme", "s1", none, 0)
		defer held.Release()
		for _, ctx := range []context.Context{context.Background(), newLateCtx()} {
			begin := time.Now()
			_, err := q.Admit(ctx, "acme", "s1", none, 0)
			exceeded(t, err, quota.LimitWait)
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want no ctx error: the ctx lives", err)
			}
			if d := time.Since(begin); d != 300*time.Millisecond {
				t.Errorf("waited %v, want MaxWait, 300ms", d)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		begin := time.Now()
		_, err := q.Admit(ctx, "acme", "s1", none, 0)
		exceeded(t, err, quota.LimitWait)
		if d := time.Since(begin); d != 300*time.Millisecond || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("under a deadline of 1 h: waited %v, %v; want MaxWait, 300ms, without a ctx error", d, err)
		}
	})
}

func TestAdmit_CtxEndsTheWait(t *testing.T) {
	t.Parallel()
	boss := errors.New("the boss said no")
	for _, tt := range []struct {
		name  string
		ctx   func() (context.Context, context.CancelFunc)
		after time.Duration
		is    []error
	}{
		{"Deadline", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 30*time.Millisecond)
		}, 30 * time.Millisecond, []error{context.DeadlineExceeded}},
		{"DeadlineWithCause", func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(context.Background(), 30*time.Millisecond, boss)
		}, 30 * time.Millisecond, []error{context.DeadlineExceeded, boss}},
		{"Cancel", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, cancel
		}, 20 * time.Millisecond, []error{context.Canceled}},
		{"CancelWithCause", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(20*time.Millisecond, func() { cancel(boss) })
			return ctx, func() { cancel(nil) }
		}, 20 * time.Millisecond, []error{context.Canceled, boss}},
		{"EndedBefore", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(boss)
			return ctx, func() {}
		}, 0, []error{context.Canceled, boss}},
		{"DeadlineThatTheCtxForgets", func() (context.Context, context.CancelFunc) {
			return forgetful{context.Background(), time.Now().Add(time.Second)}, func() {}
		}, 5 * time.Second, nil}, // MaxWait ends it
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQuota(t, quota.Config{MaxConns: 1})
				held := admit(t, q, "acme", "s1", none, 0)
				ctx, cancel := tt.ctx()
				defer cancel()
				begin := time.Now()
				p, err := q.Admit(ctx, "acme", "s1", none, 0)
				if d := time.Since(begin); p != nil || d != tt.after {
					t.Errorf("Admit = %v after %v, want a refusal after %v", p, d, tt.after)
				}
				exceeded(t, err, quota.LimitWait)
				for _, want := range tt.is {
					if !errors.Is(err, want) {
						t.Errorf("error = %v, want it to wrap %v", err, want)
					}
				}
				held.Release()
				settled(t, q, 2)
			})
		})
	}
	t.Run("FreePermitButEndedCtx", func(t *testing.T) {
		t.Parallel()
		q := newQuota(t, quota.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if p, err := q.Admit(ctx, "acme", "s1", none, 0); p != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("Admit under an ended ctx = %v, %v, want its error", p, err)
		}
		settled(t, q, 1)
	})
}

// forgetful is a ctx with a deadline that it does not keep.
type forgetful struct {
	context.Context
	deadline time.Time
}

func (c forgetful) Deadline() (time.Time, bool) { return c.deadline, true }

func TestAdmit_Q49_LimitsChangeUnderWaiters(t *testing.T) {
	t.Parallel()
	raise := map[string]func(q *quota.Quota) (*quota.Permit, error){
		"BySetLimits": func(q *quota.Quota) (*quota.Permit, error) {
			return nil, q.SetLimits("acme", tenant.Limits{MaxConns: 4})
		},
		"ByTheNextCall": func(q *quota.Quota) (*quota.Permit, error) {
			p, err := q.TryAdmit("acme", "s1", tenant.Limits{MaxConns: 4}, 0)
			if err == nil {
				return p, errors.New("the call that raised the limit overtook waiters")
			}
			return nil, nil
		},
		"ByACallForAnotherShard": func(q *quota.Quota) (*quota.Permit, error) {
			return q.TryAdmit("acme", "s2", tenant.Limits{MaxConns: 4}, 0)
		},
		"ByACharge": func(q *quota.Quota) (*quota.Permit, error) {
			q.Charge("acme", tenant.Limits{MaxConns: 4}, 1)
			return nil, nil
		},
	}
	for name, raise := range raise {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQuota(t, quota.Config{MaxConns: 1})
				held := []*quota.Permit{admit(t, q, "acme", "s1", none, 0)}
				var waiters []<-chan answer
				for range 5 {
					waiters = append(waiters, start(context.Background(), q, "acme", "s1", none, 0))
					synctest.Wait()
				}
				extra, err := raise(q)
				if err != nil {
					t.Fatal(err)
				}
				if extra != nil {
					extra.Release()
				}
				synctest.Wait()
				for i, w := range waiters {
					if i < 3 {
						held = append(held, granted(t, w))
					} else if !pending(w) {
						t.Fatalf("waiter %d has an answer, want the first 3 only", i)
					}
				}
				// Lowered to 2 with 4 in use: nobody is served until 3 came back.
				if err := q.SetLimits("acme", tenant.Limits{MaxConns: 2}); err != nil {
					t.Fatal(err)
				}
				for i, p := range held[:3] {
					if !pending(waiters[3]) {
						t.Fatalf("a waiter was served with %d in use above the limit of 2", 4-i)
					}
					p.Release()
					synctest.Wait()
				}
				granted(t, waiters[3]).Release()
				synctest.Wait()
				granted(t, waiters[4]).Release()
				held[3].Release()
				if n := q.InUse("acme", "s1"); n != 0 {
					t.Errorf("InUse = %d at the end, want 0", n)
				}
			})
		})
	}
	t.Run("PoolMaxRaised", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			q := newQuota(t, quota.Config{})
			held := admit(t, q, "acme", "s1", none, 1)
			w := start(context.Background(), q, "acme", "s1", none, 1)
			synctest.Wait()
			p := admit(t, q, "acme", "s1", none, 3)
			synctest.Wait()
			granted(t, w).Release()
			p.Release()
			held.Release()
			settled(t, q, 3)
		})
	})
}

// 200 loops of 2 ms over 10 permits: nobody waits longer than the line in front takes. (database/sql's own random pick waits 12 times that.)
func TestAdmit_Q56_LongestWaitIsTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const loops, conns, hold = 200, 10, 2 * time.Millisecond
		q := newQuota(t, quota.Config{MaxConns: conns})
		var longest atomic.Int64
		var wg sync.WaitGroup
		for range loops {
			wg.Go(func() {
				for range 20 {
					begin := time.Now()
					p, err := q.Admit(context.Background(), "acme", "s1", none, 0)
					if err != nil {
						t.Error(err)
						return
					}
					wait := int64(time.Since(begin))
					for old := longest.Load(); wait > old && !longest.CompareAndSwap(old, wait); old = longest.Load() {
					}
					time.Sleep(hold)
					p.Release()
				}
			})
		}
		wg.Wait()
		if got, bound := time.Duration(longest.Load()), loops/conns*hold; got > bound {
			t.Errorf("longest wait %v, want at most %v", got, bound)
		}
		settled(t, q, loops*20)
	})
}

// A tenant at its limit does not delay another one.
func TestAdmit_Q57_NeighbourIsNotDelayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 8})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 195 {
			wg.Go(func() {
				for ctx.Err() == nil {
					p, err := q.Admit(ctx, "big", "s1", none, 10)
					if err != nil {
						return
					}
					time.Sleep(2 * time.Millisecond)
					p.Release()
				}
			})
		}
		for range 5 {
			wg.Go(func() {
				for ctx.Err() == nil {
					begin := time.Now()
					p, err := q.Admit(context.Background(), "small", "s1", none, 10)
					if err != nil || time.Since(begin) != 0 {
						t.Errorf("small waited %v: %v", time.Since(begin), err)
						return
					}
					time.Sleep(2 * time.Millisecond)
					p.Release()
				}
			})
		}
		wg.Wait()
		st := q.Stats()
		settled(t, q, st.Granted+st.Refused)
	})
}

func TestAdmit_Q60_NestedNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, other := newQuota(t, quota.Config{MaxConns: 1}), newQuota(t, quota.Config{MaxConns: 1})
		ctx := context.Background()
		outer := admit(t, q, "acme", "s1", none, 0)
		ctx = quota.WithPermit(ctx, outer)
		begin := time.Now()

		p, err := q.Admit(ctx, "acme", "s1", none, 0)
		if p != nil || !errors.Is(err, quota.ErrNestedAcquire) || errors.Is(err, quota.ErrQuotaExceeded) {
			t.Errorf("nested Admit = %v, %v, want ErrNestedAcquire and no ErrQuotaExceeded", p, err)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("nested Admit took %v, want no waiting", d)
		}
		if got := q.Held(ctx, "acme", "s1"); got != outer {
			t.Errorf("Held = %v, want the outer permit", got)
		}

		// Other shards, tenants and quotas are no nesting. Their permits add up in the ctx, in any order.
		for _, tt := range []struct {
			q     *quota.Quota
			id    tenant.ID
			shard string
		}{{q, "acme", "s2"}, {q, "umbrella", "s1"}, {other, "acme", "s1"}} {
			if got := tt.q.Held(ctx, tt.id, tt.shard); got != nil {
				t.Errorf("Held(%s, %s) = %v before it was taken", tt.id, tt.shard, got)
			}
			p, err := tt.q.Admit(ctx, tt.id, tt.shard, none, 0)
			if err != nil {
				t.Fatalf("Admit(%s, %s) = %v", tt.id, tt.shard, err)
			}
			ctx = quota.WithPermit(ctx, p)
		}
		for _, p := range []*quota.Permit{q.Held(ctx, "acme", "s1"), q.Held(ctx, "acme", "s2"), q.Held(ctx, "umbrella", "s1"), other.Held(ctx, "acme", "s1")} {
			if p == nil {
				t.Fatal("an outer permit is hidden by an inner one")
			}
		}
		for _, id := range []tenant.ID{"acme", "umbrella"} {
			if _, err := q.Admit(ctx, id, "s1", none, 0); !errors.Is(err, quota.ErrNestedAcquire) {
				t.Errorf("nested Admit(%s) = %v, want ErrNestedAcquire", id, err)
			}
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("all of it took %v, want no waiting", d)
		}

		// A second permit is fine if one is free.
		second, err := q.Admit(ctx, "acme", "s1", tenant.Limits{MaxConns: 2}, 0)
		if err != nil {
			t.Fatalf("nested Admit with a free permit = %v", err)
		}
		second.Release()

		// A permit that was given back is held no more: this caller may wait again.
		outer.Release()
		if got := q.Held(ctx, "acme", "s1"); got != nil {
			t.Errorf("Held = %v after the release, want nil", got)
		}
		blocker := admit(t, q, "acme", "s1", none, 0)
		w := start(ctx, q, "acme", "s1", none, 0)
		synctest.Wait()
		if !pending(w) {
			t.Fatal("a caller that holds nothing any more was not let wait")
		}
		blocker.Release()
		synctest.Wait()
		granted(t, w).Release()
	})
}

func TestWithPermit_Nil(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	if got := quota.WithPermit(ctx, nil); got != ctx {
		t.Errorf("WithPermit(ctx, nil) = %v, want ctx", got)
	}
	type key struct{}
	q := newQuota(t, quota.Config{})
	p := admit(t, q, "acme", "s1", none, 0)
	defer p.Release()
	ctx = quota.WithPermit(context.WithValue(ctx, key{}, "v"), p)
	if got := ctx.Value(key{}); got != "v" {
		t.Errorf("a value of the parent = %v, want v", got)
	}
}

// Served in the instant in which its ctx ends, a waiter passes the permit on.
func TestAdmit_Q64_GrantThatComesTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 1})
		held := admit(t, q, "acme", "s1", none, 0)
		var late []*lateCtx
		var losers []<-chan answer
		for range 3 {
			ctx := newLateCtx()
			late = append(late, ctx)
			losers = append(losers, start(ctx, q, "acme", "s1", none, 0))
			synctest.Wait()
		}
		w := start(context.Background(), q, "acme", "s1", none, 0)
		synctest.Wait()
		for _, ctx := range late {
			ctx.end()
		}
		held.Release()
		synctest.Wait()
		for _, l := range losers {
			if err := refused(t, l); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want context.Canceled", err)
			}
		}
		granted(t, w).Release()
		settled(t, q, 5)
	})
}

// The same for real, many times: whoever wins, the permit is used or handed to the next, and in use is 0 at the end.
func TestAdmit_Q64_CancelRacesGrant(t *testing.T) {
	t.Parallel()
	rounds := 30_000
	if testing.Short() || raceEnabled {
		rounds = 3_000
	}
	q := newQuota(t, quota.Config{MaxConns: 1, MaxWait: time.Minute})
	served := 0
	queued := func(n int) {
		for q.Stats().Waiting < n {
			runtime.Gosched()
		}
	}
	for i := range rounds {
		held := admit(t, q, "acme", "s1", none, 0)
		ctx, cancel := context.WithCancel(context.Background())
		first := start(ctx, q, "acme", "s1", none, 0)
		queued(1)
		next := start(context.Background(), q, "acme", "s1", none, 0)
		queued(2)
		switch i % 3 {
		case 0:
			go cancel()
			held.Release()
		case 1:
			go held.Release()
			cancel()
		case 2:
			held.Release()
			cancel() // the first is served and may not have looked
		}
		if a := <-first; a.err == nil {
			served++
			a.p.Release()
		} else if !errors.Is(a.err, context.Canceled) {
			t.Fatalf("first waiter: %v", a.err)
		}
		a := <-next
		if a.err != nil {
			t.Fatalf("the next waiter was not served: %v", a.err)
		}
		a.p.Release()
		cancel()
	}
	t.Logf("the grant won %d of %d races", served, rounds)
	settled(t, q, uint64(3*rounds))
}

// Waiters whose time is over get no connections, however many there are and however late they run; the live one behind them is served at once.
func TestAdmit_Q65_ExpiredWaitersAreSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 18_000
		q := newQuota(t, quota.Config{MaxConns: 1, MaxQueue: n + 1})
		held := admit(t, q, "acme", "s1", none, 0)
		ctx, cancel := context.WithCancel(context.Background())
		var refusals sync.WaitGroup
		for range n {
			refusals.Go(func() {
				if p, err := q.Admit(ctx, "acme", "s1", none, 0); !errors.Is(err, context.Canceled) {
					t.Errorf("Admit under a cancelled ctx = %v, %v", p, err)
				}
			})
		}
		synctest.Wait()
		if got := q.Stats().Waiting; got != n {
			t.Fatalf("%d waiting, want %d", got, n)
		}
		live := start(context.Background(), q, "acme", "s1", none, 0)
		synctest.Wait()
		cancel()
		held.Release() // before most of them have run
		p := (<-live).p
		if p == nil {
			t.Fatal("the live waiter was refused")
		}
		refusals.Wait()
		if st := q.Stats(); st.Granted != 2 || st.Refused != n || st.InUse != 1 {
			t.Errorf("Stats() = %+v, want 2 granted, %d refused, 1 in use", st, n)
		}
		p.Release()
		settled(t, q, n+2)
	})
}

// A waiter whose deadline has passed is skipped even before its ctx has noticed.
func TestAdmit_Q65_DeadlineIsEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 1})
		held := admit(t, q, "acme", "s1", none, 0)
		late := start(forgetful{context.Background(), time.Now().Add(time.Second)}, q, "acme", "s1", none, 0)
		synctest.Wait()
		w := start(context.Background(), q, "acme", "s1", none, 0)
		time.Sleep(time.Second)
		held.Release()
		synctest.Wait()
		granted(t, w).Release()
		if !pending(late) {
			t.Fatalf("the late waiter has an answer: %+v", <-late)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		exceeded(t, refused(t, late), quota.LimitWait)
		settled(t, q, 3)
	})
}

// Waiters that have ended leave the line when room is needed, even before they have run.
func TestAdmit_Q65_ExpiredWaitersHoldNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 1, MaxQueue: 2})
		held := admit(t, q, "acme", "s1", none, 0)
		late := newLateCtx()
		stuck := start(late, q, "acme", "s1", none, 0)
		synctest.Wait()
		// Its channel says that it has ended; its Err blocks it so that it cannot leave by itself.
		slow := &slowCtx{Context: context.Background(), done: make(chan struct{}), gate: make(chan struct{})}
		gone := start(slow, q, "acme", "s1", none, 0)
		synctest.Wait()
		late.end()
		close(late.done)
		synctest.Wait()
		exceeded(t, refused(t, stuck), quota.LimitWait)

		slow.slow.Store(true)
		close(slow.done)
		synctest.Wait()
		var live []<-chan answer
		for range 2 {
			live = append(live, start(context.Background(), q, "acme", "s1", none, 0))
			synctest.Wait()
			if !pending(live[len(live)-1]) {
				t.Fatalf("waiter was refused: %v", refused(t, live[len(live)-1]))
			}
		}
		_, err := q.Admit(context.Background(), "acme", "s1", none, 0)
		exceeded(t, err, quota.LimitQueue)
		close(slow.gate)
		synctest.Wait()
		exceeded(t, refused(t, gone), quota.LimitWait)
		held.Release()
		for _, w := range live {
			synctest.Wait()
			granted(t, w).Release()
		}
		settled(t, q, 6)
	})
}

// slowCtx is a ctx whose Err, once slow, waits for the gate: a goroutine that was woken and does not get to run.
type slowCtx struct {
	context.Context
	done, gate chan struct{}
	slow       atomic.Bool
}

func (c *slowCtx) Done() <-chan struct{} { return c.done }

func (c *slowCtx) Err() error {
	if c.slow.Load() {
		<-c.gate
		return context.Canceled
	}
	return nil
}

// A release in the instant between "none free" and joining the line is seen; nothing else happens afterwards that could wake the waiter.
func TestAdmit_Q67_NoLostWakeUp(t *testing.T) {
	t.Parallel()
	t.Run("Staged", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			q := newQuota(t, quota.Config{MaxConns: 1})
			held := admit(t, q, "acme", "s1", none, 0)
			// Admit asks the ctx after it found no permit and before it joins the line.
			ctx := &hookCtx{Context: context.Background(), hook: held.Release}
			begin := time.Now()
			p, err := q.Admit(ctx, "acme", "s1", none, 0)
			if err != nil || time.Since(begin) != 0 || !ctx.ran {
				t.Fatalf("Admit = %v after %v (hook ran: %v), want a permit at once", err, time.Since(begin), ctx.ran)
			}
			p.Release()
			settled(t, q, 2)
		})
	})
	t.Run("Raced", func(t *testing.T) {
		t.Parallel()
		rounds := 30_000
		if testing.Short() || raceEnabled {
			rounds = 3_000
		}
		q := newQuota(t, quota.Config{MaxConns: 1, MaxWait: time.Minute})
		for range rounds {
			held := admit(t, q, "acme", "s1", none, 0)
			w := start(context.Background(), q, "acme", "s1", none, 0)
			held.Release()
			a := <-w
			if a.err != nil {
				t.Fatal(a.err)
			}
			a.p.Release()
		}
		settled(t, q, uint64(2*rounds))
	})
}

// hookCtx runs its hook when it is first asked for a value.
type hookCtx struct {
	context.Context
	hook func()
	ran  bool
}

func (c *hookCtx) Value(key any) any {
	if !c.ran {
		c.ran = true
		c.hook()
	}
	return c.Context.Value(key)
}

// Waiting in a circle, which no single tenant and shard can see, ends with MaxWait.
func TestAdmit_Q60_CircleEndsWithMaxWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(t, quota.Config{MaxConns: 1, MaxWait: time.Second})
		on := func(first, second string) <-chan answer {
			p := admit(t, q, "acme", first, none, 0)
			c := make(chan answer, 1)
			go func() {
				defer p.Release()
				p, err := q.Admit(quota.WithPermit(context.Background(), p), "acme", second, none, 0)
				if err == nil {
					p.Release()
				}
				c <- answer{p, err}
			}()
			return c
		}
		a, b := on("s1", "s2"), on("s2", "s1")
		time.Sleep(time.Second)
		synctest.Wait()
		x, y := <-a, <-b
		if x.err == nil && y.err == nil {
			t.Error("both got their second permit")
		}
		settled(t, q, 4)
	})
}

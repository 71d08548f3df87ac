package quota_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// The model says in the plainest way what each call must answer and what must be counted afterwards. A schedule is a string of bytes; each
// step is done to the Quota and to the model, in a bubble where every goroutine has come to rest before the two are compared.
//
// Time goes in ticks of 1/8 s and all rates are 8 per second or unlimited, so that tokens are whole numbers.

const (
	tick      = time.Second / 8
	maxWait   = 10 * tick
	debtBound = 2 // bursts
)

// modelLimits are what tenants change between. The zero fields are the defaults of modelConfig.
var (
	modelConfig = quota.Config{Rate: 8, Burst: 6, MaxConns: 2, MaxQueue: 3, MaxWait: maxWait, DebtBursts: debtBound}
	modelLimits = []tenant.Limits{
		{}, {MaxConns: 1}, {MaxConns: 3}, {Burst: 2}, {Rate: -1}, {MaxQueue: -1}, {MaxQueue: 1}, {Rate: 8, Burst: 20, MaxConns: -1},
	}
)

// modelTenant is the model of one tenant.
type modelTenant struct {
	id     tenant.ID
	limits tenant.Limits
	tokens int
	lanes  map[string]*modelLane
}

// modelLane is the model of a tenant's permits on one shard.
type modelLane struct {
	inUse int
	queue []*modelWaiter
}

// modelWaiter is one call that waits in both worlds.
type modelWaiter struct {
	lane     *modelLane
	owner    *modelTenant
	paid     bool
	deadline time.Time // of the ctx or of MaxWait, whichever comes first
	byCtx    bool
	cancel   context.CancelFunc
	answer   <-chan answer
}

// modelPermit is one permit that is held in both worlds.
type modelPermit struct {
	p     *quota.Permit
	lane  *modelLane
	owner *modelTenant
	shard string
	refs  int
}

func (mt *modelTenant) limited() bool { return mt.limits.Rate != -1 }

func (mt *modelTenant) burst() int {
	switch {
	case mt.limits.Burst != 0:
		return mt.limits.Burst
	case mt.limits.Rate > 0:
		return int(mt.limits.Rate)
	}
	return modelConfig.Burst
}

func (mt *modelTenant) conns() int {
	switch mt.limits.MaxConns {
	case -1:
		return 1 << 30
	case 0:
		return modelConfig.MaxConns
	}
	return mt.limits.MaxConns
}

func (mt *modelTenant) maxQueue() int {
	switch mt.limits.MaxQueue {
	case -1:
		return 0
	case 0:
		return modelConfig.MaxQueue
	}
	return mt.limits.MaxQueue
}

// put gives back a token.
func (mt *modelTenant) put(paid bool) {
	if paid && mt.limited() {
		mt.tokens = min(mt.tokens+1, mt.burst())
	}
}

// world is the Quota, its model, and what is held and waiting in both.
type world struct {
	t       testing.TB
	q       *quota.Quota
	tenants []*modelTenant
	held    []*modelPermit
	waiting []*modelWaiter

	asked, granted, refused, dropped, over uint64
	log                                    []string
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.log {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// serve hands free permits to waiters and takes their answers.
func (w *world) serve(mt *modelTenant, shard string) {
	ln := mt.lanes[shard]
	for len(ln.queue) > 0 && ln.inUse < mt.conns() {
		mw := ln.queue[0]
		ln.queue = ln.queue[1:]
		w.waiting = slices.DeleteFunc(w.waiting, func(x *modelWaiter) bool { return x == mw })
		ln.inUse++
		w.granted++
		synctest.Wait()
		w.held = append(w.held, &modelPermit{granted(w.t, mw.answer), ln, mt, shard, 1})
		mw.cancel()
	}
}

// drop ends a waiter without a permit.
func (w *world) drop(mw *modelWaiter) {
	mw.lane.queue = slices.DeleteFunc(mw.lane.queue, func(x *modelWaiter) bool { return x == mw })
	w.waiting = slices.DeleteFunc(w.waiting, func(x *modelWaiter) bool { return x == mw })
	w.refused++
	mw.owner.put(mw.paid)
	mw.cancel()
}

// admit makes one admission in both worlds.
func (w *world) admit(mt *modelTenant, shard string, try, nested bool, deadline time.Duration) {
	ln := mt.lanes[shard]
	ctx, cancel := context.WithCancel(context.Background())
	wait := maxWait
	if deadline > 0 {
		// Not at the same instant as MaxWait, where either may come first.
		ctx, cancel = context.WithTimeout(context.Background(), deadline)
		wait = min(wait, deadline)
	}
	if nested {
		i := slices.IndexFunc(w.held, func(p *modelPermit) bool { return p.owner == mt && p.shard == shard })
		if nested = i >= 0; nested {
			ctx = quota.WithPermit(ctx, w.held[i].p)
		}
	}
	w.asked++
	c := make(chan answer, 1)
	go func() {
		var a answer
		if try {
			a.p, a.err = w.q.TryAdmit(mt.id, shard, mt.limits, 0)
		} else {
			a.p, a.err = w.q.Admit(ctx, mt.id, shard, mt.limits, 0)
		}
		c <- a
	}()
	synctest.Wait()

	refuse := func(limit quota.Limit) {
		w.refused++
		cancel()
		e := exceeded(w.t, refused(w.t, c), limit)
		if limit == quota.LimitRate {
			if want := time.Duration(1-mt.tokens) * tick; e.RetryAfter != want {
				w.fail("RetryAfter = %v with %d tokens, want %v", e.RetryAfter, mt.tokens, want)
			}
		}
		if e.Queued != len(ln.queue) {
			w.fail("Queued = %d, want %d", e.Queued, len(ln.queue))
		}
	}
	paid := mt.limited()
	switch {
	case paid && mt.tokens < 1:
		refuse(quota.LimitRate)
	case ln.inUse < mt.conns():
		if paid {
			mt.tokens--
		}
		ln.inUse++
		w.granted++
		cancel()
		w.held = append(w.held, &modelPermit{granted(w.t, c), ln, mt, shard, 1})
	case try:
		refuse(quota.LimitConns)
	case nested:
		w.refused++
		cancel()
		if err := refused(w.t, c); !errors.Is(err, quota.ErrNestedAcquire) {
			w.fail("nested Admit = %v, want ErrNestedAcquire", err)
		}
	case mt.maxQueue() == 0:
		refuse(quota.LimitConns)
	case len(ln.queue) >= mt.maxQueue():
		refuse(quota.LimitQueue)
	default:
		if !pending(c) {
			w.fail("Admit answered %+v, want it to wait", <-c)
		}
		if paid {
			mt.tokens--
		}
		mw := &modelWaiter{
			lane: ln, owner: mt, paid: paid, deadline: time.Now().Add(wait), byCtx: deadline > 0 && deadline < maxWait, cancel: cancel, answer: c,
		}
		ln.queue = append(ln.queue, mw)
		w.waiting = append(w.waiting, mw)
	}
}

// release ends one reference in both worlds.
func (w *world) release(i int) {
	mp := w.held[i]
	mp.p.Release()
	if mp.refs--; mp.refs == 0 {
		w.held = slices.Delete(w.held, i, i+1)
		mp.lane.inUse--
		w.serve(mp.owner, mp.shard)
	}
}

// advance lets one tick pass in both worlds.
func (w *world) advance() {
	time.Sleep(tick)
	synctest.Wait()
	for _, mt := range w.tenants {
		if mt.limited() {
			mt.tokens = min(mt.tokens+1, mt.burst())
		}
	}
	for _, mw := range slices.Clone(w.waiting) {
		if mw.deadline.After(time.Now()) {
			continue
		}
		w.drop(mw)
		err := refused(w.t, mw.answer)
		exceeded(w.t, err, quota.LimitWait)
		if mw.byCtx != errors.Is(err, context.DeadlineExceeded) {
			w.fail("waiter ended with %v; by the deadline of its ctx: %v", err, mw.byCtx)
		}
	}
}

// limits changes a tenant's limits in both worlds.
func (w *world) limits(mt *modelTenant, l tenant.Limits) {
	wasLimited, wasBurst := mt.limited(), mt.burst()
	mt.limits = l
	if err := w.q.SetLimits(mt.id, l); err != nil {
		w.fail("SetLimits = %v", err)
	}
	if mt.limited() {
		if !wasLimited || mt.tokens == wasBurst {
			mt.tokens = mt.burst() // a full bucket stays full
		} else if mt.burst() != wasBurst {
			if floor := -debtBound * mt.burst(); mt.tokens < floor {
				w.dropped += uint64(floor - mt.tokens)
				mt.tokens = floor
			}
			mt.tokens = min(mt.tokens, mt.burst())
		}
	}
	for _, shard := range []string{"s1", "s2"} {
		w.serve(mt, shard)
	}
}

// charge charges statements in both worlds.
func (w *world) charge(mt *modelTenant, n int) {
	w.q.Charge(mt.id, mt.limits, n)
	if mt.limited() {
		took := min(n, mt.tokens+debtBound*mt.burst())
		mt.tokens -= took
		w.dropped += uint64(n - took)
	}
}

// compare checks that both worlds agree.
func (w *world) compare() {
	synctest.Wait()
	inUse, waiting := 0, 0
	for _, mt := range w.tenants {
		for shard, ln := range mt.lanes {
			if got := w.q.InUse(mt.id, shard); got != ln.inUse {
				w.fail("InUse(%s, %s) = %d, want %d", mt.id, shard, got, ln.inUse)
			}
			inUse += ln.inUse
			waiting += len(ln.queue)
		}
	}
	want := quota.Stats{
		InUse: inUse, Waiting: waiting, Granted: w.granted, Refused: w.refused, DebtDropped: w.dropped, OverReleases: w.over,
	}
	got := w.q.Stats()
	got.Tenants = 0 // how many are kept is not promised
	if got != want {
		w.fail("Stats() = %+v, want %+v", got, want)
	}
	if w.granted+w.refused+uint64(waiting) != w.asked {
		w.fail("granted %d + refused %d + waiting %d, want the %d asked", w.granted, w.refused, waiting, w.asked)
	}
	for _, mw := range w.waiting {
		if !pending(mw.answer) {
			w.fail("a waiter has an answer before its turn: %+v", <-mw.answer)
		}
	}
}

// runSchedule does a schedule to both worlds and ends with everything given back.
func runSchedule(t *testing.T, schedule []byte) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, q: newQuota(t, modelConfig)}
		defer func() {
			for _, mw := range w.waiting { // after a failure
				mw.cancel()
			}
		}()
		for _, id := range []tenant.ID{"acme", "umbrella"} {
			w.tenants = append(w.tenants, &modelTenant{
				id: id, tokens: modelConfig.Burst, lanes: map[string]*modelLane{"s1": {}, "s2": {}},
			})
		}
		next := func() (b byte) {
			if len(schedule) > 0 {
				b, schedule = schedule[0], schedule[1:]
			}
			return b
		}
		for len(schedule) > 0 {
			op, arg := next(), next()
			mt := w.tenants[arg&1]
			shard := []string{"s1", "s2"}[arg>>1&1]
			arg >>= 2
			w.log = append(w.log, fmt.Sprintf("op %d arg %d of %s on %s, %d held, %d waiting", op%16, arg, mt.id, shard, len(w.held), len(w.waiting)))
			switch op % 16 {
			case 0, 1, 2:
				w.admit(mt, shard, false, false, 0)
			case 3:
				w.admit(mt, shard, false, false, time.Duration(arg%12)*tick+tick/2)
			case 4:
				w.admit(mt, shard, true, false, 0)
			case 5:
				w.admit(mt, shard, false, true, 0)
			case 6, 7, 8:
				if len(w.held) > 0 {
					w.release(int(arg) % len(w.held))
				}
			case 9:
				if len(w.held) > 0 {
					mp := w.held[int(arg)%len(w.held)]
					mp.p.Retain()
					mp.refs++
				}
			case 10:
				if len(w.waiting) > 0 {
					mw := w.waiting[int(arg)%len(w.waiting)]
					w.drop(mw)
					synctest.Wait()
					if err := refused(t, mw.answer); !errors.Is(err, context.Canceled) {
						w.fail("cancelled waiter: %v", err)
					}
				}
			case 11, 12:
				for range arg%4 + 1 {
					w.advance()
				}
			case 13:
				w.limits(mt, modelLimits[int(arg)%len(modelLimits)])
			case 14:
				w.charge(mt, int(arg)%40+1)
			case 15:
				w.q.Sweep(time.Now())
				if len(w.held) > 0 && arg&1 == 1 {
					// A release of a permit that is dead for good.
					i := int(arg) % len(w.held)
					if mp := w.held[i]; mp.refs == 1 {
						w.release(i)
						mp.p.Release()
						w.over++
					}
				}
			}
			w.compare()
		}
		for len(w.held) > 0 {
			w.release(0)
			w.compare()
		}
		settled(t, w.q, w.asked)
		// What is left is worth a burst each, after a while.
		time.Sleep(time.Minute)
		w.q.Sweep(time.Now())
		if n := w.q.Stats().Tenants; n != 0 {
			t.Errorf("%d tenants are left when all is idle, want 0", n)
		}
	})
}

func TestModel_RandomSchedules(t *testing.T) {
	t.Parallel()
	n := uint64(1500)
	if testing.Short() || raceEnabled {
		n = 200
	}
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 42))
		schedule := make([]byte, 2*(20+rng.IntN(200)))
		for i := range schedule {
			schedule[i] = byte(rng.Uint32())
		}
		if !t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) { runSchedule(t, schedule) }) {
			return
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 6, 0, 6, 0, 6, 0})
	f.Add([]byte{0, 0, 0, 0, 3, 8, 13, 4, 11, 0, 6, 0, 15, 0})
	f.Add([]byte{13, 4, 0, 0, 0, 0, 10, 0, 14, 255, 11, 255, 5, 0})
	f.Fuzz(func(t *testing.T, schedule []byte) {
		if len(schedule) > 600 {
			schedule = schedule[:600]
		}
		runSchedule(t, schedule)
	})
}

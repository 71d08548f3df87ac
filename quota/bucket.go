package quota

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket is the token bucket of one tenant, on x/time/rate, with the two things that package lacks: bounded debt, and a refund that
// is exact. A bucket starts full. It is guarded by the lock of its stripe; the time is always an argument.
//
// x/time/rate takes any time stamp it is given as the new "last", so one from the past would refill the bucket twice. The lock
// orders our calls, and clock makes their time stamps follow that order.
type bucket struct {
	lim  *rate.Limiter // nil means unlimited
	last time.Time
}

// limited reports whether the bucket ever refuses. If not, its other methods need no time and the zero time will do.
func (b *bucket) limited() bool { return b.lim != nil }

// clock returns now, or the latest time seen if now lies before it.
func (b *bucket) clock(now time.Time) time.Time {
	if now.Before(b.last) {
		return b.last
	}
	b.last = now
	return now
}

// price sets rate and burst. Tokens and debt are kept and grow at the new rate from now on; tokens above the new burst are cut, and
// debt beyond debtBursts of the new burst is forgiven and returned. Unlimited forgets the bucket, debt too. A full bucket stays full
// when the burst grows, since it may as well have been dropped before and made anew after.
func (b *bucket) price(now time.Time, perSecond float64, burst, debtBursts int) (forgiven int) {
	if perSecond == unlimited {
		b.lim = nil
		return 0
	}
	if b.full(now) {
		b.lim = rate.NewLimiter(rate.Limit(perSecond), burst)
		return 0
	}
	now = b.clock(now)
	b.lim.SetLimitAt(now, rate.Limit(perSecond))
	b.lim.SetBurstAt(now, burst)
	if excess := debtFloor(burst, debtBursts) - b.lim.TokensAt(now); excess > 0 {
		forgiven = int(math.Ceil(excess))
		b.put(now, forgiven)
	}
	return forgiven
}

// take takes one token. If there is none it takes nothing and returns the time until there will be one, which is above 0.
func (b *bucket) take(now time.Time) (ok bool, retryAfter time.Duration) {
	if b.lim == nil {
		return true, 0
	}
	now = b.clock(now)
	if b.lim.AllowN(now, 1) {
		return true, 0
	}
	missing := 1 - b.lim.TokensAt(now)
	// x/time/rate cuts its own waits down to whole nanoseconds, so half a one too early is in time.
	wait := math.Round(missing / float64(b.lim.Limit()) * float64(time.Second))
	if wait >= math.MaxInt64 {
		return false, math.MaxInt64
	}
	return false, max(time.Duration(wait), 1)
}

// put gives n tokens back; the bucket does not grow past its burst.
//
// Reservation.Cancel does not do that: it gives back less when others took tokens meanwhile, and nothing once the time to act has
// passed. A negative count adds exactly n, and x/time/rate cuts the sum at the burst whenever it next looks. TestBucket_Q50 guards
// this. AllowN would not do: it refuses while the bucket stays in debt.
func (b *bucket) put(now time.Time, n int) {
	if b.lim != nil {
		b.lim.ReserveN(b.clock(now), -n)
	}
}

// charge takes n tokens whether they are there or not, down to a debt of debtBursts bursts, and returns how many of the n it did not take.
func (b *bucket) charge(now time.Time, n, debtBursts int) (dropped int) {
	if b.lim == nil {
		return 0
	}
	now = b.clock(now)
	if b.lim.AllowN(now, n) { // no debt is made, which is nearly always so
		return 0
	}
	burst := b.lim.Burst()
	room := math.Floor(b.lim.TokensAt(now) - debtFloor(burst, debtBursts))
	rest := n
	if float64(n) > room {
		rest = max(int(room), 0)
	}
	dropped = n - rest
	// ReserveN takes at most a burst at a time. The floor bounds the number of rounds by debtBursts+1.
	for rest > 0 {
		part := min(rest, burst)
		b.lim.ReserveN(now, part)
		rest -= part
	}
	return dropped
}

// full reports whether the bucket is as good as new, so that dropping it loses nothing.
func (b *bucket) full(now time.Time) bool {
	if b.lim == nil {
		return true
	}
	if now.Before(b.last) {
		now = b.last
	}
	return b.lim.TokensAt(now) >= float64(b.lim.Burst())
}

// debtFloor returns the lowest number of tokens that charges may lead to: zero or negative.
func debtFloor(burst, debtBursts int) float64 {
	return -float64(burst) * float64(max(debtBursts, 0))
}

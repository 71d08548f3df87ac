package quota

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// epoch is any time at all.
var epoch = time.Unix(1_700_000_000, 0)

// newBucket returns a full bucket.
func newBucket(perSecond float64, burst int) *bucket {
	b := &bucket{}
	b.price(epoch, perSecond, burst, 2)
	return b
}

// drain takes all tokens there are at now and returns their number.
func drain(b *bucket, now time.Time) (n int) {
	for {
		if ok, _ := b.take(now); !ok {
			return n
		}
		n++
	}
}

// A refund adds exactly what was taken: later takers do not shrink it, time does not, debt does not, and it never passes the burst.
func TestBucket_Q50_RefundIsExact(t *testing.T) {
	t.Parallel()
	b := newBucket(1, 10)
	if n := drain(b, epoch); n != 10 {
		t.Fatalf("a new bucket of burst 10 had %d tokens", n)
	}
	b.put(epoch, 3)
	if n := drain(b, epoch); n != 3 {
		t.Errorf("after putting back 3: %d tokens, want 3", n)
	}
	// Others took tokens after the refunded one, and its time has passed: Reservation.Cancel would return less or nothing.
	later := epoch.Add(5 * time.Second)
	if n := drain(b, later); n != 5 {
		t.Fatalf("after 5 s: %d tokens, want 5", n)
	}
	b.put(later.Add(time.Second), 1)
	if n := drain(b, later.Add(time.Second)); n != 2 {
		t.Errorf("one refilled and one put back: %d tokens, want 2", n)
	}
	// In debt.
	now := later.Add(time.Second)
	b.charge(now, 7, 2)
	b.put(now, 5)
	if _, wait := b.take(now); wait != 3*time.Second {
		t.Errorf("debt 7, put back 5: next token in %v, want 3s", wait)
	}
	// Full.
	now = now.Add(time.Hour)
	b.put(now, 4)
	if n := drain(b, now); n != 10 {
		t.Errorf("putting back into a full bucket left %d tokens, want the burst, 10", n)
	}
	b.put(now, 40)
	if n := drain(b, now); n != 10 {
		t.Errorf("putting back 40 into an empty bucket left %d tokens, want the burst, 10", n)
	}
}

// Time stamps may come out of order when callers race for the lock, and the clock may stand still.
func TestBucket_Q52_ClockGoesBackwards(t *testing.T) {
	t.Parallel()
	b := newBucket(10, 10)
	drain(b, epoch)
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	if n := drain(b, at(time.Second)); n != 10 {
		t.Fatalf("after 1 s: %d tokens, want 10", n)
	}
	for range 100 {
		if n := drain(b, at(0)); n != 0 {
			t.Fatalf("a time stamp from the past gave %d tokens", n)
		}
		if n := drain(b, at(time.Second)); n != 0 {
			t.Fatalf("coming back from the past refilled %d tokens", n)
		}
		b.put(at(-time.Hour), 1)
		if b.full(at(-time.Hour)) {
			t.Fatal("full in the past")
		}
		if n := drain(b, at(time.Second)); n != 1 {
			t.Fatalf("a refund stamped in the past gave %d tokens, want 1", n)
		}
	}
	// Not frozen either.
	if n := drain(b, at(1500*time.Millisecond)); n != 5 {
		t.Errorf("0.5 s later: %d tokens, want 5", n)
	}
	// A suspended machine: at most one burst.
	if n := drain(b, at(8*time.Hour)); n != 10 {
		t.Errorf("after 8 h: %d tokens, want the burst, 10", n)
	}
}

func TestBucket_Q47_DebtIsBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name               string
		burst, debt        int
		charge             int
		dropped            int
		repaid             time.Duration // until the next token, at 1/s
		tokensBeforeCharge int
	}{
		{"WithinTokens", 5, 2, 3, 0, 0, 5},
		{"AllTokens", 5, 2, 5, 0, time.Second, 5},
		{"IntoDebt", 5, 2, 6, 0, 2 * time.Second, 5},
		{"ToTheBound", 5, 2, 15, 0, 11 * time.Second, 5},
		{"BeyondTheBound", 5, 2, 16, 1, 11 * time.Second, 5},
		{"Huge", 5, 2, math.MaxInt, math.MaxInt - 15, 11 * time.Second, 5},
		{"FromEmpty", 5, 2, 11, 1, 11 * time.Second, 0},
		{"NoDebt", 5, -1, 7, 2, time.Second, 5},
		{"Deep", 1, 1000, 2000, 999, 1001 * time.Second, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(1, tt.burst)
			for range tt.burst - tt.tokensBeforeCharge {
				b.take(epoch)
			}
			if got := b.charge(epoch, tt.charge, tt.debt); got != tt.dropped {
				t.Errorf("charge(%d) dropped %d, want %d", tt.charge, got, tt.dropped)
			}
			_, wait := b.take(epoch)
			if wait != tt.repaid {
				t.Fatalf("next token in %v, want %v", wait, tt.repaid)
			}
			if wait > 0 {
				if ok, _ := b.take(epoch.Add(wait - 2)); ok {
					t.Error("a token 2 ns before the debt was repaid")
				}
				if ok, _ := b.take(epoch.Add(wait)); !ok {
					t.Error("no token when the debt was repaid")
				}
			}
		})
	}
}

// A bound that is tighter than the debt there is drops all of a charge, and no more than that.
func TestBucket_Q47_DebtBeyondTheBound(t *testing.T) {
	t.Parallel()
	b := newBucket(1, 5)
	b.charge(epoch, 15, 2)
	if got := b.charge(epoch, 3, 1); got != 3 {
		t.Errorf("charge(3) beyond the bound dropped %d, want 3", got)
	}
	if _, wait := b.take(epoch); wait != 11*time.Second {
		t.Errorf("next token in %v, want 11s as before", wait)
	}
}

func TestBucket_Q49_Reprice(t *testing.T) {
	t.Parallel()
	t.Run("DebtAtTheNewRate", func(t *testing.T) {
		t.Parallel()
		b := newBucket(10, 10)
		b.charge(epoch, 15, 2) // 5 in debt: 600 ms at 10/s
		b.price(epoch, 1000, 10, 2)
		if _, wait := b.take(epoch); wait != 6*time.Millisecond {
			t.Errorf("after 10/s -> 1000/s the next token comes in %v, want 6ms", wait)
		}
		b.price(epoch, 10, 10, 2)
		if _, wait := b.take(epoch); wait != 600*time.Millisecond {
			t.Errorf("after 1000/s -> 10/s the next token comes in %v, want 600ms", wait)
		}
	})
	t.Run("PastAtTheOldRate", func(t *testing.T) {
		t.Parallel()
		b := newBucket(10, 100)
		drain(b, epoch)
		b.price(epoch.Add(time.Second), 1, 100, 2)
		if n := drain(b, epoch.Add(3*time.Second)); n != 12 {
			t.Errorf("1 s at 10/s and 2 s at 1/s gave %d tokens, want 12", n)
		}
	})
	t.Run("TokensCutAtTheNewBurst", func(t *testing.T) {
		t.Parallel()
		b := newBucket(10, 100)
		b.price(epoch, 10, 3, 2)
		if n := drain(b, epoch); n != 3 {
			t.Errorf("burst 100 -> 3 left %d tokens, want 3", n)
		}
	})
	t.Run("NoGiftForALargerBurst", func(t *testing.T) {
		t.Parallel()
		b := newBucket(10, 3)
		b.take(epoch)
		b.price(epoch, 10, 100, 2)
		if n := drain(b, epoch); n != 2 {
			t.Errorf("burst 3 -> 100 left %d tokens, want the 2 there were", n)
		}
	})
	t.Run("FullStaysFull", func(t *testing.T) {
		t.Parallel()
		b := newBucket(10, 3)
		b.price(epoch, 10, 100, 2)
		if n := drain(b, epoch); n != 100 {
			t.Errorf("burst 3 -> 100 of a full bucket left %d tokens, want 100, as a new one has", n)
		}
		// It is a new limiter, but time still does not go backwards.
		b.price(epoch.Add(time.Hour), 10, 5, 2)
		drain(b, epoch.Add(time.Hour))
		if n := drain(b, epoch); n != 0 {
			t.Errorf("%d tokens in the past, want 0", n)
		}
	})
	t.Run("DebtCutAtTheNewBound", func(t *testing.T) {
		t.Parallel()
		b := newBucket(1, 1000)
		b.charge(epoch, 3000, 2)
		if got := b.price(epoch, 1, 1, 2); got != 1998 {
			t.Errorf("burst 1000 -> 1 at a debt of 2000 forgave %d, want 1998", got)
		}
		if _, wait := b.take(epoch); wait != 3*time.Second {
			t.Errorf("next token in %v, want 3s for a debt of 2", wait)
		}
	})
	t.Run("UnlimitedAndBack", func(t *testing.T) {
		t.Parallel()
		b := newBucket(10, 5)
		drain(b, epoch)
		b.price(epoch, unlimited, 1, 2)
		for range 1000 {
			if ok, _ := b.take(epoch); !ok {
				t.Fatal("an unlimited bucket refused")
			}
		}
		if b.charge(epoch, 1000, 2) != 0 || !b.full(epoch) {
			t.Error("an unlimited bucket went into debt")
		}
		b.put(epoch, 1)
		b.price(epoch, 10, 5, 2)
		if n := drain(b, epoch); n != 5 {
			t.Errorf("limited again: %d tokens, want a full bucket of 5", n)
		}
	})
}

// The retry-after is the first time at which the token is there, for any rate and at any point of the refill.
func TestBucket_RetryAfterIsExact(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		perSecond := math.Pow(10, rng.Float64()*10-4) // 0.0001 to 1,000,000
		burst := 1 + rng.IntN(20)
		b := newBucket(perSecond, burst)
		now := epoch
		for range rng.IntN(5) {
			now = now.Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
			b.charge(now, rng.IntN(2*burst), 2)
		}
		ok, wait := b.take(now)
		if ok {
			continue
		}
		if wait < 1 {
			t.Fatalf("case %d (seed 1,2): refused with retry-after %v", i, wait)
		}
		// x/time/rate counts whole nanoseconds, so it may be one early.
		if early := now.Add(wait - 2 - wait>>40); wait > 2 && b.lim.TokensAt(early) >= 1 {
			t.Fatalf("case %d (seed 1,2), rate %v: a token was there before the retry-after of %v", i, perSecond, wait)
		}
		if ok, _ := b.take(now.Add(wait)); !ok {
			t.Fatalf("case %d (seed 1,2), rate %v: no token after the retry-after of %v", i, perSecond, wait)
		}
	}
}

// At a rate near zero the wait saturates; it never turns negative.
func TestBucket_Q45_TinyRate(t *testing.T) {
	t.Parallel()
	b := newBucket(1e-300, 1)
	if ok, _ := b.take(epoch); !ok {
		t.Fatal("the burst was refused")
	}
	if ok, wait := b.take(epoch); ok || wait != math.MaxInt64 {
		t.Errorf("take at 1e-300/s = %v, %v, want a refusal for the longest Duration", ok, wait)
	}
	b.charge(epoch, 10, 2)
	if ok, wait := b.take(epoch.Add(200 * 365 * 24 * time.Hour)); ok || wait != math.MaxInt64 {
		t.Errorf("take 200 years later = %v, %v, want a refusal for the longest Duration", ok, wait)
	}
}

// Tokens are conserved over any schedule: what was granted is at most burst + rate*t + refunds, and, once the debt is repaid, nothing is lost.
func TestBucket_Q50_Conservation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		perSecond := float64(1 + rng.IntN(50))
		burst := 1 + rng.IntN(30)
		b := newBucket(perSecond, burst)
		now := epoch
		net := 0                // taken and not put back
		model := float64(burst) // tokens, by the definition
		for range 500 {
			step := time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
			now = now.Add(step)
			model = math.Min(float64(burst), model+step.Seconds()*perSecond)
			switch rng.IntN(4) {
			case 0, 1:
				ok, _ := b.take(now)
				if ok && model < 1-1e-6 || !ok && model > 1+1e-6 {
					t.Fatalf("seed %d: take = %v with %v tokens", seed, ok, model)
				}
				if ok {
					net++
					model--
				}
			case 2:
				n := rng.IntN(2 * burst)
				took := n - b.charge(now, n, 2)
				net += took
				model -= float64(took)
			case 3:
				if net > 0 {
					b.put(now, 1)
					net--
					model = math.Min(float64(burst), model+1)
				}
			}
			bound := float64(burst)*3 + perSecond*now.Sub(epoch).Seconds() + 1e-6
			if float64(net) > bound {
				t.Fatalf("seed %d: %d tokens taken in %v, want at most burst + rate*t + debt = %v", seed, net, now.Sub(epoch), bound)
			}
			if got := b.lim.TokensAt(now); math.Abs(got-model) > 1e-6 {
				t.Fatalf("seed %d: %v tokens, want %v", seed, got, model)
			}
		}
	}
}

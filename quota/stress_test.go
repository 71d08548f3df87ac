package quota_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// Everything at once and for real: cancels, deadlines, panics, Goexit, doubled releases, references handed to other goroutines, limits that
// change, sweeps. In use never passes the highest limit there ever was, is 0 at the end, and each call had one answer.
func TestQuota_Q46_Stress(t *testing.T) {
	t.Parallel()
	const seed = 20240607
	const workers, tenants, shards, highest = 16, 5, 3, 6
	rounds := 3000
	if testing.Short() || raceEnabled {
		rounds = 600
	}
	q := newQuota(t, quota.Config{Rate: 2e5, Burst: 50, MaxConns: 2, MaxQueue: 8, MaxWait: 20 * time.Millisecond})
	var inside [tenants][shards]atomic.Int64
	var asked, extra atomic.Uint64
	var owners sync.WaitGroup // goroutines that own a reference

	use := func(rng *rand.Rand, p *quota.Permit, in *atomic.Int64) {
		if n := in.Add(1); n > highest {
			t.Errorf("%d permits of one lane in use, want at most %d", n, highest)
		}
		leave := sync.OnceFunc(func() { in.Add(-1) })
		what := rng.IntN(6)
		if what == 0 {
			// The connection outlives the call: its own reference ends later, elsewhere.
			p.Retain()
			owners.Go(func() {
				runtime.Gosched()
				leave()
				p.Release()
			})
			p.Release()
			return
		}
		defer func() {
			p.Release()
			if what == 1 {
				p.Release() // one too many
				extra.Add(1)
			}
		}()
		defer leave()
		switch what {
		case 2:
			panic("boom")
		case 3:
			time.Sleep(time.Duration(rng.IntN(50)) * time.Microsecond)
		case 4:
			runtime.Gosched()
		}
	}

	var wg sync.WaitGroup
	for w := range workers {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for range rounds {
				ti, si := rng.IntN(tenants), rng.IntN(shards)
				id, shard := tenantID(ti), []string{"s1", "s2", "s3"}[si]
				limits := tenant.Limits{MaxConns: rng.IntN(highest + 1), MaxQueue: rng.IntN(12) - 1}
				if rng.IntN(4) > 0 {
					limits = tenant.Limits{MaxConns: 1 + ti}
				}
				limits.MaxQueue = max(limits.MaxQueue, -1)
				func() {
					defer func() { _ = recover() }()
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					switch rng.IntN(4) {
					case 0:
						ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(500))*time.Microsecond)
						defer cancel()
					case 1:
						d := time.Duration(rng.IntN(300)) * time.Microsecond
						defer time.AfterFunc(d, cancel).Stop()
					}
					asked.Add(1)
					p, err := q.Admit(ctx, id, shard, limits, highest)
					if err != nil {
						if p != nil || !errors.Is(err, quota.ErrQuotaExceeded) {
							t.Errorf("Admit = %v, %v", p, err)
						}
						return
					}
					if rng.IntN(3) == 0 {
						asked.Add(1)
						if p2, err := q.Admit(quota.WithPermit(ctx, p), id, shard, limits, highest); err == nil {
							p2.Release()
						}
					}
					use(rng, p, &inside[ti][si])
				}()
				switch rng.IntN(20) {
				case 0:
					q.Sweep(time.Now())
				case 1:
					q.Charge(id, limits, rng.IntN(10))
				case 2:
					if err := q.SetLimits(id, tenant.Limits{MaxConns: 1 + rng.IntN(highest)}); err != nil {
						t.Error(err)
					}
				case 3:
					asked.Add(1)
					if p, err := q.SystemAdmit(context.Background(), shard, 2, 4); err == nil {
						p.Release()
					}
				}
			}
		})
	}
	wg.Wait()
	owners.Wait()
	settled(t, q, asked.Load())
	st := q.Stats()
	if st.OverReleases != extra.Load() || st.LateRetains != 0 {
		t.Errorf("OverReleases = %d, LateRetains = %d, want %d and 0", st.OverReleases, st.LateRetains, extra.Load())
	}
	for i := range tenants {
		for _, shard := range []string{"s1", "s2", "s3"} {
			if n := q.InUse(tenantID(i), shard); n != 0 {
				t.Errorf("InUse(%s, %s) = %d at the end", tenantID(i), shard, n)
			}
		}
	}
	t.Logf("seed %d: %d asked, %d granted, %d refused", seed, asked.Load(), st.Granted, st.Refused)
}

// Concurrent callers get exactly the tokens that there are, though half of the calls find no permit and give theirs back. The clock stands still while
// they run, so that no token is added.
func TestQuota_Q50_TokensAreConserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const burst = 2000
		q := newQuota(t, quota.Config{Rate: 1, Burst: burst, MaxConns: 1})
		held := admit(t, q, "acme", "s2", none, 0)
		defer held.Release()
		granted := atomic.Int64{}
		granted.Add(1)
		try := func(shard string) bool {
			p, err := q.TryAdmit("acme", shard, none, 0)
			if err != nil {
				return false
			}
			granted.Add(1)
			p.Release()
			return true
		}
		var wg sync.WaitGroup
		for _, shard := range []string{"s1", "s1", "s2", "s2"} {
			wg.Go(func() {
				for range burst / 4 {
					try(shard)
				}
			})
		}
		wg.Wait()
		for try("s1") { // whatever is left
		}
		if got := granted.Load(); got != burst {
			t.Errorf("%d granted, want the %d tokens of the burst", got, burst)
		}
	})
}

package quota

import (
	"strings"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

// stripe holds the tenants whose id hashes to it. Its lock guards everything in it: accounts, buckets, lanes and queues. Nothing
// blocks and no foreign code runs under it; critical sections are O(1) but for Sweep.
type stripe struct {
	q  *Quota
	mu sync.Mutex

	lanes    map[laneKey]*lane
	accounts map[laneKey]*account // a tenant's under {id, ""}, the system's for a shard under {"", shard}

	// order lists the accounts for the clock hand that evicts idle ones. When the hand comes to the end of the list, it rests until
	// wake and begins anew.
	order []*account
	hand  int
	wake  time.Time
	tick  uint
	peak  int // most accounts since the maps were made

	tenants, system counts
	granted         uint64
	refused         uint64
	debtDropped     uint64

	_ [64]byte // keeps the locks of neighbours on cache lines of their own
}

// counts are the totals of a stripe's lanes.
type counts struct{ inUse, waiting int }

// account is what is known of one tenant: its limits, its bucket and its lanes.
type account struct {
	key    laneKey // its id is empty for the system
	limits tenant.Limits
	bounds bounds
	bucket bucket
	lanes  []*lane
	busy   int  // permits in use and waiters, over all lanes
	pos    int  // in stripe.order
	used   bool // since the clock hand passed
}

// idleAfter is how long an account is kept at least while it is not used; twice that is usual. It makes the cost of making accounts anew,
// about a microsecond, negligible, and memory is bounded by the tenants active within a few seconds.
const idleAfter = time.Second

// count returns the totals that ln belongs to.
func (s *stripe) count(ln *lane) *counts {
	if ln.acct.key.id == "" {
		return &s.system
	}
	return &s.tenants
}

// enter returns the lane of (id, shard) with the limits l and poolMax in force, making it if need be. The lock must be held.
func (s *stripe) enter(id tenant.ID, shard string, l tenant.Limits, poolMax int) (*lane, error) {
	// One step of the hand every few admissions lets memory shrink after a peak with no goroutine to do it.
	if s.tick++; s.tick%16 == 0 {
		s.evictSome(1)
	}
	key := laneKey{id, shard}
	ln := s.lanes[key]
	if ln == nil {
		a, err := s.account(key, l)
		if err != nil {
			return nil, err
		}
		key = laneKey{a.key.id, strings.Clone(shard)}
		ln = &lane{stripe: s, acct: a, shard: key.shard, conns: a.bounds.conns}
		if s.lanes == nil {
			s.lanes = make(map[laneKey]*lane)
		}
		s.lanes[key] = ln
		a.lanes = append(a.lanes, ln)
	}
	a := ln.acct
	a.used = true
	if a.limits != l {
		if err := s.setLimits(a, l); err != nil {
			return nil, err
		}
	}
	if poolMax = max(poolMax, 0); ln.poolMax != poolMax {
		ln.poolMax = poolMax
		ln.dispatch()
	}
	return ln, nil
}

// account returns the account that the lane key belongs to, making it with the limits l if need be. The lock must be held.
func (s *stripe) account(key laneKey, l tenant.Limits) (*account, error) {
	if key.id != "" {
		key.shard = ""
	}
	if a := s.accounts[key]; a != nil {
		return a, nil
	}
	b, err := s.q.cfg.resolve(key.id, l)
	if err != nil {
		return nil, err
	}
	// An idle account is dropped when the hand finds it unused for the second time, so up to two go for each one that comes.
	s.evictSome(4)
	// The names are cloned: they may be cut from a request that would live as long as the account.
	key = laneKey{tenant.ID(strings.Clone(string(key.id))), strings.Clone(key.shard)}
	a := &account{key: key, limits: l, bounds: b, pos: len(s.order), used: true}
	a.bucket.price(time.Time{}, b.rate, b.burst, s.q.cfg.DebtBursts)
	if s.accounts == nil {
		s.accounts = make(map[laneKey]*account)
	}
	s.accounts[key] = a
	s.order = append(s.order, a)
	s.peak = max(s.peak, len(s.order))
	return a, nil
}

// setLimits puts the limits l in force for all of a's lanes and serves the waiters that raised limits have room for. The lock must be held.
func (s *stripe) setLimits(a *account, l tenant.Limits) error {
	b, err := s.q.cfg.resolve(a.key.id, l)
	if err != nil {
		return err
	}
	if b.rate != a.bounds.rate || b.burst != a.bounds.burst {
		s.debtDropped += uint64(a.bucket.price(time.Now(), b.rate, b.burst, s.q.cfg.DebtBursts))
	}
	a.limits, a.bounds = l, b
	for _, ln := range a.lanes {
		ln.conns = b.conns
		ln.dispatch()
	}
	return nil
}

// evictSome moves the clock hand over at most n accounts. It drops those that are idle, not used since the hand last passed, and whose
// bucket is full: a new one would be equal. The lock must be held.
func (s *stripe) evictSome(n int) {
	now := time.Now()
	if now.Before(s.wake) {
		return
	}
	for ; n > 0; n-- {
		if s.hand >= len(s.order) {
			s.hand, s.wake = 0, now.Add(idleAfter)
			return
		}
		if a := s.order[s.hand]; !a.used && a.idle(now) {
			s.drop(a) // moves another account to the hand
		} else {
			a.used = false
			s.hand++
		}
	}
}

// sweep drops all idle accounts and the idle lanes of the others, and returns the number of accounts dropped. The lock must be held.
func (s *stripe) sweep(now time.Time) (dropped int) {
	for i := 0; i < len(s.order); {
		a := s.order[i]
		if a.idle(now) {
			s.drop(a) // moves another account to i
			dropped++
			continue
		}
		kept := a.lanes[:0]
		for _, ln := range a.lanes {
			if ln.inUse > 0 || ln.waiting > 0 {
				kept = append(kept, ln)
			} else {
				delete(s.lanes, laneKey{a.key.id, ln.shard})
			}
		}
		clear(a.lanes[len(kept):])
		a.lanes = kept
		i++
	}
	return dropped
}

// idle reports whether dropping a would lose nothing.
func (a *account) idle(now time.Time) bool { return a.busy == 0 && a.bucket.full(now) }

// drop removes a, which must be idle. The lock must be held.
func (s *stripe) drop(a *account) {
	last := len(s.order) - 1
	s.order[a.pos] = s.order[last]
	s.order[a.pos].pos = a.pos
	s.order[last] = nil
	s.order = s.order[:last]
	delete(s.accounts, a.key)
	for _, ln := range a.lanes {
		delete(s.lanes, laneKey{a.key.id, ln.shard})
	}
	// Go's maps never shrink. Making them anew at an eighth of the peak costs O(1) for each account dropped since.
	if s.peak >= 64 && len(s.order) <= s.peak/8 {
		s.rebuild()
	}
}

// rebuild moves what is left into maps of its size. The lock must be held.
func (s *stripe) rebuild() {
	order := make([]*account, len(s.order))
	copy(order, s.order)
	accounts := make(map[laneKey]*account, len(order))
	lanes := make(map[laneKey]*lane)
	for _, a := range order {
		accounts[a.key] = a
		for _, ln := range a.lanes {
			lanes[laneKey{a.key.id, ln.shard}] = ln
		}
	}
	s.order, s.accounts, s.lanes, s.peak = order, accounts, lanes, len(order)
}

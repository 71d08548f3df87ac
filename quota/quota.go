package quota

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

// stripes is the number of locks that tenants are spread over.
const stripes = 64

// Quota admits the work of tenants. It holds the state of the tenants that are active, starts no goroutine, and needs no Close. Make
// one with [New]. All methods are safe for concurrent use.
type Quota struct {
	cfg     Config
	seed    maphash.Seed
	stripes [stripes]stripe

	overReleases atomic.Uint64
	lateRetains  atomic.Uint64
}

// New returns a Quota with the given defaults. It starts no goroutine. The error joins all problems of cfg, see [Config.Validate].
func New(cfg Config) (*Quota, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q := &Quota{cfg: cfg, seed: maphash.MakeSeed()}
	for i := range q.stripes {
		q.stripes[i].q = q
	}
	return q, nil
}

// Admit lets one statement, or one transaction, of a tenant start on a shard. It returns a permit with one reference, which the caller
// must end with [Permit.Release], or an error; never both and never neither.
//
// First the rate: one token now, or an [*ExceededError] with [LimitRate] at once; debt of [Quota.Charge] must be repaid before. Then
// the permit: a free one at once, else the caller waits in line, first come first served among the callers of that tenant and shard,
// until a permit is handed over, ctx ends or [Config.MaxWait] has passed ([LimitWait]). It is refused at once when the line is full
// ([LimitQueue]) or waiting is off ([LimitConns]). A refused call has taken nothing: its token is given back.
//
// l is the tenant's limits as they are now; a zero field means the service's default, -1 no limit (for MaxQueue: no waiting). A change is
// in force for all its callers from the first call that brings it on: tokens and debt are kept and grow at the new rate, raised permits are
// handed to waiters, lowered ones are reached as permits come back. See also [Quota.SetLimits]. poolMax, if above 0, is the size of
// the shard's pool: the tenant never gets more permits than that. Callers of one shard should agree on it, since the last one counts.
//
// Under a ctx that holds a permit of the same quota, tenant and shard ([WithPermit]) it never waits: without a free permit it returns an
// error wrapping [ErrNestedAcquire] at once. Waiting in a circle over several shards or tenants ends with MaxWait.
//
// When ctx ends, or has ended before, the [*ExceededError] wraps ctx.Err() and context.Cause(ctx) too. Other errors wrap
// [tenant.ErrNoTenant] for an empty id, [ErrNoShard], or [ErrInvalidLimits].
//
// It performs no I/O. Without a wait it takes one lock, shared with one in 64 of the tenants, and allocates the permit alone.
func (q *Quota) Admit(ctx context.Context, id tenant.ID, shard string, l tenant.Limits, poolMax int) (*Permit, error) {
	return q.admit(ctx, q.stripe(string(id)), request{id: id, shard: shard, limits: l, poolMax: poolMax})
}

// AdmitPooled is [Quota.Admit], and after it a place in the line of the pool itself, in which all tenants of the pool stand, first come first served:
// database/sql wakes its own waiters at random, and lets them wait for as long as their ctx lasts. The permit holds both and gives both back.
//
// pool names the line and is no shard's name; size is the number of its places, and [Config.MaxQueue] callers may wait for one. Waiting in it and errors are
// as for [Quota.Admit], with the tenant and shard in them.
func (q *Quota) AdmitPooled(ctx context.Context, id tenant.ID, shard string, l tenant.Limits, poolMax int, pool string, size int) (*Permit, error) {
	line := tenant.Limits{Rate: unlimited, MaxConns: size}
	return q.admitPooled(ctx, request{id: id, shard: shard, limits: l, poolMax: poolMax}, request{shard: pool, limits: line, system: true, second: true})
}

// TryAdmit is [Quota.Admit] for a caller that must not wait, whatever the queue's length: without a free permit it returns an
// [*ExceededError] with [LimitConns] at once.
func (q *Quota) TryAdmit(id tenant.ID, shard string, l tenant.Limits, poolMax int) (*Permit, error) {
	return q.admit(context.Background(), q.stripe(string(id)), request{id: id, shard: shard, limits: l, poolMax: poolMax, try: true})
}

// SystemAdmit admits the library's own work on a shard: relay, leases, refunds. It has no rate and a lane of its own on each shard, with
// max permits and a line of maxQueue, so that no tenant's quota delays or refuses it, and it takes nothing of a tenant's.
//
// max and maxQueue of zero mean the defaults of [Config], -1 means no limit and no waiting. Waiting and errors are as for [Quota.Admit];
// the tenant in them is empty. The pool must have room for max connections beside the tenants' permits.
func (q *Quota) SystemAdmit(ctx context.Context, shard string, max int, maxQueue int) (*Permit, error) {
	l := tenant.Limits{Rate: unlimited, MaxConns: max, MaxQueue: maxQueue}
	return q.admit(ctx, q.stripe(shard), request{shard: shard, limits: l, system: true})
}

// Charge counts n statements inside a transaction of the tenant. It never waits and never fails: tokens that are not there become debt,
// down to [Config.DebtBursts] bursts; what would pass that is dropped and counted in [Stats.DebtDropped]. n below 1 does nothing.
//
// Limits are as for [Quota.Admit]; if they are invalid, the tenant's last valid ones or the service's defaults stand.
func (q *Quota) Charge(id tenant.ID, l tenant.Limits, n int) {
	if n < 1 || id == "" {
		return
	}
	s := q.stripe(string(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.account(laneKey{id: id}, l)
	if err != nil {
		// The zero limits are the service's defaults, which are valid.
		a, _ = s.account(laneKey{id: id}, tenant.Limits{})
	} else if a.limits != l {
		// Invalid limits change nothing.
		_ = s.setLimits(a, l)
	}
	a.used = true
	if a.bucket.limited() {
		s.debtDropped += uint64(a.bucket.charge(time.Now(), n, q.cfg.DebtBursts))
	}
}

// SetLimits puts changed limits of a tenant in force at once, without waiting for its next call to bring them: waiters that raised
// limits have room for are served. For a tenant without state it does nothing. Calls of [Quota.Admit] that still bring the old limits
// change them back. It returns an error wrapping [ErrInvalidLimits] and changes nothing if l is invalid.
func (q *Quota) SetLimits(id tenant.ID, l tenant.Limits) error {
	s := q.stripe(string(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[laneKey{id: id}]; a != nil && a.limits != l {
		return s.setLimits(a, l)
	}
	_, err := q.cfg.resolve(id, l)
	return err
}

// Sweep drops the state of all tenants that hold no permit, wait for none, and whose bucket is full at now, and returns their number.
// Nothing is lost: a dropped tenant starts with a full bucket. now is time.Now() outside tests; a later time would take buckets for full
// that are not.
//
// Calling it is optional. Admissions drop idle tenants as they go, a constant number each, so that memory stays bounded by the tenants
// active of late; Sweep gives back the rest when traffic stops. It takes one lock after the other, each for as long as its
// tenants need, about 1/64 of all.
func (q *Quota) Sweep(now time.Time) int {
	dropped := 0
	for i := range q.stripes {
		s := &q.stripes[i]
		s.mu.Lock()
		dropped += s.sweep(now)
		s.mu.Unlock()
	}
	return dropped
}

// stripe returns the stripe of a tenant or, for the system, of a shard.
func (q *Quota) stripe(name string) *stripe {
	return &q.stripes[maphash.String(q.seed, name)%stripes]
}

package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

// request is one admission on its way.
type request struct {
	id      tenant.ID
	shard   string
	limits  tenant.Limits
	poolMax int
	system  bool // the system lane: no tenant
	try     bool // it never waits
	second  bool // it is counted as granted already, in the tenant's lane
	paid    bool // its token was taken
	waited  bool // in a line
}

// admit decides one request.
func (q *Quota) admit(ctx context.Context, s *stripe, r request) (*Permit, error) {
	ln, err := q.acquire(ctx, s, &r)
	if err != nil {
		return nil, err
	}
	p := newPermit(ln, nil)
	p.waited = r.waited
	return p, nil
}

// admitPooled decides one request, and then another for the line of the pool. What the first has taken is given back when the second is refused.
func (q *Quota) admitPooled(ctx context.Context, r, then request) (*Permit, error) {
	s := q.stripe(string(r.id))
	ln, err := q.acquire(ctx, s, &r)
	if err != nil {
		return nil, err
	}
	pool, err := q.acquire(ctx, q.stripe(then.shard), &then)
	if err == nil {
		p := newPermit(ln, pool)
		p.waited = r.waited || then.waited
		return p, nil
	}
	s.mu.Lock()
	ln.release()
	s.granted--
	if r.paid {
		ln.acct.bucket.put(time.Now(), 1)
	}
	s.mu.Unlock()
	var exceeded *ExceededError
	if errors.As(err, &exceeded) { // the line is nobody's; who was refused is known here
		exceeded.Tenant, exceeded.Shard = r.id, r.shard
	}
	return nil, err
}

// acquire decides one request and returns the lane with a permit counted in it.
func (q *Quota) acquire(ctx context.Context, s *stripe, r *request) (*lane, error) {
	if err := r.check(ctx); err != nil {
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		return nil, err
	}

	s.mu.Lock()
	ln, granted, err := s.grant(r)
	if r.try && !granted && err == nil {
		err = s.refuse(ln, r, LimitConns, ln.lastWait)
	}
	s.mu.Unlock()
	if granted {
		return ln, nil
	}
	if err != nil {
		return nil, err
	}

	// No permit is free. What there is to ask of the ctx is asked without the lock, since a ctx may be anybody's code. Then the lane is
	// asked again, under the same lock that joins the line: a permit that came back in between is seen.
	nested := q.Held(ctx, r.id, r.shard) != nil
	w := newWaiter(ctx, q.cfg.MaxWait)

	s.mu.Lock()
	ln, granted, err = s.grant(r)
	if !granted && err == nil {
		err = s.join(ln, r, w, nested)
	}
	s.mu.Unlock()
	if granted {
		return ln, nil
	}
	if err != nil {
		return nil, err
	}
	r.waited = true
	if err := s.wait(ctx, ln, r, w); err != nil {
		return nil, err
	}
	return ln, nil
}

// check refuses what names no tenant or shard, and a ctx that has ended.
func (r *request) check(ctx context.Context) error {
	if r.id == "" && !r.system {
		return fmt.Errorf("quota: shard %q: %w", r.shard, tenant.ErrNoTenant)
	}
	if r.shard == "" {
		return fmt.Errorf("%w: tenant %q", ErrNoShard, string(r.id))
	}
	if ctx.Err() != nil {
		return &ExceededError{Tenant: r.id, Shard: r.shard, Limit: LimitWait, causes: causes(ctx)}
	}
	return nil
}

// grant takes a token, unless r has paid already, and then a free permit, which it reports. Neither a permit nor an error means that
// none is free. The lock must be held.
func (s *stripe) grant(r *request) (*lane, bool, error) {
	ln, err := s.enter(r.id, r.shard, r.limits, r.poolMax)
	if err != nil {
		s.refused++
		return nil, false, err
	}
	if !r.paid && ln.acct.bucket.limited() {
		ok, retryAfter := ln.acct.bucket.take(time.Now())
		if !ok {
			return nil, false, s.refuse(ln, r, LimitRate, retryAfter)
		}
		r.paid = true
	}
	if !ln.free() {
		return ln, false, nil
	}
	ln.take()
	s.admitted(r)
	return ln, true, nil
}

// join puts w in the lane's line, or refuses it. The lock must be held.
func (s *stripe) join(ln *lane, r *request, w *waiter, nested bool) error {
	queue := ln.acct.bounds.queue
	switch {
	case nested:
		s.undo(ln, r)
		return fmt.Errorf("%w: tenant %q on shard %q: all %d permits are in use", ErrNestedAcquire, string(r.id), r.shard, ln.limit())
	case queue == 0:
		return s.refuse(ln, r, LimitConns, ln.lastWait)
	case ln.waiting >= queue:
		// Waiters whose time is over hold places until they have run. The ones in front make room now.
		ln.purge(w.since)
		if ln.waiting >= queue {
			return s.refuse(ln, r, LimitQueue, ln.lastWait)
		}
	}
	ln.enqueue(w)
	return nil
}

// wait blocks until w was served, its ctx has ended, or [Config.MaxWait] has passed. It is called without the lock.
func (s *stripe) wait(ctx context.Context, ln *lane, r *request, w *waiter) error {
	timer := time.NewTimer(s.q.cfg.MaxWait)
	select {
	case <-w.ready:
	case <-w.done:
	case <-timer.C:
	}
	timer.Stop()
	ended := causes(ctx)

	s.mu.Lock()
	if w.granted && ended == nil {
		s.admitted(r)
		s.mu.Unlock()
		return nil
	}
	if w.granted {
		// Served in the instant in which the ctx ended: the next in line gets it.
		ln.release()
	} else if w.queued {
		ln.dequeue(w)
	}
	err := s.refuse(ln, r, LimitWait, ln.lastWait, ended...)
	s.mu.Unlock()
	return err
}

// admitted counts an admission, once for the call. The lock must be held.
func (s *stripe) admitted(r *request) {
	if !r.second {
		s.granted++
	}
}

// undo counts a refusal and gives the token back, if one was taken. The lock must be held.
func (s *stripe) undo(ln *lane, r *request) {
	s.refused++
	if r.paid {
		ln.acct.bucket.put(time.Now(), 1)
	}
}

// refuse is undo, and the error for the caller. The lock must be held.
func (s *stripe) refuse(ln *lane, r *request, limit Limit, retryAfter time.Duration, causes ...error) error {
	s.undo(ln, r)
	return &ExceededError{
		Tenant: r.id, Shard: r.shard, Limit: limit,
		RetryAfter: retryAfter, Queued: ln.waiting, causes: causes,
	}
}

// causes returns why ctx ended, its own error last, or nil if it has not.
func causes(ctx context.Context) []error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && cause != err {
		return []error{cause, err}
	}
	return []error{err}
}

package quota

import (
	"context"
	"sync/atomic"

	"github.com/tenantdal/tenantdal/tenant"
)

// Permit is the right of a tenant to one connection of one shard. It counts references: it starts with one, which belongs to whoever
// was admitted; the connection, open rows or a transaction add theirs with [Permit.TryRetain], and the last [Permit.Release] gives the
// permit back, once, and hands it to the next waiter.
//
// A Permit is never used again for another admission, so a late or doubled Release cannot hit somebody else's. Its methods are safe
// for concurrent use.
type Permit struct {
	lane *lane
	refs atomic.Int64 // 0 means given back, for ever
}

// newPermit returns a permit with one reference for a slot of ln that is counted already.
func newPermit(ln *lane) *Permit {
	p := &Permit{lane: ln}
	p.refs.Store(1)
	return p
}

// Tenant returns the tenant that holds the permit; empty for a permit of the system lane.
func (p *Permit) Tenant() tenant.ID { return p.lane.acct.key.id }

// Shard returns the shard that the permit is for.
func (p *Permit) Shard() string { return p.lane.shard }

// Retain adds a reference, which one more [Permit.Release] must end. The caller must hold a reference itself. On a permit that was
// given back it does nothing but count in [Stats.LateRetains]; where that may happen, use [Permit.TryRetain] and see.
func (p *Permit) Retain() {
	if !p.TryRetain() {
		p.lane.stripe.q.lateRetains.Add(1)
	}
}

// TryRetain adds a reference and returns true, or returns false if the permit was given back already: then it stands for nothing.
func (p *Permit) TryRetain() bool {
	for {
		n := p.refs.Load()
		if n <= 0 {
			return false
		}
		if p.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends one reference. The last one gives the permit back and hands it to the next live waiter. A Release too many frees
// nothing: it is counted in [Stats.OverReleases]. It never blocks on anything but a short lock.
func (p *Permit) Release() {
	for {
		n := p.refs.Load()
		if n <= 0 {
			p.lane.stripe.q.overReleases.Add(1)
			return
		}
		if p.refs.CompareAndSwap(n, n-1) {
			if n == 1 {
				s := p.lane.stripe
				s.mu.Lock()
				p.lane.release()
				s.mu.Unlock()
			}
			return
		}
	}
}

// permitCtx carries a permit. One struct, so that WithPermit allocates once; outer permits are found through the parent.
type permitCtx struct {
	context.Context
	permit *Permit
}

// permitKey finds the innermost *permitCtx.
type permitKey struct{}

// Value returns the ctx itself for this package's key.
func (c *permitCtx) Value(key any) any {
	if key == (permitKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithPermit returns a ctx that says its caller holds p. An [Quota.Admit] of the same quota, tenant and shard under it never waits, so
// a caller cannot wait for itself. It takes no reference; once p is given back it means nothing. Permits of several tenants or shards
// add up. A nil p returns ctx.
func WithPermit(ctx context.Context, p *Permit) context.Context {
	if p == nil {
		return ctx
	}
	return &permitCtx{Context: ctx, permit: p}
}

// Held returns the innermost permit of this quota, tenant and shard that ctx carries and that was not given back, or nil. It takes no
// reference: before use by somebody else, [Permit.TryRetain] it. An empty id asks for the system lane.
func (q *Quota) Held(ctx context.Context, id tenant.ID, shard string) *Permit {
	for {
		c, ok := ctx.Value(permitKey{}).(*permitCtx)
		if !ok {
			return nil
		}
		p := c.permit
		if p.lane.stripe.q == q && p.lane.acct.key.id == id && p.lane.shard == shard && p.refs.Load() > 0 {
			return p
		}
		ctx = c.Context
	}
}

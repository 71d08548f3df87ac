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
	pool *lane        // of the pool's own line; nil for a permit of one lane
	refs atomic.Int64 // 0 means given back, for ever

	waited bool // fixed
}

// newPermit returns a permit with one reference for slots of ln and pool that are counted already; pool may be nil.
func newPermit(ln, pool *lane) *Permit {
	p := &Permit{lane: ln, pool: pool}
	p.refs.Store(1)
	return p
}

// Tenant returns the tenant that holds the permit; empty for a permit of the system lane.
func (p *Permit) Tenant() tenant.ID { return p.lane.acct.key.id }

// Shard returns the shard that the permit is for.
func (p *Permit) Shard() string { return p.lane.shard }

// Waited reports whether the caller stood in a line before it got the permit: what it knew before may have changed meanwhile.
func (p *Permit) Waited() bool { return p.waited }

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
				if p.pool != nil {
					p.pool.giveBack()
				}
				p.lane.giveBack()
			}
			return
		}
	}
}

// giveBack is [lane.release] under the lock.
func (ln *lane) giveBack() {
	s := ln.stripe
	s.mu.Lock()
	ln.release()
	s.mu.Unlock()
}

// holds reports whether the permit, not given back, is one of this quota's for a tenant and shard, or for the line of a pool.
func (p *Permit) holds(q *Quota, id tenant.ID, shard string) bool {
	for _, ln := range [...]*lane{p.lane, p.pool} {
		if ln != nil && ln.stripe.q == q && ln.acct.key.id == id && ln.shard == shard {
			return p.refs.Load() > 0
		}
	}
	return false
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
		if c.permit.holds(q, id, shard) {
			return c.permit
		}
		ctx = c.Context
	}
}

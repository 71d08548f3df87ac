package quota

import (
	"context"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

// laneKey names a lane: the permits of one tenant on one shard. An empty tenant names the system's lane.
type laneKey struct {
	id    tenant.ID
	shard string
}

// lane counts the permits of one tenant on one shard and keeps its queue. All fields but the first three are guarded by the lock of
// its stripe.
//
// Invariant, whenever that lock is free: a permit is free only if nobody waits. Whatever makes room (a release, a raised limit)
// calls dispatch under the same lock that enqueues, so no wake-up can be lost.
type lane struct {
	stripe *stripe
	acct   *account
	shard  string

	conns   int // the tenant's limit
	poolMax int // the pool's limit as last told; 0 for none
	inUse   int

	head, tail *waiter
	waiting    int

	// lastWait is how long the waiter served last had waited.
	lastWait time.Duration
}

// waiter is one caller in a lane's queue. The links and the two flags are guarded by the lock of the stripe, the rest is fixed.
type waiter struct {
	prev, next *waiter
	queued     bool // in the queue
	granted    bool // counted in inUse; set before ready is closed

	ready    chan struct{}
	done     <-chan struct{} // the caller's ctx; a channel and not the ctx, so that no code of a user's runs under the lock
	since    time.Time
	deadline time.Time // not served from then on: the ctx's or MaxWait's, whichever comes first
}

// newWaiter returns a waiter for ctx. It takes no lock, and must be called without one.
func newWaiter(ctx context.Context, maxWait time.Duration) *waiter {
	now := time.Now()
	w := &waiter{ready: make(chan struct{}), done: ctx.Done(), since: now, deadline: now.Add(maxWait)}
	if d, ok := ctx.Deadline(); ok && d.Before(w.deadline) {
		w.deadline = d
	}
	return w
}

// cancelled reports whether the caller's ctx has ended.
func (w *waiter) cancelled() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// limit returns the number of permits that may be in use now. It is at least 1.
func (ln *lane) limit() int {
	if ln.poolMax > 0 {
		return min(ln.conns, ln.poolMax)
	}
	return ln.conns
}

// free reports whether a permit can be taken at once.
func (ln *lane) free() bool { return ln.inUse < ln.limit() }

// take counts one permit as in use.
func (ln *lane) take() {
	ln.inUse++
	ln.stripe.count(ln).inUse++
	ln.acct.busy++
}

// release gives one permit back and hands it to the next live waiter.
func (ln *lane) release() {
	ln.inUse--
	ln.stripe.count(ln).inUse--
	ln.acct.busy--
	ln.dispatch()
}

// dispatch serves waiters, first come first served, while permits are free. Waiters whose time is over are taken out unserved, each
// once; they notice by themselves.
func (ln *lane) dispatch() {
	if ln.head == nil || !ln.free() {
		return
	}
	now := time.Now()
	for ln.free() && ln.purge(now) {
		w := ln.head
		ln.dequeue(w)
		ln.take()
		ln.lastWait = now.Sub(w.since)
		w.granted = true
		close(w.ready)
	}
}

// purge takes waiters whose time is over from the front of the queue, and reports whether a live one is at the front now.
func (ln *lane) purge(now time.Time) bool {
	for ln.head != nil {
		if now.Before(ln.head.deadline) && !ln.head.cancelled() {
			return true
		}
		ln.dequeue(ln.head)
	}
	return false
}

// enqueue puts w at the end of the queue.
func (ln *lane) enqueue(w *waiter) {
	w.queued = true
	w.prev = ln.tail
	if ln.tail == nil {
		ln.head = w
	} else {
		ln.tail.next = w
	}
	ln.tail = w
	ln.waiting++
	ln.stripe.count(ln).waiting++
	ln.acct.busy++
}

// dequeue takes w out of the queue, wherever it stands.
func (ln *lane) dequeue(w *waiter) {
	if w.prev == nil {
		ln.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		ln.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	ln.waiting--
	ln.stripe.count(ln).waiting--
	ln.acct.busy--
}

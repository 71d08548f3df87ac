package dal

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// ownIdle is how long the place of one tenant stays open while nobody uses it. Its connections are closed after a minute; this gives back the rest.
const ownIdle = 10 * time.Minute

// PlaceStats counts the places that belong to one tenant each: schemas and databases of their own. Shared places are always open and not counted.
type PlaceStats struct {
	Max     int    // how many may be open at a time, see [Config.MaxOwnPlaces]
	Open    int    // open now, those that are being opened or closed included
	InUse   int    // of these, the ones with a statement, open rows or a transaction under way
	Waiting int    // places that wait until another one can be closed
	Opened  uint64 // how often one was opened and found fit
	Failed  uint64 // how often one could not be opened, or was not fit
	Evicted uint64 // closed to make room, or since its tenant was drained
	Reaped  uint64 // closed since nobody had used it for ten minutes
	Refused uint64 // calls that ended with [ErrPlacesBusy]
}

// ownPlaces is the pool of pools: it opens the places of single tenants when they are used and keeps at most max of them open. When one more is
// wanted, the one that was not used for longest is closed; one in use never is. Who finds all of them in use waits in line, first come first served, not
// longer than maxWait, and in no longer a line than max places. It runs nothing in the background but openings, which the store's Close awaits.
type ownPlaces struct {
	store   *Store
	max     int
	maxWait time.Duration

	mu     sync.Mutex // guards all below. No I/O under it.
	seats  map[Place]*seat
	slots  int       // seats that are opening, open or closing: never more than max
	idle   list.List // of *seat: open with no holder, the one used last in front
	line   list.List // of *seat: in want of a slot, the one that came first in front
	closed bool
	stats  PlaceStats
	gone   wire.Stats // what closed places have sent
}

// seat is one tenant's place from the moment it is wanted until it is closed.
//
//	in line -> opening -> open <-> idle -> closed
//	                      failed
type seat struct {
	of    *ownPlaces
	place Place
	owner tenant.ID
	ready chan struct{} // closed when db or err is set

	// holders counts whoever keeps the place open. From 0 and to 0 it goes under the lock, and the seat leaves or enters the idle list with it.
	holders atomic.Int64

	elem *list.Element // in the line or in the idle list; guarded by the lock
	used time.Time     // when the last holder went; guarded by the lock

	db  *database // fixed once ready
	err error     // fixed once ready
}

func newOwnPlaces(s *Store) *ownPlaces {
	return &ownPlaces{store: s, max: s.cfg.MaxOwnPlaces, maxWait: s.cfg.Quota.MaxWait, seats: map[Place]*seat{}}
}

// hold opens the place if it is not, and keeps it open until the seat is released.
//
// It returns [*PlacesBusyError], [ErrClosed], what is wrong with the place, and the cause of ctx's end.
func (o *ownPlaces) hold(ctx context.Context, p Place, owner tenant.ID) (*seat, error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, ErrClosed
	}
	s := o.seats[p]
	switch {
	case s != nil:
		if s.holders.Add(1) == 1 {
			o.take(s)
		}
	case o.line.Len() >= o.max:
		o.stats.Refused++
		o.mu.Unlock()
		return nil, &PlacesBusyError{Place: p, Max: o.max}
	default:
		s = &seat{of: o, place: p, owner: owner, ready: make(chan struct{})}
		s.holders.Store(1)
		o.seats[p] = s
		s.elem = o.line.PushBack(s)
		o.dispatch()
	}
	stale := o.stale(time.Now())
	o.mu.Unlock()
	for _, victim := range stale {
		o.shut(victim)
	}
	if err := o.await(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// await waits until the seat is open. Beside an error the caller holds nothing.
func (o *ownPlaces) await(ctx context.Context, s *seat) error {
	select {
	case <-s.ready:
		return s.err // a seat that failed has no holders
	default:
	}
	timer := time.NewTimer(o.maxWait)
	defer timer.Stop()
	for {
		select {
		case <-s.ready:
			return s.err
		case <-ctx.Done():
			s.release()
			return fmt.Errorf("dal: open place %s: %w", s.place, context.Cause(ctx))
		case <-timer.C: // an opening that has begun has a limit of its own
			if o.leave(s) {
				return &PlacesBusyError{Place: s.place, Max: o.max, Waited: o.maxWait}
			}
		}
	}
}

// leave takes one holder out of the line, and reports false when the seat is in line no longer.
func (o *ownPlaces) leave(s *seat) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !s.queued() {
		return false
	}
	o.stats.Refused++
	o.drop(s)
	return true
}

// queued reports a seat in line. The lock must be held.
func (s *seat) queued() bool { return s.elem != nil && s.holders.Load() > 0 }

// take takes a seat out of the idle list. The lock must be held.
func (o *ownPlaces) take(s *seat) {
	o.idle.Remove(s.elem)
	s.elem = nil
}

// drop ends one hold. The lock must be held.
func (o *ownPlaces) drop(s *seat) {
	inLine := s.queued()
	switch {
	case s.holders.Add(-1) > 0:
	case inLine:
		o.line.Remove(s.elem)
		s.elem = nil
		delete(o.seats, s.place)
	case o.seats[s.place] == s:
		s.used = time.Now()
		s.elem = o.idle.PushFront(s)
		o.dispatch()
	}
}

// dispatch gives slots to the seats in line, for as long as there is a free slot or an idle seat to close. The lock must be held.
func (o *ownPlaces) dispatch() {
	for o.line.Len() > 0 && (o.slots < o.max || o.idle.Len() > 0) {
		s := o.line.Remove(o.line.Front()).(*seat)
		s.elem = nil
		if !o.store.begin() { // Close is under way
			o.end(s, ErrClosed)
			continue
		}
		var victim *seat
		if o.slots < o.max {
			o.slots++
		} else {
			victim = o.oldest()
			o.stats.Evicted++
		}
		s.holders.Add(1) // the opening's own, so that a caller who leaves does not make a half-open place idle
		go o.open(s, victim)
	}
}

// oldest takes the idle seat that was not used for longest out of everything but the count of slots. The lock must be held.
func (o *ownPlaces) oldest() *seat {
	s := o.idle.Remove(o.idle.Back()).(*seat)
	s.elem = nil
	delete(o.seats, s.place)
	return s
}

// stale takes out seats that nobody used for long, few at a time so that no call pays for all. The lock must be held.
func (o *ownPlaces) stale(now time.Time) []*seat {
	var out []*seat
	for len(out) < 2 && o.idle.Len() > 0 && now.Sub(o.idle.Back().Value.(*seat).used) > ownIdle {
		out = append(out, o.oldest())
		o.stats.Reaped++
	}
	return out
}

// evict closes a place that is open and that nobody uses.
func (o *ownPlaces) evict(p Place) {
	o.mu.Lock()
	s := o.seats[p]
	if s == nil || s.elem == nil || s.queued() {
		o.mu.Unlock()
		return
	}
	o.take(s)
	delete(o.seats, p)
	o.stats.Evicted++
	o.mu.Unlock()
	o.shut(s)
}

// shut closes a seat that was taken out, and gives its slot back.
func (o *ownPlaces) shut(victim *seat) {
	o.closeDatabase(victim)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots--
	o.dispatch()
}

func (o *ownPlaces) closeDatabase(victim *seat) {
	sent := victim.db.stats()
	if err := victim.db.close(); err != nil {
		o.store.log.LogAttrs(context.Background(), slog.LevelWarn, "place not closed cleanly", slog.String("shard", victim.place.String()), slog.Any("err", err))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = o.gone.Add(sent)
}

// open closes the victim, if there is one, and opens the seat in its slot.
func (o *ownPlaces) open(s, victim *seat) {
	defer o.store.openers.Done()
	if victim != nil {
		o.closeDatabase(victim)
	}
	ctx, cancel := context.WithTimeout(o.store.life, openLimit)
	defer cancel()
	db, err := o.store.fit(ctx, s.place, s.owner)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil && o.closed {
		err = errors.Join(ErrClosed, db.close())
	}
	if err != nil {
		o.slots--
		o.stats.Failed++
		o.end(s, err)
		o.dispatch()
		return
	}
	db.seat = s
	s.db = db
	o.stats.Opened++
	close(s.ready)
	o.drop(s)
}

// end fails a seat: whoever waits for it gets err, and the next call begins anew. The lock must be held.
func (o *ownPlaces) end(s *seat, err error) {
	delete(o.seats, s.place)
	s.err = err
	close(s.ready)
}

// release ends a hold. The last one lets the place be closed when its slot is wanted.
func (s *seat) release() {
	for {
		n := s.holders.Load()
		if n <= 1 {
			break
		}
		if s.holders.CompareAndSwap(n, n-1) {
			return
		}
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.drop(s)
}

// close refuses what is new or in line, and closes every place that is open. The store has awaited the openings and what was under way; what is left is
// closed under its holders.
func (o *ownPlaces) close() error {
	o.mu.Lock()
	o.closed = true
	for o.line.Len() > 0 {
		s := o.line.Remove(o.line.Front()).(*seat)
		s.elem = nil
		o.end(s, ErrClosed)
	}
	open := make([]*seat, 0, len(o.seats))
	for _, s := range o.seats {
		open = append(open, s)
	}
	clear(o.seats)
	o.idle.Init()
	o.slots -= len(open)
	o.mu.Unlock()
	var errs []error
	for _, s := range open {
		errs = append(errs, s.db.close())
	}
	return errors.Join(errs...)
}

// snapshot returns the counters.
func (o *ownPlaces) snapshot() PlaceStats {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.stats
	st.Max, st.Open, st.Waiting = o.max, o.slots, o.line.Len()
	st.InUse = len(o.seats) - o.line.Len() - o.idle.Len()
	return st
}

// sent returns what all places of single tenants have sent, the closed ones included.
func (o *ownPlaces) sent() wire.Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	sum := o.gone
	for _, s := range o.seats {
		if s.db != nil {
			sum = sum.Add(s.db.stats())
		}
	}
	return sum
}

// all returns the databases that are open.
func (o *ownPlaces) all() []*database {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []*database
	for _, s := range o.seats {
		if s.db != nil {
			list = append(list, s.db)
		}
	}
	return list
}

// find returns the place's database if it is open, without holding it.
func (o *ownPlaces) find(p Place) *database {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.seats[p]; s != nil {
		return s.db
	}
	return nil
}

// OwnPlaces returns the counters of the places that belong to one tenant each.
func (s *Store) OwnPlaces() PlaceStats { return s.own.snapshot() }

// use returns the database that serves db's place now. A shared place is db itself; one tenant's own place may have been closed since db was looked up, is
// opened again then, and stays open until the seat is released.
func (db *database) use(ctx context.Context) (*database, *seat, error) {
	if db.seat == nil {
		return db, nil, nil
	}
	s, err := db.store.own.hold(ctx, db.place, db.seat.owner)
	if err != nil {
		return nil, nil, err
	}
	return s.db, s, nil
}

// enter admits a statement or transaction: the returned permit keeps the returned database open.
func (db *database) enter(ctx context.Context, admit func(context.Context, *database) (wire.Permit, error)) (*database, wire.Permit, error) {
	now, s, err := db.use(ctx)
	if err != nil {
		return nil, nil, err
	}
	permit, err := admit(ctx, now)
	switch {
	case s == nil:
		return now, permit, err
	case err != nil:
		s.release()
		return nil, nil, err
	}
	h := &heldPermit{inner: permit, seat: s}
	h.refs.Store(1)
	return now, h, nil
}

// heldPermit is a permit whose last reference lets go of the place too: the place is open for as long as a connection, open rows or a transaction use it.
type heldPermit struct {
	inner wire.Permit
	seat  *seat
	refs  atomic.Int64
}

var _ wire.Permit = (*heldPermit)(nil)

// Retain adds a reference.
func (h *heldPermit) Retain() {
	h.refs.Add(1)
	h.inner.Retain()
}

// Release drops a reference. One too many frees nothing of the place.
func (h *heldPermit) Release() {
	h.inner.Release()
	if h.refs.Add(-1) == 0 {
		h.seat.release()
	}
}

package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// relay carries donations from journal to decision and back. Work exists as goroutines only while there is some; between polls a place is a timer.
//
// A job is in exactly one of: the target's queue, a worker's hands, the source's queue. flying holds it all the way, from before its journal row is
// written, so that a poll does not claim what this process is doing already.
type relay struct {
	d *Donations

	mu      sync.Mutex
	state   relayState          // guarded by mu, as all below
	ctx     context.Context     // of all work; cancelled with ErrClosed
	cancel  func(cause error)   // set by start
	sites   map[dal.Place]*site // made on first use
	flying  map[flight]struct{} // jobs handed over or claimed and not finished
	tasks   int                 // goroutines of this relay
	waiting []waiter
	places  *time.Timer // reads the list of places again
}

// waiter waits until no task runs and, unless it is in a hurry, nothing flies.
type waiter struct {
	done  chan struct{}
	hurry bool
}

type relayState uint8

const (
	relayNew relayState = iota
	relayRunning
	relayClosed // drains, or is done
)

// flight names a job in process.
type flight struct {
	tenant tenant.ID
	id     ID
}

// site is one place as target and as source. The relay's lock guards it.
type site struct {
	place   dal.Place
	apply   fairQueue[*job]
	end     fairQueue[decided]
	applies int // workers on apply
	ends    int // workers on end

	timer   *time.Timer
	pause   time.Duration // before the next poll
	next    time.Time     // when the timer ends
	polling bool
	failing bool // the last poll failed
	gone    bool // the place is no more
}

func newRelay(d *Donations) *relay {
	return &relay{d: d, sites: map[dal.Place]*site{}, flying: map[flight]struct{}{}}
}

func (r *relay) closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == relayClosed
}

func (r *relay) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == relayRunning
}

// start lists the places and sets their timers.
func (r *relay) start(ctx context.Context) error {
	switch {
	case r.closed():
		return ErrClosed
	case r.running():
		return ErrStarted
	}
	places, err := r.d.store.Places(system(ctx, "start the relay"))
	if err != nil {
		return fmt.Errorf("saga: start: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.state {
	case relayClosed:
		return ErrClosed
	case relayRunning:
		return ErrStarted
	}
	r.state = relayRunning
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r.ctx, r.cancel = system(work, "carry donations on"), cancel
	for _, p := range places {
		r.site(p)
	}
	r.places = time.AfterFunc(r.d.cfg.PlacesEvery, r.relist)
	return nil
}

// close drains until ctx ends.
func (r *relay) close(ctx context.Context) error {
	r.mu.Lock()
	if r.state == relayNew {
		r.cancel = func(error) {}
	}
	r.state = relayClosed
	if r.places != nil {
		r.places.Stop()
	}
	for _, s := range r.sites {
		if s.timer != nil {
			s.timer.Stop()
		}
	}
	cancel := r.cancel
	drained := r.idle(false)
	r.mu.Unlock()

	select {
	case <-drained:
		cancel(ErrClosed)
		return nil
	default:
	}
	select {
	case <-drained:
		cancel(ErrClosed)
		return nil
	case <-ctx.Done():
	}
	cancel(ErrClosed)
	r.mu.Lock()
	left := len(r.flying)
	stopped := r.idle(true) // a donor in its own transaction has its own ctx
	r.mu.Unlock()
	<-stopped
	if cause := context.Cause(ctx); left > 0 && !errors.Is(cause, ErrClosed) {
		return fmt.Errorf("saga: close: %d donations are left to the next start: %w", left, cause)
	}
	return nil
}

// idle returns a channel that is closed when no task runs and, unless in a hurry, nothing flies. Call it with mu held.
func (r *relay) idle(hurry bool) <-chan struct{} {
	w := waiter{make(chan struct{}), hurry}
	r.waiting = append(r.waiting, w)
	r.settleDown()
	return w.done
}

// settleDown tells those who wait, when it is so. Call it with mu held.
func (r *relay) settleDown() {
	if r.tasks > 0 || len(r.waiting) == 0 {
		return
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(w waiter) bool {
		done := w.hurry || len(r.flying) == 0
		if done {
			close(w.done)
		}
		return done
	})
}

// flush waits until nothing that was handed over is under way.
func (r *relay) flush(ctx context.Context) error {
	r.mu.Lock()
	idle := r.idle(false)
	r.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// spawn runs f as a goroutine that close waits for. Call it with mu held.
func (r *relay) spawn(f func()) {
	r.tasks++
	go func() {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.tasks--
			r.settleDown()
		}()
		f()
	}()
}

// site returns a place's site and starts its polls when the relay runs. Call it with mu held.
func (r *relay) site(p dal.Place) *site {
	s := r.sites[p]
	if s == nil {
		s = &site{place: p}
		r.sites[p] = s
	}
	if s.timer == nil && r.state == relayRunning {
		s.pause = r.d.cfg.PollMin
		// The first polls of many places are spread out.
		r.pollIn(s, rand.N(s.pause))
	}
	return s
}

// reserve notes that this process is about to start the job's donation, and reports whether it is the only one at it. The job is an attempt from the
// beginning when the relay runs.
func (r *relay) reserve(j *job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != relayRunning {
		return false
	}
	j.attempts = 1
	if _, twice := r.flying[j.flight()]; twice {
		return false
	}
	r.flying[j.flight()] = struct{}{}
	return true
}

// release ends a reservation: with the donation in its target's queue if it was started, or with nothing.
func (r *relay) release(j *job, started bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if started && r.state == relayRunning {
		r.enqueue(j)
		return
	}
	r.land(j)
}

// land notes that this process is done with a job. Call it with mu held.
func (r *relay) land(j *job) {
	delete(r.flying, j.flight())
	r.settleDown()
}

// claimed queues a job that a poll claimed. One that this process began to work on meanwhile is made due again, or its lease would keep everybody else
// waiting for nothing. Call it with mu held.
func (r *relay) claimed(j *job) {
	if _, twice := r.flying[j.flight()]; twice {
		r.sendBack(decided{job: j, verdict: verdict{err: errTwice}})
		return
	}
	r.flying[j.flight()] = struct{}{}
	r.enqueue(j)
}

// enqueue puts a flying job into its target's queue. One that the queue drops goes back to its source, to be found by a poll. Call it with mu held.
func (r *relay) enqueue(j *job) {
	s := r.site(j.target)
	if dropped, full := s.apply.push(j.tenant, j, r.d.cfg.QueueSize); full {
		r.drop(dropped)
	}
	if s.applies < r.d.cfg.Workers && s.apply.size > 0 {
		s.applies++
		r.spawn(func() { r.applyAll(s) })
	}
}

// drop lets go of a job for which there is no room. One that was handed over becomes due by itself; a claimed one is made due again. Call it with mu
// held.
func (r *relay) drop(j *job) {
	if j.fence == 0 {
		r.land(j)
		r.pollSoon(r.site(j.source), r.d.cfg.Handover)
		return
	}
	r.sendBack(decided{job: j, verdict: verdict{err: errNoRoom}})
}

// Why a claimed donation is postponed.
var (
	errNoRoom = errors.New("saga: the queue of the guild's place is full")
	errTwice  = errors.New("saga: this process works on the donation already")
)

// sendBack puts a decided job into its source's queue, which has no limit of its own: it holds what was in flight anyway. Call it with mu held.
func (r *relay) sendBack(dj decided) {
	s := r.site(dj.job.source)
	s.end.push(dj.job.tenant, dj, 0)
	if s.ends < r.d.cfg.Workers {
		s.ends++
		r.spawn(func() { r.endAll(s) })
	}
}

// applyAll is a worker: it decides jobs of one target until there are none.
func (r *relay) applyAll(s *site) {
	for {
		r.mu.Lock()
		jobs := s.apply.take(r.d.cfg.Batch)
		if len(jobs) == 0 {
			s.applies--
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()

		verdicts := r.d.decide(r.ctx, s.place, jobs)

		r.mu.Lock()
		for i, j := range jobs {
			r.sendBack(decided{j, verdicts[i]})
		}
		r.mu.Unlock()
	}
}

// endBatch is the largest number of decided jobs that a worker takes at a time: a few full lists.
const endBatch = 4 * maxList

// endAll is a worker: it ends decided jobs of one source until there are none.
func (r *relay) endAll(s *site) {
	for {
		r.mu.Lock()
		done := s.end.take(endBatch)
		if len(done) == 0 {
			s.ends--
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()

		t, err := tally{}, context.Cause(r.ctx)
		if err == nil { // a cancelled relay leaves the rest to the next start
			if t, err = r.d.finish(r.ctx, s.place, done); err != nil {
				r.d.log.LogAttrs(r.ctx, slog.LevelWarn, "donations not ended, a poll will find them", slog.String("shard", s.place.String()), slog.Any("err", err))
			}
		}

		r.mu.Lock()
		for _, dj := range done {
			r.land(dj.job)
		}
		if t.postponed > 0 {
			r.pollSoon(s, r.d.cfg.RetryMin)
		}
		r.mu.Unlock()
	}
}

package board

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Refresher refreshes a board at an interval, and its cached counts once [Board.RankApprox] has been called on it: a background loop from Start to Close. It is safe for concurrent use.
type Refresher struct {
	refresh func(context.Context) error
	check   func(context.Context) error
	every   time.Duration
	done    chan struct{} // closed when the loop has ended; nil before Start

	mu     sync.Mutex
	closed bool
	cancel context.CancelFunc
	err    error
}

// NewRefresher returns a refresher that is not started. The interval runs from the start of one refresh to the next; a refresh that takes longer delays
// the next one.
//
// It returns [*ConfigError] for an interval that is not positive.
func NewRefresher(b *Board, every time.Duration) (*Refresher, error) {
	if every <= 0 {
		return nil, &ConfigError{Board: b.cfg.Name, Problem: fmt.Sprintf("a refresh interval of %v, want more than 0", every)}
	}
	refresh := func(ctx context.Context) error {
		err := b.Refresh(ctx)
		if b.segments.inUse() {
			err = errors.Join(err, b.CountSegments(ctx))
		}
		return err
	}
	return &Refresher{refresh: refresh, check: b.checkTenant, every: every}, nil
}

// Start refreshes at once and then at the interval, in a goroutine that ends with Close or with ctx, whose tenant it works for.
//
// It returns [*TenantError] and [ErrStarted].
func (r *Refresher) Start(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.done != nil {
		return ErrStarted
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.done = make(chan struct{})
	go r.loop(ctx, r.done)
	return nil
}

func (r *Refresher) loop(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := r.refresh(ctx)
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// Err returns the error of the last refresh that ended: nil after one that succeeded, and before the first. The board that was stored before a refresh
// failed stays, and its age grows.
func (r *Refresher) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close stops the loop, cancels a refresh that is under way, and waits for its end, at most until ctx ends; then it returns the context's error. It may
// be called again, and without Start.
func (r *Refresher) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	cancel, done := r.cancel, r.done
	r.mu.Unlock()
	if done == nil {
		return nil
	}
	cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

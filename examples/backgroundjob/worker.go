package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// maxAttempts is how often a job is tried whose failures are of the kind that passes.
const maxAttempts = 3

// errNoHandler reports a job of a kind that nobody handles.
var errNoHandler = errors.New("no handler for jobs of this kind")

// Handler runs one job. ctx is bound to the job's tenant.
type Handler func(ctx context.Context, payload []byte) error

// DeadLetter is a job that was given up, kept for a person to look at.
type DeadLetter struct {
	Body   []byte
	Reason string // "no tenant", "unreadable", "unknown kind" or "failed"
	Err    error
}

// Worker runs jobs of all tenants, one after the other. One goroutine uses it.
type Worker struct {
	log      *slog.Logger
	handlers map[string]Handler
	dead     []DeadLetter
}

// NewWorker returns a worker with a handler for each kind of job.
func NewWorker(log *slog.Logger, handlers map[string]Handler) *Worker {
	return &Worker{log: log, handlers: handlers}
}

// Drain runs jobs until the queue is empty or ctx ends, and returns ctx's error then. A job that fails stops nobody else's.
func (w *Worker) Drain(ctx context.Context, q *Queue) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, ok := q.Pop()
		if !ok {
			return nil
		}
		if again := w.run(ctx, m); again >= 0 {
			m.Attempts++
			q.put(m)
			pause(ctx, again)
		}
	}
}

// run runs one job. It returns how long to wait before it is tried again, or -1 when it is over, one way or the other.
func (w *Worker) run(ctx context.Context, m Message) time.Duration {
	env, err := tenant.DecodeEnvelope(m.Body)
	// From here on ctx is of exactly this job's tenant. A job without one has none, even if the worker's own context had: nothing below can run, or log,
	// as the tenant of a job before.
	ctx, missing := env.Context(ctx)
	switch {
	case errors.Is(err, tenant.ErrNoTenant):
		return w.bury(ctx, m, "no tenant", err)
	case err != nil:
		return w.bury(ctx, m, "unreadable", err)
	case missing != nil:
		return w.bury(ctx, m, "no tenant", missing)
	}
	handle, ok := w.handlers[env.Kind()]
	if !ok {
		return w.bury(ctx, m, "unknown kind", errNoHandler)
	}
	err = handle(ctx, env.Payload())
	switch {
	case err == nil:
		return -1
	case passes(err) && m.Attempts+1 < maxAttempts:
		wait := retryAfter(err)
		w.log.WarnContext(ctx, "job tried again", "kind", env.Kind(), "after", wait, "err", err)
		return wait
	}
	return w.bury(ctx, m, "failed", err)
}

// bury puts a job to the dead letters.
func (w *Worker) bury(ctx context.Context, m Message, reason string, err error) time.Duration {
	w.log.ErrorContext(ctx, "job refused", "reason", reason)
	w.dead = append(w.dead, DeadLetter{Body: m.Body, Reason: reason, Err: err})
	return -1
}

// Dead returns the jobs that were given up, in the order in which they were.
func (w *Worker) Dead() []DeadLetter { return slices.Clone(w.dead) }

// passes reports a failure after which the same job may succeed, with nothing of it kept.
func passes(err error) bool { return dal.IsRetryable(err) || dal.IsQuota(err) }

// retryAfter is what the quota says about the time to come back, or nothing.
func retryAfter(err error) time.Duration {
	var exceeded *quota.ExceededError
	if errors.As(err, &exceeded) {
		return exceeded.RetryAfter
	}
	return 0
}

// pause waits, or returns when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

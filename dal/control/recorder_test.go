package control_test

import (
	"context"
	"sync"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// recorder keeps every operation of a pool, and breaks those that its hook wants broken.
type recorder struct {
	before func(e wire.Event) error // may be nil

	mu     sync.Mutex // guards events
	events []wire.Event
}

func (r *recorder) Before(_ context.Context, e wire.Event) error {
	r.mu.Lock()
	r.events = append(r.events, e)
	r.mu.Unlock()
	if r.before != nil {
		return r.before(e)
	}
	return nil
}

func (r *recorder) After(context.Context, wire.Event, error) {}

func (r *recorder) all() []wire.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]wire.Event(nil), r.events...)
}

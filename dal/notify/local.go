package notify

import (
	"bytes"
	"context"
	"sync"
)

// localQueue is how many notices wait for one subscription before the next one is lost.
const localQueue = 256

// Local is a [Notifier] within one process: for tests, for a service of one process, and between the parts of one. Its zero value is not usable; make it
// with [NewLocal]. Each subscription has a goroutine of its own, which ends with its stop.
type Local struct {
	mu   sync.Mutex // guards subs and the queues; no callback runs under it
	subs map[string]map[*localSub]struct{}
}

var _ Notifier = (*Local)(nil)

// NewLocal returns a Notifier without subscriptions.
func NewLocal() *Local { return &Local{subs: map[string]map[*localSub]struct{}{}} }

// localSub is one subscription.
type localSub struct {
	queue chan Notice
	lost  bool // guarded by Local.mu: a notice did not fit into the queue
	quit  chan struct{}
	done  chan struct{}
}

// Publish is [Notifier.Publish]. It fails for bad arguments and an ended ctx alone.
func (l *Local) Publish(ctx context.Context, topic string, payload []byte) error {
	if err := Check(topic, payload); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.subs[topic] {
		select {
		case s.queue <- Notice{Payload: bytes.Clone(payload)}:
		default:
			s.lost = true
		}
	}
	return nil
}

// Subscribe is [Notifier.Subscribe].
func (l *Local) Subscribe(ctx context.Context, topic string, fn func(Notice)) (stop func(), err error) {
	if err := Check(topic, nil); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := &localSub{queue: make(chan Notice, localQueue), quit: make(chan struct{}), done: make(chan struct{})}
	l.mu.Lock()
	if l.subs[topic] == nil {
		l.subs[topic] = map[*localSub]struct{}{}
	}
	l.subs[topic][s] = struct{}{}
	l.mu.Unlock()
	go l.deliver(s, fn)
	end := sync.OnceFunc(func() {
		l.mu.Lock()
		delete(l.subs[topic], s)
		if len(l.subs[topic]) == 0 {
			delete(l.subs, topic)
		}
		l.mu.Unlock()
		close(s.quit)
	})
	return func() {
		end()
		<-s.done
	}, nil
}

// deliver calls fn for what is queued. That notices were lost is told once the queue is empty: they came after those that waited in it.
func (l *Local) deliver(s *localSub, fn func(Notice)) {
	defer close(s.done)
	for {
		select {
		case <-s.quit:
			return
		case n := <-s.queue:
			select {
			case <-s.quit: // what still waits is not delivered after stop
				return
			default:
			}
			fn(n)
		}
		l.mu.Lock()
		tell := s.lost && len(s.queue) == 0
		if tell {
			s.lost = false
		}
		l.mu.Unlock()
		if tell {
			fn(Notice{Lost: true})
		}
	}
}

package redisnotify

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tenantdal/tenantdal/dal/notify"
)

// Notifier is a [notify.Notifier] over Redis. It is safe for concurrent use. Make it with [New].
//
// All subscriptions share one connection, which two goroutines serve while there are subscriptions; each subscription has one more. A connection that
// breaks is made anew, with pauses of up to five seconds in between.
type Notifier struct {
	cfg  Config
	life context.Context // ends with Close
	end  context.CancelCauseFunc

	changed chan struct{}  // holds one when topics or their subscriptions have come or gone
	work    sync.WaitGroup // of all goroutines; added to under mu, while not closed

	mu     sync.Mutex // guards what is below and the state of each subscription; no callback and no I/O under it
	closed bool
	kept   bool        // a goroutine keeps the connection
	conn   *connection // whose messages count; nil between two
	topics map[string]*topic
}

var _ notify.Notifier = (*Notifier)(nil)

// topic is a channel of the server without its prefix. It is kept until the server was told that nobody listens any more.
type topic struct {
	confirmed bool // by the server, on the present connection
	subs      map[*subscription]struct{}
}

// New returns a Notifier over cfg.Client. It does no I/O and starts nothing. It returns the errors of [Config.Validate].
func New(cfg Config) (*Notifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Notifier{cfg: cfg.WithDefaults(), changed: make(chan struct{}, 1), topics: map[string]*topic{}}
	n.life, n.end = context.WithCancelCause(context.Background())
	return n, nil
}

// publication is a PUBLISH that is sent once: when the answer is lost, the notice may have been delivered.
type publication struct{ *redis.IntCmd }

// NoRetry tells the client not to send the command again.
func (publication) NoRetry() bool { return true }

// Publish is [notify.Notifier.Publish]. It is one round trip. The notice is sent at most once, so an error does not mean that nobody received it.
//
// It returns [notify.ErrClosed] after Close.
func (n *Notifier) Publish(ctx context.Context, topic string, payload []byte) error {
	if err := notify.Check(topic, payload); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n.life.Err() != nil {
		return notify.ErrClosed
	}
	err := n.cfg.Client.Process(ctx, publication{redis.NewIntCmd(ctx, "publish", n.cfg.Prefix+topic, payload)})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("redisnotify: publish on %q: %w", topic, err)
}

// Subscribe is [notify.Notifier.Subscribe]. It returns when the server has confirmed the subscription, which then lasts over broken connections; while the
// server cannot be reached there are no new ones.
//
// It returns [notify.ErrClosed] after Close, and [ErrSilent].
func (n *Notifier) Subscribe(ctx context.Context, topic string, fn func(notify.Notice)) (stop func(), err error) {
	if err := notify.Check(topic, nil); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := newSubscription(n.cfg.Queue)
	if err := n.add(topic, s); err != nil {
		return nil, err
	}
	select {
	case err = <-s.ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-n.life.Done():
		err = notify.ErrClosed
	}
	if err == nil {
		err = n.start(s, fn)
	}
	if err != nil {
		n.remove(topic, s)
		return nil, fmt.Errorf("redisnotify: subscribe to %q: %w", topic, err)
	}
	end := sync.OnceFunc(func() {
		n.remove(topic, s)
		close(s.quit)
	})
	return func() {
		end()
		<-s.done
	}, nil
}

// Close ends all subscriptions and the connection, and waits for callbacks that run, until ctx ends. What still waits in queues is not delivered. It is safe
// to call twice and without subscriptions, but not from a callback. The client stays open.
func (n *Notifier) Close(ctx context.Context) error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.end(notify.ErrClosed)
	ended := make(chan struct{})
	go func() { // ends with the last callback
		n.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redisnotify: close: callbacks or the connection are under way: %w", context.Cause(ctx))
	}
}

// add makes a subscription wait for its confirmation, and sees to a connection.
func (n *Notifier) add(name string, s *subscription) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return notify.ErrClosed
	}
	t := n.topics[name]
	if t == nil {
		t = &topic{subs: map[*subscription]struct{}{}}
		n.topics[name] = t
	}
	t.subs[s] = struct{}{}
	if t.confirmed {
		s.confirm()
		return nil
	}
	if !n.kept {
		n.kept = true
		n.work.Go(n.keep)
	}
	n.tellChanged()
	return nil
}

// start begins to call fn.
func (n *Notifier) start(s *subscription, fn func(notify.Notice)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return notify.ErrClosed
	}
	n.work.Go(func() { n.deliver(s, fn) })
	return nil
}

// remove forgets a subscription.
func (n *Notifier) remove(name string, s *subscription) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.topics[name]
	if t == nil {
		return
	}
	delete(t.subs, s)
	if len(t.subs) == 0 {
		n.tellChanged()
	}
}

// tellChanged wakes the goroutine that keeps the connection.
func (n *Notifier) tellChanged() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// errEnded says that a connection is not needed any more. It never leaves the package.
var errEnded = errors.New("ended")

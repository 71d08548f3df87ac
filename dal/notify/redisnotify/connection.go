package redisnotify

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"github.com/tenantdal/tenantdal/dal/notify"
)

const (
	firstPause = 50 * time.Millisecond // before a broken connection is made anew
	longPause  = 5 * time.Second       // the longest pause; a connection that has lasted so long begins with firstPause again
)

// connection is one connection of the subscriptions. It is never repaired: what breaks it ends it, and the next one begins with all topics.
type connection struct {
	pubsub *redis.PubSub
	has    map[string]bool // the topics that the server was asked for; of the goroutine that keeps the connection
	heard  atomic.Bool     // a message has come since the last check
	served bool            // the server has confirmed a topic; under Notifier.mu
}

// keep makes one connection after the other, until there are no subscriptions or the Notifier is closed.
func (n *Notifier) keep() {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, longPause
	down := false
	for {
		c := &connection{has: map[string]bool{}}
		began := time.Now()
		err := n.serve(c)
		if errors.Is(err, errEnded) {
			return
		}
		served, live := n.broken(c, err)
		if live && (served || !down) {
			n.cfg.Logger.Warn("redisnotify: the connection is broken, notices are lost until it is back", "err", err)
		}
		down = live
		if time.Since(began) > longPause {
			pause.Reset()
		}
		wait := time.NewTimer(pause.NextBackOff())
		select {
		case <-n.life.Done():
			wait.Stop()
			return
		case <-n.changed: // somebody waits
			wait.Stop()
		case <-wait.C:
		}
	}
}

// serve makes a connection and serves it until it breaks. It returns [errEnded] when the connection is not needed any more.
func (n *Notifier) serve(c *connection) error {
	if !n.begin(c) {
		return errEnded
	}
	ctx, cancel := context.WithCancel(n.life)
	defer cancel()
	pubsub := n.cfg.Client.Subscribe(ctx) // without channels it does nothing yet
	defer pubsub.Close()
	c.pubsub = pubsub
	if err := n.ask(ctx, c); err != nil { // connects
		return err
	}
	read := make(chan error, 1)
	go func() {
		defer close(read)
		read <- n.read(ctx, c)
	}()
	defer func() {
		cancel()
		_ = pubsub.Close() // makes the reader end
		for range read {
		}
	}()
	check := time.NewTicker(n.cfg.HealthCheck)
	defer check.Stop()
	for asked := false; ; {
		select {
		case <-n.life.Done():
			return errEnded
		case err := <-read:
			return err
		case <-n.changed:
			if err := n.ask(ctx, c); err != nil {
				return err
			}
		case <-check.C:
			switch {
			case c.heard.Swap(false):
				asked = false
			case asked:
				return ErrSilent
			default:
				asked = true
				if err := pubsub.Ping(ctx); err != nil {
					return n.cause(err)
				}
			}
		}
	}
}

// begin makes c the present connection. It reports false when the Notifier is closed.
func (n *Notifier) begin(c *connection) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn = c
	return !n.closed
}

// ask tells the server which topics are wanted since it was told last, and which no more.
func (n *Notifier) ask(ctx context.Context, c *connection) error {
	more, less, idle := n.wanted(c)
	if idle {
		return errEnded
	}
	if len(less) > 0 {
		if err := c.pubsub.Unsubscribe(ctx, less...); err != nil {
			return n.cause(err)
		}
	}
	if len(more) > 0 {
		if err := c.pubsub.Subscribe(ctx, more...); err != nil {
			return n.cause(err)
		}
	}
	return nil
}

// wanted returns the channels to be asked for and to be given up. Topics that nobody listens to are forgotten; without any others the connection is no
// longer the present one, and somebody else may make the next.
func (n *Notifier) wanted(c *connection) (more, less []string, idle bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, t := range n.topics {
		switch {
		case len(t.subs) == 0:
			delete(n.topics, name)
			if c.has[name] {
				delete(c.has, name)
				less = append(less, n.cfg.Prefix+name)
			}
		case !c.has[name]:
			c.has[name] = true
			more = append(more, n.cfg.Prefix+name)
		}
	}
	if len(n.topics) == 0 {
		n.conn, n.kept = nil, false
		return nil, nil, true
	}
	return more, less, false
}

// read hands over what the server sends, until the connection breaks.
func (n *Notifier) read(ctx context.Context, c *connection) error {
	for {
		message, err := c.pubsub.Receive(ctx)
		if err != nil {
			return n.cause(err)
		}
		c.heard.Store(true)
		switch m := message.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				n.confirmed(c, strings.TrimPrefix(m.Channel, n.cfg.Prefix))
			}
		case *redis.Message:
			n.hear(c, strings.TrimPrefix(m.Channel, n.cfg.Prefix), m.Payload)
		}
	}
}

// cause returns errEnded for what fails since the Notifier was closed.
func (n *Notifier) cause(err error) error {
	if n.life.Err() != nil {
		return errEnded
	}
	return err
}

// confirmed notes that notices of a topic come from now on. Whoever was told so before has missed some: this is a new connection, or the client has changed
// it by itself.
func (n *Notifier) confirmed(c *connection, name string) {
	if n.confirm(c, name) {
		n.cfg.Logger.Info("redisnotify: the connection is made")
	}
}

// confirm reports whether it was the first word on the connection.
func (n *Notifier) confirm(c *connection, name string) (first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != c {
		return false
	}
	first = !c.served
	c.served = true
	// A topic that was given up and wanted again at once may be confirmed twice. The second time tells a loss, rightly: between the two nothing came.
	if t := n.topics[name]; t != nil {
		t.confirmed = true
		for s := range t.subs {
			s.confirm()
		}
	}
	return first
}

// hear hands a notice to the subscriptions of its topic. One that is too long is not one of ours: it is told as a loss.
func (n *Notifier) hear(c *connection, name, payload string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.topics[name]
	if n.conn != c || t == nil {
		return
	}
	for s := range t.subs {
		if len(payload) > notify.MaxPayload {
			s.put(notify.Notice{Lost: true})
			continue
		}
		s.put(notify.Notice{Payload: []byte(payload)})
	}
}

// broken notes that c has ended. Subscriptions that wait go on to the next connection if the server was there, and fail with err otherwise.
func (n *Notifier) broken(c *connection, err error) (served, live bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conn = nil
	for _, t := range n.topics {
		t.confirmed = false
		for s := range t.subs {
			switch {
			case s.live:
				live = true
			case !c.served:
				delete(t.subs, s)
				s.ready <- err
			}
		}
	}
	return c.served, live
}

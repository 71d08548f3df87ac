package cache

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/tenant"
)

const (
	// maxWaiting is how many tenants' notices wait; beyond them one notice stands for all.
	maxWaiting = 1024
	// publishLimit bounds one publication.
	publishLimit = 5 * time.Second
)

// outbox publishes which tenants' rows were written. The writer puts the tenant in and goes on; one goroutine sends, several writes of a tenant in one notice.
//
// A notice is "<origin> <tenant>", without a tenant for everybody's rows; the origin is a random number of the cache, which drops nothing for its own notices.
type outbox struct {
	topic  string
	origin string
	via    notify.Notifier
	count  *counters

	mu      sync.Mutex // guards waiting and closed
	waiting map[tenant.ID]struct{}
	closed  bool

	signal chan struct{} // holds one when something waits
	quit   chan struct{}
	done   chan struct{} // nil before start
}

func (o *outbox) init(table string, via notify.Notifier, count *counters) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	o.topic, o.origin, o.via, o.count = "tenantdal.cache."+table, hex.EncodeToString(b[:]), via, count
	o.waiting, o.signal, o.quit = map[tenant.ID]struct{}{}, make(chan struct{}, 1), make(chan struct{})
}

func (o *outbox) start() {
	o.done = make(chan struct{})
	go func() {
		defer close(o.done)
		for {
			select {
			case <-o.quit:
				return
			case <-o.signal:
				_ = o.flush(context.Background()) // counted
			}
		}
	}()
}

// put makes a tenant's notice wait. It never blocks.
func (o *outbox) put(id tenant.ID) {
	if o.via == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) >= maxWaiting {
		clear(o.waiting)
		id = ""
	}
	if _, all := o.waiting[""]; !all {
		o.waiting[id] = struct{}{}
	}
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

// flush publishes what waits. What cannot be published is lost: [Config.TTL] bounds it.
func (o *outbox) flush(ctx context.Context) error {
	o.mu.Lock()
	send := o.waiting
	o.waiting = map[tenant.ID]struct{}{}
	o.mu.Unlock()
	var errs []error
	for id := range send {
		ctx, cancel := context.WithTimeout(ctx, publishLimit)
		err := o.via.Publish(ctx, o.topic, []byte(o.origin+" "+string(id)))
		cancel()
		if err != nil {
			o.count.lost.Add(1)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// close ends the goroutine and publishes what still waits.
func (o *outbox) close(ctx context.Context) error {
	o.mu.Lock()
	first := !o.closed
	o.closed = true
	o.mu.Unlock()
	if !first || o.done == nil {
		return nil
	}
	close(o.quit)
	select {
	case <-o.done:
	case <-ctx.Done():
		return fmt.Errorf("cache: close: a notice is under way: %w", context.Cause(ctx))
	}
	return o.flush(ctx)
}

// noticed drops what another process has changed. What cannot be read drops everything.
func (c *Cache[M, ID]) noticed(n notify.Notice) {
	origin, id, ok := strings.Cut(string(n.Payload), " ")
	switch {
	case n.Lost || !ok || id != "" && tenant.ID(id).Validate() != nil:
		c.drop("")
	case origin != c.out.origin:
		c.drop(tenant.ID(id))
	}
}

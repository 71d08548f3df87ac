package cache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Cache is a read-through cache of the rows of one declared model M, whose primary key beside tenant_id is of type ID. It is safe for concurrent use. Before
// Start and after Close it loads every row and keeps none.
type Cache[M any, ID ~string | dal.Integer] struct {
	store  *dal.Store
	cfg    Config
	table  string
	column string // of the id

	rows  *otter.Cache[entryKey[ID], entry[M]]
	gens  generations
	loads singleflight.Group // one load a key
	out   outbox
	count counters

	mu      sync.Mutex // guards the three below
	started bool
	closed  bool
	stops   []func()

	open    atomic.Bool    // between Start and Close
	loading sync.WaitGroup // of loads; added to under mu, while not closed
}

// entryKey is what a row is found by. Everything that may make another row of it is part of it.
type entryKey[ID comparable] struct {
	tenant     tenant.ID
	place      dal.Place
	epoch      shardrouter.Epoch // a topology may bring a key back to a place that it has left
	schema     string
	keyspace   string
	shardKey   string
	id         ID
	generation uint64
}

type entry[M any] struct {
	row M
	at  time.Time // when its load began
}

// New returns a cache of M over the store. It does no I/O and starts nothing.
//
// It returns the errors of [Config.Validate], and [ErrModel].
func New[M any, ID ~string | dal.Integer](store *dal.Store, cfg Config) (*Cache[M, ID], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	s, err := schema.Parse(new(M), &sync.Map{}, schema.NamingStrategy{IdentifierMaxLength: 64})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	var key []*schema.Field
	for _, f := range s.PrimaryFields {
		if f.DBName != dal.TenantColumn {
			key = append(key, f)
		}
	}
	if len(key) != 1 || key[0].FieldType != reflect.TypeFor[ID]() {
		return nil, fmt.Errorf("%w: table %q: want one key column beside %s, of type %s", ErrModel, s.Table, dal.TenantColumn, reflect.TypeFor[ID]())
	}
	rows, err := otter.New(&otter.Options[entryKey[ID], entry[M]]{
		MaximumSize: cfg.MaxEntries,
		Executor:    func(fn func()) { fn() }, // evict where a row is put in: no goroutine, and never more rows than said
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	c := &Cache[M, ID]{store: store, cfg: cfg, table: s.Table, column: key[0].DBName, rows: rows}
	c.gens.seed = maphash.MakeSeed()
	c.out.init(s.Table, cfg.Notifier, &c.count)
	return c, nil
}

// Get returns the row with the primary key id of the context's tenant, in the place of key, as [dal.Store.On] would read it. It is a copy; what it refers
// to (slices, maps, pointers) is shared with other callers and must not be changed. key chooses the place and is not compared with the row. The row is
// looked for by tenant and id: a table whose primary key has another column between them needs an index on (tenant_id, id).
//
// Its errors are those of the load: [gorm.ErrRecordNotFound] for a row that is not there, which is not kept, the errors of [dal.Store.Route], the cause of a
// ctx that ends, [ErrLoadPanicked]. A tenant that is not served any more is refused whatever is kept.
//
// [gorm.ErrRecordNotFound]: https://pkg.go.dev/gorm.io/gorm#pkg-variables
func (c *Cache[M, ID]) Get(ctx context.Context, key dal.KeyRef, id ID) (M, error) {
	if !c.open.Load() || c.store.InTransaction(ctx) {
		return c.load(ctx, key, id)
	}
	of, err := tenant.FromContext(ctx)
	if err != nil {
		var none M
		return none, err
	}
	generation := c.gens.now(of) // first: what is read below is no older
	route, err := c.store.Route(ctx, key)
	switch {
	case errors.Is(err, tenant.ErrSuspended): // may be allowed to read
		return c.load(ctx, key, id)
	case err != nil:
		var none M
		return none, err
	}
	k := entryKey[ID]{
		tenant: of, place: route.Place, epoch: route.Epoch, schema: c.store.SchemaVersion(route.Place), keyspace: key.Keyspace, shardKey: key.Text(),
		id: id, generation: generation,
	}
	if row, ok := c.kept(k); ok {
		c.count.hits.Add(1)
		return row, nil
	}
	c.count.misses.Add(1)
	return c.fill(ctx, key, k)
}

// kept returns a row that is kept and not too old.
func (c *Cache[M, ID]) kept(k entryKey[ID]) (row M, ok bool) {
	e, ok := c.rows.GetIfPresent(k)
	if !ok || c.cfg.Now().Sub(e.at) >= c.cfg.TTL {
		return row, false
	}
	return e.row, true
}

// fill loads a row for everybody who waits for it. The load outlives a caller that gives up.
func (c *Cache[M, ID]) fill(ctx context.Context, key dal.KeyRef, k entryKey[ID]) (M, error) {
	var none M
	done := c.loads.DoChan(fmt.Sprintf("%#v", k), func() (any, error) {
		if !c.begin() {
			return none, errClosing
		}
		defer c.loading.Done()
		if row, ok := c.kept(k); ok { // another load has ended since the caller looked
			return row, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.LoadTimeout)
		defer cancel()
		e := entry[M]{at: c.cfg.Now()}
		var err error
		if e.row, err = c.load(ctx, key, k.id); err != nil {
			return none, err
		}
		if c.gens.now(k.tenant) == k.generation { // otherwise nobody would find it
			c.rows.Set(k, e)
		}
		return e.row, nil
	})
	select {
	case r := <-done:
		switch {
		case errors.Is(r.Err, errClosing):
			return c.load(ctx, key, k.id)
		case r.Err != nil:
			return none, r.Err
		}
		return r.Val.(M), nil
	case <-ctx.Done():
		return none, fmt.Errorf("cache: wait for a row of %q: %w", c.table, context.Cause(ctx))
	}
}

// errClosing says that no load for others is begun any more. It never leaves this file.
var errClosing = errors.New("closing")

// load reads one row through the store.
func (c *Cache[M, ID]) load(ctx context.Context, key dal.KeyRef, id ID) (row M, err error) {
	c.count.loads.Add(1)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: table %q: %v", ErrLoadPanicked, c.table, p)
		}
	}()
	where := clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: c.column}, Value: id}
	err = c.store.On(ctx, key).Where(where).Take(&row).Error
	return row, err
}

// begin counts a load in, unless the cache is closed.
func (c *Cache[M, ID]) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.loading.Add(1)
	return true
}

// Start begins to keep rows: it watches the store's writes, and with a Notifier it subscribes and runs one goroutine that publishes. A second call does
// nothing. It returns the notifier's error, and keeps nothing then; and [dal.ErrClosed] after Close.
func (c *Cache[M, ID]) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return dal.ErrClosed
	case c.started:
		return nil
	}
	if c.cfg.Notifier != nil {
		stop, err := c.cfg.Notifier.Subscribe(ctx, c.out.topic, c.noticed)
		if err != nil {
			return fmt.Errorf("cache: subscribe to %q: %w", c.out.topic, err)
		}
		c.stops = append(c.stops, stop)
		c.out.start()
	}
	c.stops = append(c.stops, c.store.WatchWrites(c.wrote))
	c.started = true
	c.open.Store(true)
	return nil
}

// Close keeps nothing any more, publishes what still waits and awaits loads under way, until ctx ends. It is safe to call twice and without Start; what is
// cut off by ctx ends with Config.LoadTimeout.
func (c *Cache[M, ID]) Close(ctx context.Context) error {
	c.open.Store(false)
	c.mu.Lock()
	c.closed = true
	stops := c.stops
	c.stops = nil
	c.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	err := c.out.close(ctx)
	ended := make(chan struct{})
	go func() { // ends with the loads
		c.loading.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		err = errors.Join(err, fmt.Errorf("cache: close: loads are under way: %w", context.Cause(ctx)))
	}
	c.rows.InvalidateAll()
	return err
}

// wrote drops what a transaction of this process has changed. It runs on the writer's goroutine.
func (c *Cache[M, ID]) wrote(list []dal.Written) {
	for _, w := range list {
		if w.Table == c.table {
			c.drop(w.Tenant)
			c.out.put(w.Tenant)
		}
	}
}

func (c *Cache[M, ID]) drop(id tenant.ID) {
	c.gens.drop(id)
	c.count.drops.Add(1)
}

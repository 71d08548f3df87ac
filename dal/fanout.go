package dal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

const (
	// DefaultFanOut is how many shards one call reads at a time when [FanOutSpec.Parallel] is zero. Each costs one pooled connection.
	DefaultFanOut = 8
	// DefaultShardTimeout is how long one shard may take when [FanOutSpec.Timeout] is zero.
	DefaultShardTimeout = 10 * time.Second
)

// FanOutSpec says which shards of the context's tenant a call reads, and how.
type FanOutSpec struct {
	// Op names the call in errors. Empty means "fan out".
	Op string

	// Keyspace is the family of tables that is read. It must be one of the topology's.
	Keyspace string

	// Keys are the shard keys that are read: the call touches the shards that own them, and nothing for a list that is empty but not nil. Nil means
	// every shard of the tenant that may hold rows.
	Keys []shardrouter.Key

	// Parallel is the largest number of shards read at a time. Zero means [DefaultFanOut]; a negative number is refused.
	Parallel int

	// Timeout bounds each shard by itself, from the moment its turn comes: the wait for a connection counts. Zero means [DefaultShardTimeout]; a negative
	// time is refused.
	Timeout time.Duration

	// Partial lets the other shards finish when one fails; the error still lists it. Otherwise the first failure cancels the others.
	Partial bool
}

// ShardRead is what a call did on one shard.
type ShardRead struct {
	Shard shardrouter.ShardID
	// Keys are those of [FanOutSpec.Keys] that the shard owns, each once, in the order asked for; nil when every shard is read.
	Keys []shardrouter.Key
	// Rows is the number of rows fetched. Whoever reads them adds to it, in the call for this shard.
	Rows int64
	// Dropped are those of Rows that this shard does not own.
	Dropped int64
	// Queries is the number of queries sent for rows, as far as whoever reads them counts them.
	Queries int
	// Elapsed is how long the shard took, from the moment its turn came.
	Elapsed time.Duration
	// Err is why it failed: nil where it did not. A shard whose turn never came has the error that stopped it.
	Err error
}

// FanOutReport is what a call over shards touched.
type FanOutReport struct {
	// Epoch is that of the topology by which the call was routed, throughout.
	Epoch shardrouter.Epoch
	// Shards are the shards touched, sorted by id.
	Shards []ShardRead
}

// Rows returns the rows fetched from all shards.
func (r FanOutReport) Rows() (n int64) {
	for i := range r.Shards {
		n += r.Shards[i].Rows
	}
	return n
}

// Dropped returns the rows that were fetched from a shard which does not own them, and left out of the result.
func (r FanOutReport) Dropped() (n int64) {
	for i := range r.Shards {
		n += r.Shards[i].Dropped
	}
	return n
}

// Group sorts shard keys of the context's tenant by the shard that owns them: see [shardrouter.Topology.Group]. A query over these keys touches len(result)
// shards. It does no I/O but what the registry does.
//
// The errors are those of [Store.Route]. On an error nothing is returned.
func (s *Store) Group(ctx context.Context, keyspace string, keys ...shardrouter.Key) ([]shardrouter.Group, error) {
	t, top, err := s.tenantTopology(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.CheckStatus(); err != nil {
		return nil, err
	}
	return top.Group(keyspace, string(t.ID), keys)
}

// tenantTopology returns the context's tenant, and a topology that has its shards.
func (s *Store) tenantTopology(ctx context.Context) (tenant.Tenant, *shardrouter.Topology, error) {
	if s.shut() {
		return tenant.Tenant{}, nil, ErrClosed
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return tenant.Tenant{}, nil, err
	}
	t, err := s.resolve(ctx, id)
	if err != nil {
		return tenant.Tenant{}, nil, err
	}
	top := s.snapshot()
	if t.Model == tenant.OwnDatabase && len(top.Dedicated(string(id))) == 0 {
		if s.control != nil {
			if err := s.refresh(ctx); err != nil {
				return tenant.Tenant{}, nil, err
			}
			top = s.snapshot()
		}
		if len(top.Dedicated(string(id))) == 0 {
			return tenant.Tenant{}, nil, fmt.Errorf("%w: tenant %q has no shards in the topology", ErrNotMigrated, id)
		}
	}
	return t, top, nil
}

// FanOut calls fn for each shard of the context's tenant that the spec names, several at a time, and returns when every call has returned. Each gets a
// context that ends at its deadline or when another shard has failed, the shard's entry of the report, to whose Rows fn adds what it read, and a handle of
// the tenant in the keyspace on that shard, which reads only: writes, locking reads, transactions that could write and DB() are refused with
// [ErrReadOnly]. The handle lives as long as the call for its shard: afterwards it is refused with [ErrHandleOver]. fn must not return before its own
// goroutines have, and must end when its context does.
//
// Rows of a keyspace that is being moved may be there on two shards; see [shardrouter.Keyspace].Moving. [Scatter] drops those that the shard does not own.
//
// An error of shards is a [*FanOutError] that names them, in either mode; with Partial, what fn collected from FanOutError.Done is whole. Before anything is sent: [tenant.ErrNoTenant],
// [tenant.ErrSuspended] and the other errors of [Store.On], [*shardrouter.UnknownKeyspaceError], [*ShapeError] for a spec that cannot be, [ErrNested] inside
// [Store.Transaction], which holds one shard. A panic of fn panics in the caller, after the others have returned.
func (s *Store) FanOut(ctx context.Context, spec FanOutSpec, fn func(ctx context.Context, at *ShardRead, db *gorm.DB) error) (FanOutReport, error) {
	f, err := s.plan(ctx, spec)
	if err != nil {
		return FanOutReport{}, err
	}
	return f.run(ctx, func(ctx context.Context, at *ShardRead, b *binding) error {
		return fn(ctx, at, handle(ctx, b, &pool{b}))
	})
}

// fanOut is a call over shards that may begin.
type fanOut struct {
	store    *Store
	spec     FanOutSpec
	tenant   tenant.Tenant
	topology *shardrouter.Topology
	standing standing
	shards   []ShardRead
	stop     error // the cause by which the failure of one shard cancels the others: of this call, since one may stand inside another
}

// plan judges a spec and finds its shards. Nothing is sent.
func (s *Store) plan(ctx context.Context, spec FanOutSpec) (*fanOut, error) {
	spec.Op = cmp.Or(spec.Op, "fan out")
	spec.Parallel, spec.Timeout = cmp.Or(spec.Parallel, DefaultFanOut), cmp.Or(spec.Timeout, DefaultShardTimeout)
	if spec.Parallel < 0 || spec.Timeout < 0 {
		return nil, &ShapeError{Shape: "a negative Parallel or Timeout of a call over shards", Hint: "leave it zero for the default"}
	}
	if heldBy(ctx, s) != nil {
		return nil, fmt.Errorf("%w: a transaction holds one shard; read across shards outside", ErrNested)
	}
	look := s.looks.Load()
	t, top, err := s.tenantTopology(ctx)
	if err != nil {
		return nil, err
	}
	f := &fanOut{store: s, spec: spec, tenant: t, topology: top, standing: s.standing(t, look)}
	f.stop = fmt.Errorf("dal: %s: cancelled, since another shard failed", spec.Op)
	if f.standing.refused != nil {
		return nil, f.standing.refused
	}
	if _, ok := top.Keyspace(spec.Keyspace); !ok {
		return nil, &shardrouter.UnknownKeyspaceError{Name: spec.Keyspace}
	}
	if spec.Keys != nil {
		groups, err := top.Group(spec.Keyspace, string(t.ID), spec.Keys)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			f.shards = append(f.shards, ShardRead{Shard: g.Shard, Keys: g.Keys})
		}
		return f, nil
	}
	all := top.Shards()
	if own := top.Dedicated(string(t.ID)); len(own) > 0 {
		all = own
	}
	for _, id := range all {
		if top.Info(id).State != shardrouter.Joining { // which owns no keys
			f.shards = append(f.shards, ShardRead{Shard: id})
		}
	}
	slices.SortFunc(f.shards, func(a, b ShardRead) int { return cmp.Compare(a.Shard, b.Shard) })
	return f, nil
}

// run reads the shards, and waits for every goroutine that it starts.
func (f *fanOut) run(ctx context.Context, fn func(ctx context.Context, at *ShardRead, b *binding) error) (FanOutReport, error) {
	report := FanOutReport{Epoch: f.topology.Epoch(), Shards: f.shards}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	atOnce(len(f.shards), f.spec.Parallel, func(i int) {
		at := &f.shards[i]
		if ctx.Err() != nil {
			at.Err = context.Cause(ctx)
			return
		}
		at.Err = ErrNoReturn
		defer func() {
			if at.Err != nil && !f.spec.Partial {
				cancel(f.stop)
			}
		}()
		at.Err = f.read(ctx, at, fn)
	})
	return report, f.failed(report)
}

// atOnce calls fn with 0 to n-1, at most limit of them at a time, and returns when all have ended. A panic goes on in the caller then.
func atOnce(n, limit int, fn func(i int)) {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards panicked
	var panicked any
	turns := make(chan struct{}, limit)
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			defer func() {
				if p := recover(); p != nil {
					mu.Lock()
					defer mu.Unlock()
					panicked = p
				}
			}()
			fn(i)
		})
	}
	wg.Wait()
	if panicked != nil {
		panic(panicked)
	}
}

// index returns the position of a shard's entry. It reads no entry: the others are written meanwhile.
func (f *fanOut) index(at *ShardRead) int {
	for i := range f.shards {
		if &f.shards[i] == at {
			return i
		}
	}
	panic("dal: an entry of another call")
}

// read is the call for one shard.
func (f *fanOut) read(ctx context.Context, at *ShardRead, fn func(ctx context.Context, at *ShardRead, b *binding) error) error {
	began := time.Now()
	defer func() { at.Elapsed = time.Since(began) }()
	ctx, cancel := context.WithTimeout(ctx, f.spec.Timeout)
	defer cancel()
	err := f.topology.Check(at.Shard)
	if err == nil {
		var db *database
		if db, err = f.store.at(ctx, Place{Shard: at.Shard, Schema: f.tenant.Placement.Schema}, f.tenant.ID); err == nil {
			b := &binding{store: f.store, db: db, tenant: f.tenant, id: f.tenant.ID, keyspace: f.spec.Keyspace, standing: f.standing, reads: true, over: new(atomic.Bool)}
			defer b.over.Store(true)
			err = fn(ctx, at, b)
		}
	}
	if err != nil && ctx.Err() != nil { // drivers say this in words of their own
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	return err
}

// failed returns a [*FanOutError] when a shard failed.
func (f *fanOut) failed(r FanOutReport) error {
	e := &FanOutError{Op: f.spec.Op, Failed: map[shardrouter.ShardID]error{}}
	for i := range r.Shards {
		switch at := &r.Shards[i]; {
		case at.Err == nil:
			e.Done = append(e.Done, at.Shard)
		case errors.Is(at.Err, f.stop):
			e.Cancelled = append(e.Cancelled, at.Shard)
		default:
			e.Failed[at.Shard] = at.Err
		}
	}
	if len(e.Failed) == 0 {
		return nil
	}
	return e
}

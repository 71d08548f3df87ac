package dal

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

const (
	eachParallelism = 8   // shards written at a time by one call: each costs a pooled connection
	eachBatch       = 100 // rows in one INSERT
)

// ShardRows are the rows of one call that one shard owns.
type ShardRows struct {
	Shard shardrouter.ShardID
	Rows  []int // positions in the caller's slice, ascending; never empty
	Err   error // nil when they were committed
}

// CreateEach inserts rows whose shard keys live on any of the tenant's shards: the rows of each shard in one transaction of their own, several shards
// at a time. Ids, times and the tenant are written back into rows, in their places. Hooks and relations work as in Create; hooks of rows on different
// shards may run at the same time.
//
// It is not atomic, and never claims to be: each shard commits or fails by itself. The result has one entry for each shard, sorted by its id, whatever
// happened, and is nil only where nothing was sent. An error is a [*FanOutError] if any shard failed. Rows of a failed shard keep the ids that they
// were given: sending them again cannot write a row twice, also where the outcome is unknown ([ErrOutcomeUnknown]).
//
// Before anything is sent every row is judged: [*UndeclaredError] for a model that is not declared, [*ShapeError] for one without a shard key,
// [shardrouter.ErrEmptyKey], [shardrouter.ErrZeroKey] and [*MismatchError] for a row that is nobody's or another tenant's, and [ErrNested] inside
// [Store.Transaction], which holds one shard.
//
// For a unique key that does not hold the shard key, a row is compared with the rows of its own shard alone.
func CreateEach[M any](ctx context.Context, s *Store, rows []M) ([]ShardRows, error) {
	groups, keys, err := eachShard(ctx, s, rows)
	if err != nil {
		return nil, err
	}
	atOnce(len(groups), eachParallelism, func(i int) {
		groups[i].Err = ErrNoReturn
		groups[i].Err = createOn(ctx, s, keys[i], rows, groups[i].Rows)
	})
	return groups, eachError(groups)
}

// eachShard groups the rows by the shards that own them, with a key of each group. Nothing is changed.
func eachShard[M any](ctx context.Context, s *Store, rows []M) ([]ShardRows, []KeyRef, error) {
	if heldBy(ctx, s) != nil {
		return nil, nil, fmt.Errorf("%w: a batch over shards needs transactions of its own; call it outside", ErrNested)
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, nil, err
	}
	model := reflect.TypeFor[M]()
	t := s.tables.byType[model]
	switch {
	case t == nil:
		return nil, nil, &UndeclaredError{Model: model.String()}
	case t.shardKey == nil:
		return nil, nil, &ShapeError{Shape: "CreateEach of a table without a shard key", Table: t.name, Hint: "create its rows in the place where they belong"}
	}
	at := map[shardrouter.ShardID]int{}
	var groups []ShardRows
	keys := map[shardrouter.ShardID]KeyRef{}
	for i := range rows {
		row := reflect.ValueOf(&rows[i]).Elem()
		if v, zero := t.tenant.ValueOf(ctx, row); !zero && v != any(id) {
			return nil, nil, fmt.Errorf("dal: row %d: %w", i, &MismatchError{Handle: id, Other: asID(v), What: "the row's TenantID"})
		}
		v, _ := t.shardKey.ValueOf(ctx, row)
		key, err := shardrouter.KeyOf(plainKey(v))
		if err != nil {
			return nil, nil, fmt.Errorf("dal: row %d of table %q, column %q: %w", i, t.name, t.shardKey.DBName, err)
		}
		ref := KeyRef{Keyspace: t.Keyspace, key: key}
		r, err := s.Route(ctx, ref)
		if err != nil {
			return nil, nil, fmt.Errorf("dal: row %d of table %q: %w", i, t.name, err)
		}
		shard := r.Place.Shard
		if _, met := at[shard]; !met {
			at[shard] = len(groups)
			groups = append(groups, ShardRows{Shard: shard})
			keys[shard] = ref
		}
		groups[at[shard]].Rows = append(groups[at[shard]].Rows, i)
	}
	slices.SortFunc(groups, func(a, b ShardRows) int { return cmp.Compare(a.Shard, b.Shard) })
	refs := make([]KeyRef, len(groups))
	for i := range groups {
		refs[i] = keys[groups[i].Shard]
	}
	return groups, refs, nil
}

// createOn inserts the rows at the positions in one transaction of the key's place.
func createOn[M any](ctx context.Context, s *Store, key KeyRef, rows []M, positions []int) error {
	mine := make([]*M, len(positions))
	for i, at := range positions {
		mine[i] = &rows[at]
	}
	return s.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
		return tx.CreateInBatches(mine, eachBatch).Error
	})
}

// eachError returns a [*FanOutError] when a shard failed.
func eachError(groups []ShardRows) error {
	e := &FanOutError{Op: "create", Failed: map[shardrouter.ShardID]error{}}
	for _, g := range groups {
		if g.Err != nil {
			e.Failed[g.Shard] = g.Err
		} else {
			e.Done = append(e.Done, g.Shard)
		}
	}
	if len(e.Failed) == 0 {
		return nil
	}
	return e
}

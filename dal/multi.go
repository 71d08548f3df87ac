package dal

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// keysBatch is the number of keys in one IN list.
const keysBatch = 500

// KeysResult is what [FindByKeys] found.
type KeysResult[T any] struct {
	// Rows stand in the order of the keys asked for, those of one key in the order of the primary key. A key that was listed twice gives its rows once.
	Rows []T
	// Report says what was touched.
	Report FanOutReport
}

// FindByKeys returns the rows of T, a declared [Tenant] table, whose shard keys are listed, from all shards that own one of them: each shard is asked for
// its own keys alone, in lists of at most 500. Rows that lie on a shard which does not own them are dropped and counted in the report. All rows of a key are
// returned: it is for tables with few rows a key.
//
// spec bounds the call; its Keyspace and Keys are filled in. With Partial the rows of the shards that answered are returned beside the error.
//
// The errors are those of [Store.FanOut], [*UndeclaredError], and [*ShapeError] for a table without a shard key or a key that is not of its column's type.
func FindByKeys[T any, K ~string | Integer](ctx context.Context, s *Store, keys []K, spec FanOutSpec) (KeysResult[T], error) {
	var result KeysResult[T]
	t, err := scattered[T](s)
	if err != nil {
		return result, err
	}
	r := &Repository[T]{store: s, table: t}
	spec.Keyspace, spec.Keys = t.Keyspace, make([]shardrouter.Key, 0, len(keys))
	position := map[shardrouter.Key]int{}
	for i, k := range keys {
		key, err := shardrouter.KeyOf(k)
		if err != nil {
			return result, fmt.Errorf("dal: key %d of table %q: %w", i, t.name, err)
		}
		if _, ok := t.keyValue(ctx, key); !ok {
			return result, &ShapeError{Shape: fmt.Sprintf("key %d, a %T, for column %s", i, k, t.shardKey.DBName), Table: t.name, Hint: "give values of the column's type"}
		}
		if _, twice := position[key]; !twice {
			position[key] = i
			spec.Keys = append(spec.Keys, key)
		}
	}
	if spec.Op == "" {
		spec.Op = "find by keys in " + t.name
	}
	f, err := s.plan(ctx, spec)
	if err != nil {
		return result, err
	}
	found := make(map[shardrouter.ShardID]*[]placed, len(f.shards)) // made whole before the calls begin: each writes to its own entry
	for i := range f.shards {
		found[f.shards[i].Shard] = new([]placed)
	}
	result.Report, err = f.run(ctx, func(ctx context.Context, at *ShardRead, b *binding) error {
		mine := found[at.Shard]
		for part := range slices.Chunk(at.Keys, keysBatch) {
			in := clause.IN{Column: r.column(t.shardKey)}
			for _, k := range part {
				v, _ := t.keyValue(ctx, k)
				in.Values = append(in.Values, v)
			}
			db := handle(ctx, b, &pool{b}).Model(new(T)).Where(in)
			for _, pk := range t.schema.PrimaryFields {
				if pk != t.tenant {
					db = db.Order(clause.OrderByColumn{Column: r.column(pk)})
				}
			}
			var rows []T
			at.Queries++
			if err := db.Find(&rows).Error; err != nil {
				return err
			}
			at.Rows += int64(len(rows))
			for i := range rows {
				key, owned := f.owned(ctx, t, at, reflect.ValueOf(&rows[i]).Elem())
				if !owned {
					at.Dropped++
					continue
				}
				*mine = append(*mine, placed{key: key, row: reflect.ValueOf(&rows[i]).Elem()})
			}
		}
		return nil
	})
	if err != nil && !spec.Partial {
		return KeysResult[T]{Report: result.Report}, err
	}
	var all []placed
	for i := range f.shards {
		if f.shards[i].Err == nil {
			all = append(all, *found[f.shards[i].Shard]...)
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return position[a.key] - position[b.key] })
	for _, p := range all {
		result.Rows = append(result.Rows, p.row.Interface().(T))
	}
	return result, err
}

// placed is a row with the shard key that it has.
type placed struct {
	key shardrouter.Key
	row reflect.Value
}

// scattered returns the declared table of T, which must have a shard key.
func scattered[T any](s *Store) (*table, error) {
	typ := reflect.TypeFor[T]()
	t := s.tables.byType[typ]
	switch {
	case t == nil:
		return nil, &UndeclaredError{Model: typ.String()}
	case t.Class != TenantClass:
		return nil, &ShapeError{Shape: "a read across shards of a table without a shard key", Table: t.name, Hint: "read it in the place where its rows belong"}
	}
	return t, nil
}

// keyValue returns the value of the shard key's own type that is written as the key; ok is false where none is, so that no row can have it.
func (t *table) keyValue(ctx context.Context, key shardrouter.Key) (v any, ok bool) {
	row := reflect.New(t.schema.ModelType).Elem()
	if err := t.shardKey.Set(ctx, row, string(key)); err != nil {
		return nil, false
	}
	v, _ = t.shardKey.ValueOf(ctx, row)
	same, err := shardrouter.KeyOf(plainKey(v))
	return v, err == nil && same == key
}

// owned returns the shard key of a row that the shard owns. A key that no shard may own is nobody's.
func (f *fanOut) owned(ctx context.Context, t *table, at *ShardRead, row reflect.Value) (shardrouter.Key, bool) {
	v, _ := t.shardKey.ValueOf(ctx, row)
	key, err := shardrouter.KeyOf(plainKey(v))
	if err != nil {
		return "", false
	}
	owner, err := f.topology.Owner(t.Keyspace, string(f.tenant.ID), key)
	return key, err == nil && owner == at.Shard
}

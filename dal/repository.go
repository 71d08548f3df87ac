package dal

import (
	"context"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// MaxPage is the largest number of rows that [Repository.List] returns at a time.
const MaxPage = 1000

// Repository reads and writes the rows of one declared model. Every call names the tenant by its context and the shard key by its arguments, and
// touches one shard. It is safe for concurrent use.
type Repository[T any] struct {
	store *Store
	table *table
	key   []*schema.Field // the primary key without tenant_id
}

// NewRepository returns the repository of T, which is declared as a Tenant table.
//
// It returns [*UndeclaredError] or, for a table without a keyspace, [*ShapeError].
func NewRepository[T any](s *Store) (*Repository[T], error) {
	typ := reflect.TypeFor[T]()
	t := s.tables.byType[typ]
	if t == nil {
		return nil, &UndeclaredError{Model: typ.String()}
	}
	if t.Class != TenantClass {
		return nil, &ShapeError{Shape: "repository of a table without a keyspace", Table: t.name, Hint: "use Store.On"}
	}
	r := &Repository[T]{store: s, table: t}
	for _, f := range t.schema.PrimaryFields {
		if f != t.tenant {
			r.key = append(r.key, f)
		}
	}
	return r, nil
}

// on returns a handle for a shard key, with the rows of that key alone.
func (r *Repository[T]) on(ctx context.Context, shardKey any) (*gorm.DB, error) {
	k, err := shardrouter.KeyOf(plainKey(shardKey))
	if err != nil {
		return nil, fmt.Errorf("dal: table %q, column %q: %w", r.table.name, r.table.shardKey.DBName, err)
	}
	value, err := r.typed(ctx, r.table.shardKey, string(k))
	if err != nil {
		return nil, err
	}
	ref := KeyRef{Keyspace: r.table.Keyspace, key: k}
	return r.store.On(ctx, ref).Model(new(T)).Where(clause.Eq{Column: r.column(r.table.shardKey), Value: value}), nil
}

// typed returns v as a value of the field's own type: a number compared with a text column would match other texts.
func (r *Repository[T]) typed(ctx context.Context, f *schema.Field, v any) (any, error) {
	row := reflect.New(r.table.schema.ModelType).Elem()
	if v == nil || writesSQL(reflect.TypeOf(v)) || !isBound(v) {
		return nil, &ShapeError{Shape: fmt.Sprintf("key value of type %T for column %s", v, f.DBName), Table: r.table.name, Hint: "give a value of the column's type"}
	}
	if err := f.Set(ctx, row, v); err != nil {
		return nil, &ShapeError{Shape: fmt.Sprintf("key value of type %T for column %s", v, f.DBName), Table: r.table.name, Hint: "give a value of the column's type"}
	}
	value, _ := f.ValueOf(ctx, row)
	return value, nil
}

func (r *Repository[T]) column(f *schema.Field) clause.Column {
	return clause.Column{Table: clause.CurrentTable, Name: f.DBName}
}

// identified adds the primary key: one value for each of its columns but tenant_id and the shard key, in the model's order.
func (r *Repository[T]) identified(db *gorm.DB, id []any) (*gorm.DB, error) {
	fields := r.ordered()
	if len(id) != len(fields) {
		return nil, &ShapeError{Shape: fmt.Sprintf("primary key of %d values where the table has %d", len(id), len(fields)), Table: r.table.name, Hint: "give one value a key column, without tenant_id and the shard key"}
	}
	for i, f := range fields {
		value, err := r.typed(db.Statement.Context, f, id[i])
		if err != nil {
			return nil, err
		}
		db = db.Where(clause.Eq{Column: r.column(f), Value: value})
	}
	return db, nil
}

// ordered returns the key columns that order the rows of one shard key.
func (r *Repository[T]) ordered() []*schema.Field {
	var fields []*schema.Field
	for _, f := range r.key {
		if f != r.table.shardKey {
			fields = append(fields, f)
		}
	}
	return fields
}

// Get returns the row of shardKey with the given primary key: its columns without tenant_id and the shard key.
//
// It returns [gorm.ErrRecordNotFound] for a row that is not there or not the tenant's, and the errors of [Store.On].
func (r *Repository[T]) Get(ctx context.Context, shardKey any, id ...any) (T, error) {
	var row T
	db, err := r.on(ctx, shardKey)
	if err == nil {
		db, err = r.identified(db, id)
	}
	if err != nil {
		return row, err
	}
	err = db.Take(&row).Error
	return row, err
}

// Page is a piece of a list.
type Page[T any] struct {
	Rows []T
	// Next is the cursor of the following piece; nil when this is the last.
	Next []any
}

// List returns up to limit rows of shardKey in the order of the primary key, after the row that the cursor names (nil: from the start). A limit
// of zero or more than [MaxPage] means [MaxPage]. Each piece costs the same, however far it lies.
func (r *Repository[T]) List(ctx context.Context, shardKey any, after []any, limit int) (Page[T], error) {
	if limit <= 0 || limit > MaxPage {
		limit = MaxPage
	}
	db, err := r.on(ctx, shardKey)
	if err != nil {
		return Page[T]{}, err
	}
	fields := r.ordered()
	if after != nil {
		if len(after) != len(fields) {
			return Page[T]{}, &ShapeError{Shape: "cursor of another table", Table: r.table.name, Hint: "pass Page.Next as it is"}
		}
		typed := make([]any, len(after))
		for i, f := range fields {
			if typed[i], err = r.typed(ctx, f, after[i]); err != nil {
				return Page[T]{}, err
			}
		}
		db = db.Where(r.beyond(fields, typed))
	}
	for _, f := range fields {
		db = db.Order(clause.OrderByColumn{Column: r.column(f)})
	}
	var page Page[T]
	if err := db.Limit(limit + 1).Find(&page.Rows).Error; err != nil {
		return Page[T]{}, err
	}
	if len(page.Rows) > limit {
		page.Rows = page.Rows[:limit]
		last := reflect.ValueOf(&page.Rows[limit-1]).Elem()
		for _, f := range fields {
			v, _ := f.ValueOf(ctx, last)
			page.Next = append(page.Next, v)
		}
	}
	return page, nil
}

// beyond is (a > ?) OR (a = ? AND b > ?) ...: rows after a cursor over several columns.
func (r *Repository[T]) beyond(fields []*schema.Field, after []any) clause.Expression {
	var or []clause.Expression
	for i, f := range fields {
		var and []clause.Expression
		for j := range i {
			and = append(and, clause.Eq{Column: r.column(fields[j]), Value: after[j]})
		}
		and = append(and, clause.Gt{Column: r.column(f), Value: after[i]})
		or = append(or, clause.And(and...))
	}
	if len(or) == 1 {
		return or[0] // gorm joins an OR of one by OR with what stands before it
	}
	return clause.Or(or...)
}

// Create inserts row, with the context's tenant, an id where it has none, and the place of its own shard key. A row with another tenant's TenantID
// is refused with [*MismatchError], a taken key is [IsDuplicateKey].
func (r *Repository[T]) Create(ctx context.Context, row *T) error {
	k, err := r.rowKey(ctx, row)
	if err != nil {
		return err
	}
	return r.store.On(ctx, k).Omit(clause.Associations).Create(row).Error
}

func (r *Repository[T]) rowKey(ctx context.Context, row *T) (KeyRef, error) {
	if row == nil {
		return KeyRef{}, &ShapeError{Shape: "nil row", Table: r.table.name}
	}
	v, _ := r.table.shardKey.ValueOf(ctx, reflect.ValueOf(row).Elem())
	k, err := shardrouter.KeyOf(plainKey(v))
	if err != nil {
		return KeyRef{}, fmt.Errorf("dal: table %q, column %q: %w", r.table.name, r.table.shardKey.DBName, err)
	}
	return KeyRef{Keyspace: r.table.Keyspace, key: k}, nil
}

// Update writes every column of row but its tenant, its keys and its time of creation, where the row with its primary key and shard key is.
//
// It returns [gorm.ErrRecordNotFound] when no such row is the tenant's. It never inserts.
func (r *Repository[T]) Update(ctx context.Context, row *T) error {
	k, err := r.rowKey(ctx, row)
	if err != nil {
		return err
	}
	rv := reflect.ValueOf(row).Elem()
	if v, zero := r.table.tenant.ValueOf(ctx, rv); !zero {
		b, err := r.store.bind(ctx, k)
		if err != nil {
			return err
		}
		if v != b.id {
			return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the row's TenantID"}
		}
	}
	db := r.store.On(ctx, k).Model(new(T))
	for _, f := range append(r.ordered(), r.table.shardKey) {
		v, zero := f.ValueOf(ctx, rv)
		if zero {
			return &ShapeError{Shape: "row without " + f.DBName, Table: r.table.name, Hint: "fill the row's keys"}
		}
		db = db.Where(clause.Eq{Column: r.column(f), Value: v})
	}
	values := map[string]any{}
	for _, f := range r.table.schema.Fields {
		if f.DBName == "" || f.PrimaryKey || f == r.table.tenant || f == r.table.shardKey || f.AutoCreateTime > 0 || f.AutoUpdateTime > 0 || !f.Updatable {
			continue
		}
		values[f.DBName], _ = f.ValueOf(ctx, rv)
	}
	if len(values) == 0 {
		return &ShapeError{Shape: "update of a row without columns besides its keys", Table: r.table.name}
	}
	res := db.Updates(values)
	if res.Error == nil && res.RowsAffected == 0 {
		return gorm.ErrRecordNotFound
	}
	return res.Error
}

// Delete deletes the row of shardKey with the given primary key, softly where the model has gorm.DeletedAt.
//
// It returns [gorm.ErrRecordNotFound] when no such row is the tenant's.
func (r *Repository[T]) Delete(ctx context.Context, shardKey any, id ...any) error {
	db, err := r.on(ctx, shardKey)
	if err == nil {
		db, err = r.identified(db, id)
	}
	if err != nil {
		return err
	}
	res := db.Delete(new(T))
	if res.Error == nil && res.RowsAffected == 0 {
		return gorm.ErrRecordNotFound
	}
	return res.Error
}

// Count returns the number of rows of shardKey.
func (r *Repository[T]) Count(ctx context.Context, shardKey any) (int64, error) {
	db, err := r.on(ctx, shardKey)
	if err != nil {
		return 0, err
	}
	var n int64
	err = db.Count(&n).Error
	return n, err
}

package dal

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// MaxOffset is the largest offset of a query over shards: every shard sends offset + limit rows. See [ErrOffset].
const MaxOffset = 1000

// Order is one column of an order, with its direction.
type Order struct {
	Column string
	Desc   bool
}

// Asc orders by a column, NULL first, as MySQL and SQLite do; also on PostgreSQL.
func Asc(column string) Order { return Order{Column: column} }

// Desc orders by a column backwards, NULL last.
func Desc(column string) Order { return Order{Column: column, Desc: true} }

// Query reads rows of T from all shards of the context's tenant that may hold them. Make it with [Scatter]; each method returns a new query, so one may be
// kept and used by several goroutines.
type Query[T any] struct {
	store  *Store
	table  *table
	spec   FanOutSpec
	wheres []condition
	orders []Order
	limit  int
	offset int
	err    error
}

type condition struct {
	query any
	args  []any
}

// Scatter begins a query over shards of T, a declared [Tenant] table. Every mistake is reported by the call that would send it.
func Scatter[T any](s *Store) Query[T] {
	t, err := scattered[T](s)
	q := Query[T]{store: s, table: t, err: err, limit: MaxPage}
	if err == nil {
		q.spec = FanOutSpec{Op: "scatter over " + t.name, Keyspace: t.Keyspace}
	}
	return q
}

// With bounds the call: Parallel, Timeout, Partial, Keys and Op of spec; the keyspace is the table's. Keys choose the shards, and do not filter rows.
func (q Query[T]) With(spec FanOutSpec) Query[T] {
	spec.Keyspace = q.spec.Keyspace
	if spec.Op == "" {
		spec.Op = q.spec.Op
	}
	q.spec = spec
	return q
}

// Where adds a condition, as gorm's Where does, which holds beside the others.
func (q Query[T]) Where(query any, args ...any) Query[T] {
	q.wheres = append(slices.Clip(q.wheres), condition{query, args})
	return q
}

// OrderBy orders the rows. The columns of the primary key that it does not name follow, ascending, so that the order is total: no two rows of a tenant
// may have one primary key, which holds for the ids that the library fills.
func (q Query[T]) OrderBy(orders ...Order) Query[T] {
	q.orders = append(slices.Clip(q.orders), orders...)
	return q
}

// Limit returns at most n rows, 1 to [MaxPage]. Without it the limit is MaxPage.
func (q Query[T]) Limit(n int) Query[T] {
	q.limit = n
	return q
}

// Offset skips n rows of the order, at most [MaxOffset]: each shard sends n + limit rows. [Query.Page] costs the same however deep it is.
func (q Query[T]) Offset(n int) Query[T] {
	q.offset = n
	return q
}

// ScatterResult is what a query over shards returned.
type ScatterResult[T any] struct {
	// Rows stand in the order asked for. Without one they are any rows.
	Rows []T
	// Report says which shards were touched, and what each sent.
	Report FanOutReport
	// Next and Prev are the cursors of the pages beside this one, of [Query.Page] alone; empty where there is none.
	Next, Prev string
}

// Find returns the first rows of the order, after the offset. Each shard sends at most offset + limit rows, and more only where it does not own all of them.
// Without an order it returns any rows, and may return others the next time.
//
// Errors before anything is sent: those of [Store.FanOut]; [*ShapeError] for a limit out of range, an unknown column, an order that is no part of the model,
// or an offset without an order; [*OffsetError]. [*OrderError] reports a column whose order cannot be reproduced. A shard that fails is a [*FanOutError];
// with Partial, what the others returned comes with it, and rows of the failed shard are missing from it.
func (q Query[T]) Find(ctx context.Context) (ScatterResult[T], error) {
	switch {
	case q.err != nil:
		return ScatterResult[T]{}, q.err
	case q.offset < 0 || q.offset > MaxOffset:
		return ScatterResult[T]{}, &OffsetError{Offset: q.offset}
	case q.offset > 0 && len(q.orders) == 0:
		return ScatterResult[T]{}, &ShapeError{Shape: "OFFSET without an order over shards", Table: q.table.name, Hint: "name one with OrderBy, or use Page"}
	}
	c, err := q.columns()
	if err != nil {
		return ScatterResult[T]{}, err
	}
	result, err := q.fetch(ctx, c, nil, q.offset+q.limit)
	result.Rows = result.Rows[min(q.offset, len(result.Rows)):]
	return result, err
}

// columns returns the total order that is asked for.
func (q Query[T]) columns() ([]orderColumn, error) {
	if q.limit < 1 || q.limit > MaxPage {
		return nil, &ShapeError{Shape: fmt.Sprintf("a limit of %d over shards", q.limit), Table: q.table.name, Hint: fmt.Sprintf("ask for 1 to %d rows, and for more by Page", MaxPage)}
	}
	var columns []orderColumn
	add := func(f *schema.Field, desc bool) error {
		c := orderColumn{field: f, desc: desc, kind: sortKindOf(f)}
		if c.kind == noSort {
			return &OrderError{Table: q.table.name, Column: f.DBName, Problem: "its field is a " + f.FieldType.String() + ", whose order is not the database's"}
		}
		columns = append(columns, c)
		return nil
	}
	has := func(f *schema.Field) bool {
		return slices.ContainsFunc(columns, func(c orderColumn) bool { return c.field == f })
	}
	for _, o := range q.orders {
		f := q.table.schema.FieldsByDBName[o.Column]
		if f == nil || f == q.table.tenant || has(f) {
			return nil, &ShapeError{Shape: fmt.Sprintf("an order by %q", o.Column), Table: q.table.name, Hint: "name each column of the model once, and not tenant_id"}
		}
		if err := add(f, o.Desc); err != nil {
			return nil, err
		}
	}
	for _, f := range q.table.schema.PrimaryFields {
		if f != q.table.tenant && !has(f) {
			if err := add(f, false); err != nil {
				return nil, err
			}
		}
	}
	return columns, nil
}

// sortedRow is a row with the values that order it.
type sortedRow[T any] struct {
	row    T
	values []sortValue
}

// fetch returns the first n rows after a point of the order (nil: from the start), merged from all shards.
func (q Query[T]) fetch(ctx context.Context, columns []orderColumn, after []sortValue, n int) (ScatterResult[T], error) {
	f, err := q.store.plan(ctx, q.spec)
	if err != nil {
		return ScatterResult[T]{}, err
	}
	lists := make([][]sortedRow[T], len(f.shards))
	orders := make([][]orderColumn, len(f.shards)) // as each shard's own schema has them
	report, err := f.run(ctx, func(ctx context.Context, at *ShardRead, b *binding) error {
		i := f.index(at)
		own, err := b.db.orderOf(ctx, q.table, columns)
		if err != nil {
			return err
		}
		orders[i] = own
		lists[i], err = q.fetchFrom(ctx, f, at, b, own, after, n)
		return err
	})
	result := ScatterResult[T]{Report: report}
	if err != nil && !q.spec.Partial {
		return result, err
	}
	for i := range report.Shards {
		if report.Shards[i].Err != nil {
			lists[i] = nil
		} else {
			columns = orders[i]
		}
	}
	rows, merr := merge(q.table.name, columns, lists, n)
	if merr != nil {
		return ScatterResult[T]{Report: report}, merr
	}
	result.Rows = rows
	return result, err
}

// filtered adds the conditions, each in parentheses: gorm writes them only where it sees blanks around an OR.
func (q Query[T]) filtered(db *gorm.DB) *gorm.DB {
	for _, w := range q.wheres {
		if conds := db.Statement.BuildCondition(w.query, w.args...); len(conds) > 0 {
			db = db.Where(parenthesized{clause.Where{Exprs: conds}})
		}
	}
	return db
}

// fetchFrom returns the first n rows that a shard owns, after a point of the order. Rows that it does not own make it ask on, each time for twice as many, so
// that thousands of them cost few queries.
func (q Query[T]) fetchFrom(ctx context.Context, f *fanOut, at *ShardRead, b *binding, columns []orderColumn, after []sortValue, n int) ([]sortedRow[T], error) {
	var list []sortedRow[T]
	for want := n; ; want = max(n-len(list), min(2*want, MaxPage)) {
		db := q.filtered(handle(ctx, b, &pool{b}).Model(new(T)))
		if after != nil {
			db = db.Where(beyondValues(q.table.shardKey, columns, after))
		}
		var rows []T
		at.Queries++
		if err := orderBy(db, q.table, b.db.dialect, columns).Limit(want).Find(&rows).Error; err != nil {
			return nil, err
		}
		at.Rows += int64(len(rows))
		for i := range rows {
			rv := reflect.ValueOf(&rows[i]).Elem()
			values, err := sortValues(ctx, q.table.name, columns, rv)
			if err != nil {
				return nil, err
			}
			if after != nil && compareRows(columns, after, values) >= 0 {
				return nil, &OrderError{Table: q.table.name, Column: columns[0].field.DBName, Problem: "shard " + string(at.Shard) + " sent rows in another order than theirs"}
			}
			after = values
			if _, owned := f.owned(ctx, q.table, at, rv); !owned {
				at.Dropped++
				continue
			}
			list = append(list, sortedRow[T]{row: rows[i], values: values})
		}
		if len(rows) < want || len(list) >= n {
			return list[:min(n, len(list))], nil
		}
	}
}

// orderBy adds the order, NULL being the smallest value.
func orderBy(db *gorm.DB, t *table, d Dialect, columns []orderColumn) *gorm.DB {
	for _, c := range columns {
		column := clause.OrderByColumn{Column: clause.Column{Table: clause.CurrentTable, Name: c.field.DBName}, Desc: c.desc}
		if d == Postgres && c.nullable { // whose NULL is the largest
			suffix := " ASC NULLS FIRST"
			if c.desc {
				suffix = " DESC NULLS LAST"
			}
			column = clause.OrderByColumn{Column: clause.Column{Name: `"` + t.name + `"."` + c.field.DBName + `"` + suffix, Raw: true}}
		}
		db = db.Order(column)
	}
	return db
}

// beyondValues is what holds for the rows after a point of the order; key is the shard key's field.
func beyondValues(key *schema.Field, columns []orderColumn, after []sortValue) clause.Expression {
	var or []clause.Expression
	for i, c := range columns {
		var and []clause.Expression
		for j := range i {
			column, value := columnOf(columns[j].field), after[j].bound()
			if columns[j].field == key { // an equality would name a key, which may be another shard's: the point is one of all shards
				and = append(and, clause.Gte{Column: column, Value: value}, clause.Lte{Column: column, Value: value})
				continue
			}
			and = append(and, clause.Eq{Column: column, Value: value}) // NULL: IS NULL
		}
		column := columnOf(c.field)
		switch {
		case after[i].null && c.desc: // nothing is smaller than NULL
			continue
		case after[i].null:
			and = append(and, clause.Neq{Column: column, Value: nil})
		case c.desc && c.nullable:
			and = append(and, clause.Or(clause.Lt{Column: column, Value: after[i].bound()}, clause.Eq{Column: column, Value: nil}))
		case c.desc:
			and = append(and, clause.Lt{Column: column, Value: after[i].bound()})
		default:
			and = append(and, clause.Gt{Column: column, Value: after[i].bound()})
		}
		or = append(or, clause.And(and...))
	}
	if len(or) == 1 {
		return or[0] // gorm joins an OR of one by OR with what stands before it
	}
	return clause.And(clause.Or(or...))
}

func columnOf(f *schema.Field) clause.Column {
	return clause.Column{Table: clause.CurrentTable, Name: f.DBName}
}

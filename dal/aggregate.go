package dal

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"

	"gorm.io/gorm/schema"
)

// MaxGroups is how many groups, or how many distinct values of one aggregate, a shard may hold of an aggregate over shards. See [ErrGroups].
const MaxGroups = 20_000

type aggregateKind uint8

const (
	countRows aggregateKind = iota
	sumOf
	avgOf
	minOf
	maxOf
	countDistinct
	sumDistinct
)

// Aggregation is one aggregate of [Query.Aggregate]. The zero value is [Count].
type Aggregation struct {
	kind   aggregateKind
	column string
}

// Count counts rows.
func Count() Aggregation { return Aggregation{} }

// Sum adds a column of whole numbers, exactly.
func Sum(column string) Aggregation { return Aggregation{sumOf, column} }

// Avg is the mean of a column of whole numbers, exactly.
func Avg(column string) Aggregation { return Aggregation{avgOf, column} }

// Min is the smallest value of a column, in the order of [Query.OrderBy].
func Min(column string) Aggregation { return Aggregation{minOf, column} }

// Max is the largest value of a column.
func Max(column string) Aggregation { return Aggregation{maxOf, column} }

// CountDistinct counts the values of a column. Each shard sends its distinct values, at most [MaxGroups].
func CountDistinct(column string) Aggregation { return Aggregation{countDistinct, column} }

// SumDistinct adds the distinct values of a column of whole numbers. Each shard sends them, at most [MaxGroups].
func SumDistinct(column string) Aggregation { return Aggregation{sumDistinct, column} }

// String returns the aggregate as SQL writes it, such as SUM(qty). It is the column by which an [Order] names it.
func (a Aggregation) String() string {
	switch a.kind {
	case sumOf:
		return "SUM(" + a.column + ")"
	case avgOf:
		return "AVG(" + a.column + ")"
	case minOf:
		return "MIN(" + a.column + ")"
	case maxOf:
		return "MAX(" + a.column + ")"
	case countDistinct:
		return "COUNT(DISTINCT " + a.column + ")"
	case sumDistinct:
		return "SUM(DISTINCT " + a.column + ")"
	}
	return "COUNT(*)"
}

func (a Aggregation) distinct() bool { return a.kind == countDistinct || a.kind == sumDistinct }

func (a Aggregation) sums() bool { return a.kind == sumOf || a.kind == avgOf || a.kind == sumDistinct }

// Grouped is a query over shards whose rows are grouped. Make it with [Query.GroupBy].
type Grouped[T any] struct {
	query Query[T]
	by    []string
}

// GroupBy groups the rows by columns. Order, limit and offset of the query are then those of the groups: an order names columns of the group, or aggregates by
// [Aggregation.String]; the columns of the group that it does not name follow, ascending.
func (q Query[T]) GroupBy(columns ...string) Grouped[T] {
	return Grouped[T]{query: q, by: slices.Clone(columns)}
}

// AggregateRow is one group.
type AggregateRow struct {
	// Group are the values of the columns of GroupBy: int64, uint64, string, []byte or time.Time in UTC; nil for NULL.
	Group []any
	// Values are those of the aggregates, in the order asked for: *big.Int of counts and sums, *big.Rat of Avg, and as in Group of Min and Max. nil is NULL,
	// which all but counts are of no values.
	Values []any
}

// AggregateResult is what an aggregate over shards returned.
type AggregateResult struct {
	Rows []AggregateRow
	// Report says which shards were touched. Its rows are the partial results that they sent.
	Report FanOutReport
}

// Aggregate returns the aggregates of all rows, in one row; limit and offset do not matter to it. See [Grouped.Aggregate].
func (q Query[T]) Aggregate(ctx context.Context, aggregates ...Aggregation) (AggregateResult, error) {
	q.limit, q.offset = 1, 0
	return Grouped[T]{query: q}.Aggregate(ctx, aggregates...)
}

// Aggregate returns the aggregates of each group, as one database with all rows would: each shard sends partial results, which are merged. The limit is sent to the
// shards when the order names columns of the group alone; otherwise each sends all its groups, at most [MaxGroups]. Values of distinct aggregates are read by a
// query of their own, so that a write in between may show in one and not in the other.
//
// While the keyspace is Moving the shards group by the shard key too, and what a shard does not own is left out: each row counts once.
//
// The errors are those of [Query.Find]; an [*OrderError] also reports a column of a group or an aggregate whose values cannot be compared as its database does,
// or summed exactly; a [*GroupsError] too many groups. With Partial, rows of a failed shard are missing from every group.
func (g Grouped[T]) Aggregate(ctx context.Context, aggregates ...Aggregation) (AggregateResult, error) {
	p, err := g.plan(aggregates)
	if err != nil {
		return AggregateResult{}, err
	}
	f, err := g.query.store.plan(ctx, g.query.spec)
	if err != nil {
		return AggregateResult{}, err
	}
	k, _ := f.topology.Keyspace(g.query.table.Keyspace)
	p.moving = k.Moving
	parts := make([]aggregatePart, len(f.shards))
	report, err := f.run(ctx, func(ctx context.Context, at *ShardRead, b *binding) error {
		i := f.index(at)
		part, err := g.part(ctx, p, f, at, b)
		parts[i] = part
		return err
	})
	if err != nil && !g.query.spec.Partial {
		return AggregateResult{Report: report}, err
	}
	var whole aggregatePart
	for i := range report.Shards {
		if report.Shards[i].Err == nil {
			whole.add(parts[i])
		}
	}
	return AggregateResult{Rows: p.rows(whole), Report: report}, err
}

// aggregatePlan is an aggregate that was judged.
type aggregatePlan struct {
	aggregates []Aggregation
	columns    []orderColumn // of the groups, in their order
	place      []int         // of each column of GroupBy in columns
	values     []orderColumn // of the aggregates; without a field for COUNT(*)
	orders     []aggregateOrder
	first      int // how many groups of a shard are enough; 0: all
	limit      int
	offset     int
	moving     bool
}

// aggregateOrder orders by an aggregate, or by a column of the group.
type aggregateOrder struct {
	aggregate bool
	index     int
	desc      bool
}

// plan judges the call.
func (g Grouped[T]) plan(aggregates []Aggregation) (*aggregatePlan, error) {
	q := g.query
	if q.err != nil {
		return nil, q.err
	}
	refuse := func(shape, hint string) (*aggregatePlan, error) {
		return nil, &ShapeError{Shape: shape, Table: q.table.name, Hint: hint}
	}
	p := &aggregatePlan{aggregates: aggregates, limit: q.limit, offset: q.offset}
	switch {
	case len(aggregates) == 0:
		return refuse("an aggregate over shards of nothing", "name one, such as Count")
	case q.limit < 1 || q.limit > MaxPage:
		return refuse(fmt.Sprintf("a limit of %d over shards", q.limit), fmt.Sprintf("ask for 1 to %d groups", MaxPage))
	case q.offset < 0 || q.offset > MaxOffset:
		return nil, &OffsetError{Offset: q.offset}
	}
	column := func(name string) (orderColumn, error) {
		f := q.table.schema.FieldsByDBName[name]
		if f == nil || f == q.table.tenant {
			return orderColumn{}, &ShapeError{Shape: fmt.Sprintf("an aggregate over shards with column %q", name), Table: q.table.name, Hint: "name columns of the model, and not tenant_id"}
		}
		c := orderColumn{field: f, kind: sortKindOf(f)}
		if c.kind == noSort {
			return c, &OrderError{Table: q.table.name, Column: name, Problem: "its field is a " + f.FieldType.String() + ", whose values are not compared as the database does"}
		}
		return c, nil
	}
	for i, name := range g.by {
		if slices.Contains(g.by[:i], name) {
			return refuse(fmt.Sprintf("a group by %q twice", name), "name each column once")
		}
	}
	p.first = q.offset + q.limit
	for _, o := range q.orders {
		if slices.Contains(g.by, o.Column) {
			if slices.ContainsFunc(p.columns, func(c orderColumn) bool { return c.field.DBName == o.Column }) {
				return refuse(fmt.Sprintf("an order by %q twice", o.Column), "name each column once")
			}
			c, err := column(o.Column)
			if err != nil {
				return nil, err
			}
			c.desc = o.Desc
			p.orders = append(p.orders, aggregateOrder{index: len(p.columns), desc: o.Desc})
			p.columns = append(p.columns, c)
			continue
		}
		i := slices.IndexFunc(aggregates, func(a Aggregation) bool { return a.String() == o.Column })
		if i < 0 {
			return refuse(fmt.Sprintf("an order of groups by %q", o.Column), "name a column of GroupBy, or an aggregate that is asked for")
		}
		p.orders = append(p.orders, aggregateOrder{aggregate: true, index: i, desc: o.Desc})
		p.first = 0
	}
	for _, name := range g.by {
		i := slices.IndexFunc(p.columns, func(c orderColumn) bool { return c.field.DBName == name })
		if i < 0 {
			c, err := column(name)
			if err != nil {
				return nil, err
			}
			i = len(p.columns)
			p.orders = append(p.orders, aggregateOrder{index: i})
			p.columns = append(p.columns, c)
		}
		p.place = append(p.place, i)
	}
	for _, a := range aggregates {
		var c orderColumn
		if a.kind != countRows {
			var err error
			if c, err = column(a.column); err != nil {
				return nil, err
			}
			if a.sums() && c.kind != intSort && c.kind != uintSort {
				return nil, &OrderError{Table: q.table.name, Column: a.column, Problem: "its field is a " + c.field.FieldType.String() + ", which has no exact sum"}
			}
		}
		p.values = append(p.values, c)
	}
	return p, nil
}

// aggregateCell is an aggregate of one group, as far as it is known.
type aggregateCell struct {
	count int64
	sum   *big.Int  // nil: NULL
	value sortValue // of Min and Max
}

// aggregateGroup is a group with what is known of it.
type aggregateGroup struct {
	values []sortValue // of the plan's columns
	cells  []aggregateCell
}

// aggregatePart is what a shard sent, or several.
type aggregatePart struct {
	columns  []orderColumn // as the shard has them
	own      []orderColumn // of the aggregates
	groups   []aggregateGroup
	distinct [][]aggregateValue // by aggregate
}

// aggregateValue is a distinct value of a group: the group's values, and then itself.
type aggregateValue []sortValue

// add puts another shard's part to this one's.
func (a *aggregatePart) add(b aggregatePart) {
	if a.distinct == nil {
		a.columns, a.own, a.distinct = b.columns, b.own, make([][]aggregateValue, len(b.distinct))
	}
	a.groups = append(a.groups, b.groups...)
	for i := range b.distinct {
		a.distinct[i] = append(a.distinct[i], b.distinct[i]...)
	}
}

// fold adds a group to the last of a list where the two are one.
func (p *aggregatePlan) fold(columns, own []orderColumn, list []aggregateGroup, g aggregateGroup) []aggregateGroup {
	if len(list) == 0 || compareRows(columns, list[len(list)-1].values, g.values) != 0 {
		return append(list, g)
	}
	cells := list[len(list)-1].cells
	for i, c := range g.cells {
		have := &cells[i]
		have.count += c.count
		switch {
		case have.sum == nil:
			have.sum = c.sum
		case c.sum != nil:
			have.sum = new(big.Int).Add(have.sum, c.sum)
		}
		if c.value.null {
			continue
		}
		n := compareValues(c.value, have.value, own[i].padded)
		if have.value.null || p.aggregates[i].kind == minOf && n < 0 || p.aggregates[i].kind == maxOf && n > 0 {
			have.value = c.value
		}
	}
	return list
}

// noCells are those of no rows.
func (p *aggregatePlan) noCells() []aggregateCell {
	cells := make([]aggregateCell, len(p.aggregates))
	for i := range cells {
		cells[i].value = sortValue{null: true, kind: p.values[i].kind}
	}
	return cells
}

// rows merges what the shards sent.
func (p *aggregatePlan) rows(whole aggregatePart) []AggregateRow {
	slices.SortStableFunc(whole.groups, func(a, b aggregateGroup) int { return compareRows(whole.columns, a.values, b.values) })
	var groups []aggregateGroup
	for _, g := range whole.groups {
		groups = p.fold(whole.columns, whole.own, groups, g)
	}
	if len(groups) == 0 && len(p.columns) == 0 {
		groups = []aggregateGroup{{cells: p.noCells()}}
	}
	for i, list := range whole.distinct {
		p.addDistinct(whole.columns, i, groups, list, whole.own[i])
	}
	slices.SortStableFunc(groups, func(a, b aggregateGroup) int {
		for _, o := range p.orders {
			n := 0
			if o.aggregate {
				n = p.compareCells(o.index, whole.own, a.cells[o.index], b.cells[o.index])
			} else {
				n = compareValues(a.values[o.index], b.values[o.index], whole.columns[o.index].padded)
			}
			if o.desc {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return 0
	})
	groups = groups[min(p.offset, len(groups)):]
	groups = groups[:min(p.limit, len(groups))]
	rows := make([]AggregateRow, len(groups))
	for i, g := range groups {
		for _, at := range p.place {
			rows[i].Group = append(rows[i].Group, g.values[at].bound())
		}
		for j, c := range g.cells {
			rows[i].Values = append(rows[i].Values, p.result(j, c))
		}
	}
	return rows
}

// addDistinct adds the distinct values of one aggregate to their groups.
func (p *aggregatePlan) addDistinct(columns []orderColumn, i int, groups []aggregateGroup, list []aggregateValue, own orderColumn) {
	all := append(slices.Clone(columns), own)
	compare := func(a, b aggregateValue) int { return compareRows(all, a, b) }
	slices.SortFunc(list, compare)
	for _, v := range slices.CompactFunc(list, func(a, b aggregateValue) bool { return compare(a, b) == 0 }) {
		at, ok := slices.BinarySearchFunc(groups, v, func(g aggregateGroup, v aggregateValue) int { return compareRows(columns, g.values, v[:len(columns)]) })
		last := v[len(columns)]
		if !ok || last.null {
			continue
		}
		c := &groups[at].cells[i]
		c.count++
		if p.aggregates[i].kind == sumDistinct {
			n := new(big.Int).SetInt64(last.i)
			if last.kind == uintSort {
				n.SetUint64(last.u)
			}
			if c.sum != nil {
				n.Add(n, c.sum)
			}
			c.sum = n
		}
	}
}

// result is an aggregate's value; nil for NULL.
func (p *aggregatePlan) result(i int, c aggregateCell) any {
	switch kind := p.aggregates[i].kind; {
	case kind == countRows || kind == countDistinct:
		return big.NewInt(c.count)
	case kind == minOf || kind == maxOf:
		return c.value.bound()
	case c.sum == nil:
		return nil
	case kind == avgOf:
		return new(big.Rat).SetFrac(c.sum, big.NewInt(c.count))
	}
	return c.sum
}

// compareCells compares two values of one aggregate; NULL is the smallest.
func (p *aggregatePlan) compareCells(i int, own []orderColumn, a, b aggregateCell) int {
	if kind := p.aggregates[i].kind; kind == minOf || kind == maxOf {
		return compareValues(a.value, b.value, own[i].padded)
	}
	switch x := p.result(i, a).(type) {
	case nil:
		if p.result(i, b) == nil {
			return 0
		}
		return -1
	case *big.Int:
		if y, ok := p.result(i, b).(*big.Int); ok {
			return x.Cmp(y)
		}
	case *big.Rat:
		if y, ok := p.result(i, b).(*big.Rat); ok {
			return x.Cmp(y)
		}
	}
	return cmp.Compare(1, 0)
}

// withKey adds the shard key to the columns that a shard groups by, where the keyspace is moving.
func (p *aggregatePlan) withKey(columns []orderColumn, key orderColumn) []orderColumn {
	if !p.moving || slices.ContainsFunc(columns, func(c orderColumn) bool { return c.field == key.field }) {
		return columns
	}
	return append(slices.Clone(columns), key)
}

// keyColumn is the shard key.
func keyColumn(f *schema.Field) orderColumn { return orderColumn{field: f, kind: sortKindOf(f)} }

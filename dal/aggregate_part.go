package dal

import (
	"context"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// aggregateChunk is how many groups one query of a shard returns.
const aggregateChunk = 2000

// part asks one shard.
func (g Grouped[T]) part(ctx context.Context, p *aggregatePlan, f *fanOut, at *ShardRead, b *binding) (aggregatePart, error) {
	t := g.query.table
	columns, err := b.db.orderOf(ctx, t, p.columns)
	if err != nil {
		return aggregatePart{}, err
	}
	part := aggregatePart{columns: columns, own: make([]orderColumn, len(p.values)), distinct: make([][]aggregateValue, len(p.values))}
	for i, c := range p.values {
		if c.field != nil {
			own, err := b.db.orderOf(ctx, t, []orderColumn{c})
			if err != nil {
				return part, err
			}
			part.own[i] = own[0]
		}
	}
	var key orderColumn
	if p.moving {
		own, err := b.db.orderOf(ctx, t, []orderColumn{keyColumn(t.shardKey)})
		if err != nil {
			return part, err
		}
		key = own[0]
	}
	quote := handle(ctx, b, &pool{b}).Statement.Quote
	selected := p.selected(b.db.dialect, quote)
	err = g.each(ctx, p, f, at, b, p.withKey(columns, key), selected, p.first, func(values []sortValue, row map[string]any) (bool, error) {
		cells, err := p.cells(t.name, b.db.dialect, row)
		if err != nil {
			return false, err
		}
		part.groups = p.fold(columns, part.own, part.groups, aggregateGroup{values: values[:len(columns)], cells: cells})
		if len(part.groups) > MaxGroups {
			return false, &GroupsError{Table: t.name, Shard: at.Shard, What: "groups"}
		}
		return p.first > 0 && len(part.groups) > p.first, nil
	})
	for i, a := range p.aggregates {
		if err != nil || !a.distinct() {
			continue
		}
		by := append(columns[:len(columns):len(columns)], part.own[i])
		asked, place := by, len(columns)
		for j, c := range columns {
			if c.field == part.own[i].field { // a column of the group: named once
				asked, place = columns, j
			}
		}
		err = g.each(ctx, p, f, at, b, p.withKey(asked, key), nil, 0, func(values []sortValue, _ map[string]any) (bool, error) {
			v := append(aggregateValue{}, values[:len(columns)]...)
			v = append(v, values[place])
			if n := len(part.distinct[i]); n > 0 && compareRows(by, part.distinct[i][n-1], v) == 0 {
				return false, nil
			}
			part.distinct[i] = append(part.distinct[i], v)
			if len(part.distinct[i]) > MaxGroups {
				return false, &GroupsError{Table: t.name, Shard: at.Shard, What: "values of " + a.String()}
			}
			return false, nil
		})
	}
	return part, err
}

// each calls fn with each group of a shard, in the order of columns, until it says that it has enough. With the shard key among the columns of a keyspace that is
// moving, groups that the shard does not own are dropped. first is how many groups are enough, 0 for all.
func (g Grouped[T]) each(ctx context.Context, p *aggregatePlan, f *fanOut, at *ShardRead, b *binding, columns []orderColumn, selected []string, first int, fn func([]sortValue, map[string]any) (bool, error)) error {
	t := g.query.table
	var groups []clause.Column
	names := make([]string, 0, len(columns)+len(selected))
	for _, c := range columns {
		names = append(names, c.field.DBName)
		groups = append(groups, columnOf(c.field))
	}
	names = append(names, selected...)
	chunk := aggregateChunk
	if first > 0 && !p.moving {
		chunk = min(chunk, first)
	}
	var after []sortValue
	for {
		db := g.query.filtered(handle(ctx, b, &pool{b}).Model(new(T)).Select(names))
		if after != nil {
			db = db.Where(beyondValues(t.shardKey, columns, after))
		}
		if len(columns) > 0 {
			db = orderBy(db.Clauses(clause.GroupBy{Columns: groups}), t, b.db.dialect, columns).Limit(chunk)
		}
		rows, err := rowsAsMaps(db)
		if err != nil {
			return err
		}
		at.Queries++
		at.Rows += int64(len(rows))
		for _, row := range rows {
			values := make([]sortValue, len(columns))
			for i, c := range columns {
				v, ok := sortValueOf(c.kind, row[c.field.DBName])
				if !ok {
					return &OrderError{Table: t.name, Column: c.field.DBName, Problem: fmt.Sprintf("a value of it is a %T", row[c.field.DBName])}
				}
				v.kind = c.kind
				values[i] = v
			}
			if after != nil && compareRows(columns, after, values) >= 0 {
				return &OrderError{Table: t.name, Column: columns[0].field.DBName, Problem: "shard " + string(at.Shard) + " sent groups in another order than theirs"}
			}
			after = values
			if p.moving {
				key, err := shardrouter.KeyOf(plainKey(row[t.shardKey.DBName]))
				if err == nil {
					var owner shardrouter.ShardID
					if owner, err = f.topology.Owner(t.Keyspace, string(f.tenant.ID), key); err == nil && owner != at.Shard {
						at.Dropped++
						continue
					}
				}
				if err != nil { // a key that no shard may own is nobody's
					at.Dropped++
					continue
				}
			}
			enough, err := fn(values, row)
			if err != nil || enough {
				return err
			}
		}
		if len(columns) == 0 || len(rows) < chunk || first > 0 && !p.moving && chunk == first {
			return nil
		}
	}
}

func rowsAsMaps(db *gorm.DB) ([]map[string]any, error) {
	var rows []map[string]any
	err := db.Find(&rows).Error
	return rows, err
}

// selected are the expressions of the aggregates. A sum of SQLite fails when it leaves 64 bits, so that the halves are summed by themselves.
func (p *aggregatePlan) selected(d Dialect, quote func(any) string) []string {
	var out []string
	add := func(i int, what, expression string) { out = append(out, expression+" AS "+aggregateName(i, what)) }
	for i, a := range p.aggregates {
		switch column := quote(a.column); a.kind {
		case countRows:
			add(i, "count", "COUNT(*)")
		case sumOf, avgOf:
			if d == SQLite {
				add(i, "high", "SUM("+column+" >> 32)")
				add(i, "sum", "SUM("+column+" & 4294967295)")
			} else {
				add(i, "sum", "SUM("+column+")")
			}
			add(i, "count", "COUNT("+column+")")
		case minOf:
			add(i, "value", "MIN("+column+")")
		case maxOf:
			add(i, "value", "MAX("+column+")")
		}
	}
	if len(out) == 0 { // distinct aggregates alone: the groups
		out = append(out, "COUNT(*) AS tdal_rows")
	}
	return out
}

func aggregateName(i int, what string) string { return "tdal_" + strconv.Itoa(i) + "_" + what }

// cells reads the aggregates of one row.
func (p *aggregatePlan) cells(table string, d Dialect, row map[string]any) ([]aggregateCell, error) {
	cells := p.noCells()
	for i, a := range p.aggregates {
		c := &cells[i]
		refuse := func(v any) error {
			return &OrderError{Table: table, Column: a.column, Problem: fmt.Sprintf("the database returned a %T as %s", v, a)}
		}
		number := func(what string) (*big.Int, error) {
			v := row[aggregateName(i, what)]
			n, ok := wholeNumber(v)
			if !ok {
				return nil, refuse(v)
			}
			return n, nil
		}
		switch a.kind {
		case countRows, sumOf, avgOf:
			n, err := number("count")
			if err != nil {
				return nil, err
			}
			if n != nil {
				c.count = n.Int64()
			}
			if a.kind == countRows {
				continue
			}
			if c.sum, err = number("sum"); err != nil {
				return nil, err
			}
			if d == SQLite && c.sum != nil {
				high, err := number("high")
				if err != nil {
					return nil, err
				}
				if high != nil {
					c.sum.Add(c.sum, high.Lsh(high, 32))
				}
			}
		case minOf, maxOf:
			v := row[aggregateName(i, "value")]
			var ok bool
			if c.value, ok = extreme(p.values[i].kind, v); !ok {
				return nil, refuse(v)
			}
		}
	}
	return cells, nil
}

// wholeNumber reads a whole number as drivers return it, or its decimal text; nil for NULL.
func wholeNumber(v any) (*big.Int, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case int64:
		return big.NewInt(v), true
	case uint64:
		return new(big.Int).SetUint64(v), true
	case []byte:
		return new(big.Int).SetString(string(v), 10)
	case string:
		return new(big.Int).SetString(v, 10)
	}
	return nil, false
}

// sqliteTimes are the forms in which SQLite's drivers write times. An expression's result has no type there, and comes as text.
var sqliteTimes = []string{"2006-01-02 15:04:05.999999999-07:00", "2006-01-02T15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02"}

// extreme reads a smallest or largest value.
func extreme(kind sortKind, v any) (sortValue, bool) {
	switch {
	case v == nil:
		return sortValue{null: true, kind: kind}, true
	case kind == intSort || kind == uintSort:
		n, ok := wholeNumber(v)
		if !ok {
			return sortValue{}, false
		}
		if kind == intSort {
			return sortValue{kind: kind, i: n.Int64()}, n.IsInt64()
		}
		return sortValue{kind: kind, u: n.Uint64()}, n.IsUint64()
	case kind == textSort:
		switch text := v.(type) {
		case []byte:
			return sortValue{kind: kind, s: text}, true
		case string:
			return sortValue{kind: kind, s: []byte(text)}, true
		}
		return sortValue{}, false
	}
	if text, ok := v.(string); ok {
		for _, form := range sqliteTimes {
			if at, err := time.Parse(form, text); err == nil {
				return sortValue{kind: kind, t: at.UTC()}, true
			}
		}
		return sortValue{}, false
	}
	return sortValueOf(kind, v)
}

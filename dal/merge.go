package dal

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/schema"
)

// sortKind is how the values of a column are compared.
type sortKind uint8

const (
	noSort sortKind = iota
	intSort
	uintSort
	textSort
	timeSort
)

// orderColumn is a column of an order. What is below kind is known of a database's own column: see [database.orderOf].
type orderColumn struct {
	field    *schema.Field
	desc     bool
	kind     sortKind
	nullable bool
	padded   bool // texts are compared as if the shorter ended in blanks
}

// sortKindOf returns how a field's values are compared; noSort where that is not known to be the database's way.
func sortKindOf(f *schema.Field) sortKind {
	if f.Serializer != nil {
		return noSort
	}
	switch f.GORMDataType {
	case schema.Int:
		return intSort
	case schema.Uint:
		return uintSort
	case schema.String, schema.Bytes:
		return textSort
	case schema.Time:
		return timeSort
	}
	return noSort
}

// sortValue is one value of a row's place in an order.
type sortValue struct {
	null bool
	kind sortKind
	i    int64
	u    uint64
	s    []byte
	raw  bool // s was bytes, not text
	t    time.Time
}

// bound returns the value as it is bound into a statement; nil for NULL.
func (v sortValue) bound() any {
	switch {
	case v.null:
		return nil
	case v.kind == intSort:
		return v.i
	case v.kind == uintSort:
		return v.u
	case v.kind == timeSort:
		return v.t
	case v.raw:
		return v.s
	}
	return string(v.s)
}

// sortValues reads the values that order a row.
func sortValues(ctx context.Context, table string, columns []orderColumn, row reflect.Value) ([]sortValue, error) {
	values := make([]sortValue, len(columns))
	for i, c := range columns {
		raw, _ := c.field.ValueOf(ctx, row)
		v, ok := sortValueOf(c.kind, raw)
		if !ok {
			return nil, &OrderError{Table: table, Column: c.field.DBName, Problem: fmt.Sprintf("a value of it is a %T", raw)}
		}
		values[i] = v
	}
	return values, nil
}

func sortValueOf(kind sortKind, v any) (sortValue, bool) {
	if valuer, ok := v.(driver.Valuer); ok {
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
			return sortValue{null: true, kind: kind}, true
		}
		var err error
		if v, err = valuer.Value(); err != nil {
			return sortValue{}, false
		}
	}
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return sortValue{null: true, kind: kind}, true
		}
		rv = rv.Elem()
	}
	out := sortValue{kind: kind}
	switch {
	case !rv.IsValid() || rv.Kind() == reflect.Slice && rv.IsNil():
		out.null = true
	case kind == intSort && rv.CanInt():
		out.i = rv.Int()
	case kind == uintSort && rv.CanUint():
		out.u = rv.Uint()
	case kind == uintSort && rv.CanInt() && rv.Int() >= 0:
		out.u = uint64(rv.Int())
	case kind == textSort && rv.Kind() == reflect.String:
		out.s = []byte(rv.String())
	case kind == textSort && rv.Kind() == reflect.Slice && rv.Type().Elem().Kind() == reflect.Uint8:
		out.s, out.raw = rv.Bytes(), true
	case kind == timeSort && rv.Type() == reflect.TypeFor[time.Time]():
		out.t = rv.Interface().(time.Time).UTC()
	default:
		return out, false
	}
	return out, true
}

// compareRows compares two places in an order.
func compareRows(columns []orderColumn, a, b []sortValue) int {
	for i, c := range columns {
		n := compareValues(a[i], b[i], c.padded)
		if c.desc {
			n = -n
		}
		if n != 0 {
			return n
		}
	}
	return 0
}

// compareValues compares two values of one column; NULL is the smallest.
func compareValues(a, b sortValue, padded bool) int {
	switch {
	case a.null && b.null:
		return 0
	case a.null:
		return -1
	case b.null:
		return 1
	case a.kind == intSort:
		return cmp.Compare(a.i, b.i)
	case a.kind == uintSort:
		return cmp.Compare(a.u, b.u)
	case a.kind == timeSort:
		return a.t.Compare(b.t)
	case padded:
		return comparePadded(a.s, b.s)
	}
	return bytes.Compare(a.s, b.s)
}

// comparePadded compares as MySQL's PAD SPACE collations do: as if the shorter text went on with blanks.
func comparePadded(a, b []byte) int {
	short := min(len(a), len(b))
	if n := bytes.Compare(a[:short], b[:short]); n != 0 {
		return n
	}
	for _, c := range a[short:] {
		if c != ' ' {
			return cmp.Compare(c, ' ')
		}
	}
	for _, c := range b[short:] {
		if c != ' ' {
			return cmp.Compare(' ', c)
		}
	}
	return 0
}

// merge takes the first n rows of lists that are ordered each by itself. The same place in the order on two shards is refused: the primary key is there
// twice, and a page that ends between the two would lose one.
func merge[T any](table string, columns []orderColumn, lists [][]sortedRow[T], n int) ([]T, error) {
	heads := lists[:0:0]
	for _, l := range lists {
		if len(l) > 0 {
			heads = append(heads, l)
		}
	}
	less := func(a, b []sortedRow[T]) int { return compareRows(columns, a[0].values, b[0].values) }
	slices.SortStableFunc(heads, less)
	rows := make([]T, 0, n)
	var last []sortValue
	for len(heads) > 0 && len(rows) < n {
		first := heads[0]
		if last != nil && compareRows(columns, last, first[0].values) == 0 {
			return nil, &OrderError{Table: table, Column: columns[len(columns)-1].field.DBName, Problem: "two shards own a row with one primary key"}
		}
		last = first[0].values
		rows = append(rows, first[0].row)
		if heads = heads[1:]; len(first) > 1 { // back among the others, which are sorted
			first = first[1:]
			at, _ := slices.BinarySearchFunc(heads, first, less)
			heads = slices.Insert(heads, at, first)
		}
	}
	return rows, nil
}

// reproducible are the collations whose order is that of the bytes, with whether they pad.
var reproducible = map[string]bool{
	"ascii_bin": true, "utf8mb4_bin": true, "utf8mb3_bin": true, "utf8_bin": true, "utf8mb4_0900_bin": false,
	"ascii_nopad_bin": false, "utf8mb4_nopad_bin": false, "utf8mb3_nopad_bin": false, "utf8_nopad_bin": false,
}

var otherCollation = regexp.MustCompile("(?i)COLLATE\\s+[\"'`\\[]?(\\w+)")

// orderOf returns the columns of an order with what this database's own columns are, as they were when they were first asked for. An order that is no longer
// theirs shows in the rows, which are checked.
func (db *database) orderOf(ctx context.Context, t *table, columns []orderColumn) ([]orderColumn, error) {
	known, ok := db.ordered.Load(t.name)
	if !ok {
		asked, err := db.inspectColumns(ctx, t.name)
		if err != nil {
			return nil, err
		}
		known, _ = db.ordered.LoadOrStore(t.name, asked)
	}
	have := known.(map[string]column)
	own := slices.Clone(columns)
	for i := range own {
		c := &own[i]
		col, ok := have[c.field.DBName]
		problem := ""
		switch typ := strings.ToLower(col.Type); {
		case !ok:
			problem = "the database has no such column"
		case c.kind == timeSort:
			if !strings.Contains(typ, "date") && !strings.Contains(typ, "timestamp") {
				problem = "its type is " + typ
			}
		case c.kind == textSort:
			pads, known := reproducible[col.Collation]
			switch {
			case kindOf(col.Type, db.dialect) != textKind:
				problem = "its type is " + typ
			case db.dialect == Postgres && typ != "bytea" && (col.Loose || typ == "bpchar" || col.Collation != "c" && col.Collation != "posix"),
				db.dialect != Postgres && col.Collation != "" && !known:
				problem = fmt.Sprintf("its collation is %q; give it a binary one", col.Collation)
			}
			c.padded = pads
		case kindOf(col.Type, db.dialect) != integerKind:
			problem = "its type is " + typ
		}
		if problem != "" {
			return nil, &OrderError{Table: t.name, Column: c.field.DBName, Problem: problem}
		}
		c.nullable = col.Nullable
	}
	return own, nil
}

// inspectColumns returns a table's columns. On SQLite a text column has the collation that its table names anywhere, as far as that is another than BINARY.
func (db *database) inspectColumns(ctx context.Context, name string) (map[string]column, error) {
	s, err := db.inspect(ctx, name)
	if err != nil || db.dialect != SQLite {
		for n, c := range s.Columns {
			c.Collation = strings.ToLower(c.Collation)
			s.Columns[n] = c
		}
		return s.Columns, err
	}
	err = db.each(ctx, sqliteTable, name, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		for _, found := range otherCollation.FindAllStringSubmatch(text, -1) {
			if strings.EqualFold(found[1], "binary") {
				continue
			}
			for n, c := range s.Columns {
				if c.Collation == "" {
					c.Collation = strings.ToLower(found[1])
					s.Columns[n] = c
				}
			}
		}
		return nil
	})
	return s.Columns, err
}

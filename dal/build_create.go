package dal

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// buildCreate stamps the rows and builds the INSERT with the columns that may not be missing, whatever Select and Omit say.
func (b *binding) buildCreate(db *gorm.DB, t *table) error {
	stmt := db.Statement
	cells, err := b.stampAll(stmt, t)
	if err != nil {
		return err
	}
	if cells == nil && isSave(db) {
		return b.save(db, t)
	}
	given := stmt.Dest
	if cells != nil {
		stmt.Dest = cells
		defer func() { stmt.Dest = given }()
	}
	var kept keptClauses
	kept.keep(stmt, "INSERT", "VALUES", conflictClause)
	defer kept.restore(stmt)
	conflict, err := b.judgeConflict(stmt, t)
	if err != nil {
		return err
	}
	stmt.AddClauseIfNotExists(clause.Insert{})
	values := callbacks.ConvertToCreateValues(stmt)
	if db.Error != nil {
		return nil
	}
	force(stmt, t, cells, &values)
	if err := b.judgeCells(t, values); err != nil {
		return err
	}
	if conflict {
		if err := b.guardConflict(stmt, t); err != nil {
			return err
		}
	}
	stmt.AddClause(values)
	addReturning(stmt)
	stmt.Build(stmt.BuildClauses...)
	return nil
}

// keptClauses are a few clauses of a statement as they were, for a chain that is used again.
type keptClauses struct {
	names [3]string
	were  [3]clause.Clause
	had   [3]bool
}

// keep notes the named clauses.
func (k *keptClauses) keep(stmt *gorm.Statement, names ...string) {
	for i, name := range names {
		k.names[i] = name
		k.were[i], k.had[i] = stmt.Clauses[name]
	}
}

// restore puts them back.
func (k *keptClauses) restore(stmt *gorm.Statement) {
	for i, name := range k.names {
		switch {
		case name == "":
		case k.had[i]:
			stmt.Clauses[name] = k.were[i]
		default:
			delete(stmt.Clauses, name)
		}
	}
}

// judgeCells demands that each row's tenant is the handle's, and puts every expression into parentheses.
func (b *binding) judgeCells(t *table, values clause.Values) error {
	at := -1
	if t.tenant != nil && b.bypass == nil {
		at = slices.IndexFunc(values.Columns, func(c clause.Column) bool { return c.Name == TenantColumn })
	}
	for _, row := range values.Values {
		for i, v := range row {
			if i == at {
				if v != b.id {
					return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the row's TenantID"}
				}
				continue
			}
			if e, ok := v.(clause.Expr); ok && len(e.Vars) == 0 && (e.SQL == "DEFAULT" || e.SQL == "NULL") {
				continue // what gorm writes for a column with a default
			}
			row[i] = assigned(v)
		}
	}
	return nil
}

// assigned returns a value that is written into a column as it is printed: what writes SQL stands in parentheses, so that it stays one value.
func assigned(v any) any {
	switch x := v.(type) {
	case clause.Expr:
		x.SQL = "(" + x.SQL + ")"
		return x
	case *clause.Expr:
		if x != nil {
			return assigned(*x)
		}
		return nil
	case *gorm.DB, clause.Expression:
		return clause.Expr{SQL: "(?)", Vars: []any{x}}
	}
	return v
}

// isBound reports a value that gorm binds as one placeholder.
func isBound(v any) bool {
	switch v.(type) {
	case nil, []byte, driver.Valuer:
		return true
	case clause.Expression, clause.Column:
		return false
	}
	k := reflect.TypeOf(v).Kind()
	return k != reflect.Slice && k != reflect.Array || reflect.TypeOf(v).Elem().Kind() == reflect.Uint8
}

// must lists the columns that say whose row it is, where it lives, and which it is.
func (t *table) must() []*schema.Field { return t.keys }

func keysOf(t *table) []*schema.Field {
	fields := slices.Clone(t.schema.PrimaryFields)
	for _, f := range []*schema.Field{t.tenant, t.shardKey} {
		if f != nil && !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
	}
	return fields
}

// stampAll stamps every row of a create. For rows that are maps it returns copies of them by column.
func (b *binding) stampAll(stmt *gorm.Statement, t *table) (any, error) {
	maps, list, ok := mapsOf(stmt.Dest)
	if !ok {
		return nil, b.eachRow(stmt, t, true, func(row reflect.Value) error { return b.stamp(stmt.Context, t, row) })
	}
	out := make([]map[string]any, len(maps))
	for i, m := range maps {
		cells, row, err := t.cells(stmt.Context, m)
		if err != nil {
			return nil, err
		}
		if err := b.stamp(stmt.Context, t, row); err != nil {
			return nil, err
		}
		for _, f := range t.must() {
			v, zero := f.ValueOf(stmt.Context, row)
			if _, said := cells[f.DBName]; zero && !said {
				continue
			}
			cells[f.DBName] = v
		}
		if f := t.schema.PrioritizedPrimaryField; f != nil && m != nil && cells[f.DBName] != nil {
			if _, said := m[f.Name]; !said || f.Name == f.DBName {
				m[f.DBName] = cells[f.DBName] // as gorm does with the id that the database made
			}
		}
		out[i] = cells
	}
	if list {
		return out, nil
	}
	return out[0], nil
}

// admitAll refuses what stampAll would, and changes nothing.
func (b *binding) admitAll(stmt *gorm.Statement, t *table) error {
	var kept keptClauses
	kept.keep(stmt, conflictClause)
	_, err := b.judgeConflict(stmt, t)
	kept.restore(stmt)
	if err != nil {
		return err
	}
	maps, _, ok := mapsOf(stmt.Dest)
	if !ok {
		return b.eachRow(stmt, t, true, func(row reflect.Value) error { return b.admits(stmt.Context, t, row) })
	}
	for _, m := range maps {
		_, row, err := t.cells(stmt.Context, m)
		if err == nil {
			err = b.admits(stmt.Context, t, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mapsOf returns the maps of a create from maps, and whether they came as a list.
func mapsOf(dest any) (maps []map[string]any, list, ok bool) {
	switch m := dest.(type) {
	case map[string]any:
		return []map[string]any{m}, false, true
	case *map[string]any:
		if m == nil {
			return nil, false, false
		}
		return []map[string]any{*m}, false, true
	case []map[string]any:
		return m, true, true
	case *[]map[string]any:
		if m == nil {
			return nil, false, false
		}
		return *m, true, true
	}
	return nil, false, false
}

// cells returns a row that a map describes as a map by column, and a struct that holds its keys. The map's own keys may be columns or fields of the
// model, each column once.
func (t *table) cells(ctx context.Context, m map[string]any) (map[string]any, reflect.Value, error) {
	cells := make(map[string]any, len(m)+4)
	row := reflect.New(t.schema.ModelType).Elem()
	keys := t.must()
	for k, v := range m {
		f := t.schema.LookUpField(k)
		if f == nil || f.DBName == "" {
			return nil, row, &ShapeError{Shape: "create from a map with a key that is no column of the model", Table: t.name, Hint: "name a column or a field of the model"}
		}
		if _, twice := cells[f.DBName]; twice {
			return nil, row, &ShapeError{Shape: "create from a map that names column " + f.DBName + " twice", Table: t.name, Hint: "name each column once"}
		}
		cells[f.DBName] = v
		if v == nil || !slices.Contains(keys, f) {
			continue
		}
		if writesSQL(reflect.TypeOf(v)) || !isBound(v) {
			return nil, row, &ShapeError{Shape: fmt.Sprintf("key column %s of type %T", f.DBName, v), Table: t.name, Hint: "give a value of the column's type"}
		}
		if err := f.Set(ctx, row, v); err != nil {
			return nil, row, &ShapeError{Shape: fmt.Sprintf("key column %s of type %T", f.DBName, v), Table: t.name, Hint: "give a value of the column's type"}
		}
	}
	return cells, row, nil
}

// force adds tenant_id, the key and the shard key where Select or Omit dropped them. cells are the rows of a create from maps, or nil.
func force(stmt *gorm.Statement, t *table, cells any, values *clause.Values) {
	maps, _, isMaps := mapsOf(cells)
	for _, f := range t.must() {
		if slices.ContainsFunc(values.Columns, func(c clause.Column) bool { return c.Name == f.DBName }) {
			continue
		}
		if isMaps {
			if !slices.ContainsFunc(maps, func(m map[string]any) bool { _, said := m[f.DBName]; return said }) {
				continue // a key that the database makes
			}
			for len(values.Values) < len(maps) {
				values.Values = append(values.Values, nil)
			}
		}
		values.Columns = append(values.Columns, clause.Column{Name: f.DBName})
		rv := reflect.Indirect(stmt.ReflectValue)
		for i := range values.Values {
			if isMaps {
				values.Values[i] = append(values.Values[i], maps[i][f.DBName])
				continue
			}
			row := rv
			if rv.Kind() == reflect.Slice || rv.Kind() == reflect.Array {
				row = reflect.Indirect(rv.Index(i))
			}
			v, _ := f.ValueOf(stmt.Context, row)
			values.Values[i] = append(values.Values[i], v)
		}
	}
}

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

	"github.com/tenantdal/tenantdal/tenant"
)

// buildCreate stamps the rows and builds the INSERT with the columns that may not be missing, whatever Select and Omit say.
//
// It returns the positions of each row's tenant among the values.
func (b *binding) buildCreate(db *gorm.DB, t *table) ([]int, error) {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, true, func(row reflect.Value) error { return b.stamp(stmt.Context, t, row) }); err != nil {
		return nil, err
	}
	stmt.AddClauseIfNotExists(clause.Insert{})
	values := callbacks.ConvertToCreateValues(stmt)
	if db.Error != nil {
		return nil, nil
	}
	if err := b.force(stmt, t, &values); err != nil {
		return nil, err
	}
	owners, err := b.ownersOf(t, values)
	if err != nil {
		return nil, err
	}
	stmt.AddClause(values)
	stmt.Build(stmt.BuildClauses...)
	return owners, nil
}

// ownersOf judges every value of an INSERT, and finds each row's tenant among those that are bound.
func (b *binding) ownersOf(t *table, values clause.Values) ([]int, error) {
	owner := -1
	if t.tenant != nil && b.bypass == nil {
		owner = slices.IndexFunc(values.Columns, func(c clause.Column) bool { return c.Name == TenantColumn })
	}
	var owners []int
	bound := 0
	for _, row := range values.Values {
		for i, v := range row {
			if e, ok := v.(clause.Expr); ok && len(e.Vars) == 0 && (e.SQL == "DEFAULT" || e.SQL == "NULL") {
				continue // what gorm writes for a column with a default
			}
			why := judgeValue(v, true)
			if why == "" && !isBound(v) {
				why = fmt.Sprintf("a value of type %T", v)
			}
			if why != "" {
				return nil, &ShapeError{Shape: "inserted value: " + why, Table: t.name, Hint: "insert values, not expressions"}
			}
			if i == owner {
				if v != b.id {
					return nil, &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the row's TenantID"}
				}
				owners = append(owners, bound)
			}
			bound++
		}
	}
	return owners, nil
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

// eachRow calls fn for each row of the statement's value.
func (b *binding) eachRow(stmt *gorm.Statement, t *table, strict bool, fn func(reflect.Value) error) error {
	rv := reflect.Indirect(stmt.ReflectValue)
	switch rv.Kind() {
	case reflect.Struct:
		if rv.Type() != t.schema.ModelType {
			break
		}
		if !rv.CanAddr() && strict {
			return &ShapeError{Shape: "create by value", Table: t.name, Hint: "pass a pointer"}
		}
		return fn(rv)
	case reflect.Slice, reflect.Array:
		for i := range rv.Len() {
			row := reflect.Indirect(rv.Index(i))
			if !row.IsValid() || row.Kind() != reflect.Struct || row.Type() != t.schema.ModelType || !row.CanAddr() {
				if !strict {
					continue
				}
				return &ShapeError{Shape: "create of something that is not the model", Table: t.name, Hint: "pass the model's structs"}
			}
			if err := fn(row); err != nil {
				return err
			}
		}
		return nil
	}
	if strict {
		return &ShapeError{Shape: "create from a map or another struct", Table: t.name, Hint: "pass the model's struct"}
	}
	return nil
}

// admits refuses a new row of another tenant, or one whose key another shard owns.
func (b *binding) admits(ctx context.Context, t *table, row reflect.Value) error {
	if t.tenant != nil {
		v, zero := t.tenant.ValueOf(ctx, row)
		switch {
		case b.bypass != nil && zero:
			return &MismatchError{What: "a row without TenantID under a system scope"}
		case b.bypass != nil:
			return b.placed(ctx, t, asID(v), row)
		case !zero && v != b.id:
			return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the row's TenantID"}
		}
	}
	if t.shardKey == nil {
		return nil
	}
	v, _ := t.shardKey.ValueOf(ctx, row)
	return b.owns(t, b.tenant, v)
}

// placed refuses a row that a system scope writes for a tenant that is not known, or into a place that is not that tenant's for the row's key.
func (b *binding) placed(ctx context.Context, t *table, id tenant.ID, row reflect.Value) error {
	owner, err := b.store.registry.Tenant(ctx, id)
	if err != nil {
		return err
	}
	if t.shardKey != nil {
		v, _ := t.shardKey.ValueOf(ctx, row)
		return b.owns(t, owner, v)
	}
	for _, p := range b.store.placesOf(owner) {
		if p == b.db.place {
			return nil
		}
	}
	return &CrossShardError{Table: t.name, Held: b.db.place.Shard}
}

// stamp makes a new row the tenant's and gives it an id.
func (b *binding) stamp(ctx context.Context, t *table, row reflect.Value) error {
	if err := b.admits(ctx, t, row); err != nil {
		return err
	}
	if t.tenant != nil && b.bypass == nil {
		if err := t.tenant.Set(ctx, row, b.tenant.ID); err != nil {
			return err
		}
	}
	return b.store.ids.fill(ctx, t.schema, row)
}

// force adds tenant_id, the key and the shard key where Select or Omit dropped them.
func (b *binding) force(stmt *gorm.Statement, t *table, values *clause.Values) error {
	must := append([]*schema.Field{}, t.schema.PrimaryFields...)
	if t.tenant != nil {
		must = append(must, t.tenant)
	}
	if t.shardKey != nil {
		must = append(must, t.shardKey)
	}
	for _, f := range must {
		if slices.ContainsFunc(values.Columns, func(c clause.Column) bool { return c.Name == f.DBName }) {
			continue
		}
		values.Columns = append(values.Columns, clause.Column{Name: f.DBName})
		rv := reflect.Indirect(stmt.ReflectValue)
		for i := range values.Values {
			row := rv
			if rv.Kind() == reflect.Slice || rv.Kind() == reflect.Array {
				row = reflect.Indirect(rv.Index(i))
			}
			v, _ := f.ValueOf(stmt.Context, row)
			values.Values[i] = append(values.Values[i], v)
		}
	}
	return nil
}

// buildUpdate builds the UPDATE without the columns that may not change.
func (b *binding) buildUpdate(db *gorm.DB, t *table) error {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, false, func(row reflect.Value) error { return b.sameOwner(stmt.Context, t, row) }); err != nil {
		return err
	}
	if err := b.assignable(stmt, t); err != nil {
		return err
	}
	for _, c := range stmt.Schema.UpdateClauses {
		stmt.AddClause(c)
	}
	set, ok := stmt.Clauses["SET"].Expression.(clause.Set)
	if !ok {
		set = callbacks.ConvertToAssignments(stmt)
	}
	if db.Error != nil || len(set) == 0 {
		return nil
	}
	kept, conds, err := b.mutable(stmt, t, set)
	if err != nil || len(kept) == 0 {
		return err
	}
	if len(conds) > 0 {
		stmt.AddClause(clause.Where{Exprs: conds})
	}
	delete(stmt.Clauses, "SET")
	stmt.AddClause(kept)
	stmt.AddClauseIfNotExists(clause.Update{})
	stmt.Build(stmt.BuildClauses...)
	return nil
}

// assignable judges the caller's values before gorm copies them into the caller's model.
func (b *binding) assignable(stmt *gorm.Statement, t *table) error {
	if same(stmt.Dest, stmt.Model) {
		return nil
	}
	dest := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	var set clause.Set
	switch {
	case dest.Kind() == reflect.Map:
		for _, k := range dest.MapKeys() {
			if k.Kind() != reflect.String {
				return &ShapeError{Shape: "update from a map without text keys", Table: t.name, Hint: "use map[string]any"}
			}
			name := k.String()
			if f := stmt.Schema.LookUpField(name); f != nil && f.DBName != "" {
				name = f.DBName
			}
			set = append(set, clause.Assignment{Column: clause.Column{Name: name}, Value: dest.MapIndex(k).Interface()})
		}
	case dest.Kind() == reflect.Struct && dest.Type() == t.schema.ModelType:
		for _, f := range t.schema.Fields {
			if f.DBName == "" {
				continue
			}
			if v, zero := f.ValueOf(stmt.Context, dest); !zero {
				set = append(set, clause.Assignment{Column: clause.Column{Name: f.DBName}, Value: v})
			}
		}
	}
	_, _, err := b.mutable(stmt, t, set)
	return err
}

// mutable drops an assignment that repeats the row's own tenant, primary key or shard key and refuses any other change of them. A shard key that is
// repeated comes back as a condition: it says which row, and does not change it. An expression is put into parentheses, so that it stays one value.
func (b *binding) mutable(stmt *gorm.Statement, t *table, set clause.Set) (clause.Set, []clause.Expression, error) {
	model := reflect.Indirect(reflect.ValueOf(stmt.Model))
	repeats := func(name string, v any) bool { // what the model that names the row says itself
		f := t.schema.FieldsByDBName[name]
		if model.Kind() != reflect.Struct || model.Type() != t.schema.ModelType {
			return false
		}
		own, zero := f.ValueOf(stmt.Context, model)
		return !zero && reflect.DeepEqual(own, v)
	}
	kept := make(clause.Set, 0, len(set))
	var conds []clause.Expression
	for _, a := range set {
		f := stmt.Schema.FieldsByDBName[a.Column.Name]
		if f == nil || a.Column.Raw || a.Column.Table != "" && a.Column.Table != clause.CurrentTable && a.Column.Table != stmt.Table {
			return nil, nil, &ShapeError{Shape: "assignment to a column that the model lacks", Table: t.name, Hint: "name a column of the model"}
		}
		why := judgeValue(a.Value, true)
		if e, ok := a.Value.(clause.Expr); ok {
			why = fragment{text: e.SQL, vars: e.Vars, bare: true, one: true}.judge()
		}
		if why != "" {
			return nil, nil, &ShapeError{Shape: "assigned value: " + why, Table: t.name, Hint: "bind the value, or use gorm.Expr with plain columns"}
		}
		switch { // by name: each database has a parsed schema of its own
		case t.tenant != nil && f.DBName == TenantColumn:
			if b.bypass == nil && asID(a.Value) == b.tenant.ID {
				continue
			}
			return nil, nil, &ImmutableError{Table: t.name, Column: f.DBName}
		case f.PrimaryKey && repeats(f.DBName, a.Value):
			continue
		case t.shardKey != nil && f.DBName == t.shardKey.DBName && repeats(f.DBName, a.Value):
			conds = append(conds, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: f.DBName}, Value: a.Value})
			continue
		case f.PrimaryKey, t.shardKey != nil && f.DBName == t.shardKey.DBName:
			return nil, nil, &ImmutableError{Table: t.name, Column: f.DBName}
		}
		if e, ok := a.Value.(clause.Expr); ok {
			a.Value = clause.Expr{SQL: "(" + e.SQL + ")", Vars: e.Vars}
		} else if _, writes := a.Value.(clause.Expression); writes {
			return nil, nil, &ShapeError{Shape: fmt.Sprintf("assigned value of type %T", a.Value), Table: t.name, Hint: "use gorm.Expr"}
		}
		kept = append(kept, a)
	}
	return kept, conds, nil
}

// buildDelete builds the DELETE as gorm does; a soft-delete field type builds its own UPDATE from the same clauses.
func (b *binding) buildDelete(db *gorm.DB, t *table) error {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, false, func(row reflect.Value) error { return b.sameOwner(stmt.Context, t, row) }); err != nil {
		return err
	}
	if len(stmt.Schema.DeleteClauses) > 0 && t.tenant != nil && t.tenant.PrimaryKey && !stmt.ReflectValue.CanAddr() && stmt.ReflectValue.Kind() == reflect.Struct {
		return &ShapeError{Shape: "soft delete by value of a model whose key holds tenant_id", Table: t.name, Hint: "pass a pointer"}
	}
	for _, c := range stmt.Schema.DeleteClauses {
		stmt.AddClause(c)
	}
	if stmt.SQL.Len() > 0 {
		return nil
	}
	stmt.AddClauseIfNotExists(clause.Delete{})
	var fields []*schema.Field // the owner is in the scope's condition
	var names []string
	for _, f := range stmt.Schema.PrimaryFields {
		if f.DBName != TenantColumn {
			fields, names = append(fields, f), append(names, f.DBName)
		}
	}
	keyed := func(v reflect.Value) {
		_, rows := schema.GetIdentityFieldValuesMap(stmt.Context, v, fields)
		column, values := schema.ToQueryValues(stmt.Table, names, rows)
		if len(values) > 0 {
			stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: values}}})
		}
	}
	keyed(stmt.ReflectValue)
	if stmt.ReflectValue.CanAddr() && !same(stmt.Dest, stmt.Model) && stmt.Model != nil {
		keyed(reflect.ValueOf(stmt.Model))
	}
	stmt.AddClauseIfNotExists(clause.From{})
	stmt.Build(stmt.BuildClauses...)
	return nil
}

// sameOwner refuses a row of another tenant as the model of an update or delete. Where tenant_id is part of gorm's key a zero one is filled, or the
// key would name nobody's row.
func (b *binding) sameOwner(ctx context.Context, t *table, row reflect.Value) error {
	if t.tenant == nil || b.bypass != nil {
		return nil
	}
	v, zero := t.tenant.ValueOf(ctx, row)
	switch {
	case zero && t.tenant.PrimaryKey && len(t.schema.PrimaryFields) > 1 && row.CanAddr():
		for _, f := range t.schema.PrimaryFields {
			if f == t.tenant {
				continue
			}
			if _, z := f.ValueOf(ctx, row); !z {
				return t.tenant.Set(ctx, row, b.tenant.ID)
			}
		}
		return nil
	case !zero && v != b.id:
		return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the model's TenantID"}
	}
	return nil
}

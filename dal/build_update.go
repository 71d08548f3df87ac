package dal

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/tenant"
)

// buildUpdate builds the UPDATE without the columns that may not change.
func (b *binding) buildUpdate(db *gorm.DB, t *table) error {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, false, func(row reflect.Value) error { return b.sameOwner(stmt.Context, t, row) }); err != nil {
		return err
	}
	if err := b.assignable(stmt, t); err != nil {
		return err
	}
	if stmt.Schema != nil {
		for _, c := range stmt.Schema.UpdateClauses {
			stmt.AddClause(c)
		}
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
	if row := reflect.Indirect(reflect.ValueOf(stmt.Model)); t.tenant != nil && b.bypass == nil && row.Kind() == reflect.Struct && row.Type() == t.schema.ModelType {
		if v, zero := t.tenant.ValueOf(stmt.Context, row); !zero && v != b.id {
			return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the model's TenantID"}
		}
	}
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
			if rel := t.schema.Relationships.Relations[name]; rel != nil && rel.Type == schema.BelongsTo {
				continue // gorm puts it into the model
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
		f := t.schema.LookUpField(a.Column.Name)
		if f == nil || f.DBName == "" || a.Column.Raw || a.Column.Table != "" && a.Column.Table != clause.CurrentTable && a.Column.Table != stmt.Table {
			return nil, nil, &ShapeError{Shape: "assignment to a column that the model lacks", Table: t.name, Hint: "name a column of the model"}
		}
		a.Column.Name = f.DBName
		switch { // by name: each database has a parsed schema of its own
		case t.tenant != nil && f.DBName == TenantColumn:
			if b.bypass == nil && (asID(a.Value) == b.tenant.ID || isZeroID(a.Value) && !isMap(stmt.Dest)) { // a struct that leaves it out
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
		a.Value = assigned(a.Value)
		kept = append(kept, a)
	}
	return kept, conds, nil
}

// isZeroID reports a tenant that is not filled in.
func isZeroID(v any) bool {
	id, ok := v.(tenant.ID)
	return ok && id == ""
}

func isMap(v any) bool { return reflect.Indirect(reflect.ValueOf(v)).Kind() == reflect.Map }

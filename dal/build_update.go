package dal

import (
	"reflect"
	"slices"

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
	if hooked(stmt) { // else it was judged before the transaction began, and nothing ran in between
		if err := b.assignable(stmt, t); err != nil {
			return err
		}
	}
	if stmt.Schema != nil {
		for _, c := range stmt.Schema.UpdateClauses {
			stmt.AddClause(c)
		}
	}
	set, own := stmt.Clauses["SET"].Expression.(clause.Set)
	if own {
		set = slices.Clone(set) // mutable writes into it, and the chain may be used again
	} else {
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
	if m, ok := stmt.Dest.(map[string]any); ok { // what Update makes
		for name, v := range m {
			if err := b.assignableColumn(stmt, t, name, v); err != nil {
				return err
			}
		}
		return nil
	}
	dest := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	switch {
	case dest.Kind() == reflect.Map:
		for _, k := range dest.MapKeys() {
			if k.Kind() != reflect.String {
				return &ShapeError{Shape: "update from a map without text keys", Table: t.name, Hint: "use map[string]any"}
			}
			if err := b.assignableColumn(stmt, t, k.String(), dest.MapIndex(k).Interface()); err != nil {
				return err
			}
		}
	case dest.Kind() == reflect.Struct && dest.Type() == t.schema.ModelType:
		for _, f := range t.schema.Fields {
			if f.DBName == "" {
				continue
			}
			if v, zero := f.ValueOf(stmt.Context, dest); !zero {
				if _, _, err := b.assignment(stmt, t, &clause.Assignment{Column: clause.Column{Name: f.DBName}, Value: v}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// assignableColumn judges one entry of a map.
func (b *binding) assignableColumn(stmt *gorm.Statement, t *table, name string, v any) error {
	if rel := t.schema.Relationships.Relations[name]; rel != nil && rel.Type == schema.BelongsTo {
		return nil // gorm puts it into the model
	}
	_, _, err := b.assignment(stmt, t, &clause.Assignment{Column: clause.Column{Name: name}, Value: v})
	return err
}

// mutable judges every assignment, and returns those that are sent, in set's own memory, and the conditions that the others turned into.
func (b *binding) mutable(stmt *gorm.Statement, t *table, set clause.Set) (clause.Set, []clause.Expression, error) {
	kept := set[:0]
	var conds []clause.Expression
	for _, a := range set {
		keep, cond, err := b.assignment(stmt, t, &a)
		if err != nil {
			return nil, nil, err
		}
		if cond != nil {
			conds = append(conds, cond)
		}
		if keep {
			a.Value = assigned(a.Value)
			kept = append(kept, a)
		}
	}
	return kept, conds, nil
}

// assignment drops one that repeats the row's own tenant, primary key or shard key, and refuses any other change of them. A shard key that is repeated
// comes back as a condition: it says which row, and does not change it. It names a's column as the database does.
func (b *binding) assignment(stmt *gorm.Statement, t *table, a *clause.Assignment) (keep bool, cond clause.Expression, err error) {
	f := t.schema.LookUpField(a.Column.Name)
	if f == nil || f.DBName == "" || a.Column.Raw || a.Column.Table != "" && a.Column.Table != clause.CurrentTable && a.Column.Table != stmt.Table {
		return false, nil, &ShapeError{Shape: "assignment to a column that the model lacks", Table: t.name, Hint: "name a column of the model"}
	}
	a.Column.Name = f.DBName
	shardKey := t.shardKey != nil && f.DBName == t.shardKey.DBName // by name: each database has a parsed schema of its own
	switch {
	case t.tenant != nil && f.DBName == TenantColumn:
		if b.bypass == nil && (asID(a.Value) == b.tenant.ID || isZeroID(a.Value) && !isMap(stmt.Dest)) { // a struct that leaves it out
			return false, nil, nil
		}
	case f.PrimaryKey && repeats(stmt, t, f.DBName, a.Value):
		return false, nil, nil
	case shardKey && repeats(stmt, t, f.DBName, a.Value):
		return false, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: f.DBName}, Value: a.Value}, nil
	case !f.PrimaryKey && !shardKey:
		return true, nil, nil
	}
	return false, nil, &ImmutableError{Table: t.name, Column: f.DBName}
}

// repeats reports a value that the model which names the row says itself.
func repeats(stmt *gorm.Statement, t *table, name string, v any) bool {
	model := reflect.Indirect(reflect.ValueOf(stmt.Model))
	if model.Kind() != reflect.Struct || model.Type() != t.schema.ModelType {
		return false
	}
	own, zero := t.schema.FieldsByDBName[name].ValueOf(stmt.Context, model)
	return !zero && reflect.DeepEqual(own, v)
}

// isZeroID reports a tenant that is not filled in.
func isZeroID(v any) bool {
	id, ok := v.(tenant.ID)
	return ok && id == ""
}

func isMap(v any) bool { return reflect.Indirect(reflect.ValueOf(v)).Kind() == reflect.Map }

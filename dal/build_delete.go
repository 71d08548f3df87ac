package dal

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// buildDelete builds the DELETE as gorm does; a soft-delete field type builds its own UPDATE from the same clauses.
func (b *binding) buildDelete(db *gorm.DB, t *table) error {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, false, func(row reflect.Value) error { return b.sameOwner(stmt.Context, t, row) }); err != nil {
		return err
	}
	if stmt.Schema == nil { // Table("name"), as gorm deletes it: rows, whatever the model says of soft deletes
		stmt.AddClauseIfNotExists(clause.Delete{})
		stmt.AddClauseIfNotExists(clause.From{})
		stmt.Build(stmt.BuildClauses...)
		return nil
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

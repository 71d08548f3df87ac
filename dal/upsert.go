package dal

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/internal/wire"
)

const (
	conflictClause = "ON CONFLICT"
	// excluded is the row that could not be inserted, as SQLite and PostgreSQL call it, and gorm on MySQL too.
	excluded = "excluded"
)

// conflictOf returns the statement's ON CONFLICT.
func conflictOf(stmt *gorm.Statement) (clause.OnConflict, bool) {
	c, ok := stmt.Clauses[conflictClause].Expression.(clause.OnConflict)
	return c, ok
}

// judgeConflict judges what the caller wrote into ON CONFLICT, and puts columns in place of field names. It reports whether there is one.
func (b *binding) judgeConflict(stmt *gorm.Statement, t *table) (bool, error) {
	c, ok := conflictOf(stmt)
	if !ok {
		return false, nil
	}
	shape := func(what, hint string) error {
		return &ShapeError{Shape: "upsert: " + what, Table: t.name, Hint: hint}
	}
	switch {
	case c.OnConstraint != "":
		return true, shape("OnConstraint", "name the columns of the unique key")
	case c.DoNothing && (c.UpdateAll || len(c.DoUpdates) > 0):
		return true, shape("DoNothing with updates", "choose one")
	case len(c.TargetWhere.Exprs) > 0 && len(c.Columns) == 0:
		return true, shape("TargetWhere without Columns", "name the columns of the unique key")
	case len(c.Where.Exprs) > 0 && c.DoNothing:
		return true, shape("Where with DoNothing", "drop the condition")
	case b.db.dialect == MySQL && len(c.Where.Exprs)+len(c.TargetWhere.Exprs) > 0:
		return true, shape("a condition, which this database does not have", "read the row in a transaction, or assign with IF()")
	}
	columns := make([]clause.Column, 0, len(c.Columns)+1)
	for _, column := range c.Columns {
		name, err := t.plainColumn(stmt, column)
		if err != nil {
			return true, err
		}
		columns = append(columns, clause.Column{Name: name})
	}
	c.Columns = columns
	updates := make(clause.Set, 0, len(c.DoUpdates))
	for _, a := range c.DoUpdates {
		name, err := t.plainColumn(stmt, a.Column)
		if err != nil {
			return true, err
		}
		if t.immutable(name) {
			return true, &ImmutableError{Table: t.name, Column: name}
		}
		value := assigned(a.Value)
		if column, ok := value.(clause.Column); ok {
			if column.Table != excluded && column.Table != "" && column.Table != t.name && column.Table != clause.CurrentTable || column.Raw {
				return true, shape(fmt.Sprintf("a column of %q", column.Table), "assign columns of the row that was to be inserted, or of the table")
			}
			f := t.schema.LookUpField(column.Name)
			if f == nil || f.DBName == "" {
				return true, shape("a value of a column that the model lacks", "name a column of the model")
			}
			column.Name = f.DBName
			value = column
		}
		updates = append(updates, clause.Assignment{Column: clause.Column{Name: name}, Value: value})
	}
	c.DoUpdates = updates
	if !c.DoNothing && !c.UpdateAll && len(updates) == 0 {
		c.DoNothing = true // nothing to assign
	}
	put(stmt, c)
	return true, nil
}

// put makes c the statement's ON CONFLICT.
func put(stmt *gorm.Statement, c clause.OnConflict) {
	stmt.Clauses[conflictClause] = clause.Clause{Name: conflictClause, Expression: c}
}

// plainColumn returns the column that c names, as a column or a field of the model.
func (t *table) plainColumn(stmt *gorm.Statement, c clause.Column) (string, error) {
	f := t.schema.LookUpField(c.Name)
	if c.Raw || c.Alias != "" || f == nil || f.DBName == "" || c.Table != "" && c.Table != clause.CurrentTable && c.Table != stmt.Table {
		return "", &ShapeError{Shape: "a column that the model lacks", Table: t.name, Hint: "name a column of the model"}
	}
	return f.DBName, nil
}

// immutable reports a column that no statement changes: the owner, the primary key, the shard key.
func (t *table) immutable(column string) bool {
	return slices.ContainsFunc(t.must(), func(f *schema.Field) bool { return f.DBName == column })
}

// guardConflict makes an upsert that can hit no row of another tenant, whatever unique keys the table has. gorm has put the columns of UpdateAll
// into it by now.
//
// SQLite and PostgreSQL: the conflict target holds tenant_id, and DO UPDATE has the owner among its conditions. MySQL takes any unique key for the
// target, so each assignment keeps the old value when the row is another tenant's. There, the first assigns the key to itself, or NULL when the row is
// another tenant's, which no key column takes: the statement fails, and the caller hears of the conflict.
func (b *binding) guardConflict(stmt *gorm.Statement, t *table) error {
	c, ok := conflictOf(stmt)
	if !ok {
		return nil
	}
	if c.UpdateAll {
		c.UpdateAll = false
		c.DoUpdates = slices.DeleteFunc(slices.Clone(c.DoUpdates), func(a clause.Assignment) bool { return t.immutable(a.Column.Name) })
		c.DoNothing = len(c.DoUpdates) == 0
	}
	if b.db.dialect == MySQL {
		c.DoUpdates = t.guardUpdates(c.DoUpdates)
		c.DoNothing, c.Columns = false, nil
		put(stmt, c)
		return nil
	}
	if !c.DoNothing && len(c.Columns) == 0 {
		for _, f := range t.schema.PrimaryFields {
			c.Columns = append(c.Columns, clause.Column{Name: f.DBName})
		}
	}
	if t.tenant != nil && len(c.Columns) > 0 && !slices.ContainsFunc(c.Columns, func(column clause.Column) bool { return column.Name == TenantColumn }) {
		c.Columns = append([]clause.Column{{Name: TenantColumn}}, c.Columns...)
	}
	if len(c.TargetWhere.Exprs) > 0 {
		c.TargetWhere.Exprs = []clause.Expression{parenthesized{c.TargetWhere}}
	}
	switch {
	case c.DoNothing:
	case t.tenant != nil:
		c.Where = clause.Where{Exprs: []clause.Expression{sameOwnerWhere{c.Where}}}
	case len(c.Where.Exprs) > 0:
		c.Where = clause.Where{Exprs: []clause.Expression{parenthesized{c.Where}}}
	}
	put(stmt, c)
	return nil
}

// guardUpdates guards each assignment of MySQL's ON DUPLICATE KEY UPDATE, which needs one at least.
func (t *table) guardUpdates(updates clause.Set) clause.Set {
	key := clause.Column{Name: t.schema.DBNames[0]}
	if fields := t.identity(); len(fields) > 0 {
		key.Name = fields[0].DBName
	}
	if t.tenant == nil {
		if len(updates) == 0 {
			return clause.Set{{Column: key, Value: key}}
		}
		return updates
	}
	guarded := clause.Set{{Column: key, Value: guardedValue{value: key, other: clause.Expr{SQL: "NULL"}}}}
	for _, a := range updates {
		own := clause.Column{Table: clause.CurrentTable, Name: a.Column.Name}
		guarded = append(guarded, clause.Assignment{Column: a.Column, Value: guardedValue{value: a.Value, other: own}})
	}
	return guarded
}

// nameConflict says in the words of a duplicate key what MySQL says of a NULL that guardUpdates assigned.
func nameConflict(db *gorm.DB) {
	if db.Error == nil || wire.Code(db.Error) != 1048 {
		return
	}
	b, err := bindingOf(db)
	if _, ok := conflictOf(db.Statement); err != nil || !ok || db.Statement.Schema == nil {
		return
	}
	t := b.store.tables.byType[db.Statement.Schema.ModelType]
	if t == nil || len(t.identity()) == 0 || !strings.Contains(db.Error.Error(), "'"+t.identity()[0].DBName+"'") {
		return
	}
	db.Error = &ConflictError{Table: t.name, Err: db.Error}
}

// parenthesized prints conditions of the caller's in parentheses.
type parenthesized struct{ user clause.Where }

// Build writes the conditions.
func (p parenthesized) Build(b clause.Builder) {
	_ = b.WriteByte('(')
	p.user.Build(b)
	_ = b.WriteByte(')')
}

// sameOwnerWhere is the condition of DO UPDATE: `items`.`tenant_id` = `excluded`.`tenant_id` AND (<the caller's>).
type sameOwnerWhere struct{ user clause.Where }

// Build writes the condition.
func (w sameOwnerWhere) Build(b clause.Builder) {
	b.WriteQuoted(clause.Column{Table: clause.CurrentTable, Name: TenantColumn})
	_, _ = b.WriteString(" = ")
	b.WriteQuoted(clause.Column{Table: excluded, Name: TenantColumn})
	if len(w.user.Exprs) > 0 {
		_, _ = b.WriteString(" AND ")
		parenthesized(w).Build(b)
	}
}

// guardedValue is what MySQL's ON DUPLICATE KEY UPDATE assigns: the value where the row is the tenant's, else another, mostly what the row holds.
//
//	IF(`items`.`tenant_id` = VALUES(`tenant_id`), <value>, `items`.`qty`)
type guardedValue struct {
	value any
	other any // what it is when the row is another tenant's
}

// Build writes the value.
func (g guardedValue) Build(b clause.Builder) {
	values := func(column string) {
		_, _ = b.WriteString("VALUES(")
		b.WriteQuoted(clause.Column{Name: column})
		_ = b.WriteByte(')')
	}
	_, _ = b.WriteString("IF(")
	b.WriteQuoted(clause.Column{Table: clause.CurrentTable, Name: TenantColumn})
	_, _ = b.WriteString(" = ")
	values(TenantColumn)
	_, _ = b.WriteString(", ")
	if c, ok := g.value.(clause.Column); ok && c.Table == excluded {
		values(c.Name)
	} else {
		b.AddVar(b, g.value)
	}
	_, _ = b.WriteString(", ")
	b.AddVar(b, g.other)
	_ = b.WriteByte(')')
}

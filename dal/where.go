package dal

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// scopedWhere is the one node that carries the tenant's predicate. It prints
//
//	`items`.`tenant_id` = ? AND (<the caller's conditions>)
//
// and always writes the parentheses itself: gorm adds them only where it sees " OR " with blanks.
type scopedWhere struct {
	id     any                  // the tenant.ID to bind
	column string               // the tenant's column as the dialect quotes it, with its table
	user   clause.Where         // the caller's conditions; may be empty
	list   [1]clause.Expression // the node itself, for the clause that it stands in

	// Where it was printed: a statement without it, or with two, does not leave.
	built int
	arg   int // index of the tenant in the values
}

// Build writes the predicate.
func (w *scopedWhere) Build(b clause.Builder) {
	stmt, ok := b.(*gorm.Statement)
	if !ok {
		return // printed into something that is not sent: it stays unbuilt, and the statement does not leave
	}
	w.built++
	_, _ = stmt.WriteString(w.column)
	_, _ = stmt.WriteString(" = ")
	w.arg = len(stmt.Vars)
	stmt.Vars = append(stmt.Vars, w.id) // as AddVar does, which would ask first whether the id writes SQL
	stmt.DB.Dialector.BindVarTo(stmt, stmt, w.id)
	if len(w.user.Exprs) > 0 {
		_, _ = stmt.WriteString(" AND (")
		w.user.Build(stmt)
		_ = stmt.WriteByte(')')
	}
}

// saved is what a scoped statement's clauses were before; a chain that is used again starts from them.
type saved struct {
	verb             verb
	where, set       clause.Clause
	hadWhere, hadSet bool
	hadSoft          bool
}

const softDeleteMark = "soft_delete_enabled"

func (s *saved) save(stmt *gorm.Statement, v verb) {
	s.verb = v
	s.where, s.hadWhere = stmt.Clauses["WHERE"]
	_, s.hadSoft = stmt.Clauses[softDeleteMark]
	if v == verbUpdate {
		s.set, s.hadSet = stmt.Clauses["SET"]
	}
}

func (s *saved) restore(stmt *gorm.Statement) {
	put := func(name string, c *clause.Clause, had bool) {
		if had {
			stmt.Clauses[name] = *c
		} else {
			delete(stmt.Clauses, name)
		}
	}
	put("WHERE", &s.where, s.hadWhere)
	if s.verb == verbUpdate {
		put("SET", &s.set, s.hadSet)
	}
	if !s.hadSoft {
		delete(stmt.Clauses, softDeleteMark)
	}
}

// inject wraps the caller's conditions. Whatever gorm adds later (the primary key, soft delete) is joined to the node by AND.
func (w *scopedWhere) inject(stmt *gorm.Statement) {
	c := stmt.Clauses["WHERE"]
	if user, ok := c.Expression.(clause.Where); ok {
		w.user = user
	}
	c.Name = "WHERE"
	w.list[0] = w
	c.Expression = clause.Where{Exprs: w.list[:]}
	stmt.Clauses["WHERE"] = c
}

// unconditional reports a built statement whose only conditions are the injected ones: the missing-WHERE guard, which the predicate would switch off.
func (w *scopedWhere) unconditional(stmt *gorm.Statement, t *table) bool {
	if len(w.user.Exprs) > 0 {
		return false
	}
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	added := len(where.Exprs) - 1
	if _, soft := stmt.Clauses[softDeleteMark]; soft {
		added--
	}
	for _, e := range where.Exprs {
		if eq, ok := e.(clause.Eq); ok && (columnName(eq.Column) == TenantColumn || t.shardKey != nil && columnName(eq.Column) == t.shardKey.DBName) {
			added-- // the owner and the shard key alone name no row
		}
	}
	return added <= 0
}

func columnName(column any) string {
	switch c := column.(type) {
	case string:
		return c
	case clause.Column:
		return c.Name
	}
	return ""
}

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
	id   any          // the tenant.ID to bind
	user clause.Where // the caller's conditions; may be empty

	built int // how often it was printed: a statement without it, or with two, does not leave
}

// Build writes the predicate.
func (w *scopedWhere) Build(b clause.Builder) {
	w.built++
	b.WriteQuoted(clause.Column{Table: clause.CurrentTable, Name: TenantColumn})
	_, _ = b.WriteString(" = ")
	b.AddVar(b, w.id)
	if len(w.user.Exprs) > 0 {
		_, _ = b.WriteString(" AND (")
		w.user.Build(b)
		_ = b.WriteByte(')')
	}
}

// saved is what a scoped statement's clauses were before; a chain that is used again starts from them.
type saved struct {
	where, set       clause.Clause
	hadWhere, hadSet bool
	hadSoft          bool
}

const softDeleteMark = "soft_delete_enabled"

func save(stmt *gorm.Statement) saved {
	var s saved
	s.where, s.hadWhere = stmt.Clauses["WHERE"]
	s.set, s.hadSet = stmt.Clauses["SET"]
	_, s.hadSoft = stmt.Clauses[softDeleteMark]
	return s
}

func (s saved) restore(stmt *gorm.Statement) {
	put := func(name string, c clause.Clause, had bool) {
		if had {
			stmt.Clauses[name] = c
		} else {
			delete(stmt.Clauses, name)
		}
	}
	put("WHERE", s.where, s.hadWhere)
	put("SET", s.set, s.hadSet)
	if !s.hadSoft {
		delete(stmt.Clauses, softDeleteMark)
	}
}

// inject wraps the caller's conditions. Whatever gorm adds later (the primary key, soft delete) is joined to the node by AND.
func inject(stmt *gorm.Statement, id any) *scopedWhere {
	node := &scopedWhere{id: id}
	c := stmt.Clauses["WHERE"]
	if w, ok := c.Expression.(clause.Where); ok {
		node.user = w
	}
	c.Name = "WHERE"
	c.Expression = clause.Where{Exprs: []clause.Expression{node}}
	stmt.Clauses["WHERE"] = c
	return node
}

// unconditional reports a built statement whose only conditions are the injected ones: the missing-WHERE guard, which the predicate would switch off.
func (w *scopedWhere) unconditional(stmt *gorm.Statement) bool {
	if len(w.user.Exprs) > 0 {
		return false
	}
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	added := len(where.Exprs) - 1
	if _, soft := stmt.Clauses[softDeleteMark]; soft {
		added--
	}
	for _, e := range where.Exprs {
		if eq, ok := e.(clause.Eq); ok && columnName(eq.Column) == TenantColumn {
			added-- // the owner alone names no row
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

package dal

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// joinTypes are what a join of gorm's own clauses may begin with.
var joinTypes = map[clause.JoinType]bool{"": true, clause.InnerJoin: true, clause.LeftJoin: true}

// judgeFrom passes the join that Association puts into a query over a join table, and nothing else.
func judgeFrom(from clause.From) string {
	if len(from.Tables) > 0 {
		return "tables of the caller's own"
	}
	for _, j := range from.Joins {
		if j.Expression != nil || len(j.Using) > 0 || j.Table.Raw || j.Table.Alias != "" || !isPlainName(j.Table.Name) || !joinTypes[j.Type] || len(j.ON.Exprs) == 0 {
			return "joins of the caller's own"
		}
		if why := judgeAll(j.ON.Exprs, false); why != "" {
			return why
		}
	}
	return ""
}

// joinScope is the condition of a join: the joined table's owner, and what gorm wrote.
type joinScope struct {
	table string
	id    any
	user  clause.Where
	arg   int // index of the tenant in the values
	built int
}

// Build writes the condition.
func (j *joinScope) Build(b clause.Builder) {
	stmt, ok := b.(*gorm.Statement)
	if !ok {
		return
	}
	j.built++
	stmt.WriteQuoted(clause.Column{Table: j.table, Name: TenantColumn})
	_, _ = stmt.WriteString(" = ")
	j.arg = len(stmt.Vars)
	stmt.AddVar(stmt, j.id)
	_, _ = stmt.WriteString(" AND ")
	parenthesized{j.user}.Build(stmt)
}

// scopeJoins puts the tenant into the joins of the statement's FROM. It returns their nodes, and a function that puts the clause back.
func (b *binding) scopeJoins(stmt *gorm.Statement) ([]*joinScope, func(), error) {
	from, ok := stmt.Clauses["FROM"].Expression.(clause.From)
	if !ok || len(from.Joins) == 0 {
		return nil, func() {}, nil
	}
	restore := keep(stmt, "FROM")
	joins := make([]clause.Join, len(from.Joins))
	var nodes []*joinScope
	for i, j := range from.Joins {
		t := b.store.tables.byName[j.Table.Name]
		if t == nil {
			return nil, restore, &UndeclaredError{Table: j.Table.Name}
		}
		if err := b.reaches(t, verbQuery); err != nil {
			return nil, restore, err
		}
		if t.tenant != nil && !b.opens(t) {
			node := &joinScope{table: t.name, id: b.id, user: j.ON}
			nodes = append(nodes, node)
			j.ON = clause.Where{Exprs: []clause.Expression{node}}
		}
		joins[i] = j
	}
	from.Joins = joins
	stmt.Clauses["FROM"] = clause.Clause{Name: "FROM", Expression: from}
	return nodes, restore, nil
}

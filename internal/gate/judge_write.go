package gate

import (
	"slices"
	"strings"
)

// change judges UPDATE and DELETE.
func (j *judge) change(st *statement, e *env) {
	j.v.Write = true
	sc := j.open(st.source, e, true)
	j.outer = append(j.outer, sc)
	defer func() { j.outer = j.outer[:len(j.outer)-1] }()
	for _, r := range j.written(st, sc) {
		j.use(r.name, true)
	}
	for _, a := range st.assigns {
		j.assigned(a, sc.refs)
		j.expr(a.value, e)
	}
	j.restrict(sc, st.source, st.where, st.whereAt, e)
	j.keys(sc, st.source, true, st.where)
	j.exprs(st.exprs, e)
}

// written returns the references that the statement changes, named by their tables.
func (j *judge) written(st *statement, sc *scope) []*ref {
	find := func(n ident) *ref {
		for _, r := range sc.refs {
			if strings.EqualFold(r.name.name, n.name) {
				return r
			}
		}
		panic(refuse("a write to a table that FROM does not name", "use the name or alias that FROM gives it"))
	}
	var refs []*ref
	switch {
	case len(st.targets) > 0:
		for _, n := range st.targets {
			refs = append(refs, find(n))
		}
	case st.verb == verbDelete || j.s.dialect != MySQL: // the first one
		if sc.refs[0].table == nil { // the server may look for a table behind a common table expression's name
			panic(refuse("a write to a common table expression", "write to the table"))
		}
		refs = append(refs, sc.refs[0])
	default: // MySQL's UPDATE writes whatever its assignments name
		for _, a := range st.assigns {
			if a.qualifier.name != "" {
				refs = append(refs, find(a.qualifier))
				continue
			}
			if len(sc.refs) > 1 && slices.ContainsFunc(sc.refs, func(r *ref) bool { return r.table != nil && r.table.Class != Tenant }) {
				panic(refuse("an UPDATE of joined tables that does not say whose column it sets", "qualify the columns"))
			}
			refs = append(refs, sc.refs...)
		}
	}
	var out []*ref
	for _, r := range refs {
		if r.table == nil {
			if len(st.targets) == 0 && len(sc.refs) > 1 {
				continue // a derived table beside it: servers refuse a write to it
			}
			panic(refuse("a write to a derived table", "write to the table"))
		}
		out = append(out, &ref{table: r.table, name: ident{name: r.table.Name, quoted: true}})
	}
	return out
}

// assigned refuses a write to a column that never changes.
func (j *judge) assigned(a assignment, refs []*ref) {
	fixed := j.s.isTenantColumn(a.column.name)
	table := ""
	for _, r := range refs {
		if r.table == nil {
			continue
		}
		if table == "" {
			table = r.table.Name
		}
		if r.table.ShardKey != "" && strings.EqualFold(r.table.ShardKey, a.column.name) {
			fixed, table = true, r.table.Name
		}
	}
	if fixed {
		panic(&Refusal{Code: Immutable, Reason: "a write to " + strings.ToLower(a.column.name) + ", which says whose row it is and where it lives", Hint: "leave it out", Table: table, Column: strings.ToLower(a.column.name)})
	}
}

// insert judges INSERT.
func (j *judge) insert(st *statement, e *env) {
	t := j.use(st.target, true)
	j.v.Inserts = t
	target := &ref{table: t, name: st.target}
	if st.alias.name != "" {
		if strings.EqualFold(st.alias.name, "excluded") {
			panic(refuse("an INSERT under the alias excluded, which stands for the row that was to be inserted", "give it another alias"))
		}
		target.name = st.alias
	}
	if len(st.assigns) > 0 {
		j.insertSet(st, t, e)
	} else {
		j.insertColumns(st, t, e)
	}
	if st.conflict != nil {
		j.conflict(st, target, e)
	}
	j.exprs(st.exprs, e)
}

// bare reports a table without an owner.
func (j *judge) bare(t *Table) bool { return j.system || t.Class != Tenant }

func (j *judge) insertSet(st *statement, t *Table, e *env) {
	owned, keyed := false, t.ShardKey == ""
	for _, a := range st.assigns {
		j.expr(a.value, e)
		if j.s.isTenantColumn(a.column.name) && !j.bare(t) {
			if owned {
				panic(refuse("INSERT that names tenant_id twice", "name it once"))
			}
			j.ownerValue(a.value)
			owned = true
		}
		if !keyed && strings.EqualFold(a.column.name, t.ShardKey) {
			j.shardValue(t, a.value, nil)
			keyed = true
		}
	}
	j.demandKey(t, keyed)
	if !owned && !j.bare(t) {
		j.edits = append(j.edits, edit{st.setStart, st.setStart, j.s.column + " = \x00, "})
	}
}

func (j *judge) insertColumns(st *statement, t *Table, e *env) {
	owner, key := -1, -1
	for i, c := range st.columns {
		if j.s.isTenantColumn(c.name) {
			if owner >= 0 {
				panic(refuse("INSERT that names tenant_id twice", "name it once"))
			}
			owner = i
		}
		if t.ShardKey != "" && strings.EqualFold(c.name, t.ShardKey) {
			key = i
		}
	}
	j.demandKey(t, key >= 0 || t.ShardKey == "")
	add := owner < 0 && !j.bare(t)
	if add {
		j.edits = append(j.edits, edit{st.columnsEnd, st.columnsEnd, ", " + j.s.column})
	}
	for i, row := range st.rows {
		j.exprs(row, e)
		if owner >= 0 && !j.bare(t) {
			j.ownerValue(row[owner])
		}
		if key >= 0 {
			j.shardValue(t, row[key], nil)
		}
		if add {
			j.edits = append(j.edits, edit{st.rowEnds[i], st.rowEnds[i], ", \x00"})
		}
	}
	if st.query != nil {
		j.insertQuery(st.query, t, owner, key, add, e)
	}
}

func (j *judge) demandKey(t *Table, keyed bool) {
	if !keyed && !j.system {
		panic(&Refusal{Code: Shape, Reason: "INSERT without the shard key " + t.ShardKey, Hint: "name the column and bind its value", Table: t.Name})
	}
}

// ownerValue demands that a new row's tenant is a placeholder.
func (j *judge) ownerValue(v *expr) {
	if v.kind != exprHole {
		panic(refuse("INSERT whose tenant_id is not a placeholder", "bind it, or leave the column out"))
	}
	j.owner(v)
}

// shardValue notes a new row's shard key. From a SELECT, a column that is itself the shard key of a table of this place will do.
func (j *judge) shardValue(t *Table, v *expr, sc *scope) {
	if j.system {
		return
	}
	switch v.kind {
	case exprHole:
		if arg, ok := j.args[v.hole]; ok {
			j.v.ShardValues = append(j.v.ShardValues, ShardValue{Table: t, Arg: arg})
			return
		}
	case exprString:
		j.v.ShardValues = append(j.v.ShardValues, ShardValue{Table: t, Arg: -1, Text: v.text})
		return
	case exprColumn:
		if sc == nil {
			break
		}
		for _, r := range sc.refs {
			if r.table != nil && r.table.ShardKey != "" && r.table.Keyspace == t.Keyspace && strings.EqualFold(r.table.ShardKey, v.column.name) && j.means(sc, v, r) {
				j.v.KeyColumn = true
				return
			}
		}
	}
	panic(&Refusal{Code: Shape, Reason: "INSERT whose shard key " + t.ShardKey + " is not a placeholder", Hint: "bind it", Table: t.Name})
}

// insertQuery judges the SELECT of an INSERT, and adds the tenant to each arm's list.
func (j *judge) insertQuery(q *query, t *Table, owner, key int, add bool, e *env) {
	e = j.with(q.with, e)
	for _, a := range q.arms {
		if a.query != nil {
			j.insertQuery(a.query, t, owner, key, add, e)
			continue
		}
		if add {
			j.edits = append(j.edits, edit{a.core.itemsEnd, a.core.itemsEnd, ", \x00"})
		}
		sc := j.core(a.core, e, q.locks)
		star := slices.ContainsFunc(a.core.items, func(i item) bool { return i.star })
		if star && (owner >= 0 || key >= 0) && !j.bare(t) {
			panic(refuse("INSERT ... SELECT *", "name the columns"))
		}
		at := func(i int) *expr {
			if i >= len(a.core.items) {
				panic(refuse("INSERT with more or fewer values than columns", "give each column its value"))
			}
			return a.core.items[i].expr
		}
		if owner >= 0 && !j.bare(t) {
			v := at(owner)
			own := v.kind == exprColumn && j.s.isTenantColumn(v.column.name) && slices.ContainsFunc(sc.refs, func(r *ref) bool {
				return r.table != nil && r.table.Class == Tenant && j.means(sc, v, r)
			})
			if own { // the tenant itself: a column may be empty where an aggregate or an outer join found no row
				j.edits = append(j.edits, edit{v.start, v.end, "\x00"})
			} else {
				j.ownerValue(v)
			}
		}
		if key >= 0 {
			if from := at(key); from.kind == exprColumn && a.core.folded {
				panic(&Refusal{Code: Shape, Reason: "INSERT whose shard key " + t.ShardKey + " comes from an aggregate, which has a row even when nothing was found", Hint: "bind it, or use GROUP BY", Table: t.Name})
			}
			j.shardValue(t, at(key), sc)
		}
	}
	j.exprs(q.exprs, e)
	j.v.Locks = j.v.Locks || q.locks
}

// conflict judges an upsert: it assigns no column that never changes, and changes no row of another tenant, whatever unique key it hit.
func (j *judge) conflict(st *statement, target *ref, e *env) {
	c := st.conflict
	for _, a := range c.update {
		if !j.isSelf(a, target) {
			j.assigned(a, []*ref{target})
		}
		j.expr(a.value, e)
	}
	j.exprs(c.exprs, e)
	if c.where != nil {
		j.expr(c.where, e)
	}
	if j.bare(target.table) || len(c.update) == 0 {
		return
	}
	name := j.source(target.name)
	if c.duplicate && st.returning { // MariaDB returns the row that was in the way, changed or not
		panic(refuse("RETURNING of an upsert, which shows whatever row was in the way", "read the row with a statement of its own"))
	}
	if c.duplicate {
		for _, a := range c.update {
			if j.isSelf(a, target) || j.isGuarded(a, target) {
				continue
			}
			column := j.source(a.column)
			j.edits = append(j.edits,
				edit{a.start, a.start, "IF(" + name + "." + j.s.column + " = VALUES(" + j.s.column + "), "},
				edit{a.end, a.end, ", " + name + "." + column + ")"})
		}
		return
	}
	if c.targetAt == 0 {
		panic(refuse("ON CONFLICT DO UPDATE without its columns", "name them: ON CONFLICT (tenant_id, id) DO UPDATE ..."))
	}
	if !slices.ContainsFunc(c.target, func(n ident) bool { return j.s.isTenantColumn(n.name) }) {
		j.edits = append(j.edits, edit{c.targetAt, c.targetAt, j.s.column + ", "})
	}
	guard := name + "." + j.s.column + " = excluded." + j.s.column
	switch {
	case c.where == nil:
		j.edits = append(j.edits, edit{c.updateEnd, c.updateEnd, " WHERE " + guard})
	case !slices.ContainsFunc(j.conjuncts(c.where, nil), func(x cond) bool { return !x.late && j.isExcluded(x.expr, target) }):
		j.edits = append(j.edits, edit{c.where.start, c.where.start, guard + " AND ("}, edit{c.where.end, c.where.end, ")"})
	}
}

// isSelf reports column = column.
func (j *judge) isSelf(a assignment, target *ref) bool {
	v := a.value
	return v.kind == exprColumn && strings.EqualFold(v.column.name, a.column.name) && (v.qualifier.name == "" || j.s.same(v.qualifier, target.name))
}

// isGuarded reports column = IF(target.tenant_id = VALUES(tenant_id), ..., target.column), and key = IF(target.tenant_id = VALUES(tenant_id), key, NULL),
// which fails where the row is another tenant's.
func (j *judge) isGuarded(a assignment, target *ref) bool {
	v := a.value
	if v.kind != exprCall || v.call != "IF" || len(v.list) != 3 || v.list[0].kind != exprEq {
		return false
	}
	column, values := v.list[0].list[0], v.list[0].list[1]
	return j.isOwn(column, target) && values.kind == exprCall && values.call == "VALUES" && len(values.list) == 1 &&
		values.list[0].kind == exprColumn && j.s.isTenantColumn(values.list[0].column.name) &&
		(j.isSelf(assignment{column: a.column, value: v.list[2]}, target) || j.isFailing(a, v, target))
}

// isFailing reports an assignment of the key to itself or else NULL.
func (j *judge) isFailing(a assignment, v *expr, target *ref) bool {
	none := v.list[2]
	return target.table.Key != "" && strings.EqualFold(target.table.Key, a.column.name) && j.isSelf(assignment{column: a.column, value: v.list[1]}, target) &&
		none.kind == exprOther && len(none.list) == 0 && strings.EqualFold(j.text[none.start:none.end], "NULL")
}

// isOwn reports the target's tenant column.
func (j *judge) isOwn(c *expr, target *ref) bool {
	return c.kind == exprColumn && j.s.isTenantColumn(c.column.name) && j.s.same(c.qualifier, target.name)
}

// isExcluded reports target.tenant_id = excluded.tenant_id.
func (j *judge) isExcluded(x *expr, target *ref) bool {
	if x.kind != exprEq {
		return false
	}
	excluded := func(c *expr) bool {
		return c.kind == exprColumn && strings.EqualFold(c.qualifier.name, "excluded") && j.s.isTenantColumn(c.column.name)
	}
	a, b := x.list[0], x.list[1]
	return j.isOwn(a, target) && excluded(b) || j.isOwn(b, target) && excluded(a)
}

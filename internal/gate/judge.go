package gate

import (
	"slices"
	"strings"
)

// judge walks a statement: each reference to each tenant table must be bound in the scope where it counts.
//
// A reference is bound by `alias.tenant_id = <placeholder>` as one of the conditions that are joined by AND in its scope's WHERE, in the ON of an inner
// join, or, for the side of an outer join that may be missing, in that join's ON. Everything else about a condition is left to the server.
type judge struct {
	s      *Schema
	text   string
	tokens []token
	system bool
	v      *Verdict
	edits  []edit
	args   map[int]int // token of a placeholder -> its value's position
	outer  []*scope    // of the statements around, the innermost last
	keyed  []*Table    // every table with a shard key that was named so far, also behind a common table expression
}

// env is the names of the common table expressions in sight.
type env struct {
	name  ident
	keyed []*Table // with a shard key, that its query reads
	up    *env
}

// ref is a leaf of a source tree.
type ref struct {
	table *Table // nil for derived tables and common table expressions
	name  ident  // by which its columns are qualified; empty for an unnamed derived table
	src   *source
	keyed []*Table // beside table: those with a shard key that the derived table or common table expression reads
}

// scope is what one FROM names.
type scope struct {
	refs  []*ref
	bySrc map[*source]*ref
	fixed bool // its tables are locked or written, so none of them may be replaced by a derived table
}

func (j *judge) run(st *statement) (r *Refusal) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Refusal:
			r = e
		default:
			panic(e)
		}
	}()
	j.number()
	e := j.with(st.with, nil)
	switch st.verb {
	case verbSelect:
		j.query(st.query, e)
	case verbInsert:
		j.insert(st, e)
	case verbUpdate, verbDelete:
		j.change(st, e)
	}
	slices.Sort(j.v.TenantArgs)
	j.v.TenantArgs = slices.Compact(j.v.TenantArgs)
	return nil
}

// number counts the placeholders, and puts the tenant in the place of @tenant.
func (j *judge) number() {
	j.args = map[int]int{}
	seen := map[int]bool{}
	for i := range j.tokens {
		t := &j.tokens[i]
		switch {
		case t.kind == tokenName && j.s.dialect == Postgres && t.value != j.s.column && j.s.isTenantColumn(t.value):
			// No declared table has this column, so it would be looked for outside the sub-select in which it stands.
			panic(refuse("a quoted name that differs from "+j.s.column+" in case", "write it in small letters"))
		case t.kind == tokenTenant:
			j.edits = append(j.edits, edit{t.start, t.end, "\x00"})
		case t.kind == tokenHole && j.s.dialect == Postgres:
			j.args[i] = t.number - 1
			seen[t.number] = true
			j.v.Args = max(j.v.Args, t.number)
		case t.kind == tokenHole:
			j.args[i] = j.v.Args
			j.v.Args++
		}
	}
	if j.s.dialect == Postgres && len(seen) != j.v.Args {
		panic(refuse("placeholders that leave a number out", "number them $1, $2, ..."))
	}
}

// source returns the text of a name as the caller wrote it.
func (j *judge) source(n ident) string { return j.text[n.start:n.end] }

// predicate returns the condition that binds a reference.
func (j *judge) predicate(n ident) string { return j.source(n) + "." + j.s.column + " = \x00" }

// with judges the common table expressions and returns what is in sight after them.
func (j *judge) with(w *with, e *env) *env {
	if w == nil {
		return e
	}
	for _, c := range w.ctes {
		switch {
		case j.s.similar(c.name.name):
			panic(refuse("a common table expression with the name of a declared table", "give it another name"))
		case !isPlain(c.name.name) || keywords[upper(c.name.name)]: // FROM only items reads items, whatever WITH "only" says
			panic(refuse("a common table expression whose name is a keyword or no plain name", "give it another name"))
		case e.similar(c.name) && !e.has(j.s, c.name):
			panic(refuse("common table expressions whose names differ in case alone", "give each a name of its own"))
		}
		inner := e
		if w.recursive || j.s.dialect == SQLite {
			inner = &env{name: c.name, up: e}
		}
		before := len(j.keyed)
		j.query(c.query, inner)
		e = &env{name: c.name, keyed: slices.Clone(j.keyed[before:]), up: e}
	}
	return e
}

// has reports that the server takes n for a common table expression.
func (e *env) has(s *Schema, n ident) bool {
	for ; e != nil; e = e.up {
		if s.same(e.name, n) {
			return true
		}
	}
	return false
}

// of returns the tables with a shard key that the common table expression n reads.
func (e *env) of(s *Schema, n ident) []*Table {
	for ; e != nil; e = e.up {
		if s.same(e.name, n) {
			return e.keyed
		}
	}
	return nil
}

// similar reports a common table expression whose name differs from n at most in case.
func (e *env) similar(n ident) bool {
	for ; e != nil; e = e.up {
		if strings.EqualFold(e.name.name, n.name) {
			return true
		}
	}
	return false
}

func (j *judge) query(q *query, e *env) {
	e = j.with(q.with, e)
	for _, a := range q.arms {
		if a.query != nil {
			j.query(a.query, e)
		} else {
			j.core(a.core, e, q.locks)
		}
	}
	j.exprs(q.exprs, e)
	j.v.Locks = j.v.Locks || q.locks
}

func (j *judge) core(c *core, e *env, locks bool) *scope {
	sc := j.open(c.from, e, locks)
	j.outer = append(j.outer, sc)
	defer func() { j.outer = j.outer[:len(j.outer)-1] }()
	for _, it := range c.items {
		if it.expr != nil {
			j.expr(it.expr, e)
		}
	}
	j.exprs(c.exprs, e)
	j.restrict(sc, c.from, c.where, c.fromEnd, e)
	j.keys(sc, c.from, false, c.where, c.having)
	return sc
}

// restrict demands that every reference of the source is bound by its joins or by where, and adds what is missing.
func (j *judge) restrict(sc *scope, src *source, where *expr, at int, e *env) {
	var pending []*ref
	if src != nil {
		j.joins(src, e)
		pending = j.bind(sc, src, j.conjuncts(where, nil))
	}
	if where != nil {
		j.expr(where, e)
	}
	if len(pending) == 0 {
		return
	}
	if where == nil {
		j.edits = append(j.edits, edit{at, at, " WHERE " + j.predicates(pending)})
		return
	}
	j.wrap(where, pending)
}

// wrap puts predicates in front of a condition: what stands behind them is not computed of another tenant's rows.
func (j *judge) wrap(cond *expr, pending []*ref) {
	j.edits = append(j.edits, edit{cond.start, cond.start, j.predicates(pending) + " AND ("}, edit{cond.end, cond.end, ")"})
}

func (j *judge) predicates(pending []*ref) string {
	var b strings.Builder
	for i, r := range pending {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString(j.predicate(r.name))
	}
	return b.String()
}

// open looks up what a FROM names, and judges derived tables.
func (j *judge) open(src *source, e *env, fixed bool) *scope {
	sc := &scope{bySrc: map[*source]*ref{}, fixed: fixed}
	if src != nil {
		j.leaves(sc, src, e)
	}
	return sc
}

func (j *judge) leaves(sc *scope, src *source, e *env) {
	switch {
	case src.group != nil:
		j.leaves(sc, src.group, e)
		return
	case src.left != nil:
		j.leaves(sc, src.left, e)
		j.leaves(sc, src.right, e)
		return
	}
	r := &ref{name: src.alias, src: src}
	switch {
	case src.derived != nil:
		before := len(j.keyed)
		j.query(src.derived, e)
		r.keyed = slices.Clone(j.keyed[before:])
	default:
		if r.name.name == "" {
			r.name = *src.table
		}
		if !e.has(j.s, *src.table) {
			r.table = j.use(*src.table, false)
		} else {
			r.keyed = e.of(j.s, *src.table)
			j.keyed = append(j.keyed, r.keyed...)
		}
	}
	if len(sc.refs) == maxTables {
		panic(refuse("more than 64 tables in one FROM", "split the statement"))
	}
	if r.name.name != "" {
		for _, other := range sc.refs {
			if strings.EqualFold(other.name.name, r.name.name) {
				panic(refuse("two tables under one name", "give each an alias of its own"))
			}
		}
	}
	sc.refs = append(sc.refs, r)
	sc.bySrc[src] = r
}

// use looks a table up, and refuses it when the scope does not open it.
func (j *judge) use(n ident, write bool) *Table {
	t := j.s.table(n)
	if t == nil {
		name := n.name
		if !isPlain(name) || len(name) > 64 {
			name = ""
		}
		panic(&Refusal{Code: Undeclared, Reason: "a table that is not declared", Hint: "declare it, or use a declared one", Table: name})
	}
	if !j.system {
		switch {
		case t.Class == System:
			panic(&Refusal{Code: Closed, Reason: "a system table", Hint: "it is open to a system scope that names it", Table: t.Name})
		case t.Class == Global && write:
			panic(&Refusal{Code: Closed, Reason: "a write to a global table", Hint: "it is written under a system scope", Table: t.Name})
		}
	}
	if t.ShardKey != "" {
		j.keyed = append(j.keyed, t)
	}
	j.v.Tables = append(j.v.Tables, Use{t, write})
	j.v.Write = j.v.Write || write
	return t
}

// joins judges the conditions of the joins themselves.
func (j *judge) joins(src *source, e *env) {
	if src.group != nil {
		j.joins(src.group, e)
	}
	if src.left == nil {
		return
	}
	j.joins(src.left, e)
	j.joins(src.right, e)
	if src.on != nil {
		j.expr(src.on, e)
	}
}

// bind returns the references that neither conds nor the source's own joins bind, and whose predicate may be added to the conditions above. What may
// not be added there is added to the join.
func (j *judge) bind(sc *scope, src *source, conds []cond) []*ref {
	switch {
	case src.group != nil:
		return j.bind(sc, src.group, conds)
	case src.left == nil:
		r := sc.bySrc[src]
		if j.system || r.table == nil || r.table.Class != Tenant || j.isBound(sc, r, conds) {
			return nil
		}
		return []*ref{r}
	}
	both := j.conjuncts(src.on, conds)
	switch src.kind {
	case joinLeft:
		pending := j.bind(sc, src.left, conds)
		j.restrictJoin(sc, src, j.bind(sc, src.right, both), conds)
		return pending
	case joinRight:
		j.restrictJoin(sc, src, j.bind(sc, src.left, both), conds)
		return j.bind(sc, src.right, conds)
	case joinFull:
		j.derive(sc, append(j.bind(sc, src.left, conds), j.bind(sc, src.right, conds)...))
		return nil
	}
	return append(j.bind(sc, src.left, both), j.bind(sc, src.right, both)...)
}

// restrictJoin adds to the condition of an outer join. SQLite makes an inner join of one where conds allow it, and computes conds first.
func (j *judge) restrictJoin(sc *scope, src *source, pending []*ref, conds []cond) {
	switch {
	case len(pending) == 0:
	case src.on == nil, j.s.dialect == SQLite && slices.ContainsFunc(conds, func(c cond) bool { return c.isNoisy() }):
		j.derive(sc, pending)
	default:
		j.wrap(src.on, pending)
	}
}

// derive puts (SELECT * FROM t WHERE t.tenant_id = ?) t in the place of t where no condition can be added: outer joins with USING, NATURAL or FULL.
func (j *judge) derive(sc *scope, pending []*ref) {
	for _, r := range pending {
		if sc.fixed || !r.src.plain {
			panic(refuse("an outer join without ON, or a FULL JOIN, of a table that is locked, written or hinted", "write ON with the columns, or join sub-selects: (SELECT ... WHERE tenant_id = @tenant) x"))
		}
		t := *r.src.table
		after := " WHERE " + j.predicate(t) + ")"
		if r.src.alias.name == "" {
			after += " " + j.source(t)
		}
		j.edits = append(j.edits, edit{t.start, t.start, "(SELECT * FROM "}, edit{t.end, t.end, after})
	}
}

// cond is one of the conditions that are joined by AND in one place.
type cond struct {
	*expr
	late bool // a noisy one stands before it
}

// isBound reports a condition that binds the reference. It must not stand behind a condition that computes something: where a server reads all rows of a
// table and tests the conditions in their order, the error of such a condition, which may name the value itself, tells of rows of other tenants.
func (j *judge) isBound(sc *scope, r *ref, conds []cond) bool {
	for _, c := range conds {
		if c.kind != exprEq {
			continue
		}
		a, b := c.list[0], c.list[1]
		if b.kind == exprColumn {
			a, b = b, a
		}
		if c.late {
			// SQLite keeps the last of several constants that a column equals and puts it into the places before, so that nothing there is a column's any more.
			if j.s.dialect == SQLite && a.kind == exprColumn && b.kind != exprColumn && j.s.isTenantColumn(a.column.name) && j.means(sc, a, r) {
				panic(refuse("a tenant_id behind a condition that may fail on a row", "write it first, or leave it out, the library adds it"))
			}
			continue
		}
		if a.kind == exprColumn && b.kind == exprHole && j.s.isTenantColumn(a.column.name) && j.means(sc, a, r) {
			if arg, ok := j.args[b.hole]; ok {
				j.v.Bound = append(j.v.Bound, arg)
			}
			return true
		}
	}
	return false
}

// means reports whether a column is r's. Where aliases have case, I.tenant_id says nothing of a table i: it may be another one outside this scope.
func (j *judge) means(sc *scope, c *expr, r *ref) bool {
	if c.qualifier.name == "" {
		return len(sc.refs) == 1 && sc.refs[0] == r
	}
	return j.s.same(c.qualifier, r.name)
}

// conjuncts returns a new list: list, and the conditions of e that are joined by AND. list is of a WHERE around the join whose ON is e. SQLite tests both
// in one go; elsewhere each is a place of its own.
func (j *judge) conjuncts(e *expr, list []cond) []cond {
	late := j.s.dialect == SQLite && slices.ContainsFunc(list, func(c cond) bool { return c.isNoisy() })
	return appendConjuncts(slices.Clone(list), e, &late)
}

func appendConjuncts(list []cond, e *expr, late *bool) []cond {
	switch {
	case e == nil:
		return list
	case e.kind == exprAnd:
		for _, c := range e.list {
			list = appendConjuncts(list, c, late)
		}
		return list
	}
	list = append(list, cond{expr: e, late: *late})
	*late = *late || e.isNoisy()
	return list
}

// isNoisy reports an expression that may fail on a row: anything but comparisons of columns, placeholders and constants.
func (e *expr) isNoisy() bool {
	return e.noisy || e.kind == exprQuery || slices.ContainsFunc(e.list, (*expr).isNoisy)
}

func (j *judge) exprs(list []*expr, e *env) {
	for _, x := range list {
		j.expr(x, e)
	}
}

// expr judges sub-selects, and notes every value that is compared with a tenant column.
func (j *judge) expr(x *expr, e *env) {
	switch x.kind {
	case exprQuery:
		j.query(x.query, e)
	case exprEq:
		j.compared(x.list[0], x.list[1])
		j.compared(x.list[1], x.list[0])
	case exprIn:
		for _, v := range x.list[1:] {
			j.compared(x.list[0], v)
		}
	}
	j.exprs(x.list, e)
}

// compared notes the value when c is a tenant column, in rows too.
func (j *judge) compared(c, value *expr) {
	if c.kind == exprRow && value.kind == exprRow && len(c.list) == len(value.list) {
		for i := range c.list {
			j.compared(c.list[i], value.list[i])
		}
		return
	}
	if c.kind == exprColumn && j.s.isTenantColumn(c.column.name) {
		j.owner(value)
	}
}

// owner notes a value that must be the tenant's id.
func (j *judge) owner(value *expr) {
	if j.system {
		return
	}
	switch value.kind {
	case exprHole:
		if arg, ok := j.args[value.hole]; ok {
			j.v.TenantArgs = append(j.v.TenantArgs, arg)
		}
	case exprString:
		j.v.Names = append(j.v.Names, value.text)
	}
}

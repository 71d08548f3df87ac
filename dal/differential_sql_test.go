package dal_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// sqlText is a statement under construction: text and values grow together, from left to right.
type sqlText struct {
	generator
	b      strings.Builder
	args   []any
	shapes map[string]bool
	names  int
	ctes   []relation
	ban    string // a table that sub-selects leave alone: the one that is written
}

// column of a relation; kind is 'i' for numbers and 't' for texts.
type column struct {
	name string
	kind byte
}

// relation is what stands in a FROM.
type relation struct {
	alias   string
	columns []column
	print   func() // writes it into the FROM
	base    string // the table, where it is one
}

var baseColumns = map[string][]column{
	"actors":   {{"id", 'i'}, {"gold", 'i'}, {"level", 'i'}, {"name", 't'}},
	"tools":    {{"id", 'i'}, {"actor_id", 'i'}, {"qty", 'i'}, {"name", 't'}, {"kind", 't'}},
	"jottings": {{"no", 'i'}, {"amount", 'i'}, {"note", 't'}},
	"prices":   {{"id", 'i'}, {"cost", 'i'}, {"name", 't'}},
}

func (s *sqlText) w(text string) { s.b.WriteString(text) }

func (s *sqlText) wf(format string, args ...any) { fmt.Fprintf(&s.b, format, args...) }

func (s *sqlText) shape(name string) { s.shapes[name] = true }

// value writes a number or a text, as a literal or as a placeholder.
func (s *sqlText) value(kind byte) {
	n, literal := s.number(), s.p.n(2) == 0
	x := one(s.p, s.name(), fmt.Sprintf("t%d", n%5), fmt.Sprintf("k%d", n%3), fmt.Sprintf("m%d", n%4))
	switch {
	case kind == 'i' && literal:
		s.wf("%d", n)
	case kind == 'i':
		s.w("?")
		s.args = append(s.args, n)
	case literal && chance(s.p, 12):
		s.shape("odd literal")
		s.w(one(s.p, "'it''s'", "'--x'", "'/*'", "'a;b'", "'tenant_id'", "''", "'('"))
	case literal:
		s.wf("'%s'", x)
	default:
		s.w("?")
		s.args = append(s.args, x)
	}
}

// alias returns a new name.
func (s *sqlText) alias(of string) string {
	s.names++
	return fmt.Sprintf("%s%d", of[:1], s.names)
}

// base makes a relation of a table.
func (s *sqlText) base(name string) relation {
	r := relation{alias: s.alias(name), columns: baseColumns[name], base: name}
	as := one(s.p, " AS ", " ")
	quote := chance(s.p, 6)
	r.print = func() {
		if quote {
			s.wf("`%s`%s%s", name, as, r.alias)
			return
		}
		s.wf("%s%s%s", name, as, r.alias)
	}
	switch name {
	case "prices":
		s.shape("global table")
	case "jottings":
		s.shape("local table")
	}
	return r
}

// relation picks what stands in a FROM.
func (s *sqlText) relation(depth int) relation {
	if len(s.ctes) > 0 && chance(s.p, 2) {
		c := s.ctes[s.p.n(len(s.ctes))]
		r := relation{alias: s.alias("x"), columns: c.columns}
		r.print = func() { s.wf("%s AS %s", c.alias, r.alias) }
		return r
	}
	if depth > 0 && chance(s.p, 5) {
		s.shape("derived table")
		kinds := s.kinds()
		r := relation{alias: s.alias("d"), columns: outputs(kinds)}
		r.print = func() {
			s.w("(")
			s.query(kinds, nil, depth-1)
			if chance(s.p, 4) {
				s.orderAll(len(kinds))
				s.limit()
			}
			s.wf(") AS %s", r.alias)
		}
		return r
	}
	for {
		if name := one(s.p, "actors", "tools", "actors", "tools", "jottings", "prices"); name != s.ban {
			return s.base(name)
		}
	}
}

// kinds picks what a query returns.
func (s *sqlText) kinds() []byte {
	kinds := make([]byte, 1+s.p.n(3))
	for i := range kinds {
		kinds[i] = one[byte](s.p, 'i', 'i', 't')
	}
	return kinds
}

// outputs are the names of what a query returns.
func outputs(kinds []byte) []column {
	all := make([]column, len(kinds))
	for i, k := range kinds {
		all[i] = column{fmt.Sprintf("c%d", i+1), k}
	}
	return all
}

// pick writes a column of the kind from the scope, or a value where there is none.
func (s *sqlText) pick(kind byte, scope []relation) {
	type at struct{ alias, name string }
	var all []at
	for _, r := range scope {
		for _, c := range r.columns {
			if c.kind == kind {
				all = append(all, at{r.alias, c.name})
			}
		}
	}
	if len(all) == 0 {
		s.value(kind)
		return
	}
	c := all[s.p.n(len(all))]
	s.wf("%s.%s", c.alias, c.name)
}

// expr writes an expression of the kind. outer are the relations of the statement around, for correlated sub-selects.
func (s *sqlText) expr(kind byte, scope, outer []relation, depth int) {
	switch k := s.p.n(12); {
	case k < 6 || depth == 0:
		s.pick(kind, scope)
	case k == 6:
		s.value(kind)
	case k == 7:
		s.w("COALESCE(")
		s.pick(kind, scope)
		s.w(", ")
		s.value(kind)
		s.w(")")
	case k == 8:
		s.w("CASE WHEN ")
		s.condition(scope, outer, 0)
		s.w(" THEN ")
		s.pick(kind, scope)
		s.w(" ELSE ")
		s.value(kind)
		s.w(" END")
	case k == 9 && kind == 'i':
		s.w("(")
		s.pick(kind, scope)
		s.w(one(s.p, " + ", " - ", " * "))
		s.value(kind)
		s.w(")")
	case k == 9:
		s.w(one(s.p, "UPPER", "LOWER") + "(")
		s.pick(kind, scope)
		s.w(")")
	case k == 10 && kind == 'i':
		s.w("LENGTH(")
		s.pick('t', scope)
		s.w(")")
	case k == 10 && len(owned(scope)) > 0 && chance(s.p, 3):
		s.shape("tenant_id named")
		s.wf("%s.tenant_id", owned(scope)[0].alias)
	case k == 10:
		s.w("CAST(")
		s.pick('i', scope)
		s.w(" AS CHAR)")
	default:
		s.scalar(kind, scope, depth-1)
	}
}

// scalar writes a sub-select of one value.
func (s *sqlText) scalar(kind byte, outer []relation, depth int) {
	s.shape("scalar sub-select")
	r := s.relation(depth)
	s.wf("(SELECT %s(", one(s.p, "MAX", "MIN"))
	s.pick(kind, []relation{r})
	s.w(") FROM ")
	r.print()
	s.subWhere([]relation{r}, outer, depth)
	s.w(")")
}

// subWhere writes the WHERE of a sub-select, correlated or not.
func (s *sqlText) subWhere(scope, outer []relation, depth int) {
	correlated := len(outer) > 0 && chance(s.p, 2)
	if !correlated && chance(s.p, 2) {
		return
	}
	s.w(" WHERE ")
	if correlated {
		s.shape("correlated sub-select")
		kind := one[byte](s.p, 'i', 'i', 't')
		s.pick(kind, scope)
		s.w(one(s.p, " = ", " <> ", " >= "))
		s.pick(kind, outer)
		if chance(s.p, 2) {
			return
		}
		s.w(one(s.p, " AND ", " OR "))
	}
	s.condition(scope, outer, depth)
}

// condition writes a condition over the scope.
func (s *sqlText) condition(scope, outer []relation, depth int) {
	if chance(s.p, 16) && s.ownerCondition(scope) {
		return
	}
	kind := one[byte](s.p, 'i', 'i', 't')
	switch k := s.p.n(18); {
	case k < 6 || k < 12 && depth == 0:
		s.expr(kind, scope, outer, min(depth, 1))
		s.w(one(s.p, " > ", " < ", " = ", " <> ", " >= ", " <= "))
		s.expr(kind, scope, outer, 0)
	case k < 8:
		s.w("(")
		s.condition(scope, outer, depth-1)
		s.w(one(s.p, " AND ", " OR ", " or ", "\nOR\t"))
		s.condition(scope, outer, depth-1)
		s.w(")")
	case k == 8:
		s.condition(scope, outer, depth-1)
		s.w(one(s.p, " AND ", " OR "))
		s.condition(scope, outer, depth-1)
	case k == 9:
		s.w("NOT (")
		s.condition(scope, outer, depth-1)
		s.w(")")
	case k == 10:
		s.shape("IN sub-select")
		r := s.relation(depth - 1)
		s.pick(kind, scope)
		s.w(one(s.p, " IN (SELECT ", " NOT IN (SELECT "))
		s.expr(kind, []relation{r}, nil, 0)
		s.w(" FROM ")
		r.print()
		s.subWhere([]relation{r}, scope, depth-1)
		s.w(")")
	case k == 11:
		s.shape("EXISTS")
		r := s.relation(depth - 1)
		s.w(one(s.p, "EXISTS (SELECT 1 FROM ", "NOT EXISTS (SELECT * FROM "))
		r.print()
		s.subWhere([]relation{r}, scope, depth-1)
		s.w(")")
	case k == 12:
		s.pick('i', scope)
		s.w(one(s.p, " BETWEEN ", " NOT BETWEEN "))
		s.value('i')
		s.w(" AND ")
		s.value('i')
	case k == 13:
		s.pick(kind, scope)
		s.w(one(s.p, " IN (", " NOT IN ("))
		s.value(kind)
		s.w(", ")
		s.value(kind)
		s.w(")")
	case k == 14:
		s.pick(kind, scope)
		s.w(one(s.p, " IS NULL", " IS NOT NULL"))
	case k == 15:
		s.pick('t', scope)
		s.w(" LIKE ")
		s.w(one(s.p, "'%1'", "'n%'", "'_3'", "'k%'"))
	case k == 16 && depth > 0:
		s.shape("row IN sub-select")
		r := s.relation(0)
		s.w("(")
		s.pick('i', scope)
		s.w(", ")
		s.pick('i', scope)
		s.w(") IN (SELECT ")
		s.pick('i', []relation{r})
		s.w(", ")
		s.pick('i', []relation{r})
		s.w(" FROM ")
		r.print()
		s.w(")")
	default:
		s.pick('i', scope)
		s.w(" >= ")
		s.value('i')
	}
}

// owned returns the relations of the scope that have an owner.
func owned(scope []relation) []relation {
	return slices.DeleteFunc(slices.Clone(scope), func(r relation) bool { return r.base == "" || r.base == "prices" })
}

// ownerCondition writes a condition on tenant_id that names the tenant itself, as people do who do not trust the store.
func (s *sqlText) ownerCondition(scope []relation) bool {
	all := owned(scope)
	if len(all) == 0 {
		return false
	}
	s.shape("tenant_id named")
	r := all[s.p.n(len(all))]
	switch s.p.n(6) {
	case 0:
		s.wf("%s.tenant_id = '%s'", r.alias, s.id)
	case 1:
		s.wf("? = %s.tenant_id", r.alias)
		s.args = append(s.args, s.id)
	case 2:
		s.wf("%s.tenant_id IN ('%s')", r.alias, s.id)
	case 3:
		s.wf("%s.tenant_id <> ''", r.alias)
	case 4:
		s.wf("%s.tenant_id = %s.tenant_id", r.alias, all[s.p.n(len(all))].alias)
	default:
		s.wf("%s.tenant_id = ?", r.alias)
		s.args = append(s.args, s.id)
	}
	return true
}

// from writes a FROM and returns its relations.
func (s *sqlText) from(first relation, depth int) []relation {
	s.w(" FROM ")
	first.print()
	// What is made of queries may have many rows: one of them in a FROM, and two relations in a query inside another, keep the product small.
	scope, loose, composed := []relation{first}, false, first.base == ""
	joins := one(s.p, 0, 0, 1, 1, 2)
	if depth < 2 {
		joins = min(joins, 1)
	}
	for range joins {
		r := s.relation(depth)
		for composed && r.base == "" {
			r = s.base(one(s.p, "jottings", "prices"))
		}
		composed = composed || r.base == ""
		join := one(s.p, "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "CROSS JOIN", ",", "RIGHT JOIN")
		if s.my && join == "CROSS JOIN" && chance(s.p, 2) {
			join = "STRAIGHT_JOIN"
		}
		if !s.my && chance(s.p, 20) {
			join = "FULL JOIN"
		}
		if join == "," && len(scope) > 1 {
			join = "JOIN"
		}
		for _, o := range scope {
			if o.base != "" && o.base == r.base {
				s.shape("self join")
			}
		}
		if join == "RIGHT JOIN" && loose {
			s.shape("RIGHT JOIN after a join without ON")
		}
		loose = loose || join == "," || join == "CROSS JOIN"
		if join == "," {
			s.shape("comma join")
			s.w(", ")
			r.print()
			scope = append(scope, r)
			if s.my {
				break // a comma binds weaker than JOIN there: names before it cannot be used after ON
			}
			continue
		}
		s.shape(join)
		s.wf(" %s ", join)
		r.print()
		scope = append(scope, r)
		if join == "CROSS JOIN" {
			continue
		}
		s.w(" ON ")
		if with := owned(scope[:len(scope)-1]); len(with) > 0 && r.base != "" && r.base != "prices" && chance(s.p, 4) {
			s.shape("tenant_id named")
			s.wf("%s.tenant_id = %s.tenant_id AND ", with[s.p.n(len(with))].alias, r.alias)
		}
		kind := one[byte](s.p, 'i', 'i', 't')
		s.pick(kind, scope[:len(scope)-1])
		s.w(one(s.p, " = ", " = ", " < "))
		s.pick(kind, []relation{r})
		switch s.p.n(4) {
		case 0:
			s.w(one(s.p, " AND ", " OR "))
			s.condition(scope, nil, 0)
		case 1:
			if depth > 0 {
				s.w(" AND ")
				s.shape("sub-select in ON")
				s.pick('i', scope)
				s.w(" IN (SELECT ")
				in := s.relation(0)
				s.pick('i', []relation{in})
				s.w(" FROM ")
				in.print()
				s.w(")")
			}
		}
	}
	return scope
}

// query writes one SELECT without ORDER BY. Its outputs are c1, c2 and so on, of these kinds.
func (s *sqlText) query(kinds []byte, outer []relation, depth int) {
	// The FROM is written after the list that names its relations: it is made first, aside.
	aside := &sqlText{generator: s.generator, shapes: s.shapes, names: s.names, ctes: s.ctes, ban: s.ban}
	scope := aside.fromAside(depth)
	s.names = aside.names
	grouped := chance(s.p, 5)
	windowed := !grouped && chance(s.p, 6)
	s.w("SELECT ")
	if !grouped && !windowed && chance(s.p, 6) {
		s.w("DISTINCT ")
		s.shape("DISTINCT")
	}
	var key string
	if grouped {
		s.shape("GROUP BY")
		mark := s.b.Len()
		s.pick('i', scope)
		key = s.b.String()[mark:]
		text := s.b.String()[:mark]
		s.b.Reset()
		s.b.WriteString(text)
		if strings.Contains(key, "?") {
			s.args = s.args[:len(s.args)-1]
			key = scope[0].alias + "." + scope[0].columns[0].name
		}
	}
	for i, k := range kinds {
		if i > 0 {
			s.w(", ")
		}
		switch {
		case grouped && k == 'i' && i == 0:
			s.wf("%s", key)
		case grouped && k == 'i':
			s.w(one(s.p, "COUNT(*)", "COUNT(DISTINCT ", "SUM(", "MAX("))
			if !strings.HasSuffix(s.b.String(), ")") {
				s.pick(k, scope)
				s.w(")")
			}
			if !s.my && chance(s.p, 6) && !strings.Contains(s.b.String()[max(0, s.b.Len()-40):], "DISTINCT") {
				s.shape("FILTER")
				s.w(" FILTER (WHERE ")
				s.condition(scope, nil, 0)
				s.w(")")
			}
		case grouped:
			s.w(one(s.p, "MAX(", "MIN("))
			s.pick(k, scope)
			s.w(")")
		case windowed && k == 'i':
			s.shape("window function")
			s.w(one(s.p, "RANK() OVER (", "COUNT(*) OVER (", "SUM(", "DENSE_RANK() OVER ("))
			if strings.HasSuffix(s.b.String(), "SUM(") {
				s.pick('i', scope)
				s.w(") OVER (")
			}
			s.w("PARTITION BY ")
			s.pick('t', scope)
			s.w(" ORDER BY ")
			s.pick('i', scope)
			s.w(")")
		default:
			s.expr(k, scope, outer, depth)
		}
		s.wf(" AS c%d", i+1)
	}
	s.wf("%s", aside.b.String())
	s.args = append(s.args, aside.args...)
	if !chance(s.p, 3) {
		s.w(" WHERE ")
		s.condition(scope, outer, depth)
	}
	if grouped {
		s.wf(" GROUP BY %s", key)
		switch s.p.n(3) {
		case 0:
			s.shape("HAVING")
			s.wf(" HAVING COUNT(*) %s ", one(s.p, ">", "<", "="))
			s.value('i')
		case 1:
			if depth > 0 {
				s.shape("HAVING")
				s.shape("sub-select in HAVING")
				s.w(" HAVING COUNT(*) <= ")
				s.scalar('i', nil, 0)
			}
		}
	}
}

// fromAside writes a FROM alone.
func (s *sqlText) fromAside(depth int) []relation {
	return s.from(s.relation(depth), depth)
}

// orderAll orders by every output: what is left in doubt are equal rows.
func (s *sqlText) orderAll(n int) {
	s.w(" ORDER BY ")
	for i := range n {
		if i > 0 {
			s.w(", ")
		}
		s.wf("%d%s", i+1, one(s.p, "", " DESC", " ASC"))
		if !s.my && chance(s.p, 8) {
			s.w(" NULLS LAST")
		}
	}
}

func (s *sqlText) limit() {
	s.shape("LIMIT")
	s.w(" LIMIT ")
	s.wf("%d", 1+s.p.n(5))
	if chance(s.p, 3) {
		s.wf(" OFFSET %d", s.p.n(3))
	}
}

// statement makes a whole SELECT, and says whether its rows have an order.
func (s *sqlText) statement() (ordered bool) {
	s.shape("SELECT")
	kinds := s.kinds()
	if chance(s.p, 5) {
		s.with()
	}
	compound := chance(s.p, 5)
	switch {
	case compound && s.my && chance(s.p, 3):
		s.shape("set operation in parentheses")
		s.shape("UNION")
		s.w("(")
		s.query(kinds, nil, 1)
		s.w(") UNION (")
		s.query(kinds, nil, 1)
		s.w(")")
	case compound:
		s.query(kinds, nil, 1)
		sets := 1 + s.p.n(2)
		for range sets {
			set := one(s.p, "UNION", "UNION ALL", "INTERSECT", "EXCEPT")
			if s.my && sets == 1 && chance(s.p, 3) { // MariaDB 10.11 runs for ever on some chains of these
				set = one(s.p, "INTERSECT ALL", "EXCEPT ALL")
			}
			s.shape(set)
			s.wf(" %s ", set)
			s.query(kinds, nil, 1)
		}
	default:
		s.query(kinds, nil, 2)
	}
	if chance(s.p, 2) {
		s.orderAll(len(kinds))
		ordered = true
		if chance(s.p, 2) {
			s.limit()
		}
	}
	if s.my && !compound && len(s.ctes) == 0 && !s.shapes["GROUP BY"] && chance(s.p, 8) {
		s.shape("FOR UPDATE")
		s.w(one(s.p, " FOR UPDATE", " LOCK IN SHARE MODE"))
	}
	return ordered
}

// with writes common table expressions.
func (s *sqlText) with() {
	s.shape("CTE")
	if chance(s.p, 3) {
		s.shape("recursive CTE")
		name := s.alias("walk")
		if chance(s.p, 2) {
			s.wf("WITH RECURSIVE %s(c1) AS (SELECT 1 UNION ALL SELECT %s.c1 + 1 FROM %s WHERE %s.c1 < %d) ", name, name, name, name, 2+s.p.n(4))
		} else {
			s.wf("WITH RECURSIVE %s(c1) AS (SELECT a.id FROM actors AS a WHERE a.id <= %d UNION SELECT t.actor_id FROM tools AS t JOIN %s ON t.id = %s.c1) ", name, 1+s.p.n(3), name, name)
		}
		s.ctes = append(s.ctes, relation{alias: name, columns: outputs([]byte{'i'})})
		return
	}
	s.w("WITH ")
	for i := range 1 + s.p.n(2) {
		if i > 0 {
			s.w(", ")
		}
		kinds := s.kinds()
		name := s.alias("cte")
		if chance(s.p, 2) {
			s.wf("%s(", name)
			for j := range kinds {
				if j > 0 {
					s.w(", ")
				}
				s.wf("c%d", j+1)
			}
			s.w(") AS (")
		} else {
			s.wf("%s AS (", name)
		}
		s.query(kinds, nil, 1)
		s.w(") ")
		s.ctes = append(s.ctes, relation{alias: name, columns: outputs(kinds)})
	}
}

func (g generator) sqlText() *sqlText { return &sqlText{generator: g, shapes: map[string]bool{}} }

// text returns the statement, in one of the ways to write it: everything in it means the same in small letters.
func (s *sqlText) text() string {
	text := s.b.String()
	switch s.p.n(8) {
	case 0:
		return strings.ToLower(text)
	case 1:
		return strings.NewReplacer(" WHERE ", "\nWHERE\t", " FROM ", "\n\tFROM\n", " AND ", "\tAND\n", " = ", "=").Replace(text)
	case 2:
		return text + one(s.p, " ", "\n", "\t\n")
	}
	return text
}

// list returns the shapes, sorted.
func (s *sqlText) list(more ...string) []string {
	return append(slices.Sorted(maps.Keys(s.shapes)), more...)
}

func (g generator) sqlRead() op {
	s := g.sqlText()
	var ordered bool
	switch g.p.n(12) {
	case 0:
		s.star()
	case 1:
		s.orderBySubSelect()
		ordered = true
	case 2:
		s.using()
	default:
		ordered = s.statement()
	}
	text, args := s.text(), s.args
	way := one(g.p, "Raw.Rows", "Raw.Rows", "Raw.Scan", "Raw.Find", "DB().Query", "Connection")
	shapes := s.list("raw")
	if way == "DB().Query" || way == "Connection" {
		shapes = append(shapes, way)
	}
	if way == "Raw.Rows" && chance(g.p, 12) {
		return g.tenantWord()
	}
	o := op{shapes: shapes, ordered: ordered, text: fmt.Sprintf("%s: %s %v", way, text, args), sql: text, args: args}
	if way == "DB().Query" && !g.raw {
		return g.direct(o, text, args, false)
	}
	o.run = func(w side) outcome {
		if w.raw != nil {
			return w.raw(text, args, false)
		}
		switch way {
		case "Raw.Scan", "Raw.Find":
			var all []map[string]any
			db := w.fresh().Raw(text, args...)
			if way == "Raw.Scan" {
				return into(db.Scan(&all), &all)
			}
			return into(db.Find(&all), &all)
		case "Connection":
			if _, tx := w.fresh().Statement.ConnPool.(gorm.TxCommitter); tx {
				break // gorm takes a connection beside the transaction
			}
			var out outcome
			err := w.fresh().Connection(func(tx *gorm.DB) error {
				out = rowsOf(tx.Raw(text, args...).Rows())
				return out.err
			})
			if out.err == nil {
				out.err = err
			}
			return out
		}
		return rowsOf(w.fresh().Raw(text, args...).Rows())
	}
	return o
}

// tenantWord is a SELECT that names the tenant by @tenant, for which the store puts its value. Alone it is written out.
func (g generator) tenantWord() op {
	n := g.number()
	text := one(g.p,
		"SELECT id FROM tools WHERE tenant_id = @tenant AND qty > ?",
		"SELECT t.id, a.name FROM tools t LEFT JOIN (SELECT * FROM actors WHERE tenant_id = @tenant) a ON a.id = t.actor_id WHERE t.qty > ? AND t.tenant_id = @tenant",
		"SELECT @tenant AS c1, id FROM actors WHERE gold > ? OR id = 1",
		"SELECT no, CASE WHEN tenant_id = @tenant THEN 'own' ELSE 'foreign' END AS c2 FROM jottings WHERE amount >= ?")
	return op{shapes: []string{"raw", "@tenant"}, text: fmt.Sprintf("%s [%d]", text, n), run: func(w side) outcome {
		text := text
		if w.alone {
			text = strings.ReplaceAll(text, "@tenant", "'"+g.id+"'")
		}
		if w.raw != nil {
			return w.raw(text, []any{n}, false)
		}
		return rowsOf(w.fresh().Raw(text, n).Rows())
	}}
}

// direct sends a text through DB(), where nothing is added to it: bound by hand, as the gate would bind it, or, now and then, unbound: then it must be
// refused if it names a tenant's table.
func (g generator) direct(o op, text string, args []any, write bool) op {
	bound := !chance(g.p, 5)
	v := g.gate.Judge(text)
	if v.Rewrite != nil && !bound {
		o.refuse = true
		o.text += ", unbound"
	}
	send := func(w side, text string, args []any) outcome {
		if _, tx := w.fresh().Statement.ConnPool.(gorm.TxCommitter); tx && !o.refuse {
			// gorm hands out the pool beside the transaction, so the transaction itself is asked.
			if !write {
				return rowsOf(w.fresh().Raw(text, args...).Rows())
			}
			res := w.fresh().Exec(text, args...)
			return outcome{affected: res.RowsAffected, err: res.Error}
		}
		db, err := w.fresh().DB()
		if err != nil {
			return outcome{err: err}
		}
		if write {
			return execOn(w.ctx, db, text, args)
		}
		return rowsOf(db.QueryContext(w.ctx, text, args...))
	}
	o.run = func(w side) outcome {
		if v.Rewrite == nil || !bound {
			return send(w, text, args)
		}
		return send(w, v.Rewrite.Text, rebind(v.Rewrite, args, g.id))
	}
	return o
}

func rowsOf(rows *sql.Rows, err error) outcome {
	if err != nil {
		return outcome{err: err}
	}
	all, err := lines(rows)
	return outcome{rows: all, err: err}
}

// rebind puts the tenant among the values of a text that the gate rewrote.
func rebind(r *gate.Rewrite, args []any, id string) []any {
	all := make([]any, len(r.Args))
	for i, from := range r.Args {
		if from == gate.TenantArg {
			all[i] = id
		} else {
			all[i] = args[from]
		}
	}
	return all
}

// star is a SELECT * in its forms.
func (s *sqlText) star() {
	s.shape("SELECT")
	s.shape("star")
	r := s.base(one(s.p, "actors", "tools", "jottings"))
	switch s.p.n(3) {
	case 0:
		s.w("SELECT * FROM ")
		r.print()
	case 1:
		s.wf("SELECT %s.* FROM ", r.alias)
		r.print()
	default:
		s.shape("JOIN")
		o := s.base("tools")
		s.wf("SELECT %s.*, %s.* FROM ", r.alias, o.alias)
		r.print()
		s.w(" JOIN ")
		o.print()
		s.wf(" ON %s.%s = %s.id", r.alias, r.columns[0].name, o.alias)
	}
	if chance(s.p, 2) {
		s.w(" WHERE ")
		s.condition([]relation{r}, nil, 1)
	}
}

// orderBySubSelect orders by a sub-select, and then by the key.
func (s *sqlText) orderBySubSelect() {
	s.shape("SELECT")
	s.shape("sub-select in ORDER BY")
	s.shape("correlated sub-select")
	r := s.base(one(s.p, "actors", "tools"))
	s.wf("SELECT %s.id AS c1 FROM ", r.alias)
	r.print()
	if chance(s.p, 2) {
		s.w(" WHERE ")
		s.condition([]relation{r}, nil, 1)
	}
	s.w(" ORDER BY (SELECT COUNT(*) FROM ")
	o := s.base(one(s.p, "tools", "jottings"))
	o.print()
	s.w(" WHERE ")
	s.pick('i', []relation{o})
	s.wf(" = %s.id), %s.id", r.alias, r.alias)
	if chance(s.p, 2) {
		s.limit()
	}
}

// using joins by columns of one name.
func (s *sqlText) using() {
	s.shape("SELECT")
	if chance(s.p, 2) {
		s.shape("NATURAL JOIN")
		s.wf("SELECT COUNT(*) AS c1 FROM tools NATURAL JOIN %s", one(s.p, "actors", "prices"))
		return
	}
	join := "JOIN"
	if s.shape("USING"); chance(s.p, 4) {
		join = "LEFT JOIN"
		s.shape("outer join USING")
	}
	s.wf("SELECT a.gold AS c1, t.qty AS c2 FROM actors AS a %s tools AS t USING (id)", join)
	if chance(s.p, 2) {
		s.w(" WHERE t.qty > ")
		s.value('i')
	}
}

// sqlWrite makes an INSERT, UPDATE or DELETE.
func (g generator) sqlWrite() op {
	s := g.sqlText()
	switch g.p.n(12) {
	case 0, 1:
		s.insertValues()
	case 2:
		s.insertSelect()
	case 3:
		s.upsert()
	case 4, 5:
		s.update()
	case 6:
		s.updateMany()
	case 7, 8:
		s.delete()
	case 9:
		s.deleteMany()
	case 10:
		s.limited()
	default:
		s.update()
	}
	text, args := s.text(), s.args
	way := one(g.p, "Exec", "Exec", "Exec", "DB().Exec")
	shapes := s.list("raw write")
	if way != "Exec" {
		shapes = append(shapes, way)
	}
	o := op{shapes: shapes, text: fmt.Sprintf("%s: %s %v", way, text, args)}
	if way != "Exec" && !g.raw {
		return g.direct(o, text, args, true)
	}
	o.run = func(w side) outcome {
		if w.raw != nil {
			return w.raw(text, args, true)
		}
		res := w.fresh().Exec(text, args...)
		return outcome{affected: res.RowsAffected, err: res.Error}
	}
	return o
}

func execOn(ctx context.Context, db *sql.DB, text string, args []any) outcome {
	res, err := db.ExecContext(ctx, text, args...)
	if err != nil {
		return outcome{err: err}
	}
	n, err := res.RowsAffected()
	return outcome{affected: n, err: err}
}

// target is a table that is written, with the columns that may be set.
type target struct {
	name string
	id   string
	cols []column // the rest, without keys
	keys string   // columns with a fixed value in an INSERT, and that value
}

func (s *sqlText) target() target {
	return one(s.p,
		target{"tools", "id", []column{{"actor_id", 'i'}, {"name", 't'}, {"qty", 'i'}, {"kind", 't'}}, "player_id"},
		target{"actors", "id", []column{{"name", 't'}, {"gold", 'i'}, {"level", 'i'}}, "player_id"},
		target{"jottings", "no", []column{{"note", 't'}, {"amount", 'i'}}, ""},
	)
}

func (s *sqlText) insertValues() {
	s.shape("INSERT VALUES")
	t := s.target()
	if s.my && chance(s.p, 4) {
		s.shape("INSERT SET")
		s.wf("INSERT INTO %s SET %s = %d", t.name, t.id, s.newKey())
		if t.keys != "" {
			s.wf(", %s = '7'", t.keys)
		}
		for _, c := range t.cols {
			s.wf(", %s = ", c.name)
			s.value(c.kind)
		}
		return
	}
	verb := "INSERT"
	if chance(s.p, 12) {
		verb = "REPLACE"
		s.shape("REPLACE")
	}
	s.wf("%s INTO %s (%s", verb, t.name, t.id)
	if t.keys != "" {
		s.wf(", %s", t.keys)
	}
	for _, c := range t.cols {
		s.wf(", %s", c.name)
	}
	named := chance(s.p, 5)
	if named {
		s.shape("tenant_id named")
		s.w(", tenant_id")
	}
	s.w(") VALUES ")
	for i := range 1 + s.p.n(3) {
		if i > 0 {
			s.w(", ")
		}
		s.w("(")
		s.values(t)
		if named {
			s.w(", ?")
			s.args = append(s.args, s.id)
		}
		s.w(")")
	}
}

// values writes the values of one row.
func (s *sqlText) values(t target) {
	s.wf("%d", s.newKey())
	if t.keys != "" {
		if chance(s.p, 2) {
			s.w(", ?")
			s.args = append(s.args, playerSeven)
		} else {
			s.w(", '7'")
		}
	}
	for _, c := range t.cols {
		s.w(", ")
		switch {
		case chance(s.p, 12):
			s.shape("sub-select in VALUES")
			s.ban = t.name
			s.scalar(c.kind, nil, 0)
		case c.kind == 'i' && chance(s.p, 5):
			s.w("NULL")
		default:
			s.value(c.kind)
		}
	}
}

func (s *sqlText) insertSelect() {
	s.shape("INSERT SELECT")
	t := s.target()
	s.ban = t.name
	s.wf("INSERT INTO %s (%s", t.name, t.id)
	if t.keys != "" {
		s.wf(", %s", t.keys)
	}
	for _, c := range t.cols {
		s.wf(", %s", c.name)
	}
	r := s.base(one(s.p, "jottings", "prices"))
	if t.name == "jottings" {
		r = s.base(one(s.p, "actors", "tools"))
	}
	s.wf(") SELECT %s.%s + %d", r.alias, r.columns[0].name, 10+s.p.n(9))
	if t.keys != "" {
		s.w(", '7'")
	}
	for _, c := range t.cols {
		s.w(", ")
		if t.name == "actors" && c.name == "name" {
			if s.my {
				s.wf("CONCAT('new', %s.%s)", r.alias, r.columns[0].name)
			} else {
				s.wf("'new' || %s.%s", r.alias, r.columns[0].name)
			}
			continue
		}
		s.expr(c.kind, []relation{r}, nil, 1)
	}
	s.w(" FROM ")
	r.print()
	if chance(s.p, 2) {
		s.w(" WHERE ")
		s.condition([]relation{r}, nil, 1)
	}
}

func (s *sqlText) upsert() {
	t := s.target()
	c := t.cols[len(t.cols)-1]
	if c.kind == 't' {
		c = column{"qty", 'i'}
	}
	if s.my && chance(s.p, 5) {
		s.shape("INSERT IGNORE")
		s.wf("INSERT IGNORE INTO %s (%s", t.name, t.id)
	} else {
		s.shape("upsert")
		s.wf("INSERT INTO %s (%s", t.name, t.id)
	}
	if t.keys != "" {
		s.wf(", %s", t.keys)
	}
	for _, c := range t.cols {
		s.wf(", %s", c.name)
	}
	s.w(") VALUES (")
	s.values(t)
	if chance(s.p, 2) {
		s.w("), (")
		s.values(t)
	}
	s.w(")")
	switch {
	case s.shapes["INSERT IGNORE"]:
	case s.my:
		s.wf(" ON DUPLICATE KEY UPDATE %s = ", c.name)
		s.w(one(s.p, "VALUES("+c.name+")", c.name+" + 1", "5", c.name+" + VALUES("+c.name+")"))
	default:
		s.wf(" ON CONFLICT (tenant_id, %s) ", t.id)
		if chance(s.p, 3) {
			s.w("DO NOTHING")
			return
		}
		s.wf("DO UPDATE SET %s = ", c.name)
		s.w(one(s.p, "excluded."+c.name, c.name+" + 1", "5", t.name+"."+c.name+" + excluded."+c.name))
		if chance(s.p, 3) {
			s.shape("upsert WHERE")
			s.wf(" WHERE %s.%s > ", t.name, c.name)
			s.value('i')
		}
	}
}

// set writes the assignments of an UPDATE. A name may break the unique key: then all rows get one name, so that the order of rows does not matter.
func (s *sqlText) set(t target, r relation, prefix string, depth int) {
	c := t.cols[s.p.n(len(t.cols))]
	s.wf(" SET %s%s = ", prefix, c.name)
	s.ban = t.name
	switch {
	case c.kind == 'i' && chance(s.p, 2):
		s.expr('i', []relation{r}, nil, 0)
		s.w(one(s.p, " + ", " - "))
		s.value('i')
	case t.name == "actors" && c.name == "name":
		s.value('t')
	case depth > 0 && chance(s.p, 4):
		s.shape("sub-select in SET")
		s.scalar(c.kind, []relation{r}, 0)
	case c.kind == 'i' && chance(s.p, 4):
		s.w("NULL")
	default:
		s.value(c.kind)
	}
}

func (s *sqlText) update() {
	s.shape("UPDATE")
	t := s.target()
	if !s.my && chance(s.p, 8) {
		s.shape("CTE before a write")
		s.ban = t.name // which no order of rows may change
		s.with()
	}
	r := relation{alias: t.name, columns: baseColumns[t.name], base: t.name}
	s.wf("UPDATE %s", t.name)
	if chance(s.p, 3) {
		r.alias = s.alias("u")
		s.wf(" AS %s", r.alias)
		s.shape("UPDATE alias")
	}
	s.set(t, r, "", 1)
	if !chance(s.p, 8) {
		s.w(" WHERE ")
		s.condition([]relation{r}, nil, 1)
	}
}

// updateMany updates by a join: each row is met at most once.
func (s *sqlText) updateMany() {
	s.w("UPDATE ")
	if s.my {
		s.shape("UPDATE join")
		s.wf("tools AS t %s actors AS a ON a.id = t.id SET t.qty = ", one(s.p, "JOIN", "INNER JOIN", "LEFT JOIN"))
		s.w(one(s.p, "a.gold", "a.gold + 1", "t.qty + a.gold", "7"))
		if chance(s.p, 2) {
			s.w(", a.gold = a.gold + 1")
			s.shape("UPDATE two tables")
		}
	} else {
		s.shape("UPDATE FROM")
		s.wf("tools SET qty = %s FROM actors AS a WHERE a.id = tools.id", one(s.p, "a.gold", "a.gold + tools.qty", "7"))
		if chance(s.p, 2) {
			s.w(" AND a.gold > ")
			s.value('i')
		}
		return
	}
	if chance(s.p, 2) {
		s.w(" WHERE t.actor_id > ")
		s.value('i')
	}
}

func (s *sqlText) delete() {
	s.shape("DELETE")
	t := s.target()
	if !s.my && chance(s.p, 6) {
		s.shape("CTE before a write")
		s.with()
	}
	r := relation{alias: t.name, columns: baseColumns[t.name], base: t.name}
	s.ban = t.name
	s.wf("DELETE FROM %s WHERE ", t.name)
	s.condition([]relation{r}, nil, 1)
	s.wf(" AND %s.%s %% 3 = %d", r.alias, t.id, s.p.n(3)) // so that rows are left
}

func (s *sqlText) deleteMany() {
	if !s.my {
		s.delete()
		return
	}
	s.shape("DELETE join")
	s.w(one(s.p,
		"DELETE t FROM tools AS t JOIN actors AS a ON a.id = t.actor_id WHERE a.gold > ",
		"DELETE FROM t USING tools AS t JOIN actors AS a ON a.id = t.actor_id WHERE a.gold > ",
		"DELETE t, a FROM tools AS t JOIN actors AS a ON a.id = t.id WHERE t.qty > ",
		"DELETE t FROM tools AS t LEFT JOIN jottings AS m ON m.no = t.id WHERE m.no IS NULL AND t.qty > "))
	s.wf("%d", 5+s.p.n(5))
}

// limited writes to the first rows of an order, on MySQL alone.
func (s *sqlText) limited() {
	if !s.my {
		s.update()
		return
	}
	t := s.target()
	if chance(s.p, 2) {
		s.shape("DELETE LIMIT")
		s.wf("DELETE FROM %s WHERE %s > ", t.name, t.id)
	} else {
		s.shape("UPDATE LIMIT")
		s.wf("UPDATE %s SET %s = 3 WHERE %s > ", t.name, map[string]string{"tools": "qty", "actors": "gold", "jottings": "amount"}[t.name], t.id)
	}
	s.value('i')
	s.wf(" ORDER BY %s %s LIMIT %d", t.id, one(s.p, "", "DESC"), 1+s.p.n(2))
}

package gatetest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// hole stands for a placeholder while a text is made: placeholders are numbered at the end, and a ? in a literal is none.
const hole = "\x01"

// generator makes statements over the tables of a world. Most are valid in their dialect; whether the gate passes them is not its business. Every
// table, derived table and common table expression has the columns id, player_id, gold, name, and all but catalog tenant_id.
type generator struct {
	r      *rand.Rand
	d      gate.Dialect
	budget int      // how many more sub-selects and joins
	ctes   []string // in sight, each with all five columns
	names  int
	derive bool // inside a derived table, which sees no table outside it
}

// relation is what a name in FROM stands for.
type relation struct {
	name   string
	tenant bool // has tenant_id
}

// view is the relations in sight: a FROM's, and those outside it.
type view struct {
	rels []relation
	up   *view
}

// Statement returns one statement: SELECT, INSERT, UPDATE or DELETE, or EXPLAIN of one, over the tables items, players, bags (which have tenant_id) and
// catalog. Most are valid in their dialect. The same state of r gives the same statement.
func Statement(r *rand.Rand, d gate.Dialect) string {
	g := &generator{r: r, d: d, budget: 2 + r.IntN(10)}
	return g.finish(g.statement())
}

// finish puts the placeholders in.
func (g *generator) finish(text string) string {
	if g.d != gate.Postgres {
		return strings.ReplaceAll(text, hole, "?")
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, hole)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *generator) pick(list ...string) string { return list[g.r.IntN(len(list))] }

func (g *generator) spend() bool {
	g.budget--
	return g.budget >= 0
}

func (g *generator) statement() string {
	with := ""
	if g.chance(15) {
		with = g.with(nil)
	}
	switch n := g.r.IntN(100); {
	case n < 55:
		return with + g.query(nil, "all")
	case n < 70:
		return g.insert(with)
	case n < 86:
		return g.update(with)
	default:
		return g.delete(with)
	}
}

// with makes WITH and remembers its names.
func (g *generator) with(up *view) string {
	saved := g.derive
	g.derive = true
	defer func() { g.derive = saved }()
	if g.chance(25) {
		g.names++
		name := "r" + strconv.Itoa(g.names)
		first := g.core(nil, "all")
		step := "SELECT q.id, q.player_id, q.gold, q.name, q.tenant_id FROM " + g.pick("items", "players", "bags") + " q JOIN " + name + " ON q.id = " + name + ".player_id" + g.pick("", " WHERE q.gold > 1", " AND q.gold < 50")
		g.ctes = append(g.ctes, name)
		return "WITH RECURSIVE " + name + " (id, player_id, gold, name, tenant_id) AS (" + first + " UNION " + step + ") "
	}
	var parts []string
	for range 1 + g.r.IntN(2) {
		g.names++
		name := "c" + strconv.Itoa(g.names)
		parts = append(parts, name+" AS ("+g.query(nil, "all")+")")
		g.ctes = append(g.ctes, name)
	}
	return "WITH " + strings.Join(parts, ", ") + " "
}

// query makes a SELECT with the given columns: all five, num, text, or pair (two numbers).
func (g *generator) query(up *view, columns string) string {
	ctes := len(g.ctes)
	defer func() { g.ctes = g.ctes[:ctes] }()
	text := ""
	if g.chance(6) && g.spend() {
		text = g.with(up)
	}
	arms := 1
	if g.chance(18) && g.spend() {
		arms += 1 + g.r.IntN(2)
	}
	for n := range arms {
		if n > 0 {
			text += " " + g.pick("UNION", "UNION ALL", "INTERSECT", "EXCEPT") + " "
		}
		arm := g.core(up, columns)
		if arms > 1 && g.d != gate.SQLite && g.chance(40) {
			arm = "(" + arm + ")"
		}
		text += arm
	}
	if g.chance(20) {
		text += " ORDER BY 1" + g.pick("", " DESC", ", 1 ASC")
		if g.chance(30) {
			text += " LIMIT " + g.pick("1", "5", "100")
		}
	} else if arms == 1 && up == nil && g.d != gate.SQLite && g.chance(5) {
		text += g.pick(" FOR UPDATE", " FOR SHARE", " FOR UPDATE SKIP LOCKED")
	}
	return text
}

func (g *generator) core(up *view, columns string) string {
	if g.chance(4) {
		return "SELECT " + g.items(&view{up: up}, columns)
	}
	from, rels := g.from()
	v := &view{rels: rels, up: up}
	if columns == "all" && g.chance(15) {
		key := g.column(v, "name")
		text := "SELECT MAX(" + g.num(v, 1) + ") AS id, COUNT(*) AS player_id, SUM(" + g.column(v, "gold") + ") AS gold, " + key + " AS name, MAX(" + g.column(v, "tenant_id") + ") AS tenant_id FROM " + from + g.where(v) + " GROUP BY " + key
		if g.chance(40) {
			text += " HAVING " + g.pick("COUNT(*) > 1", "MAX("+g.column(v, "gold")+") > "+hole, "EXISTS ("+g.query(v, "num")+")", "NOT (MIN("+g.column(v, "id")+") = "+hole+")")
		}
		return text
	}
	distinct := ""
	if g.chance(10) {
		distinct = "DISTINCT "
	}
	return "SELECT " + distinct + g.items(v, columns) + " FROM " + from + g.where(v)
}

func (g *generator) items(v *view, columns string) string {
	switch columns {
	case "num":
		return g.num(v, 2)
	case "text":
		return g.text(v, 2)
	case "pair":
		return g.num(v, 1) + ", " + g.num(v, 1)
	}
	gold := g.num(v, 2)
	if len(v.rels) > 0 && g.chance(8) {
		gold = g.pick("SUM(", "COUNT(", "MAX(") + g.column(v, "gold") + ") OVER (" + g.pick("", "PARTITION BY "+g.column(v, "player_id"), "PARTITION BY "+g.column(v, "name")) + ")"
	}
	return g.num(v, 2) + " AS id, " + g.num(v, 1) + " AS player_id, " + gold + " AS gold, " + g.text(v, 2) + " AS name, " + g.text(v, 1) + " AS tenant_id"
}

func (g *generator) where(v *view) string {
	var own []string
	for _, r := range v.rels {
		if r.tenant && g.chance(60) {
			own = append(own, g.owner(r))
		}
	}
	if v.up != nil && len(own) > 0 && g.chance(15) { // what binds a table outside this FROM, which has a similar name
		for _, r := range v.up.rels {
			if r.tenant {
				own[0] = r.name + ".tenant_id = " + hole
			}
		}
		return " WHERE " + strings.Join(own, " AND ")
	}
	switch n := g.r.IntN(100); {
	case n < 15:
		return ""
	case n < 40 && len(own) > 0:
		return " WHERE " + g.mix(own, v)
	case n < 60 && len(own) > 0:
		return " WHERE " + strings.Join(append(own, g.cond(v, 2)), " AND ")
	}
	return " WHERE " + g.cond(v, 3)
}

// owner makes a condition on a relation's tenant, most often the one that binds.
func (g *generator) owner(r relation) string {
	column := r.name + "." + g.pick("tenant_id", "tenant_id", "tenant_id", "TENANT_ID")
	switch g.r.IntN(18) {
	case 9:
		if g.d != gate.Postgres {
			return column + " = " + hole + " = " + g.pick("1", "0", hole)
		}
	case 10:
		return column + " = " + hole + g.pick(" IS NULL", " IS NOT NULL", " IS TRUE", " IS NOT TRUE")
	case 0:
		return hole + " = " + column
	case 1:
		return "(" + column + " = " + hole + ")"
	case 2:
		return "(" + column + ") = (" + hole + ")"
	case 3:
		return column + " = 'a'"
	case 4:
		return column + " = 'b'"
	case 5:
		return column + " IN (" + hole + ", 'a')"
	case 6:
		return column + " <> " + hole
	case 7:
		return "NOT " + column + " = " + hole
	case 8:
		return column + " = @tenant"
	}
	return column + " = " + hole
}

// mix joins conditions in ways of which only some bind.
func (g *generator) mix(own []string, v *view) string {
	g.r.Shuffle(len(own), func(i, k int) { own[i], own[k] = own[k], own[i] })
	text := own[0]
	for _, o := range append(own[1:], g.cond(v, 1)) {
		ops := []string{"AND", "AND", "AND", "AND", "OR"}
		if g.d == gate.MySQL {
			ops = append(ops, "XOR", "&&", "||")
		}
		op := " " + g.pick(ops...) + " "
		switch g.r.IntN(8) {
		case 0:
			text = "(" + text + ")" + op + o
		case 1:
			text = "NOT " + text + op + o
		case 2:
			text = "NOT (" + text + ")" + op + o
		case 3:
			text = o + op + text
		case 4:
			text = "(" + o + op + text + ")"
		case 5:
			text = "(" + text + op + o + ") " + g.pick("IS NOT TRUE", "IS TRUE", "IS NOT NULL", "= ("+g.cond(v, 0)+")")
		default:
			text += op + o
		}
	}
	return text
}

// from makes what stands behind FROM.
func (g *generator) from() (string, []relation) { return g.tree(2, nil) }

func (g *generator) tree(depth int, used []string) (string, []relation) {
	if depth == 0 || !g.chance(45) || !g.spend() {
		return g.leaf(used)
	}
	left, rels := g.tree(depth-1, used)
	for _, r := range rels {
		used = append(slices.Clip(used), r.name)
	}
	right, more := g.tree(depth-1, used)
	rels = append(slices.Clip(rels), more...)
	if strings.ContainsAny(right, " ") && len(more) > 1 && g.chance(90) {
		right = "(" + right + ")"
	}
	if strings.Contains(left, ",") && len(rels)-len(more) > 1 && g.chance(70) {
		left = "(" + left + ")"
	}
	ops := []string{",", "JOIN", "INNER JOIN", "CROSS JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN", "USING", "BARE"}
	if g.d == gate.MySQL {
		ops = append(ops, "STRAIGHT_JOIN")
	} else {
		ops = append(ops, "FULL JOIN")
	}
	v := &view{rels: rels}
	on := " ON " + g.on(rels, more, v)
	switch op := g.pick(ops...); op {
	case ",":
		return left + ", " + right, rels
	case "CROSS JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN":
		return left + " " + op + " " + right, rels
	case "BARE":
		return left + " JOIN " + right, rels
	case "USING":
		return left + " " + g.pick("JOIN ", "LEFT JOIN ") + right + " USING (id)", rels
	case "FULL JOIN":
		on := " ON " + rels[0].name + ".id = " + more[0].name + ".id"
		for _, r := range rels {
			if r.tenant && g.chance(30) {
				on += " AND " + r.name + ".tenant_id = " + hole
			}
		}
		return left + " FULL JOIN " + right + on, rels
	default:
		return left + " " + op + " " + right + on, rels
	}
}

// on makes a join's condition.
func (g *generator) on(rels, right []relation, v *view) string {
	text := rels[0].name + ".id = " + right[0].name + "." + g.pick("id", "player_id")
	switch g.r.IntN(6) {
	case 0:
		return g.cond(v, 1)
	case 1:
		return text + " AND " + g.cond(v, 1)
	case 2, 3:
		if right[0].tenant {
			return text + " AND " + g.owner(right[0])
		}
	case 4:
		if rels[0].tenant {
			return text + g.pick(" AND ", " OR ") + g.owner(rels[0])
		}
	}
	return text
}

func (g *generator) leaf(used []string) (string, []relation) {
	switch n := g.r.IntN(100); {
	case n < 12 && g.spend():
		saved := g.derive
		g.derive = true
		text := g.query(nil, "all")
		g.derive = saved
		name := g.alias(used, true)
		return "(" + text + ") " + g.pick("", "AS ") + name, []relation{{name, true}}
	case n < 24 && len(g.ctes) > 0:
		name := g.alias(used, true)
		return g.ctes[g.r.IntN(len(g.ctes))] + " " + name, []relation{{name, true}}
	}
	table := g.pick("items", "items", "players", "players", "bags", "catalog")
	name := g.alias(used, slices.Contains(used, table))
	text := table
	switch {
	case g.d == gate.Postgres && g.chance(10):
		text = `"` + table + `"`
	case g.d != gate.Postgres && g.chance(10):
		text = "`" + table + "`"
	case g.d == gate.SQLite && g.chance(10):
		text = g.pick("["+table+"]", strings.ToUpper(table))
	}
	if name != "" {
		text += g.pick(" ", " AS ") + name
	} else {
		name = table
	}
	if g.d == gate.MySQL && g.chance(5) {
		text += g.pick(" USE INDEX (PRIMARY)", " FORCE INDEX FOR JOIN (PRIMARY)")
	}
	if g.d == gate.SQLite && table == "catalog" && g.chance(5) {
		text += " NOT INDEXED"
	}
	return text, []relation{{name, table != "catalog"}}
}

// alias returns a name that is not used in this FROM: often one that is used outside it, or one that differs from another in case.
func (g *generator) alias(used []string, must bool) string {
	if !must && g.chance(35) {
		return ""
	}
	pool := []string{"i", "I", "p", "P", "x", "_a1", "e", "n"}
	switch g.d {
	case gate.Postgres:
		pool = append(pool, `"i"`, `"I"`, `"p q"`)
	case gate.SQLite:
		pool = append(pool, "[i]", `"p"`, "`x y`")
	default:
		pool = append(pool, "`i`", "`p q`")
	}
	name := g.pick(pool...)
	fold := func(s string) string { return strings.ToLower(strings.Trim(s, "\"`[]")) }
	if slices.ContainsFunc(used, func(u string) bool { return fold(u) == fold(name) }) {
		g.names++
		return "t" + strconv.Itoa(g.names)
	}
	return name
}

// column names a column of something in sight.
func (g *generator) column(v *view, name string) string {
	for v.up != nil && !g.derive && (len(v.rels) == 0 || g.chance(20)) {
		v = v.up
	}
	if len(v.rels) == 0 {
		return g.pick("1", hole)
	}
	r := v.rels[g.r.IntN(len(v.rels))]
	if name == "tenant_id" && !r.tenant {
		name = "name"
	}
	if len(v.rels) == 1 && g.chance(25) {
		return name
	}
	return r.name + "." + name
}

// cond makes a condition.
func (g *generator) cond(v *view, depth int) string {
	if depth > 0 && g.chance(45) {
		a, b := g.cond(v, depth-1), g.cond(v, depth-1)
		switch g.r.IntN(9) {
		case 0, 1:
			return a + " AND " + b
		case 2, 3:
			return a + " OR " + b
		case 4:
			return "(" + a + " OR " + b + ")"
		case 5:
			return "NOT " + a
		case 6:
			return "NOT (" + a + " AND " + b + ")"
		case 7:
			return "CASE WHEN " + a + " THEN " + b + " ELSE " + g.cond(v, 0) + " END"
		default:
			if g.d == gate.MySQL {
				return a + g.pick(" XOR ", " && ", " || ") + b
			}
			return "(" + a + ")"
		}
	}
	num := func() string { return g.num(v, depth) }
	switch n := g.r.IntN(100); {
	case n < 25:
		return num() + " " + g.pick("=", "<", ">", "<=", ">=", "<>", "!=") + " " + num()
	case n < 33:
		return g.text(v, depth) + " " + g.pick("=", "<>", "<", "LIKE", "NOT LIKE") + " " + g.text(v, depth)
	case n < 38:
		return num() + g.pick(" BETWEEN ", " NOT BETWEEN ") + num() + " AND " + num()
	case n < 44:
		return num() + g.pick(" IN (", " NOT IN (") + num() + ", " + num() + ")"
	case n < 48:
		return num() + g.pick(" IS NULL", " IS NOT NULL")
	case n < 58: // of a table in this FROM, or in one outside it
		for v.up != nil && (len(v.rels) == 0 || g.chance(40)) {
			v = v.up
		}
		for _, r := range v.rels {
			if r.tenant {
				return g.owner(r)
			}
		}
		return "1 = 1"
	case n < 62:
		return "(" + g.column(v, "id") + ", " + g.column(v, "name") + ")" + g.pick(" = ("+hole+", "+hole+")", " IN (("+hole+", 'x'), (2, "+hole+"))")
	case n < 66 && g.spend():
		return num() + g.pick(" IN (", " NOT IN (") + g.query(v, "num") + ")"
	case n < 70 && g.spend():
		return g.pick("EXISTS (", "NOT EXISTS (") + g.query(v, "num") + ")"
	case n < 72 && g.d != gate.SQLite && g.spend():
		return num() + g.pick(" = ANY (", " > ALL (", " < SOME (") + g.query(v, "num") + ")"
	case n < 74 && g.spend():
		return "(" + g.column(v, "id") + ", " + g.column(v, "gold") + ") IN (" + g.query(v, "pair") + ")"
	case n < 78 && g.d != gate.Postgres:
		return g.column(v, "id") + " = " + num() + " = " + num()
	case n < 80 && g.d == gate.MySQL:
		return g.column(v, "name") + " <=> " + g.text(v, 0)
	case n < 84:
		return "(" + num() + " > " + num() + ") IS " + g.pick("TRUE", "NOT TRUE", "NOT FALSE")
	}
	return g.column(v, "gold") + " > " + g.pick("0", "3", hole)
}

// num makes a number.
func (g *generator) num(v *view, depth int) string {
	if depth > 0 {
		switch g.r.IntN(14) {
		case 0:
			return g.num(v, depth-1) + g.pick(" + ", " - ", " + ") + g.num(v, depth-1)
		case 1:
			return "(" + g.num(v, depth-1) + ")"
		case 2:
			return "COALESCE(" + g.num(v, depth-1) + ", " + g.num(v, depth-1) + ")"
		case 3:
			return "CASE WHEN " + g.cond(v, depth-1) + " THEN " + g.num(v, depth-1) + " ELSE 0 END"
		case 4:
			return "LENGTH(" + g.text(v, depth-1) + ")"
		case 5, 6:
			if g.spend() {
				return "(" + g.scalar(v, g.pick("MAX", "MIN", "SUM", "COUNT"), "gold") + ")"
			}
		}
	}
	switch g.r.IntN(10) {
	case 0:
		return g.pick("1", "2", "0", "7", "-1")
	case 1:
		return hole
	}
	return g.column(v, g.pick("id", "player_id", "gold"))
}

// text makes a text.
func (g *generator) text(v *view, depth int) string {
	if depth > 0 {
		switch g.r.IntN(10) {
		case 0:
			if g.d == gate.MySQL {
				return "CONCAT(" + g.text(v, depth-1) + ", " + g.text(v, depth-1) + ")"
			}
			return "(" + g.text(v, depth-1) + " || " + g.text(v, depth-1) + ")"
		case 1:
			return "LOWER(" + g.text(v, depth-1) + ")"
		case 2:
			if g.spend() {
				return "(" + g.scalar(v, g.pick("MAX", "MIN"), g.pick("name", "tenant_id")) + ")"
			}
		}
	}
	switch g.r.IntN(10) {
	case 0, 1, 2:
		return g.literal()
	case 3:
		return hole
	case 4:
		return g.column(v, "tenant_id")
	}
	return g.column(v, "name")
}

// scalar makes a sub-select of one row and column.
func (g *generator) scalar(up *view, function, column string) string {
	from, rels := g.from()
	v := &view{rels: rels, up: up}
	return "SELECT " + function + "(" + g.column(v, column) + ") FROM " + from + g.where(v)
}

// Pieces are what literals are made of: what ends a literal, a comment or a statement elsewhere.
var Pieces = []string{
	"'", "''", `\`, `\\`, `"`, `""`, "`", "--", "-- ", "#", "/*", "*/", "/*!", "/*!50000 ", ";", "?", "$1", "$$", "@tenant", "tenant_id", " OR 1=1", " OR ", ")", "(", "a", "x", "0", "%", "_", "[", "]", "ü", "日", "\n", "\t",
	"N", "_utf8", "E", "0x41", "||", ":", "=", "SELECT", "ı", "😀", "\u00a0", "\u200b",
}

// literal makes a text literal with such pieces, quoted as the dialect does.
func (g *generator) literal() string {
	if g.chance(60) {
		return g.pick("'x'", "'sword'", "'a'", "''", "'bow'")
	}
	var b strings.Builder
	for range 1 + g.r.IntN(4) {
		b.WriteString(g.pick(Pieces...))
	}
	value := strings.ReplaceAll(b.String(), "'", "''")
	if g.d == gate.MySQL {
		value = strings.ReplaceAll(value, `\`, `\\`)
		if g.chance(20) {
			return `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
		}
	}
	return "'" + value + "'"
}

func (g *generator) insert(with string) string {
	table := g.pick("items", "players", "bags")
	columns := []string{"id", "player_id", "gold", "name"}
	owned := g.chance(40)
	text := "INSERT INTO " + table + " "
	id := strconv.Itoa(g.pickInt(1, 2, 3, 50, 51, 52))
	if g.d == gate.MySQL {
		with = "" // not taken before INSERT
	}
	switch n := g.r.IntN(10); {
	case n < 1 && g.d == gate.MySQL:
		text += "SET id = " + id + ", player_id = " + g.num(&view{}, 1) + ", gold = " + hole + ", name = " + g.literal()
		if owned {
			text += ", tenant_id = " + hole
		}
	case n < 6:
		if owned {
			columns = append(columns, "tenant_id")
		}
		text += "(" + strings.Join(columns, ", ") + ") VALUES (" + id + ", " + g.num(&view{}, 1) + ", " + hole + ", " + g.text(&view{}, 1)
		if owned {
			text += ", " + g.pick(hole, hole, hole, "@tenant", "'b'")
		}
		text += ")"
	default:
		from, rels := g.from()
		v := &view{rels: rels}
		items := g.num(v, 1) + " + 50, " + g.num(v, 1) + ", " + g.num(v, 1) + ", " + g.text(v, 1)
		if owned {
			columns = append(columns, "tenant_id")
			items += ", " + g.pick(hole, rels[0].name+".tenant_id", g.column(v, "tenant_id"))
		}
		text += "(" + strings.Join(columns, ", ") + ") SELECT " + items + " FROM " + from + g.where(v)
		if !strings.Contains(text, "WHERE") {
			text += " WHERE 1 = 1" // or SQLite would take ON CONFLICT for a join's ON
		}
	}
	if g.chance(45) {
		text += g.conflict(table)
	} else if g.chance(20) {
		text += " RETURNING " + g.pick("id", "gold, name", "id, (SELECT MAX(gold) FROM players)")
	}
	return with + text
}

func (g *generator) pickInt(list ...int) int { return list[g.r.IntN(len(list))] }

func (g *generator) conflict(table string) string {
	assign := g.pick("gold = 7", "gold = "+hole, "name = 'x', gold = 1", "gold = (SELECT MAX(gold) FROM players)", "gold = gold", "name = "+table+".name, gold = 3")
	if g.d == gate.MySQL {
		assign = g.pick(assign, "gold = VALUES(gold)", "gold = "+table+".gold + VALUES(gold)", "gold = IF("+table+".tenant_id = VALUES(tenant_id), VALUES(gold), "+table+".gold)")
		return " ON DUPLICATE KEY UPDATE " + assign
	}
	if table == "bags" && g.chance(70) { // the key that knows no tenant
		return " ON CONFLICT (name) DO " + g.pick("NOTHING", "UPDATE SET "+assign)
	}
	target := g.pick("(id)", "(tenant_id, id)", "(id, tenant_id)")
	assign = g.pick(assign, "gold = excluded.gold", "gold = excluded.gold + "+table+".gold", "gold = excluded.gold, name = excluded.name")
	return " ON CONFLICT " + target + " DO " + g.pick("NOTHING", "UPDATE SET "+assign, "UPDATE SET "+assign, "UPDATE SET "+assign+" WHERE "+table+".gold > 1", "UPDATE SET "+assign+" WHERE "+table+".gold > 1 OR 1 = 1")
}

func (g *generator) update(with string) string {
	table := g.pick("items", "players", "bags")
	if g.d == gate.MySQL {
		if g.chance(50) {
			from, rels := g.from()
			v := &view{rels: rels}
			var sets []string
			for _, r := range rels {
				if g.chance(60) || len(sets) == 0 {
					sets = append(sets, r.name+".gold = "+g.num(v, 1))
				}
			}
			return "UPDATE " + from + " SET " + strings.Join(sets, ", ") + g.where(v)
		}
		with = "" // MariaDB takes none before UPDATE
	}
	rels := []relation{{table, true}}
	text := "UPDATE " + table
	if g.chance(40) {
		rels[0].name = g.pick("i", "x", "u1")
		text += g.pick(" ", " AS ") + rels[0].name
	}
	v := &view{rels: rels}
	text += " SET gold = " + g.num(v, 2)
	if g.chance(30) {
		text += ", name = " + g.text(v, 1)
	}
	if g.chance(3) {
		text += ", tenant_id = " + g.pick("'b'", hole, "tenant_id")
	}
	if g.d != gate.MySQL && g.chance(40) {
		from, more := g.tree(2, []string{rels[0].name})
		text += " FROM " + from
		v = &view{rels: append(rels, more...)}
	}
	text += g.where(v)
	if g.d == gate.MySQL && g.chance(10) {
		text += " ORDER BY id LIMIT 2"
	}
	if g.d != gate.MySQL && g.chance(20) {
		text += " RETURNING " + g.column(v, "gold") + ", (" + g.scalar(nil, "MAX", "gold") + ")"
	}
	return with + text
}

func (g *generator) delete(with string) string {
	table := g.pick("items", "players", "bags")
	rels := []relation{{table, true}}
	v := &view{rels: rels}
	switch {
	case g.d == gate.MySQL && g.chance(50):
		from, more := g.from()
		v = &view{rels: more}
		targets := []string{more[g.r.IntN(len(more))].name}
		if len(more) > 1 && g.chance(30) {
			targets = []string{more[0].name, more[1].name}
		}
		if g.chance(30) {
			return "DELETE FROM " + strings.Join(targets, ", ") + " USING " + from + g.where(v)
		}
		return "DELETE " + strings.Join(targets, ", ") + " FROM " + from + g.where(v)
	case g.d == gate.Postgres && g.chance(50):
		from, more := g.tree(2, []string{table})
		v = &view{rels: append(rels, more...)}
		return with + "DELETE FROM " + table + " USING " + from + g.where(v) + g.pick("", "", " RETURNING "+table+".gold")
	}
	if g.d == gate.MySQL {
		with = ""
	}
	return with + "DELETE FROM " + table + g.where(v) + g.pick("", "", " RETURNING id, name")
}

// Mutate changes a text a little: pieces go, come, double, change places. Most of what it makes is refused; what is not must keep the tenants apart.
func Mutate(r *rand.Rand, text string) string {
	tokens := Words(text)
	for range 1 + r.IntN(3) {
		if len(tokens) < 2 {
			break
		}
		i := r.IntN(len(tokens))
		switch r.IntN(9) {
		case 0:
			tokens = slices.Delete(tokens, i, i+1)
		case 1:
			tokens = slices.Insert(tokens, i, tokens[i])
		case 2:
			k := r.IntN(len(tokens))
			tokens[i], tokens[k] = tokens[k], tokens[i]
		case 3, 4:
			tokens[i] = Vocabulary[r.IntN(len(Vocabulary))]
		case 5, 6:
			tokens = slices.Insert(tokens, i, " ", Vocabulary[r.IntN(len(Vocabulary))], " ")
		case 7:
			tokens[i] = strings.ToUpper(tokens[i])
		case 8:
			tokens = slices.Insert(tokens, i, Pieces[r.IntN(len(Pieces))])
		}
	}
	return strings.Join(tokens, "")
}

// Insert puts a word somewhere between the pieces of a text, or in the place of one.
func Insert(r *rand.Rand, text, word string) string {
	tokens := Words(text)
	i := r.IntN(len(tokens) + 1)
	if r.IntN(4) == 0 && i < len(tokens) {
		tokens[i] = " " + word + " "
	} else {
		tokens = slices.Insert(tokens, i, " ", word, " ")
	}
	return strings.Join(tokens, "")
}

// Words cuts a text into words, blanks and single characters.
func Words(text string) []string {
	kind := func(c rune) int {
		switch {
		case c == ' ' || c == '\n' || c == '\t':
			return 1
		case c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			return 2
		}
		return 0
	}
	var out []string
	last := 0
	for _, c := range text {
		if k := kind(c); k != 0 && k == last && len(out) > 0 {
			out[len(out)-1] += string(c)
		} else {
			out = append(out, string(c))
			last = k
		}
	}
	return out
}

// Vocabulary is what [Mutate] puts in: words and punctuation of three dialects.
var Vocabulary = strings.Fields(`SELECT FROM WHERE AND OR NOT XOR || && ( ) , . = <> < ? @tenant $1 $2 tenant_id items players bags catalog secrets i I p x id gold name JOIN LEFT RIGHT FULL INNER OUTER
	CROSS NATURAL STRAIGHT_JOIN ON USING UNION ALL INTERSECT EXCEPT WITH RECURSIVE AS IN EXISTS ANY IS NULL TRUE BETWEEN LIKE ESCAPE CASE WHEN THEN ELSE END COLLATE BINARY DIV MOD INTERVAL DAY
	ORDER BY GROUP HAVING LIMIT OFFSET DISTINCT LATERAL ONLY INSERT INTO VALUES SET UPDATE DELETE RETURNING CONFLICT DO NOTHING DUPLICATE KEY FOR SHARE OF NOWAIT SKIP LOCKED
	USE INDEX FORCE IGNORE INDEXED PARTITION WINDOW OVER ROWS RANGE FILTER LOW_PRIORITY QUICK SQL_NO_CACHE TABLE TABLESAMPLE VALUE DEFAULT EXCLUDED excluded new old
	'a' 'b' 'x' "x" [x] 1 0x1F 1e3 .5 -1 ~ ! ^ % & | << >> <=> :: -> ->> -- # /* */ /*! ; \ \' '' _utf8mb4 N E U& ROW ARRAY CAST CONVERT COUNT(*) MAX( COALESCE( IF( EXPLAIN ANALYZE main public
	CURRENT_DATE NULLS FIRST ASC DESC ISNULL NOTNULL GLOB REGEXP SIMILAR OVERLAPS MATCH DIV SOUNDS MEMBER AT ZONE INTO OUTFILE DUMPFILE PROCEDURE HISTORY SYSTEM_TIME NEXT`)

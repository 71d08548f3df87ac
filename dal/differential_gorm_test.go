package dal_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// step adds something to a chain.
type step struct {
	shape string
	text  string
	add   func(w side, db *gorm.DB) *gorm.DB
}

// chain is a number of steps.
type chain []step

func (c chain) apply(w side, db *gorm.DB) *gorm.DB {
	for _, s := range c {
		db = s.add(w, db)
	}
	return db
}

func (c chain) String() string {
	var b strings.Builder
	for _, s := range c {
		b.WriteString("." + s.text)
	}
	return b.String()
}

func (c chain) shapes(more ...string) []string {
	for _, s := range c {
		more = append(more, s.shape)
	}
	return more
}

// where is a step that calls Where, Or or Not.
func where(shape, text string, query any, args ...any) step {
	return step{shape, fmt.Sprintf("Where(%s)", text), func(_ side, db *gorm.DB) *gorm.DB { return db.Where(query, args...) }}
}

// table is what a generator needs to know of one.
type tableInfo struct {
	name  string
	model func() any // a new pointer to a row
	id    string
	ints  []string
	texts []string
}

var actorTable = tableInfo{"actors", func() any { return &Actor{} }, "id", []string{"gold", "level", "id"}, []string{"name"}}

var toolTable = tableInfo{"tools", func() any { return &Tool{} }, "id", []string{"qty", "actor_id", "id"}, []string{"name", "kind"}}

var jottingTable = tableInfo{"jottings", func() any { return &Jotting{} }, "no", []string{"amount", "no"}, []string{"note"}}

// slice returns a new pointer to a slice of rows.
func (t tableInfo) slice() any {
	switch t.name {
	case "actors":
		return &[]Actor{}
	case "tools":
		return &[]Tool{}
	}
	return &[]Jotting{}
}

// show prints rows, by value.
func show(v any) []string {
	switch x := v.(type) {
	case *Actor:
		return []string{showActor(*x)}
	case *Tool:
		return []string{showTool(*x)}
	case *Jotting:
		return []string{fmt.Sprintf("%s/%d %s %d", x.TenantID, x.No, x.Note, x.Amount)}
	case *[]Actor:
		var out []string
		for _, r := range *x {
			out = append(out, showActor(r))
		}
		return out
	case *[]Tool:
		var out []string
		for _, r := range *x {
			out = append(out, showTool(r))
		}
		return out
	case *[]Jotting:
		var out []string
		for i := range *x {
			out = append(out, show(&(*x)[i])...)
		}
		return out
	case *[]map[string]any:
		var out []string
		for _, m := range *x {
			out = append(out, showMap(m))
		}
		return out
	case *map[string]any:
		return []string{showMap(*x)}
	case *[]int64, *[]string, *int64, *string:
		return strings.Fields(strings.Trim(fmt.Sprintf("%v", deref(x)), "[]"))
	case *[]dto:
		var out []string
		for _, r := range *x {
			out = append(out, fmt.Sprintf("%d %s", r.ID, r.Name))
		}
		return out
	}
	return []string{fmt.Sprintf("%v", v)}
}

func deref(v any) any {
	switch x := v.(type) {
	case *[]int64:
		return *x
	case *[]string:
		return *x
	case *int64:
		return *x
	case *string:
		return *x
	}
	return v
}

func showMap(m map[string]any) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := plain(m[k])
		if k == "deleted_at" && v != "NULL" && v != "<nil>" {
			v = "T" // a time in whatever type gorm found
		}
		b.WriteString(k + "=" + v + " ")
	}
	return b.String()
}

func showActor(a Actor) string {
	s := fmt.Sprintf("%s/%d %s %s %d %s %t", a.TenantID, a.ID, a.PlayerID, a.Name, a.Gold, showPointer(a.Level), a.DeletedAt.Valid)
	var tools []string
	for _, t := range a.Tools {
		tools = append(tools, showTool(t))
	}
	slices.Sort(tools)
	return s + " " + strings.Join(tools, ",")
}

func showTool(t Tool) string {
	s := fmt.Sprintf("%s/%d %s of %d %s %d %s", t.TenantID, t.ID, t.PlayerID, t.ActorID, t.Name, t.Qty, showPointer(t.Kind))
	if t.Actor != nil {
		s += " {" + showActor(*t.Actor) + "}"
	}
	return s
}

func showPointer[T any](p *T) string {
	if p == nil {
		return "NULL"
	}
	return fmt.Sprint(*p)
}

type dto struct {
	ID   int64
	Name string
}

// number and name are values that rows have, and some that they have not.
func (g generator) number() int64 { return int64(g.p.n(11)) }
func (g generator) key() int64    { return int64(1 + g.p.n(9)) }
func (g generator) newKey() int64 { return int64(5 + g.p.n(12)) }
func (g generator) name() string  { return fmt.Sprintf("n%d", 1+g.p.n(12)) }
func (g generator) textOf(t tableInfo) string {
	switch t.name {
	case "actors":
		return g.name()
	case "tools":
		return fmt.Sprintf("%s%d", one(g.p, "t", "k"), g.p.n(5))
	}
	return fmt.Sprintf("m%d", g.p.n(4))
}

// condition is a step that adds a condition on t; columns are written with its name where joined.
func (g generator) condition(t tableInfo, joined bool) step {
	q := func(c string) string {
		if joined {
			return t.name + "." + c
		}
		return c
	}
	i, s, n, m, x := one(g.p, t.ints...), one(g.p, t.texts...), g.number(), g.number(), g.textOf(t)
	keys := []int64{g.key(), g.key(), g.key()}
	cmpOp := one(g.p, ">", "<", ">=", "<=", "=", "<>")
	switch k := g.p.n(24); k {
	case 0:
		return where("Where text", fmt.Sprintf("%s %s %d", q(i), cmpOp, n), q(i)+" "+cmpOp+" ?", n)
	case 1:
		return where("Where text with OR", fmt.Sprintf("%s > %d OR %s = %s", q(i), n, q(s), x), q(i)+" > ? OR "+q(s)+" = ?", n, x)
	case 2:
		if t.name == "actors" { // gorm forgets the parentheses, so that soft deletion holds for the second half alone: the store does better
			return where("Where text with OR", fmt.Sprintf("(%s < %d newline OR %s = %s)", q(i), n, q(s), x), "("+q(i)+" < ?\n\tOR\n\t"+q(s)+" = ?)", n, x)
		}
		return where("Where text with OR", fmt.Sprintf("%s < %d newline OR %s = %s", q(i), n, q(s), x), q(i)+" < ?\n\tOR\n\t"+q(s)+" = ?", n, x)
	case 3:
		if joined {
			return where("Where text", fmt.Sprintf("%s < %d", q(i), n), q(i)+" < ?", n)
		}
		return where("Where map", fmt.Sprintf("map %s: %s", s, x), map[string]any{s: x})
	case 4:
		switch t.name {
		case "actors":
			return where("Where struct", fmt.Sprintf("&Actor{Gold: %d}", n), &Actor{Gold: n})
		case "tools":
			return where("Where struct", fmt.Sprintf("&Tool{Qty: %d}, Qty, Name", n), &Tool{Qty: n, Name: x}, "Qty", "Name")
		}
		return where("Where struct", fmt.Sprintf("&Jotting{Note: %s}", x), &Jotting{Note: x})
	case 5:
		return where("Where IN", fmt.Sprintf("%s IN %v", q(t.id), keys), q(t.id)+" IN ?", keys)
	case 6:
		return where("Where IN", fmt.Sprintf("%s NOT IN %v", q(i), keys), q(i)+" NOT IN (?)", keys)
	case 7:
		return where("Where row IN", fmt.Sprintf("(%s,%s) IN %v", q(t.id), q(i), keys), "("+q(t.id)+", "+q(i)+") IN ?", [][]any{{keys[0], n}, {keys[1], m}, {keys[2], keys[2]}})
	case 8:
		return where("Where named", fmt.Sprintf("%s > @n (%d) AND %s <> @n", q(i), n, q(t.id)), q(i)+" > @n AND "+q(t.id)+" <> @n", sql.Named("n", n))
	case 9:
		return where("Where named", fmt.Sprintf("%s = @x (%s)", q(s), x), q(s)+" = @x", map[string]any{"x": x})
	case 10:
		return step{"Where group", fmt.Sprintf("Where(%s > %d or (%s = %s))", q(i), n, q(s), x), func(w side, db *gorm.DB) *gorm.DB {
			return db.Where(w.fresh().Where(q(i)+" > ?", n).Or(w.fresh().Where(q(s)+" = ?", x)))
		}}
	case 11:
		return step{"Or", fmt.Sprintf("Or(%s = %d)", q(i), n), func(_ side, db *gorm.DB) *gorm.DB { return db.Or(q(i)+" = ?", n) }}
	case 12:
		return step{"Not", fmt.Sprintf("Not(%s > %d)", q(i), n), func(_ side, db *gorm.DB) *gorm.DB { return db.Not(q(i)+" > ?", n) }}
	case 13:
		return step{"Not", fmt.Sprintf("Not(map %s: %s)", s, x), func(_ side, db *gorm.DB) *gorm.DB {
			if joined {
				return db.Not(q(s)+" = ?", x)
			}
			return db.Not(map[string]any{s: []string{x, "other"}})
		}}
	case 14:
		return where("Where clause", fmt.Sprintf("clause %s %d", i, n), clause.Gte{Column: clause.Column{Table: clause.CurrentTable, Name: i}, Value: n})
	case 15:
		return where("Where clause", fmt.Sprintf("clause.Or %s %d", i, n), clause.Or(
			clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: i}, Value: n}, clause.Like{Column: clause.Column{Table: clause.CurrentTable, Name: s}, Value: "%1"}))
	case 16:
		return where("Where text", fmt.Sprintf("%s BETWEEN %d AND %d", q(i), n, m), q(i)+" BETWEEN ? AND ?", n, m)
	case 17:
		return where("Where text", q(s)+" LIKE", q(s)+" LIKE ? OR "+q(s)+" IS NULL", "%"+x[1:])
	case 18:
		return step{"Where sub-query value", fmt.Sprintf("Where(%s IN sub tools.qty < %d)", q(t.id), n), func(w side, db *gorm.DB) *gorm.DB {
			return db.Where(q(t.id)+" IN (?)", w.fresh().Model(&Tool{}).Select("actor_id").Where("qty < ?", n))
		}}
	case 19:
		return step{"Where sub-query value", fmt.Sprintf("Where(%s > sub avg gold)", q(i)), func(w side, db *gorm.DB) *gorm.DB {
			return db.Where(q(i)+" >= (?)", w.fresh().Model(&Actor{}).Select("MIN(gold)"))
		}}
	case 20:
		return where("Where text with sub-select", q(t.id)+" IN SELECT actor_id", q(t.id)+" IN (SELECT actor_id FROM tools WHERE qty > ?)", n)
	case 21:
		return where("Where text with sub-select", "EXISTS correlated", "EXISTS (SELECT 1 FROM jottings WHERE jottings.no = "+t.name+"."+t.id+")")
	case 22:
		return step{"Scopes", fmt.Sprintf("Scopes(%s > %d)", q(i), n), func(_ side, db *gorm.DB) *gorm.DB {
			return db.Scopes(func(db *gorm.DB) *gorm.DB { return db.Where(q(i)+" > ?", n) })
		}}
	}
	return step{"Where IN", fmt.Sprintf("NOT %s IN", q(t.id)), func(_ side, db *gorm.DB) *gorm.DB { return db.Where("NOT "+q(t.id)+" IN (?)", keys) }}
}

func (g generator) conditions(t tableInfo, joined bool) chain {
	var c chain
	for range g.p.n(3) {
		next := g.condition(t, joined)
		if next.shape == "Or" && !slices.ContainsFunc(c, func(s step) bool { return s.shape != "Scopes" }) { // gorm turns a first Or round, or not, by whether the model has soft deletion
			c = append(c, where("Where text", t.name+".id > 2", t.name+"."+t.id+" > 2"))
		}
		c = append(c, next)
	}
	if t.name == "actors" && chance(g.p, 6) {
		c = append(c, step{"Unscoped", "Unscoped()", func(_ side, db *gorm.DB) *gorm.DB { return db.Unscoped() }})
	}
	return c
}

func (g generator) table() tableInfo {
	return one(g.p, actorTable, toolTable, actorTable, jottingTable)
}

// ordered adds ORDER BY the key, and maybe LIMIT.
func (g generator) ordered(t tableInfo, joined bool) chain {
	id := t.id
	if joined {
		id = t.name + "." + id
	}
	i := one(g.p, t.ints...)
	if joined {
		i = t.name + "." + i
	}
	by := one(g.p, id, i+" DESC, "+id, "COALESCE("+i+", 3), "+id)
	c := chain{{"Order", fmt.Sprintf("Order(%s)", by), func(_ side, db *gorm.DB) *gorm.DB { return db.Order(by) }}}
	if chance(g.p, 4) {
		c = chain{{"Order", "Order(clause)", func(_ side, db *gorm.DB) *gorm.DB {
			return db.Order(clause.OrderByColumn{Column: clause.Column{Table: clause.CurrentTable, Name: t.id}, Desc: true})
		}}}
	}
	if chance(g.p, 2) {
		n := 1 + g.p.n(4)
		c = append(c, step{"Limit", fmt.Sprintf("Limit(%d)", n), func(_ side, db *gorm.DB) *gorm.DB { return db.Limit(n) }})
		if chance(g.p, 2) {
			c = append(c, step{"Offset", "Offset(1)", func(_ side, db *gorm.DB) *gorm.DB { return db.Offset(1) }})
		}
	}
	return c
}

// read makes an op of a chain and a finisher.
func read(c chain, ordered bool, finisher, shape string, run func(db *gorm.DB, w side) outcome) op {
	return op{
		shapes: c.shapes(shape), text: "gorm " + c.String() + "." + finisher, ordered: ordered,
		run: func(w side) outcome { return run(c.apply(w, w.fresh()), w) },
	}
}

// into finishes with a destination.
func into(db *gorm.DB, dest any) outcome {
	return outcome{rows: show(dest), affected: db.RowsAffected, err: db.Error}
}

func (g generator) gormRead() op {
	t := g.table()
	model := chain{{"Model", fmt.Sprintf("Model(%s)", t.name), func(_ side, db *gorm.DB) *gorm.DB { return db.Model(t.model()) }}}
	switch k := g.p.n(29); k {
	case 0, 1, 2:
		return read(g.conditions(t, false), false, "Find", "Find", func(db *gorm.DB, _ side) outcome {
			dest := t.slice()
			return into(db.Find(dest), dest)
		})
	case 3, 4:
		return read(append(g.conditions(t, false), g.ordered(t, false)...), true, "Find", "Find", func(db *gorm.DB, _ side) outcome {
			dest := t.slice()
			return into(db.Find(dest), dest)
		})
	case 5:
		i, n := one(g.p, t.ints...), g.number()
		return read(nil, false, fmt.Sprintf("Find(%s > %d)", i, n), "Find", func(db *gorm.DB, _ side) outcome {
			dest := t.slice()
			return into(db.Find(dest, i+" > ?", n), dest)
		})
	case 6:
		if t.name == "jottings" { // of two key columns gorm orders by the first, the tenant's
			t = toolTable
		}
		last, key, by := chance(g.p, 2), g.key(), chance(g.p, 2)
		return read(g.conditions(t, false), true, fmt.Sprintf("First/Last %t %d", last, key), "First", func(db *gorm.DB, _ side) outcome {
			dest := t.model()
			var args []any
			if by {
				args = []any{t.id + " >= ?", key}
			}
			if last {
				return into(db.Last(dest, args...), dest)
			}
			return into(db.First(dest, args...), dest)
		})
	case 7:
		key, c := g.key(), g.conditions(t, false)
		c = slices.DeleteFunc(c, func(s step) bool { return s.shape == "Or" || s.shape == "Where text with OR" }) // which row it takes would be open
		return read(c, true, fmt.Sprintf("Take(%d)", key), "Take", func(db *gorm.DB, _ side) outcome {
			dest := t.model()
			return into(db.Take(dest, t.id+" = ?", key), dest)
		})
	case 8:
		return read(append(model, g.conditions(t, false)...), false, "Count", "Count", func(db *gorm.DB, _ side) outcome {
			var n int64
			return into(db.Count(&n), &n)
		})
	case 9:
		s := one(g.p, t.texts[0], t.id, "COUNT(*)", "MAX("+t.id+")")
		return read(append(model, g.conditions(t, false)...), false, "Pluck("+s+")", "Pluck", func(db *gorm.DB, _ side) outcome {
			var all []string
			return into(db.Pluck(s, &all), &all)
		})
	case 10:
		if t.name == "jottings" {
			t = toolTable
			model = chain{{"Model", "Model(tools)", func(_ side, db *gorm.DB) *gorm.DB { return db.Model(&Tool{}) }}}
		}
		return read(append(model, g.conditions(t, false)...), false, "Find(&[]dto)", "Find a DTO", func(db *gorm.DB, _ side) outcome {
			var all []dto
			return into(db.Find(&all), &all)
		})
	case 11:
		text := one(g.p, t.id+", "+t.ints[0]+" * 2 AS twice", t.ints[0]+" + ? AS more, "+t.texts[0], "COALESCE("+t.ints[0]+", 0) AS x")
		var args []any
		if strings.Contains(text, "?") {
			args = []any{g.number()}
		}
		c := append(model, step{"Select text", "Select(" + text + ")", func(_ side, db *gorm.DB) *gorm.DB { return db.Select(text, args...) }})
		return read(append(c, g.conditions(t, false)...), false, "Find(&[]map)", "Find maps", func(db *gorm.DB, _ side) outcome {
			var all []map[string]any
			return into(db.Find(&all), &all)
		})
	case 12:
		c := append(model, step{"Select columns", "Select(id, text)", func(_ side, db *gorm.DB) *gorm.DB { return db.Select(t.id, t.texts[0]) }})
		return read(append(c, g.conditions(t, false)...), false, "Find", "Find", func(db *gorm.DB, _ side) outcome {
			dest := t.slice()
			return into(db.Find(dest), dest)
		})
	case 13:
		by, of, n := one(g.p, t.ints[0], t.texts[len(t.texts)-1]), t.id, g.p.n(3)
		c := append(model, step{"Group", "Group(" + by + ")", func(_ side, db *gorm.DB) *gorm.DB {
			return db.Select(by + ", COUNT(*) AS n, SUM(" + of + ") AS s").Group(by)
		}})
		c = append(c, g.conditions(t, false)...)
		if chance(g.p, 2) {
			c = append(c, step{"Having", fmt.Sprintf("Having(COUNT(*) > %d)", n), func(_ side, db *gorm.DB) *gorm.DB { return db.Having("COUNT(*) > ?", n) }})
		}
		return read(c, false, "Scan", "Scan", func(db *gorm.DB, _ side) outcome {
			var all []map[string]any
			return into(db.Scan(&all), &all)
		})
	case 14:
		c := append(model, step{"Distinct", "Distinct", func(_ side, db *gorm.DB) *gorm.DB { return db.Distinct(t.ints[0]) }})
		count := chance(g.p, 3)
		return read(append(c, g.conditions(t, false)...), false, fmt.Sprintf("Find/Count %t", count), "Find maps", func(db *gorm.DB, _ side) outcome {
			if count {
				var n int64
				return into(db.Count(&n), &n)
			}
			var all []map[string]any
			return into(db.Find(&all), &all)
		})
	case 15:
		return read(append(model, g.conditions(t, false)...), false, "Rows", "Rows", func(db *gorm.DB, _ side) outcome {
			rows, err := db.Rows()
			if err != nil {
				return outcome{err: err}
			}
			all, err := lines(rows)
			return outcome{rows: all, err: err}
		})
	case 16:
		c := append(model, step{"Select text", "Select(sum)", func(_ side, db *gorm.DB) *gorm.DB { return db.Select("COUNT(*), COALESCE(SUM(" + t.ints[0] + "), 0)") }})
		return read(append(c, g.conditions(t, false)...), false, "Row", "Row", func(db *gorm.DB, _ side) outcome {
			var n, s int64
			err := db.Row().Scan(&n, &s)
			return outcome{rows: []string{fmt.Sprint(n, s)}, err: err}
		})
	case 17:
		return g.gormJoin()
	case 18:
		return g.gormJoin()
	case 19, 20:
		return g.gormPreload()
	case 21, 22:
		return g.gormTable()
	case 23:
		text := one(g.p, "(SELECT COUNT(*) FROM tools) AS n", "(SELECT MAX(qty) FROM tools AS q WHERE q.actor_id = "+t.name+"."+t.id+") AS n")
		c := append(model, step{"Select text with sub-select", "Select(" + text + ")", func(_ side, db *gorm.DB) *gorm.DB { return db.Select(t.id + ", " + text) }})
		return read(append(c, g.conditions(t, false)...), false, "Find(&[]map)", "Find maps", func(db *gorm.DB, _ side) outcome {
			var all []map[string]any
			return into(db.Find(&all), &all)
		})
	case 25:
		prepared := func(_ side, db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{PrepareStmt: true}) }
		return read(append(chain{{"PrepareStmt", "Session(PrepareStmt)", prepared}}, g.conditions(t, false)...), false, "Find", "Find", func(db *gorm.DB, _ side) outcome {
			dest := t.slice()
			return into(db.Find(dest), dest)
		})
	case 26:
		lock := clause.Locking{Strength: "UPDATE"}
		return read(append(chain{{"Locking", "Clauses(Locking)", func(_ side, db *gorm.DB) *gorm.DB { return db.Clauses(lock) }}}, g.conditions(t, false)...), false, "Find", "Find", func(db *gorm.DB, _ side) outcome {
			dest := t.slice()
			return into(db.Find(dest), dest)
		})
	case 27:
		c := chain{{"Joins relation", "Joins(Actor).Preload(Actor.Tools)", func(_ side, db *gorm.DB) *gorm.DB { return db.Joins("Actor").Preload("Actor.Tools") }}}
		return read(append(c, g.conditions(toolTable, true)...), false, "Find(&[]Tool)", "Find", func(db *gorm.DB, _ side) outcome {
			var all []Tool
			return into(db.Find(&all), &all)
		})
	case 24:
		size, c := 1+g.p.n(3), g.conditions(t, false)
		// gorm adds "AND id > last" to what stands there: after an Or that holds for its second half alone, and the batches never end.
		c = slices.DeleteFunc(c, func(s step) bool { return s.shape == "Or" || s.shape == "Where text with OR" })
		return read(c, true, fmt.Sprintf("FindInBatches(%d)", size), "FindInBatches", func(db *gorm.DB, _ side) outcome {
			if t.name == "jottings" { // its key is two columns, of which batches follow the last
				dest := []Jotting{}
				return into(db.Order("no").Find(&dest), &dest)
			}
			var out []string
			dest := t.slice()
			err := db.FindInBatches(dest, size, func(*gorm.DB, int) error {
				out = append(out, show(dest)...)
				return nil
			}).Error
			return outcome{rows: out, err: err}
		})
	}
	return g.gormGenericRead()
}

func (g generator) gormJoin() op {
	n := g.number()
	finish := func(db *gorm.DB, _ side) outcome {
		var all []Tool
		return into(db.Find(&all), &all)
	}
	switch g.p.n(7) {
	case 0:
		c := chain{{"Joins relation", "Joins(Actor)", func(_ side, db *gorm.DB) *gorm.DB { return db.Joins("Actor") }}}
		return read(append(c, g.conditions(toolTable, true)...), false, "Find(&[]Tool)", "Find", finish)
	case 1:
		c := chain{{"InnerJoins relation", "InnerJoins(Actor)", func(_ side, db *gorm.DB) *gorm.DB { return db.InnerJoins("Actor") }}}
		return read(append(c, g.conditions(toolTable, true)...), false, "Find(&[]Tool)", "Find", finish)
	case 2:
		c := chain{{"Joins relation with conditions", fmt.Sprintf("Joins(Actor, gold > %d or level = 1)", n), func(w side, db *gorm.DB) *gorm.DB {
			return db.Joins("Actor", w.fresh().Where(&Actor{Gold: n}))
		}}}
		return read(append(c, g.conditions(toolTable, true)...), false, "Find(&[]Tool)", "Find", finish)
	case 3:
		kind := one(g.p, "LEFT JOIN", "JOIN", "INNER JOIN", "LEFT OUTER JOIN", "CROSS JOIN", "RIGHT JOIN")
		on := " ON actors.id = tools.actor_id AND actors.gold > ?"
		args := []any{n}
		if kind == "CROSS JOIN" {
			on, args = "", nil
		}
		c := chain{{"Joins text", kind + on, func(_ side, db *gorm.DB) *gorm.DB {
			return db.Model(&Tool{}).Select("tools.id, tools.qty, actors.name AS owner").Joins(kind+" actors"+on, args...)
		}}}
		return read(append(c, g.conditions(toolTable, true)...), false, "Scan(&[]map)", "Scan", func(db *gorm.DB, _ side) outcome {
			var all []map[string]any
			return into(db.Scan(&all), &all)
		})
	case 4:
		c := chain{{"Joins text", "self join", func(_ side, db *gorm.DB) *gorm.DB {
			return db.Model(&Actor{}).Select("actors.id, o.id AS other").Joins("JOIN actors AS o ON o.gold = actors.gold AND o.id <> actors.id")
		}}}
		return read(append(c, g.conditions(actorTable, true)...), false, "Scan(&[]map)", "Scan", func(db *gorm.DB, _ side) outcome {
			var all []map[string]any
			return into(db.Scan(&all), &all)
		})
	case 5:
		c := chain{{"Joins sub-query", "Joins(JOIN (?) AS s)", func(w side, db *gorm.DB) *gorm.DB {
			sub := w.fresh().Model(&Tool{}).Select("actor_id, SUM(qty) AS total").Group("actor_id")
			return db.Model(&Actor{}).Select("actors.id, s.total").Joins("LEFT JOIN (?) AS s ON s.actor_id = actors.id", sub)
		}}}
		return read(append(c, g.conditions(actorTable, true)...), false, "Scan(&[]map)", "Scan", func(db *gorm.DB, _ side) outcome {
			var all []map[string]any
			return into(db.Scan(&all), &all)
		})
	}
	c := chain{{"Joins relation", "Joins(Actor) with a condition on it", func(_ side, db *gorm.DB) *gorm.DB { return db.Joins("Actor").Where("`Actor`.gold > ?", n) }}}
	count := chance(g.p, 2)
	return read(c, false, fmt.Sprintf("Find/Count %t", count), "Find", func(db *gorm.DB, w side) outcome {
		if count {
			var k int64
			return into(db.Model(&Tool{}).Count(&k), &k)
		}
		return finish(db, w)
	})
}

func (g generator) gormPreload() op {
	n, c := g.number(), g.conditions(actorTable, false)
	actors := func(db *gorm.DB, _ side) outcome {
		var all []Actor
		return into(db.Find(&all), &all)
	}
	tools := func(db *gorm.DB, _ side) outcome {
		var all []Tool
		return into(db.Find(&all), &all)
	}
	preload := func(text string, query string, args ...any) chain {
		return chain{{"Preload", "Preload(" + text + ")", func(_ side, db *gorm.DB) *gorm.DB { return db.Preload(query, args...) }}}
	}
	switch g.p.n(6) {
	case 0:
		return read(append(c, preload("Tools", "Tools")...), false, "Find(&[]Actor)", "Find", actors)
	case 1:
		return read(append(c, preload("Tools, qty > n OR id = 1", "Tools", "qty > ? OR id = 1", n)...), false, "Find(&[]Actor)", "Find", actors)
	case 2:
		return read(append(c, preload("Tools, func", "Tools", func(db *gorm.DB) *gorm.DB { return db.Order("qty DESC, id").Where("qty < ?", n) })...), false, "Find(&[]Actor)", "Find", actors)
	case 3:
		return read(append(g.conditions(toolTable, false), preload("Actor.Tools", "Actor.Tools")...), false, "Find(&[]Tool)", "Find", tools)
	case 4:
		return read(append(g.conditions(toolTable, false), preload("all", clause.Associations)...), false, "Find(&[]Tool)", "Find", tools)
	}
	key := g.key()
	return op{shapes: []string{"Association Find"}, text: fmt.Sprintf("gorm Model(&Actor{%d}).Association(Tools).Find/Count", key), run: func(w side) outcome {
		var all []Tool
		a := w.fresh().Model(&Actor{ID: key, TenantID: w.owner()}).Association("Tools")
		if a.Error != nil {
			return outcome{err: a.Error}
		}
		if err := a.Find(&all, "qty <> ?", n); err != nil {
			return outcome{err: err}
		}
		b := w.fresh().Model(&Actor{ID: key, TenantID: w.owner()}).Association("Tools")
		k := b.Count()
		return outcome{rows: append(show(&all), fmt.Sprint(k)), err: b.Error}
	}}
}

func (g generator) gormTable() op {
	t, n := g.table(), g.number()
	maps := func(db *gorm.DB, _ side) outcome {
		var all []map[string]any
		return into(db.Find(&all), &all)
	}
	from := func(shape, text string, add func(w side, db *gorm.DB) *gorm.DB) chain {
		return chain{{shape, text, add}}
	}
	switch g.p.n(8) {
	case 0:
		c := from("Table name", "Table("+t.name+")", func(_ side, db *gorm.DB) *gorm.DB { return db.Table(t.name) })
		return read(append(c, g.plainConditions(t)...), false, "Find(&[]map)", "Find maps", maps)
	case 1:
		c := from("Table name", "Table("+t.name+")", func(_ side, db *gorm.DB) *gorm.DB { return db.Table(t.name) })
		return read(append(c, g.plainConditions(t)...), false, "Count", "Count", func(db *gorm.DB, _ side) outcome {
			var k int64
			return into(db.Count(&k), &k)
		})
	case 2:
		c := from("Table name", "Table("+t.name+")", func(_ side, db *gorm.DB) *gorm.DB { return db.Table(t.name) })
		return read(append(c, g.plainConditions(t)...), false, "Pluck", "Pluck", func(db *gorm.DB, _ side) outcome {
			var all []int64
			return into(db.Pluck(t.id, &all), &all)
		})
	case 3:
		c := from("Table alias", "Table("+t.name+" AS x)", func(_ side, db *gorm.DB) *gorm.DB {
			return db.Table(t.name+" AS x").Where("x."+t.ints[0]+" > ? OR x."+t.id+" = 1", n)
		})
		return read(c, false, "Find(&[]map)", "Find maps", maps)
	case 4:
		c := from("Table alias", "Model.Table(tools AS x)", func(_ side, db *gorm.DB) *gorm.DB { return db.Table("tools AS x").Where("x.qty > ?", n) })
		return read(c, false, "Find(&[]Tool)", "Find", func(db *gorm.DB, _ side) outcome {
			var all []Tool
			return into(db.Find(&all), &all)
		})
	case 5:
		c := from("Table list", "Table(actors x, tools y)", func(_ side, db *gorm.DB) *gorm.DB {
			return db.Table("actors x, tools y").Select("x.id AS a, y.id AS b").Where("y.actor_id = x.id")
		})
		return read(c, false, "Find(&[]map)", "Find maps", maps)
	case 6:
		c := from("Table sub-query", "Table((?) AS x, sub)", func(w side, db *gorm.DB) *gorm.DB {
			return db.Table("(?) AS x", w.fresh().Model(t.model()).Select(t.id+" AS k", t.ints[0]+" AS v")).Where("x.v > ?", n)
		})
		return read(c, false, "Find(&[]map)", "Find maps", maps)
	}
	c := from("Table global", "Table(prices)", func(_ side, db *gorm.DB) *gorm.DB { return db.Model(&Price{}).Where("cost > ?", n/2) })
	return read(c, false, "Find(&[]map)", "Find maps", maps)
}

// plainConditions are conditions that need no model.
func (g generator) plainConditions(t tableInfo) chain {
	i, n, x := one(g.p, t.ints...), g.number(), g.textOf(t)
	var c chain
	if chance(g.p, 2) {
		c = append(c, where("Where text with OR", fmt.Sprintf("%s > %d OR text = %s", i, n, x), i+" > ? OR "+t.texts[0]+" = ?", n, x))
	}
	if chance(g.p, 3) {
		c = append(c, step{"Not", "Not", func(_ side, db *gorm.DB) *gorm.DB { return db.Not(i+" = ?", n) }})
	}
	return c
}

func (g generator) gormGenericRead() op {
	n, key := g.number(), g.key()
	switch g.p.n(6) {
	case 0:
		return op{shapes: []string{"Generics"}, text: fmt.Sprintf("gorm.G[Actor].Where(gold > %d).Find", n), run: func(w side) outcome {
			all, err := gorm.G[Actor](w.fresh()).Where("gold > ? OR id = 2", n).Find(w.ctx)
			return outcome{rows: show(&all), err: err}
		}}
	case 1:
		return op{shapes: []string{"Generics"}, text: fmt.Sprintf("gorm.G[Tool].Where(id = %d).First", key), run: func(w side) outcome {
			row, err := gorm.G[Tool](w.fresh()).Where("id >= ?", key).First(w.ctx)
			return outcome{rows: show(&row), err: err}
		}}
	case 2:
		return op{shapes: []string{"Generics"}, text: fmt.Sprintf("gorm.G[Tool].Where(qty > %d).Count", n), run: func(w side) outcome {
			k, err := gorm.G[Tool](w.fresh()).Where("qty > ?", n).Count(w.ctx, "*")
			return outcome{rows: []string{fmt.Sprint(k)}, err: err}
		}}
	case 3:
		return op{shapes: []string{"Generics", "Preload"}, text: "gorm.G[Actor].Preload(Tools).Find", run: func(w side) outcome {
			all, err := gorm.G[Actor](w.fresh()).Preload("Tools", func(db gorm.PreloadBuilder) error {
				db.Where("qty > ?", n)
				return nil
			}).Find(w.ctx)
			return outcome{rows: show(&all), err: err}
		}}
	case 4:
		return op{shapes: []string{"Generics", "Joins relation"}, text: "gorm.G[Tool].Joins(Actor).Find", run: func(w side) outcome {
			all, err := gorm.G[Tool](w.fresh()).Joins(clause.LeftJoin.Association("Actor"), func(db gorm.JoinBuilder, joinTable, _ clause.Table) error {
				db.Where(clause.Gte{Column: clause.Column{Table: joinTable.Name, Name: "gold"}, Value: n})
				return nil
			}).Find(w.ctx)
			return outcome{rows: show(&all), err: err}
		}}
	}
	return op{shapes: []string{"Generics", "raw"}, text: fmt.Sprintf("gorm.G[Tool].Raw(qty > %d)", n), run: func(w side) outcome {
		all, err := gorm.G[Tool](w.fresh()).Raw("SELECT * FROM tools WHERE qty > ?", n).Find(w.ctx)
		return outcome{rows: show(&all), err: err}
	}}
}

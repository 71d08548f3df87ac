package gate

import (
	"slices"
	"strings"
)

// keyed is what a condition says of the shard keys of its scope.
type keyed struct {
	named bool   // whatever fulfils it has a shard key among the values that it compares
	wide  *Table // it is an OR of which one branch names the shard key and another does not
	open  *Table // it compares the shard key by something else than = and IN, or says NOT
	blind *Table // it compares the shard key with a value that is computed, or written in a way that databases read differently
}

// keys notes the values that the conditions of one scope compare with shard keys. A statement runs in one place: one whose OR leaves the named keys is
// refused, and so is a write that names its keys by nothing but what they are not, since neither would be whole there.
//
// A shard key that is compared with a column or a sub-select says nothing: those are of the same place. One that is compared with a value which cannot be
// read here names a key all the same, and nobody could tell whose: that is refused, unless another condition names the keys beside it.
func (j *judge) keys(sc *scope, src *source, write bool, conditions ...*expr) {
	if j.system || len(j.keyed) == 0 {
		return
	}
	k := j.joinKeys(sc, src, keyed{})
	for _, c := range conditions {
		if c != nil {
			k = k.and(j.key(sc, c))
		}
	}
	switch {
	case k.blind != nil && !k.named:
		panic(&Refusal{Code: Shape, Reason: "a condition that compares the shard key " + k.blind.ShardKey + " with a value that is computed", Hint: "bind the key, or write it as a text or a whole number", Table: k.blind.Name})
	case k.wide != nil && !k.named:
		panic(&Refusal{Code: Shape, Reason: "an OR of which one branch names the shard key " + k.wide.ShardKey + " and another does not", Hint: "name the key beside the OR, or ask each shard for its part", Table: k.wide.Name})
	case write && k.open != nil && !k.named:
		panic(&Refusal{Code: Shape, Reason: "a write that names the shard key " + k.open.ShardKey + " by what it is not, or by a range", Hint: "name keys with = or IN, or leave the shard key out and write to each shard", Table: k.open.Name})
	}
}

// and is both.
func (k keyed) and(o keyed) keyed {
	k.named = k.named || o.named
	if k.wide == nil {
		k.wide = o.wide
	}
	if k.open == nil {
		k.open = o.open
	}
	if k.blind == nil {
		k.blind = o.blind
	}
	return k
}

// joinKeys adds the conditions of the joins.
func (j *judge) joinKeys(sc *scope, src *source, k keyed) keyed {
	if src == nil {
		return k
	}
	k = j.joinKeys(sc, src.group, k)
	k = j.joinKeys(sc, src.left, k)
	k = j.joinKeys(sc, src.right, k)
	if src.on != nil {
		on := j.key(sc, src.on)
		on.named = on.named && src.kind == joinInner // an outer join keeps the rows that do not fulfil it
		k = k.and(on)
	}
	return k
}

// key reads one condition.
func (j *judge) key(sc *scope, x *expr) keyed {
	switch x.kind {
	case exprAnd:
		k := keyed{}
		for _, c := range x.list {
			k = k.and(j.key(sc, c))
		}
		if k.named {
			k.wide, k.blind = nil, nil
		}
		return k
	case exprOr:
		return j.keyOr(sc, x)
	case exprEq:
		if k, ok := j.keyEq(sc, x.list[0], x.list[1]); ok {
			return k
		}
	case exprOther:
		if x.same {
			if k, ok := j.keyEq(sc, x.list[0], x.list[1]); ok {
				return k
			}
		}
	case exprIn:
		if x.negated {
			break
		}
		if k, ok := j.keyIs(sc, x.list[0], x.list[1:]); ok {
			return k
		}
		if len(x.list) == 2 {
			if k, ok := j.keyIs(sc, x.list[1], x.list[:1]); ok {
				return k
			}
		}
	}
	return keyed{open: j.mentions(sc, x)}
}

// keyEq is a = b.
func (j *judge) keyEq(sc *scope, a, b *expr) (keyed, bool) {
	if k, ok := j.keyIs(sc, a, []*expr{b}); ok {
		return k, true
	}
	return j.keyIs(sc, b, []*expr{a})
}

// keyOr names the shard key if each of its branches does.
func (j *judge) keyOr(sc *scope, x *expr) keyed {
	all, none := true, true
	var k keyed
	var of *Table
	for _, c := range x.list {
		branch := j.key(sc, c)
		all, none = all && branch.named, none && !branch.named
		if branch.named && of == nil {
			of = j.mentions(sc, c)
		}
		k = k.and(branch)
	}
	k.named = all
	if !all && !none && k.wide == nil {
		k.wide = of
	}
	return k
}

// keyIs notes the values that c is compared with, if c is a shard key, or a row that holds one.
func (j *judge) keyIs(sc *scope, c *expr, values []*expr) (keyed, bool) {
	if c.kind == exprRow {
		k, found := keyed{}, false
		for i, part := range c.list {
			column := make([]*expr, 0, len(values))
			for _, v := range values {
				if v.kind == exprRow && len(v.list) == len(c.list) {
					column = append(column, v.list[i])
				}
			}
			if len(column) < len(values) {
				break
			}
			if is, ok := j.keyIs(sc, part, column); ok {
				k, found = k.and(is), true
			}
		}
		return k, found
	}
	t := j.keyColumn(sc, c)
	if t == nil {
		return keyed{}, false
	}
	k := keyed{named: len(values) > 0}
	for _, v := range values {
		if j.keyValue(t, v) {
			continue
		}
		k.named = false
		if isConstant(v) && !strings.EqualFold(j.plain(v), "NULL") {
			k.blind = t
		}
	}
	return k, true
}

// isConstant reports a value that no row and no sub-select has a part in.
func isConstant(v *expr) bool {
	return v.kind != exprColumn && v.kind != exprQuery && !slices.ContainsFunc(v.list, func(part *expr) bool { return !isConstant(part) })
}

// plain returns the text of a value without parentheses and blanks around it.
func (j *judge) plain(v *expr) string { return strings.Trim(j.text[v.start:v.end], "() \t\r\n") }

// keyValue notes one value.
func (j *judge) keyValue(t *Table, v *expr) bool {
	switch {
	case v.kind == exprHole:
		arg, ok := j.args[v.hole]
		if ok {
			j.v.KeyValues = append(j.v.KeyValues, ShardValue{Table: t, Arg: arg})
		}
		return ok
	case v.kind == exprString:
		j.v.KeyValues = append(j.v.KeyValues, ShardValue{Table: t, Arg: -1, Text: v.text})
		return true
	case v.kind == exprOther && len(v.list) <= 1 && isWhole(j.plain(v)):
		j.v.KeyValues = append(j.v.KeyValues, ShardValue{Table: t, Arg: -1, Text: j.plain(v)})
		return true
	}
	return false
}

// keyColumn returns the table whose shard key c is, also through a derived table and in a sub-select of the table's; nil for anything else.
func (j *judge) keyColumn(sc *scope, c *expr) *Table {
	if c.kind != exprColumn {
		return nil
	}
	if t, _ := j.keyIn(sc, c); t != nil || c.qualifier.name == "" {
		return t
	}
	for _, around := range slices.Backward(j.outer) {
		if t, known := j.keyIn(around, c); known {
			return t
		}
	}
	return nil
}

// keyIn returns the table of the scope whose shard key c is. known says that the scope has the name by which c is qualified.
func (j *judge) keyIn(sc *scope, c *expr) (t *Table, known bool) {
	for _, r := range sc.refs {
		if c.qualifier.name != "" && !j.s.same(c.qualifier, r.name) {
			continue
		}
		known = c.qualifier.name != ""
		if r.table != nil && r.table.ShardKey != "" && strings.EqualFold(r.table.ShardKey, c.column.name) {
			return r.table, known
		}
		for _, inner := range r.keyed {
			if strings.EqualFold(inner.ShardKey, c.column.name) {
				return inner, known
			}
		}
	}
	return nil, known
}

// mentions returns the table whose shard key stands somewhere in x, outside sub-selects.
func (j *judge) mentions(sc *scope, x *expr) *Table {
	if t := j.keyColumn(sc, x); t != nil {
		return t
	}
	for _, part := range x.list {
		if t := j.mentions(sc, part); t != nil {
			return t
		}
	}
	return nil
}

// isWhole reports a whole number without a leading zero, as integer keys are written.
func isWhole(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return digits != "" && (text == "0" || digits[0] != '0')
}

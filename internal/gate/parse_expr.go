package gate

// expr reads a condition or value. Only four things matter of it: what is joined by AND at the top, what is compared with what, where a placeholder
// stands and where a sub-select does. So below AND and OR the operators of a level are read as a flat list, whose order of evaluation the servers
// may differ on.
func (p *parser) expr() *expr {
	defer p.enter()()
	start := p.tok().start
	e := p.xor()
	if !p.isOr() {
		return e
	}
	list := []*expr{e}
	for p.isOr() {
		p.next()
		list = append(list, p.xor())
	}
	return &expr{kind: exprOr, list: list, start: start, end: p.end()}
}

// isOr reports OR; on MySQL || is one as well.
func (p *parser) isOr() bool { return p.is("OR") || p.d == MySQL && p.tok().isOp("||") }

func (p *parser) xor() *expr {
	start := p.tok().start
	e := p.and()
	if p.d != MySQL || !p.is("XOR") {
		return e
	}
	list := []*expr{e}
	for p.accept("XOR") {
		list = append(list, p.and())
	}
	return &expr{list: list, start: start, end: p.end()}
}

func (p *parser) and() *expr {
	start := p.tok().start
	e := p.not()
	if !p.is("AND") && !p.tok().isOp("&&") {
		return e
	}
	list := []*expr{e}
	for p.accept("AND") || p.acceptOp("&&") {
		list = append(list, p.not())
	}
	return &expr{kind: exprAnd, list: list, start: start, end: p.end()}
}

func (p *parser) not() *expr {
	start := p.tok().start
	if p.accept("NOT") {
		defer p.enter()()
		return &expr{list: []*expr{p.not()}, start: start, end: p.end()}
	}
	return p.comparison()
}

// comparison reads operands with everything that compares them. Exactly one = between two plain operands, and nothing else, is an exprEq.
func (p *parser) comparison() *expr {
	start := p.tok().start
	list := []*expr{p.operand()}
	n, last := 0, exprOther
	var in *expr
	noisy, same := false, false
	for {
		negated := false
		if p.is("NOT") {
			switch w := p.ahead(1); {
			case w.is("IN"), w.is("LIKE"), w.is("BETWEEN"), w.is("REGEXP"), w.is("RLIKE"), w.is("GLOB"), w.is("ILIKE"), w.is("MATCH"):
				p.next()
				negated = true
			default:
				p.unexpected("an operator")
			}
		}
		t := p.tok()
		switch {
		case t.kind == tokenOp && isComparison(t.value):
			p.next()
			last, same = exprOther, t.value == "<=>"
			if t.value == "=" || t.value == "==" {
				last = exprEq
			}
			if p.is("ANY") || p.is("SOME") || p.is("ALL") {
				last, same = exprOther, false
				p.next()
				list = append(list, p.parenthesised())
			} else {
				list = append(list, p.operand())
			}
		case p.accept("IS"):
			last, same = exprOther, false
			not := p.accept("NOT")
			switch {
			case p.accept("NULL"), p.accept("TRUE"), p.accept("FALSE"), p.accept("UNKNOWN"):
			case p.accept("DISTINCT", "FROM"):
				list = append(list, p.operand())
				same = not
			case p.d == SQLite:
				list = append(list, p.operand())
				same = !not
			default:
				p.unexpected("NULL, TRUE or FALSE")
			}
		case p.d != MySQL && (p.accept("ISNULL") || p.accept("NOTNULL")):
			last = exprOther
		case p.accept("IN"):
			last = exprIn
			values := p.inList()
			in = &expr{kind: exprIn, list: append([]*expr{list[len(list)-1]}, values...), negated: negated}
			list = append(list, values...)
		case p.accept("BETWEEN"):
			last = exprOther
			list = append(list, p.operand())
			p.expect("AND")
			list = append(list, p.operand())
		case p.accept("LIKE"), p.accept("REGEXP"), p.accept("RLIKE"), p.accept("GLOB"), p.accept("ILIKE"), p.accept("MATCH"):
			last = exprOther
			list = append(list, p.operand())
			noisy = noisy || t.upper != "LIKE" && t.upper != "ILIKE"
			if p.accept("ESCAPE") {
				list = append(list, p.operand())
				noisy = true
			}
		default:
			switch {
			case n == 0:
				return list[0]
			case n == 1 && last == exprIn:
				in.start, in.end = start, p.end()
				return in
			case n == 1 && last == exprEq:
				return &expr{kind: exprEq, list: list, start: start, end: p.end()}
			}
			return &expr{list: list, noisy: noisy, same: same && n == 1, start: start, end: p.end()}
		}
		n++
	}
}

func isComparison(op string) bool {
	switch op {
	case "=", "==", "<=>", "<", ">", "<=", ">=", "<>", "!=":
		return true
	}
	return false
}

// inList reads what stands behind IN.
func (p *parser) inList() []*expr {
	if q := p.tryQuery(); q != nil {
		return []*expr{{kind: exprQuery, query: q}}
	}
	p.expectOp("(") // SQLite takes an empty list, which gorm prints for a sub-query that was refused: NOT IN () would be every row
	list := p.exprList()
	p.expectOp(")")
	return list
}

func (p *parser) exprList() []*expr {
	var list []*expr
	for {
		list = append(list, p.expr())
		if !p.acceptOp(",") {
			return list
		}
	}
}

// operand reads values joined by arithmetic: all that binds closer than a comparison.
func (p *parser) operand() *expr {
	start := p.tok().start
	e := p.unary()
	list := []*expr{e}
	for {
		t := p.tok()
		switch {
		case t.kind == tokenOp && isArithmetic(t.value), t.isOp("||") && p.d != MySQL:
			p.next()
			list = append(list, p.unary())
		case p.d == MySQL && (t.is("DIV") || t.is("MOD")):
			p.next()
			list = append(list, p.unary())
		case p.accept("COLLATE"):
			p.name()
			list = append(list, &expr{})
		case p.d == Postgres && p.acceptOp("::"):
			p.castType()
			list = append(list, &expr{})
		default:
			if len(list) == 1 {
				return e
			}
			return &expr{list: list, noisy: true, start: start, end: p.end()}
		}
	}
}

func isArithmetic(op string) bool {
	switch op {
	case "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "->", "->>":
		return true
	}
	return false
}

func (p *parser) unary() *expr {
	start := p.tok().start
	t := p.tok()
	if t.kind == tokenOp && (t.value == "-" || t.value == "+" || t.value == "~" || t.value == "!") || t.is("BINARY") && p.d == MySQL {
		p.next()
		defer p.enter()()
		e := p.unary()
		return &expr{list: []*expr{e}, noisy: e.kind != exprOther || len(e.list) > 0, start: start, end: p.end()} // a number's sign does not fail
	}
	return p.primary()
}

// primary reads one value.
func (p *parser) primary() *expr {
	defer p.enter()()
	t := p.tok()
	start := t.start
	done := func(e expr) *expr {
		e.start, e.end = start, p.end()
		return &e
	}
	switch t.kind {
	case tokenHole, tokenTenant:
		p.next()
		return done(expr{kind: exprHole, hole: p.i - 1})
	case tokenString:
		p.next()
		return done(expr{kind: exprString, text: t.value})
	case tokenNumber:
		p.next()
		return done(expr{})
	case tokenName:
		return p.column()
	case tokenOp:
		if t.value == "(" {
			return p.parenthesised()
		}
	case tokenWord:
		opens := p.ahead(1).isOp("(")
		switch {
		case t.upper == "EXISTS" && opens:
			p.next()
			q := p.tryQuery()
			if q == nil {
				p.unexpected("a sub-select")
			}
			return done(expr{kind: exprQuery, query: q})
		case t.upper == "CASE":
			return done(expr{list: p.caseParts()})
		case t.upper == "INTERVAL":
			p.next()
			return done(expr{list: p.interval(), noisy: true})
		case t.upper == "ROW" && opens && p.d != SQLite:
			p.next()
			return p.parenthesised()
		case t.upper == "ARRAY" && p.d == Postgres:
			p.fail("an array", "bind the value")
		case (t.upper == "DATE" || t.upper == "TIME" || t.upper == "TIMESTAMP") && p.ahead(1).kind == tokenString && p.d != SQLite:
			p.i += 2
			return done(expr{})
		case opens:
			return p.function()
		case constants[t.upper]:
			p.next()
			return done(expr{})
		case p.isName(t):
			return p.column()
		}
	}
	p.unexpected("a value")
	return nil
}

// column reads [table.]column.
func (p *parser) column() *expr {
	start := p.tok().start
	e := &expr{kind: exprColumn, column: p.name(), start: start}
	if p.acceptOp(".") {
		e.qualifier = e.column
		t := p.next() // behind a dot every word is a name
		if t.kind != tokenName && t.kind != tokenWord {
			p.unexpected("a column")
		}
		e.column = identOf(t)
		if p.tok().isOp(".") {
			p.fail("a column with the name of its schema", "name table and column alone")
		}
	}
	if p.tok().isOp("(") {
		p.fail("a call of a quoted name or of a function of another schema", "see docs/shapes.md for the functions")
	}
	e.end = p.end()
	return e
}

// parenthesised reads (expr), (a, b) or (SELECT ...).
func (p *parser) parenthesised() *expr {
	start := p.tok().start
	if q := p.tryQuery(); q != nil {
		return &expr{kind: exprQuery, query: q, start: start, end: p.end()}
	}
	p.expectOp("(")
	list := p.exprList()
	p.expectOp(")")
	if len(list) == 1 {
		e := *list[0] // the same, parentheses included
		e.start, e.end = start, p.end()
		return &e
	}
	return &expr{kind: exprRow, list: list, start: start, end: p.end()}
}

func (p *parser) caseParts() []*expr {
	p.expect("CASE")
	var list []*expr
	if !p.is("WHEN") {
		list = append(list, p.expr())
	}
	for p.accept("WHEN") {
		list = append(list, p.expr())
		p.expect("THEN")
		list = append(list, p.expr())
	}
	if p.accept("ELSE") {
		list = append(list, p.expr())
	}
	p.expect("END")
	return list
}

// interval reads the rest of INTERVAL value UNIT, or PostgreSQL's INTERVAL 'text'.
func (p *parser) interval() []*expr {
	if p.d == Postgres {
		if p.tok().kind != tokenString {
			p.unexpected("a text")
		}
		p.next()
		return nil
	}
	e := p.operand()
	if !units[p.tok().upper] {
		p.unexpected("a unit")
	}
	p.next()
	return []*expr{e}
}

// function reads a call. The name is on the closed list.
func (p *parser) function() *expr {
	t := p.next()
	if !functions[t.upper] || lacking[p.d][t.upper] {
		reason := "a call of a function that is not on the list"
		if len(t.upper) <= 32 {
			reason = "a call of " + t.upper + ", which is not on the list of functions"
		}
		p.fail(reason, "compute it in Go, or use a function of docs/shapes.md")
	}
	if p.d == MySQL && adjacent[t.upper] && p.tok().start != t.end {
		p.fail("a blank between "+t.upper+" and its parenthesis, which makes it a stored function's name", "leave the blank out")
	}
	e := &expr{kind: exprCall, call: t.upper, noisy: true, start: t.start}
	p.expectOp("(")
	if !p.acceptOp(")") {
		p.arguments(e)
		p.expectOp(")")
	}
	if p.accept("WITHIN", "GROUP") {
		p.expectOp("(")
		p.expect("ORDER", "BY")
		e.list = append(e.list, p.orderList()...)
		p.expectOp(")")
	}
	if p.is("FILTER") && p.d != MySQL {
		p.next()
		p.expectOp("(")
		p.expect("WHERE")
		e.list = append(e.list, p.expr())
		p.expectOp(")")
	}
	if (p.are("IGNORE", "NULLS") || p.are("RESPECT", "NULLS")) && p.ahead(2).is("OVER") {
		p.i += 2
	}
	if p.accept("OVER") {
		if p.tok().isOp("(") {
			e.list = append(e.list, p.window()...)
		} else {
			p.name()
		}
	}
	e.end = p.end()
	return e
}

// arguments reads what stands between a call's parentheses, with the keywords that some functions take.
func (p *parser) arguments(e *expr) {
	if p.acceptOp("*") {
		return
	}
	if !p.accept("DISTINCT") {
		p.accept("ALL")
	}
	switch e.call {
	case "TRIM":
		if p.accept("BOTH") || p.accept("LEADING") || p.accept("TRAILING") {
			if p.accept("FROM") {
				e.list = append(e.list, p.expr())
				return
			}
		}
	case "EXTRACT", "TIMESTAMPDIFF", "TIMESTAMPADD":
		if units[p.tok().upper] {
			p.next()
			if !p.acceptOp(",") {
				p.expect("FROM")
			}
		}
	case "POSITION":
		e.list = append(e.list, p.operand())
		if p.accept("IN") {
			e.list = append(e.list, p.expr())
		}
		return
	}
	for {
		e.list = append(e.list, p.expr())
		switch {
		case p.acceptOp(","):
			if e.call == "CONVERT" {
				p.castType()
				return
			}
			continue
		case e.call == "CAST" && p.accept("AS"), e.call == "JSON_VALUE" && p.accept("RETURNING"):
			p.castType()
		case e.call == "CONVERT" && p.accept("USING"):
			p.name()
		case (e.call == "SUBSTRING" || e.call == "SUBSTR" || e.call == "TRIM") && (p.accept("FROM") || p.accept("FOR")):
			continue
		case p.accept("ORDER", "BY"):
			e.list = append(e.list, p.orderList()...)
		}
		if p.accept("SEPARATOR") {
			if p.next().kind != tokenString {
				p.unexpected("a text")
			}
		}
		return
	}
}

// castType reads a type of the closed list: words with an optional (n[,m]).
func (p *parser) castType() {
	n := 0
	for p.tok().kind == tokenWord && types[p.tok().upper] {
		p.next()
		n++
		if p.acceptOp("(") {
			for {
				if p.next().kind != tokenNumber {
					p.unexpected("a number")
				}
				if !p.acceptOp(",") {
					break
				}
			}
			p.expectOp(")")
		}
	}
	if n == 0 {
		p.unexpected("a type of the list")
	}
}

// window reads ([name] PARTITION BY ... ORDER BY ... frame).
func (p *parser) window() []*expr {
	defer p.enter()()
	var list []*expr
	p.expectOp("(")
	if t := p.tok(); p.isName(t) && !t.is("ROWS") && !t.is("RANGE") && !t.is("GROUPS") {
		p.next()
	}
	if p.accept("PARTITION", "BY") {
		list = append(list, p.exprList()...)
	}
	if p.accept("ORDER", "BY") {
		list = append(list, p.orderList()...)
	}
	if p.accept("ROWS") || p.accept("RANGE") || p.accept("GROUPS") {
		if p.accept("BETWEEN") {
			list = append(list, p.bound()...)
			p.expect("AND")
		}
		list = append(list, p.bound()...)
		if p.accept("EXCLUDE") {
			switch {
			case p.accept("CURRENT", "ROW"), p.accept("GROUP"), p.accept("TIES"), p.accept("NO", "OTHERS"):
			default:
				p.unexpected("CURRENT ROW, GROUP, TIES or NO OTHERS")
			}
		}
	}
	p.expectOp(")")
	return list
}

// bound reads one end of a window's frame.
func (p *parser) bound() []*expr {
	var list []*expr
	switch {
	case p.accept("CURRENT", "ROW"):
		return nil
	case p.accept("UNBOUNDED"):
	default:
		list = append(list, p.operand())
	}
	if !p.accept("PRECEDING") {
		p.expect("FOLLOWING")
	}
	return list
}

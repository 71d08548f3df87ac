package gate

// query reads [WITH ...] SELECT ... with set operations, order, limit and locks.
func (p *parser) query() *query {
	defer p.enter()()
	var w *with
	if p.is("WITH") {
		w = p.with()
	}
	q := p.queryBody()
	q.with = w
	return q
}

func (p *parser) queryBody() *query {
	q := &query{}
	q.arms = append(q.arms, p.arm())
	p.queryTail(q)
	return q
}

// queryTail reads what follows a query's first arm.
func (p *parser) queryTail(q *query) {
	for p.accept("UNION") || p.accept("INTERSECT") || p.accept("EXCEPT") {
		if !p.accept("ALL") {
			p.accept("DISTINCT")
		}
		q.arms = append(q.arms, p.arm())
	}
	if p.accept("ORDER", "BY") {
		q.exprs = append(q.exprs, p.orderList()...)
	}
	q.exprs = append(q.exprs, p.limit()...)
	q.locks = p.locks()
	if p.d == Postgres && q.locks { // PostgreSQL takes LIMIT on either side
		q.exprs = append(q.exprs, p.limit()...)
	}
}

func (p *parser) arm() arm {
	if p.acceptOp("(") {
		q := p.query()
		p.expectOp(")")
		return arm{query: q}
	}
	return arm{core: p.core()}
}

func (p *parser) core() *core {
	first := p.i
	p.expect("SELECT")
	c := &core{}
	grouped := false
	switch {
	case p.accept("DISTINCT"):
		if p.d == Postgres && p.accept("ON") {
			p.expectOp("(")
			c.exprs = append(c.exprs, p.exprList()...)
			p.expectOp(")")
		}
	case p.accept("ALL"):
	case p.d == MySQL && p.accept("STRAIGHT_JOIN"):
	}
	c.items = p.items()
	c.itemsEnd = p.end()
	c.fromEnd = p.end()
	if p.is("INTO") {
		p.fail("SELECT ... INTO", "read the rows and write them with a statement of its own")
	}
	if p.accept("FROM") {
		if p.d == MySQL && p.is("DUAL") {
			p.fail("FROM DUAL", "leave it out")
		}
		c.from = p.sources()
		c.fromEnd = p.end()
	}
	if p.accept("WHERE") {
		c.where = p.expr()
	}
	if p.accept("GROUP", "BY") {
		grouped = true
		c.exprs = append(c.exprs, p.orderList()...)
		if p.d == MySQL {
			c.folded = p.accept("WITH", "ROLLUP")
		}
	}
	if p.accept("HAVING") {
		c.having = p.expr()
		c.exprs = append(c.exprs, c.having)
	}
	if p.accept("WINDOW") {
		for {
			p.name()
			p.expect("AS")
			c.exprs = append(c.exprs, p.window()...)
			if !p.acceptOp(",") {
				break
			}
		}
	}
	if p.is("INTO") {
		p.fail("SELECT ... INTO", "read the rows and write them with a statement of its own")
	}
	c.folded = c.folded || !grouped && p.hasAggregate(first)
	return c
}

// hasAggregate reports a call of an aggregate since token first. One in a sub-select counts, since it may be of the query around it.
func (p *parser) hasAggregate(first int) bool {
	for i := first; i < p.i; i++ {
		if t := &p.tokens[i]; t.kind == tokenWord && aggregates[t.upper] && p.tokens[i+1].isOp("(") || t.is("HAVING") {
			return true
		}
	}
	return false
}

// items reads a select list.
func (p *parser) items() []item {
	var list []item
	for {
		list = append(list, p.item())
		if !p.acceptOp(",") {
			return list
		}
	}
}

func (p *parser) item() item {
	if p.acceptOp("*") {
		return item{star: true}
	}
	if p.isName(p.tok()) && p.ahead(1).isOp(".") && p.ahead(2).isOp("*") {
		p.i += 3
		return item{star: true}
	}
	e := p.expr()
	if p.accept("AS") {
		if p.tok().kind == tokenString {
			p.next()
			return item{expr: e}
		}
		p.name()
		return item{expr: e}
	}
	p.alias()
	return item{expr: e}
}

// orderList reads expressions with directions.
func (p *parser) orderList() []*expr {
	var list []*expr
	for {
		list = append(list, p.expr())
		if !p.accept("ASC") {
			p.accept("DESC")
		}
		if p.d != MySQL && p.accept("NULLS") {
			if !p.accept("FIRST") {
				p.expect("LAST")
			}
		}
		if !p.acceptOp(",") {
			return list
		}
	}
}

// limit reads LIMIT n [OFFSET m], LIMIT m, n and OFFSET n.
func (p *parser) limit() []*expr {
	var list []*expr
	if p.accept("LIMIT") {
		if !p.accept("ALL") {
			list = append(list, p.operand())
		}
		if p.d != Postgres && p.acceptOp(",") {
			list = append(list, p.operand())
		}
	}
	if p.accept("OFFSET") {
		list = append(list, p.operand())
	}
	return list
}

// locks reads FOR UPDATE, FOR SHARE and LOCK IN SHARE MODE.
func (p *parser) locks() bool {
	if p.d == MySQL && p.accept("LOCK", "IN", "SHARE", "MODE") {
		p.lockWait()
		return true
	}
	if !p.accept("FOR") {
		return false
	}
	switch {
	case p.accept("UPDATE"), p.accept("SHARE"):
	case p.d == Postgres && (p.accept("NO", "KEY", "UPDATE") || p.accept("KEY", "SHARE")):
	default:
		p.unexpected("UPDATE or SHARE")
	}
	if p.accept("OF") {
		for {
			p.name()
			if !p.acceptOp(",") {
				break
			}
		}
	}
	p.lockWait()
	return true
}

func (p *parser) lockWait() {
	switch {
	case p.accept("NOWAIT"), p.accept("SKIP", "LOCKED"):
	case p.d == MySQL && p.accept("WAIT"):
		if p.next().kind != tokenNumber {
			p.unexpected("a number")
		}
	}
}

// sources reads what stands behind FROM. Commas join more loosely than JOIN does, but on SQLite, where both are equal.
func (p *parser) sources() *source {
	defer p.enter()()
	s := p.joined(nil)
	for n := 0; p.acceptOp(","); n++ {
		p.countTable(n)
		if p.d == SQLite {
			s = p.joined(&source{left: s, right: p.factor(), kind: joinInner, using: true})
			continue
		}
		s = &source{left: s, right: p.joined(nil), kind: joinInner, using: true}
	}
	return s
}

// joined reads a chain of joins, after s if it is not nil.
func (p *parser) joined(s *source) *source {
	if s == nil {
		s = p.factor()
	}
	for n := 0; ; n++ {
		p.countTable(n)
		natural := p.accept("NATURAL")
		kind := joinInner
		switch {
		case p.accept("JOIN"), p.accept("INNER", "JOIN"), p.accept("CROSS", "JOIN"):
		case p.d == MySQL && p.accept("STRAIGHT_JOIN"):
		case p.accept("LEFT", "JOIN"), p.accept("LEFT", "OUTER", "JOIN"):
			kind = joinLeft
		case p.accept("RIGHT", "JOIN"), p.accept("RIGHT", "OUTER", "JOIN"):
			kind = joinRight
		case p.d != MySQL && (p.accept("FULL", "JOIN") || p.accept("FULL", "OUTER", "JOIN")):
			kind = joinFull
		case natural:
			p.unexpected("JOIN")
		default:
			return s
		}
		if kind == joinRight && s.isBare() {
			p.fail("a RIGHT JOIN after a join without ON", "give each join its ON, or use parentheses")
		}
		s = &source{left: s, right: p.factor(), kind: kind}
		switch {
		case natural:
			s.using = true
		case p.accept("ON"):
			s.on = p.expr()
		case p.accept("USING"):
			p.names()
			s.using = true
		case kind == joinInner:
			s.using, s.bare = true, true
		default:
			p.unexpected("ON")
		}
	}
}

// countTable bounds the tree of one FROM while it is read; the judge counts its tables.
func (p *parser) countTable(n int) {
	if n > maxTables {
		p.fail("more than 64 tables in one FROM", "split the statement")
	}
}

// isBare reports a join without ON in the chain that ends in s.
func (s *source) isBare() bool {
	return s.left != nil && (s.bare || s.left.isBare() || s.right.isBare()) // parentheses end a chain
}

// factor reads a table, a derived table, or joins in parentheses.
func (p *parser) factor() *source {
	defer p.enter()()
	if p.tok().isOp("(") {
		if q := p.tryQuery(); q != nil {
			s := &source{derived: q}
			s.alias = p.alias()
			if s.alias.name != "" && p.tok().isOp("(") {
				p.names()
			}
			return s
		}
		p.expectOp("(")
		s := p.sources()
		p.expectOp(")")
		return &source{group: s}
	}
	n := p.name()
	if p.tok().isOp(".") {
		p.fail("a table with the name of its schema", "name the table alone: the pool knows its schema")
	}
	if p.tok().isOp("(") {
		p.fail("a function in the place of a table", "declare a table")
	}
	s := &source{table: &n, plain: true}
	if p.d == MySQL && p.accept("PARTITION") {
		p.names()
		s.plain = false
	}
	s.alias = p.alias()
	if p.tok().isOp("(") {
		p.fail("new names for a table's columns", "leave them out")
	}
	at := p.i
	p.hints()
	s.plain = s.plain && p.i == at
	return s
}

// hints reads index hints.
func (p *parser) hints() {
	switch p.d {
	case MySQL:
		for p.is("USE") || p.is("FORCE") || p.is("IGNORE") {
			p.next()
			if !p.accept("INDEX") && !p.accept("KEY") {
				p.unexpected("INDEX")
			}
			if p.accept("FOR") {
				switch {
				case p.accept("JOIN"), p.accept("ORDER", "BY"), p.accept("GROUP", "BY"):
				default:
					p.unexpected("JOIN, ORDER BY or GROUP BY")
				}
			}
			if p.tok().isOp("(") && p.ahead(1).isOp(")") { // USE INDEX (): none
				p.i += 2
				continue
			}
			p.names()
		}
	case SQLite:
		if p.accept("INDEXED", "BY") {
			p.name()
		} else {
			p.accept("NOT", "INDEXED")
		}
	}
}

// tryQuery reads a query in parentheses if that is what stands here, and nothing otherwise.
func (p *parser) tryQuery() (q *query) {
	n := 0
	for p.ahead(n).isOp("(") {
		n++
	}
	if n == 0 || !p.ahead(n).is("SELECT") && !p.ahead(n).is("WITH") {
		return nil
	}
	from, depth := p.i, p.depth
	if n > 1 { // ((SELECT ...) + 1), ((SELECT ...) x JOIN y): read again if it is no query
		if p.retries++; p.retries > maxRetries {
			p.fail("too many parentheses", "split the statement")
		}
		defer func() {
			if r := recover(); r != nil {
				if _, refused := r.(*Refusal); !refused {
					panic(r)
				}
				p.i, p.depth, q = from, depth, nil
			}
		}()
	}
	p.expectOp("(")
	q = p.query()
	p.expectOp(")")
	return q
}

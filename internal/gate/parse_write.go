package gate

// insert reads INSERT INTO table (columns) VALUES ... | SELECT ..., and MySQL's SET form, with its upsert and RETURNING.
func (p *parser) insert() *statement {
	p.expect("INSERT")
	st := &statement{verb: verbInsert}
	switch {
	case p.is("IGNORE"):
		p.fail("INSERT IGNORE, which hides what went wrong", "use ON DUPLICATE KEY UPDATE id = id")
	case p.is("OR"):
		p.fail("INSERT OR ..., which deletes or drops rows", "use ON CONFLICT")
	}
	if !p.accept("INTO") && p.d != MySQL {
		p.unexpected("INTO")
	}
	st.target = p.tableName()
	if p.d == Postgres && p.accept("AS") {
		st.alias = p.name()
	}
	if p.d == MySQL && p.accept("PARTITION") {
		p.names()
	}
	switch {
	case p.d == MySQL && p.accept("SET"):
		st.setStart = p.tok().start
		st.assigns = p.assignments()
	case p.is("DEFAULT") || p.is("VALUES") || p.is("VALUE") || p.is("SELECT") || p.is("WITH"):
		p.fail("INSERT without the names of its columns", "name them: INSERT INTO t (a, b) ...")
	default:
		if p.tok().isOp("(") && p.ahead(1).isOp(")") {
			p.fail("INSERT without the names of its columns", "name them: INSERT INTO t (a, b) ...")
		}
		st.columns = p.names()
		st.columnsEnd = p.tokens[p.i-1].start
		if p.d == Postgres && p.is("OVERRIDING") {
			p.unexpected("VALUES")
		}
		if p.accept("VALUES") || p.d == MySQL && p.accept("VALUE") {
			p.rows(st)
		} else {
			st.query = p.query()
		}
	}
	switch {
	case p.d == MySQL && p.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
		st.conflict = &onConflict{duplicate: true, update: p.assignments()}
	case p.d != MySQL && p.accept("ON", "CONFLICT"):
		st.conflict = p.conflict()
	}
	p.returning(st)
	return st
}

// tableName reads a table that is written.
func (p *parser) tableName() ident {
	n := p.name()
	if p.tok().isOp(".") {
		p.fail("a table with the name of its schema", "name the table alone: the pool knows its schema")
	}
	return n
}

func (p *parser) rows(st *statement) {
	for {
		p.expectOp("(")
		row := p.exprList()
		if len(row) != len(st.columns) {
			p.fail("INSERT with more or fewer values than columns", "give each column its value")
		}
		st.rowEnds = append(st.rowEnds, p.expectOp(")").start)
		st.rows = append(st.rows, row)
		if !p.acceptOp(",") {
			return
		}
	}
}

// assignments reads column = value, ...
func (p *parser) assignments() []assignment {
	var list []assignment
	for {
		var a assignment
		a.column = p.name()
		if p.acceptOp(".") {
			a.qualifier = a.column
			t := p.next()
			if t.kind != tokenName && t.kind != tokenWord {
				p.unexpected("a column")
			}
			a.column = identOf(t)
		}
		p.expectOp("=")
		a.value = p.expr()
		a.start, a.end = a.value.start, a.value.end
		list = append(list, a)
		if !p.acceptOp(",") {
			return list
		}
	}
}

// conflict reads what stands behind ON CONFLICT.
func (p *parser) conflict() *onConflict {
	c := &onConflict{}
	if p.is("ON") {
		p.fail("ON CONFLICT ON CONSTRAINT", "name the columns: ON CONFLICT (tenant_id, id)")
	}
	if p.tok().isOp("(") {
		c.targetAt = p.tok().end
		c.target = p.names()
		if p.accept("WHERE") {
			c.exprs = append(c.exprs, p.expr())
		}
	}
	p.expect("DO")
	if p.accept("NOTHING") {
		return c
	}
	p.expect("UPDATE", "SET")
	c.update = p.assignments()
	c.updateEnd = p.end()
	if p.accept("WHERE") {
		c.where = p.expr()
	}
	return c
}

func (p *parser) returning(st *statement) {
	if !p.accept("RETURNING") {
		return
	}
	st.returning = true
	for _, it := range p.items() {
		if it.expr != nil {
			st.exprs = append(st.exprs, it.expr)
		}
	}
}

// update reads UPDATE table SET ..., MySQL's UPDATE of joined tables, and UPDATE ... FROM.
func (p *parser) update() *statement {
	p.expect("UPDATE")
	st := &statement{verb: verbUpdate}
	if p.is("OR") || p.is("IGNORE") {
		p.fail("UPDATE that hides what went wrong", "leave the modifier out")
	}
	if p.d == MySQL {
		st.source = p.sources()
	} else {
		st.source = p.single()
	}
	p.expect("SET")
	st.assigns = p.assignments()
	if p.d != MySQL && p.accept("FROM") {
		st.source = &source{left: st.source, right: p.sources(), kind: joinInner, using: true}
	}
	p.writeTail(st)
	return st
}

// single reads one table with its alias.
func (p *parser) single() *source {
	n := p.tableName()
	s := &source{table: &n, alias: p.alias()}
	p.hints()
	return s
}

// writeTail reads WHERE, ORDER BY, LIMIT and RETURNING.
func (p *parser) writeTail(st *statement) {
	st.whereAt = p.end()
	if p.accept("WHERE") {
		st.where = p.expr()
	}
	if p.d != Postgres {
		if p.accept("ORDER", "BY") {
			st.exprs = append(st.exprs, p.orderList()...)
		}
		st.exprs = append(st.exprs, p.limit()...)
	}
	p.returning(st)
}

// delete reads DELETE FROM table, MySQL's DELETE of joined tables, and PostgreSQL's USING.
func (p *parser) delete() *statement {
	p.expect("DELETE")
	st := &statement{verb: verbDelete}
	if p.d == MySQL && !p.is("FROM") {
		st.targets = p.deleteTargets()
		p.expect("FROM")
		st.source = p.sources()
		p.writeTail(st)
		return st
	}
	p.expect("FROM")
	if p.d == MySQL && p.usingAhead() {
		st.targets = p.deleteTargets()
		p.expect("USING")
		st.source = p.sources()
		p.writeTail(st)
		return st
	}
	st.source = p.single()
	if p.d == Postgres && p.accept("USING") {
		st.source = &source{left: st.source, right: p.sources(), kind: joinInner, using: true}
	}
	p.writeTail(st)
	return st
}

// usingAhead reports DELETE FROM a, b USING ...
func (p *parser) usingAhead() bool {
	for n := 0; ; n++ {
		t := p.ahead(n)
		switch {
		case t.is("USING"):
			return true
		case p.isName(t), t.isOp(","), t.isOp("."), t.isOp("*"):
		default:
			return false
		}
	}
}

func (p *parser) deleteTargets() []ident {
	var list []ident
	for {
		list = append(list, p.name())
		if p.acceptOp(".") {
			p.expectOp("*")
		}
		if !p.acceptOp(",") {
			return list
		}
	}
}

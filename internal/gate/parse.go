package gate

import "strings"

// maxDepth bounds how deep parentheses and sub-selects nest, and maxRetries how often a parenthesis is read a second time.
// maxTables is how many tables one FROM may join, which is about what MySQL (61) and SQLite (64) take; maxCTEs bounds WITH.
const (
	maxDepth   = 64
	maxRetries = 64
	maxTables  = 64
	maxCTEs    = 64
)

// parser is a recursive-descent reader of one statement. A mistake ends it by a panic with a *Refusal, which parse recovers.
type parser struct {
	d       Dialect
	text    string
	tokens  []token
	i       int
	depth   int
	retries int
}

// parse reads a statement.
func parse(d Dialect, text string, tokens []token) (st *statement, r *Refusal) {
	p := &parser{d: d, text: text, tokens: tokens}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Refusal:
			st, r = nil, e
		default:
			panic(e)
		}
	}()
	st = p.statement()
	if p.tok().kind != tokenEnd {
		p.unexpected("the end")
	}
	return st, nil
}

func (p *parser) fail(reason, hint string) { panic(refuse(reason, hint)) }

// unexpected refuses the token at hand. It names keywords, and no text or name of the caller's.
func (p *parser) unexpected(want string) {
	t := p.tok()
	got := "something else"
	switch {
	case t.kind == tokenEnd:
		got = "the end"
	case t.kind == tokenWord && reserved[t.upper]:
		got = t.upper
	case t.kind == tokenOp:
		got = t.value
	}
	p.fail("syntax that is not on the list: "+want+" was expected, "+got+" found", "see docs/shapes.md for what is scoped")
}

func (p *parser) tok() *token { return &p.tokens[p.i] }

func (p *parser) ahead(n int) *token {
	if p.i+n < len(p.tokens) {
		return &p.tokens[p.i+n]
	}
	return &p.tokens[len(p.tokens)-1]
}

func (p *parser) next() *token {
	t := &p.tokens[p.i]
	if t.kind != tokenEnd {
		p.i++
	}
	return t
}

// end returns where the last token that was read ends.
func (p *parser) end() int {
	if p.i == 0 {
		return 0
	}
	return p.tokens[p.i-1].end
}

func (t *token) is(word string) bool { return t.kind == tokenWord && t.upper == word }

func (t *token) isOp(op string) bool { return t.kind == tokenOp && t.value == op }

func (p *parser) is(word string) bool { return p.tok().is(word) }

// are reports that the next words are these.
func (p *parser) are(words ...string) bool {
	for n, w := range words {
		if !p.ahead(n).is(w) {
			return false
		}
	}
	return true
}

func (p *parser) accept(words ...string) bool {
	if !p.are(words...) {
		return false
	}
	p.i += len(words)
	return true
}

func (p *parser) expect(words ...string) {
	if !p.accept(words...) {
		p.unexpected(strings.Join(words, " "))
	}
}

func (p *parser) acceptOp(op string) bool {
	if p.tok().isOp(op) {
		p.i++
		return true
	}
	return false
}

func (p *parser) expectOp(op string) *token {
	t := p.tok()
	if !p.acceptOp(op) {
		p.unexpected(op)
	}
	return t
}

// enter counts one level of nesting; call what it returns to leave it.
func (p *parser) enter() func() {
	if p.depth++; p.depth > maxDepth {
		p.fail("nesting deeper than 64 levels", "split the statement")
	}
	return func() { p.depth-- }
}

// name reads a name: a quoted one, or a word that is no keyword.
func (p *parser) name() ident {
	t := p.tok()
	if p.isName(t) {
		p.i++
		return identOf(t)
	}
	p.unexpected("a name")
	return ident{}
}

// isName reports a quoted name, or a word that is no keyword.
func (p *parser) isName(t *token) bool {
	return t.kind == tokenName || t.kind == tokenWord && !reserved[t.upper] && !modifiers[p.d][t.upper]
}

func identOf(t *token) ident {
	return ident{name: t.value, quoted: t.kind == tokenName, start: t.start, end: t.end}
}

// alias reads [AS] alias, or nothing.
func (p *parser) alias() ident {
	if p.accept("AS") {
		return p.name()
	}
	if p.isName(p.tok()) {
		return p.name()
	}
	return ident{}
}

// names reads (a, b, ...).
func (p *parser) names() []ident {
	p.expectOp("(")
	var list []ident
	for {
		list = append(list, p.name())
		if !p.acceptOp(",") {
			break
		}
	}
	p.expectOp(")")
	return list
}

// statement reads a whole statement.
func (p *parser) statement() *statement {
	if p.is("EXPLAIN") {
		p.explain() // of the same statement, judged alike
	}
	return p.statementBody()
}

func (p *parser) explain() {
	p.expect("EXPLAIN")
	switch p.d {
	case MySQL:
		switch {
		case p.accept("EXTENDED"), p.accept("PARTITIONS"), p.accept("ANALYZE"):
		case p.accept("FORMAT"):
			p.expectOp("=")
			if !p.accept("JSON") && !p.accept("TRADITIONAL") && !p.accept("TREE") {
				p.unexpected("JSON, TRADITIONAL or TREE")
			}
		}
	case SQLite:
		p.accept("QUERY", "PLAN")
	case Postgres:
		p.accept("ANALYZE")
		p.accept("VERBOSE")
	}
}

func (p *parser) statementBody() *statement {
	var w *with
	if p.is("WITH") {
		w = p.with()
	}
	t := p.tok()
	switch {
	case t.is("SELECT") || t.isOp("("):
		q := p.queryBody()
		q.with = w
		return &statement{verb: verbSelect, query: q}
	case t.is("INSERT"):
		st := p.insert()
		st.with = w
		return st
	case t.is("UPDATE"):
		st := p.update()
		st.with = w
		return st
	case t.is("DELETE"):
		st := p.delete()
		st.with = w
		return st
	case t.kind == tokenEnd:
		p.fail("an empty statement", "")
	case t.is("REPLACE"):
		p.fail("REPLACE, which deletes whatever row is in its way", "use INSERT ... ON DUPLICATE KEY UPDATE or ON CONFLICT")
	case t.is("TRUNCATE"):
		p.fail("TRUNCATE, which empties the table for every tenant", "use DELETE")
	case t.kind == tokenWord && len(t.upper) <= 12:
		p.fail("a statement that begins with "+t.upper, "SELECT, INSERT, UPDATE and DELETE are scoped; schemas are changed by migrations, transactions by Store.Transaction")
	}
	p.unexpected("SELECT, INSERT, UPDATE or DELETE")
	return nil
}

// with reads WITH [RECURSIVE] name [(columns)] AS (query), ...
func (p *parser) with() *with {
	p.expect("WITH")
	w := &with{recursive: p.accept("RECURSIVE")}
	for {
		c := cte{name: p.name()}
		if p.tok().isOp("(") {
			p.names()
		}
		p.expect("AS")
		if p.d != MySQL && !p.accept("MATERIALIZED") {
			p.accept("NOT", "MATERIALIZED")
		}
		p.expectOp("(")
		c.query = p.query()
		p.expectOp(")")
		if len(w.ctes) == maxCTEs {
			p.fail("more than 64 common table expressions", "split the statement")
		}
		w.ctes = append(w.ctes, c)
		if !p.acceptOp(",") {
			return w
		}
	}
}

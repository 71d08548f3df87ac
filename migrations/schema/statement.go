package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
)

// statement is what is known of one DDL statement.
type statement struct {
	verb   string // "CREATE", "ALTER", "DROP" or "RENAME"
	object string // "TABLE", "INDEX", "VIEW" or "TRIGGER"
	name   string // in lower case
	to     string // the new name of a table that is renamed
	// repeatable statements may run twice: what they ask for is already so then.
	repeatable bool
	tenant     bool // it names a column tenant_id
	auto       bool // it asks for numbers that the database hands out
}

// errKind lists what a file may hold.
var errKind = errors.New("it is none of CREATE, ALTER, DROP and RENAME of a TABLE, INDEX, VIEW or TRIGGER")

// parseStatement reads one DDL statement and refuses what is none, or more than one, or reaches out of its database.
func parseStatement(d dal.Dialect, text string) (*statement, error) {
	tokens, err := tokenize(d, text)
	if err != nil {
		return nil, err
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].is(";") {
		tokens = tokens[:len(tokens)-1]
	}
	p := &parser{tokens: tokens}
	st, err := p.head()
	if err != nil {
		return nil, err
	}
	body := st.object == "TRIGGER" && st.verb == "CREATE"
	for i, t := range tokens {
		switch {
		case t.is(";") && !(body && tokens[len(tokens)-1].is("END")):
			return nil, errors.New("it holds more than one statement")
		case t.is(".") && !body && st.object != "VIEW":
			return nil, errors.New("it names another database")
		case t.is("SELECT") && st.object == "TABLE":
			return nil, errors.New("it fills a table from a query: a run that stops half way cannot be told from one that ended")
		case t.is("?") || t.is("@") || t.is(":") && d == dal.SQLite:
			return nil, fmt.Errorf("it holds %q: a file has no parameters and no variables", t.text)
		}
		if name, ok := t.name(); ok && name == dal.TenantColumn {
			st.tenant = true
		}
		if t.is("AUTO_INCREMENT") || t.is("AUTOINCREMENT") || d == dal.MySQL && t.is("SERIAL") && isType(tokens[:i]) || d == dal.Postgres && numbered(t) {
			st.auto = true
		}
	}
	if st.verb == "ALTER" {
		st.repeatable, st.to = p.alterations()
	}
	return st, nil
}

// numbered reports a word by which a PostgreSQL column gets numbers of the database's making.
func numbered(t token) bool {
	for _, word := range []string{"SERIAL", "BIGSERIAL", "SMALLSERIAL", "SERIAL2", "SERIAL4", "SERIAL8", "IDENTITY", "NEXTVAL"} {
		if t.is(word) {
			return true
		}
	}
	return false
}

// isType reports whether what follows before is a column's type rather than its name: a name of a column comes first.
func isType(before []token) bool {
	if len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	if _, named := last.name(); !named {
		return false
	}
	for _, word := range []string{"ADD", "COLUMN", "DROP", "MODIFY", "CHANGE", "AFTER", "EXISTS", "RENAME", "TO"} {
		if last.is(word) {
			return false
		}
	}
	return true
}

// parser walks over the tokens of a statement.
type parser struct {
	tokens []token
	at     int
}

func (p *parser) peek() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{}
}

// accept steps over the words when they come next, all of them.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if p.at+i >= len(p.tokens) || !p.tokens[p.at+i].is(w) {
			return false
		}
	}
	p.at += len(words)
	return true
}

// objectKind steps over the kind of object.
func (p *parser) objectKind(kinds ...string) (string, error) {
	for _, k := range kinds {
		if p.accept(k) {
			return k, nil
		}
	}
	return "", errKind
}

// objectName steps over a name that no database qualifies, and returns it in lower case.
func (p *parser) objectName() (string, error) {
	name, ok := p.peek().name()
	if !ok || name == "" {
		return "", errors.New("it has no name where one is due")
	}
	p.at++
	if p.peek().is(".") {
		return "", errors.New("it names another database")
	}
	return name, nil
}

// head reads verb, object and name.
func (p *parser) head() (st *statement, err error) {
	st = &statement{}
	switch {
	case p.accept("CREATE"):
		return st, p.create(st)
	case p.accept("DROP"):
		return st, p.drop(st)
	case p.accept("ALTER", "TABLE"):
		st.verb, st.object = "ALTER", "TABLE"
		if p.accept("IF", "EXISTS") {
			return nil, errors.New("ALTER TABLE IF EXISTS does nothing where the table is missing: drop IF EXISTS")
		}
		st.name, err = p.objectName()
		return st, err
	case p.accept("RENAME", "TABLE"):
		st.verb, st.object = "RENAME", "TABLE"
		if st.name, err = p.objectName(); err != nil {
			return nil, err
		}
		if !p.accept("TO") {
			return nil, errKind
		}
		if st.to, err = p.objectName(); err != nil {
			return nil, err
		}
		if p.at != len(p.tokens) {
			return nil, errors.New("it renames more than one table")
		}
		return st, nil
	}
	return nil, errKind
}

func (p *parser) create(st *statement) (err error) {
	st.verb = "CREATE"
	st.repeatable = p.accept("OR", "REPLACE")
	if st.repeatable && !p.accept("VIEW") {
		return errors.New("OR REPLACE throws away what is there")
	}
	switch {
	case st.repeatable:
		st.object = "VIEW"
	case p.accept("UNIQUE", "INDEX"), p.accept("FULLTEXT", "INDEX"), p.accept("SPATIAL", "INDEX"):
		st.object = "INDEX"
	default:
		if st.object, err = p.objectKind("TABLE", "INDEX", "VIEW", "TRIGGER"); err != nil {
			return err
		}
	}
	if p.peek().is("CONCURRENTLY") {
		return errors.New("CONCURRENTLY cannot be rolled back: leave it out")
	}
	if p.accept("IF", "NOT", "EXISTS") {
		st.repeatable = true
	}
	if st.object == "TABLE" && !st.repeatable {
		return errors.New("CREATE TABLE lacks IF NOT EXISTS: a run that stopped half way could not be taken up again")
	}
	if st.name, err = p.objectName(); err != nil {
		return err
	}
	if st.object == "TABLE" && (!p.accept("(") || p.peek().is("LIKE")) {
		return errors.New("CREATE TABLE copies another table: write its columns")
	}
	return nil
}

func (p *parser) drop(st *statement) (err error) {
	st.verb = "DROP"
	if st.object, err = p.objectKind("TABLE", "INDEX", "VIEW", "TRIGGER"); err != nil {
		return err
	}
	st.repeatable = p.accept("IF", "EXISTS")
	if st.object == "TABLE" && !st.repeatable {
		return errors.New("DROP TABLE lacks IF EXISTS: a run that stopped half way could not be taken up again")
	}
	if st.name, err = p.objectName(); err != nil {
		return err
	}
	if p.peek().is(",") {
		return errors.New("it drops more than one table")
	}
	return nil
}

// alterations reports whether every alteration may run twice, and the new name of a table that is renamed.
func (p *parser) alterations() (repeatable bool, to string) {
	repeatable = true
	for _, part := range commas(p.tokens[p.at:]) {
		q := &parser{tokens: part}
		if q.accept("RENAME") && !q.accept("COLUMN") && !q.accept("INDEX") && !q.accept("KEY") {
			if !q.accept("TO") {
				q.accept("AS")
			}
			if to, _ = q.objectName(); q.accept("TO") {
				to = "" // SQLite's RENAME old TO new, of a column
			}
		}
		repeatable = repeatable && alterationRepeats(part)
	}
	return repeatable, to
}

// alterationRepeats knows the few alterations that are sure to change nothing the second time.
func alterationRepeats(part []token) bool {
	q := &parser{tokens: part}
	switch {
	case q.accept("COMMENT"), q.accept("MODIFY"):
		return true
	case q.accept("ADD"), q.accept("DROP"):
		for _, kind := range []string{"COLUMN", "INDEX", "KEY", "CONSTRAINT", "UNIQUE", "FOREIGN"} {
			q.accept(kind)
		}
		return q.accept("IF", "NOT", "EXISTS") || q.accept("IF", "EXISTS")
	}
	return false
}

// commas splits at the commas that stand in no parentheses.
func commas(tokens []token) [][]token {
	var parts [][]token
	depth, from := 0, 0
	for i, t := range tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case t.is(",") && depth == 0:
			parts = append(parts, tokens[from:i])
			from = i + 1
		}
	}
	return append(parts, tokens[from:])
}

// String names the statement without its body.
func (s *statement) String() string { return strings.ToLower(s.verb + " " + s.object + " " + s.name) }

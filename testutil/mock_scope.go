package testutil

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// scopeCheck judges texts by themselves, apart from the code that wrote them: it shares nothing with package dal, so that a mistake there shows
// here. It knows the shapes that dal sends for a tenant, one table a statement, and finds fault with every other.
type scopeCheck struct {
	global map[string]bool // tables that every tenant may read
}

// fault returns why the text, with these arguments, is not bound to the tenant; "" when it is.
func (c scopeCheck) fault(text string, args []driver.NamedValue, id tenant.ID) string {
	tokens, why := lexSQL(text)
	if why != "" {
		return why
	}
	if len(tokens) == 0 {
		return "the statement is empty"
	}
	if slices.ContainsFunc(tokens[1:], func(t sqlToken) bool { return t.is("SELECT") || t.is("UNION") || t.is("JOIN") }) {
		return "it names more than one table"
	}
	s := sqlStatement{tokens: tokens, args: args, id: id}
	switch verb := tokens[0]; {
	case verb.is("SELECT"):
		table, next := s.table(s.find(1, "FROM"))
		if s.ends(next) && c.global[table] {
			return ""
		}
		return s.filtered(table, next)
	case verb.is("DELETE") && s.at(1).is("FROM"):
		return s.filtered(s.table(1))
	case verb.is("UPDATE"):
		return s.assigned(s.table(0))
	case verb.is("INSERT") && s.at(1).is("INTO"):
		return s.inserted(s.table(1))
	}
	return "it is none of SELECT, INSERT INTO, UPDATE and DELETE FROM"
}

// sqlStatement is one statement with the tenant that it must be bound to.
type sqlStatement struct {
	tokens []sqlToken
	args   []driver.NamedValue
	id     tenant.ID
}

// at returns the i-th token, or a token that matches nothing.
func (s sqlStatement) at(i int) sqlToken {
	if i < 0 || i >= len(s.tokens) {
		return sqlToken{}
	}
	return s.tokens[i]
}

// find returns the first of the words outside parentheses, from position i on, or -1.
func (s sqlStatement) find(i int, words ...string) int {
	for ; i < len(s.tokens); i++ {
		if t := s.tokens[i]; t.depth == 0 && slices.ContainsFunc(words, t.is) {
			return i
		}
	}
	return -1
}

// table returns the name of the table after the word at position i, without its schema, and the position after it. Without a word there is no table.
func (s sqlStatement) table(i int) (name string, next int) {
	if i < 0 {
		return "", len(s.tokens)
	}
	name, next = s.at(i+1).name(), i+2
	if s.at(next).kind == '.' {
		name, next = s.at(next+1).name(), next+2
	}
	return name, next
}

// after lists what may follow the conditions.
var after = []string{"GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FOR", "LOCK"}

// ends reports whether the list of tables is over at position i.
func (s sqlStatement) ends(i int) bool {
	return i >= len(s.tokens) || s.at(i).is("WHERE") || slices.ContainsFunc(after, s.at(i).is)
}

// filtered judges a SELECT or DELETE whose one table ends at position i.
func (s sqlStatement) filtered(table string, i int) string {
	switch {
	case table == "":
		return "it names no table"
	case !s.ends(i):
		return "it names more than one table"
	}
	return s.bound(table, s.find(i, "WHERE"))
}

// assigned judges an UPDATE whose one table ends at position i.
func (s sqlStatement) assigned(table string, i int) string {
	if table == "" || !s.at(i).is("SET") {
		return "it names more than one table"
	}
	where := s.find(i, "WHERE")
	for j := i; j < len(s.tokens) && (where < 0 || j < where); j++ {
		if s.tokens[j].depth == 0 && s.tokens[j].isName(dal.TenantColumn) {
			return "it assigns tenant_id"
		}
	}
	return s.bound(table, where)
}

// bound judges the conditions after WHERE at position i: one of those joined by AND outside parentheses must be tenant_id = ?, with the tenant bound,
// and none may be joined by OR.
func (s sqlStatement) bound(table string, i int) string {
	if i < 0 {
		return "it has no WHERE"
	}
	end := s.find(i, after...)
	if end < 0 {
		end = len(s.tokens)
	}
	found := false
	for _, c := range conjuncts(s.tokens[i+1 : end]) {
		if slices.ContainsFunc(c, func(t sqlToken) bool { return t.depth == 0 && (t.is("OR") || t.is("XOR") || t.kind == '|') }) {
			return "an OR stands beside its condition on tenant_id"
		}
		if !slices.ContainsFunc(c, func(t sqlToken) bool { return t.depth == 0 && t.isName(dal.TenantColumn) }) {
			continue
		}
		if len(c) == 5 && c[0].name() == table && c[1].kind == '.' {
			c = c[2:]
		}
		if len(c) != 3 || !c[0].isName(dal.TenantColumn) || c[1].text != "=" {
			return "its condition on tenant_id is not tenant_id = ?"
		}
		if why := s.binds(c[2]); why != "" {
			return why
		}
		found = true
	}
	if !found {
		return "no condition tenant_id = ? stands in its WHERE"
	}
	return ""
}

// conjuncts splits conditions at each AND outside parentheses, but for the AND of a BETWEEN.
func conjuncts(tokens []sqlToken) [][]sqlToken {
	var all [][]sqlToken
	start, between := 0, false
	for i, t := range tokens {
		switch {
		case t.depth > 0:
		case t.is("BETWEEN"):
			between = true
		case t.is("AND") && between:
			between = false
		case t.is("AND"):
			all = append(all, tokens[start:i])
			start = i + 1
		}
	}
	return append(all, tokens[start:])
}

// inserted judges an INSERT whose table ends at position i: each row must bind the tenant in the column tenant_id.
func (s sqlStatement) inserted(table string, i int) string {
	if table == "" || s.at(i).kind != '(' {
		return "it names no columns"
	}
	columns, i := s.list(i)
	at := -1
	for j, c := range columns {
		if len(c) != 1 || !c[0].isName(dal.TenantColumn) {
			continue
		}
		if at >= 0 {
			return "it names tenant_id twice"
		}
		at = j
	}
	switch {
	case at < 0:
		return "it does not write tenant_id"
	case !s.at(i).is("VALUES") || s.at(i+1).kind != '(':
		return "it has no VALUES"
	}
	for {
		var row [][]sqlToken
		row, i = s.list(i + 1)
		if len(row) != len(columns) || len(row[at]) != 1 {
			return "tenant_id is not a bound value"
		}
		if why := s.binds(row[at][0]); why != "" {
			return why
		}
		switch {
		case i == len(s.tokens):
			return ""
		case s.at(i).kind != ',' || s.at(i+1).kind != '(':
			return "something follows its rows"
		}
	}
}

// list returns the comma-separated elements of the parentheses that open at position i, and the position after them. The parentheses match.
func (s sqlStatement) list(i int) (elements [][]sqlToken, next int) {
	start := i + 1
	for i++; i < len(s.tokens); i++ {
		switch t := s.tokens[i]; {
		case t.kind == ')' && t.depth == 0:
			return append(elements, s.tokens[start:i]), i + 1
		case t.kind == ',' && t.depth == 1:
			elements = append(elements, s.tokens[start:i])
			start = i + 1
		}
	}
	return elements, i
}

// binds judges the value of tenant_id.
func (s sqlStatement) binds(t sqlToken) string {
	if t.kind != '?' {
		return "tenant_id is not a bound value"
	}
	if t.arg >= len(s.args) {
		return "it has fewer arguments than placeholders"
	}
	if v, ok := s.args[t.arg].Value.(string); !ok || v != string(s.id) {
		return fmt.Sprintf("tenant_id is bound to %v, the context to %s", s.args[t.arg].Value, s.id)
	}
	return ""
}

// sqlToken is one token of a MySQL text.
type sqlToken struct {
	kind  byte // 'w' word or number, '`' quoted name, '\'' string, '?' placeholder, else the punctuation itself
	text  string
	depth int // how many parentheses it is inside of; the parentheses themselves are outside
	arg   int // for '?': the position of its argument, from 0
}

// is reports whether the token is the keyword.
func (t sqlToken) is(word string) bool { return t.kind == 'w' && strings.EqualFold(t.text, word) }

// name returns the token as a name; "" when it is none.
func (t sqlToken) name() string {
	if t.kind == 'w' || t.kind == '`' {
		return t.text
	}
	return ""
}

// isName reports whether the token is the column's name. MySQL compares column names without regard to case.
func (t sqlToken) isName(name string) bool { return strings.EqualFold(t.name(), name) }

// lexSQL splits a text as MySQL reads it. It returns why it cannot, or "".
func lexSQL(text string) (tokens []sqlToken, why string) {
	depth, args := 0, 0
	for i := 0; i < len(text); {
		c := text[i]
		t := sqlToken{kind: c, text: text[i : i+1], depth: depth}
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
			continue
		case c == '`' || c == '\'' || c == '"':
			end := closing(text, i)
			if end < 0 {
				return nil, "a quote in it is not closed"
			}
			t.text = text[i+1 : end]
			if c == '"' {
				t.kind = '\''
			}
			i = end
		case isWordByte(c):
			end := i
			for end+1 < len(text) && isWordByte(text[end+1]) {
				end++
			}
			t.kind, t.text = 'w', text[i:end+1]
			i = end
		case c == '?':
			t.arg = args
			args++
		case c == '(':
			depth++
		case c == ')':
			depth--
			t.depth = depth
		case c == '#' || c == ';' || strings.HasPrefix(text[i:], "--") || strings.HasPrefix(text[i:], "/*"):
			return nil, "it holds a comment or a second statement"
		case c == '|' && strings.HasPrefix(text[i:], "||"):
			i++
		case (c == '<' || c == '>' || c == '!' || c == ':') && i+1 < len(text) && strings.IndexByte("=<>", text[i+1]) >= 0:
			t.text = text[i : i+2]
			i++
		}
		if depth < 0 {
			return nil, "its parentheses do not match"
		}
		tokens = append(tokens, t)
		i++
	}
	if depth != 0 {
		return nil, "its parentheses do not match"
	}
	return tokens, ""
}

// closing returns the position of the quote that closes the one at i, or -1. A doubled quote stands for itself, and so does one after a backslash,
// except in a name.
func closing(text string, i int) int {
	quote := text[i]
	for j := i + 1; j < len(text); j++ {
		switch {
		case text[j] == '\\' && quote != '`':
			j++
		case text[j] == quote && j+1 < len(text) && text[j+1] == quote:
			j++
		case text[j] == quote:
			return j
		}
	}
	return -1
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c == '@' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

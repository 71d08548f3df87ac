package dal

import "strconv"

// tokenKind is what a lexer found.
type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenName    // `quoted`
	tokenLiteral // 'text'
	tokenHole    // ?
	tokenNamed   // @name
	tokenOpen
	tokenClose
	tokenDot
	tokenOther // an operator or a comma
)

// token is a piece of the text between two offsets.
type token struct {
	kind       tokenKind
	start, end int
}

// lexer splits SQL text into tokens as MySQL, MariaDB and SQLite all read it. Where they would read differently, or where gorm would put a value into
// the middle of a token, it refuses: comments, double quotes, [names], backslashes, semicolons, ?1 and :name placeholders, user variables, a ? or
// (with named) an @ inside a string or a quoted name. It allocates nothing.
type lexer struct {
	text  string
	pos   int
	named bool // @name is a placeholder
	// dollar reads a text that gorm built for PostgreSQL: "name" is a name, $1, $2, ... are the placeholders, each once and in order.
	dollar bool
	holes  int // read so far
}

// next returns the next token, or why the text cannot be read.
func (l *lexer) next() (token, string) {
	for l.pos < len(l.text) && isBlank(l.text[l.pos]) {
		l.pos++
	}
	t := token{start: l.pos}
	if l.pos == len(l.text) {
		t.end = l.pos
		return t, ""
	}
	c := l.text[l.pos]
	l.pos++
	switch {
	case isWord(c):
		t.kind = tokenWord
		l.word()
	case c == '\'':
		t.kind = tokenLiteral
		if why := l.quoted('\''); why != "" {
			return t, why
		}
	case c == '`':
		t.kind = tokenName
		if why := l.quoted('`'); why != "" {
			return t, why
		}
	case c == '"' && l.dollar:
		t.kind = tokenName
		if why := l.quoted('"'); why != "" {
			return t, why
		}
	case c == '$' && l.dollar:
		t.kind = tokenHole
		l.holes++
		for l.pos < len(l.text) && l.text[l.pos] >= '0' && l.text[l.pos] <= '9' {
			l.pos++
		}
		if l.text[t.start+1:l.pos] != strconv.Itoa(l.holes) || l.pos < len(l.text) && isWord(l.text[l.pos]) {
			return t, "its placeholders are not in order"
		}
	case c == '?' && !l.dollar:
		t.kind = tokenHole
		if l.pos < len(l.text) && isWord(l.text[l.pos]) {
			return t, "it holds a numbered placeholder"
		}
	case c == '@':
		t.kind = tokenNamed
		if !l.named || l.pos == len(l.text) || !isWord(l.text[l.pos]) {
			return t, "it holds a variable"
		}
		l.word()
		// gorm's own names end at these; at anything else it would take more for the name, or print a variable.
		if l.pos < len(l.text) && !isNameEnd(l.text[l.pos]) {
			return t, "a named value is not followed by a blank, a comma or a parenthesis"
		}
	case c == '(':
		t.kind = tokenOpen
	case c == ')':
		t.kind = tokenClose
	case c == '.':
		t.kind = tokenDot
	case isOperator(c):
		t.kind = tokenOther
		if l.pos < len(l.text) {
			if pair := l.text[l.pos-1 : l.pos+1]; pair == "--" || pair == "/*" || pair == "*/" {
				return t, "it holds a comment"
			}
		}
	default:
		return t, "it holds " + describe(c)
	}
	t.end = l.pos
	return t, ""
}

func (l *lexer) word() {
	for l.pos < len(l.text) && isWord(l.text[l.pos]) {
		l.pos++
	}
}

// quoted reads to the end of a string or quoted name whose first quote was read.
func (l *lexer) quoted(q byte) string {
	for ; l.pos < len(l.text); l.pos++ {
		switch c := l.text[l.pos]; {
		case c == '\\':
			return "it holds a backslash in quotes: bind the value"
		case c == '?' || c == '@' && l.named:
			return "it holds a placeholder in quotes: bind the value"
		case c == 0:
			return "it holds a zero byte"
		case c == q:
			if l.pos+1 < len(l.text) && l.text[l.pos+1] == q {
				l.pos++
				continue
			}
			l.pos++
			return ""
		}
	}
	return "a quote does not end"
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isNameEnd(c byte) bool { return c == ' ' || c == ',' || c == ')' || c == '\r' || c == '\n' }

func isOperator(c byte) bool {
	switch c {
	case ',', '+', '-', '*', '/', '%', '<', '>', '=', '!', '&', '|', '^', '~':
		return true
	}
	return false
}

func describe(c byte) string {
	switch c {
	case '"':
		return "a double quote, which is a string to one server and a name to another"
	case '[', ']':
		return "a square bracket, which quotes a name on one server alone"
	case '\\':
		return "a backslash, which escapes on one server and not on another"
	case ';':
		return "a semicolon"
	case '#':
		return "a comment"
	case ':':
		return "a colon, which is a placeholder on one server alone"
	}
	return "a character that does not belong there"
}

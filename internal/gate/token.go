package gate

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is what the lexer found.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // an unquoted name or keyword
	tokenName             // a quoted name
	tokenString           // a text literal
	tokenNumber           // a number
	tokenHole             // ? or $n
	tokenTenant           // @tenant
	tokenOp               // an operator or punctuation
)

// token is a piece of the text. Its value is the operator, the name without quotes, or the text without quotes and escapes.
type token struct {
	kind       tokenKind
	start, end int
	value      string
	upper      string // of a word: in capitals
	number     int    // of $n
}

// maxText bounds what is read. MySQL's own limit (max_allowed_packet) is larger; a statement of this size is a batch that should be split.
const maxText = 8 << 20

// maxName is the longest name on PostgreSQL, which takes two longer ones that begin alike for one.
const maxName = 63

// scan splits text into tokens as the dialect's server does, or says why it cannot be read.
//
// Sources: MySQL 8.0 manual 9.1 (literals), 9.2 (names), 9.7 (comments); MariaDB's "Identifier Names" and "String Literals"; SQLite's tokenize.c
// behaviour as documented at sqlite.org/lang_keywords.html and lang_expr.html; PostgreSQL 15 manual 4.1 (lexical structure).
func scan(d Dialect, text string) ([]token, *Refusal) {
	if len(text) > maxText {
		return nil, refuse("a text of more than 8 MiB", "send it in smaller batches")
	}
	if !utf8.ValidString(text) {
		return nil, refuse("a text that is not UTF-8", "bind the value")
	}
	l := scanner{d: d, text: text, tokens: make([]token, 0, len(text)/4+8)}
	for {
		t, r := l.next()
		if r != nil {
			return nil, r
		}
		l.tokens = append(l.tokens, t)
		if t.kind == tokenEnd {
			return l.tokens, nil
		}
	}
}

type scanner struct {
	d      Dialect
	text   string
	pos    int
	tokens []token
}

func (l *scanner) peek(n int) byte {
	if l.pos+n < len(l.text) {
		return l.text[l.pos+n]
	}
	return 0
}

func (l *scanner) afterDot() bool {
	n := len(l.tokens)
	return n > 0 && l.tokens[n-1].kind == tokenOp && l.tokens[n-1].value == "."
}

func (l *scanner) next() (token, *Refusal) {
	for l.pos < len(l.text) && isBlank(l.text[l.pos]) {
		l.pos++
	}
	t := token{start: l.pos}
	if l.pos == len(l.text) {
		t.end = l.pos
		return t, nil
	}
	var r *Refusal
	switch c := l.text[l.pos]; {
	case isLetter(c):
		r = l.word(&t)
	case isDigit(c) || c == '.' && isDigit(l.peek(1)) && !l.afterName():
		r = l.number(&t)
	case c == '\'':
		t.kind = tokenString
		t.value, r = l.quoted('\'', l.d == MySQL)
	case c == '"':
		t.kind = tokenName
		if l.d == MySQL {
			t.kind = tokenString
		}
		t.value, r = l.quoted('"', l.d == MySQL)
	case c == '`' && l.d != Postgres:
		t.kind = tokenName
		t.value, r = l.quoted('`', false)
	case c == '[' && l.d == SQLite:
		t.kind = tokenName
		end := strings.IndexByte(l.text[l.pos:], ']')
		if end < 0 {
			return t, refuse("a quote that does not end", "close it")
		}
		t.value = l.text[l.pos+1 : l.pos+end]
		l.pos += end + 1
	case c == '?':
		r = l.hole(&t)
	case c == '$':
		r = l.dollar(&t)
	case c == '@':
		r = l.at(&t)
	default:
		r = l.op(&t)
	}
	if r != nil {
		return t, r
	}
	t.end = l.pos
	if t.kind == tokenName {
		if t.value == "" || !isASCIIName(t.value) {
			return t, refuse("a name with characters other than printable ASCII", "use plain names")
		}
	}
	if l.d == Postgres && (t.kind == tokenName || t.kind == tokenWord) && len(t.value) > maxName {
		return t, refuse("a name of more than 63 characters, of which PostgreSQL reads 63", "use a shorter one")
	}
	return t, nil
}

// afterName reports that the last token is a name with no blank behind it: a dot here belongs to it.
func (l *scanner) afterName() bool {
	n := len(l.tokens)
	if n == 0 {
		return false
	}
	last := l.tokens[n-1]
	return last.kind == tokenWord || last.kind == tokenName
}

func (l *scanner) word(t *token) *Refusal {
	t.kind = tokenWord
	start := l.pos
	for l.pos < len(l.text) && (isLetter(l.text[l.pos]) || isDigit(l.text[l.pos])) {
		l.pos++
	}
	switch c := l.peek(0); {
	case c >= 0x80:
		return refuse("a name with characters other than printable ASCII", "use plain names, and bind texts")
	case c == '$':
		return refuse("a name with a $", "use letters, digits and _")
	case c == '\'' || c == '"' && l.d == MySQL: // N'x', _utf8'x', E'x', X'1F': literals of another kind
		if word := l.text[start:l.pos]; !(len(word) == 1 && (word[0] == 'x' || word[0] == 'X') && c == '\'') {
			return refuse("a literal with a prefix", "bind the value")
		}
		hex, r := l.quoted('\'', false)
		if r != nil || len(hex)%2 != 0 || strings.Trim(hex, "0123456789abcdefABCDEF") != "" {
			return refuse("a literal with a prefix", "bind the value")
		}
		t.kind = tokenNumber
		return nil
	case c == '&' && (l.peek(1) == '\'' || l.peek(1) == '"' && l.d == Postgres): // U&'x', U&"x"
		return refuse("a literal with a prefix", "bind the value")
	}
	t.value = l.text[start:l.pos]
	t.upper = upper(t.value)
	return nil
}

// number reads 1, 1.5, .5, 1e-3 and 0x1F; digits that run into letters are a name to one server and two tokens to another.
func (l *scanner) number(t *token) *Refusal {
	t.kind = tokenNumber
	if l.afterDot() {
		return refuse("a name that begins with a digit", "quote it")
	}
	start := l.pos
	if l.peek(0) == '0' && (l.peek(1) == 'x' || l.peek(1) == 'X') {
		l.pos += 2
		for isHex(l.peek(0)) {
			l.pos++
		}
		if l.pos == start+2 {
			return refuse("a number that is not one", "bind the value")
		}
	} else {
		for isDigit(l.peek(0)) {
			l.pos++
		}
		if l.peek(0) == '.' {
			l.pos++
			for isDigit(l.peek(0)) {
				l.pos++
			}
		}
		if c := l.peek(0); c == 'e' || c == 'E' {
			n := 1
			if s := l.peek(1); s == '+' || s == '-' {
				n = 2
			}
			if !isDigit(l.peek(n)) {
				return refuse("a number that is not one", "bind the value")
			}
			l.pos += n
			for isDigit(l.peek(0)) {
				l.pos++
			}
		}
	}
	if c := l.peek(0); isLetter(c) || isDigit(c) || c >= 0x80 || c == '$' || c == '.' {
		return refuse("a number that runs into a name", "quote the name, or bind the value")
	}
	t.value = l.text[start:l.pos]
	return nil
}

// quoted reads to the end of a quoted piece and returns its value.
func (l *scanner) quoted(q byte, escapes bool) (string, *Refusal) {
	l.pos++
	start := l.pos
	var b *strings.Builder // only when the value differs from the text
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		switch {
		case c == 0:
			return "", refuse("a zero byte", "bind the value")
		case c == '\\' && escapes:
			if l.pos+1 == len(l.text) {
				return "", refuse("a quote that does not end", "close it")
			}
			if b == nil {
				b = &strings.Builder{}
				b.WriteString(l.text[start:l.pos])
			}
			l.pos++
			writeEscaped(b, l.text[l.pos])
			l.pos++
			continue
		case c == q:
			if l.peek(1) != q {
				l.pos++
				if b != nil {
					return b.String(), nil
				}
				return l.text[start : l.pos-1], nil
			}
			if b == nil {
				b = &strings.Builder{}
				b.WriteString(l.text[start:l.pos])
			}
			b.WriteByte(q)
			l.pos += 2
			continue
		}
		if b != nil {
			b.WriteByte(c)
		}
		l.pos++
	}
	return "", refuse("a quote that does not end", "close it")
}

// writeEscaped writes what MySQL reads for a backslash before c.
func writeEscaped(b *strings.Builder, c byte) {
	switch c {
	case '0':
		b.WriteByte(0)
	case 'b':
		b.WriteByte('\b')
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'Z':
		b.WriteByte(26)
	case '%', '_':
		b.WriteByte('\\')
		b.WriteByte(c)
	default:
		b.WriteByte(c)
	}
}

func (l *scanner) hole(t *token) *Refusal {
	t.kind = tokenHole
	l.pos++
	switch c := l.peek(0); {
	case l.d == Postgres:
		return refuse("a ? placeholder", "use $1, $2 on PostgreSQL")
	case isDigit(c) || isLetter(c) || c >= 0x80:
		return refuse("a numbered placeholder", "use plain ? placeholders")
	}
	return nil
}

func (l *scanner) dollar(t *token) *Refusal {
	if l.d != Postgres {
		return refuse("a $ placeholder", "use ? placeholders")
	}
	t.kind = tokenHole
	l.pos++
	for isDigit(l.peek(0)) && t.number < 1<<16 {
		t.number = t.number*10 + int(l.peek(0)-'0')
		l.pos++
	}
	switch c := l.peek(0); {
	case t.number < 1 || t.number >= 1<<16:
		return refuse("a dollar quote or a placeholder that is not one", "bind the value")
	case isLetter(c) || isDigit(c) || c == '$' || c >= 0x80:
		return refuse("a dollar quote or a placeholder that is not one", "bind the value")
	}
	return nil
}

// at reads @tenant, the one named value that the library itself knows.
func (l *scanner) at(t *token) *Refusal {
	const name = "@tenant"
	if strings.HasPrefix(l.text[l.pos:], name) {
		if c := l.peek(len(name)); !isLetter(c) && !isDigit(c) && c != '$' && c != '.' && c != '@' && c < 0x80 {
			t.kind = tokenTenant
			l.pos += len(name)
			return nil
		}
	}
	return refuse("a variable", "bind the value; @tenant is the one name that the library knows")
}

// operators of more than one character, longest first.
var operators = []string{"<=>", "->>", "<>", "!=", ">=", "<=", "||", "&&", "<<", ">>", "==", "->", "::"}

func (l *scanner) op(t *token) *Refusal {
	t.kind = tokenOp
	rest := l.text[l.pos:]
	switch {
	case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "/*"), strings.HasPrefix(rest, "*/"), rest[0] == '#' && l.d == MySQL:
		return refuse("a comment", "leave it out: a comment is code to some servers")
	case rest[0] == ';':
		return refuse("a semicolon", "send one statement at a time")
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			if !l.knows(op) {
				return refuse("the operator "+op, "write it in another way")
			}
			l.pos += len(op)
			t.value = op
			return nil
		}
	}
	if strings.IndexByte("(),.+-*/%<>=&|^~!", rest[0]) < 0 {
		return refuse("a character that does not belong there", "bind the value")
	}
	if rest[0] == '!' && l.d != MySQL || rest[0] == '^' && l.d == SQLite {
		return refuse("the operator "+rest[:1], "write it in another way")
	}
	if l.d == Postgres && rest[0] != '(' && rest[0] != ')' && rest[0] != ',' && rest[0] != '.' {
		// PostgreSQL takes any run of operator characters for one operator.
		if len(rest) > 1 && strings.IndexByte("+-*/<>=~!@#%^&|`?", rest[1]) >= 0 && rest[0] != '*' {
			return refuse("an operator that is not on the list", "put blanks between operators")
		}
	}
	l.pos++
	t.value = rest[:1]
	return nil
}

// knows reports an operator of the dialect.
func (l *scanner) knows(op string) bool {
	switch op {
	case "<=>", "&&":
		return l.d == MySQL
	case "==":
		return l.d == SQLite
	case "::":
		return l.d == Postgres
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isASCIIName reports printable ASCII: servers fold other letters in ways of their own (a dotted capital I is an i).
func isASCIIName(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// upper returns s in capitals, itself when it is.
func upper(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'a' && c <= 'z' {
			return strings.ToUpper(s)
		}
	}
	return s
}

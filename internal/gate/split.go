package gate

import "strings"

// Piece is a statement of a text with several.
type Piece struct {
	Text string // without blanks around it and without its semicolon; never empty
	Line int    // where it begins, from 1
}

// Split cuts a text at its semicolons, as the dialect's command line does: not inside quotes, comments or PostgreSQL's dollar quotes. The last statement
// needs no semicolon; empty ones are left out. What does not end (a quote, a comment) reaches to the end of the text.
//
// It is for files of statements that are then judged one by one, where a comment is refused as at run time. Nothing that is sent is ever split.
func Split(d Dialect, text string) []Piece {
	var pieces []Piece
	start, line, counted := 0, 1, 0
	cut := func(end int) {
		body := text[start:end]
		from := start + len(body) - len(strings.TrimLeft(body, blanks))
		if body = strings.Trim(body, blanks); body != "" {
			line += strings.Count(text[counted:from], "\n")
			counted = from
			pieces = append(pieces, Piece{Text: body, Line: line})
		}
		start = end + 1
	}
	for i := 0; i < len(text); {
		if text[i] == ';' {
			cut(i)
			i++
			continue
		}
		i += skip(d, text, i)
	}
	if start < len(text) {
		cut(len(text))
	}
	return pieces
}

const blanks = " \t\r\n"

// skip returns the length of what stands at text[i:] and is not to be cut: a quoted piece, a comment, or one byte.
func skip(d Dialect, text string, i int) int {
	rest := text[i:]
	switch c := rest[0]; {
	case c == '\'':
		escape := d == Postgres && i > 0 && (text[i-1] == 'E' || text[i-1] == 'e') && (i == 1 || !isWord(text[i-2])) // E'...'
		return skipQuoted(rest, '\'', d == MySQL || escape)
	case c == '"':
		return skipQuoted(rest, '"', d == MySQL)
	case c == '`' && d != Postgres:
		return skipQuoted(rest, '`', false)
	case c == '[' && d == SQLite:
		return skipTo(rest, 1, "]")
	case strings.HasPrefix(rest, "--") && (d != MySQL || len(rest) == 2 || rest[2] <= ' '), c == '#' && d == MySQL:
		return skipTo(rest, 1, "\n")
	case strings.HasPrefix(rest, "/*"):
		return skipComment(d, rest)
	case c == '$' && d == Postgres && (i == 0 || !isWord(text[i-1])):
		return skipDollar(rest)
	}
	return 1
}

func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '$' || c >= 0x80 }

// skipTo returns where end ends, looked for from at.
func skipTo(text string, at int, end string) int {
	if n := strings.Index(text[at:], end); n >= 0 {
		return at + n + len(end)
	}
	return len(text)
}

func skipQuoted(text string, q byte, escapes bool) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && escapes:
			i++
		case text[i] == q:
			return i + 1 // a doubled quote begins the next piece at once
		}
	}
	return len(text)
}

// skipComment reads to the end of a comment; PostgreSQL's nest.
func skipComment(d Dialect, text string) int {
	if d != Postgres {
		return skipTo(text, 2, "*/")
	}
	depth := 0
	for i := 0; i+1 < len(text); {
		switch text[i : i+2] {
		case "/*":
			depth++
			i += 2
		case "*/":
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(text)
}

// skipDollar reads $tag$ ... $tag$.
func skipDollar(text string) int {
	i := 1
	for i < len(text) && (isLetter(text[i]) || isDigit(text[i]) && i > 1 || text[i] >= 0x80) {
		i++
	}
	if i == len(text) || text[i] != '$' {
		return 1
	}
	return skipTo(text, i+1, text[:i+1])
}

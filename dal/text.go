package dal

import "strings"

// refusedWords may not stand in a condition, column or order text: each of them can open another table, another statement or the server's files.
var refusedWords = map[string]bool{
	"SELECT": true, "TABLE": true, "WITH": true, "UNION": true, "INTERSECT": true, "EXCEPT": true, "MINUS": true, "INTO": true,
	"PROCEDURE": true, "HANDLER": true, "RETURNING": true, "LOAD_FILE": true, "LOAD_EXTENSION": true, "NEXTVAL": true, "LASTVAL": true,
	"SETVAL": true, "SLEEP": true, "BENCHMARK": true, "GET_LOCK": true, "RELEASE_LOCK": true, "RELEASE_ALL_LOCKS": true, "JOIN": true,
	"READFILE": true, "WRITEFILE": true, "FTS3_TOKENIZER": true, "EDIT": true,
}

// judgeText reports why a fragment of SQL text that a caller wrote may not stand inside a statement, or "". A fragment that passes is closed in
// itself: whatever it says stays inside the parentheses that are put around it. named allows @name placeholders.
//
// What it refuses is what dialects read differently or what could leave the fragment: comments, several statements, double quotes (a string or a
// name), backslashes (an escape or not), user variables, unbalanced parentheses, sub-selects, and SQLite's "IN table".
func judgeText(text string, named bool) string {
	depth := 0
	afterIn := false // the last word was IN: only a list or a placeholder may follow
	afterDot := false
	for i := 0; i < len(text); {
		c := text[i]
		if afterIn && c != '(' && c != '?' && c != '@' && !isBlank(c) {
			return "IN is not followed by a list in parentheses"
		}
		switch {
		case isBlank(c):
			i++
			continue
		case c == '\'':
			end, why := literal(text, i)
			if why != "" {
				return why
			}
			i = end
		case c == '`':
			end := strings.IndexByte(text[i+1:], '`')
			if end < 0 {
				return "a quoted name does not end"
			}
			i += end + 2
			if rest := strings.TrimLeft(text[i:], " \t\r\n"); strings.HasPrefix(rest, "(") {
				return "a quoted name is called as a function"
			}
		case c == '(':
			depth++
			i++
		case c == ')':
			if depth--; depth < 0 {
				return "its parentheses are not balanced"
			}
			i++
		case c == '"' || c == '\\' || c == ';' || c == '#' || c == '{' || c == '}' || c == '$' || c < ' ' || c == 0x7f:
			return "it holds " + describe(c)
		case c == '-' && strings.HasPrefix(text[i:], "--"), c == '/' && strings.HasPrefix(text[i:], "/*"), c == '*' && strings.HasPrefix(text[i:], "*/"):
			return "it holds a comment"
		case c == '@':
			if !named || i+1 >= len(text) || !isWord(text[i+1]) {
				return "it holds a variable"
			}
			i++
			for i < len(text) && isWord(text[i]) {
				i++
			}
		case isWord(c):
			start := i
			for i < len(text) && isWord(text[i]) {
				i++
			}
			word := strings.ToUpper(text[start:i])
			if refusedWords[word] {
				return "it holds " + word
			}
			if afterDot {
				if rest := strings.TrimLeft(text[i:], " \t\r\n"); strings.HasPrefix(rest, "(") {
					return "it calls a function of another schema"
				}
			}
			afterIn, afterDot = word == "IN", false
			continue
		case c == '.':
			i++
			afterDot, afterIn = true, false
			continue
		default:
			i++
		}
		afterIn, afterDot = false, false
	}
	switch {
	case depth != 0:
		return "its parentheses are not balanced"
	case afterIn:
		return "IN is not followed by a list in parentheses"
	}
	return ""
}

// literal returns the index after the string that begins at text[i].
func literal(text string, i int) (int, string) {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			return 0, "it holds a backslash in a string: bind the value"
		case '\'':
			if i+1 < len(text) && text[i+1] == '\'' {
				i++
				continue
			}
			return i + 1, ""
		}
	}
	return 0, "a string does not end"
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func describe(c byte) string {
	switch c {
	case '"':
		return "a double quote, which is a string to one server and a name to another"
	case '\\':
		return "a backslash, which escapes on one server and not on another"
	case ';':
		return "a semicolon"
	case '#':
		return "a comment"
	}
	return "a character that does not belong there"
}

package testutil

import "strings"

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

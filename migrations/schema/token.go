package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
)

// tokenKind is what a token is.
type tokenKind uint8

const (
	tokenWord   tokenKind = iota + 1 // a keyword or a plain name, in the file's own case
	tokenName                        // a quoted name, without its quotes
	tokenString                      // a literal, with its quotes
	tokenNumber
	tokenMark // one byte of punctuation
)

// token is one piece of a statement.
type token struct {
	kind tokenKind
	text string
}

// is reports whether the token is the keyword or the mark.
func (t token) is(word string) bool {
	return (t.kind == tokenWord || t.kind == tokenMark) && strings.EqualFold(t.text, word)
}

// name returns the name that the token is, folded to lower case, since neither database tells tables of two cases apart everywhere.
func (t token) name() (string, bool) {
	return strings.ToLower(t.text), t.kind == tokenWord || t.kind == tokenName
}

// tokenize splits a statement as the dialect's server reads it: a backslash in a literal escapes on MySQL and does not on SQLite. Comments are dropped,
// but one that MySQL would execute is an error, as is what does not end.
func tokenize(d dal.Dialect, text string) ([]token, error) {
	var out []token
	for i := 0; i < len(text); {
		rest := text[i:]
		n, kind, err := nextToken(d, rest)
		if err != nil {
			return nil, err
		}
		switch kind {
		case 0: // blank or comment
		case tokenName:
			quote := rest[n-1 : n]
			out = append(out, token{kind, strings.ReplaceAll(rest[1:n-1], quote+quote, quote)})
		default:
			out = append(out, token{kind, rest[:n]})
		}
		i += n
	}
	return out, nil
}

// nextToken returns the length and the kind of the token that text begins with; kind 0 is a blank or a comment.
func nextToken(d dal.Dialect, text string) (int, tokenKind, error) {
	c := text[0]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return 1, 0, nil
	case strings.HasPrefix(text, "--") && d == dal.MySQL && len(text) > 2 && text[2] > ' ':
		return 0, 0, errors.New("it has -- without a blank after it, which MySQL reads as two minus signs")
	case strings.HasPrefix(text, "--") || c == '#' && d == dal.MySQL:
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			return end, 0, nil
		}
		return len(text), 0, nil
	case strings.HasPrefix(text, "/*!") || strings.HasPrefix(text, "/*M!"):
		return 0, 0, errors.New("it has a comment that the server executes (/*! ... */)")
	case strings.HasPrefix(text, "/*"):
		end := strings.Index(text[2:], "*/")
		if end < 0 {
			return 0, 0, errors.New("a comment does not end")
		}
		if d == dal.Postgres && strings.Contains(text[2:end+2], "/*") {
			return 0, 0, errors.New("it has a comment in a comment, which PostgreSQL reads otherwise")
		}
		return end + 4, 0, nil
	case c == '\'':
		n, err := quoted(text, d == dal.MySQL)
		return n, tokenString, err
	case c == '"':
		if d == dal.MySQL {
			n, err := quoted(text, true)
			return n, tokenString, err
		}
		n, err := quoted(text, false)
		return n, tokenName, err
	case c == '`':
		n, err := quoted(text, false)
		return n, tokenName, err
	case c == '[' && d == dal.SQLite:
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return 0, 0, errors.New("a name in brackets does not end")
		}
		return end + 1, tokenName, nil
	case isDigit(c):
		n := 1
		for n < len(text) && (isWord(text[n]) || text[n] == '.') {
			n++
		}
		return n, tokenNumber, nil
	case c == '$' && d == dal.Postgres:
		return 0, 0, errors.New("it has $, which begins a text in dollars or a parameter: quote with '")
	case isWord(c):
		n := 1
		for n < len(text) && isWord(text[n]) {
			n++
		}
		if d == dal.Postgres && n < len(text) && text[n] == '\'' && strings.EqualFold(text[:n], "E") {
			return 0, 0, errors.New("it has a text in E'...', in which a backslash escapes: quote with ' alone")
		}
		return n, tokenWord, nil
	}
	return 1, tokenMark, nil
}

// quoted returns the length of what text's first byte quotes, its quotes included; a doubled quote stands for one.
func quoted(text string, backslash bool) (int, error) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && backslash:
			i++
		case text[i] == quote && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("what %c quotes does not end", quote)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '_' || c == '$' || c >= 0x80
}

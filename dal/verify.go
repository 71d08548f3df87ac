package dal

import (
	"database/sql"
	"fmt"

	"gorm.io/gorm"
)

// verify reads a built statement once as a whole and reports why it may not leave, or "". Fragments were judged where they came in; here it is their
// sum that counts, with whatever gorm and field types added:
//
//   - the text reads the same on every server, and begins one statement of the verb, without a sub-select or a second statement;
//   - it has exactly one placeholder for each value, and the placeholder in the scope's condition takes the tenant;
//   - the scope's condition stands outside all parentheses, the caller's conditions end inside it, and what follows is joined to it by AND alone.
func verify(stmt *gorm.Statement, v verb, node *scopedWhere) string {
	text := stmt.SQL.String()
	for _, value := range stmt.Vars {
		if _, named := value.(sql.NamedArg); named {
			return "a named argument"
		}
	}
	l := lexer{text: text, dollar: stmt.Name() == string(Postgres)}
	depth, holes, n := 0, 0, 0
	tail := false // in the conditions after the scope's
	var last token
	for {
		t, why := l.next()
		if why != "" {
			return why
		}
		if node != nil {
			switch {
			case t.start == node.start && depth != 0:
				return "the tenant's condition is inside parentheses"
			case t.kind == tokenHole && t.start == node.hole && holes != node.arg:
				return "the tenant's placeholder takes another value"
			case t.start >= node.end && last.start < node.end:
				if depth != 0 {
					return "the caller's conditions leave their parentheses"
				}
				tail = true
			}
		}
		switch t.kind {
		case tokenEnd:
			switch {
			case depth != 0:
				return "its parentheses are not balanced"
			case holes != len(stmt.Vars):
				return fmt.Sprintf("%d placeholders and %d values", holes, len(stmt.Vars))
			}
			return ""
		case tokenOpen:
			depth++
		case tokenClose:
			if depth--; depth < 0 {
				return "its parentheses are not balanced"
			}
			if node != nil && depth == 0 && t.start >= node.start && t.end < node.end {
				return "the caller's conditions leave their parentheses"
			}
		case tokenHole:
			holes++
		case tokenWord:
			word := text[t.start:t.end]
			class := classOf(word)
			switch {
			case n == 0:
				if !isText(word, v.word()) && !(v == verbDelete && isText(word, "UPDATE")) { // a soft delete is an UPDATE
					return "another verb than its own"
				}
			case class&wordNever != 0 && last.kind != tokenDot && !(n == 1 && v == verbCreate):
				return "a " + word + " inside"
			case tail && class&wordClause != 0:
				tail = false // the conditions are over
			case tail && depth == 0 && (isText(word, "OR") || isText(word, "XOR")):
				return "conditions beside the tenant's"
			}
		case tokenOther:
			if tail && depth == 0 && text[t.start] == '|' {
				return "conditions beside the tenant's"
			}
		}
		last = t
		n++
	}
}

// word is how a statement of the verb begins.
func (v verb) word() string {
	switch v {
	case verbCreate:
		return "INSERT"
	case verbUpdate:
		return "UPDATE"
	case verbDelete:
		return "DELETE"
	}
	return "SELECT"
}

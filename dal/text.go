package dal

import (
	"database/sql"
	"fmt"
	"go/ast"
	"reflect"
	"strings"
)

// fragment is a piece of SQL text that a caller wrote, with its values.
type fragment struct {
	text  string
	vars  []any
	named bool // its placeholders are @names
	bare  bool // it stands outside parentheses: a column, an order, a grouping
	one   bool // it is one value: no comma outside parentheses
}

// judge reports why the fragment may not stand inside a statement, or "". What passes is closed in itself: it cannot leave its place, open another
// table, or take a value that is not its own.
func (f fragment) judge() string {
	l := lexer{text: f.text, named: f.named}
	depth, holes := 0, 0
	var last, before token // the two tokens before this one
	for {
		t, why := l.next()
		if why != "" {
			return why
		}
		afterIn := last.kind == tokenWord && isText(f.text[last.start:last.end], "IN")
		if afterIn && t.kind != tokenOpen && t.kind != tokenHole && t.kind != tokenNamed {
			return "IN is not followed by a list"
		}
		switch t.kind {
		case tokenEnd:
			switch {
			case depth != 0:
				return "its parentheses are not balanced"
			case !f.named && holes != len(f.vars):
				return fmt.Sprintf("it has %d placeholders and %d values", holes, len(f.vars))
			}
			return ""
		case tokenOpen:
			depth++
			if why := calls(f.text, last, before); why != "" {
				return why
			}
		case tokenClose:
			if depth--; depth < 0 {
				return "its parentheses are not balanced"
			}
		case tokenWord:
			word := f.text[t.start:t.end]
			class := classOf(word)
			switch {
			case last.kind == tokenDot: // a column, whatever it is called
			case isText(word, "VALUE") && last.kind == tokenWord: // NEXT VALUE FOR a sequence
				return "it holds VALUE after a word"
			case class&wordNever != 0, class&wordClause != 0 && f.bare && depth == 0:
				return "it holds " + strings.ToUpper(word)
			}
		case tokenOther:
			if f.one && depth == 0 && f.text[t.start] == ',' {
				return "it holds more than one value"
			}
		case tokenHole:
			if f.named {
				return "it mixes ? and @names"
			}
			if holes++; holes > len(f.vars) {
				return "it has a placeholder without a value"
			}
			if why := f.judgeVar(f.vars[holes-1], afterIn); why != "" {
				return why
			}
		case tokenNamed:
			v, ok := f.lookUp(f.text[t.start+1 : t.end])
			if !ok {
				return "it holds a variable"
			}
			if why := f.judgeVar(v, afterIn); why != "" {
				return why
			}
		}
		before, last = last, t
	}
}

// calls reports why the parenthesis after last may not open, or "". before is the token before last.
func calls(text string, last, before token) string {
	switch last.kind {
	case tokenName:
		return "a quoted name is called as a function"
	case tokenWord:
		word := text[last.start:last.end]
		switch {
		case before.kind == tokenDot:
			return "it calls a function of another schema"
		case classOf(word)&(wordOperand|wordFunction) == 0:
			return "it calls " + strings.ToUpper(word) + ", which is not on the list of functions"
		}
	}
	return ""
}

// judgeVar judges the value of a placeholder. After IN only what gorm prints as a list may stand.
func (f fragment) judgeVar(v any, afterIn bool) string {
	if afterIn && !isList(v) {
		return "IN is not followed by a list"
	}
	return judgeValue(v, f.bare)
}

// isList reports what gorm prints in parentheses.
func isList(v any) bool {
	switch v.(type) {
	case []any:
		return true
	case nil, []byte:
		return false
	}
	k := reflect.TypeOf(v).Kind()
	return (k == reflect.Slice || k == reflect.Array) && isPlain(reflect.TypeOf(v), 4) == nil && reflect.TypeOf(v).Elem().Kind() != reflect.Uint8
}

// lookUp finds a named value as gorm does: in named arguments, maps, and the exported fields of structs.
func (f fragment) lookUp(name string) (value any, found bool) {
	for _, v := range f.vars { // a later one wins
		switch x := v.(type) {
		case sql.NamedArg:
			if x.Name == name {
				value, found = x.Value, true
			}
		case map[string]any:
			if e, ok := x[name]; ok {
				value, found = e, true
			}
		default:
			if e, ok := fieldNamed(reflect.ValueOf(v), name); ok {
				value, found = e, true
			}
		}
	}
	return value, found
}

func fieldNamed(v reflect.Value, name string) (value any, found bool) {
	v = reflect.Indirect(v)
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !ast.IsExported(field.Name) {
			continue
		}
		if field.Name == name {
			value, found = v.Field(i).Interface(), true
		}
		if field.Anonymous {
			if e, ok := fieldNamed(v.Field(i), name); ok {
				value, found = e, true
			}
		}
	}
	return value, found
}

package dal

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/tenant"
)

// judgeValue passes what is bound, and refuses what gorm would print into the text: a closed list. bare says that what is printed stands outside
// parentheses.
func judgeValue(v any, bare bool) string {
	switch x := v.(type) {
	case nil, string, []byte, bool, int, int64, float64, time.Time, tenant.ID:
		return ""
	case *gorm.DB:
		return "a sub-query"
	case gorm.Valuer:
		return fmt.Sprintf("a value that writes SQL (%T)", v)
	case clause.Column:
		return judgeColumn(x, bare)
	case clause.Expr:
		return fragment{text: x.SQL, vars: x.Vars, bare: bare}.judge()
	case *clause.Expr:
		if x == nil {
			return "a nil expression"
		}
		return fragment{text: x.SQL, vars: x.Vars, bare: bare}.judge()
	case clause.Expression, clause.Interface:
		return fmt.Sprintf("a value that writes SQL (%T)", v)
	case []any:
		for _, e := range x {
			if why := judgeValue(e, bare); why != "" {
				return why
			}
		}
		return ""
	}
	if err := isPlain(reflect.TypeOf(v), 4); err != nil {
		return err.Error()
	}
	return judgeElements(reflect.ValueOf(v), bare)
}

// judgeElements walks lists whose elements are of any type.
func judgeElements(v reflect.Value, bare bool) string {
	if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
		return ""
	}
	switch v.Type().Elem().Kind() {
	case reflect.Interface, reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if why := judgeValue(v.Index(i).Interface(), bare); why != "" {
				return why
			}
		}
	}
	return ""
}

var (
	valuerType     = reflect.TypeFor[driver.Valuer]()
	expressionType = reflect.TypeFor[clause.Expression]()
	interfaceType  = reflect.TypeFor[clause.Interface]()
	timeType       = reflect.TypeFor[time.Time]()
)

// isPlain returns nil for a type whose values are bound: numbers, texts, times, driver.Valuers, and pointers to and lists of these. Lists of
// interfaces are walked when there are values.
func isPlain(t reflect.Type, depth int) error {
	refused := fmt.Errorf("a value of type %s", t)
	if depth == 0 || writesSQL(t) {
		return refused
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32,
		reflect.Uint64, reflect.Float32, reflect.Float64, reflect.String:
		return nil
	}
	if t == timeType || t.Implements(valuerType) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return isPlain(t.Elem(), depth-1)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Interface {
			return nil
		}
		return isPlain(t.Elem(), depth-1)
	}
	return refused
}

// writesSQL reports a type that gorm lets write into the statement's text.
func writesSQL(t reflect.Type) bool {
	for _, of := range []reflect.Type{t, reflect.PointerTo(t)} {
		if of.Implements(expressionType) || of.Implements(interfaceType) || of.Implements(gormValuerType) {
			return true
		}
	}
	return false
}

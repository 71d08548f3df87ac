package dal

import (
	"reflect"

	"gorm.io/gorm/clause"
)

var (
	expressionType = reflect.TypeFor[clause.Expression]()
	interfaceType  = reflect.TypeFor[clause.Interface]()
)

// writesSQL reports a type that gorm lets write into the statement's text.
func writesSQL(t reflect.Type) bool {
	for _, of := range []reflect.Type{t, reflect.PointerTo(t)} {
		if of.Implements(expressionType) || of.Implements(interfaceType) || of.Implements(gormValuerType) {
			return true
		}
	}
	return false
}

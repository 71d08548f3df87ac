package dal

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// failedPart stands among the values of a sub-query that was refused. gorm builds a sub-query without sending it, takes its text and its values, and
// forgets its error; so it comes to the statement around it.
type failedPart struct{ err error }

// isGenericPart reports a query of gorm.G that is built as a value of another statement: gorm gives it a context of its own, which names nobody. Its text
// is bound to its handle's tenant, and the statement around it refuses a value that is another's.
func isGenericPart(db *gorm.DB, v verb) bool {
	return v == verbQuery && db.DryRun && db.Statement.Context == context.Background() && db.Logger == logger.Discard
}

// preloading makes gorm's preload refuse a function that returns another tenant's handle: that one's rows would be put beside this one's.
func preloading(send func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		given := db.Statement.Preloads
		if db.Error == nil && len(given) > 0 {
			checked := make(map[string][]any, len(given))
			for name, conds := range given {
				list := make([]any, len(conds))
				for i, c := range conds {
					if fn, ok := c.(func(*gorm.DB) *gorm.DB); ok {
						c = sameHandle(fn)
					}
					list[i] = c
				}
				checked[name] = list
			}
			db.Statement.Preloads = checked
			defer func() { db.Statement.Preloads = given }()
		}
		send(db)
	}
}

// sameHandle returns fn, with an error in place of a handle of another scope or place.
func sameHandle(fn func(*gorm.DB) *gorm.DB) func(*gorm.DB) *gorm.DB {
	return func(tx *gorm.DB) *gorm.DB {
		b, err := bindingOf(tx)
		if err != nil {
			return tx // its statement is refused
		}
		out := fn(tx)
		if out == nil {
			_ = tx.AddError(&ShapeError{Shape: "a Preload function that returns nil", Hint: "return the handle that it was given"})
			return tx
		}
		if out.Error == nil {
			if err := b.subquery(out); err != nil {
				_ = tx.AddError(err)
				return tx
			}
		}
		return out
	}
}

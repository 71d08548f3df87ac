package dal

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// returns reports a dialect whose writes can answer with rows.
func returns(stmt *gorm.Statement) bool { return slices.Contains(stmt.BuildClauses, "RETURNING") }

// addReturning asks for the columns that the database fills, as gorm's own sender would when it finds no text yet.
func addReturning(stmt *gorm.Statement) {
	if stmt.Schema == nil || !returns(stmt) {
		return
	}
	if _, asked := stmt.Clauses["RETURNING"]; asked {
		return
	}
	var columns []clause.Column
	for _, f := range stmt.Schema.FieldsWithDefaultDBValue {
		if f.Readable {
			columns = append(columns, clause.Column{Name: f.DBName})
		}
	}
	if len(columns) > 0 {
		stmt.AddClause(clause.Returning{Columns: columns})
	}
}

package dal

import (
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"

	"github.com/libtnb/sqlite"
)

// sqliteDialector is libtnb's, without its version query: nobody vouches for it.
type sqliteDialector struct{ sqlite.Dialector }

// Initialize registers gorm's own callbacks and clause builders.
func (d sqliteDialector) Initialize(db *gorm.DB) error {
	db.ConnPool = d.Conn
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{
		LastInsertIDReversed: true,
		CreateClauses:        []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
		UpdateClauses:        []string{"UPDATE", "SET", "WHERE", "RETURNING"},
		DeleteClauses:        []string{"DELETE", "FROM", "WHERE", "RETURNING"},
	})
	for name, builder := range d.ClauseBuilders() {
		db.ClauseBuilders[name] = builder
	}
	return nil
}

// SavePoint sends the savepoint and returns its error, which libtnb's drops: nested work that "rolled back" would commit.
func (d sqliteDialector) SavePoint(tx *gorm.DB, name string) error {
	return savepoint(tx, "SAVEPOINT", name)
}

// RollbackTo returns to a savepoint.
func (d sqliteDialector) RollbackTo(tx *gorm.DB, name string) error {
	return savepoint(tx, "ROLLBACK TO SAVEPOINT", name)
}

// mysqlDialector is gorm's, with savepoints that pass as fixed texts.
type mysqlDialector struct{ mysql.Dialector }

// SavePoint sends the savepoint.
func (d mysqlDialector) SavePoint(tx *gorm.DB, name string) error {
	return savepoint(tx, "SAVEPOINT", name)
}

// RollbackTo returns to a savepoint.
func (d mysqlDialector) RollbackTo(tx *gorm.DB, name string) error {
	return savepoint(tx, "ROLLBACK TO SAVEPOINT", name)
}

// postgresDialector is gorm's, with savepoints that pass as fixed texts.
type postgresDialector struct{ postgres.Dialector }

// SavePoint sends the savepoint.
func (d postgresDialector) SavePoint(tx *gorm.DB, name string) error {
	return savepoint(tx, "SAVEPOINT", name)
}

// RollbackTo returns to a savepoint.
func (d postgresDialector) RollbackTo(tx *gorm.DB, name string) error {
	return savepoint(tx, "ROLLBACK TO SAVEPOINT", name)
}

func savepoint(tx *gorm.DB, verb, name string) error {
	t, ok := unprepared(tx.Statement.ConnPool).(*txPool)
	if !ok {
		return gorm.ErrInvalidTransaction
	}
	return t.savepoint(tx.Statement.Context, verb, name)
}

// newDialector returns gorm's dialect over a pool of ours.
func newDialector(d Dialect, p gorm.ConnPool, mariaDB bool) gorm.Dialector {
	switch d {
	case SQLite:
		return &sqliteDialector{sqlite.Dialector{Conn: p}}
	case Postgres:
		return &postgresDialector{postgres.Dialector{Config: &postgres.Config{Conn: p}}}
	}
	return &mysqlDialector{mysql.Dialector{Config: &mysql.Config{
		Conn: p, SkipInitializeWithVersion: true,
		DontSupportForShareClause: mariaDB, DontSupportNullAsDefaultValue: mariaDB,
		DontSupportRenameColumn: mariaDB, DontSupportRenameIndex: mariaDB,
	}}}
}

package dal

import (
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
)

// registerDefaultTransaction puts a shorter way in place of the two callbacks with which gorm begins and ends the transaction of a single write. gorm's own
// make a copy of the statement and of its session to begin it, and find it again by a text made of the statement's address: a sixth of the time of an
// update that is answered at once.
func registerDefaultTransaction(cb interface {
	Get(name string) func(*gorm.DB)
	Replace(name string, fn func(*gorm.DB)) error
},
) error {
	if err := cb.Replace("gorm:begin_transaction", beginDefault); err != nil {
		return err
	}
	return cb.Replace("gorm:commit_or_rollback_transaction", endDefault)
}

// beginDefault begins the transaction of one write. Inside a transaction there is none to begin.
func beginDefault(db *gorm.DB) {
	if db.Config.SkipDefaultTransaction || db.Error != nil {
		return
	}
	switch p := db.Statement.ConnPool.(type) {
	case *txPool:
	case *pool:
		tx, err := p.begin(db.Statement.Context, nil)
		if err != nil {
			_ = db.AddError(err)
			return
		}
		tx.of = db.Statement
		db.Statement.ConnPool = tx
	default: // a handle with PrepareStmt, a connection of Connection()
		callbacks.BeginTransaction(db)
	}
}

// endDefault ends what beginDefault began for this very statement.
func endDefault(db *gorm.DB) {
	t, ok := db.Statement.ConnPool.(*txPool)
	switch {
	case !ok:
		callbacks.CommitOrRollbackTransaction(db)
		return
	case t.of != db.Statement:
		return
	case db.Error != nil:
		_ = db.AddError(t.Rollback())
	default:
		_ = db.AddError(t.Commit())
	}
	db.Statement.ConnPool = db.ConnPool
}

// ownTransaction returns the transaction that was begun for this very statement, or nil: a hook's statements run in it and do not end it.
func ownTransaction(db *gorm.DB) *txPool {
	if t, ok := db.Statement.ConnPool.(*txPool); ok && t.of == db.Statement {
		return t
	}
	return nil
}

// guarded ends the write's own transaction when fn panics or ends the goroutine; the panic goes on.
func guarded(fn func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		returned := false
		defer func() {
			if returned {
				return
			}
			if t := ownTransaction(db); t != nil {
				_ = t.Rollback()
				db.Statement.ConnPool = db.ConnPool
			} else if _, own := db.InstanceGet("gorm:started_transaction"); own {
				db.Rollback()
				db.Statement.ConnPool = db.ConnPool
			}
		}()
		fn(db)
		returned = true
	}
}

package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// hint writes text before, after or around a clause, as hint packages for gorm do.
type hint struct{ clause, text string }

func (h hint) Build(b clause.Builder) { _, _ = b.WriteString(h.text) }

// ModifyStatement puts the hint behind the clause's name.
func (h hint) ModifyStatement(stmt *gorm.Statement) {
	c := stmt.Clauses[h.clause]
	c.Name, c.AfterNameExpression = h.clause, h
	stmt.Clauses[h.clause] = c
}

// behind writes the hint behind the whole clause.
type behind struct{ hint }

func (h behind) ModifyStatement(stmt *gorm.Statement) {
	c := stmt.Clauses[h.clause]
	c.Name, c.AfterExpression = h.clause, h
	stmt.Clauses[h.clause] = c
}

func eq(column string, v any) clause.Eq {
	return clause.Eq{Column: clause.Column{Name: column}, Value: v}
}

// clauseShapes hold gorm's clause types.
var clauseShapes = []shape{
	{name: "where", call: "db.Clauses(clause.Where{Exprs: ...})", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=1\tOR\t1=1"}}}))
	}},
	{name: "or", call: "db.Clauses(clause.Or(...))", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.Or(eq("gold", 1), clause.Expr{SQL: "1=1"})))
	}},
	{name: "and", call: "db.Clauses(clause.And(...))", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.And(clause.Gte{Column: "gold", Value: 2}, clause.Lt{Column: "gold", Value: 3})))
	}},
	{name: "not", call: "db.Clauses(clause.Not(...))", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.Not(eq("gold", 1), clause.Gt{Column: "gold", Value: 5})))
	}},
	{name: "comparisons", call: "clause.Eq, Neq, Gt, Gte, Lt, Lte, Like, IN", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(clause.Neq{Column: "gold", Value: 1}).Where(clause.Gt{Column: "gold", Value: 0}).Where(clause.Gte{Column: "gold", Value: 0}).
			Where(clause.Lt{Column: "gold", Value: 9}).Where(clause.Lte{Column: "gold", Value: 9}).Where(clause.Like{Column: "name", Value: "a%"}).
			Where(clause.IN{Column: "id", Values: []any{1, 2}}).Where(eq("player_id", "7")))
	}},
	{name: "eq-nil", call: "clause.Eq{Value: nil}, clause.Neq{Value: nil}", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(clause.Eq{Column: "created_at", Value: nil}).Or(clause.Neq{Column: "name", Value: nil}))
	}},
	{name: "eq-of-another-tenant", call: `db.Clauses(clause.Eq{Column: "tenant_id", Value: "b"})`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold = 1").Or(eq("tenant_id", "b")))
	}},
	{name: "in-of-another-tenant", call: `clause.IN{Column: "tenant_id", Values: ...}`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(clause.IN{Column: "tenant_id", Values: []any{"a", "b"}}))
	}},
	{name: "in-empty", call: "clause.IN{Values: nil}", run: func(s *stage) (any, error) { return find[Knight](s.db.Where(clause.IN{Column: "id"})) }},
	{name: "expr", call: `clause.Expr{SQL: "gold BETWEEN ? AND ?"}`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(clause.Expr{SQL: "gold BETWEEN ? AND ?", Vars: []any{1, 2}}))
	}},
	{name: "named-expr", call: `clause.NamedExpr{SQL: "gold = @n OR 1=1"}`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(clause.NamedExpr{SQL: "gold = @n OR 1=1", Vars: []any{sql.Named("n", 2)}}))
	}},
	{name: "column-raw", call: `clause.Column{Name: "gold + 1", Raw: true}`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(clause.Eq{Column: clause.Column{Name: "gold + 1", Raw: true}, Value: 2}))
	}},
	{name: "column-raw-open", call: `clause.Column{Name: "1=1) OR (1", Raw: true}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(clause.Eq{Column: clause.Column{Name: "1=1) OR (1", Raw: true}, Value: 1}))
	}},
	{name: "select", call: "clause.Select{Distinct: true, Columns: ...}", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.Select{Distinct: true, Columns: []clause.Column{{Name: "name"}}}, clause.OrderBy{Columns: []clause.OrderByColumn{{Column: clause.Column{Name: "name"}}}}))
	}},
	{name: "select-expressions", call: "clause.Select{Expression: clause.CommaExpression{...}}", run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Clauses(clause.Select{Expression: clause.CommaExpression{Exprs: []clause.Expression{
			clause.Expr{SQL: "name"}, clause.Expr{SQL: "(SELECT COUNT(*) FROM pets) AS n"},
		}}}).Order("id"))
	}},
	{name: "from-schema", call: `clause.From{Tables: {Name: "other.knights"}}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.From{Tables: []clause.Table{{Name: "other.knights"}}}))
	}},
	{name: "from-another-table", call: `clause.From{Tables: {Name: "pets"}}`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Clauses(clause.From{Tables: []clause.Table{{Name: "pets"}}}))
	}},
	{name: "table-raw", call: `clause.Table{Name: "knights -- ", Raw: true}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.From{Tables: []clause.Table{{Name: "knights -- ", Raw: true}}}))
	}},
	{name: "group-by", call: "clause.GroupBy{Columns, Having}", run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("name, SUM(gold) AS n").Clauses(clause.GroupBy{
			Columns: []clause.Column{{Name: "name"}}, Having: []clause.Expression{clause.Expr{SQL: "SUM(gold) > 1 OR 1=1"}},
		}).Order("name"))
	}},
	{name: "order-by", call: "clause.OrderBy{Expression: ...}", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.OrderBy{Expression: clause.Expr{SQL: "CASE WHEN gold = ? THEN 0 ELSE 1 END, gold", Vars: []any{2}, WithoutParentheses: true}}))
	}},
	{name: "order-by-column", call: "clause.OrderBy{Columns: []clause.OrderByColumn{...}}", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.OrderBy{Columns: []clause.OrderByColumn{{Column: clause.PrimaryColumn, Desc: true}}}))
	}},
	{name: "limit", call: "clause.Limit{Limit, Offset}", run: func(s *stage) (any, error) {
		one := 1
		return find[Knight](s.db.Order("id").Clauses(clause.Limit{Limit: &one, Offset: 1}))
	}},
	{name: "locking-update", call: `clause.Locking{Strength: "UPDATE"}`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id = 1").Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}))
	}},
	{name: "locking-share", call: `clause.Locking{Strength: "SHARE"}`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id = 1").Clauses(clause.Locking{Strength: clause.LockingStrengthShare}))
	}},
	{name: "locking-options", call: `clause.Locking{Strength: "UPDATE", Options: "NOWAIT"}`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id = 1").Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Options: clause.LockingOptionsNoWait}))
	}},
	{name: "locking-of", call: `clause.Locking{Strength: "UPDATE", Table: clause.Table{Name: clause.CurrentTable}}`, run: func(s *stage) (any, error) {
		if s.kind == "mariadb" { // has no OF
			return nil, nil
		}
		return find[Knight](s.db.Where("id = 1").Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate, Table: clause.Table{Name: clause.CurrentTable}}))
	}},
	{name: "returning-of-a-read", call: "db.Clauses(clause.Returning{}).Find(&knights)", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.Returning{}))
	}},
	{name: "hint-in-comment", call: `hints.New("MAX_EXECUTION_TIME(1000)")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(hint{"SELECT", "/*+ MAX_EXECUTION_TIME(1000) */ "}))
	}},
	{name: "hint-comment-behind", call: `hints.CommentAfter("WHERE", "x")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("1=1").Clauses(behind{hint{"WHERE", "/* x */"}}))
	}},
	{name: "hint-text-behind", call: `a modifier that writes " OR 1=1" behind WHERE`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("1=1").Clauses(behind{hint{"WHERE", "OR 1=1"}}))
	}},
	{name: "insert-modifier", call: `clause.Insert{Modifier: "IGNORE"}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Clauses(clause.Insert{Modifier: "OR REPLACE"}).Create(&Pet{Model: dal.Model{ID: 9}, PlayerID: "7"}))
	}},
	{name: "insert-table", call: `clause.Insert{Table: clause.Table{Name: "houses"}}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Clauses(clause.Insert{Table: clause.Table{Name: "houses"}}).Create(&Pet{Model: dal.Model{ID: 9}, PlayerID: "7"}))
	}},
	{name: "update-modifier", call: `clause.Update{Modifier: "IGNORE"}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Where("id = 1").Clauses(clause.Update{Modifier: "IGNORE"}).Update("name", "x"))
	}},
	{name: "delete-modifier", call: `clause.Delete{Modifier: "QUICK"}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Where("id = 1").Clauses(clause.Delete{Modifier: "QUICK"}).Delete(&Pet{}))
	}},
	{name: "values", call: "db.Clauses(clause.Values{...}).Create(&pet)", run: func(s *stage) (any, error) { // the row's own values stand
		return changed(s.db.Clauses(clause.Values{Columns: []clause.Column{{Name: "tenant_id"}}, Values: [][]any{{"b"}}}).Create(&Pet{Model: dal.Model{ID: 9}, PlayerID: "7", Name: "x"}))
	}},
	{name: "set", call: "db.Model(&pet).Clauses(clause.Set{...}).Updates(map[string]any{})", run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).Clauses(clause.Set{{Column: clause.Column{Name: "qty"}, Value: 5}}).Where("1=1").Updates(map[string]any{}))
	}},
	{name: "T22-set-owner", call: "clause.Set of tenant_id", refused: dal.ErrImmutable, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Where("id = 2").Clauses(clause.Set{{Column: clause.Column{Name: "tenant_id"}, Value: "b"}}).Updates(map[string]any{}))
	}},
	{name: "with", call: "clause.With{}, which writes nothing in gorm 1.31", run: func(s *stage) (any, error) {
		var unused any = clause.With{}
		if _, builds := unused.(clause.Expression); builds {
			return nil, errors.New("clause.With has become an expression: give it shapes")
		}
		return find[Knight](s.db)
	}},
	{name: "clause-with-name-of-its-own", call: "a clause.Interface with an unknown name", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(stranger{}))
	}},
}

// stranger is a clause that gorm's callbacks do not build.
type stranger struct{}

func (stranger) Name() string                   { return "STRANGER" }
func (stranger) Build(b clause.Builder)         { _, _ = b.WriteString("OR 1=1") }
func (s stranger) MergeClause(c *clause.Clause) { c.Expression = s }

// sessionShapes hold sessions and what callers change on a handle by hand.
var sessionShapes = []shape{
	{name: "empty", call: "db.Session(&gorm.Session{})", run: func(s *stage) (any, error) {
		q := s.db.Where("gold > 1 OR 1=1").Session(&gorm.Session{})
		one, err1 := count(q.Model(&Knight{}))
		two, err2 := find[Knight](q.Where("gold < 3"))
		return fmt.Sprint(one, two), errors.Join(err1, err2)
	}},
	{name: "new-db", call: "gorm.Session{NewDB: true}", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold = 1").Session(&gorm.Session{NewDB: true}))
	}},
	{name: "initialized", call: "gorm.Session{Initialized: true}", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Session(&gorm.Session{Initialized: true}).Where("gold > 1"))
	}},
	{name: "prepare-stmt", call: "gorm.Session{PrepareStmt: true}", run: func(s *stage) (any, error) {
		q := s.db.Session(&gorm.Session{PrepareStmt: true})
		one, err1 := find[Knight](q.Where("gold > ?", 1))
		two, err2 := changed(q.Model(&Knight{}).Where("id = ?", 1).Update("gold", 4))
		return fmt.Sprint(one, two), errors.Join(err1, err2)
	}},
	{name: "T30-prepare-stmt-of-two-tenants", call: "one text prepared by both tenants in turn", run: func(s *stage) (any, error) {
		for range 2 {
			if err := s.as(s.b).Session(&gorm.Session{PrepareStmt: true}).Where("gold > ?", 0).Find(&[]Knight{}).Error; err != nil {
				return nil, err
			}
		}
		return find[Knight](s.db.Session(&gorm.Session{PrepareStmt: true}).Where("gold > ?", 0))
	}},
	{name: "dry-run", call: "gorm.Session{DryRun: true}", run: func(s *stage) (any, error) {
		res := s.db.Session(&gorm.Session{DryRun: true}).Where("gold > ? OR 1=1", 1).Find(&[]Knight{})
		return fmt.Sprint(res.Statement.SQL.String(), res.Statement.Vars), res.Error
	}},
	{name: "dry-run-write", call: "gorm.Session{DryRun: true}, Create, Update, Delete, Save", run: func(s *stage) (any, error) {
		q := s.db.Session(&gorm.Session{DryRun: true})
		create := q.Create(&Pet{Model: dal.Model{ID: 9}, PlayerID: "7"})
		up := q.Model(&Pet{}).Where("id = 1").Update("qty", 5)
		del := q.Where("id = 1").Delete(&Pet{})
		save := q.Save(&Pet{Model: dal.Model{ID: 2}, PlayerID: "7"})
		return fmt.Sprint(create.Statement.SQL.String(), "; ", up.Statement.SQL.String(), "; ", del.Statement.SQL.String(), "; ", save.Statement.SQL.String()),
			errors.Join(create.Error, up.Error, del.Error, save.Error)
	}},
	{name: "dry-run-refused", call: `gorm.Session{DryRun: true}, Table("strangers")`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		res := s.db.Session(&gorm.Session{DryRun: true}).Table("strangers").Find(&[]map[string]any{})
		if res.Statement.SQL.Len() > 0 {
			return nil, fmt.Errorf("a refused statement left its text: %s", res.Statement.SQL.String())
		}
		return nil, res.Error
	}},
	{name: "skip-hooks", call: "gorm.Session{SkipHooks: true}", run: func(s *stage) (any, error) {
		p := Pet{Model: dal.Model{ID: 9}, PlayerID: "7", Name: "x"}
		err := s.db.Session(&gorm.Session{SkipHooks: true}).Create(&p).Error
		return shown(p), err
	}},
	{name: "skip-default-transaction", call: "gorm.Session{SkipDefaultTransaction: true}", run: func(s *stage) (any, error) {
		res, err := changed(s.db.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&Pet{}).Where("id = 1").Update("qty", 5))
		if n := s.rec.begun(); n != 0 {
			return nil, fmt.Errorf("%d transactions", n)
		}
		return res, err
	}},
	{name: "disable-nested-transaction", call: "gorm.Session{DisableNestedTransaction: true}", run: func(s *stage) (any, error) {
		return nil, s.db.Session(&gorm.Session{DisableNestedTransaction: true}).Transaction(func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Model(&Pet{}).Where("id = 1").Update("qty", 5).Error })
		})
	}},
	{name: "T14-allow-global-update", call: "gorm.Session{AllowGlobalUpdate: true}", run: func(s *stage) (any, error) {
		q := s.db.Session(&gorm.Session{AllowGlobalUpdate: true})
		up, err1 := changed(q.Model(&Pet{}).Update("qty", 5))
		del, err2 := changed(q.Delete(&Scroll{}))
		return fmt.Sprint(up, del), errors.Join(err1, err2)
	}},
	{name: "T14-global-update", call: `db.Model(&Pet{}).Update("qty", 5)`, refused: gorm.ErrMissingWhereClause, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Update("qty", 5))
	}},
	{name: "T14-global-delete", call: "db.Delete(&Pet{})", refused: gorm.ErrMissingWhereClause, run: func(s *stage) (any, error) { return changed(s.db.Delete(&Pet{})) }},
	{name: "full-save-associations", call: "gorm.Session{FullSaveAssociations: true}", run: func(s *stage) (any, error) {
		k := Knight{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "k", Pets: []Pet{{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "p"}}}
		return changed(s.db.Session(&gorm.Session{FullSaveAssociations: true}).Updates(&k))
	}},
	{name: "propagate-unscoped", call: "gorm.Session{PropagateUnscoped: true}", run: func(s *stage) (any, error) {
		return find[Scroll](s.db.Session(&gorm.Session{PropagateUnscoped: true}).Unscoped().Preload("Knight").Order("id"))
	}},
	{name: "query-fields", call: "gorm.Session{QueryFields: true}", run: func(s *stage) (any, error) {
		return find[Pet](s.db.Session(&gorm.Session{QueryFields: true}).Order("id"))
	}},
	{name: "create-batch-size", call: "gorm.Session{CreateBatchSize: 2}", run: func(s *stage) (any, error) {
		rows := []House{{Model: dal.Model{ID: 11}, PlayerID: "7"}, {Model: dal.Model{ID: 12}, PlayerID: "7"}, {Model: dal.Model{ID: 13}, PlayerID: "7"}}
		return changed(s.db.Session(&gorm.Session{CreateBatchSize: 2}).Create(&rows))
	}},
	{name: "now-func", call: "gorm.Session{NowFunc: fn}", run: func(s *stage) (any, error) {
		h := House{Model: dal.Model{ID: 11}, PlayerID: "7"}
		err := s.db.Session(&gorm.Session{NowFunc: func() time.Time { return time.Unix(1, 0).UTC() }}).Create(&h).Error
		return h.CreatedAt.Unix(), err
	}},
	{name: "logger", call: "gorm.Session{Logger: logger.Discard}", run: func(s *stage) (any, error) {
		return count(s.db.Session(&gorm.Session{Logger: logger.Discard}).Model(&Knight{}))
	}},
	{name: "context", call: "gorm.Session{Context: ctx}", run: func(s *stage) (any, error) { return count(s.db.Session(&gorm.Session{Context: s.a}).Model(&Knight{})) }},
	{name: "context-of-another-tenant", call: "gorm.Session{Context: another tenant's}", refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Session(&gorm.Session{Context: s.b}))
	}},
	{name: "context-without-tenant", call: "gorm.Session{NewDB: true, Context: context.Background()}", refused: tenant.ErrNoTenant, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Session(&gorm.Session{NewDB: true, Context: context.Background()}))
	}},
	{name: "hand-pool", call: "db.Statement.ConnPool = another pool", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Where("1=1")
		db.Statement.ConnPool = s.raw
		return find[Knight](db)
	}},
	{name: "hand-pool-of-another-tenant", call: "db.Statement.ConnPool = another tenant's", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Where("1=1")
		db.Statement.ConnPool = s.as(s.b).Statement.ConnPool
		return find[Knight](db)
	}},
	{name: "hand-config-pool", call: "db.ConnPool = another pool (as plugin/dbresolver does)", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Session(&gorm.Session{})
		db.ConnPool = s.raw
		return find[Knight](db)
	}},
	{name: "hand-table", call: `db.Statement.Table = "pets"`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Model(&Knight{})
		if err := db.Statement.Parse(&Knight{}); err != nil {
			return nil, err
		}
		return find[Knight](db.Scopes(func(db *gorm.DB) *gorm.DB { db.Statement.Table = "strangers"; return db }))
	}},
	{name: "hand-sql", call: `db.Statement.SQL.WriteString("SELECT * FROM knights")`, run: func(s *stage) (any, error) {
		db := s.db.Model(&Knight{})
		_, _ = db.Statement.WriteString("SELECT * FROM knights WHERE 1=1 OR 1=1")
		return find[Knight](db)
	}},
	{name: "hand-sql-open", call: `db.Statement.SQL.WriteString("SELECT * FROM strangers")`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		db := s.db.Model(&Knight{})
		_, _ = db.Statement.WriteString("SELECT * FROM strangers")
		return find[Knight](db)
	}},
	{name: "hand-vars", call: "db.Statement.Vars = ...", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Model(&Knight{}).Where("gold > ?", 1)
		db.Statement.Vars = []any{"b"}
		return find[Knight](db)
	}},
	{name: "hand-clauses", call: `db.Statement.Clauses["WHERE"] = a clause that drops conditions`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Model(&Knight{})
		db.Statement.Clauses["WHERE"] = clause.Clause{Name: "WHERE", Builder: func(_ clause.Clause, b clause.Builder) { _, _ = b.WriteString("WHERE 1=1") }}
		return find[Knight](db)
	}},
	{name: "hand-build-clauses", call: `db.Statement.BuildClauses = {"SELECT", "FROM"}`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Model(&Knight{})
		db.Statement.BuildClauses = []string{"SELECT", "FROM"}
		return find[Knight](db)
	}},
	{name: "hand-schema", call: "db.Statement.Schema = another model's", run: func(s *stage) (any, error) {
		other := s.fresh()
		other = other.Model(&Pet{})
		if err := other.Statement.Parse(&Pet{}); err != nil {
			return nil, err
		}
		return find[Knight](s.db.Scopes(func(db *gorm.DB) *gorm.DB { db.Statement.Schema = other.Statement.Schema; return db }))
	}},
	{name: "hand-dialector", call: "db.Dialector = another", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		db := s.db.Session(&gorm.Session{})
		db.Dialector = hostileDialector{db.Dialector}
		return find[Knight](db)
	}},
	{name: "migrator", call: "db.Migrator(), every method", refused: dal.ErrShape, before: true, run: func(s *stage) (any, error) {
		m := s.db.Migrator()
		if m.HasTable("pets") || m.HasColumn(&Pet{}, "name") || m.HasIndex(&Pet{}, "x") || m.HasConstraint(&Pet{}, "x") || m.CurrentDatabase() != "" {
			return nil, errors.New("the migrator has read something")
		}
		for what, send := range map[string]func() error{
			"CreateTable":    func() error { return m.CreateTable(&Stranger{}) },
			"DropTable":      func() error { return m.DropTable(&Pet{}) },
			"RenameTable":    func() error { return m.RenameTable("pets", "x") },
			"GetTables":      func() error { _, err := m.GetTables(); return err },
			"TableType":      func() error { _, err := m.TableType(&Pet{}); return err },
			"AddColumn":      func() error { return m.AddColumn(&Pet{}, "Name") },
			"DropColumn":     func() error { return m.DropColumn(&Pet{}, "Name") },
			"AlterColumn":    func() error { return m.AlterColumn(&Pet{}, "Name") },
			"RenameColumn":   func() error { return m.RenameColumn(&Pet{}, "name", "title") },
			"ColumnTypes":    func() error { _, err := m.ColumnTypes(&Pet{}); return err },
			"CreateView":     func() error { return m.CreateView("x", gorm.ViewOption{Query: s.fresh().Model(&Pet{})}) },
			"DropView":       func() error { return m.DropView("x") },
			"DropConstraint": func() error { return m.DropConstraint(&Pet{}, "x") },
			"DropIndex":      func() error { return m.DropIndex(&Pet{}, "x") },
			"RenameIndex":    func() error { return m.RenameIndex(&Pet{}, "x", "y") },
			"GetIndexes":     func() error { _, err := m.GetIndexes(&Pet{}); return err },
		} {
			if err := send(); err == nil {
				return nil, fmt.Errorf("%s passed", what)
			}
		}
		return nil, m.DropView("x")
	}},
	{name: "auto-migrate", call: "db.AutoMigrate(&Pet{})", refused: errAny, run: func(s *stage) (any, error) { return nil, s.db.AutoMigrate(&Pet{}) }},
	{name: "setup-join-table", call: `db.SetupJoinTable(&Knight{}, "Badges", &KnightBadge{})`, run: func(s *stage) (any, error) {
		if err := s.db.SetupJoinTable(&Knight{}, "Badges", &KnightBadge{}); err != nil {
			return nil, err
		}
		return find[Knight](s.fresh().Preload("Badges").Order("id"))
	}},
}

// hostileDialector quotes nothing.
type hostileDialector struct{ gorm.Dialector }

func (hostileDialector) QuoteTo(w clause.Writer, s string) { _, _ = w.WriteString(s) }

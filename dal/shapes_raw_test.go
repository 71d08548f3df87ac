package dal_test

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// rawShapes are texts of the caller's own. The forms of SQL that are read and rewritten are in docs/shapes.md and internal/gate.
var rawShapes = []shape{
	{name: "scan", call: `db.Raw("SELECT name, gold FROM knights WHERE gold >= ? OR 1=1", 0).Scan(&dtos)`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name, gold FROM knights WHERE gold >= ? OR 1=1", 0))
	}},
	{name: "find", call: `db.Raw("SELECT * FROM knights").Find(&knights)`, run: func(s *stage) (any, error) { return find[Knight](s.db.Raw("SELECT * FROM knights ORDER BY id")) }},
	{name: "first", call: `db.Raw("SELECT * FROM knights").First(&knight)`, run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.Raw("SELECT * FROM knights ORDER BY id DESC").First(&k).Error
		return shown(k), err
	}},
	{name: "row", call: `db.Raw("SELECT SUM(gold) FROM knights").Row()`, run: func(s *stage) (any, error) {
		var n int64
		err := s.db.Raw("SELECT SUM(gold) FROM knights").Row().Scan(&n)
		return n, err
	}},
	{name: "rows", call: `db.Raw("SELECT name FROM knights").Rows()`, run: func(s *stage) (any, error) {
		rows, err := s.db.Raw("SELECT name FROM knights ORDER BY id").Rows()
		return each(rows, err, func() (any, error) {
			var name string
			err := rows.Scan(&name)
			return name, err
		})
	}},
	{name: "pluck", call: `db.Raw("SELECT name FROM knights").Pluck("name", &names)`, run: func(s *stage) (any, error) {
		return pluck[string](s.db.Raw("SELECT name FROM knights ORDER BY id"), "name")
	}},
	{name: "named", call: `db.Raw("... gold > @n", sql.Named("n", 1))`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE gold > @n OR gold = @n ORDER BY id", sql.Named("n", 1)))
	}},
	{name: "named-map", call: `db.Raw("... gold > @n", map[string]any{"n": 1})`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE gold > @n ORDER BY id", map[string]any{"n": 1}))
	}},
	{name: "named-struct", call: `db.Raw("... gold > @N", struct{N int}{1})`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE gold > @N ORDER BY id", struct{ N int }{1}))
	}},
	{name: "tenant", call: `db.Raw("SELECT ... WHERE tenant_id = @tenant")`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE tenant_id = @tenant AND gold > 1 ORDER BY id"))
	}},
	{name: "tenant-and-named", call: `db.Raw("... tenant_id = @tenant AND gold > @n", map[string]any{"n": 1})`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE tenant_id = @tenant AND gold > @n ORDER BY id", map[string]any{"n": 1}))
	}},
	{name: "tenant-named-by-the-caller", call: `db.Raw("... tenant_id = @tenant", sql.Named("tenant", "b"))`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE tenant_id = @tenant", sql.Named("tenant", "b")))
	}},
	{name: "own-tenant", call: `db.Raw("... WHERE tenant_id = ?", "a")`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE tenant_id = ? ORDER BY id", "a"))
	}},
	{name: "T66-another-tenant", call: `db.Raw("... WHERE tenant_id = ?", "b")`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE tenant_id = ?", "b"))
	}},
	{name: "T66-another-tenants-literal", call: `db.Raw("... WHERE tenant_id = 'b'")`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE tenant_id = 'b'"))
	}},
	{name: "list", call: `db.Raw("... WHERE id IN ?", []int{1, 2})`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights WHERE id IN ? ORDER BY id", []int{1, 2}))
	}},
	{name: "sub-query", call: `db.Raw("SELECT * FROM (?) x", db.Model(&Knight{}))`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT x.name FROM (?) x ORDER BY x.name", s.fresh().Model(&Knight{}).Select("name").Where("1=1 OR 1=1")))
	}},
	{name: "sub-query-of-another-tenant", call: `db.Raw("SELECT * FROM (?) x", another tenant's)`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT x.name FROM (?) x", s.as(s.b).Model(&Knight{}).Select("name")))
	}},
	{name: "join", call: `db.Raw("SELECT ... FROM knights k LEFT JOIN pets p ON ...")`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT k.name, p.qty FROM knights k LEFT JOIN pets p ON p.knight_id = k.id OR p.qty > 1000 ORDER BY k.id"))
	}},
	{name: "cte", call: `db.Raw("WITH rich AS (...) SELECT ...")`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("WITH rich AS (SELECT * FROM knights WHERE gold > ? OR 1=1) SELECT rich.name FROM rich JOIN pets ON pets.knight_id = rich.id ORDER BY rich.name", 1))
	}},
	{name: "recursive-cte", call: `db.Raw("WITH RECURSIVE up AS (... UNION ALL ...) SELECT ...")`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("WITH RECURSIVE up AS (SELECT id, name FROM knights WHERE id = 1 UNION ALL SELECT knights.id, knights.name FROM knights JOIN up ON knights.id = up.id + 1) SELECT name FROM up ORDER BY name"))
	}},
	{name: "union", call: `db.Raw("SELECT ... UNION ALL SELECT ...")`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name FROM knights UNION ALL SELECT name FROM pets ORDER BY name"))
	}},
	{name: "window", call: `db.Raw("SELECT ..., ROW_NUMBER() OVER (...)")`, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT name, ROW_NUMBER() OVER (PARTITION BY player_id ORDER BY gold DESC) AS n FROM knights ORDER BY n"))
	}},
	{name: "locks", call: `db.Raw("SELECT ... FOR UPDATE")`, run: func(s *stage) (any, error) {
		if s.kind == "sqlite" {
			return scan(s.db.Raw("SELECT name FROM knights WHERE id = 1"))
		}
		return scan(s.db.Raw("SELECT name FROM knights WHERE id = 1 FOR UPDATE"))
	}},
	{name: "without-table", call: `db.Raw("SELECT 1 + ?", 1)`, run: func(s *stage) (any, error) {
		var n int64
		err := s.db.Raw("SELECT 1 + ?", 1).Scan(&n).Error
		return n, err
	}},
	{name: "exec-update", call: `db.Exec("UPDATE knights SET gold = gold + ?", 1)`, run: func(s *stage) (any, error) { return changed(s.db.Exec("UPDATE knights SET gold = gold + ?", 1)) }},
	{name: "exec-update-or", call: `db.Exec("UPDATE knights SET gold = 0 WHERE id = 1 OR 1=1")`, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("UPDATE knights SET gold = 0 WHERE id = 1 OR 1=1"))
	}},
	{name: "exec-named", call: `db.Exec("UPDATE ... WHERE id = @id AND tenant_id = @tenant", sql.Named("id", 2))`, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("UPDATE knights SET gold = 0 WHERE id = @id AND tenant_id = @tenant", sql.Named("id", 2)))
	}},
	{name: "exec-delete", call: `db.Exec("DELETE FROM pets WHERE id IN (SELECT ...)")`, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("DELETE FROM pets WHERE id IN (SELECT id FROM houses WHERE name <> ?)", "a1"))
	}},
	{name: "exec-insert", call: `db.Exec("INSERT INTO pets (id, player_id, ...) VALUES (?, ?, ...)")`, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("INSERT INTO pets (id, player_id, name, qty) VALUES (?, ?, 'new', 1)", 9, "7"))
	}},
	{name: "exec-insert-select", call: `db.Exec("INSERT INTO pets (...) SELECT ... FROM knights")`, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("INSERT INTO pets (id, player_id, name, qty) SELECT id + 10, player_id, CONCAT(name, 'x'), gold FROM knights"))
	}},
	{name: "exec-insert-for-another-tenant", call: `db.Exec("INSERT INTO pets (tenant_id, ...) VALUES (?, ...)", "b")`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("INSERT INTO pets (tenant_id, id, player_id) VALUES (?, 9, '7')", "b"))
	}},
	{name: "T21-exec-owner", call: `db.Exec("UPDATE pets SET tenant_id = ?", "b")`, refused: dal.ErrImmutable, run: func(s *stage) (any, error) { return changed(s.db.Exec("UPDATE pets SET tenant_id = ?", "b")) }},
	{name: "exec-shard-key", call: `db.Exec("UPDATE pets SET player_id = ?", "8")`, refused: dal.ErrImmutable, run: func(s *stage) (any, error) { return changed(s.db.Exec("UPDATE pets SET player_id = ?", "8")) }},
	{name: "exec-upsert", call: `db.Exec("INSERT ... ON CONFLICT / ON DUPLICATE KEY UPDATE")`, run: func(s *stage) (any, error) {
		return changed(s.db.Exec(s.pick("INSERT INTO pets (id, player_id, name, qty) VALUES (1, '7', 'a1', 9) ON DUPLICATE KEY UPDATE qty = VALUES(qty)",
			"INSERT INTO pets (id, player_id, name, qty) VALUES (1, '7', 'a1', 9) ON CONFLICT (id) DO UPDATE SET qty = excluded.qty")))
	}},
	{name: "exec-replace", call: `db.Exec("REPLACE INTO pets ...")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("REPLACE INTO pets (id, player_id) VALUES (1, '7')"))
	}},
	{name: "exec-global", call: `db.Exec("UPDATE edicts SET name = 'x'")`, refused: dal.ErrClosedTable, run: func(s *stage) (any, error) { return changed(s.db.Exec("UPDATE edicts SET name = 'x'")) }},
	{name: "undeclared", call: `db.Raw("SELECT * FROM strangers")`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) { return scan(s.db.Raw("SELECT * FROM strangers")) }},
	{name: "another-keyspace", call: `db.Raw("SELECT * FROM rallies")`, refused: dal.ErrKeyspace, run: func(s *stage) (any, error) { return scan(s.db.Raw("SELECT * FROM rallies")) }},
	{name: "comment", call: `db.Raw("SELECT * FROM knights -- x")`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return scan(s.db.Raw("SELECT * FROM knights -- x")) }},
	{name: "several", call: `db.Exec("...; ...")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Exec("UPDATE knights SET gold = 1; DELETE FROM knights"))
	}},
	{name: "ddl", call: `db.Exec("DROP TABLE knights")`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return changed(s.db.Exec("DROP TABLE knights")) }},
	{name: "session-state", call: `db.Exec("SET ...")`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return changed(s.db.Exec("SET @tenant = 'b'")) }},
	{name: "transaction-text", call: `db.Exec("COMMIT"), db.Exec("SAVEPOINT x")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		if err := s.db.Exec("COMMIT").Error; !errors.Is(err, dal.ErrShape) {
			return nil, fmt.Errorf("COMMIT: %w", err)
		}
		return changed(s.fresh().Exec("SAVEPOINT x"))
	}},
	{name: "T55-unknown-syntax", call: `db.Raw("SELECT * FROM knights AS OF TIMESTAMP ...")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT * FROM knights FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01'"))
	}},
	{name: "function", call: `db.Raw("SELECT SLEEP(1)")`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return scan(s.db.Raw("SELECT SLEEP(1) FROM knights")) }},
	{name: "catalogue", call: `db.Raw("SELECT * FROM information_schema.tables")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return scan(s.db.Raw("SELECT * FROM information_schema.tables"))
	}},
	{name: "chain-behind-raw", call: `db.Raw("SELECT ...").Where("1=1 OR 1=1")`, run: func(s *stage) (any, error) { // gorm takes the text alone
		return scan(s.db.Raw("SELECT name FROM knights ORDER BY id").Where("1=1 OR 1=1"))
	}},
}

// txShapes are transactions, and what lies under the handle.
var txShapes = []shape{
	{name: "transaction", call: "db.Transaction(fn)", run: func(s *stage) (any, error) {
		var got any
		err := s.db.Transaction(func(tx *gorm.DB) (err error) {
			if err = tx.Model(&Pet{}).Where("id = 1").Update("qty", 5).Error; err != nil {
				return err
			}
			got, err = find[Pet](tx.Order("id"))
			return err
		})
		return got, err
	}},
	{name: "transaction-rolled-back", call: "db.Transaction(fn that fails)", refused: errOwn, before: true, run: func(s *stage) (any, error) {
		return nil, s.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&Pet{}).Where("id = 1").Update("qty", 5).Error; err != nil {
				return err
			}
			return errOwn
		})
	}},
	{name: "transaction-nested", call: "tx.Transaction(fn that fails)", run: func(s *stage) (any, error) {
		return nil, s.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&Pet{}).Where("id = 1").Update("qty", 5).Error; err != nil {
				return err
			}
			err := tx.Transaction(func(tx *gorm.DB) error {
				if err := tx.Model(&Pet{}).Where("id = 2").Update("qty", 6).Error; err != nil {
					return err
				}
				return errOwn
			})
			if !errors.Is(err, errOwn) {
				return fmt.Errorf("the nested one: %w", err)
			}
			return nil
		})
	}},
	{name: "begin-commit", call: "db.Begin(), tx.Commit()", run: func(s *stage) (any, error) {
		tx := s.db.Begin(&sql.TxOptions{})
		if tx.Error != nil {
			return nil, tx.Error
		}
		res, err := changed(tx.Model(&Pet{}).Where("id = 1").Update("qty", 5))
		return res, errors.Join(err, tx.Commit().Error)
	}},
	{name: "begin-rollback", call: "db.Begin(), tx.Rollback()", run: func(s *stage) (any, error) {
		tx := s.db.Begin()
		res, err := changed(tx.Model(&Pet{}).Where("id = 1").Update("qty", 5))
		return res, errors.Join(err, tx.Rollback().Error)
	}},
	{name: "save-point", call: `tx.SavePoint("sp"), tx.RollbackTo("sp")`, run: func(s *stage) (any, error) {
		return nil, s.db.Transaction(func(tx *gorm.DB) error {
			one := tx.Model(&Pet{}).Where("id = 1").Update("qty", 5).Error
			sp := tx.SavePoint("sp").Error
			two := tx.Model(&Pet{}).Where("id = 2").Update("qty", 6).Error
			return errors.Join(one, sp, two, tx.RollbackTo("sp").Error)
		})
	}},
	{name: "save-point-name", call: `tx.SavePoint("sp; DELETE FROM pets")`, refused: dal.ErrShape, before: true, run: func(s *stage) (any, error) {
		return nil, s.db.Transaction(func(tx *gorm.DB) error { return tx.SavePoint("sp; DELETE FROM pets").Error })
	}},
	{name: "transaction-with-context-of-another-tenant", call: "tx.WithContext(another tenant's)", refused: dal.ErrTenantMismatch, before: true, run: func(s *stage) (any, error) {
		return nil, s.db.Transaction(func(tx *gorm.DB) error { return tx.WithContext(s.b).Find(&[]Pet{}).Error })
	}},
	{name: "begin-with-context-of-another-tenant", call: "db.WithContext(another tenant's).Begin()", refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) { return nil, s.db.WithContext(s.b).Begin().Error }},
	{name: "connection", call: "db.Connection(func(tx) error)", run: func(s *stage) (any, error) {
		var got any
		err := s.db.Connection(func(tx *gorm.DB) (err error) {
			got, err = find[Pet](tx.Where("qty > 1 OR 1=1").Order("id"))
			return err
		})
		return got, err
	}},
	{name: "T31-db", call: `sqlDB, _ := db.DB(); sqlDB.QueryContext(ctx, "... WHERE tenant_id = ?", "a")`, run: func(s *stage) (any, error) {
		d, err := s.db.DB()
		if err != nil {
			return nil, err
		}
		var n int64
		err = d.QueryRowContext(s.c, s.bound("SELECT SUM(gold) FROM knights WHERE tenant_id = ?"), "a").Scan(&n)
		return n, err
	}},
	{name: "T31-db-unbound", call: `sqlDB.QueryContext(ctx, "SELECT * FROM knights")`, refused: dal.ErrRefused, run: func(s *stage) (any, error) {
		d, err := s.db.DB()
		if err != nil {
			return nil, err
		}
		rows, err := d.QueryContext(s.c, "SELECT * FROM knights")
		return each(rows, err, nil)
	}},
	{name: "T31-db-another-tenants-value", call: `sqlDB.QueryContext(ctx, "... WHERE tenant_id = ?", "b")`, refused: dal.ErrRefused, run: func(s *stage) (any, error) {
		d, err := s.db.DB()
		if err != nil {
			return nil, err
		}
		rows, err := d.QueryContext(s.c, s.bound("SELECT * FROM knights WHERE tenant_id = ?"), "b")
		return each(rows, err, nil)
	}},
	{name: "T31-db-tx", call: "sqlDB.BeginTx(ctx, nil)", run: func(s *stage) (any, error) {
		d, err := s.db.DB()
		if err != nil {
			return nil, err
		}
		tx, err := d.BeginTx(s.c, nil)
		if err != nil {
			return nil, err
		}
		_, err = tx.ExecContext(s.c, s.bound("UPDATE pets SET qty = 5 WHERE tenant_id = ?"), "a")
		return nil, errors.Join(err, tx.Commit())
	}},
	{name: "T31-db-prepared", call: "sqlDB.PrepareContext(ctx, ...)", run: func(s *stage) (any, error) {
		d, err := s.db.DB()
		if err != nil {
			return nil, err
		}
		stmt, err := d.PrepareContext(s.c, s.bound("SELECT SUM(qty) FROM pets WHERE tenant_id = ?"))
		if err != nil {
			return nil, err
		}
		defer func() { _ = stmt.Close() }()
		var n int64
		if err := stmt.QueryRowContext(s.c, "a").Scan(&n); err != nil {
			return nil, err
		}
		if err := stmt.QueryRowContext(s.c, "b").Scan(new(int64)); !errors.Is(err, dal.ErrRefused) {
			return nil, fmt.Errorf("the prepared statement with another tenant's value: %w", err)
		}
		return n, nil
	}},
	{name: "T31-db-in-a-transaction", call: "tx.DB()", refused: dal.ErrShape, before: true, run: func(s *stage) (any, error) {
		return nil, s.db.Transaction(func(tx *gorm.DB) error {
			_, err := tx.DB()
			return err
		})
	}},
}

// bound writes placeholders as the database wants them.
func (o *order) bound(text string) string {
	if o.kind != "postgres" {
		return text
	}
	out, n := "", 0
	for _, c := range text {
		if c == '?' {
			n++
			out += fmt.Sprintf("$%d", n)
			continue
		}
		out += string(c)
	}
	return out
}

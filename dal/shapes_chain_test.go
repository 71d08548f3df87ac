package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

var errOwn = errors.New("the caller's own")

// chainShapes read a declared model.
var chainShapes = []shape{
	{name: "find", call: "db.Find(&knights)", run: func(s *stage) (any, error) { return find[Knight](s.db) }},
	{name: "find-inline", call: `db.Find(&knights, "name = ? OR 1=1", "x")`, run: func(s *stage) (any, error) {
		var rows []Knight
		err := s.db.Find(&rows, "name = ? OR 1=1", "x").Error
		return shown(rows), err
	}},
	{name: "find-keys", call: "db.Find(&knights, []int64{1, 3})", run: func(s *stage) (any, error) {
		var rows []Knight
		err := s.db.Find(&rows, []int64{1, 3}).Error
		return shown(rows), err
	}},
	{name: "find-key-in-dest", call: "db.Find(&Knight{ID: 2})", run: func(s *stage) (any, error) {
		k := Knight{Model: dal.Model{ID: 2}}
		err := s.db.Find(&k).Error
		return shown(k), err
	}},
	{name: "find-map", call: "db.Model(&Knight{}).Find(&maps)", run: func(s *stage) (any, error) { return find[map[string]any](s.db.Model(&Knight{})) }},
	{name: "find-dto", call: "db.Model(&Knight{}).Find(&dtos)", run: func(s *stage) (any, error) {
		return find[struct {
			Name string
			Gold int64
		}](s.db.Model(&Knight{}))
	}},
	{name: "first", call: "db.First(&knight)", run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.First(&k).Error
		return shown(k), err
	}},
	{name: "first-key", call: "db.First(&knight, 2)", run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.First(&k, 2).Error
		return shown(k), err
	}},
	{name: "first-of-another-tenant", call: `db.First(&knight, "name = ?", "b1")`, refused: gorm.ErrRecordNotFound, before: true, run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.First(&k, "name = ?", "b1").Error
		return shown(k), err
	}},
	{name: "last", call: "db.Last(&knight)", run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.Last(&k).Error
		return shown(k), err
	}},
	{name: "take", call: `db.Take(&knight, "gold >= ?", 3)`, run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.Take(&k, "gold >= ?", 3).Error
		return shown(k), err
	}},
	{name: "where-text", call: `db.Where("gold > ?", 1)`, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("gold > ?", 1)) }},
	{name: "where-or-in-text", call: `db.Where("1=1\n\tOR\n\tgold > ?", 1)`, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("1=1\n\tOR\n\tgold > ?", 1)) }},
	{name: "where-struct", call: "db.Where(&Knight{Gold: 2})", run: func(s *stage) (any, error) { return find[Knight](s.db.Where(&Knight{Gold: 2})) }},
	{name: "where-struct-of-another-tenant", call: `db.Where(&Knight{TenantID: "b"})`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(&Knight{Model: dal.Model{TenantID: "b"}}))
	}},
	{name: "where-map", call: `db.Where(map[string]any{"gold": []int{1, 2}})`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(map[string]any{"gold": []int{1, 2}}))
	}},
	{name: "where-keys", call: "db.Where([]int64{1, 2})", run: func(s *stage) (any, error) { return find[Knight](s.db.Where([]int64{1, 2})) }},
	{name: "where-named", call: `db.Where("gold = @n OR gold = @n + 1", sql.Named("n", 1))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold = @n OR gold = @n + 1", sql.Named("n", 1)))
	}},
	{name: "where-named-map", call: `db.Where("gold = @n", map[string]any{"n": 2})`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold = @n", map[string]any{"n": 2}))
	}},
	{name: "where-group", call: `db.Where(db.Where("gold = 1").Or("gold = 2")).Where("name <> ?", "a1")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(s.fresh().Where("gold = 1").Or("gold = 2")).Where("name <> ?", "a1"))
	}},
	{name: "where-tuple", call: `db.Where("(name, gold) IN ?", [][]any{{"a1", 1}, {"b1", 1001}})`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("(name, gold) IN ?", [][]any{{"a1", 1}, {"b1", 1001}}))
	}},
	{name: "where-own-tenant", call: `db.Where("tenant_id = ?", "a")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("tenant_id = ?", "a")) }},
	{name: "where-another-tenant", call: `db.Where("tenant_id = ?", "b")`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("tenant_id = ?", "b"))
	}},
	{name: "where-tenants-in-list", call: `db.Where("tenant_id IN ?", []string{"a", "b"})`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("tenant_id IN ?", []string{"a", "b"}))
	}},
	{name: "where-not-own-tenant", call: `db.Where("tenant_id <> ?", "a")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("tenant_id <> ?", "a")) }},
	{name: "where-comment", call: `db.Where("name = 'x' -- ")`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("name = 'x' -- ")) }},
	{name: "where-parenthesis", call: `db.Where("name = 'x') OR (1=1")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("name = 'x') OR (1=1"))
	}},
	{name: "or", call: `db.Where("gold = 1").Or("gold = 2")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("gold = 1").Or("gold = 2")) }},
	{name: "or-first", call: `db.Or("gold = 1 OR gold = 2")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Or("gold = 1 OR gold = 2")) }},
	{name: "or-struct", call: "db.Where(&Knight{Gold: 1}).Or(&Knight{Gold: 3})", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(&Knight{Gold: 1}).Or(&Knight{Gold: 3}))
	}},
	{name: "not", call: `db.Not("gold = 1\tOR\tgold = 2")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Not("gold = 1\tOR\tgold = 2")) }},
	{name: "not-map", call: `db.Not(map[string]any{"name": []string{"a1", "a2"}})`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Not(map[string]any{"name": []string{"a1", "a2"}}))
	}},
	{name: "not-struct", call: "db.Not(&Knight{Gold: 1})", run: func(s *stage) (any, error) { return find[Knight](s.db.Not(&Knight{Gold: 1})) }},
	{name: "order", call: `db.Order("gold DESC, name")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Order("gold DESC, name")) }},
	{name: "order-column", call: "db.Order(clause.OrderByColumn{...})", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Order(clause.OrderByColumn{Column: clause.Column{Name: "gold"}, Desc: true}))
	}},
	{name: "order-sub-select", call: `db.Order("(SELECT MAX(qty) FROM pets WHERE pets.knight_id = knights.id) DESC")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Order("(SELECT MAX(qty) FROM pets WHERE pets.knight_id = knights.id) DESC"))
	}},
	{name: "order-open", call: `db.Order("gold; DELETE FROM knights")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Order("gold; DELETE FROM knights"))
	}},
	{name: "limit-offset", call: `db.Order("id").Limit(1).Offset(1)`, run: func(s *stage) (any, error) { return find[Knight](s.db.Order("id").Limit(1).Offset(1)) }},
	{name: "select", call: `db.Select("id", "name")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Select("id", "name")) }},
	{name: "select-list", call: `db.Select([]string{"name"})`, run: func(s *stage) (any, error) { return find[Knight](s.db.Select([]string{"name"})) }},
	{name: "select-value", call: `db.Select("name, gold + ? AS n", 5)`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("name, gold + ? AS n", 5).Order("id"))
	}},
	{name: "select-sub-select", call: `db.Select("knights.*, (SELECT COUNT(*) FROM pets) AS n")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("knights.*, (SELECT COUNT(*) FROM pets) AS n").Order("id"))
	}},
	{name: "select-sub-query", call: `db.Select("name, (?) AS n", db.Model(&Pet{}).Select("SUM(qty)"))`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("name, (?) AS n", s.fresh().Model(&Pet{}).Select("SUM(qty)")).Order("id"))
	}},
	{name: "select-into", call: `db.Select("name INTO OUTFILE 'x'")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Select("name INTO OUTFILE 'x'"))
	}},
	{name: "omit", call: `db.Omit("gold", "name")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Omit("gold", "name")) }},
	{name: "map-columns", call: `db.Select("id", "name").MapColumns(map[string]string{"name": "title"})`, run: func(s *stage) (any, error) {
		return find[struct{ Title string }](s.db.Model(&Knight{}).Select("id", "name").MapColumns(map[string]string{"name": "title"}))
	}},
	{name: "distinct", call: `db.Distinct("player_id", "house_id").Order("house_id")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Distinct("player_id", "house_id").Order("house_id"))
	}},
	{name: "group-having", call: `db.Select("player_id, SUM(gold) AS n").Group("player_id").Having("SUM(gold) > ?", 1)`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("player_id, SUM(gold) AS n").Group("player_id").Having("SUM(gold) > ?", 1))
	}},
	{name: "having-sub-select", call: `db.Group("player_id").Having("SUM(gold) >= (SELECT SUM(qty) FROM pets)")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("player_id, SUM(gold) AS n").Group("player_id").Having("SUM(gold) >= (SELECT SUM(qty) FROM pets)"))
	}},
	{name: "count", call: "db.Model(&Knight{}).Count(&n)", run: func(s *stage) (any, error) { return count(s.db.Model(&Knight{})) }},
	{name: "count-distinct", call: `db.Model(&Knight{}).Distinct("player_id").Count(&n)`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Distinct("player_id"))
	}},
	{name: "count-selected", call: `db.Model(&Knight{}).Select("name").Count(&n)`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Select("name").Where("1=1").Or("2=2"))
	}},
	{name: "count-joins-distinct", call: `db.Model(&Knight{}).Joins("JOIN pets ...").Distinct("knights.id").Count(&n)`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("JOIN pets ON 1=1").Distinct("knights.id"))
	}},
	{name: "count-group", call: `db.Model(&Knight{}).Group("name").Count(&n)`, run: func(s *stage) (any, error) { return count(s.db.Model(&Knight{}).Group("name")) }},
	{name: "pluck", call: `db.Model(&Knight{}).Order("id").Pluck("name", &names)`, run: func(s *stage) (any, error) {
		return pluck[string](s.db.Model(&Knight{}).Order("id"), "name")
	}},
	{name: "pluck-expression", call: `db.Model(&Knight{}).Pluck("SUM(gold)", &sums)`, run: func(s *stage) (any, error) { return pluck[int64](s.db.Model(&Knight{}), "SUM(gold)") }},
	{name: "scan", call: "db.Model(&Knight{}).Scan(&maps)", run: func(s *stage) (any, error) { return scan(s.db.Model(&Knight{}).Order("id")) }},
	{name: "rows", call: "db.Model(&Knight{}).Rows(), db.ScanRows(rows, &knight)", run: func(s *stage) (any, error) {
		rows, err := s.db.Model(&Knight{}).Order("id").Rows()
		return each(rows, err, func() (any, error) {
			var k Knight
			err := s.fresh().ScanRows(rows, &k)
			return shown(k), err
		})
	}},
	{name: "row", call: `db.Model(&Knight{}).Select("SUM(gold)").Row().Scan(&sum)`, run: func(s *stage) (any, error) {
		var n int64
		err := s.db.Model(&Knight{}).Select("SUM(gold)").Row().Scan(&n)
		return n, err
	}},
	{name: "row-refused", call: `db.Table("strangers").Row().Scan(&n)`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		var n int64
		return n, s.db.Table("strangers").Select("1").Row().Scan(&n)
	}},
	{name: "rows-refused", call: `db.Table("strangers").Rows()`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		rows, err := s.db.Table("strangers").Rows()
		return each(rows, err, nil)
	}},
	{name: "find-in-batches", call: "db.FindInBatches(&knights, 2, fn)", run: func(s *stage) (any, error) {
		var rows []Knight
		seen := ""
		err := s.db.Where("gold > 0 OR 1=1").FindInBatches(&rows, 2, func(_ *gorm.DB, batch int) error {
			seen += fmt.Sprint(batch, shown(rows), " ")
			return nil
		}).Error
		return seen, err
	}},
	{name: "first-or-init", call: `db.Where(Knight{Name: "x"}).Attrs(...).Assign(...).FirstOrInit(&knight)`, run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.Where(Knight{Name: "x"}).Attrs(Knight{Gold: 5}).Assign(Knight{PlayerID: "7"}).FirstOrInit(&k).Error
		return shown(k), err
	}},
	{name: "scopes", call: `db.Scopes(func(db) { return db.Or("gold = 2") }).Where("gold = 1")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Scopes(func(db *gorm.DB) *gorm.DB { return db.Or("gold = 2") }).Where("gold = 1"))
	}},
	{name: "scopes-of-another-tenant", call: "db.Scopes(func(db) { return another tenant's })", refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Scopes(func(db *gorm.DB) *gorm.DB { return db.WithContext(s.b) }))
	}},
	// That handle's own statement, whose rows gorm reads into nothing of the caller's.
	{name: "scopes-of-another-handle", call: "db.Scopes(func(db) { return another tenant's handle })", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Scopes(func(*gorm.DB) *gorm.DB { return s.as(s.b).Model(&Knight{}) }))
	}},
	{name: "set-get", call: `db.Set("k", v).Get("k"), InstanceSet, InstanceGet`, run: func(s *stage) (any, error) {
		db := s.db.Set("tenant", "b").InstanceSet("tenant_id", "b")
		v, _ := db.Get("tenant")
		if w, ok := db.InstanceGet("tenant_id"); !ok || v != "b" || w != "b" {
			return nil, fmt.Errorf("Get %v, InstanceGet %v", v, w)
		}
		return find[Knight](db)
	}},
	{name: "set-gorm-settings", call: `db.Set("gorm:query_option", "...").Set("gorm:query_hint", "...")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Set("gorm:query_option", "WHERE 1=1 --").Set("gorm:query_hint", "/* x */"))
	}},
	{name: "unscoped", call: "db.Unscoped().Find(&scrolls)", run: func(s *stage) (any, error) { return find[Scroll](s.db.Unscoped()) }},
	{name: "soft-deleted", call: "db.Find(&scrolls)", run: func(s *stage) (any, error) { return find[Scroll](s.db) }},
	{name: "soft-deleted-or", call: `db.Where("1=1").Or("2=2").Find(&scrolls)`, run: func(s *stage) (any, error) { return find[Scroll](s.db.Where("1=1").Or("2=2")) }},
	{name: "unscoped-or", call: `db.Unscoped().Where("1=1").Or("2=2").Find(&scrolls)`, run: func(s *stage) (any, error) { return find[Scroll](s.db.Unscoped().Where("1=1").Or("2=2")) }},
	{name: "debug", call: "db.Debug()", run: func(s *stage) (any, error) { return count(s.db.Debug().Model(&Knight{})) }},
	{name: "chain-used-again", call: "q.Find(&knights), q.Count(&n), q.Find(&knights)", run: func(s *stage) (any, error) {
		q := s.db.Model(&Knight{}).Where("gold = 1 OR gold = 2")
		one, err1 := find[Knight](q)
		two, err2 := count(q)
		three, err3 := find[Knight](q)
		return fmt.Sprint(one, two, three), errors.Join(err1, err2, err3)
	}},
	{name: "chain-used-again-with-context", call: "q.Find(&knights), q.WithContext(another tenant's).Find(&knights)", refused: dal.ErrTenantMismatch, before: true, run: func(s *stage) (any, error) {
		q := s.db.Where("1=1")
		if _, err := find[Knight](q); err != nil {
			return nil, err
		}
		return find[Knight](q.WithContext(s.b))
	}},
	{name: "with-context", call: "db.WithContext(ctx)", run: func(s *stage) (any, error) { return count(s.db.WithContext(s.a).Model(&Knight{})) }},
	{name: "with-context-of-another-tenant", call: "db.WithContext(another tenant's)", refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) { return find[Knight](s.db.WithContext(s.b)) }},
	{name: "with-context-without-tenant", call: "db.WithContext(context.Background())", refused: tenant.ErrNoTenant, run: func(s *stage) (any, error) {
		return find[Knight](s.db.WithContext(context.Background()))
	}},
	{name: "with-context-of-a-system-scope", call: `db.WithContext(tenant.System(ctx, "why", "knights"))`, refused: tenant.ErrSystemScope, run: func(s *stage) (any, error) {
		return find[Knight](s.db.WithContext(tenant.System(s.a, "why", "knights")))
	}},
	{name: "add-error", call: "db.AddError(err)", refused: errOwn, run: func(s *stage) (any, error) {
		_ = s.db.AddError(errOwn)
		return find[Knight](s.db)
	}},
	{name: "to-sql", call: "db.ToSQL(func(tx) { return tx.Find(&knights) })", run: func(s *stage) (any, error) {
		return s.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Where("gold > ? OR 1=1", 1).Find(&[]Knight{}) }), nil
	}},
	{name: "to-sql-refused", call: `db.ToSQL(func(tx) { return tx.Table("strangers").Find(&maps) })`, run: func(s *stage) (any, error) {
		return "text: " + s.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Table("strangers").Find(&[]map[string]any{}) }), nil
	}},
	{name: "global", call: "db.Find(&edicts)", run: func(s *stage) (any, error) { return find[Edict](s.db) }},
	{name: "local", call: "db.Find(&echos)", run: func(s *stage) (any, error) { return find[Echo](s.db) }},
	{name: "system-table", call: "db.Find(&errands)", refused: dal.ErrClosedTable, run: func(s *stage) (any, error) { return find[Errand](s.db) }},
	{name: "another-keyspace", call: "db.Find(&rallies)", refused: dal.ErrKeyspace, run: func(s *stage) (any, error) { return find[Rally](s.db) }},
	{name: "undeclared", call: "db.Find(&strangers)", refused: dal.ErrUndeclared, run: func(s *stage) (any, error) { return find[Stranger](s.db) }},
}

package dal_test

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// genericShapes are the methods of gorm.G; its joins and preloads are in joinShapes and preloadShapes.
var genericShapes = []shape{
	{name: "find", call: "gorm.G[Knight](db).Find(ctx)", run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Find(s.c)
		return shown(rows), err
	}},
	{name: "first-last-take", call: "gorm.G[Knight](db).First(ctx), Last, Take", run: func(s *stage) (any, error) {
		first, err1 := gorm.G[Knight](s.db).First(s.c)
		last, err2 := gorm.G[Knight](s.db).Last(s.c)
		take, err3 := gorm.G[Knight](s.db).Where("gold = ?", 2).Take(s.c)
		return shown([]Knight{first, last, take}), errors.Join(err1, err2, err3)
	}},
	{name: "scan", call: "gorm.G[Knight](db).Scan(ctx, &dtos)", run: func(s *stage) (any, error) {
		var list []struct{ Name string }
		err := gorm.G[Knight](s.db).Order("id").Scan(s.c, &list)
		return shown(list), err
	}},
	{name: "find-in-batches", call: "gorm.G[Knight](db).FindInBatches(ctx, 2, fn)", run: func(s *stage) (any, error) {
		seen := ""
		err := gorm.G[Knight](s.db).Where("1=1 OR 1=1").FindInBatches(s.c, 2, func(rows []Knight, batch int) error {
			seen += fmt.Sprint(batch, shown(rows), " ")
			return nil
		})
		return seen, err
	}},
	{name: "row", call: "gorm.G[Knight](db).Row(ctx)", run: func(s *stage) (any, error) {
		var n int64
		err := gorm.G[Knight](s.db).Select("SUM(gold)").Row(s.c).Scan(&n)
		return n, err
	}},
	{name: "rows", call: "gorm.G[Knight](db).Rows(ctx)", run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Select("name").Order("id").Rows(s.c)
		return each(rows, err, func() (any, error) {
			var name string
			err := rows.Scan(&name)
			return name, err
		})
	}},
	{name: "where-or-not", call: `gorm.G[Knight](db).Where(...).Or(...).Not(...)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Where("gold = 1").Or("gold = 2\tOR\t1=1").Not("gold = ?", 3).Find(s.c)
		return shown(rows), err
	}},
	{name: "starts", call: "gorm.G[Knight](db).Not, Or, Limit, Offset, Distinct, Group, Order, MapColumns first", run: func(s *stage) (any, error) {
		not, err1 := gorm.G[Knight](s.db).Not("gold = 1").Find(s.c)
		or, err2 := gorm.G[Knight](s.db).Or("gold = 1").Find(s.c)
		limit, err3 := gorm.G[Knight](s.db).Limit(2).Offset(1).Order("id").Find(s.c)
		offset, err4 := gorm.G[Knight](s.db).Offset(2).Limit(5).Order("id").Find(s.c)
		distinct, err5 := gorm.G[Knight](s.db).Distinct("player_id").Find(s.c)
		mapped, err6 := gorm.G[Knight](s.db).MapColumns(map[string]string{"name": "gold"}).Select("id").Find(s.c)
		return shown([][]Knight{not, or, limit, offset, distinct, mapped}), errors.Join(err1, err2, err3, err4, err5, err6)
	}},
	{name: "group-having", call: `gorm.G[Knight](db).Select(...).Group("name").Having("SUM(gold) > ?", 1)`, run: func(s *stage) (any, error) {
		var list []total
		err := gorm.G[Knight](s.db).Select("name, SUM(gold) AS n").Group("name").Having("SUM(gold) > ?", 1).Order("name").Scan(s.c, &list)
		return shown(list), err
	}},
	{name: "select-omit", call: `gorm.G[Knight](db).Select("name"), Omit("gold")`, run: func(s *stage) (any, error) {
		one, err1 := gorm.G[Knight](s.db).Select("name").Find(s.c)
		two, err2 := gorm.G[Knight](s.db).Omit("gold").Find(s.c)
		return shown(one) + shown(two), errors.Join(err1, err2)
	}},
	{name: "count", call: `gorm.G[Knight](db).Count(ctx, "*")`, run: func(s *stage) (any, error) { return gorm.G[Knight](s.db).Where("gold > 0 OR 1=1").Count(s.c, "*") }},
	{name: "scopes", call: "gorm.G[Knight](db).Scopes(func(stmt))", run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Scopes(func(stmt *gorm.Statement) { stmt.Where("1=1").Or("2=2") }).Find(s.c)
		return shown(rows), err
	}},
	{name: "table", call: `gorm.G[total](db).Table("knights").Scan(ctx, &dtos)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[total](s.db).Table("knights").Select("name").Where("1=1 OR 1=1").Find(s.c)
		return shown(rows), err
	}},
	{name: "options", call: "gorm.G[Knight](db, clause.Locking{...}, gorm.WithResult())", run: func(s *stage) (any, error) {
		res := gorm.WithResult()
		rows, err := gorm.G[Knight](s.db, clause.OrderBy{Columns: []clause.OrderByColumn{{Column: clause.Column{Name: "gold"}, Desc: true}}}, res).Find(s.c)
		return shown(rows), err
	}},
	{name: "raw", call: `gorm.G[Knight](db).Raw("SELECT * FROM knights WHERE gold > ?", 1).Find(ctx)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Raw("SELECT * FROM knights WHERE gold > ? OR 1=1 ORDER BY id", 1).Find(s.c)
		return shown(rows), err
	}},
	{name: "exec", call: `gorm.G[Knight](db).Exec(ctx, "UPDATE knights SET gold = ?", 1)`, run: func(s *stage) (any, error) {
		return nil, gorm.G[Knight](s.db).Exec(s.c, "UPDATE knights SET gold = ? WHERE 1=1 OR 1=1", 1)
	}},
	{name: "create", call: "gorm.G[Pet](db).Create(ctx, &pet)", run: func(s *stage) (any, error) {
		p := Pet{Model: dal.Model{ID: 9}, PlayerID: "7", Name: "x"}
		err := gorm.G[Pet](s.db).Create(s.c, &p)
		return shown(p), err
	}},
	{name: "create-of-another-tenant", call: `gorm.G[Pet](db).Create(ctx, &Pet{TenantID: "b"})`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return nil, gorm.G[Pet](s.db).Create(s.c, &Pet{Model: dal.Model{ID: 9, TenantID: "b"}, PlayerID: "7"})
	}},
	{name: "create-select-omit", call: `gorm.G[Pet](db).Select("name").Create(ctx, &pet)`, run: func(s *stage) (any, error) {
		one := gorm.G[Pet](s.db).Select("name").Create(s.c, &Pet{Model: dal.Model{ID: 9}, PlayerID: "7", Name: "x", Qty: 5})
		return nil, errors.Join(one, gorm.G[Pet](s.db).Omit("tenant_id", "qty").Create(s.c, &Pet{Model: dal.Model{ID: 10}, PlayerID: "7", Name: "y", Qty: 5}))
	}},
	{name: "create-in-batches", call: "gorm.G[Pet](db).CreateInBatches(ctx, &pets, 2)", run: func(s *stage) (any, error) {
		rows := []Pet{{Model: dal.Model{ID: 11}, PlayerID: "7", Name: "x"}, {Model: dal.Model{ID: 12}, PlayerID: "7", Name: "y"}, {Model: dal.Model{ID: 13}, PlayerID: "7", Name: "z"}}
		return nil, gorm.G[Pet](s.db).CreateInBatches(s.c, &rows, 2)
	}},
	{name: "upsert", call: "gorm.G[Pet](db, clause.OnConflict{UpdateAll: true}).Create(ctx, &pet)", run: func(s *stage) (any, error) {
		return nil, gorm.G[Pet](s.db, clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"qty"})}).Create(s.c, &Pet{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "a1", Qty: 5})
	}},
	{name: "set-create", call: "gorm.G[Pet](db).Set(...).Create(ctx)", run: func(s *stage) (any, error) {
		return nil, gorm.G[Pet](s.db).Set(clause.Assignment{Column: clause.Column{Name: "id"}, Value: 9}, clause.Assignment{Column: clause.Column{Name: "player_id"}, Value: "7"}).Create(s.c)
	}},
	{name: "set-update", call: "gorm.G[Pet](db).Where(...).Set(...).Update(ctx)", run: func(s *stage) (any, error) {
		return gorm.G[Pet](s.db).Where("id = 1 OR id = 2").Set(clause.Assignment{Column: clause.Column{Name: "qty"}, Value: 5}).Update(s.c)
	}},
	{name: "T22-set-owner", call: "gorm.G[Pet](db).Where(...).Set(tenant_id).Update(ctx)", refused: dal.ErrImmutable, run: func(s *stage) (any, error) {
		return gorm.G[Pet](s.db).Where("id = 1").Set(clause.Assignment{Column: clause.Column{Name: "tenant_id"}, Value: "b"}).Update(s.c)
	}},
	{name: "set-without-where", call: "gorm.G[Pet](db).Set(...).Update(ctx)", refused: gorm.ErrMissingWhereClause, run: func(s *stage) (any, error) {
		return gorm.G[Pet](s.db).Set(clause.Assignment{Column: clause.Column{Name: "qty"}, Value: 5}).Update(s.c)
	}},
	{name: "update", call: `gorm.G[Pet](db).Where(...).Update(ctx, "qty", 5)`, run: func(s *stage) (any, error) { return gorm.G[Pet](s.db).Where("id = ?", 2).Update(s.c, "qty", 5) }},
	{name: "updates", call: "gorm.G[Pet](db).Where(...).Updates(ctx, Pet{Qty: 5})", run: func(s *stage) (any, error) {
		return gorm.G[Pet](s.db).Where("id = ?", 2).Updates(s.c, Pet{Qty: 5})
	}},
	{name: "delete", call: "gorm.G[Pet](db).Where(...).Delete(ctx)", run: func(s *stage) (any, error) { return gorm.G[Pet](s.db).Where("id = 2 OR qty > 1000").Delete(s.c) }},
	{name: "delete-soft", call: "gorm.G[Scroll](db).Where(...).Delete(ctx)", run: func(s *stage) (any, error) { return gorm.G[Scroll](s.db).Where("id = 2 OR 1=1").Delete(s.c) }},
	{name: "delete-without-where", call: "gorm.G[Pet](db).Limit(1).Delete(ctx)", refused: gorm.ErrMissingWhereClause, run: func(s *stage) (any, error) { return gorm.G[Pet](s.db).Limit(1).Delete(s.c) }},
	{name: "association-create", call: "gorm.G[Knight](db).Where(...).Set(clause.Association{Type: OpCreate}).Update(ctx)", run: func(s *stage) (any, error) {
		return gorm.G[Knight](s.db).Where("id = ?", 1).Set(clause.Association{Association: "Pets", Type: clause.OpCreate, Set: []clause.Assignment{
			{Column: clause.Column{Name: "id"}, Value: 9}, {Column: clause.Column{Name: "player_id"}, Value: "7"}, {Column: clause.Column{Name: "name"}, Value: "x"},
		}}).Update(s.c)
	}},
	{name: "association-create-values", call: "gorm.G[Knight](db).Where(...).Set(clause.Association{Type: OpCreate, Values}).Update(ctx)", run: func(s *stage) (any, error) {
		return gorm.G[Knight](s.db).Where("id = ?", 1).Set(clause.Association{Association: "Pets", Type: clause.OpCreate, Values: []any{
			&Pet{PlayerID: "7", Name: "x"},
		}}).Update(s.c)
	}},
	{name: "association-update", call: "gorm.G[Knight](db).Where(...).Set(clause.Association{Type: OpUpdate}).Update(ctx)", run: func(s *stage) (any, error) {
		return gorm.G[Knight](s.db).Where("id = ?", 1).Set(clause.Association{
			Association: "Pets", Type: clause.OpUpdate, Conditions: []clause.Expression{clause.Expr{SQL: "1=1 OR 1=1"}},
			Set: []clause.Assignment{{Column: clause.Column{Name: "qty"}, Value: 5}},
		}).Update(s.c)
	}},
	{name: "association-unlink", call: "gorm.G[Knight](db).Where(...).Set(clause.Association{Type: OpUnlink}).Update(ctx)", run: func(s *stage) (any, error) {
		return gorm.G[Knight](s.db).Where("id = ?", 1).Set(clause.Association{Association: "Pets", Type: clause.OpUnlink}).Update(s.c)
	}},
	{name: "association-delete", call: "gorm.G[Knight](db).Where(...).Set(clause.Association{Type: OpDelete}).Update(ctx)", run: func(s *stage) (any, error) {
		return gorm.G[Knight](s.db).Where("id = ?", 1).Set(clause.Association{Association: "Pets", Type: clause.OpDelete}).Update(s.c)
	}},
	{name: "association-delete-belongs-to", call: `clause.Association{Association: "House", Type: OpDelete}`, run: func(s *stage) (any, error) {
		return gorm.G[Knight](s.db).Where("id = ?", 1).Set(clause.Association{Association: "House", Type: clause.OpDelete}).Update(s.c)
	}},
	// gorm 1.31.2 leaves the owner's condition out of the statement for a join table: every link of the tenant's goes.
	{name: "association-unlink-many-to-many", call: `clause.Association{Association: "Badges", Type: OpUnlink}`, run: func(s *stage) (any, error) {
		return gorm.G[Knight](s.db).Where("id = ?", 1).Set(clause.Association{Association: "Badges", Type: clause.OpUnlink}).Update(s.c)
	}},
	{name: "T29-context-of-another-tenant", call: "gorm.G[Knight](db).Find(another tenant's ctx)", refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Find(s.b)
		return shown(rows), err
	}},
	{name: "T29-write-with-context-of-another-tenant", call: "gorm.G[Pet](db).Create(another tenant's ctx, &pet)", refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return nil, gorm.G[Pet](s.db).Create(s.b, &Pet{Model: dal.Model{ID: 9}, PlayerID: "7"})
	}},
	{name: "T36-context-without-tenant", call: "gorm.G[Knight](db).Find(context.Background())", refused: tenant.ErrNoTenant, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Find(context.Background())
		return shown(rows), err
	}},
	{name: "dry-run", call: "gorm.G[Knight](db.Session(&gorm.Session{DryRun: true})).Find(ctx)", run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db.Session(&gorm.Session{DryRun: true})).Where("1=1 OR 1=1").Find(s.c)
		return shown(rows), err
	}},
	{name: "undeclared", call: "gorm.G[Stranger](db).Find(ctx)", refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Stranger](s.db).Find(s.c)
		return shown(rows), err
	}},
}

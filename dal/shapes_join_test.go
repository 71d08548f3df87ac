package dal_test

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// tableShapes name a table by text.
var tableShapes = []shape{
	{name: "dto", call: `db.Table("knights").Find(&dtos)`, run: func(s *stage) (any, error) {
		return find[struct{ Name string }](s.db.Table("knights").Order("id"))
	}},
	{name: "map", call: `db.Table("knights").Find(&maps)`, run: func(s *stage) (any, error) { return find[map[string]any](s.db.Table("knights").Order("id")) }},
	{name: "take", call: `db.Table("knights").Take(&m)`, run: func(s *stage) (any, error) {
		m := map[string]any{}
		err := s.db.Table("knights").Where("gold = 2 OR gold = 1002").Take(&m).Error
		return shown(m), err
	}},
	{name: "pluck", call: `db.Table("knights").Pluck("name", &names)`, run: func(s *stage) (any, error) { return pluck[string](s.db.Table("knights").Order("id"), "name") }},
	{name: "count", call: `db.Table("knights").Count(&n)`, run: func(s *stage) (any, error) { return count(s.db.Table("knights")) }},
	{name: "count-group", call: `db.Table("knights").Group("player_id").Count(&n)`, run: func(s *stage) (any, error) { return count(s.db.Table("knights").Group("player_id")) }},
	{name: "scan", call: `db.Table("knights").Select("SUM(gold) AS n").Scan(&total)`, run: func(s *stage) (any, error) {
		var d total
		err := s.db.Table("knights").Select("SUM(gold) AS n").Scan(&d).Error
		return shown(d), err
	}},
	{name: "or", call: `db.Table("knights").Where("1=1\nOR 1=1")`, run: func(s *stage) (any, error) { return count(s.db.Table("knights").Where("1=1\nOR 1=1")) }},
	{name: "alias", call: `db.Table("knights AS k").Where("k.gold > ? OR 1=1", 1)`, run: func(s *stage) (any, error) {
		return find[struct{ Name string }](s.db.Table("knights AS k").Where("k.gold > ? OR 1=1", 1).Order("k.id"))
	}},
	{name: "alias-of-model", call: `db.Model(&Knight{}).Table("knights AS k")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Model(&Knight{}).Table("knights AS k").Order("k.id"))
	}},
	{name: "soft-deleted-model-alias", call: `db.Model(&Scroll{}).Table("scrolls AS k")`, run: func(s *stage) (any, error) {
		return find[Scroll](s.db.Model(&Scroll{}).Table("scrolls AS k").Order("k.id"))
	}},
	{name: "another-table-into-a-model", call: `db.Table("houses").Find(&knights)`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Table("houses").Select("tenant_id", "id", "name"))
	}},
	{name: "two", call: `db.Table("knights k, pets p").Where("k.id = p.knight_id")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Table("knights k, pets p").Select("k.name, p.qty AS n").Where("k.id = p.knight_id").Order("k.id"))
	}},
	{name: "sub-query", call: `db.Table("(?) AS k", db.Model(&Knight{}))`, run: func(s *stage) (any, error) {
		return find[total](s.db.Table("(?) AS k", s.fresh().Model(&Knight{}).Select("name", "gold")).Where("k.gold > 1 OR 1=1").Order("k.gold"))
	}},
	{name: "sub-queries", call: `db.Table("(?) AS k, (?) AS p", q1, q2)`, run: func(s *stage) (any, error) {
		return find[total](s.db.Table("(?) AS k, (?) AS p", s.fresh().Model(&Knight{}).Select("id", "name"), s.fresh().Table("pets").Select("knight_id, qty")).
			Select("k.name, p.qty AS n").Where("p.knight_id = k.id").Order("k.name"))
	}},
	{name: "global", call: `db.Table("edicts").Find(&maps)`, run: func(s *stage) (any, error) { return find[map[string]any](s.db.Table("edicts").Order("id")) }},
	{name: "local", call: `db.Table("echos").Find(&maps)`, run: func(s *stage) (any, error) { return find[map[string]any](s.db.Table("echos").Order("no")) }},
	{name: "joins", call: `db.Table("knights").Joins("JOIN pets ON pets.knight_id = knights.id")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Table("knights").Select("knights.name, pets.qty AS n").Joins("JOIN pets ON pets.knight_id = knights.id").Order("knights.id"))
	}},
	{name: "unscoped", call: `db.Unscoped().Table("scrolls")`, run: func(s *stage) (any, error) { return count(s.db.Unscoped().Table("scrolls")) }},
	{name: "undeclared", call: `db.Table("strangers").Find(&maps)`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) { return find[map[string]any](s.db.Table("strangers")) }},
	{name: "system", call: `db.Table("errands").Count(&n)`, refused: dal.ErrClosedTable, run: func(s *stage) (any, error) { return count(s.db.Table("errands")) }},
	{name: "another-keyspace", call: `db.Table("rallies").Count(&n)`, refused: dal.ErrKeyspace, run: func(s *stage) (any, error) { return count(s.db.Table("rallies")) }},
	{name: "qualified", call: `db.Table("other.knights").Count(&n)`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return count(s.db.Table("other.knights")) }},
	{name: "catalogue", call: `db.Table("information_schema.tables").Count(&n)`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return count(s.db.Table("information_schema.tables")) }},
	{name: "comment", call: `db.Table("knights -- ")`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return count(s.db.Table("knights -- ")) }},
	{name: "where-in-the-name", call: `db.Table("knights WHERE 1=1 OR")`, refused: dal.ErrShape, run: func(s *stage) (any, error) { return count(s.db.Table("knights WHERE 1=1 OR")) }},
	{name: "update", call: `db.Table("knights").Where("id = ?", 2).Update("gold", 9)`, run: func(s *stage) (any, error) {
		return changed(s.db.Table("knights").Where("id = ?", 2).Update("gold", 9))
	}},
	{name: "update-alias", call: `db.Table("knights AS k").Where("k.id = ?", 2).Update("gold", 9)`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Table("knights AS k").Where("k.id = ?", 2).Update("gold", 9))
	}},
	{name: "delete", call: `db.Table("pets").Where("id = ?", 2).Delete(nil)`, run: func(s *stage) (any, error) { return changed(s.db.Table("pets").Where("id = ?", 2).Delete(nil)) }},
	{name: "create-map", call: `db.Table("pets").Create(map[string]any{...})`, run: func(s *stage) (any, error) {
		return changed(s.db.Table("pets").Create(map[string]any{"id": 9, "player_id": "7", "name": "new"}))
	}},
	{name: "write-to-another-table-than-the-models", call: `db.Model(&Knight{}).Table("pets").Where("1=1").Update("name", "x")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Knight{}).Table("pets").Where("1=1").Update("name", "x"))
	}},
}

// houseName is quoted: PostgreSQL folds names that are not.
var houseName = clause.Column{Table: "House", Name: "name"}

const onKnight = "pets.knight_id = knights.id"

// joinShapes join tables, by relation, by text and by sub-query.
var joinShapes = []shape{
	{name: "relation", call: `db.Joins("House")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Joins("House").Order("knights.id")) }},
	{name: "relation-stays-outer", call: `db.Joins("House") where tenant a has no house`, run: func(s *stage) (any, error) {
		s.exec(s.tb, "DELETE FROM houses WHERE tenant_id = 'a'")
		return find[Knight](s.db.Joins("House").Order("knights.id"))
	}},
	{name: "relation-inner", call: `db.InnerJoins("House")`, run: func(s *stage) (any, error) { return find[Knight](s.db.InnerJoins("House").Order("knights.id")) }},
	{name: "relation-inner-finds-no-foreign-row", call: `db.InnerJoins("House") where tenant b alone has houses`, run: func(s *stage) (any, error) {
		s.exec(s.tb, "DELETE FROM houses WHERE tenant_id = 'a'")
		return find[Knight](s.db.InnerJoins("House"))
	}},
	{name: "T05-relation-with-conditions", call: `db.Joins("House", db.Where("House.name = ?", "x").Or("1=1"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House", s.fresh().Where("? = ?", houseName, "x").Or("1=1")).Order("knights.id"))
	}},
	{name: "T05-relation-with-or-in-text", call: `db.Joins("House", db.Where("1=1\tOR\t1=1"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House", s.fresh().Where("1=1\tOR\t1=1")).Order("knights.id"))
	}},
	{name: "relation-with-struct", call: `db.Joins("House", db.Where(&House{Name: "a2"}))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House", s.fresh().Where(&House{Name: "a2"})).Order("knights.id"))
	}},
	{name: "relation-with-select", call: `db.Joins("House", db.Select("name"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House", s.fresh().Select("name")).Order("knights.id"))
	}},
	{name: "relation-with-omit", call: `db.Joins("House", db.Omit("name"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House", s.fresh().Omit("name")).Order("knights.id"))
	}},
	{name: "T09-relation-of-the-handles-tenant", call: `db.Joins("Knight")`, run: func(s *stage) (any, error) { return find[Pet](s.db.Joins("Knight").Order("pets.id")) }},
	{name: "relation-nested", call: `db.Joins("Knight.House")`, run: func(s *stage) (any, error) {
		return find[Pet](s.db.Joins("Knight").Joins("Knight.House").Order("pets.id"))
	}},
	{name: "relation-has-one", call: `db.Joins("Seat")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Joins("Seat").Order("knights.id")) }},
	{name: "relation-where-on-it", call: `db.Joins("House").Where("House.name = ? OR 1=1", "x")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House").Where("? = ? OR 1=1", houseName, "x").Order("knights.id"))
	}},
	{name: "relation-count", call: `db.Model(&Knight{}).Joins("House").Count(&n)`, run: func(s *stage) (any, error) { return count(s.db.Model(&Knight{}).Joins("House")) }},
	{name: "relation-pluck", call: `db.Model(&Knight{}).Joins("House").Pluck("House.name", &names)`, run: func(s *stage) (any, error) {
		return pluck[string](s.db.Model(&Knight{}).Joins("House").Order("knights.id"), "House.name")
	}},
	{name: "relation-first", call: `db.Joins("House").First(&knight, 2)`, run: func(s *stage) (any, error) {
		var k Knight
		err := s.db.Joins("House").First(&k, 2).Error
		return shown(k), err
	}},
	{name: "relation-of-a-soft-deleted-model", call: `db.Joins("Knight").Find(&scrolls)`, run: func(s *stage) (any, error) { return find[Scroll](s.db.Joins("Knight").Order("scrolls.id")) }},
	{name: "relation-unscoped", call: `db.Unscoped().Joins("Knight").Find(&scrolls)`, run: func(s *stage) (any, error) {
		return find[Scroll](s.db.Unscoped().Joins("Knight").Order("scrolls.id"))
	}},
	{name: "relation-with-another-tenants-conditions", call: `db.Joins("House", db.WithContext(another tenant's).Where("1=1"))`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House", s.as(s.b).Where("1=1")).Order("knights.id"))
	}},
	{name: "T07-text", call: `db.Joins("JOIN pets ON ` + onKnight + `")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("knights.name, pets.qty AS n").Joins("JOIN pets ON " + onKnight).Order("knights.id"))
	}},
	{name: "T07-text-or", call: `db.Joins("JOIN pets ON ` + onKnight + ` OR 1=1")`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("JOIN pets ON " + onKnight + " OR 1=1"))
	}},
	{name: "text-left", call: `db.Joins("LEFT JOIN pets ON ` + onKnight + ` AND pets.qty > ?", 1)`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("knights.name, pets.qty AS n").Joins("LEFT JOIN pets ON "+onKnight+" AND pets.qty > ?", 1).Order("knights.id"))
	}},
	{name: "text-right", call: `db.Joins("RIGHT JOIN pets ON ` + onKnight + ` AND knights.gold > 1")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("COALESCE(knights.name, '-') AS name, pets.qty AS n").Joins("RIGHT JOIN pets ON " + onKnight + " AND knights.gold > 1").Order("pets.id"))
	}},
	{name: "text-cross", call: `db.Joins("CROSS JOIN pets")`, run: func(s *stage) (any, error) { return count(s.db.Model(&Knight{}).Joins("CROSS JOIN pets")) }},
	{name: "text-comma", call: `db.Joins(", pets")`, run: func(s *stage) (any, error) { return count(s.db.Model(&Knight{}).Joins(", pets")) }},
	{name: "text-using", call: `db.Joins("JOIN pets USING (player_id)")`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("JOIN pets USING (player_id)"))
	}},
	{name: "text-left-using", call: `db.Joins("LEFT JOIN pets USING (player_id)")`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("LEFT JOIN pets USING (player_id)"))
	}},
	{name: "text-self", call: `db.Joins("JOIN knights k2 ON k2.gold > knights.gold")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("knights.name, k2.gold AS n").Joins("JOIN knights k2 ON k2.gold > knights.gold").Order("knights.id, k2.id"))
	}},
	{name: "text-two", call: `db.Joins("JOIN pets ...").Joins("LEFT JOIN houses ...")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("houses.name, pets.qty AS n").Joins("JOIN pets ON " + onKnight).Joins("LEFT JOIN houses ON houses.id = knights.house_id").Order("knights.id"))
	}},
	{name: "text-and-relation", call: `db.Joins("House").Joins("JOIN pets ON ...")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Joins("House").Joins("JOIN pets ON " + onKnight).Order("knights.id"))
	}},
	{name: "text-derived", call: `db.Joins("JOIN (SELECT knight_id, SUM(qty) AS n FROM pets GROUP BY knight_id) p ON p.knight_id = knights.id")`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("knights.name, p.n").Joins("JOIN (SELECT knight_id, SUM(qty) AS n FROM pets GROUP BY knight_id) p ON p.knight_id = knights.id").Order("knights.id"))
	}},
	{name: "sub-query", call: `db.Joins("JOIN (?) p ON p.knight_id = knights.id", db.Model(&Pet{}))`, run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("knights.name, p.qty AS n").Joins("JOIN (?) p ON p.knight_id = knights.id", s.fresh().Model(&Pet{}).Where("1=1 OR 1=1")).Order("knights.id"))
	}},
	{name: "text-join-table", call: `db.Joins("JOIN knight_badges kb ON ... JOIN badges ON ...")`, run: func(s *stage) (any, error) {
		return find[struct{ Name, Badge string }](s.db.Model(&Knight{}).Select("knights.name, badges.name AS badge").
			Joins("JOIN knight_badges kb ON kb.knight_id = knights.id JOIN badges ON badges.id = kb.badge_id").Order("knights.id"))
	}},
	{name: "text-undeclared", call: `db.Joins("JOIN strangers ON 1=1")`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("JOIN strangers ON 1=1"))
	}},
	{name: "text-another-keyspace", call: `db.Joins("JOIN rallies ON 1=1")`, refused: dal.ErrKeyspace, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("JOIN rallies ON 1=1"))
	}},
	{name: "text-soft-deleted", call: `db.Joins("JOIN scrolls ON scrolls.knight_id = knights.id")`, run: func(s *stage) (any, error) { // text names the table, deleted rows too
		return pluck[string](s.db.Model(&Knight{}).Joins("JOIN scrolls ON scrolls.knight_id = knights.id").Order("knights.id"), "scrolls.title")
	}},
	{name: "relation-without-model", call: `db.Table("knights").Joins("House")`, run: func(s *stage) (any, error) { // text to gorm: an alias
		return count(s.db.Table("knights").Joins("House"))
	}},
	{name: "text-global", call: `db.Joins("JOIN edicts ON edicts.id = knights.id")`, run: func(s *stage) (any, error) {
		return pluck[string](s.db.Model(&Knight{}).Joins("JOIN edicts ON edicts.id = knights.id").Order("knights.id"), "edicts.name")
	}},
	{name: "text-comment", call: `db.Joins("JOIN pets ON 1=1 -- ")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("JOIN pets ON 1=1 -- "))
	}},
	{name: "T66-two-under-one-name", call: `db.Joins("JOIN pets knights ON 1=1")`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Joins("JOIN pets knights ON 1=1"))
	}},
	{name: "T66-own-predicate-unqualified", call: `db.Where("tenant_id = ?", "a").Joins("LEFT JOIN edicts ON edicts.id = knights.id")`, run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Where("tenant_id = ?", "a").Joins("LEFT JOIN edicts ON edicts.id = knights.id"))
	}},
	{name: "clause-from", call: "db.Clauses(clause.From{Joins: ...})", run: func(s *stage) (any, error) {
		return find[total](s.db.Model(&Knight{}).Select("knights.name, pets.qty AS n").Clauses(clause.From{Joins: []clause.Join{{
			Type: clause.LeftJoin, Table: clause.Table{Name: "pets"}, ON: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: onKnight}}},
		}}}).Order("knights.id"))
	}},
	{name: "clause-from-tables", call: "db.Clauses(clause.From{Tables: ...})", run: func(s *stage) (any, error) {
		return count(s.db.Model(&Knight{}).Clauses(clause.From{Tables: []clause.Table{{Name: "knights"}, {Name: "pets", Alias: "p"}}}))
	}},
	{name: "update", call: `db.Model(&Knight{}).Joins("JOIN pets ON ...").Where("knights.id = 1").Update("gold", 9)`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Knight{}).Joins("JOIN pets ON "+onKnight).Where("knights.id = 1").Update("gold", 9))
	}},
	{name: "delete", call: `db.Joins("JOIN houses ON ...").Where("pets.id = 2").Delete(&Pet{})`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return changed(s.db.Joins("JOIN houses ON houses.id = pets.id").Where("pets.id = 2").Delete(&Pet{}))
	}},
	{name: "generic-has", call: `gorm.G[Knight](db).Joins(clause.Has("House"), nil)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Joins(clause.Has("House"), nil).Order("knights.id").Find(s.c)
		return shown(rows), err
	}},
	{name: "generic-left", call: `gorm.G[Knight](db).Joins(clause.LeftJoin.Association("House"), on)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Joins(clause.LeftJoin.Association("House"), func(db gorm.JoinBuilder, house, knight clause.Table) error {
			db.Where("? = ? OR 1=1", clause.Column{Table: house.Name, Name: "name"}, clause.Column{Table: knight.Name, Name: "name"})
			return nil
		}).Order("knights.id").Find(s.c)
		return shown(rows), err
	}},
	{name: "generic-on", call: `gorm.G[Knight](db).Joins(clause.LeftJoin.Association("House").As("h"), Where, Or, Not, Select, Omit)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Joins(clause.LeftJoin.Association("House").As("h"), func(db gorm.JoinBuilder, _, _ clause.Table) error {
			db.Select("id", "name").Omit("created_at").Where("h.name <> ?", "x").Or("1=1").Not("h.name = ?", "a9")
			return nil
		}).Order("knights.id").Find(s.c)
		return shown(rows), err
	}},
	{name: "generic-inner-right-cross", call: `gorm.G[Knight](db).Joins(clause.InnerJoin, RightJoin, CrossJoin)`, run: func(s *stage) (any, error) {
		inner, err := gorm.G[Knight](s.db).Joins(clause.InnerJoin.Association("Seat"), nil).Order("knights.id").Find(s.c)
		if err != nil {
			return nil, err
		}
		right, err := gorm.G[Knight](s.db).Joins(clause.RightJoin.Association("House"), nil).Order("knights.id").Find(s.c)
		return shown(inner) + shown(right), err
	}},
	{name: "T15-generic-sub-query", call: `gorm.G[Knight](db).Joins(clause.LeftJoin.AssociationFrom("House", gorm.G[House](db)...), on)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Joins(clause.LeftJoin.AssociationFrom("House", gorm.G[House](s.fresh()).Where("1=1 OR 1=1")).As("h"), func(db gorm.JoinBuilder, house, knight clause.Table) error {
			db.Where("?.id = ?.house_id", house, knight)
			return nil
		}).Order("knights.id").Find(s.c)
		return shown(rows), err
	}},
	{name: "T15-generic-classic-sub-query", call: `gorm.G[Knight](db).Joins(clause.LeftJoin.AssociationFrom("House", gorm.Expr("?", db.Model(&House{}))), on)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Joins(clause.LeftJoin.AssociationFrom("House", gorm.Expr("?", s.fresh().Model(&House{}).Where("1=1 OR 1=1"))).As("h"), func(db gorm.JoinBuilder, house, knight clause.Table) error {
			db.Where("?.id = ?.house_id", house, knight)
			return nil
		}).Order("knights.id").Find(s.c)
		return shown(rows), err
	}},
}

// preloadShapes load relations by statements of their own.
var preloadShapes = []shape{
	{name: "belongs-to", call: `db.Preload("House")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Preload("House").Order("id")) }},
	{name: "has-one", call: `db.Preload("Seat")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Preload("Seat").Order("id")) }},
	{name: "has-many", call: `db.Preload("Pets")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Preload("Pets").Order("id")) }},
	{name: "T10-many-to-many", call: `db.Preload("Badges")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Preload("Badges").Order("id")) }},
	{name: "polymorphic", call: `db.Preload("Notes")`, run: func(s *stage) (any, error) { return find[Knight](s.db.Preload("Notes").Order("id")) }},
	{name: "nested", call: `db.Preload("Knight.House")`, run: func(s *stage) (any, error) { return find[Pet](s.db.Preload("Knight.House").Order("id")) }},
	{name: "all", call: "db.Preload(clause.Associations)", run: func(s *stage) (any, error) { return find[Knight](s.db.Preload(clause.Associations).Where("id = 1")) }},
	{name: "conditions", call: `db.Preload("Pets", "qty > ? OR 1=1", 1)`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Preload("Pets", "qty > ? OR 1=1", 1).Order("id"))
	}},
	{name: "conditions-hidden-or", call: `db.Preload("Pets", "1=1\tOR\t1=1")`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Preload("Pets", "1=1\tOR\t1=1").Order("id"))
	}},
	{name: "function", call: `db.Preload("Pets", func(db) { return db.Order("qty DESC").Limit(2) })`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Preload("Pets", func(db *gorm.DB) *gorm.DB { return db.Where("qty > 0").Or("1=1").Order("qty DESC").Limit(2) }).Order("id"))
	}},
	{name: "function-unscoped", call: `db.Preload("Pets", func(db) { return db.Unscoped() })`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Preload("Pets", func(db *gorm.DB) *gorm.DB { return db.Unscoped() }).Order("id"))
	}},
	{name: "function-of-another-tenant", call: `db.Preload("Pets", func(db) { return another tenant's })`, refused: dal.ErrTenantMismatch, before: true, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Preload("Pets", func(db *gorm.DB) *gorm.DB { return db.WithContext(s.b) }).Order("id"))
	}},
	{name: "function-of-another-handle", call: `db.Preload("Pets", func(db) { return another handle })`, refused: dal.ErrTenantMismatch, before: true, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Preload("Pets", func(*gorm.DB) *gorm.DB { return s.as(s.b).Model(&Pet{}) }).Order("id"))
	}},
	{name: "function-joins", call: `db.Preload("Pets", func(db) { return db.Joins("JOIN knights ...") })`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Preload("Pets", func(db *gorm.DB) *gorm.DB {
			return db.Joins("JOIN knights k ON k.id = pets.knight_id AND k.gold > 1")
		}).Order("id"))
	}},
	{name: "joined-relation", call: `db.Joins("Knight").Preload("Knight.Pets")`, run: func(s *stage) (any, error) {
		return find[Pet](s.db.Joins("Knight").Preload("Knight.Pets").Order("pets.id"))
	}},
	{name: "unscoped", call: `db.Unscoped().Preload("Knight").Find(&scrolls)`, run: func(s *stage) (any, error) {
		return find[Scroll](s.db.Unscoped().Preload("Knight").Order("id"))
	}},
	{name: "find-in-batches", call: `db.Preload("Pets").FindInBatches(&knights, 2, fn)`, run: func(s *stage) (any, error) {
		var rows []Knight
		seen := ""
		err := s.db.Preload("Pets").FindInBatches(&rows, 2, func(_ *gorm.DB, batch int) error {
			seen += fmt.Sprint(batch, shown(rows), " ")
			return nil
		}).Error
		return seen, err
	}},
	{name: "generic", call: `gorm.G[Knight](db).Preload("Pets", nil)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Preload("Pets", nil).Order("id").Find(s.c)
		return shown(rows), err
	}},
	{name: "generic-conditions", call: `gorm.G[Knight](db).Preload("Pets", Where, Or, Not, Order, Limit, Offset, Select, Omit)`, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Preload("Pets", func(db gorm.PreloadBuilder) error {
			db.Select("id", "tenant_id", "knight_id", "name").Omit("qty").Where("qty > ?", 0).Or("1=1").Not("name = ?", "a9").Order("id DESC").Limit(2).Offset(0)
			return nil
		}).Order("id").Find(s.c)
		return shown(rows), err
	}},
	{name: "T52-limit-per-record", call: `gorm.G[Knight](db).Preload("Pets", LimitPerRecord(1))`, run: func(s *stage) (any, error) {
		s.exec(s.tb, "UPDATE pets SET knight_id = 1 WHERE tenant_id = 'a' AND id = 2")
		rows, err := gorm.G[Knight](s.db).Preload("Pets", func(db gorm.PreloadBuilder) error {
			db.Where("qty > ? OR 1=1", 0).Order("qty DESC").LimitPerRecord(1)
			return nil
		}).Order("id").Find(s.c)
		return shown(rows), err
	}},
	{name: "limit-per-record-many-to-many", call: `gorm.G[Knight](db).Preload("Badges", LimitPerRecord(1))`, refused: errAny, before: true, run: func(s *stage) (any, error) {
		rows, err := gorm.G[Knight](s.db).Preload("Badges", func(db gorm.PreloadBuilder) error {
			db.LimitPerRecord(1)
			return nil
		}).Find(s.c)
		return shown(rows), err
	}},
	{name: "unknown", call: `db.Preload("Nothing")`, refused: gorm.ErrUnsupportedRelation, before: true, run: func(s *stage) (any, error) { return find[Knight](s.db.Preload("Nothing")) }},
}

// subQueryShapes hold another query as a value.
var subQueryShapes = []shape{
	{name: "in", call: `db.Where("id IN (?)", db.Model(&Pet{}).Select("knight_id"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", s.fresh().Model(&Pet{}).Select("knight_id").Where("qty > ? OR 1=1", 1)))
	}},
	{name: "T11-not-in", call: `db.Where("id NOT IN (?)", db.Table("pets").Select("id"))`, run: func(s *stage) (any, error) {
		s.exec(s.tb, "DELETE FROM pets WHERE tenant_id = 'a' AND id = 3")
		return find[Knight](s.db.Where("id NOT IN (?)", s.fresh().Table("pets").Select("id")))
	}},
	{name: "exists", call: `db.Where("EXISTS (?)", db.Model(&Pet{}).Where("pets.knight_id = knights.id"))`, run: func(s *stage) (any, error) {
		s.exec(s.tb, "DELETE FROM pets WHERE tenant_id = 'a' AND id = 3")
		return find[Knight](s.db.Where("EXISTS (?)", s.fresh().Model(&Pet{}).Select("1").Where("pets.knight_id = knights.id")).Order("id"))
	}},
	{name: "comparison", call: `db.Where("gold > (?)", db.Model(&Knight{}).Select("AVG(gold)"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold > (?)", s.fresh().Model(&Knight{}).Select("AVG(gold)")))
	}},
	{name: "map", call: `db.Where(map[string]any{"id": db.Model(&Pet{}).Select("id")})`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(map[string]any{"id": s.fresh().Model(&Pet{}).Select("id")}).Order("id"))
	}},
	{name: "not", call: `db.Not("id IN (?)", sub)`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Not("id IN (?)", s.fresh().Model(&Pet{}).Select("id").Where("qty < 2")).Order("id"))
	}},
	{name: "having", call: `db.Group("name").Having("SUM(gold) > (?)", sub)`, run: func(s *stage) (any, error) {
		return pluck[string](s.db.Model(&Knight{}).Group("name").Having("SUM(gold) > (?)", s.fresh().Model(&Pet{}).Select("AVG(qty)")), "name")
	}},
	{name: "order", call: `db.Order(clause.OrderBy{Expression: clause.Expr{SQL: "(?)", Vars: sub}})`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Clauses(clause.OrderBy{Expression: clause.Expr{SQL: "(?) DESC", Vars: []any{s.fresh().Model(&Pet{}).Select("qty").Where("pets.id = knights.id")}}}))
	}},
	{name: "nested", call: `db.Where("id IN (?)", db.Where("id IN (?)", sub))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", s.fresh().Model(&Pet{}).Select("knight_id").Where("id IN (?)", s.fresh().Model(&House{}).Select("id").Where("1=1 OR 1=1"))).Order("id"))
	}},
	{name: "raw", call: `db.Where("id IN (?)", db.Raw("SELECT id FROM pets WHERE qty > ?", 1))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", s.fresh().Raw("SELECT id FROM pets WHERE qty > ? OR 1=1", 1)).Order("id"))
	}},
	{name: "text", call: `db.Where("id IN (SELECT knight_id FROM pets WHERE qty > ?)", 1)`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (SELECT knight_id FROM pets WHERE qty > ?)", 1).Order("id"))
	}},
	{name: "soft-deleted", call: `db.Where("id IN (?)", db.Model(&Scroll{}).Select("id"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", s.fresh().Model(&Scroll{}).Select("id")).Order("id"))
	}},
	{name: "with-joins", call: `db.Where("id IN (?)", db.Model(&Pet{}).Joins("JOIN knights ...").Select("pets.id"))`, run: func(s *stage) (any, error) {
		return find[House](s.db.Where("id IN (?)", s.fresh().Model(&Pet{}).Joins("JOIN knights ON knights.id = pets.knight_id").Select("pets.id")).Order("id"))
	}},
	{name: "reused", call: "sub used in two statements", run: func(s *stage) (any, error) {
		sub := s.fresh().Model(&Pet{}).Select("knight_id")
		one, err := find[Knight](s.db.Where("id IN (?)", sub).Order("id"))
		if err != nil {
			return nil, err
		}
		two, err := find[Knight](s.fresh().Where("id IN (?)", sub).Order("id"))
		return fmt.Sprint(one, two), err
	}},
	{name: "generic", call: `db.Where("id IN (?)", gorm.G[Pet](db).Select("knight_id"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", gorm.G[Pet](s.fresh()).Select("knight_id").Where("qty > ? OR 1=1", 1)).Order("id"))
	}},
	{name: "generic-of-another-tenant", call: `db.Where("id IN (?)", gorm.G[Pet](another tenant's).Select("knight_id"))`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", gorm.G[Pet](s.as(s.b)).Select("knight_id")))
	}},
	{name: "generic-behind-a-value", call: `db.Where("gold > ? AND id IN (?)", 1, gorm.G[Pet](db).Select("knight_id"))`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold > ? AND id IN (?)", 1, gorm.G[Pet](s.fresh()).Select("knight_id").Where("qty > ? OR 1=1", 1)).Order("id"))
	}},
	{name: "generic-undeclared", call: `db.Where("id NOT IN (?)", gorm.G[Stranger](db))`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold > ? AND id NOT IN (?)", 1, gorm.G[Stranger](s.fresh()).Select("id").Where("1=1")))
	}},
	{name: "refused-behind-a-value", call: `db.Where("gold > ? AND id NOT IN (?)", 1, db.Model(&Rally{}))`, refused: dal.ErrKeyspace, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("gold > ? AND id NOT IN (?)", 1, s.fresh().Model(&Rally{}).Select("id")))
	}},
	{name: "T11-of-another-tenant", call: `db.Where("id IN (?)", another tenant's sub-query)`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", s.as(s.b).Model(&Pet{}).Select("knight_id")))
	}},
	{name: "T11-of-another-tenants-context", call: `db.Where("id IN (?)", db.WithContext(another tenant's).Model(&Pet{}))`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id NOT IN (?)", s.fresh().WithContext(s.b).Model(&Pet{}).Select("knight_id")))
	}},
	{name: "T11-of-a-system-scope", call: `db.Where("id IN (?)", system.Model(&Pet{}))`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		sys := tenant.System(s.a, "test", "pets")
		places, err := s.Places(sys)
		if err != nil {
			return nil, err
		}
		return find[Knight](s.db.Where("id IN (?)", s.OnPlace(sys, places[0]).Model(&Pet{}).Select("knight_id")))
	}},
	{name: "T11-refused-one", call: `db.Where("id NOT IN (?)", db.Table("strangers"))`, refused: dal.ErrUndeclared, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id NOT IN (?)", s.fresh().Table("strangers").Select("id")))
	}},
	{name: "T11-failed-one", call: `db.Where("id NOT IN (?)", sub with an error)`, refused: errOwn, run: func(s *stage) (any, error) {
		sub := s.fresh().Model(&Pet{}).Select("id")
		_ = sub.AddError(errOwn)
		return find[Knight](s.db.Where("id NOT IN (?)", sub))
	}},
	{name: "of-another-keyspace", call: `db.Where("id IN (?)", db.Model(&Rally{}).Select("id"))`, refused: dal.ErrKeyspace, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("id IN (?)", s.fresh().Model(&Rally{}).Select("id")))
	}},
}

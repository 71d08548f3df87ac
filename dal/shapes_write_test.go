package dal_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
)

func pet(id int64, name string) Pet {
	return Pet{Model: dal.Model{ID: id}, PlayerID: "7", Name: name}
}

// writeShapes write; the tests named beside them in docs/shapes.md say more of each.
var writeShapes = []shape{
	{name: "create", call: "db.Create(&pet)", run: func(s *stage) (any, error) {
		p := pet(9, "x")
		err := s.db.Create(&p).Error
		return shown(p), err
	}},
	{name: "create-slice", call: "db.Create(&pets)", run: func(s *stage) (any, error) { return changed(s.db.Create(&[]Pet{pet(9, "x"), pet(10, "y")})) }},
	{name: "create-map", call: "db.Model(&Pet{}).Create(map[string]any{...})", run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Create(map[string]any{"ID": 9, "player_id": "7", "Name": "x"}))
	}},
	{name: "create-maps", call: "db.Model(&Pet{}).Create(&[]map[string]any{...})", run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Create(&[]map[string]any{{"id": 9, "player_id": "7", "name": "x"}, {"id": 10, "player_id": "7", "name": "y"}}))
	}},
	{name: "T24-create-map-names-the-owner-twice", call: `db.Model(&Pet{}).Create(map[string]any{"TenantID": "b", "tenant_id": "a"})`, refused: errAny, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Create(map[string]any{"id": 9, "player_id": "7", "TenantID": "b", "tenant_id": "a"}))
	}},
	{name: "create-in-batches", call: "db.CreateInBatches(&pets, 2)", run: func(s *stage) (any, error) {
		return changed(s.db.CreateInBatches(&[]Pet{pet(9, "x"), pet(10, "y"), pet(11, "z")}, 2))
	}},
	{name: "T23-create-omit-owner", call: `db.Omit("tenant_id").Create(&pet)`, run: func(s *stage) (any, error) {
		p := pet(9, "x")
		return changed(s.db.Omit("tenant_id").Create(&p))
	}},
	{name: "T23-create-select", call: `db.Select("name").Create(&pet)`, run: func(s *stage) (any, error) {
		p := pet(9, "x")
		return changed(s.db.Select("name").Create(&p))
	}},
	{name: "T12-create-unscoped", call: "db.Unscoped().Create(&pet)", run: func(s *stage) (any, error) {
		p := pet(9, "x")
		return changed(s.db.Unscoped().Create(&p))
	}},
	{name: "T12-create-unscoped-for-another-tenant", call: `db.Unscoped().Create(&Pet{TenantID: "b"})`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		p := pet(9, "x")
		p.TenantID = "b"
		return changed(s.db.Unscoped().Create(&p))
	}},
	{name: "create-expression", call: `db.Model(&Pet{}).Create(map[string]any{"qty": gorm.Expr("? + 1", 1)})`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Create(map[string]any{"id": 9, "player_id": "7", "name": "x", "qty": gorm.Expr("? + 1", 1)}))
	}},
	{name: "create-valuer", call: `db.Model(&Pet{}).Create(map[string]any{"name": a gorm.Valuer})`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Create(map[string]any{"id": 9, "player_id": "7", "name": writesItself("UPPER(?)", "x")}))
	}},
	{name: "T47-duplicate", call: "db.Create(&pet) whose key another tenant has too", run: func(s *stage) (any, error) {
		p := pet(9, "b1") // tenant b's pet 1 is called so
		return changed(s.db.Create(&p))
	}},
	{name: "T48-foreign-key", call: "db.Create(&Pet{KnightID: of another tenant's knight})", refused: dal.ErrTarget, before: true, run: func(s *stage) (any, error) {
		s.exec(s.tb, "DELETE FROM knights WHERE tenant_id = 'a' AND id = 3")
		three := int64(3)
		p := pet(9, "x")
		p.KnightID = &three
		err := s.db.Create(&p).Error
		s.exec(s.tb, "INSERT INTO knights (tenant_id, id, player_id, name, gold, house_id, created_at, updated_at) VALUES ('a', 3, '7', 'a3', 3, 3, '2026-01-02 03:04:05', '2026-01-02 03:04:05')")
		return nil, err
	}},
	{name: "upsert", call: "db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&pet)", run: func(s *stage) (any, error) {
		p := pet(1, "new")
		return s.stateOf(s.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&p))
	}},
	{name: "upsert-columns", call: "clause.OnConflict{Columns, DoUpdates: clause.AssignmentColumns}", run: func(s *stage) (any, error) {
		p := pet(1, "new")
		return s.stateOf(s.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&p))
	}},
	{name: "upsert-assignments", call: "clause.OnConflict{DoUpdates: clause.Assignments}", run: func(s *stage) (any, error) {
		p := pet(1, "a1")
		return s.stateOf(s.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"qty": 50})}).Create(&p))
	}},
	{name: "upsert-nothing", call: "clause.OnConflict{DoNothing: true}", run: func(s *stage) (any, error) {
		p := pet(1, "new")
		return s.stateOf(s.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&p))
	}},
	{name: "T18-upsert-owner", call: "clause.OnConflict{DoUpdates: tenant_id}", refused: dal.ErrImmutable, run: func(s *stage) (any, error) {
		p := pet(1, "new")
		return changed(s.db.Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"tenant_id"})}).Create(&p))
	}},
	{name: "upsert-constraint", call: "clause.OnConflict{OnConstraint: ...}", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		p := pet(1, "new")
		return changed(s.db.Clauses(clause.OnConflict{OnConstraint: "pets_pkey", UpdateAll: true}).Create(&p))
	}},
	{name: "T17-save", call: "db.Save(&pet)", run: func(s *stage) (any, error) {
		p := pet(2, "saved")
		return s.stateOf(s.db.Save(&p))
	}},
	{name: "T17-save-new", call: "db.Save(&pet) of a key that another tenant alone has", run: func(s *stage) (any, error) {
		s.exec(s.tb, "DELETE FROM pets WHERE tenant_id = 'a' AND id = 2")
		p := pet(2, "saved")
		return s.stateOf(s.db.Save(&p))
	}},
	{name: "T17-save-slice", call: "db.Save(&pets)", run: func(s *stage) (any, error) {
		list := []Pet{pet(2, "saved"), pet(9, "new")}
		return s.stateOf(s.db.Save(&list))
	}},
	{name: "T21-save-owner", call: `db.Save(&Pet{ID: 1, TenantID: "b"})`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) {
		p := pet(1, "x")
		p.TenantID = "b"
		return changed(s.db.Save(&p))
	}},
	{name: "update", call: `db.Model(&pet).Update("qty", 5)`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).Update("qty", 5))
	}},
	{name: "updates-map", call: "db.Model(&pet).Updates(map[string]any{...})", run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).Updates(map[string]any{"qty": 5, "Name": "x"}))
	}},
	{name: "updates-struct", call: "db.Model(&pet).Updates(Pet{Qty: 5})", run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).Updates(Pet{Qty: 5}))
	}},
	{name: "update-column", call: `db.Model(&pet).UpdateColumn("qty", 5)`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).UpdateColumn("qty", 5))
	}},
	{name: "update-columns", call: "db.Model(&pet).UpdateColumns(Pet{Qty: 5})", run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).UpdateColumns(Pet{Qty: 5}))
	}},
	{name: "T03-update-or", call: `db.Model(&Pet{}).Where("1=1\nOR 1=1").Update("qty", 5)`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{}).Where("1=1\nOR 1=1").Update("qty", 5))
	}},
	{name: "update-expression", call: `db.Model(&pet).Update("qty", gorm.Expr("qty + ?", 1))`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).Update("qty", gorm.Expr("qty + ?", 1)))
	}},
	{name: "update-sub-query", call: `db.Model(&pet).Update("qty", db.Model(&Knight{}).Select("SUM(gold)"))`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 2}}).Update("qty", s.fresh().Model(&Knight{}).Select("SUM(gold)")))
	}},
	{name: "update-valuer", call: `db.Model(&knight).Update("name", a gorm.Valuer)`, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Knight{Model: dal.Model{ID: 2}}).Update("name", writesItself("(SELECT MAX(name) FROM houses WHERE name <> ?)", "x")))
	}},
	{name: "T21-update-owner", call: `db.Model(&pet).Updates(map[string]any{"TENANT_ID": "b"})`, refused: errAny, run: func(s *stage) (any, error) {
		for _, column := range []string{"tenant_id", "TenantID"} {
			if err := s.fresh().Model(&Pet{Model: dal.Model{ID: 1}}).Updates(map[string]any{column: "b"}).Error; !errors.Is(err, dal.ErrImmutable) {
				return nil, nil
			}
			if err := s.fresh().Model(&Pet{Model: dal.Model{ID: 1}}).UpdateColumn(column, "b").Error; !errors.Is(err, dal.ErrImmutable) {
				return nil, nil
			}
		}
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 1}}).Updates(map[string]any{"TENANT_ID": "b"}))
	}},
	{name: "T56-update-shard-key", call: `db.Model(&pet).Update("player_id", "8")`, refused: dal.ErrImmutable, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 1}}).Update("player_id", "8"))
	}},
	{name: "update-key", call: `db.Model(&pet).Update("id", 9)`, refused: dal.ErrImmutable, run: func(s *stage) (any, error) {
		return changed(s.db.Model(&Pet{Model: dal.Model{ID: 1}}).Update("id", 9))
	}},
	{name: "delete", call: "db.Delete(&pet)", run: func(s *stage) (any, error) { return changed(s.db.Delete(&Pet{Model: dal.Model{ID: 2}})) }},
	{name: "delete-keys", call: "db.Delete(&Pet{}, []int64{1, 2})", run: func(s *stage) (any, error) { return changed(s.db.Delete(&Pet{}, []int64{1, 2})) }},
	{name: "T03-delete-or", call: `db.Where("1=1\nOR 1=1").Delete(&Pet{})`, run: func(s *stage) (any, error) { return changed(s.db.Where("1=1\nOR 1=1").Delete(&Pet{})) }},
	{name: "T13-delete-soft", call: "db.Delete(&scroll)", run: func(s *stage) (any, error) { return changed(s.db.Delete(&Scroll{Model: dal.Model{ID: 2}})) }},
	{name: "T12-delete-unscoped", call: "db.Unscoped().Delete(&scroll)", run: func(s *stage) (any, error) {
		return changed(s.db.Unscoped().Delete(&Scroll{Model: dal.Model{ID: 3}}))
	}},
	{name: "delete-with-relations", call: `db.Select("Pets").Delete(&knight)`, run: func(s *stage) (any, error) {
		return changed(s.db.Select("Pets").Delete(&Knight{Model: dal.Model{ID: 2}}))
	}},
	{name: "returning", call: "db.Clauses(clause.Returning{}).Where(...).Update(...)", run: func(s *stage) (any, error) {
		if s.kind == "mariadb" { // refused: TestWrites_Returning
			return nil, nil
		}
		var rows []Pet
		err := s.db.Model(&rows).Clauses(clause.Returning{}).Where("id < 3 OR 1=1").Update("qty", 5).Error
		return len(rows), err
	}},
	{name: "first-or-create", call: "db.Where(...).FirstOrCreate(&pet)", run: func(s *stage) (any, error) {
		p := Pet{}
		err := s.db.Where(Pet{Name: "a2"}).FirstOrCreate(&p).Error
		return shown(p), err
	}},
	{name: "first-or-create-new", call: "db.Where(...).Attrs(...).FirstOrCreate(&pet) of a name that another tenant alone has", run: func(s *stage) (any, error) {
		p := pet(0, "")
		err := s.db.Where(Pet{Name: "b2"}).Attrs(Pet{Model: dal.Model{ID: 9}, Qty: 4}).FirstOrCreate(&p).Error
		return fmt.Sprint(p.ID, p.TenantID, p.Qty), err
	}},
	{name: "T63-first-or-create-assign", call: "db.Where(...).Assign(...).FirstOrCreate(&pet)", run: func(s *stage) (any, error) {
		p := Pet{}
		err := s.db.Where(Pet{Name: "a2"}).Assign(Pet{Qty: 4}).FirstOrCreate(&p).Error
		return shown(p), err
	}},
	{name: "association-find", call: `db.Model(&knight).Association("Pets").Find(&pets)`, run: func(s *stage) (any, error) {
		var rows []Pet
		err := s.db.Model(&Knight{Model: dal.Model{ID: 1}}).Association("Pets").Find(&rows, "qty > ? OR 1=1", 0)
		return shown(rows), err
	}},
	{name: "T10-T12-association-find-many-to-many", call: `db.Unscoped().Model(&knight).Association("Badges").Find(&badges)`, run: func(s *stage) (any, error) {
		var rows []Badge
		err := s.db.Unscoped().Model(&Knight{Model: dal.Model{ID: 1}}).Association("Badges").Find(&rows)
		return shown(rows), err
	}},
	{name: "association-count", call: `db.Model(&knight).Association("Badges").Count()`, run: func(s *stage) (any, error) {
		a := s.db.Model(&Knight{Model: dal.Model{ID: 1}}).Association("Badges")
		return a.Count(), a.Error
	}},
	{name: "T20-association-append", call: `db.Model(&knight).Association("Pets").Append(&pet)`, run: func(s *stage) (any, error) {
		p := pet(3, "a3")
		return nil, s.db.Model(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Pets").Append(&p)
	}},
	{name: "T20-association-append-of-another-tenant", call: `db.Model(&knight).Association("Badges").Append(another tenant's badge)`, refused: dal.ErrTarget, before: true, run: func(s *stage) (any, error) {
		s.exec(s.tb, "UPDATE badges SET id = 33 WHERE tenant_id = 'b' AND id = 3")
		err := s.db.Model(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Badges").Append(&Badge{Model: dal.Model{ID: 33}, PlayerID: "7"})
		s.exec(s.tb, "UPDATE badges SET id = 3 WHERE tenant_id = 'b' AND id = 33")
		return nil, err
	}},
	{name: "association-replace", call: `db.Model(&knight).Association("Badges").Replace(&badge)`, run: func(s *stage) (any, error) {
		return nil, s.db.Model(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Badges").Replace(&Badge{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "a2"})
	}},
	{name: "association-delete", call: `db.Model(&knight).Association("Badges").Delete(&badge)`, run: func(s *stage) (any, error) {
		return nil, s.db.Model(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Badges").Delete(&Badge{Model: dal.Model{ID: 1}})
	}},
	{name: "association-clear", call: `db.Model(&knight).Association("Pets").Clear()`, run: func(s *stage) (any, error) {
		return nil, s.db.Model(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Pets").Clear()
	}},
	{name: "association-unscoped-clear", call: `db.Model(&knight).Association("Pets").Unscoped().Clear()`, run: func(s *stage) (any, error) {
		return nil, s.db.Model(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Pets").Unscoped().Clear()
	}},
	{name: "global", call: "db.Create(&Edict{...})", refused: dal.ErrClosedTable, run: func(s *stage) (any, error) { return changed(s.db.Create(&Edict{ID: 9, Name: "x"})) }},
	{name: "local", call: "db.Create(&Echo{...})", run: func(s *stage) (any, error) { return changed(s.db.Create(&Echo{No: 9, Name: "x"})) }},
}

// stateOf returns what a write changed and tenant a's pets after it: servers count the rows of upserts differently.
func (s *stage) stateOf(res *gorm.DB) (any, error) {
	if res.Error != nil {
		return nil, res.Error
	}
	texts := s.rec.take()
	var rows []Pet
	err := s.fresh().Order("id").Find(&rows).Error
	s.rec.put(texts)
	return shown(rows), err
}

// put gives texts back that were taken.
func (r *recorder) put(texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = texts
}

// writesItself is a gorm.Valuer: what it returns becomes part of the statement's text.
func writesItself(text string, vars ...any) gorm.Valuer { return valuer{text, vars} }

type valuer struct {
	text string
	vars []any
}

func (v valuer) GormValue(context.Context, *gorm.DB) clause.Expr {
	return clause.Expr{SQL: v.text, Vars: v.vars}
}

// changing is a driver.Valuer that gives another value each time.
type changing struct{ values []string }

func (c *changing) Value() (driver.Value, error) {
	v := c.values[0]
	if len(c.values) > 1 {
		c.values = c.values[1:]
	}
	return v, nil
}

// raw is a clause.Expression of the caller's.
type rawExpression string

func (r rawExpression) Build(b clause.Builder) { _, _ = b.WriteString(string(r)) }

// valueShapes hold field types and values that write into the statement.
var valueShapes = []shape{
	{name: "serializer", call: "a field with serializer:json", run: func(s *stage) (any, error) {
		sc := Scroll{Model: dal.Model{ID: 9}, PlayerID: "7", Title: "x", Tags: []string{"p", "q"}, Spot: Spot{Row: 1, Col: 2}}
		if err := s.db.Create(&sc).Error; err != nil {
			return nil, err
		}
		if err := s.fresh().Model(&sc).Updates(Scroll{Tags: []string{"r"}}).Error; err != nil {
			return nil, err
		}
		return find[Scroll](s.fresh().Where("id = 9"))
	}},
	{name: "embedded", call: "an embedded struct", run: func(s *stage) (any, error) {
		return find[Scroll](s.db.Where(&Scroll{Spot: Spot{Row: 1}}).Or("spot_col = ?", 2).Order("id"))
	}},
	{name: "valuer", call: `db.Where("name = ?", a gorm.Valuer)`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("name = ?", writesItself("(SELECT MAX(name) FROM pets WHERE qty < ?)", 3)))
	}},
	{name: "valuer-open", call: `db.Where("name = ?", a gorm.Valuer that leaves its parentheses)`, refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("name = ?", writesItself("'x') OR (1=1")))
	}},
	{name: "valuer-or", call: `db.Where("name = ?", a gorm.Valuer with OR)`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("name = ?", writesItself("'x' OR 1=1")))
	}},
	{name: "valuer-in-struct", call: "db.Where(eq{Value: a gorm.Valuer})", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(eq("name", writesItself("LOWER(?)", "A1"))))
	}},
	{name: "expression", call: "db.Where(a clause.Expression of the caller's)", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(rawExpression("1=1\tOR\t2=2")))
	}},
	{name: "expression-open", call: "db.Where(a clause.Expression that leaves its parentheses)", refused: dal.ErrShape, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(rawExpression("1=1) OR (2=2")))
	}},
	{name: "expression-sub-select", call: "db.Where(a clause.Expression with a sub-select)", run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where(rawExpression("gold IN (SELECT qty FROM pets WHERE qty > 1 OR 1=1)")).Order("id"))
	}},
	{name: "driver-valuer", call: `db.Where("name = ?", a driver.Valuer)`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("name = ?", &changing{[]string{"a2"}}))
	}},
	{name: "T66-driver-valuer-that-changes", call: `db.Where("tenant_id = ?", a driver.Valuer that says "a", then "b")`, refused: errAny, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("tenant_id = ?", &changing{[]string{"b", "b"}}))
	}},
	{name: "array-of-valuers", call: `db.Where("name IN ?", []driver.Valuer{...})`, run: func(s *stage) (any, error) {
		return find[Knight](s.db.Where("name IN ?", []driver.Valuer{&changing{[]string{"a1"}}, &changing{[]string{"b1"}}}))
	}},
	{name: "nil", call: `db.Where("name = ? OR 1=1", nil)`, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("name = ? OR 1=1", nil)) }},
	{name: "column-of-another-case", call: `db.Where("TENANT_ID = ?", "b")`, refused: dal.ErrTenantMismatch, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("TENANT_ID = ?", "b")) }},
	{name: "T40-number-as-tenant", call: `db.Where("tenant_id = ?", 0)`, refused: errAny, run: func(s *stage) (any, error) { return find[Knight](s.db.Where("tenant_id = ?", 0)) }},
}

package dal_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
)

func TestUpdate_EveryForm(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		pet := func() *gorm.DB { return o.as(o.a).Model(&Pet{Model: dal.Model{ID: 2}}) }
		type form struct {
			what string
			run  func() *gorm.DB
			sql  string
			rows int64
		}
		const where = " WHERE `pets`.`tenant_id` = ? AND "
		for _, f := range []form{
			{"Update", func() *gorm.DB { return pet().Update("qty", 20) }, "UPDATE `pets` SET `qty`=?,`updated_at`=?" + where + "`id` = ?", 1},
			{"Update by field", func() *gorm.DB { return pet().Update("Qty", 21) }, "UPDATE `pets` SET `qty`=?,`updated_at`=?" + where + "`id` = ?", 1},
			{"Updates, map", func() *gorm.DB { return pet().Updates(map[string]any{"qty": 22, "Name": "two"}) }, "UPDATE `pets` SET `name`=?,`qty`=?,`updated_at`=?" + where + "`id` = ?", 1},
			{"Updates, struct", func() *gorm.DB { return pet().Updates(Pet{Qty: 23}) }, "UPDATE `pets` SET `updated_at`=?,`qty`=?" + where + "`id` = ?", 1},
			{"Updates, another struct", func() *gorm.DB { return pet().Updates(struct{ Qty int64 }{24}) }, "UPDATE `pets` SET `qty`=?" + where + "`id` = ?", 1},
			{"Updates, Select", func() *gorm.DB { return pet().Select("qty").Updates(Pet{Name: "no", Qty: 0}) }, "UPDATE `pets` SET `updated_at`=?,`qty`=?" + where + "`id` = ?", 1},
			{"Updates, Select all", func() *gorm.DB {
				return pet().Select("*").Omit("created_at", "player_id").Updates(Pet{Model: dal.Model{ID: 2}, Name: "all"})
			}, "UPDATE `pets` SET `updated_at`=?,`knight_id`=?,`name`=?,`qty`=?" + where + "`id` = ?", 1},
			{"Updates, Omit", func() *gorm.DB { return pet().Omit("name").Updates(map[string]any{"name": "no", "qty": 25}) }, "UPDATE `pets` SET `qty`=?,`updated_at`=?" + where + "`id` = ?", 1},
			{"UpdateColumn", func() *gorm.DB { return pet().UpdateColumn("qty", 26) }, "UPDATE `pets` SET `qty`=?" + where + "`id` = ?", 1},
			{"UpdateColumns", func() *gorm.DB { return pet().UpdateColumns(Pet{Qty: 27}) }, "UPDATE `pets` SET `qty`=?" + where + "`id` = ?", 1},
			{"expression", func() *gorm.DB { return pet().Update("qty", gorm.Expr("qty * ? + ?", 2, 1)) }, "UPDATE `pets` SET `qty`=(qty * ? + ?),`updated_at`=?" + where + "`id` = ?", 1},
			{"clause.Set", func() *gorm.DB {
				return pet().Clauses(clause.Set{{Column: clause.Column{Name: "qty"}, Value: 28}}).Where("id = 2").Updates(map[string]any{})
			}, "UPDATE `pets` SET `qty`=?" + where + "(*)", 1},
			{"generic Set", func() *gorm.DB {
				n, err := gorm.G[Pet](o.as(o.a)).Where("id = ?", 2).Set(clause.Assignment{Column: clause.Column{Name: "qty"}, Value: 29}).Update(o.a)
				return &gorm.DB{Error: err, RowsAffected: int64(n)}
			}, "UPDATE `pets` SET `qty`=?" + where + "(id = ?)", 1},
			{"generic Update", func() *gorm.DB {
				n, err := gorm.G[Pet](o.as(o.a)).Where("id = ?", 2).Update(o.a, "qty", 30)
				return &gorm.DB{Error: err, RowsAffected: int64(n)}
			}, "UPDATE `pets` SET `qty`=?,`updated_at`=?" + where + "(id = ?)", 1},
			{"generic Updates", func() *gorm.DB {
				n, err := gorm.G[Pet](o.as(o.a)).Where("id = ?", 2).Updates(o.a, Pet{Qty: 31})
				return &gorm.DB{Error: err, RowsAffected: int64(n)}
			}, "UPDATE `pets` SET `updated_at`=?,`qty`=?" + where + "(id = ?)", 1},
			{"Table", func() *gorm.DB { return o.as(o.a).Table("pets").Where("id = ?", 2).Updates(map[string]any{"Qty": 32}) }, "UPDATE `pets` SET `qty`=?" + where + "(id = ?)", 1},
			{"Table, Update", func() *gorm.DB { return o.as(o.a).Table("pets").Where("id = ?", 2).Update("qty", 33) }, "UPDATE `pets` SET `qty`=?" + where + "(id = ?)", 1},
			{"a list as model", func() *gorm.DB {
				return o.as(o.a).Model([]*Pet{{Model: dal.Model{ID: 2}}, {Model: dal.Model{ID: 3}}}).Update("qty", 34)
			}, "UPDATE `pets` SET `qty`=?,`updated_at`=?" + where + "`id` IN (?,?)", 2},
			{"T02 OR in the text", func() *gorm.DB { return o.as(o.a).Model(&Pet{}).Where("1=1\n\tOR\n\t1=1").Update("qty", 35) }, "UPDATE `pets` SET `qty`=?,`updated_at`=?" + where + "(*)", 3},
			{"T14 all rows, asked for", func() *gorm.DB {
				return o.as(o.a).Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&Pet{}).Update("qty", 36)
			}, "UPDATE `pets` SET `qty`=?,`updated_at`=? WHERE `pets`.`tenant_id` = ?", 3},
			{"Unscoped", func() *gorm.DB { return o.as(o.a).Unscoped().Model(&Pet{}).Where("1 = 1").Update("qty", 37) }, "UPDATE `pets` SET `qty`=?,`updated_at`=?" + where + "(*)", 3},
		} {
			o.unchanged(t, func() {
				if res := f.run(); res.Error != nil || res.RowsAffected != f.rows {
					t.Errorf("%s: %d rows, %v; want %d", f.what, res.RowsAffected, res.Error, f.rows)
				}
			})
			o.sent(t, f.sql)
		}
		if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND qty = 37 AND player_id = '7' AND created_at IS NOT NULL"); got != "3" {
			t.Errorf("%s of a's pets as they should be, want 3:\n%s", got, o.dump(t, "a"))
		}
	})
}

func TestDelete_EveryForm(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		type form struct {
			what string
			run  func() *gorm.DB
			sql  string
			rows int64
		}
		const where = "DELETE FROM `pets` WHERE `pets`.`tenant_id` = ?"
		for _, f := range []form{
			{"model", func() *gorm.DB { return o.as(o.a).Delete(&Pet{Model: dal.Model{ID: 2}}) }, where + " AND `pets`.`id` = ?", 1},
			{"key", func() *gorm.DB { return o.as(o.a).Delete(&Pet{}, 2) }, where + " AND (`pets`.`id` = ?)", 1},
			{"keys", func() *gorm.DB { return o.as(o.a).Delete(&Pet{}, []int{1, 2}) }, where + " AND (`pets`.`id` IN (?,?))", 2},
			{"list", func() *gorm.DB { return o.as(o.a).Delete(&[]Pet{{Model: dal.Model{ID: 1}}, {Model: dal.Model{ID: 3}}}) }, where + " AND `pets`.`id` IN (?,?)", 2},
			{"condition", func() *gorm.DB { return o.as(o.a).Where("qty > ?", 1).Delete(&Pet{}) }, where + " AND (qty > ?)", 2},
			{"T03 OR in the text", func() *gorm.DB { return o.as(o.a).Where("1=1\nOR 1=1").Delete(&Pet{}) }, where + " AND (*)", 3},
			{"Or", func() *gorm.DB { return o.as(o.a).Where("id = 1").Or("id = 2").Delete(&Pet{}) }, where + " AND (*)", 2},
			{"Table", func() *gorm.DB { return o.as(o.a).Table("pets").Where("id = ?", 2).Delete(nil) }, where + " AND (id = ?)", 1},
			{"Table and model", func() *gorm.DB { return o.as(o.a).Table("pets").Where("id = ?", 2).Delete(&Pet{}) }, where + " AND (id = ?)", 1},
			{"Unscoped", func() *gorm.DB { return o.as(o.a).Unscoped().Delete(&Pet{Model: dal.Model{ID: 2}}) }, where + " AND `pets`.`id` = ?", 1},
			{"generic", func() *gorm.DB {
				n, err := gorm.G[Pet](o.as(o.a)).Where("id = ?", 2).Delete(o.a)
				return &gorm.DB{Error: err, RowsAffected: int64(n)}
			}, where + " AND (id = ?)", 1},
			{"all rows, asked for", func() *gorm.DB { return o.as(o.a).Session(&gorm.Session{AllowGlobalUpdate: true}).Delete(&Pet{}) }, where, 3},
		} {
			o.exec(t, "DELETE FROM pets WHERE tenant_id = 'a'", "INSERT INTO pets (tenant_id, id, player_id, name, qty) VALUES ('a', 1, '7', 'a1', 1), ('a', 2, '7', 'a2', 2), ('a', 3, '7', 'a3', 3)")
			o.unchanged(t, func() {
				if res := f.run(); res.Error != nil || res.RowsAffected != f.rows {
					t.Errorf("%s: %d rows, %v; want %d", f.what, res.RowsAffected, res.Error, f.rows)
				}
			})
			o.sent(t, f.sql)
		}
	})
}

func TestWrites_T14_MissingWhere(t *testing.T) {
	t.Parallel()
	o := newOrder(t, "sqlite")
	o.seed(t)
	before := o.dump(t, "a") + o.dump(t, "b")
	for what, run := range map[string]func() error{
		"update":        func() error { return o.as(o.a).Model(&Pet{}).Update("qty", 0).Error },
		"updates":       func() error { return o.as(o.a).Model(&Pet{}).Updates(Pet{Qty: 1}).Error },
		"update column": func() error { return o.as(o.a).Model(&Pet{}).UpdateColumn("qty", 0).Error },
		"clause.Set": func() error {
			return o.as(o.a).Model(&Pet{}).Clauses(clause.Set{{Column: clause.Column{Name: "qty"}, Value: 0}}).Updates(map[string]any{}).Error
		},
		"generic": func() error { _, err := gorm.G[Pet](o.as(o.a)).Update(o.a, "qty", 0); return err },
		"generic Set": func() error {
			_, err := gorm.G[Pet](o.as(o.a)).Set(clause.Assignment{Column: clause.Column{Name: "qty"}, Value: 0}).Update(o.a)
			return err
		},
		"generic delete":        func() error { _, err := gorm.G[Pet](o.as(o.a)).Delete(o.a); return err },
		"delete":                func() error { return o.as(o.a).Delete(&Pet{}).Error },
		"delete of no rows":     func() error { return o.as(o.a).Delete(&[]Pet{}).Error },
		"unscoped":              func() error { return o.as(o.a).Unscoped().Delete(&Pet{}).Error },
		"table update":          func() error { return o.as(o.a).Table("pets").Update("qty", 0).Error },
		"table delete":          func() error { return o.as(o.a).Table("pets").Delete(nil).Error },
		"the owner's row alone": func() error { return o.as(o.a).Delete(&KnightBadge{TenantID: "a"}).Error },
		"save without a key":    func() error { return o.as(o.a).Select("Qty").Model(&Pet{}).Updates(&Pet{Qty: 1}).Error },
	} {
		if err := run(); !errors.Is(err, gorm.ErrMissingWhereClause) {
			t.Errorf("%s: %v, want %v", what, err, gorm.ErrMissingWhereClause)
		}
		if n := o.rec.begun(); n != 0 {
			t.Errorf("%s: %d transactions were begun for what was refused", what, n)
		}
		o.sent(t)
	}
	if after := o.dump(t, "a") + o.dump(t, "b"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
}

func TestWrites_Returning(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		if o.kind == "mariadb" { // gorm would leave it out there, and the rows unread
			for what, err := range map[string]error{
				"create": o.as(o.a).Clauses(clause.Returning{}).Create(&Pet{PlayerID: "7", Name: "x"}).Error,
				"update": o.as(o.a).Model(&Pet{Model: dal.Model{ID: 1}}).Clauses(clause.Returning{}).Update("qty", 5).Error,
				"delete": o.as(o.a).Clauses(clause.Returning{}).Delete(&Pet{}, 1).Error,
			} {
				if !errors.Is(err, dal.ErrShape) {
					t.Errorf("%s: %v, want %v", what, err, dal.ErrShape)
				}
			}
			o.sent(t)
			return
		}
		o.unchanged(t, func() {
			var pets []Pet
			res := o.as(o.a).Model(&pets).Clauses(clause.Returning{}).Where("qty > ?", 1).Update("qty", gorm.Expr("qty + ?", 10))
			if res.Error != nil || res.RowsAffected != 2 || len(pets) != 2 || pets[0].TenantID != "a" || pets[1].TenantID != "a" || pets[0].Qty < 12 {
				t.Errorf("update: %d rows, %v, %+v", res.RowsAffected, res.Error, pets)
			}
			o.sent(t, "UPDATE `pets` SET `qty`=(qty + ?),`updated_at`=? WHERE `pets`.`tenant_id` = ? AND (qty > ?) RETURNING *")
			one := Pet{Model: dal.Model{ID: 2}}
			res = o.as(o.a).Model(&one).Clauses(clause.Returning{Columns: []clause.Column{{Name: "name"}}}).Update("qty", 3)
			if res.Error != nil || res.RowsAffected != 1 || one.Name != "a2" {
				t.Errorf("update: %d rows, %v, %+v", res.RowsAffected, res.Error, one)
			}
			o.sent(t, "UPDATE `pets` SET *RETURNING `name`")
			pets = nil
			res = o.as(o.a).Clauses(clause.Returning{}).Where("id <= 2").Delete(&pets)
			if res.Error != nil || res.RowsAffected != 2 || len(pets) != 2 || pets[0].TenantID != "a" {
				t.Errorf("delete: %d rows, %v, %+v", res.RowsAffected, res.Error, pets)
			}
			o.sent(t, "DELETE FROM `pets` WHERE `pets`.`tenant_id` = ? AND (id <= 2) RETURNING *")
			fresh := Pet{PlayerID: "7", Name: "fresh"}
			if err := o.as(o.a).Clauses(clause.Returning{}).Create(&fresh).Error; err != nil || fresh.TenantID != "a" || fresh.ID == 0 {
				t.Errorf("create: %+v, %v", fresh, err)
			}
			o.sent(t, "INSERT INTO `pets` *RETURNING *")
			if err := o.as(o.a).Clauses(clause.Returning{}, clause.OnConflict{DoNothing: true}).Create(&Pet{PlayerID: "7", Name: "fresh"}).Error; err != nil {
				t.Errorf("upsert: %v", err)
			}
			o.sent(t, "INSERT INTO `pets` *ON CONFLICT DO NOTHING RETURNING *")
		})
		before := o.dump(t, "b")
		var names []Pet
		if err := o.as(o.a).Clauses(clause.Returning{Columns: []clause.Column{{Name: "id, (SELECT MIN(name) FROM pets) AS name", Raw: true}}}).Where("id = 3").Delete(&names).Error; err != nil {
			t.Errorf("a sub-select: %v", err)
		}
		o.sent(t, "DELETE FROM `pets` WHERE *RETURNING id, (SELECT MIN(name) FROM pets WHERE pets.tenant_id = ?) AS name")
		if err := o.as(o.a).Clauses(clause.Returning{Columns: []clause.Column{{Name: "name), (SELECT 1", Raw: true}}}).Delete(&Pet{}, 3).Error; err == nil {
			t.Error("open parentheses were sent")
		}
		o.sent(t)
		if o.dump(t, "b") != before {
			t.Error("b's rows changed")
		}
	})
}

func TestFirstOrCreate_T63_Assign(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		o.unchanged(t, func() {
			var p Pet
			if err := o.as(o.a).Where(Pet{Name: "init"}).Attrs(Pet{Qty: 4}).Assign(Pet{PlayerID: "7"}).FirstOrInit(&p).Error; err != nil || p.Name != "init" || p.Qty != 4 || p.PlayerID != "7" {
				t.Errorf("FirstOrInit: %+v, %v", p, err)
			}
			o.sent(t, "SELECT *WHERE `pets`.`tenant_id` = ? AND (*")
			p = Pet{}
			if res := o.as(o.a).Where(Pet{Name: "made", PlayerID: "7"}).Attrs(Pet{Qty: 5}).FirstOrCreate(&p); res.Error != nil || res.RowsAffected != 1 || p.ID == 0 || p.TenantID != "a" {
				t.Errorf("FirstOrCreate: %+v, %v", p, res.Error)
			}
			o.sent(t, "SELECT *", "INSERT INTO `pets` *")
			p = Pet{}
			if err := o.as(o.a).Where("name = ?", "b1").Attrs(Pet{PlayerID: "7", Name: "b1"}).FirstOrCreate(&p).Error; err != nil || p.TenantID != "a" {
				t.Errorf("the name of b's: %+v, %v", p, err) // each tenant may have it
			}
			o.rec.take()
			p = Pet{}
			if res := o.as(o.a).Where(Pet{Name: "a2"}).Assign(Pet{Qty: 55}).FirstOrCreate(&p); res.Error != nil || res.RowsAffected != 1 || p.ID != 2 || p.Qty != 55 {
				t.Errorf("FirstOrCreate with Assign: %+v, %v", p, res.Error)
			}
			o.sent(t, "SELECT *", "UPDATE `pets` SET `qty`=?,`updated_at`=? WHERE `pets`.`tenant_id` = ? AND (*) AND `id` = ?")
			for _, assign := range []any{map[string]any{"tenant_id": "b"}, Pet{PlayerID: "8"}} {
				if err := o.as(o.a).Where(Pet{Name: "a2"}).Assign(assign).FirstOrCreate(&Pet{}).Error; !errors.Is(err, dal.ErrImmutable) {
					t.Errorf("assigned %v: %v, want %v", assign, err, dal.ErrImmutable)
				}
			}
			if err := o.as(o.a).Where(map[string]any{"name": "none", "tenant_id": "b"}).FirstOrCreate(&Pet{PlayerID: "7"}).Error; err == nil {
				t.Error("a row was made for another tenant")
			}
		})
		if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a'"); got != "5" {
			t.Errorf("%s pets of a, want 5", got)
		}
	})
}

func TestWrites_SubQueriesAsValues(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		o.exec(t, "UPDATE knights SET gold = 100 WHERE tenant_id = 'b'")
		o.unchanged(t, func() {
			sum := o.as(o.a).Model(&Knight{}).Select("SUM(gold)")
			for what, run := range map[string]func() *gorm.DB{
				"sub-query": func() *gorm.DB { return o.as(o.a).Model(&Pet{}).Where("id = ?", 1).Update("qty", sum) },
				"expression": func() *gorm.DB {
					return o.as(o.a).Model(&Pet{}).Where("id = ?", 2).Update("qty", gorm.Expr("(?)", sum))
				},
				"text": func() *gorm.DB {
					return o.as(o.a).Model(&Pet{}).Where("id = ?", 3).Update("qty", gorm.Expr("(SELECT SUM(gold) FROM knights)"))
				},
			} {
				res := run()
				texts := o.texts()
				if res.Error != nil {
					if !errors.Is(res.Error, dal.ErrShape) || len(texts) > 0 {
						t.Errorf("%s: %v, sent %q", what, res.Error, texts)
					}
					continue
				}
				if len(texts) != 1 || strings.Count(texts[0], "tenant_id` = ?")+strings.Count(texts[0], "tenant_id = ?") != 2 {
					t.Errorf("%s: sent %q", what, texts)
				}
			}
		})
		if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND qty > 6"); got != "0" {
			t.Errorf("%s pets count b's gold", got)
		}
	})
}

func TestWrites_T21_T22_T56_OwnerAndKeysNeverChange(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		before := o.dump(t, "a") + o.dump(t, "b")
		pet := func() *gorm.DB { return o.as(o.a).Model(&Pet{Model: dal.Model{ID: 1}}) }
		assign := func(column string, value any) clause.Assignment {
			return clause.Assignment{Column: clause.Column{Name: column}, Value: value}
		}
		type owner struct{ TenantID string }
		for _, c := range []struct {
			column string
			value  any
		}{
			{"tenant_id", "b"},
			{"TenantID", "b"},
			{"TENANT_ID", "b"},
			{"`tenant_id`", "b"},
			{"pets.tenant_id", "b"},
			{"tenant_id", gorm.Expr("'b'")},
			{"tenant_id", nil},
			{"tenant_id", ""},
			{"player_id", "8"},
			{"PlayerID", "8"},
			{"player_id", gorm.Expr("'8'")},
			{"player_id", nil},
			{"id", 9},
			{"ID", 9},
			{"id", gorm.Expr("id + 100")},
		} {
			for what, run := range map[string]func() error{
				"Update":        func() error { return pet().Update(c.column, c.value).Error },
				"UpdateColumn":  func() error { return pet().UpdateColumn(c.column, c.value).Error },
				"Updates":       func() error { return pet().Updates(map[string]any{"qty": 9, c.column: c.value}).Error },
				"UpdateColumns": func() error { return pet().UpdateColumns(map[string]any{"qty": 9, c.column: c.value}).Error },
				"Select":        func() error { return pet().Select("*").Updates(map[string]any{"qty": 9, c.column: c.value}).Error },
				"Table": func() error {
					return o.as(o.a).Table("pets").Where("id = 1").Updates(map[string]any{c.column: c.value}).Error
				},
				"clause.Set": func() error {
					return pet().Clauses(clause.Set{assign(c.column, c.value)}).Updates(map[string]any{}).Error
				},
				"generic Update": func() error {
					_, err := gorm.G[Pet](o.as(o.a)).Where("id = 1").Update(o.a, c.column, c.value)
					return err
				},
				"generic Set": func() error {
					_, err := gorm.G[Pet](o.as(o.a)).Where("id = 1").Set(assign("qty", 9), assign(c.column, c.value)).Update(o.a)
					return err
				},
				"OnConflict": func() error {
					on := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Set{assign("qty", 9), assign(c.column, c.value)}}
					return o.as(o.a).Clauses(on).Create(&Pet{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "a1"}).Error
				},
				"Assign": func() error {
					return o.as(o.a).Where("id = 1").Assign(map[string]any{c.column: c.value}).FirstOrCreate(&Pet{}).Error
				},
			} {
				err := run()
				if !errors.Is(err, dal.ErrImmutable) && !errors.Is(err, dal.ErrShape) {
					t.Errorf("%s of %s = %v: %v", what, c.column, c.value, err)
				}
				if left := o.writes(); len(left) > 0 {
					t.Errorf("%s of %s = %v was sent: %q", what, c.column, c.value, left)
				}
			}
		}
		for what, run := range map[string]func() error{
			"struct":         func() error { return pet().Updates(Pet{Model: dal.Model{TenantID: "b"}}).Error },
			"another struct": func() error { return pet().Updates(owner{"b"}).Error },
			"shard key":      func() error { return pet().Updates(Pet{PlayerID: "8"}).Error },
			"primary key":    func() error { return pet().Updates(Pet{Model: dal.Model{ID: 9}}).Error },
			"selected":       func() error { return pet().Select("tenant_id").Updates(Pet{Model: dal.Model{TenantID: "b"}}).Error },
			"Save":           func() error { return o.as(o.a).Save(&Pet{Model: dal.Model{ID: 1, TenantID: "b"}, PlayerID: "7"}).Error },
			"the model": func() error {
				return o.as(o.a).Model(&Pet{Model: dal.Model{ID: 1, TenantID: "b"}}).Update("qty", 9).Error
			},
			"delete": func() error { return o.as(o.a).Delete(&Pet{Model: dal.Model{ID: 1, TenantID: "b"}}).Error },
		} {
			if err := run(); !errors.Is(err, dal.ErrImmutable) && !errors.Is(err, dal.ErrTenantMismatch) {
				t.Errorf("%s: %v", what, err)
			}
			if left := o.writes(); len(left) > 0 {
				t.Errorf("%s was sent: %q", what, left)
			}
		}
		if after := o.dump(t, "a") + o.dump(t, "b"); after != before {
			t.Errorf("rows changed:\n%s", after)
		}
	})
}

func TestSave_KeyThatHoldsTheOwner(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	for _, ctx := range []struct {
		ctx  func() *gorm.DB
		note string
	}{{func() *gorm.DB { return g.player(g.b) }, "b"}, {func() *gorm.DB { return g.player(g.a) }, "a"}} {
		if err := ctx.ctx().Save(&Line{No: 1, Note: ctx.note}).Error; err != nil {
			t.Fatal(err)
		}
	}
	if err := g.player(g.a).Save(&Line{No: 1, Note: "again"}).Error; !dal.IsDuplicateKey(err) { // part of the key is zero: a create, as in gorm
		t.Errorf("without its owner: %v, want a duplicate key", err)
	}
	if err := g.player(g.a).Save(&Line{TenantID: "a", No: 1, Note: "again"}).Error; err != nil {
		t.Error(err)
	}
	if err := g.player(g.a).Save(&[]Line{{No: 1, Note: "third"}, {No: 2, Note: "third"}}).Error; err != nil {
		t.Error(err)
	}
	if err := g.player(g.a).Save(&Line{TenantID: "b", No: 1, Note: "evil"}).Error; !errors.Is(err, dal.ErrTenantMismatch) {
		t.Errorf("of b's: %v, want %v", err, dal.ErrTenantMismatch)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM lines WHERE tenant_id = 'a' AND note = 'third' OR tenant_id = 'b' AND note = 'b'"); n != 3 {
		t.Errorf("%d lines as they should be, want 3", n)
	}
}

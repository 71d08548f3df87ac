package dal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
)

func TestCreate_T24_Maps(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		one := map[string]any{"name": "one", "PlayerID": "7"}
		ptr := map[string]any{"Name": "ptr", "player_id": "7", "Qty": 5, "TenantID": "a"}
		list := []map[string]any{{"name": "list1", "player_id": "7"}, {"name": "list2", "player_id": "7", "qty": int64(2)}}
		ptrs := []map[string]any{{"name": "ptrs", "player_id": "7", "id": int64(77)}}
		table := map[string]any{"name": "table", "player_id": "7"}
		for what, db := range map[string]*gorm.DB{
			"map":          o.as(o.a).Model(&Pet{}).Create(one),
			"*map":         o.as(o.a).Model(&Pet{}).Create(&ptr),
			"[]map":        o.as(o.a).Model(&Pet{}).Create(list),
			"*[]map":       o.as(o.a).Model(&Pet{}).Create(&ptrs),
			"Table":        o.as(o.a).Table("pets").Create(table),
			"Select":       o.as(o.a).Model(&Pet{}).Select("name").Create(map[string]any{"name": "select", "qty": 1, "player_id": "7"}),
			"Omit":         o.as(o.a).Model(&Pet{}).Omit("tenant_id", "PlayerID", "id", "qty").Create(map[string]any{"name": "omit", "qty": 1, "player_id": "7", "tenant_id": "a"}),
			"Unscoped":     o.as(o.a).Unscoped().Model(&Pet{}).Create(map[string]any{"name": "unscoped", "player_id": "7"}),
			"CreateInBatc": o.as(o.a).Model(&Pet{}).CreateInBatches([]map[string]any{{"name": "b1", "player_id": "7"}, {"name": "b2", "player_id": "7"}}, 1),
			"generic Set":  {Error: gorm.G[Pet](o.as(o.a)).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "set"}, clause.Assignment{Column: clause.Column{Name: "player_id"}, Value: "7"}).Create(o.a)},
		} {
			if db.Error != nil {
				t.Errorf("%s: %v", what, db.Error)
			}
		}
		for _, text := range o.texts() {
			if n := strings.Count(text, "`tenant_id`"); strings.HasPrefix(text, "INSERT") && n != 1 {
				t.Errorf("tenant_id %d times in %s", n, text)
			}
		}
		if n := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND player_id = '7' AND id > 0"); n != "12" {
			t.Errorf("%s rows, want 12:\n%s", n, o.dump(t, "a"))
		}
		if got := o.value(t, "SELECT qty FROM pets WHERE name = 'ptr'") + o.value(t, "SELECT qty FROM pets WHERE name = 'select'") + o.value(t, "SELECT qty FROM pets WHERE name = 'list2'"); got != "52" {
			t.Errorf("quantities %q, want 5, none and 2", got)
		}
		for _, m := range []map[string]any{one, ptr, list[0], list[1], ptrs[0], table} {
			if id, ok := m["id"].(int64); !ok || id == 0 {
				t.Errorf("no id in %v", m)
			}
			if _, rowid := m["@id"]; rowid {
				t.Errorf("a row number of the database in %v", m)
			}
		}
		for what, c := range map[string]struct {
			m    any
			want error
		}{
			"another tenant":      {map[string]any{"name": "x", "player_id": "7", "tenant_id": "b"}, dal.ErrTenantMismatch},
			"another's by field":  {map[string]any{"name": "x", "player_id": "7", "TenantID": "b"}, dal.ErrTenantMismatch},
			"in the second":       {[]map[string]any{{"name": "x", "player_id": "7"}, {"name": "y", "player_id": "7", "tenant_id": "b"}}, dal.ErrTenantMismatch},
			"one column twice":    {map[string]any{"name": "x", "player_id": "7", "TenantID": "a", "tenant_id": "a"}, dal.ErrShape},
			"shard key twice":     {map[string]any{"name": "x", "player_id": "7", "PlayerID": "7"}, dal.ErrShape},
			"no column":           {map[string]any{"name": "x", "player_id": "7", "TENANT ID": "b"}, dal.ErrShape},
			"expression as owner": {map[string]any{"name": "x", "player_id": "7", "tenant_id": gorm.Expr("'b'")}, dal.ErrShape},
			"expression as key":   {map[string]any{"name": "x", "player_id": gorm.Expr("'7'")}, dal.ErrShape},
			"text as id":          {map[string]any{"name": "x", "player_id": "7", "id": "one"}, dal.ErrShape},
			"text that breaks":    {map[string]any{"player_id": "7", "name": gorm.Expr("'x'), ('b', 'x'")}, dal.ErrShape},
		} {
			err := o.as(o.a).Model(&Pet{}).Create(c.m).Error
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
			o.sent(t)
		}
		if n := o.value(t, "SELECT COUNT(*) FROM pets"); n != "12" {
			t.Errorf("%s rows after the refusals, want 12", n)
		}
	})
}

func TestCreate_ExpressionsAreValues(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		err := o.as(o.a).Model(&Pet{}).Create([]map[string]any{
			{"qty": gorm.Expr("1 + ?", 2), "name": gorm.Expr("LOWER(?)", "X"), "player_id": "7"}, {"qty": gorm.Expr("4 * ?", 2), "name": "y", "player_id": "7"},
		}).Error
		if err != nil {
			t.Fatal(err)
		}
		o.sent(t, "INSERT INTO `pets` (`id`,`name`,`player_id`,`qty`,`tenant_id`) VALUES (?,(LOWER(?)),?,(1 + ?),?),(?,?,?,(4 * ?),?)*")
		if got := o.value(t, "SELECT qty FROM pets WHERE name = 'x' AND tenant_id = 'a'") + o.value(t, "SELECT qty FROM pets WHERE name = 'y' AND tenant_id = 'a'"); got != "38" {
			t.Errorf("quantities %q, want 3 and 8", got)
		}
	})
}

func TestUpsert_T18_TargetAndGuard(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		name := []clause.Column{{Name: "player_id"}, {Name: "name"}}
		pet := func() *Pet { return &Pet{PlayerID: "7", Name: "a1", Qty: 50} }
		const (
			guard = " WHERE `pets`.`tenant_id` = `excluded`.`tenant_id`"
			row   = "INSERT INTO `pets` (`id`,`tenant_id`,`created_at`,`updated_at`,`player_id`,`knight_id`,`name`,`qty`) VALUES (?,?,?,?,?,?,?,?) "
			mine  = "IF(`pets`.`tenant_id` = VALUES(`tenant_id`), "
			key   = "ON DUPLICATE KEY UPDATE `id`=" + mine + "`id`, NULL)"
		)
		for what, c := range map[string]struct {
			on              clause.OnConflict
			sqlite, mariadb string
			qty             string
		}{
			"DoUpdates": {
				clause.OnConflict{Columns: name, DoUpdates: clause.AssignmentColumns([]string{"qty"})},
				row + "ON CONFLICT (`tenant_id`,`player_id`,`name`) DO UPDATE SET `qty`=`excluded`.`qty`" + guard,
				row + key + ",`qty`=" + mine + "VALUES(`qty`), `pets`.`qty`)", "50",
			},
			"Assignments": {
				clause.OnConflict{Columns: append(name, clause.Column{Name: "tenant_id"}), DoUpdates: clause.Assignments(map[string]any{"qty": gorm.Expr("pets.qty + ?", 7)})},
				row + "ON CONFLICT (`player_id`,`name`,`tenant_id`) DO UPDATE SET `qty`=(pets.qty + ?)" + guard,
				row + key + ",`qty`=" + mine + "(pets.qty + ?), `pets`.`qty`)", "8",
			},
			"UpdateAll": {
				clause.OnConflict{Columns: name, UpdateAll: true},
				row + "ON CONFLICT (`tenant_id`,`player_id`,`name`) DO UPDATE SET `updated_at`=?,`knight_id`=`excluded`.`knight_id`,`name`=`excluded`.`name`,`qty`=`excluded`.`qty`" + guard,
				row + key + ",`updated_at`=" + mine + "?, `pets`.`updated_at`),`knight_id`=" + mine + "VALUES(`knight_id`), `pets`.`knight_id`),`name`=" + mine +
					"VALUES(`name`), `pets`.`name`),`qty`=" + mine + "VALUES(`qty`), `pets`.`qty`)", "50",
			},
			"DoNothing": {
				clause.OnConflict{DoNothing: true}, row + "ON CONFLICT DO NOTHING", row + key, "1",
			},
			"DoNothing on columns": {
				clause.OnConflict{Columns: name, DoNothing: true}, row + "ON CONFLICT (`tenant_id`,`player_id`,`name`) DO NOTHING", row + key, "1",
			},
			"empty": {clause.OnConflict{}, row + "ON CONFLICT DO NOTHING", row + key, "1"},
		} {
			t.Run(what, func(t *testing.T) {
				o.exec(t, "UPDATE pets SET qty = 1 WHERE name = 'a1'")
				o.unchanged(t, func() {
					if err := o.as(o.a).Clauses(c.on).Create(pet()).Error; err != nil {
						t.Fatal(err)
					}
				})
				o.sent(t, o.pick(c.mariadb, c.sqlite))
				if got := o.value(t, "SELECT qty FROM pets WHERE tenant_id = 'a' AND name = 'a1'"); got != c.qty {
					t.Errorf("quantity %s, want %s", got, c.qty)
				}
				if n := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a'"); n != "3" {
					t.Errorf("%s rows, want 3", n)
				}
			})
		}
		t.Run("by id", func(t *testing.T) { // the other tenant has the same id
			o.unchanged(t, func() {
				p := Pet{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "a2", Qty: 9}
				if err := gorm.G[Pet](o.as(o.a), clause.OnConflict{UpdateAll: true}).Create(o.a, &p); err != nil {
					t.Fatal(err)
				}
				maps := []map[string]any{{"id": int64(2), "player_id": "7", "name": "a2", "qty": 10}, {"id": int64(4), "player_id": "7", "name": "a4", "qty": 4}}
				if err := o.as(o.a).Model(&Pet{}).Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"Qty"})}).Create(maps).Error; err != nil {
					t.Fatal(err)
				}
			})
			if got := o.value(t, "SELECT qty FROM pets WHERE tenant_id = 'a' AND id = 2") + o.value(t, "SELECT qty FROM pets WHERE tenant_id = 'a' AND id = 4"); got != "104" {
				t.Errorf("quantities %s, want 10 and 4", got)
			}
			o.rec.take()
		})
	})
}

func TestUpsert_ConditionsOfTheCaller(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		on := clause.OnConflict{
			Columns: []clause.Column{{Name: "PlayerID"}, {Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"qty"}),
			Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "pets.qty < ?\n\tOR\n\t1=1", Vars: []any{0}}}},
		}
		err := o.as(o.a).Clauses(on).Create(&Pet{PlayerID: "7", Name: "a1", Qty: 50}).Error
		if o.kind == "mariadb" { // gorm would drop the condition there
			if !errors.Is(err, dal.ErrShape) {
				t.Errorf("error %v, want %v", err, dal.ErrShape)
			}
			o.sent(t)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		o.sent(t, "INSERT INTO *ON CONFLICT (`tenant_id`,`player_id`,`name`) DO UPDATE SET `qty`=`excluded`.`qty` WHERE `pets`.`tenant_id` = `excluded`.`tenant_id` AND (pets.qty < ?\n\tOR\n\t1=1)")
	})
}

func TestUpsert_T17_ForeignRowsOnLooseKeys(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.loosen(t)
		if err := o.as(o.b).Create(&Pet{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "bob", Qty: 1}).Error; err != nil {
			t.Fatal(err)
		}
		name := []clause.Column{{Name: "player_id"}, {Name: "name"}}
		sum := clause.Assignments(map[string]any{"qty": gorm.Expr("pets.qty + 5"), "name": "stolen"})
		for what, run := range map[string]func(db *gorm.DB) error{
			"update all": func(db *gorm.DB) error {
				return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Pet{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "evil", Qty: 9}).Error
			},
			"update all by name": func(db *gorm.DB) error {
				return db.Clauses(clause.OnConflict{Columns: name, UpdateAll: true}).Create(&Pet{PlayerID: "7", Name: "bob", Qty: 9}).Error
			},
			"columns": func(db *gorm.DB) error {
				return db.Clauses(clause.OnConflict{Columns: name, DoUpdates: clause.AssignmentColumns([]string{"qty"})}).Create(&Pet{PlayerID: "7", Name: "bob", Qty: 9}).Error
			},
			"expressions": func(db *gorm.DB) error {
				return db.Clauses(clause.OnConflict{Columns: name, DoUpdates: sum}).Create(&Pet{PlayerID: "7", Name: "bob"}).Error
			},
			"T37 do nothing": func(db *gorm.DB) error {
				return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Pet{PlayerID: "7", Name: "bob"}).Error
			},
			"map": func(db *gorm.DB) error {
				return db.Model(&Pet{}).Clauses(clause.OnConflict{UpdateAll: true}).Create(map[string]any{"player_id": "7", "name": "bob", "qty": 9}).Error
			},
			"several": func(db *gorm.DB) error {
				return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&[]Pet{{PlayerID: "7", Name: "own", Qty: 1}, {PlayerID: "7", Name: "bob", Qty: 9}}).Error
			},
		} {
			o.unchanged(t, func() {
				err := run(o.as(o.a))
				switch {
				case o.kind == "mariadb": // which would write to the row that it meets by any key
					if !errors.Is(err, dal.ErrConflict) || !dal.IsDuplicateKey(err) || strings.Contains(err.Error(), "bob") {
						t.Errorf("%s: %v, want %v", what, err, dal.ErrConflict)
					}
				case err == nil && what != "T37 do nothing": // no key of the table is the upsert's
					t.Errorf("%s: no error", what)
				}
			})
		}
		for what, save := range map[string]func(db *gorm.DB) error{
			"Save": func(db *gorm.DB) error {
				return db.Save(&Pet{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "evil"}).Error
			},
			"Save of a list": func(db *gorm.DB) error {
				return db.Save(&[]Pet{{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "evil"}, {Model: dal.Model{ID: 5}, PlayerID: "7", Name: "five"}}).Error
			},
			"Save by name": func(db *gorm.DB) error {
				return db.Save(&Pet{Model: dal.Model{ID: 9}, PlayerID: "7", Name: "bob"}).Error
			},
			"FirstOrCreate": func(db *gorm.DB) error {
				return db.Where(Pet{Name: "bob", PlayerID: "7"}).FirstOrCreate(&Pet{}).Error
			},
			"a related row": func(db *gorm.DB) error {
				return db.Create(&Knight{PlayerID: "7", Pets: []Pet{{Name: "bob"}}}).Error
			},
			"Updates": func(db *gorm.DB) error {
				if err := db.Session(&gorm.Session{}).Create(&Pet{PlayerID: "7", Name: "own"}).Error; err != nil {
					return err
				}
				defer db.Session(&gorm.Session{}).Where("name = ?", "own").Delete(&Pet{})
				return db.Session(&gorm.Session{}).Model(&Pet{}).Where("name = ?", "own").Update("name", "bob").Error
			},
			"T47 Create": func(db *gorm.DB) error {
				return db.Create(&Pet{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "evil"}).Error
			},
		} {
			o.unchanged(t, func() {
				if err := save(o.as(o.a)); !dal.IsDuplicateKey(err) {
					t.Errorf("%s: %v, want a duplicate key", what, err)
				}
			})
		}
		if n := o.value(t, "SELECT COUNT(*) FROM pets WHERE name = 'bob' AND tenant_id = 'b' AND id = 2"); n != "1" {
			t.Error("b's pet is not b's any more")
		}
	})
}

func TestUpsert_Refused(t *testing.T) {
	t.Parallel()
	o := newOrder(t, "sqlite")
	o.seed(t)
	before := o.dump(t, "a") + o.dump(t, "b")
	set := func(column string, value any) clause.OnConflict {
		return clause.OnConflict{DoUpdates: clause.Set{{Column: clause.Column{Name: column}, Value: value}}}
	}
	for what, c := range map[string]struct {
		on   clause.Interface
		want error
	}{
		"T22 owner":        {set("tenant_id", "b"), dal.ErrImmutable},
		"owner by field":   {set("TenantID", "b"), dal.ErrImmutable},
		"owner, excluded":  {clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"tenant_id"})}, dal.ErrImmutable},
		"primary key":      {set("id", 9), dal.ErrImmutable},
		"shard key":        {clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"player_id"})}, dal.ErrImmutable},
		"constraint":       {clause.OnConflict{OnConstraint: "u"}, dal.ErrShape},
		"unknown column":   {set("TENANT ID", "b"), dal.ErrShape},
		"other table":      {clause.OnConflict{DoUpdates: clause.Set{{Column: clause.Column{Table: "knights", Name: "qty"}, Value: 1}}}, dal.ErrShape},
		"raw column":       {clause.OnConflict{DoUpdates: clause.Set{{Column: clause.Column{Raw: true, Name: "qty"}, Value: 1}}}, dal.ErrShape},
		"two assignments":  {set("qty", gorm.Expr("1, tenant_id = 'b'")), dal.ErrTenantMismatch},
		"foreign value":    {set("qty", clause.Column{Table: "knights", Name: "gold"}), dal.ErrShape},
		"raw value":        {set("name", clause.Column{Name: "name", Raw: true}), dal.ErrShape},
		"comment":          {clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"qty"}), Where: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=1 -- "}}}}, dal.ErrShape},
		"two minds":        {clause.OnConflict{DoNothing: true, UpdateAll: true}, dal.ErrShape},
		"T37 replace":      {clause.Insert{Modifier: "OR REPLACE"}, dal.ErrShape},
		"T37 ignore":       {clause.Insert{Modifier: "IGNORE"}, dal.ErrShape},
		"another table":    {clause.Insert{Table: clause.Table{Name: "knights"}}, dal.ErrShape},
		"target condition": {clause.OnConflict{DoNothing: true, TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=1"}}}}, dal.ErrShape},
	} {
		err := o.as(o.a).Clauses(c.on).Create(&Pet{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "a2"}).Error
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		o.sent(t)
	}
	if after := o.dump(t, "a") + o.dump(t, "b"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
}

func TestUpsert_ChainIsUsedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		tx := o.as(o.a).Clauses(clause.OnConflict{UpdateAll: true})
		for i := range 2 { // the same statement, twice
			if err := tx.Create(&Pet{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "x", Qty: int64(i)}).Error; err != nil {
				t.Fatal(err)
			}
		}
		if got := o.value(t, "SELECT qty FROM pets WHERE tenant_id = 'a' AND id = 1"); got != "1" {
			t.Errorf("quantity %s, want 1", got)
		}
	})
}

func TestSave_T17_InsideTheTenant(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		o.exec(t, "DELETE FROM knights WHERE tenant_id = 'a' AND id = 3") // 3 is b's alone
		o.rec.take()
		o.unchanged(t, func() {
			k := Knight{Model: dal.Model{ID: 3, CreatedAt: time.Now()}, PlayerID: "7", Name: "evil", Gold: 9}
			if res := o.as(o.a).Save(&k); res.Error != nil || res.RowsAffected != 1 || k.TenantID != "a" {
				t.Errorf("a new key: %d rows, %v, %+v", res.RowsAffected, res.Error, k)
			}
			lock := o.locked()
			o.sent(
				t, "UPDATE `knights` SET *WHERE `knights`.`tenant_id` = ? AND `id` = ? AND `knights`.`player_id` = ?",
				"SELECT `id`,`player_id` FROM `knights` WHERE `knights`.`tenant_id` = ? AND (`knights`.`id` = ?)"+lock, "INSERT INTO `knights` (*",
			)
			k.Gold, k.Name = 10, ""
			if res := o.as(o.a).Save(&k); res.Error != nil || res.RowsAffected != 1 {
				t.Errorf("an old key: %d rows, %v", res.RowsAffected, res.Error)
			}
			o.sent(t, "UPDATE `knights` SET *")
			if res := o.as(o.a).Save(&k); res.Error != nil || res.RowsAffected != 1 { // nothing but a time changes
				t.Errorf("the same again: %d rows, %v", res.RowsAffected, res.Error)
			}
			o.sent(t, "UPDATE `knights` SET *")
			fresh := Knight{PlayerID: "7", Name: "fresh"}
			if err := o.as(o.a).Save(&fresh).Error; err != nil || fresh.ID == 0 {
				t.Errorf("a zero key: %v", err)
			}
			o.sent(t, "INSERT INTO `knights` *")
			list := []Knight{{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "one"}, {Model: dal.Model{ID: 30}, PlayerID: "7", Name: "thirty"}, {PlayerID: "7", Name: "zero"}}
			if res := o.as(o.a).Save(&list); res.Error != nil || res.RowsAffected != 3 {
				t.Errorf("a list: %d rows, %v", res.RowsAffected, res.Error)
			}
			o.sent(
				t, "SELECT `id`,`player_id` FROM `knights` WHERE `knights`.`tenant_id` = ? AND (`knights`.`id` IN (?,?,?))"+lock,
				"UPDATE `knights` SET *WHERE `knights`.`tenant_id` = ? AND `id` = ?", "INSERT INTO `knights` *VALUES (?*),(?*)",
			)
			if res := o.as(o.a).Select("Gold").Save(&Knight{Model: dal.Model{ID: 2}, PlayerID: "8", Name: "no", Gold: 22}); res.Error != nil || res.RowsAffected != 1 {
				t.Errorf("selected: %d rows, %v", res.RowsAffected, res.Error)
			}
			if err := o.as(o.a).Omit("Name").Save(&Knight{Model: dal.Model{ID: 1, CreatedAt: time.Now()}, PlayerID: "7", Name: "no", Gold: 11}).Error; err != nil {
				t.Errorf("omitted: %v", err)
			}
		})
		for query, want := range map[string]string{
			"SELECT gold FROM knights WHERE tenant_id = 'a' AND id = 3": "10", "SELECT name FROM knights WHERE tenant_id = 'a' AND id = 3": "",
			"SELECT name FROM knights WHERE tenant_id = 'a' AND id = 1": "one", "SELECT gold FROM knights WHERE tenant_id = 'a' AND id = 1": "11",
			"SELECT name FROM knights WHERE tenant_id = 'a' AND id = 2": "a2", "SELECT gold FROM knights WHERE tenant_id = 'a' AND id = 2": "22",
			"SELECT COUNT(*) FROM knights WHERE tenant_id = 'a'": "6",
		} {
			if got := o.value(t, query); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		o.rec.take()
		for what, c := range map[string]struct {
			row  any
			want error
		}{
			"another tenant":         {&Knight{Model: dal.Model{ID: 1, TenantID: "b"}, PlayerID: "7"}, dal.ErrTenantMismatch},
			"another tenant, listed": {&[]Knight{{Model: dal.Model{ID: 1, TenantID: "b"}, PlayerID: "7"}}, dal.ErrTenantMismatch},
		} {
			if err := o.as(o.a).Save(c.row).Error; !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
			o.sent(t)
		}
		for what, row := range map[string]any{
			"shard key":         &Knight{Model: dal.Model{ID: 1, CreatedAt: time.Now()}, PlayerID: "8"},
			"shard key, listed": &[]Knight{{Model: dal.Model{ID: 1}, PlayerID: "8"}},
		} {
			if err := o.as(o.a).Save(row).Error; !errors.Is(err, dal.ErrImmutable) {
				t.Errorf("%s: %v, want %v", what, err, dal.ErrImmutable)
			}
		}
	})
}

func TestSave_SoftDeletedRowComesBack(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "b")
	for i, save := range []func(u *User) *gorm.DB{
		func(u *User) *gorm.DB { return g.player(g.a).Save(u) },
		func(u *User) *gorm.DB { return g.player(g.a).Save([]*User{u}) },
	} {
		id := int64(i + 1)
		if err := g.player(g.a).Delete(&User{}, id).Error; err != nil {
			t.Fatal(err)
		}
		if res := save(&User{Model: dal.Model{ID: id}, PlayerID: "7", Name: "back"}); res.Error != nil || res.RowsAffected != 1 {
			t.Errorf("%d rows, %v", res.RowsAffected, res.Error)
		}
		var u User
		if err := g.player(g.a).First(&u, id).Error; err != nil || u.Name != "back" || u.CreatedAt.IsZero() {
			t.Errorf("%+v, %v", u, err)
		}
	}
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s", after)
	}
}

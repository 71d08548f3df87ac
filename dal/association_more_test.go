package dal_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestAssociation_GenericOperations(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		set := func(where string, ops ...clause.Assigner) error {
			_, err := gorm.G[Knight](o.as(o.a)).Where(where).Set(ops...).Update(o.a)
			return err
		}
		named := func(name string) []clause.Expression {
			return []clause.Expression{clause.Eq{Column: "name", Value: name}}
		}
		qty := []clause.Assignment{{Column: clause.Column{Name: "qty"}, Value: 70}}
		o.unchanged(t, func() {
			for _, c := range []struct {
				what string
				op   clause.Association
				// what is counted afterwards, and how much it is
				query string
				want  string
			}{
				{"create from values", clause.Association{Association: "Pets", Type: clause.OpCreate, Values: []any{&Pet{Name: "v", PlayerID: "7"}}}, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND name = 'v' AND knight_id = 1", "1"},
				{"create from a set", clause.Association{Association: "Pets", Type: clause.OpCreate, Set: []clause.Assignment{{Column: clause.Column{Name: "name"}, Value: "s"}, {Column: clause.Column{Name: "player_id"}, Value: "7"}}}, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND name = 's' AND knight_id = 1", "1"},
				{"update has-many", clause.Association{Association: "Pets", Type: clause.OpUpdate, Set: qty}, "SELECT COUNT(*) FROM pets WHERE qty = 70", "3"},
				{"update has-many, some", clause.Association{Association: "Pets", Type: clause.OpUpdate, Conditions: named("v"), Set: []clause.Assignment{{Column: clause.Column{Name: "qty"}, Value: 71}}}, "SELECT COUNT(*) FROM pets WHERE qty = 71", "1"},
				{"unlink has-many", clause.Association{Association: "Pets", Type: clause.OpUnlink, Conditions: named("v")}, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND knight_id = 1", "2"},
				{"delete has-many", clause.Association{Association: "Pets", Type: clause.OpDelete}, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a'", "3"},
				{"create many-to-many", clause.Association{Association: "Badges", Type: clause.OpCreate, Values: []any{&Badge{Model: dal.Model{ID: 2}}}}, "SELECT COUNT(*) FROM knight_badges WHERE tenant_id = 'a' AND knight_id = 1", "2"},
				{"update many-to-many", clause.Association{Association: "Badges", Type: clause.OpUpdate, Set: []clause.Assignment{{Column: clause.Column{Name: "name"}, Value: "gold"}}}, "SELECT COUNT(*) FROM badges WHERE name = 'gold'", "3"}, // gorm takes every owner here: every one of a's
				{"unlink many-to-many", clause.Association{Association: "Badges", Type: clause.OpUnlink}, "SELECT COUNT(*) FROM knight_badges WHERE tenant_id = 'a' AND knight_id = 1", "0"},
				{"create belongs-to", clause.Association{Association: "House", Type: clause.OpCreate, Values: []any{&House{Name: "keep", PlayerID: "7"}}}, "SELECT COUNT(*) FROM knights WHERE tenant_id = 'a' AND house_id IS NOT NULL", "1"},
				{"update belongs-to", clause.Association{Association: "House", Type: clause.OpUpdate, Set: []clause.Assignment{{Column: clause.Column{Name: "name"}, Value: "tower"}}}, "SELECT COUNT(*) FROM houses WHERE name = 'tower'", "1"},
				{"unlink belongs-to", clause.Association{Association: "House", Type: clause.OpUnlink}, "SELECT COUNT(*) FROM knights WHERE tenant_id = 'a' AND house_id IS NOT NULL", "0"},
			} {
				o.rec.take()
				if err := set("id = 1", c.op); err != nil {
					t.Errorf("%s: %v", c.what, err)
				}
				for _, text := range o.texts() {
					if !strings.HasPrefix(text, "INSERT") && strings.Count(text, "tenant_id` = ?")+strings.Count(text, "tenant_id = ?") < strings.Count(text, "FROM")+strings.Count(text, "UPDATE `") {
						t.Errorf("%s: a table without its owner in %s", c.what, text)
					}
				}
				if got := o.value(t, c.query); got != c.want {
					t.Errorf("%s: %s, want %s", c.what, got, c.want)
				}
			}
		})
		if err := set("id = 1", clause.Association{Association: "Pets", Type: clause.OpUpdate, Set: []clause.Assignment{{Column: clause.Column{Name: "tenant_id"}, Value: "b"}}}); !errors.Is(err, dal.ErrImmutable) {
			t.Errorf("another owner for the pets: %v, want %v", err, dal.ErrImmutable)
		}
	})
}

func TestAssociation_ManyOwners(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		owners := func() *[]Knight {
			return &[]Knight{{Model: dal.Model{ID: 1}, PlayerID: "7"}, {Model: dal.Model{ID: 2}, PlayerID: "7"}}
		}
		o.unchanged(t, func() {
			if err := o.as(o.a).Model(owners()).Association("Pets").Append(&Pet{Name: "x"}, &[]Pet{{Name: "y"}, {Name: "z"}}); err != nil {
				t.Fatal(err)
			}
			if err := o.as(o.a).Model(owners()).Association("Badges").Append(&Badge{Model: dal.Model{ID: 3}}, &Badge{Model: dal.Model{ID: 3}}); err != nil {
				t.Fatal(err)
			}
			var pets []Pet
			if err := o.as(o.a).Model(owners()).Association("Pets").Find(&pets); err != nil || len(pets) != 5 {
				t.Errorf("%d pets, %v; want 5", len(pets), err)
			}
			if n := o.as(o.a).Model(owners()).Association("Badges").Count(); n != 4 {
				t.Errorf("%d badges, want 4", n)
			}
			if err := o.as(o.a).Model(owners()).Association("Badges").Delete(&Badge{Model: dal.Model{ID: 3}}); err != nil {
				t.Fatal(err)
			}
			if err := o.as(o.a).Model(owners()).Association("Pets").Clear(); err != nil {
				t.Fatal(err)
			}
		})
		if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND knight_id IS NOT NULL") + o.value(t, "SELECT COUNT(*) FROM knight_badges WHERE tenant_id = 'a'"); got != "13" {
			t.Errorf("%s pets with a knight and join rows, want 1 and 3", got)
		}
	})
}

func TestAssociation_InTransactions(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		o.foreign(t)
		row := func() *Knight {
			return &Knight{PlayerID: "7", Name: "in tx", Pets: []Pet{{Name: "p"}}, Badges: []Badge{{Name: "b"}}}
		}
		counts := func() string {
			return o.value(t, "SELECT COUNT(*) FROM knights WHERE name = 'in tx'") + o.value(t, "SELECT COUNT(*) FROM pets WHERE name = 'p'") + o.value(t, "SELECT COUNT(*) FROM badges WHERE name = 'b'")
		}
		o.unchanged(t, func() {
			err := o.Transaction(o.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
				if err := tx.Create(row()).Error; err != nil {
					return err
				}
				err := tx.Transaction(func(tx *gorm.DB) error { // goes back to its savepoint
					k := row()
					k.Pets[0].Name = "gone"
					k.Pets = append(k.Pets, Pet{Model: dal.Model{ID: 30}})
					return tx.Create(k).Error
				})
				if !errors.Is(err, dal.ErrTarget) {
					t.Errorf("nested: %v, want %v", err, dal.ErrTarget)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := counts(); got != "111" {
				t.Errorf("%s knights, pets and badges, want one of each", got)
			}
			if err := o.as(o.a).Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&Knight{PlayerID: "7", Name: "no tx", Pets: []Pet{{Name: "q"}, {Model: dal.Model{ID: 1}}}}).Error; err != nil {
				t.Errorf("without a transaction: %v", err)
			}
			if got := o.value(t, "SELECT COUNT(*) FROM pets p JOIN knights k ON k.tenant_id = p.tenant_id AND k.id = p.knight_id WHERE k.name = 'no tx'"); got != "2" {
				t.Errorf("%s pets, want 2", got)
			}
		})
	})
}

// waits returns how many sessions wait for a lock. MariaDB says it of the whole server; its list of transactions is not read anew while it is polled.
func (o *order) waits(tb testing.TB) string {
	tb.Helper()
	if o.kind == "postgres" {
		return o.value(tb, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
	}
	return o.value(tb, "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Innodb_row_lock_current_waits'")
}

func TestAssociation_T20_TargetsAreLocked(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mariadb", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := newOrder(t, kind)
			o.seed(t)
			for what, run := range map[string]func() error{
				"Append": func() error {
					return o.as(o.a).Model(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Pets").Append(&Pet{Model: dal.Model{ID: 2}})
				},
				"Save of a list": func() error {
					return o.as(o.a).Save(&[]Pet{{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "saved"}}).Error
				},
			} {
				done := make(chan error, 1)
				err := o.Transaction(o.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
					if err := tx.Delete(&Pet{}, 2).Error; err != nil {
						return err
					}
					go func() { done <- run() }()
					for o.waits(t) == "0" {
						select {
						case err := <-done:
							return fmt.Errorf("it did not wait for the lock: %w", err)
						default:
							runtime.Gosched()
						}
					}
					return nil
				})
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				err = <-done
				switch {
				case what == "Append" && !errors.Is(err, dal.ErrTarget): // the row is gone when the lock is granted
					t.Errorf("%s: %v, want %v", what, err, dal.ErrTarget)
				case what != "Append" && err != nil: // and is inserted again
					t.Errorf("%s: %v", what, err)
				}
				if err := o.as(o.a).Save(&[]Pet{{Model: dal.Model{ID: 2}, PlayerID: "7", Name: "a2"}}).Error; err != nil {
					t.Fatal(err)
				}
			}
			// A foreign key's target is held, shared, until the row that names it is committed.
			done := make(chan error, 1)
			err := o.Transaction(o.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
				id := int64(3)
				if err := tx.Create(&Pet{PlayerID: "7", KnightID: &id, Name: "late"}).Error; err != nil {
					return err
				}
				go func() { done <- o.as(o.a).Delete(&Knight{}, 3).Error }()
				for o.waits(t) == "0" {
					select {
					case err := <-done:
						return fmt.Errorf("T48: the knight could be deleted: %w", err)
					default:
						runtime.Gosched()
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWrites_T51_DryRun(t *testing.T) {
	t.Parallel()
	o := newOrder(t, "sqlite")
	o.seed(t)
	before := o.dump(t, "a") + o.dump(t, "b")
	k := func() *Knight {
		return &Knight{Model: dal.Model{ID: 1}, PlayerID: "7", Pets: []Pet{{Model: dal.Model{ID: 30}}}}
	}
	for what, c := range map[string]struct {
		fn   func(tx *gorm.DB) *gorm.DB
		want string
	}{
		"create":   {func(tx *gorm.DB) *gorm.DB { return tx.Create(k()) }, "INSERT INTO `knights` *`tenant_id`*"},
		"save":     {func(tx *gorm.DB) *gorm.DB { return tx.Save(k()) }, "UPDATE `knights` SET *WHERE `knights`.`tenant_id` = 'a' AND *"},
		"saves":    {func(tx *gorm.DB) *gorm.DB { return tx.Save([]*Knight{k()}) }, "INSERT INTO `knights` *WHERE `knights`.`tenant_id` = `excluded`.`tenant_id`*"},
		"upsert":   {func(tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(k()) }, "INSERT INTO `knights` *WHERE `knights`.`tenant_id` = `excluded`.`tenant_id`*"},
		"map":      {func(tx *gorm.DB) *gorm.DB { return tx.Model(&Pet{}).Create(map[string]any{"player_id": "7"}) }, "INSERT INTO `pets` *`tenant_id`*"},
		"update":   {func(tx *gorm.DB) *gorm.DB { return tx.Model(k()).Update("gold", 1) }, "UPDATE `knights` SET *WHERE `knights`.`tenant_id` = 'a' AND *"},
		"delete":   {func(tx *gorm.DB) *gorm.DB { return tx.Delete(k()) }, "DELETE FROM `knights` WHERE `knights`.`tenant_id` = 'a' AND *"},
		"selected": {func(tx *gorm.DB) *gorm.DB { return tx.Select("Pets").Delete(k()) }, "DELETE FROM `knights` WHERE `knights`.`tenant_id` = 'a' AND *"},
		"all rows": {func(tx *gorm.DB) *gorm.DB { return tx.Delete(&Knight{}) }, ""},
		"foreign":  {func(tx *gorm.DB) *gorm.DB { return tx.Create(&Pet{Model: dal.Model{TenantID: "b"}, PlayerID: "7"}) }, ""},
	} {
		if got := o.as(o.a).ToSQL(c.fn); !like(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		o.sent(t)
	}
	if after := o.dump(t, "a") + o.dump(t, "b"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
}

func TestAssociation_ForeignKeyIsTheShardKey(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "b")
	u := User{PlayerID: "7", Name: "new", Items: []Item{{Name: "fresh"}, {Model: dal.Model{ID: 1}}}}
	if err := g.player(g.a).Create(&u).Error; err != nil {
		t.Fatal(err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM items WHERE tenant_id = 'a' AND player_id = '7' AND name IN ('fresh', 'a-item')"); n != 4 {
		t.Errorf("%d items of player 7, want 4", n)
	}
	var items []Item
	if err := g.player(g.a).Model(&u).Association("Items").Find(&items); err != nil || len(items) != 4 {
		t.Errorf("%d items, %v; want 4", len(items), err)
	}
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s", after)
	}
}

func TestWrites_SystemScope(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "a") + g.dump(t, "b")
	sys := tenant.System(t.Context(), "catalogue", "catalogs", "users", "items")
	places, err := g.Places(sys)
	if err != nil {
		t.Fatal(err)
	}
	at := func() *gorm.DB { return g.OnPlace(sys, places[0]) }
	if err := at().Save(&Catalog{ID: 1, Name: "one"}).Error; err != nil {
		t.Errorf("Save of a new row: %v", err)
	}
	if err := at().Save(&Catalog{ID: 1, Name: "uno"}).Error; err != nil {
		t.Errorf("Save of an old row: %v", err)
	}
	if err := at().Save(&[]Catalog{{ID: 1, Name: "eins"}, {ID: 2, Name: "zwei"}}).Error; err != nil {
		t.Errorf("Save of a list: %v", err)
	}
	if err := at().Clauses(clause.OnConflict{UpdateAll: true}).Create(&[]Catalog{{ID: 2, Name: "due"}, {ID: 3, Name: "tre"}}).Error; err != nil {
		t.Errorf("upsert: %v", err)
	}
	if err := at().Clauses(clause.OnConflict{DoNothing: true}).Create(&Catalog{ID: 3, Name: "no"}).Error; err != nil {
		t.Errorf("upsert that does nothing: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM catalogs WHERE id = 1 AND name = 'eins' OR id = 2 AND name = 'due' OR id = 3 AND name = 'tre'"); n != 3 {
		t.Errorf("%d entries as they should be, want 3", n)
	}
	for what, err := range map[string]error{
		"Save":           at().Save(&User{Model: dal.Model{ID: 1, TenantID: "a"}, PlayerID: "7", Name: "x"}).Error,
		"Save of a list": at().Save(&[]User{{Model: dal.Model{ID: 1, TenantID: "a"}, PlayerID: "7", Name: "x"}}).Error,
		"relation":       at().Create(&User{Model: dal.Model{TenantID: "a"}, PlayerID: "7", Items: []Item{{Name: "x"}}}).Error,
		"no owner":       at().Create(&User{PlayerID: "7"}).Error,
		"map, no owner":  at().Model(&User{}).Create(map[string]any{"player_id": "7"}).Error,
	} {
		if err == nil {
			t.Errorf("%s under a system scope was sent", what)
		}
	}
	if after := g.dump(t, "a") + g.dump(t, "b"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
}

func TestAssociation_ChainIsUsedAgain(t *testing.T) {
	t.Parallel()
	o := newOrder(t, "sqlite")
	o.seed(t)
	tx := o.as(o.a).Select("*") // one statement for all that follows
	k := &Knight{PlayerID: "7", Name: "k", Pets: []Pet{{Name: "first"}}}
	if err := tx.Create(k).Error; err != nil {
		t.Fatal(err)
	}
	k.Pets[0] = Pet{Name: "second"} // at the same address
	if err := tx.Save(k).Error; err != nil {
		t.Fatal(err)
	}
	if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND name IN ('first', 'second') AND knight_id = ?", k.ID); got != "2" {
		t.Errorf("%s pets, want 2", got)
	}
}

func TestUpsert_ExpressionsOverTheNewRow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		o.exec(t, "UPDATE knights SET gold = 100 WHERE tenant_id = 'b'")
		o.unchanged(t, func() {
			fresh := o.pick("pets.qty + VALUES(qty)", "pets.qty + excluded.qty")
			for what, c := range map[string]struct {
				value any
				want  string
			}{
				"both rows":  {gorm.Expr(fresh), "51"},
				"sub-query":  {gorm.Expr("(?)", o.as(o.a).Model(&Knight{}).Select("MAX(gold)")), "3"},
				"query text": {gorm.Expr("(SELECT MAX(gold) FROM knights)"), "3"},
			} {
				o.exec(t, "UPDATE pets SET qty = 1 WHERE name = 'a1'")
				on := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"qty": c.value})}
				if err := o.as(o.a).Clauses(on).Create(&Pet{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "a1", Qty: 50}).Error; err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if got := o.value(t, "SELECT qty FROM pets WHERE name = 'a1'"); got != c.want {
					t.Errorf("%s: %s, want %s", what, got, c.want)
				}
			}
			err := o.as(o.a).Model(&Pet{}).Create(map[string]any{"player_id": "7", "name": "rich", "qty": gorm.Expr("(?)", o.as(o.a).Model(&Knight{}).Select("MAX(gold)"))}).Error
			if got := o.value(t, "SELECT MAX(qty) FROM pets WHERE name = 'rich'"); err != nil || got != "3" {
				t.Errorf("a sub-query as an inserted value: %s, %v; want 3", got, err)
			}
			if err := o.as(o.a).Model(&Pet{Model: dal.Model{ID: 1}}).Update("qty", o.as(o.b).Model(&Knight{}).Select("MAX(gold)")).Error; !errors.Is(err, dal.ErrTenantMismatch) {
				t.Errorf("a sub-query of b's handle: %v, want %v", err, dal.ErrTenantMismatch)
			}
		})
	})
}

func TestAssociation_UpsertThatMeetsARow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.exec(t, "CREATE UNIQUE INDEX knights_name ON knights (tenant_id, player_id, name)")
		o.seed(t)
		before := o.dump(t, "a")
		name := []clause.Column{{Name: "player_id"}, {Name: "name"}}
		for what, on := range map[string]clause.OnConflict{"nothing": {DoNothing: true}, "update": {Columns: name, DoUpdates: clause.AssignmentColumns([]string{"gold"})}} {
			err := o.as(o.a).Clauses(on).Create(&Knight{PlayerID: "7", Name: "a1", Gold: 9, Pets: []Pet{{Name: "lost"}}, Badges: []Badge{{Model: dal.Model{ID: 1}}}}).Error
			if !errors.Is(err, dal.ErrTarget) { // the id that the pets would name is nobody's
				t.Errorf("%s: %v, want %v", what, err, dal.ErrTarget)
			}
			if after := o.dump(t, "a"); after != before {
				t.Errorf("%s: rows changed from\n%s\nto\n%s", what, before, after)
			}
		}
		on := clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"gold"})}
		if err := o.as(o.a).Clauses(on).Create(&Knight{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "a1", Gold: 9, Pets: []Pet{{Name: "found"}}}).Error; err != nil {
			t.Errorf("by its id: %v", err)
		}
		if got := o.value(t, "SELECT COUNT(*) FROM pets p JOIN knights k ON k.tenant_id = p.tenant_id AND k.id = p.knight_id WHERE p.name = 'found' AND k.gold = 9"); got != "1" {
			t.Errorf("%s pets of the knight that was there, want 1", got)
		}
	})
}

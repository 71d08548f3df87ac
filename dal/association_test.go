package dal_test

import (
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// foreign makes rows that tenant b alone has, with the id 30 in every table.
func (o *order) foreign(tb testing.TB) {
	tb.Helper()
	m := dal.Model{ID: 30}
	for _, row := range []any{
		&House{Model: m, PlayerID: "7", Name: "b30"}, &Knight{Model: m, PlayerID: "7", Name: "b30"}, &Seat{Model: m, PlayerID: "7", Name: "b30"},
		&Pet{Model: m, PlayerID: "7", Name: "b30"}, &Badge{Model: m, PlayerID: "7", Name: "b30"}, &Note{Model: m, PlayerID: "7", Text: "b30"},
	} {
		if err := o.as(o.b).Create(row).Error; err != nil {
			tb.Fatal(err)
		}
	}
	o.rec.take()
}

// writes returns the statements since the last call that are not reads.
func (o *order) writes() []string {
	var out []string
	for _, text := range o.texts() {
		if !strings.HasPrefix(text, "SELECT") {
			out = append(out, text)
		}
	}
	return out
}

func TestAssociation_NestedCreate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		k := Knight{
			PlayerID: "7", Name: "new", House: &House{Name: "manor"}, Seat: &Seat{Name: "chair"}, Pets: []Pet{{Name: "p1"}, {Name: "p2"}, {Model: dal.Model{ID: 1}}},
			Badges: []Badge{{Name: "first"}, {Model: dal.Model{ID: 2}}}, Notes: []Note{{Text: "n"}},
		}
		o.unchanged(t, func() {
			if err := o.as(o.a).Create(&k).Error; err != nil {
				t.Fatal(err)
			}
		})
		lock := o.locked()
		o.sent(
			t, "SELECT `id`,`player_id`,`knight_id` FROM `pets` WHERE `pets`.`tenant_id` = ? AND (`pets`.`id` = ?)"+lock,
			"SELECT `id`,`player_id` FROM `badges` WHERE `badges`.`tenant_id` = ? AND (`badges`.`id` = ?)"+lock,
			"INSERT INTO `houses` *", "INSERT INTO `knights` *", "INSERT INTO `seats` *", "UPDATE `pets` SET `knight_id`=? WHERE `pets`.`tenant_id` = ? AND (`pets`.`id` = ?)",
			"INSERT INTO `pets` *VALUES (?*),(?*)", "INSERT INTO `notes` *", "INSERT INTO `badges` *",
			o.pick("INSERT INTO `knight_badges` *ON DUPLICATE KEY UPDATE *", "INSERT INTO `knight_badges` *ON CONFLICT DO NOTHING*"),
		)
		for query, want := range map[string]string{
			"SELECT COUNT(*) FROM knights k JOIN houses h ON h.id = k.house_id AND h.tenant_id = k.tenant_id WHERE k.tenant_id = 'a' AND k.id = ? AND h.name = 'manor'": "1",
			"SELECT COUNT(*) FROM seats WHERE tenant_id = 'a' AND knight_id = ? AND name = 'chair' AND player_id = '7'":                                                 "1",
			"SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND knight_id = ? AND name IN ('p1', 'p2', 'a1') AND player_id = '7'":                                      "3",
			"SELECT COUNT(*) FROM notes WHERE tenant_id = 'a' AND subject_id = ? AND subject_type = 'knights'":                                                          "1",
			"SELECT COUNT(*) FROM knight_badges WHERE tenant_id = 'a' AND knight_id = ? AND player_id = '7'":                                                            "2",
		} {
			if got := o.value(t, query, k.ID); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		if got := o.value(t, "SELECT name FROM pets WHERE tenant_id = 'a' AND id = 1"); got != "a1" {
			t.Errorf("the pet that was only named is now called %q", got)
		}
	})
}

func TestAssociation_T19_T20_ForeignTargets(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		o.foreign(t)
		m := dal.Model{ID: 30} // b's
		knight := func() *Knight { return &Knight{Model: dal.Model{ID: 1}, PlayerID: "7"} }
		assoc := func(name string) *gorm.Association { return o.as(o.a).Model(knight()).Association(name) }
		before := o.dump(t, "a")
		for what, run := range map[string]func() error{
			"create, belongs-to": func() error { return o.as(o.a).Create(&Knight{PlayerID: "7", House: &House{Model: m}}).Error },
			"create, has-one":    func() error { return o.as(o.a).Create(&Knight{PlayerID: "7", Seat: &Seat{Model: m}}).Error },
			"create, has-many": func() error {
				return o.as(o.a).Create(&Knight{PlayerID: "7", Pets: []Pet{{Name: "new"}, {Model: m}}}).Error
			},
			"create, many-to-many": func() error { return o.as(o.a).Create(&Knight{PlayerID: "7", Badges: []Badge{{Model: m}}}).Error },
			"create, polymorphic":  func() error { return o.as(o.a).Create(&Knight{PlayerID: "7", Notes: []Note{{Model: m}}}).Error },
			"create, no target save": func() error {
				return o.as(o.a).Omit("Badges.*").Create(&Knight{PlayerID: "7", Badges: []Badge{{Model: m}}}).Error
			},
			"create, full": func() error {
				return o.as(o.a).Session(&gorm.Session{FullSaveAssociations: true}).Create(&Knight{PlayerID: "7", Pets: []Pet{{Model: m}}}).Error
			},
			"save":            func() error { k := knight(); k.Pets = []Pet{{Model: m}}; return o.as(o.a).Save(k).Error },
			"save a list":     func() error { k := knight(); k.Pets = []Pet{{Model: m}}; return o.as(o.a).Save([]*Knight{k}).Error },
			"updates":         func() error { k := knight(); k.Badges = []Badge{{Model: m}}; return o.as(o.a).Updates(k).Error },
			"append pet":      func() error { return assoc("Pets").Append(&Pet{Model: m}) },
			"append badge":    func() error { return assoc("Badges").Append(&Badge{Model: m}) },
			"append note":     func() error { return assoc("Notes").Append(&Note{Model: m}) },
			"append house":    func() error { return assoc("House").Append(&House{Model: m}) },
			"append seat":     func() error { return assoc("Seat").Append(&Seat{Model: m}) },
			"replace pets":    func() error { return assoc("Pets").Replace(&Pet{Model: m}) },
			"replace badges":  func() error { return assoc("Badges").Replace(&Badge{Model: m}) },
			"unscoped append": func() error { return assoc("Pets").Unscoped().Append(&Pet{Model: m}) },
			"foreign owner, pets": func() error {
				return o.as(o.a).Model(&Knight{Model: m, PlayerID: "7"}).Association("Pets").Append(&Pet{Model: dal.Model{ID: 1}})
			},
			"foreign owner, badges": func() error {
				return o.as(o.a).Model(&Knight{Model: m, PlayerID: "7"}).Association("Badges").Append(&Badge{Model: dal.Model{ID: 1}})
			},
			"T48 create": func() error { return o.as(o.a).Create(&Pet{PlayerID: "7", KnightID: &m.ID, Name: "x"}).Error },
			"T48 create a list": func() error {
				one := int64(1)
				return o.as(o.a).Create(&[]Pet{{PlayerID: "7", KnightID: &one, Name: "x"}, {PlayerID: "7", KnightID: &m.ID, Name: "y"}}).Error
			},
			"T48 create from map": func() error {
				return o.as(o.a).Model(&Pet{}).Create(map[string]any{"player_id": "7", "KnightID": 30, "name": "x"}).Error
			},
			"T48 upsert": func() error {
				return o.as(o.a).Clauses(clause.OnConflict{UpdateAll: true}).Create(&Pet{Model: dal.Model{ID: 1}, PlayerID: "7", KnightID: &m.ID, Name: "x"}).Error
			},
			"T48 update": func() error { return o.as(o.a).Model(&Pet{}).Where("id = ?", 1).Update("knight_id", 30).Error },
			"T48 updates": func() error {
				return o.as(o.a).Model(&Pet{Model: dal.Model{ID: 1}}).Updates(Pet{KnightID: &m.ID}).Error
			},
			"T48 save": func() error {
				return o.as(o.a).Save(&Pet{Model: dal.Model{ID: 1}, PlayerID: "7", KnightID: &m.ID}).Error
			},
			"T48 generic": func() error {
				_, err := gorm.G[Pet](o.as(o.a)).Where("id = ?", 1).Set(clause.Assignment{Column: clause.Column{Name: "knight_id"}, Value: 30}).Update(o.a)
				return err
			},
			"T48 table": func() error {
				return o.as(o.a).Table("pets").Where("id = ?", 1).Updates(map[string]any{"knight_id": 30}).Error
			},
			"T48 another struct": func() error {
				return o.as(o.a).Model(&Pet{Model: dal.Model{ID: 1}}).Updates(struct{ KnightID int64 }{30}).Error
			},
			"T48 upsert, assigned": func() error {
				return o.as(o.a).Clauses(clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"knight_id": 30})}).Create(&Pet{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "x"}).Error
			},
			"map with a row": func() error {
				return o.as(o.a).Model(&Pet{Model: dal.Model{ID: 1}}).Updates(map[string]any{"Knight": &Knight{Model: m}}).Error
			},
		} {
			o.unchanged(t, func() {
				if err := run(); !errors.Is(err, dal.ErrTarget) {
					t.Errorf("%s: %v, want %v", what, err, dal.ErrTarget)
				}
			})
			for _, text := range o.writes() {
				if strings.Contains(what, "foreign owner") || what == "save" && strings.HasPrefix(text, "UPDATE `knights`") {
					continue
				}
				t.Errorf("%s: written before it was refused: %s", what, text)
			}
		}
		if after := o.dump(t, "a"); after != before {
			t.Errorf("tenant a's rows changed from\n%s\nto\n%s", before, after)
		}
	})
}

func TestAssociation_Mode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		// Rows that only a fault, or raw SQL, could make: tenant b's join rows and pets name what both tenants have.
		o.exec(t, "INSERT INTO knight_badges (tenant_id, knight_id, badge_id, player_id) VALUES ('b', 1, 2, '7'), ('b', 1, 3, '7')")
		one := &Knight{Model: dal.Model{ID: 1}, PlayerID: "7"}
		assoc := func(name string) *gorm.Association {
			return o.as(o.a).Model(&Knight{Model: one.Model, PlayerID: "7"}).Association(name)
		}
		names := func(table string) string {
			return o.value(t, map[string]string{
				"pets": "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND knight_id = 1", "badges": "SELECT COUNT(*) FROM knight_badges WHERE tenant_id = 'a' AND knight_id = 1",
				"notes": "SELECT COUNT(*) FROM notes WHERE tenant_id = 'a' AND subject_id = 1 AND subject_type = 'knights'",
			}[table])
		}
		o.unchanged(t, func() {
			t.Run("T10 Find and Count over a join table", func(t *testing.T) {
				var badges []Badge
				if err := assoc("Badges").Find(&badges); err != nil || len(badges) != 1 || badges[0].Name != "a1" {
					t.Errorf("%+v, %v; want a's badge 1", badges, err)
				}
				o.sent(t, "SELECT *FROM `badges` JOIN `knight_badges` ON `knight_badges`.`badge_id` = `badges`.`id` AND `knight_badges`.`knight_id` = ? WHERE `badges`.tenant_id = ? AND `knight_badges`.tenant_id = ?")
				if n := assoc("Badges").Count(); n != 1 {
					t.Errorf("count %d, want 1", n)
				}
				o.sent(t, "SELECT count(*) FROM `badges` JOIN `knight_badges` ON `knight_badges`.`badge_id` = `badges`.`id` AND `knight_badges`.`knight_id` = ? WHERE `badges`.tenant_id = ? AND `knight_badges`.tenant_id = ?")
				unscoped := o.as(o.a).Unscoped().Model(one).Association("Badges")
				if n := unscoped.Count(); n != 1 || unscoped.Error != nil {
					t.Errorf("T12: unscoped count %d, %v; want 1", n, unscoped.Error)
				}
				var k Knight
				if err := o.as(o.a).Preload(clause.Associations).First(&k, 1).Error; err != nil || len(k.Badges) != 1 || k.Badges[0].Name != "a1" || len(k.Pets) != 1 || len(k.Notes) != 1 || k.Seat == nil {
					t.Errorf("preloaded %+v, %v", k, err)
				}
				for _, text := range o.texts() {
					if n := strings.Count(strings.ReplaceAll(text, "`tenant_id`", "tenant_id"), "tenant_id = ?"); n != strings.Count(text, "FROM")+strings.Count(text, "JOIN") {
						t.Errorf("a table without its owner in %s", text)
					}
				}
			})
			t.Run("Append", func(t *testing.T) {
				p := Pet{Name: "appended"}
				if err := assoc("Pets").Append(&p, &Pet{Model: dal.Model{ID: 2}}); err != nil || p.ID == 0 || p.KnightID == nil || *p.KnightID != 1 {
					t.Errorf("%+v, %v", p, err)
				}
				if err := assoc("Pets").Append(map[string]any{"name": "from a map", "player_id": "7"}); err != nil {
					t.Error(err)
				}
				if err := assoc("Badges").Append(&Badge{Model: dal.Model{ID: 2}}, &Badge{Name: "appended"}); err != nil {
					t.Error(err)
				}
				if err := assoc("Badges").Append([]Badge{{Model: dal.Model{ID: 2}}}); err != nil { // again
					t.Error(err)
				}
				if err := assoc("Notes").Append(&Note{Text: "appended"}, &Note{Model: dal.Model{ID: 3}}); err != nil {
					t.Error(err)
				}
				if got := names("pets") + names("badges") + names("notes"); got != "433" {
					t.Errorf("%s pets, badges and notes, want 4, 3 and 3", got)
				}
				if err := assoc("House").Append(&House{Model: dal.Model{ID: 2}}); err != nil {
					t.Error(err)
				}
				if got := o.value(t, "SELECT house_id FROM knights WHERE tenant_id = 'a' AND id = 1"); got != "2" {
					t.Errorf("house %s, want 2", got)
				}
				if err := assoc("Seat").Append(&Seat{Name: "better"}); err != nil {
					t.Error(err)
				}
				if got := o.value(t, "SELECT COUNT(*) FROM seats WHERE tenant_id = 'a' AND knight_id = 1"); got != "1" {
					t.Errorf("%s seats, want 1: the old one is let go", got)
				}
			})
			t.Run("Replace", func(t *testing.T) {
				if err := assoc("Pets").Replace(&Pet{Model: dal.Model{ID: 2}}, &Pet{Model: dal.Model{ID: 3}}); err != nil {
					t.Error(err)
				}
				if err := assoc("Badges").Replace(&Badge{Model: dal.Model{ID: 1}}, &Badge{Model: dal.Model{ID: 3}}); err != nil {
					t.Error(err)
				}
				if err := assoc("House").Replace(&House{Name: "third"}); err != nil {
					t.Error(err)
				}
				if got := names("pets") + names("badges"); got != "22" {
					t.Errorf("%s pets and badges, want 2 and 2", got)
				}
			})
			t.Run("Delete", func(t *testing.T) {
				o.rec.take()
				if err := assoc("Pets").Delete(&Pet{Model: dal.Model{ID: 2}}); err != nil {
					t.Error(err)
				}
				o.sent(t, "UPDATE `pets` SET `knight_id`=? WHERE `pets`.`tenant_id` = ? AND (*)")
				if err := assoc("Badges").Delete(&Badge{Model: dal.Model{ID: 3}}); err != nil {
					t.Error(err)
				}
				o.sent(t, "DELETE FROM `knight_badges` WHERE `knight_badges`.`tenant_id` = ? AND (*)")
				if err := assoc("Pets").Unscoped().Delete(&Pet{Model: dal.Model{ID: 3}}); err != nil {
					t.Error(err)
				}
				o.sent(t, "DELETE FROM `pets` WHERE `pets`.`tenant_id` = ? AND (*)")
				if got := names("pets") + names("badges"); got != "01" {
					t.Errorf("%s pets and badges, want none and 1", got)
				}
				if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND id IN (2, 3)"); got != "1" {
					t.Errorf("%s of the two pets left, want 1", got)
				}
			})
			t.Run("Clear", func(t *testing.T) {
				for _, name := range []string{"Pets", "Badges", "House", "Seat"} {
					if err := assoc(name).Clear(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				if got := names("pets") + names("badges") + o.value(t, "SELECT COUNT(*) FROM seats WHERE tenant_id = 'a' AND knight_id = 1"); got != "000" {
					t.Errorf("%s pets, badges and seats, want none", got)
				}
				if got := o.value(t, "SELECT house_id FROM knights WHERE tenant_id = 'a' AND id = 1"); got != "" {
					t.Errorf("house %s, want none", got)
				}
				if err := assoc("Notes").Unscoped().Clear(); err != nil {
					t.Error(err)
				}
				if got := names("notes"); got != "0" {
					t.Errorf("%s notes, want none", got)
				}
			})
		})
	})
}

func TestAssociation_SelectedDelete(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		o.unchanged(t, func() {
			if err := o.as(o.a).Select("Pets", "Badges").Delete(&Knight{Model: dal.Model{ID: 1}}).Error; err != nil {
				t.Fatal(err)
			}
			texts := o.texts()
			if len(texts) != 3 {
				t.Errorf("sent %q", texts)
			}
			for _, text := range texts {
				if !strings.HasPrefix(text, "DELETE FROM") || strings.Count(text, "`tenant_id` = ?") != 1 {
					t.Errorf("sent %s", text)
				}
			}
			if err := o.as(o.a).Select(clause.Associations).Delete(&Knight{Model: dal.Model{ID: 2}}).Error; err != nil {
				t.Fatal(err)
			}
		})
		got := ""
		for _, table := range []string{"knights", "pets", "knight_badges", "seats", "notes", "badges"} {
			got += o.value(t, "SELECT COUNT(*) FROM "+table+" WHERE tenant_id = 'a'")
		}
		if got != "111223" {
			t.Errorf("rows left %s, want 1 knight, 1 pet, 1 join row, 2 seats, 2 notes, 3 badges", got)
		}
	})
}

func TestAssociation_SelectAndOmit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o *order) {
		o.seed(t)
		full := func() *gorm.DB { return o.as(o.a).Session(&gorm.Session{FullSaveAssociations: true}) }
		row := func() *Knight {
			return &Knight{PlayerID: "7", Name: "k", Pets: []Pet{{Name: "pet", Qty: 5}}, Badges: []Badge{{Model: dal.Model{ID: 2}, Name: "renamed"}}, House: &House{Model: dal.Model{ID: 2}, Name: "renamed"}}
		}
		counts := func() string {
			return o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a'") + o.value(t, "SELECT COUNT(*) FROM knight_badges WHERE tenant_id = 'a'") + o.value(t, "SELECT COUNT(*) FROM knights WHERE tenant_id = 'a' AND house_id = 2")
		}
		o.unchanged(t, func() {
			for _, c := range []struct {
				what, want string
				db         *gorm.DB
			}{
				{"omit all", "330", o.as(o.a).Omit(clause.Associations)},
				{"omit pets and house", "340", o.as(o.a).Omit("Pets", "House")},
				{"select house", "341", o.as(o.a).Select("Name", "House", "HouseID")},
				{"omit the badges' rows", "352", o.as(o.a).Omit("Badges.*", "Pets")},
			} {
				if err := c.db.Create(row()).Error; err != nil {
					t.Fatalf("%s: %v", c.what, err)
				}
				if got := counts(); got != c.want {
					t.Errorf("%s: %s pets, join rows and knights of house 2, want %s", c.what, got, c.want)
				}
			}
			if got := o.value(t, "SELECT name FROM badges WHERE tenant_id = 'a' AND id = 2") + o.value(t, "SELECT name FROM houses WHERE tenant_id = 'a' AND id = 2"); got != "a2a2" {
				t.Errorf("names %s: a row that was only named was written", got)
			}
			if err := o.as(o.a).Select("Name", "Pets.Name", "Pets").Create(row()).Error; err != nil {
				t.Fatal(err)
			}
			if got := o.value(t, "SELECT qty FROM pets WHERE tenant_id = 'a' AND name = 'pet'"); got != "" && got != "0" {
				t.Errorf("quantity %s: its column was not selected", got)
			}
			full2 := row()
			full2.Pets = []Pet{{Model: dal.Model{ID: 3}, Name: "renamed", Qty: 33}}
			if err := full().Create(full2).Error; err != nil {
				t.Fatal(err)
			}
			if got := o.value(t, "SELECT name FROM badges WHERE tenant_id = 'a' AND id = 2") + o.value(t, "SELECT name FROM houses WHERE tenant_id = 'a' AND id = 2") +
				o.value(t, "SELECT name FROM pets WHERE tenant_id = 'a' AND id = 3"); got != "renamedrenamedrenamed" {
				t.Errorf("names %s: full save writes the related rows", got)
			}
			if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND id = 3 AND created_at IS NOT NULL AND knight_id = ?", full2.ID); got != "1" {
				t.Error("the pet lost its owner or its time of creation")
			}
			if err := full().Session(&gorm.Session{}).Save(&Knight{Model: dal.Model{ID: 99}, PlayerID: "7", Name: "saved", Pets: []Pet{{Name: "fresh"}, {Model: dal.Model{ID: 3}, Name: "again"}}}).Error; err != nil {
				t.Fatal(err)
			}
			if got := o.value(t, "SELECT COUNT(*) FROM pets WHERE tenant_id = 'a' AND knight_id = 99 AND name IN ('fresh', 'again')"); got != "2" {
				t.Errorf("%s pets of the saved knight, want 2", got)
			}
			up := &Knight{Model: dal.Model{ID: 1}, Name: "updated", Pets: []Pet{{Name: "by update"}}}
			if err := o.as(o.a).Updates(up).Error; err != nil {
				t.Fatal(err)
			}
			if got := o.value(t, "SELECT player_id FROM pets WHERE tenant_id = 'a' AND knight_id = 1 AND name = 'by update'"); got != "7" {
				t.Errorf("shard key %q, want the owner's", got)
			}
			circle := &Knight{PlayerID: "7", Name: "circle", Pets: []Pet{{Name: "circle"}}}
			circle.Pets[0].Knight = circle
			if err := o.as(o.a).Create(circle).Error; err != nil {
				t.Errorf("rows that name each other: %v", err)
			}
			if got := o.value(t, "SELECT COUNT(*) FROM pets p JOIN knights k ON k.tenant_id = p.tenant_id AND k.id = p.knight_id WHERE p.name = 'circle' AND k.name = 'circle'"); got != "1" {
				t.Errorf("%s circles, want 1", got)
			}
		})
	})
}

func TestAssociation_OtherPlaces(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "a") + g.dump(t, "b")
	elsewhere := ""
	for i := 8; elsewhere == ""; i++ {
		if r, err := g.Route(g.a, dal.Key("player", i)); err != nil {
			t.Fatal(err)
		} else if r.Place.Shard == g.other(t) {
			elsewhere = strconv.Itoa(i)
		}
	}
	g.refusedAs(t, g.player(g.a).Create(&User{PlayerID: "7", Items: []Item{{PlayerID: elsewhere}}}).Error, dal.ErrCrossShard)
	g.refusedAs(t, g.player(g.a).Create(&User{PlayerID: "7", Items: []Item{{Model: dal.Model{TenantID: "b"}}}}).Error, dal.ErrTenantMismatch)
	g.refusedAs(t, g.player(g.a).Model(&User{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Items").Append(&Item{Model: dal.Model{ID: 1, TenantID: "b"}}), dal.ErrTenantMismatch)
	// The foreign key is the shard key: it says where the row lives, so the row stays with its player.
	if err := g.player(g.a).Model(&User{Model: dal.Model{ID: 1}, PlayerID: "7"}).Association("Items").Clear(); !errors.Is(err, dal.ErrImmutable) {
		t.Errorf("Clear: %v, want %v", err, dal.ErrImmutable)
	}
	if after := g.dump(t, "a") + g.dump(t, "b"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
}

type (
	// Guildless has a many-to-many relation over a join table that nobody declared.
	Guildless struct {
		dal.Model
		Ranks []Rank `gorm:"many2many:guildless_ranks"`
	}
	Rank struct {
		dal.Model
		Name string
	}
	// GuildlessRank lacks the rank's column.
	GuildlessRank struct {
		TenantID    tenant.ID `gorm:"primaryKey;column:tenant_id"`
		GuildlessID int64     `gorm:"primaryKey;autoIncrement:false"`
	}
	// OwnerlessRank has both columns and no owner.
	OwnerlessRank struct {
		GuildlessID int64 `gorm:"primaryKey;autoIncrement:false"`
		RankID      int64 `gorm:"primaryKey;autoIncrement:false"`
	}
)

func (GuildlessRank) TableName() string { return "guildless_ranks" }
func (OwnerlessRank) TableName() string { return "guildless_ranks" }

func TestAssociation_T10_JoinTablesAreDeclared(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		tables []dal.Table
		want   string
	}{
		"automatic": {nil, "automatic join table"},
		"column":    {[]dal.Table{dal.Local[GuildlessRank]()}, `needs the column "rank_id"`},
		"global":    {[]dal.Table{dal.Global[OwnerlessRank]()}, "whose rows have no owner"},
		"system":    {[]dal.Table{dal.System[OwnerlessRank]()}, "whose rows have no owner"},
	} {
		reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable})
		if err != nil {
			t.Fatal(err)
		}
		cfg := dal.Config{Registry: reg, Tables: append([]dal.Table{dal.Local[Guildless](), dal.Local[Rank]()}, c.tables...)}
		_, err = dal.OpenFixed(cfg, dal.Fixed{
			Topology: together(t, []shardrouter.ShardID{"s1"}), Dialect: dal.SQLite,
			Connect: func(dal.Place) (driver.Connector, error) { return nil, errors.New("not opened") },
		})
		if !errors.Is(err, dal.ErrModel) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "guildless_id") {
			t.Errorf("%s: %v, want %q and the mend", what, err, c.want)
		}
	}
}

type (
	// Order has lines whose keys are the caller's own, and a catalogue entry that is everybody's.
	Order struct {
		dal.Model
		CatalogID *int64
		Catalog   *Catalog
		Lines     []OrderLine
	}
	OrderLine struct {
		TenantID tenant.ID `gorm:"primaryKey;column:tenant_id"`
		OrderID  int64     `gorm:"primaryKey;autoIncrement:false"`
		Name     string    `gorm:"primaryKey"`
		Qty      int64
	}
)

func TestAssociation_NaturalKeysAndGlobalTables(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(cfg *dal.Config, _ *[]tenant.Tenant) {
		cfg.Tables = append(cfg.Tables, dal.Local[Order](), dal.Local[OrderLine]())
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec(`CREATE TABLE orders (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, catalog_id INTEGER, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));
			CREATE TABLE order_lines (tenant_id TEXT NOT NULL, order_id INTEGER NOT NULL, name TEXT NOT NULL, qty INTEGER, PRIMARY KEY (tenant_id, order_id, name));
			INSERT INTO catalogs (id, name) VALUES (5, 'sword')`); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.player(g.b).Create(&Order{Model: dal.Model{ID: 1}, Lines: []OrderLine{{Name: "b", Qty: 1}}}).Error; err != nil {
		t.Fatal(err)
	}
	o := Order{Model: dal.Model{ID: 1}, Catalog: &Catalog{ID: 5, Name: "not written"}, Lines: []OrderLine{{Name: "x", Qty: 1}, {Name: "b", Qty: 2}}}
	if err := g.player(g.a).Create(&o).Error; err != nil {
		t.Fatal(err)
	}
	o.Lines = append(o.Lines, OrderLine{Name: "y", Qty: 3})
	if err := g.player(g.a).Save(&o).Error; err != nil {
		t.Fatal(err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM order_lines WHERE tenant_id = 'a' AND order_id = 1"); n != 3 {
		t.Errorf("%d lines of a, want 3", n)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM order_lines WHERE tenant_id = 'b' AND order_id = 1 AND name = 'b' AND qty = 1"); n != 1 {
		t.Error("b's line changed")
	}
	if n := g.count(t, "SELECT COUNT(*) FROM orders WHERE tenant_id = 'a' AND catalog_id = 5"); n != 1 {
		t.Error("the order does not name its catalogue entry")
	}
	if n := g.count(t, "SELECT COUNT(*) FROM catalogs WHERE name = 'sword'"); n != 2 { // on both shards
		t.Error("a tenant wrote the catalogue")
	}
	for what, c := range map[string]*Catalog{"new": {Name: "mine"}, "missing": {ID: 6}} {
		if err := g.player(g.a).Create(&Order{Catalog: c}).Error; !errors.Is(err, dal.ErrTarget) && !errors.Is(err, dal.ErrClosedTable) {
			t.Errorf("%s entry: %v", what, err)
		}
	}
}

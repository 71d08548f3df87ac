package dal_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

type hooksKey struct{}

// hooks are functions by the name of the hook.
type hooks map[string]func(tx *gorm.DB, s *Squire) error

// under returns ctx with hooks for the squires.
func (h hooks) under(ctx context.Context) context.Context {
	return context.WithValue(ctx, hooksKey{}, h)
}

// Squire has every hook; each runs the function of its name that the context carries.
type Squire struct {
	dal.Model
	PlayerID string
	Name     string
	Qty      int64
	LiegeID  *int64
	Liege    *Squire
	Pages    []Squire `gorm:"foreignKey:LiegeID"`
}

func (s *Squire) run(name string, tx *gorm.DB) error {
	h, _ := tx.Statement.Context.Value(hooksKey{}).(hooks)
	if fn := h[name]; fn != nil {
		return fn(tx, s)
	}
	return nil
}

func (s *Squire) BeforeSave(tx *gorm.DB) error   { return s.run("BeforeSave", tx) }
func (s *Squire) BeforeCreate(tx *gorm.DB) error { return s.run("BeforeCreate", tx) }
func (s *Squire) BeforeUpdate(tx *gorm.DB) error { return s.run("BeforeUpdate", tx) }
func (s *Squire) BeforeDelete(tx *gorm.DB) error { return s.run("BeforeDelete", tx) }
func (s *Squire) AfterSave(tx *gorm.DB) error    { return s.run("AfterSave", tx) }
func (s *Squire) AfterCreate(tx *gorm.DB) error  { return s.run("AfterCreate", tx) }
func (s *Squire) AfterUpdate(tx *gorm.DB) error  { return s.run("AfterUpdate", tx) }
func (s *Squire) AfterDelete(tx *gorm.DB) error  { return s.run("AfterDelete", tx) }
func (s *Squire) AfterFind(tx *gorm.DB) error    { return s.run("AfterFind", tx) }

// squires is a game with a's squires 1 to 3, and b's 1 to 3 and 30.
func squires(t *testing.T) *game {
	t.Helper()
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Squire]("player", "player_id"))
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec("CREATE TABLE squires (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, name TEXT, qty INTEGER, liege_id INTEGER, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))"); err != nil {
			t.Fatal(err)
		}
	}
	g.seed(t)
	for _, ctx := range []context.Context{g.a, g.b} {
		for i := int64(1); i <= 3; i++ {
			if err := g.player(ctx).Create(&Squire{Model: dal.Model{ID: i}, PlayerID: "7", Name: "s", Qty: i}).Error; err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := g.player(g.b).Create(&Squire{Model: dal.Model{ID: 30}, PlayerID: "7", Name: "s", Qty: 30}).Error; err != nil {
		t.Fatal(err)
	}
	g.rec.take()
	return g
}

func TestHooks_ChangeTheRow(t *testing.T) {
	t.Parallel()
	g := squires(t)
	ten := func(tx *gorm.DB, _ *Squire) error { tx.Statement.SetColumn("Qty", 10); return nil }
	ctx := hooks{"BeforeSave": ten}.under(g.a)
	s := Squire{PlayerID: "7", Name: "new"}
	if err := g.player(ctx).Create(&s).Error; err != nil || s.Qty != 10 {
		t.Errorf("create: %+v, %v", s, err)
	}
	list := []Squire{{PlayerID: "7", Name: "new"}, {PlayerID: "7", Name: "new"}}
	if err := g.player(ctx).Create(&list).Error; err != nil {
		t.Errorf("create of a list: %v", err)
	}
	if err := g.player(ctx).Model(&Squire{Model: dal.Model{ID: 1}}).Updates(map[string]any{"name": "new"}).Error; err != nil {
		t.Errorf("update from a map: %v", err)
	}
	if err := g.player(ctx).Model(&Squire{Model: dal.Model{ID: 2}}).Updates(Squire{Name: "new"}).Error; err != nil {
		t.Errorf("update from a struct: %v", err)
	}
	if err := g.player(ctx).Save(&Squire{Model: dal.Model{ID: 3}, PlayerID: "7", Name: "new"}).Error; err != nil {
		t.Errorf("save: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM squires WHERE tenant_id = 'a' AND name = 'new' AND qty = 10"); n != 6 {
		t.Errorf("%d rows with the hook's value, want 6", n)
	}
	filled := hooks{"BeforeCreate": func(_ *gorm.DB, s *Squire) error { s.PlayerID, s.ID = "7", 77; return nil }}.under(g.a)
	if err := g.player(filled).Create(&Squire{Name: "filled"}).Error; err != nil {
		t.Errorf("keys from a hook: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM squires WHERE tenant_id = 'b'"); n != 4 {
		t.Errorf("%d rows of b, want 4", n)
	}
}

func TestHooks_MayNotLeaveTheTenant(t *testing.T) {
	t.Parallel()
	g := squires(t)
	set := func(column string, value any) func(*gorm.DB, *Squire) error {
		return func(tx *gorm.DB, _ *Squire) error { tx.Statement.SetColumn(column, value); return nil }
	}
	clauses := func(c ...clause.Interface) func(*gorm.DB, *Squire) error {
		return func(tx *gorm.DB, _ *Squire) error {
			for _, c := range c {
				tx.Statement.AddClause(c)
			}
			return nil
		}
	}
	update := func(db *gorm.DB) error {
		return db.Model(&Squire{Model: dal.Model{ID: 1}}).Updates(map[string]any{"name": "x"}).Error
	}
	row := func() *Squire { return &Squire{Model: dal.Model{ID: 40}, PlayerID: "7", Name: "x"} }
	create := func(db *gorm.DB) error { return db.Create(row()).Error }
	counts := "SELECT COUNT(*) FROM squires WHERE name = 's'"
	for what, c := range map[string]struct {
		hook string
		fn   func(*gorm.DB, *Squire) error
		run  func(*gorm.DB) error
		want error
	}{
		"owner, create":     {"BeforeCreate", set("TenantID", tenant.ID("b")), create, dal.ErrTenantMismatch},
		"owner, update":     {"BeforeUpdate", set("tenant_id", "b"), update, dal.ErrImmutable},
		"owner, by field":   {"BeforeUpdate", set("TenantID", "b"), update, dal.ErrImmutable},
		"owner, the struct": {"BeforeSave", func(_ *gorm.DB, s *Squire) error { s.TenantID = "b"; return nil }, create, dal.ErrTenantMismatch},
		"owner, save": {"BeforeSave", func(_ *gorm.DB, s *Squire) error { s.TenantID = "b"; return nil }, func(db *gorm.DB) error {
			return db.Save(&Squire{Model: dal.Model{ID: 1}, PlayerID: "7"}).Error
		}, dal.ErrTenantMismatch},
		"shard key, update": {"BeforeUpdate", set("player_id", "8"), update, dal.ErrImmutable},
		"shard, create":     {"BeforeCreate", func(_ *gorm.DB, s *Squire) error { s.PlayerID = g.keyOn(t, g.other(t)); return nil }, create, dal.ErrCrossShard},
		"a set":             {"BeforeUpdate", clauses(clause.Set{{Column: clause.Column{Name: "tenant_id"}, Value: "b"}}), update, dal.ErrImmutable},
		"a conflict":        {"BeforeCreate", clauses(clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"tenant_id": "a"})}), create, dal.ErrImmutable},
		"a modifier":        {"BeforeCreate", clauses(clause.Insert{Modifier: "OR REPLACE"}), create, dal.ErrShape},
		"text": {"BeforeUpdate", func(tx *gorm.DB, _ *Squire) error {
			tx.Statement.SQL.WriteString("UPDATE squires SET name = 'x'")
			return nil
		}, update, gorm.ErrMissingWhereClause},
		"a relation": {"BeforeCreate", func(_ *gorm.DB, s *Squire) error {
			s.Pages = []Squire{{Model: dal.Model{ID: 30}}}
			return nil
		}, create, dal.ErrTarget},
		"a reference": {"BeforeCreate", func(_ *gorm.DB, s *Squire) error {
			id := int64(30)
			s.LiegeID = &id
			return nil
		}, create, dal.ErrTarget},
		"T34, no tenant": {"AfterSave", func(*gorm.DB, *Squire) error {
			return g.On(context.Background(), dal.Key("player", "7")).Create(&Item{PlayerID: "7"}).Error
		}, create, tenant.ErrNoTenant},
		"another context": {"AfterSave", func(tx *gorm.DB, _ *Squire) error { return tx.WithContext(g.b).Create(&Item{PlayerID: "7"}).Error }, create, dal.ErrTenantMismatch},
		"another table":   {"AfterSave", func(tx *gorm.DB, _ *Squire) error { return tx.Create(&Guild{GuildID: "g"}).Error }, create, dal.ErrKeyspace},
		"another row": {"AfterUpdate", func(tx *gorm.DB, _ *Squire) error {
			return tx.Model(&Squire{Model: dal.Model{ID: 2}}).Session(&gorm.Session{SkipHooks: true}).Update("tenant_id", "b").Error
		}, update, dal.ErrImmutable},
	} {
		ctx := hooks{c.hook: c.fn}.under(g.a)
		if err := c.run(g.player(ctx)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if n := g.count(t, counts); n != 7 {
			t.Errorf("%s: %d rows as they were, want 7", what, n)
		}
		if n := g.count(t, "SELECT COUNT(*) FROM squires"); n != 7 {
			t.Errorf("%s: %d rows, want 7: the refused write was kept", what, n)
		}
	}
}

func TestHooks_SendStatementsOfTheirOwn(t *testing.T) {
	t.Parallel()
	g := squires(t)
	before := g.dump(t, "b")
	seen := map[string]int{}
	count := func(name string) func(*gorm.DB, *Squire) error {
		return func(tx *gorm.DB, _ *Squire) error {
			seen[name]++
			var n int64
			if err := tx.Model(&Item{}).Count(&n).Error; err != nil {
				return err
			}
			if n != 3 {
				t.Errorf("%s sees %d items, want a's 3", name, n)
			}
			return tx.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Model(&Squire{}).Where("1 = 1").Update("qty", gorm.Expr("qty + 1")).Error
		}
	}
	all := hooks{}
	for _, name := range []string{"BeforeSave", "BeforeCreate", "BeforeUpdate", "BeforeDelete", "AfterSave", "AfterCreate", "AfterUpdate", "AfterDelete"} {
		all[name] = count(name)
	}
	all["AfterFind"] = func(tx *gorm.DB, s *Squire) error {
		seen["AfterFind"]++
		if s.TenantID != "a" {
			t.Errorf("found a row of %s", s.TenantID)
		}
		return tx.Session(&gorm.Session{NewDB: true, SkipHooks: true}).First(&Squire{}, 1).Error
	}
	ctx := all.under(g.a)
	for what, err := range map[string]error{
		"create": g.player(ctx).Create(&Squire{PlayerID: "7", Name: "new", Pages: []Squire{{PlayerID: "7", Name: "page"}}}).Error,
		"update": g.player(ctx).Model(&Squire{Model: dal.Model{ID: 1}}).Update("name", "x").Error,
		"delete": g.player(ctx).Delete(&Squire{Model: dal.Model{ID: 2}}).Error,
		"find":   g.player(ctx).Find(&[]Squire{}).Error,
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for name := range all {
		if seen[name] == 0 {
			t.Errorf("%s did not run", name)
		}
	}
	if n := g.count(t, "SELECT COALESCE(SUM(qty), 0) FROM squires WHERE tenant_id = 'b'"); n != 36 {
		t.Errorf("b's quantities sum to %d, want 36", n)
	}
	if after := g.dump(t, "b"); after != before {
		t.Errorf("b's rows changed:\n%s", after)
	}
	clear(seen)
	if err := g.player(ctx).Session(&gorm.Session{SkipHooks: true}).Create(&Squire{PlayerID: "7", Name: "quiet", Pages: []Squire{{PlayerID: "7"}}}).Error; err != nil || len(seen) > 0 {
		t.Errorf("hooks that ran although they were to be skipped: %v, %v", seen, err)
	}
}

func TestHooks_PanicsInRelatedRowsEndTheTransaction(t *testing.T) {
	t.Parallel()
	g := squires(t)
	for what, hook := range map[string]string{"before": "BeforeCreate", "after": "AfterCreate"} {
		ctx := hooks{hook: func(_ *gorm.DB, s *Squire) error {
			if s.Name == "bad page" {
				panic("page")
			}
			return nil
		}}.under(g.a)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic was swallowed", what)
				}
			}()
			g.player(ctx).Create(&Squire{PlayerID: "7", Name: "new", Pages: []Squire{{Name: "good page"}, {Name: "bad page"}}})
		}()
		g.idle(t)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM squires WHERE name <> 's'"); n != 0 {
		t.Errorf("%d rows of the panicked writes were kept", n)
	}
	if err := g.player(g.b).Create(&Item{PlayerID: "7"}).Error; err != nil {
		t.Errorf("another tenant's write: %v", err)
	}
}

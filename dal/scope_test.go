package dal_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

func names(users []User) string {
	out := make([]string, len(users))
	for i, u := range users {
		out[i] = string(u.TenantID) + "/" + u.Name
	}
	return strings.Join(out, " ")
}

func TestScope_T01_OrInEveryForm(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	for name, q := range map[string]*gorm.DB{
		"chain":  g.player(g.a).Where("name = 'n1'").Or("name = 'n2'"),
		"group":  g.player(g.a).Where(g.player(g.a).Where("name = ?", "n1").Or("name = ?", "n2")),
		"scopes": g.player(g.a).Where("name = ?", "n1").Scopes(func(db *gorm.DB) *gorm.DB { return db.Or("name = ?", "n2") }),
		"not":    g.player(g.a).Not("name = ?", "n3"),
		"only":   g.player(g.a).Or("name = 'n1' OR name = 'n2'"),
	} {
		var users []User
		if err := q.Order("id").Find(&users).Error; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := names(users); got != "a/n1 a/n2" {
			t.Errorf("%s: rows %q, want a/n1 a/n2", name, got)
		}
		text := g.scopedText(t, "users")
		if !strings.Contains(text, "`users`.`tenant_id` = ? AND (") {
			t.Errorf("%s: the caller's conditions are not in parentheses of their own: %s", name, text)
		}
	}
}

func TestScope_T02_OrThatGormDoesNotSee(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	for _, where := range []string{"name='n1'\n\tOR\n\tname='n2'", "name='n1'OR(name='n2')", "1=1\nOR 1=1", "NOT name='x' OR 1=1"} {
		var users []User
		if err := g.player(g.a).Find(&users, where).Error; err != nil {
			t.Errorf("%q: %v", where, err)
		}
		g.scopedText(t, "users")
		if got := names(users); len(users) == 0 || strings.Contains(got, "b/") {
			t.Errorf("%q: rows %q", where, got)
		}
	}
}

func TestScope_T03_OrInUpdateAndDelete(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "b")
	res := g.player(g.a).Model(&User{}).Where("1=1\nOR 1=1").Update("gold", 0)
	if res.Error != nil || res.RowsAffected != 3 {
		t.Errorf("update: %d rows, %v; want 3", res.RowsAffected, res.Error)
	}
	g.scopedText(t, "users")
	res = g.player(g.a).Where("1=1\nOR 1=1").Delete(&Item{})
	if res.Error != nil || res.RowsAffected != 3 {
		t.Errorf("delete: %d rows, %v; want 3", res.RowsAffected, res.Error)
	}
	g.scopedText(t, "items")
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s\nwas\n%s", after, before)
	}
}

func TestScope_T04_TextThatLeavesItsParentheses(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	for _, where := range []string{
		"name='x' -- ", "name='x') OR (1=1", "name='x' /* ", "name='x' # ", "name='x'; DROP TABLE users", "name = 'x\\' OR 1=1 --'",
		"((1=1)", "id IN users", "id IN (SELECT id FROM strangers)", "@x = 1", "other.f (1)", "id in`items`",
		"1=1 UNION TABLE items", "name = 'never ends", "EXISTS(SELECT 1 FROM sqlite_master)",
	} {
		want := dal.ErrShape
		if strings.Contains(where, "strangers") || strings.Contains(where, "sqlite_master") {
			want = dal.ErrUndeclared
		}
		var users []User
		g.refusedAs(t, g.player(g.a).Where(where).Find(&users).Error, want)
		g.refusedInTx(t, g.player(g.a).Where(where).Delete(&User{}).Error, want)
		g.refusedInTx(t, g.player(g.a).Model(&User{}).Where(where).Update("gold", 1).Error, want)
		if where == "name='x') OR (1=1" {
			continue // in these places it says nothing about rows
		}
		g.refusedAs(t, g.player(g.a).Order(where).Find(&users).Error, want)
		g.refusedAs(t, g.player(g.a).Model(&User{}).Group("name").Having(where).Find(&users).Error, want)
		g.refusedInTx(t, g.player(g.a).Model(&User{}).Where("id = 1").Update("gold", gorm.Expr(where)).Error, want)
	}
}

func TestScope_T12_UnscopedMeansDeletedRowsOnly(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	if err := g.player(g.a).Delete(&User{}, 1).Error; err != nil {
		t.Fatal(err)
	}
	g.rec.take()
	before := g.dump(t, "b")
	var users []User
	if err := g.player(g.a).Unscoped().Order("id").Find(&users).Error; err != nil {
		t.Fatal(err)
	}
	g.scopedText(t, "users")
	if got := names(users); got != "a/n1 a/n2 a/n3" {
		t.Errorf("Unscoped().Find: %q", got)
	}
	if err := g.player(g.a).Unscoped().Delete(&User{}, 2).Error; err != nil {
		t.Fatal(err)
	}
	g.scopedText(t, "users")
	u := User{Model: dal.Model{ID: 90, TenantID: "b"}, PlayerID: "7"}
	g.refusedAs(t, g.player(g.a).Unscoped().Create(&u).Error, dal.ErrTenantMismatch)
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s", after)
	}
}

// Doc declares its soft delete before the owner.
type Doc struct {
	gorm.Model
	TenantID tenant.ID `gorm:"column:tenant_id"`
	PlayerID string
}

func TestScope_T13_SoftDeleteDeclaredFirst(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Doc]("player", "player_id"))
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec("CREATE TABLE docs (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, created_at DATETIME, updated_at DATETIME, deleted_at DATETIME, PRIMARY KEY (tenant_id, id)); INSERT INTO docs (tenant_id, id, player_id) VALUES ('b', 2, '7')"); err != nil {
			t.Fatal(err)
		}
	}
	res := g.player(g.a).Delete(&Doc{}, 2)
	if res.Error != nil || res.RowsAffected != 0 {
		t.Errorf("%d rows, %v; want 0", res.RowsAffected, res.Error)
	}
	g.scopedText(t, "docs")
	if n := g.count(t, "SELECT COUNT(*) FROM docs WHERE deleted_at IS NOT NULL"); n != 0 {
		t.Errorf("%d rows of tenant b were deleted", n)
	}
}

func TestScope_T14_MissingWhereGuard(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "b")
	g.refusedAs(t, g.player(g.a).Delete(&User{}).Error, gorm.ErrMissingWhereClause)
	g.refusedAs(t, g.player(g.a).Delete(&Item{}).Error, gorm.ErrMissingWhereClause)
	g.refusedAs(t, g.player(g.a).Model(&User{}).Update("gold", 0).Error, gorm.ErrMissingWhereClause)
	g.refusedAs(t, g.player(g.a).Model(&Line{TenantID: "a"}).Update("note", "x").Error, gorm.ErrMissingWhereClause)
	res := g.player(g.a).Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&User{}).Update("gold", 0)
	if res.Error != nil || res.RowsAffected != 3 {
		t.Errorf("AllowGlobalUpdate: %d rows, %v; want tenant a's 3", res.RowsAffected, res.Error)
	}
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s", after)
	}
}

func TestScope_T21_OwnerAndKeysAreImmutable(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	row := g.player(g.a).Model(&User{Model: dal.Model{ID: 1}})
	for _, c := range []string{"tenant_id", "TenantID"} {
		g.refusedAs(t, row.Session(&gorm.Session{}).Updates(map[string]any{c: "b"}).Error, dal.ErrImmutable)
		g.refusedAs(t, row.Session(&gorm.Session{}).UpdateColumn(c, "b").Error, dal.ErrImmutable)
	}
	g.refusedAs(t, row.Session(&gorm.Session{}).Updates(map[string]any{"TENANT_ID": "b"}).Error, dal.ErrImmutable)
	g.refusedAs(t, row.Session(&gorm.Session{}).Updates(User{Model: dal.Model{TenantID: "b"}}).Error, dal.ErrImmutable)
	g.refusedAs(t, row.Session(&gorm.Session{}).Updates(map[string]any{"player_id": "8"}).Error, dal.ErrImmutable)
	g.refusedAs(t, row.Session(&gorm.Session{}).Updates(map[string]any{"id": 9}).Error, dal.ErrImmutable)
	g.refusedAs(t, g.player(g.a).Save(&User{Model: dal.Model{ID: 1, TenantID: "b"}, PlayerID: "7"}).Error, dal.ErrTenantMismatch)
	if _, err := gorm.G[User](g.player(g.a)).Where("id = ?", 1).Set(clause.Assignment{Column: clause.Column{Name: "tenant_id"}, Value: "b"}).Update(g.a); !errors.Is(err, dal.ErrImmutable) {
		t.Errorf("Set().Update: %v", err)
	}
	g.rec.take()
	res := g.player(g.a).Model(&User{Model: dal.Model{ID: 1}}).Updates(map[string]any{"tenant_id": "a", "gold": 99})
	if res.Error != nil || res.RowsAffected != 1 {
		t.Errorf("the row's own tenant: %d, %v", res.RowsAffected, res.Error)
	}
	if text := g.scopedText(t, "users"); strings.Count(text, "tenant_id") != 1 {
		t.Errorf("tenant_id is assigned: %s", text)
	}
}

func TestScope_WholeRowIsWrittenBack(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "b")
	var u User
	if err := g.player(g.a).First(&u, 2).Error; err != nil {
		t.Fatal(err)
	}
	g.rec.take()
	u.Gold = 77
	if res := g.player(g.a).Updates(&u); res.Error != nil || res.RowsAffected != 1 {
		t.Errorf("%d rows, %v", res.RowsAffected, res.Error)
	}
	if text := g.scopedText(t, "users"); !strings.Contains(text, "`users`.`player_id` = ?") || strings.Contains(text, "`player_id`=?") {
		t.Errorf("the shard key is no condition, or assigned: %s", text)
	}
	u.PlayerID = "8"
	if res := g.player(g.a).Updates(&u); res.RowsAffected != 0 {
		t.Errorf("a row changed its shard key: %d, %v", res.RowsAffected, res.Error)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users WHERE player_id = '7' AND gold = 77 AND tenant_id = 'a'"); n != 1 {
		t.Errorf("%d rows", n)
	}
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s", after)
	}
}

// spy keeps the context of the statement that reads it.
type spy struct{ Seen context.Context }

// Spied has a field whose serializer sees the statement's context.
type Spied struct {
	dal.Model
	PlayerID string
	Note     string `gorm:"serializer:spy"`
}

var spied = &spy{}

func (*spy) Scan(ctx context.Context, field *schema.Field, dst reflect.Value, v any) error {
	spied.Seen = ctx
	return field.Set(ctx, dst, fmt.Sprint(v))
}

func (*spy) Value(_ context.Context, _ *schema.Field, _ reflect.Value, v any) (any, error) {
	return v, nil
}

func TestScope_MarkIsWorthNothingAfterItsStatement(t *testing.T) {
	schema.RegisterSerializer("spy", spied) // before any parallel test parses a model
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Spied]("player", "player_id"))
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec("CREATE TABLE spieds (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, note TEXT, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))"); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.player(g.a).Create(&Spied{PlayerID: "7", Note: "x"}).Error; err != nil {
		t.Fatal(err)
	}
	g.rec.take()
	if err := g.player(g.a).Find(&[]Spied{}).Error; err != nil || spied.Seen == nil {
		t.Fatalf("the serializer saw no context: %v", err)
	}
	text := g.rec.take()[0]
	for _, owner := range []string{"a", "b"} {
		if _, err := g.player(g.a).Statement.ConnPool.QueryContext(spied.Seen, text, owner); !errors.Is(err, wire.ErrUnmarked) {
			t.Errorf("the text was sent again for tenant %s: %v", owner, err)
		}
	}
}

func TestScope_T23_CreateAlwaysNamesTheOwner(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	for name, create := range map[string]func() error{
		"omit": func() error {
			return g.player(g.a).Omit("tenant_id", "id", "player_id").Create(&User{PlayerID: "7", Name: "omit"}).Error
		},
		"select": func() error { return g.player(g.a).Select("name").Create(&User{PlayerID: "7", Name: "select"}).Error },
		"batches": func() error {
			return g.player(g.a).CreateInBatches([]User{{PlayerID: "7", Name: "batches"}, {PlayerID: "7", Name: "batches"}}, 1).Error
		},
		"ptrs":    func() error { return g.player(g.a).Create([]*User{{PlayerID: "7", Name: "ptrs"}}).Error },
		"generic": func() error { return gorm.G[User](g.player(g.a)).Create(g.a, &User{PlayerID: "7", Name: "generic"}) },
	} {
		if err := create(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := g.count(t, "SELECT COUNT(*) FROM users WHERE name = ? AND tenant_id = 'a' AND id > 1000 AND player_id = '7'", name); n == 0 {
			t.Errorf("%s: no row of tenant a with an id of the library", name)
		}
	}
	g.rec.take()
	rows := []User{{PlayerID: "7"}, {Model: dal.Model{TenantID: "b"}, PlayerID: "7"}}
	g.refusedAs(t, g.player(g.a).Create(&rows).Error, dal.ErrTenantMismatch)
	if n := g.count(t, "SELECT COUNT(*) FROM users WHERE tenant_id <> 'a'"); n != 0 {
		t.Errorf("%d rows of another tenant", n)
	}
}

func TestScope_T29_ContextOfAnotherTenant(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	_, err := gorm.G[User](g.player(g.a)).Find(g.b)
	g.refusedAs(t, err, dal.ErrTenantMismatch)
	var u []User
	g.refusedAs(t, g.player(g.a).WithContext(g.b).Find(&u).Error, dal.ErrTenantMismatch)
	_, err = gorm.G[User](g.player(g.a)).Find(context.Background())
	g.refusedAs(t, err, tenant.ErrNoTenant)
	if err := g.player(g.a).WithContext(g.b).Begin().Error; !errors.Is(err, dal.ErrTenantMismatch) {
		t.Errorf("Begin: %v", err)
	}
}

func TestScope_T31_EveryWayAroundGormPassesTheGate(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	h := g.player(g.a)
	p := h.Statement.ConnPool
	text := "SELECT COUNT(*) FROM users"
	var n int
	g.refusedAs(t, p.QueryRowContext(g.a, text).Scan(&n), wire.ErrUnmarked)
	_, err := p.QueryContext(g.a, text)
	g.refusedAs(t, err, wire.ErrUnmarked)
	_, err = p.ExecContext(g.a, "DELETE FROM users")
	g.refusedAs(t, err, wire.ErrUnmarked)
	_, err = p.PrepareContext(g.a, text)
	g.refusedAs(t, err, dal.ErrShape)
	err = h.Transaction(func(tx *gorm.DB) error {
		_, err := tx.DB()
		g.refusedInTx(t, err, dal.ErrShape)
		_, err = tx.Statement.ConnPool.ExecContext(g.a, "DELETE FROM users")
		g.refusedInTx(t, err, wire.ErrUnmarked)
		_, err = tx.Statement.ConnPool.PrepareContext(g.a, text)
		g.refusedInTx(t, err, dal.ErrShape)
		return nil
	})
	if err != nil {
		t.Errorf("an empty transaction: %v", err)
	}
	for _, other := range []gorm.ConnPool{g.On(g.b, dal.Key("player", "7")).Statement.ConnPool, g.On(g.a, dal.Key("player", g.keyOn(t, g.other(t)))).Statement.ConnPool} {
		swapped := g.player(g.a)
		swapped.Statement.ConnPool = other
		g.refusedAs(t, swapped.Find(&[]User{}).Error, dal.ErrShape)
	}
}

func TestScope_T34_PackageLevelHandleInHook(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Hooked]("player", "player_id"))
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec("CREATE TABLE hookeds (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))"); err != nil {
			t.Fatal(err)
		}
	}
	h := Hooked{hook: func(*gorm.DB) error {
		return g.On(context.Background(), dal.Key("player", "7")).Create(&Item{PlayerID: "7"}).Error
	}}
	if err := g.player(g.a).Create(&h).Error; !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("a hook without the tenant: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM hookeds"); n != 0 {
		t.Errorf("the outer row was kept: %d", n)
	}
	h = Hooked{PlayerID: "7", hook: func(tx *gorm.DB) error { return tx.Create(&Item{PlayerID: "7", Name: "by hook"}).Error }}
	if err := g.player(g.a).Create(&h).Error; err != nil {
		t.Fatal(err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM items WHERE tenant_id = 'a' AND name = 'by hook'"); n != 1 {
		t.Errorf("the hook's row of tenant a: %d", n)
	}
}

// Hooked runs a function after it was created, and names its player only then.
type Hooked struct {
	dal.Model
	PlayerID string
	hook     func(*gorm.DB) error
}

// BeforeCreate names the player.
func (h *Hooked) BeforeCreate(*gorm.DB) error {
	h.PlayerID = "7"
	return nil
}

// AfterCreate runs the hook.
func (h *Hooked) AfterCreate(tx *gorm.DB) error { return h.hook(tx) }

func TestScope_T36_NoTenantNoStatement(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	bad := map[string]struct {
		ctx  context.Context
		want error
	}{
		"background": {context.Background(), tenant.ErrNoTenant},
		"empty":      {tenant.NewContext(context.Background(), ""), tenant.ErrNoTenant},
		"ill-formed": {tenant.NewContext(context.Background(), "Acme "), tenant.ErrInvalidID},
		"unknown":    {tenant.NewContext(context.Background(), "nobody"), tenant.ErrUnknownTenant},
		"suspended":  {tenant.NewContext(context.Background(), "sleepy"), tenant.ErrSuspended},
		"system":     {tenant.System(context.Background(), "test", "users"), tenant.ErrSystemScope},
	}
	for name, c := range bad {
		h := g.player(c.ctx)
		var users []User
		var n int64
		var name1 string
		for what, err := range map[string]error{
			"Find":   h.Find(&users).Error,
			"First":  h.First(&User{}).Error,
			"Create": h.Create(&User{PlayerID: "7"}).Error,
			"Count":  h.Model(&User{}).Count(&n).Error,
			"Pluck":  h.Model(&User{}).Pluck("name", &[]string{}).Error,
			"Update": h.Model(&User{}).Where("1=1").Update("gold", 1).Error,
			"Delete": h.Where("1=1").Delete(&User{}).Error,
			"Row":    h.Model(&User{}).Select("name").Row().Scan(&name1),
			"Exec":   h.Exec("DELETE FROM users").Error,
			"Raw":    h.Raw("SELECT 1").Scan(&n).Error,
			"Begin":  h.Begin().Error,
			"Tx":     h.Transaction(func(*gorm.DB) error { t.Errorf("%s: the transaction ran", name); return nil }),
			"Conn":   h.Connection(func(*gorm.DB) error { t.Errorf("%s: the connection ran", name); return nil }),
		} {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %s: %v, want %v", name, what, err, c.want)
			}
		}
		if _, err := h.Model(&User{}).Rows(); !errors.Is(err, c.want) {
			t.Errorf("%s: Rows: %v", name, err)
		}
		if _, err := h.DB(); !errors.Is(err, c.want) {
			t.Errorf("%s: DB: %v", name, err)
		}
		g.refusedAs(t, c.want, c.want)
	}
}

func TestScope_ShapesRefused(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	var users []User
	a := func() *gorm.DB { return g.player(g.a) }
	sub := a().Model(&Item{}).Select("player_id")
	shapes := map[string]func() error{
		"T11 embedded sub-query": func() error {
			return a().Where("player_id IN (?)", struct{ *gorm.DB }{g.player(g.b).Model(&Item{}).Select("player_id")}).Find(&users).Error
		},
		"T11 of another tenant": func() error {
			return a().Where("player_id IN (?)", g.player(g.b).Model(&Item{}).Select("player_id")).Find(&users).Error
		},
		"T11 of another context": func() error {
			return a().Where("player_id IN (?)", sub.WithContext(g.b)).Find(&users).Error
		},
		"T11 of a table that is not declared": func() error {
			return a().Where("player_id NOT IN (?)", a().Table("strangers").Select("id")).Find(&users).Error
		},
		"T55 unknown syntax": func() error { return a().Raw("SELECT * FROM users AS OF TIMESTAMP '2020-01-01'").Scan(&users).Error },
		"migrate":            func() error { return a().AutoMigrate(&User{}) },
	}
	before := g.dump(t, "a") + g.dump(t, "b")
	for name, run := range shapes {
		t.Run(name, func(t *testing.T) {
			err := run()
			if err == nil || !errors.Is(err, dal.ErrShape) && !errors.Is(err, dal.ErrTenantMismatch) && !errors.Is(err, dal.ErrUndeclared) {
				t.Errorf("error %v", err)
			}
			for _, text := range g.rec.take() {
				t.Errorf("it left: %s", text)
			}
		})
	}
	if after := g.dump(t, "a") + g.dump(t, "b"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
	var s []Stranger
	g.refusedAs(t, a().Find(&s).Error, dal.ErrUndeclared)
	g.refusedAs(t, a().Create(&Stranger{}).Error, dal.ErrUndeclared)
	var guilds []Guild
	g.refusedAs(t, a().Find(&guilds).Error, dal.ErrKeyspace)
	g.refusedAs(t, a().Create(&Catalog{ID: 1}).Error, dal.ErrClosedTable)
}

func TestScope_ReadingForms(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	a := func() *gorm.DB { return g.player(g.a) }
	var u User
	if err := a().First(&u, 2).Error; err != nil || u.TenantID != "a" || u.Gold != 20 {
		t.Errorf("First: %+v, %v", u, err)
	}
	if text := g.scopedText(t, "users"); text != "SELECT * FROM `users` WHERE `users`.`tenant_id` = ? AND (`users`.`id` = ?) AND `users`.`deleted_at` IS NULL ORDER BY `users`.`id` LIMIT 1" {
		t.Errorf("First's text: %s", text)
	}
	var n int64
	if err := a().Model(&User{}).Count(&n).Error; err != nil || n != 3 {
		t.Errorf("Count: %d, %v", n, err)
	}
	g.scopedText(t, "users")
	var gold []int64
	if err := a().Model(&User{}).Order("gold desc").Pluck("gold", &gold).Error; err != nil || len(gold) != 3 || gold[0] != 30 {
		t.Errorf("Pluck: %v, %v", gold, err)
	}
	g.scopedText(t, "users")
	var dto []struct{ Name string }
	if err := a().Model(&User{}).Find(&dto).Error; err != nil || len(dto) != 3 {
		t.Errorf("DTO: %v, %v", dto, err)
	}
	g.scopedText(t, "users")
	rows, err := a().Model(&User{}).Rows()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for rows.Next() {
		seen++
	}
	if err := rows.Close(); err != nil || seen != 3 {
		t.Errorf("Rows: %d, %v", seen, err)
	}
	g.scopedText(t, "users")
	var sum int64
	if err := a().Model(&Item{}).Select("SUM(qty)").Row().Scan(&sum); err != nil || sum != 6 {
		t.Errorf("Row: %d, %v", sum, err)
	}
	g.scopedText(t, "items")
	var users []User
	if err := a().Preload("Items").Order("id").Find(&users).Error; err != nil {
		t.Fatal(err)
	}
	for _, text := range g.rec.take() {
		if strings.Count(text, "`tenant_id` = ?") != 1 {
			t.Errorf("preload: %s", text)
		}
	}
	for _, it := range users[0].Items {
		if it.TenantID != "a" {
			t.Errorf("preload brought an item of %s", it.TenantID)
		}
	}
	if len(users[0].Items) != 3 {
		t.Errorf("preload: %d items", len(users[0].Items))
	}
	var batch []User
	total := 0
	if err := a().FindInBatches(&batch, 2, func(*gorm.DB, int) error { total += len(batch); return nil }).Error; err != nil || total != 3 {
		t.Errorf("FindInBatches: %d, %v", total, err)
	}
	g.rec.take()
	found, err := gorm.G[User](a()).Where("gold > ?", 10).Order("id").Find(g.a)
	if err != nil || names(found) != "a/n2 a/n3" {
		t.Errorf("generic Find: %q, %v", names(found), err)
	}
	g.scopedText(t, "users")
	var first User
	if err := a().Where(User{Name: "new"}).Attrs(User{PlayerID: "7", Gold: 5}).FirstOrCreate(&first).Error; err != nil || first.TenantID != "a" || first.Name != "new" {
		t.Errorf("FirstOrCreate: %+v, %v", first, err)
	}
	var catalog []Catalog
	if err := a().Find(&catalog).Error; err != nil {
		t.Errorf("a Global table is read by all: %v", err)
	}
}

func TestScope_T28_ChainUsedAgain(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	q := g.player(g.a).Where("gold > ?", 0)
	var users []User
	for range 2 {
		users = nil
		if err := q.Find(&users).Error; err != nil || len(users) != 3 {
			t.Errorf("%d rows, %v", len(users), err)
		}
		g.scopedText(t, "users")
	}
	users = nil
	if err := q.Or("1 = 1").Find(&users).Error; err != nil || strings.Contains(names(users), "b/") {
		t.Errorf("an OR added to a used chain: %q, %v", names(users), err)
	}
	g.scopedText(t, "users")
	g.refusedAs(t, q.WithContext(g.b).Find(&users).Error, dal.ErrTenantMismatch)
}

func TestScope_T51_DryRunCarriesThePredicate(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	text := g.player(g.a).ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]User{}) })
	if !strings.Contains(text, "`users`.`tenant_id` = 'a'") && !strings.Contains(text, "`users`.`tenant_id` = \"a\"") {
		t.Errorf("ToSQL: %q", text)
	}
	if text := g.player(context.Background()).ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]User{}) }); text != "" {
		t.Errorf("ToSQL without a tenant gives a runnable text: %q", text)
	}
	g.refusedAs(t, nil, nil)
}

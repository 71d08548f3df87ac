package dal_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestScope_T32_HandleSharedByGoroutines(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	shared := g.player(g.a)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if i%2 == 1 {
				if err := shared.WithContext(g.b).Where("id > 0").Find(&[]User{}).Error; !errors.Is(err, dal.ErrTenantMismatch) {
					t.Errorf("with another tenant's context: %v, want %v", err, dal.ErrTenantMismatch)
				}
				return
			}
			var users []User
			if err := shared.WithContext(g.a).Where("id > ? OR 1=1", i).Order("id").Find(&users).Error; err != nil {
				t.Error(err)
			}
			if got := names(users); got != "a/n1 a/n2 a/n3" {
				t.Errorf("rows %q, want a/n1 a/n2 a/n3", got)
			}
		})
	}
	wg.Wait()
}

func TestScope_T54_ShardKeyMissing(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	for what, c := range map[string]struct{ err, want error }{
		"no key":             {g.On(g.a, dal.Key("player", "")).Find(&[]User{}).Error, shardrouter.ErrEmptyKey},
		"zero key":           {g.On(g.a, dal.Key("player", 0)).Find(&[]User{}).Error, shardrouter.ErrZeroKey},
		"a row without it":   {g.player(g.a).Create(&Item{Name: "x"}).Error, shardrouter.ErrEmptyKey},
		"a map without it":   {g.player(g.a).Model(&Item{}).Create(map[string]any{"name": "x"}).Error, shardrouter.ErrEmptyKey},
		"a text without it":  {g.player(g.a).Exec("INSERT INTO items (id, name) VALUES (?, 'x')", 9).Error, dal.ErrShape},
		"a key that is SQL":  {g.player(g.a).Exec("INSERT INTO items (id, player_id) VALUES (?, LOWER('7'))", 9).Error, dal.ErrShape},
		"an unknown place":   {g.OnPlace(tenant.System(g.a, "test", "users"), dal.Place{Shard: "s9"}).Find(&[]User{}).Error, dal.ErrUnknownShard},
		"a place for tenant": {g.OnPlace(g.a, dal.Place{Shard: "s1"}).Find(&[]User{}).Error, tenant.ErrNotSystem},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
	var unknown *shardrouter.UnknownKeyspaceError
	if err := g.On(g.a, dal.Key("nowhere", "7")).Find(&[]User{}).Error; !errors.As(err, &unknown) {
		t.Errorf("an unknown keyspace: %v, want %T", err, unknown)
	}
	if texts := g.rec.take(); len(texts) != 0 {
		t.Errorf("refused statements left: %q", texts)
	}
	// A write that names no row reaches one shard, the handle's.
	other := g.StatsOf(dal.Place{Shard: g.other(t)})
	if err := g.player(g.a).Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&User{}).Update("gold", 1).Error; err != nil {
		t.Error(err)
	}
	if now := g.StatsOf(dal.Place{Shard: g.other(t)}); now != other {
		t.Errorf("a write went to the other shard too: %+v, was %+v", now, other)
	}
}

// A callback that calls Scopes does nothing, says gorm, and reports nothing. Here the fence does not depend on it: it stands in front of every sender.
func TestScope_T61_ScopesInsideACallback(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	calls := 0
	meddle := func(db *gorm.DB) {
		calls++
		db.Scopes(func(db *gorm.DB) *gorm.DB { return db.Or("1=1") })
	}
	cb := g.player(g.a).Callback()
	for _, register := range []func(string, func(*gorm.DB)) error{
		cb.Query().Before("gorm:query").Register, cb.Row().Before("gorm:row").Register, cb.Create().Before("gorm:create").Register,
		cb.Update().Before("gorm:update").Register, cb.Delete().Before("gorm:delete").Register, cb.Raw().Before("gorm:raw").Register,
	} {
		if err := register("test:meddle", meddle); err != nil {
			t.Fatal(err)
		}
	}
	var users []User
	if err := g.player(g.a).Where("name = ?", "n1").Find(&users).Error; err != nil || names(users) != "a/n1" || calls == 0 {
		t.Errorf("rows %q, %v after %d callbacks, want a/n1", names(users), err, calls)
	}
	if text := g.scopedText(t, "users"); strings.Contains(text, "1=1") {
		t.Errorf("a scope inside a callback ran: %s", text)
	}
	for sender, run := range map[string]func(db *gorm.DB) error{
		"query":  func(db *gorm.DB) error { return db.Find(&[]Stranger{}).Error },
		"row":    func(db *gorm.DB) error { return db.Table("strangers").Select("1").Row().Scan(new(int)) },
		"create": func(db *gorm.DB) error { return db.Create(&Stranger{ID: 1}).Error },
		"update": func(db *gorm.DB) error { return db.Model(&Stranger{ID: 1}).Update("id", 2).Error },
		"delete": func(db *gorm.DB) error { return db.Delete(&Stranger{ID: 1}).Error },
		"raw":    func(db *gorm.DB) error { return db.Exec("DELETE FROM strangers").Error },
	} {
		t.Run(sender, func(t *testing.T) { g.refusedAs(t, run(g.player(g.a)), dal.ErrUndeclared) })
	}
}

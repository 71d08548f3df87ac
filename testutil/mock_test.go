package testutil_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

type Hero struct {
	dal.Model
	PlayerID string
	Name     string
}

type Motto struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Text string
}

// TableName is not gorm's own, so that the test sees that the declared name counts.
func (Motto) TableName() string { return "motto" }

// Job is a row of a system table.
type Job struct {
	ID int64 `gorm:"primaryKey;autoIncrement:false"`
}

func heroTables() []dal.Table {
	return []dal.Table{dal.Tenant[Hero]("player", "player_id"), dal.Global[Motto](), dal.System[Job]()}
}

const (
	selectHeroes = "SELECT * FROM `heros` WHERE `heros`.`tenant_id` = ?"
	insertHero   = "INSERT INTO `heros` (`id`,`tenant_id`,`created_at`,`updated_at`,`player_id`,`name`) VALUES (?,?,?,?,?,?)"
)

var heroColumns = []string{"id", "tenant_id", "created_at", "updated_at", "player_id", "name"}

// fakeTest is a test that may fail without failing the one it is used in.
type fakeTest struct {
	testing.TB
	mu       sync.Mutex // guards the fields below
	failures []string
	logs     []string
	cleanups []func()
}

func (f *fakeTest) Helper() {}

func (f *fakeTest) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

func (f *fakeTest) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fakeTest) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs = append(f.logs, fmt.Sprintf(format, args...))
}

func (f *fakeTest) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }

// runFake runs fn as a test of its own and returns how it ended.
func runFake(t *testing.T, fn func(tb testing.TB)) *fakeTest {
	t.Helper()
	f := &fakeTest{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		fn(f)
	}()
	<-done
	return f
}

// failedWith checks that the test failed once, for the given reason.
func (f *fakeTest) failedWith(t *testing.T, parts ...string) {
	t.Helper()
	if len(f.failures) != 1 {
		t.Fatalf("%d failures, want 1: %q", len(f.failures), f.failures)
	}
	for _, p := range parts {
		if !strings.Contains(f.failures[0], p) {
			t.Errorf("failure %q does not say %q", f.failures[0], p)
		}
	}
}

func as(ctx context.Context, id tenant.ID) context.Context { return tenant.NewContext(ctx, id) }

func TestMockStore_Verbs(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, heroTables())
	key := dal.Key("player", "7")
	ctx, mock := as(t.Context(), "acme"), m.On("acme", key)

	mock.ExpectQuery(selectHeroes).WithArgs("acme").
		WillReturnRows(sqlmock.NewRows(heroColumns).AddRow(1, "acme", time.Time{}, time.Time{}, "7", "Ada"))
	mock.ExpectBegin()
	mock.ExpectExec(insertHero).WithArgs(sqlmock.AnyArg(), "acme", sqlmock.AnyArg(), sqlmock.AnyArg(), "7", "Bob").WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectBegin()
	mock.ExpectExec("UPDATE `heros` SET `name`=?,`updated_at`=? WHERE `heros`.`tenant_id` = ? AND (id = ?)").
		WithArgs("Eve", sqlmock.AnyArg(), "acme", 1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectBegin()
	mock.ExpectExec("DELETE FROM `heros` WHERE `heros`.`tenant_id` = ? AND (id = ?)").WithArgs("acme", 1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectQuery("SELECT * FROM `motto`").WithoutArgs().WillReturnRows(sqlmock.NewRows([]string{"id", "text"}).AddRow(1, "onward"))

	var heroes []Hero
	if err := m.Store.On(ctx, key).Find(&heroes).Error; err != nil || len(heroes) != 1 || heroes[0].Name != "Ada" {
		t.Errorf("Find: %+v, %v", heroes, err)
	}
	bob := Hero{PlayerID: "7", Name: "Bob"}
	if err := m.Store.On(ctx, key).Create(&bob).Error; err != nil || bob.ID == 0 || bob.TenantID != "acme" {
		t.Errorf("Create: %+v, %v", bob, err)
	}
	if err := m.Store.On(ctx, key).Model(&Hero{}).Where("id = ?", 1).Update("name", "Eve").Error; err != nil {
		t.Errorf("Update: %v", err)
	}
	if err := m.Store.On(ctx, key).Where("id = ?", 1).Delete(&Hero{}).Error; err != nil {
		t.Errorf("Delete: %v", err)
	}
	var mottos []Motto
	if err := m.Store.On(ctx, key).Find(&mottos).Error; err != nil || len(mottos) != 1 {
		t.Errorf("a Global table, read by a tenant: %+v, %v", mottos, err)
	}
	sent := m.Sent()
	if len(sent) != 5 || sent[0].Text != selectHeroes || sent[0].Tenant != "acme" || sent[0].System || sent[0].Place.Shard != m.Owner("acme", key) || sent[0].Args[0] != "acme" {
		t.Errorf("Sent: %+v", sent)
	}
}

func TestMockStore_ExactText(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, heroTables(), "s1")
	m.Shard("s1").ExpectQuery("SELECT * FROM `heros` WHERE `heros`.`tenant_id` = ? ").WithArgs("acme").WillReturnRows(sqlmock.NewRows(heroColumns)) // blanks do not count
	if err := m.Store.On(as(t.Context(), "acme"), dal.Key("player", "7")).Find(&[]Hero{}).Error; err != nil {
		t.Error(err)
	}
	for _, other := range []string{"SELECT \\* FROM `heros`.*", "SELECT * FROM `heros`", "select * from `heros` where `heros`.`tenant_id` = ?"} {
		f := runFake(t, func(tb testing.TB) {
			m := testutil.NewMockStore(tb, heroTables(), "s1")
			m.Shard("s1").ExpectQuery(other).WillReturnRows(sqlmock.NewRows(heroColumns))
			if err := m.Store.On(as(t.Context(), "acme"), dal.Key("player", "7")).Find(&[]Hero{}).Error; err == nil {
				t.Errorf("%q was taken for the statement", other)
			}
		})
		f.failedWith(t, "place s1", "remaining expectation")
	}
}

func TestMockStore_E3_UnscopedFailsTheTest(t *testing.T) {
	t.Parallel()
	key := dal.Key("player", "7")
	for name, c := range map[string]struct {
		ctx  func(context.Context) context.Context
		mark *wire.Mark
		args []any
		want string
	}{
		"under system":  {func(ctx context.Context) context.Context { return tenant.System(ctx, "test", "heros") }, &wire.Mark{Kind: wire.Scoped, Tenant: "acme", Text: "DELETE FROM `heros` WHERE tenant_id = ?"}, []any{"acme"}, "system scope"},
		"no savepoint":  {as2("acme"), &wire.Mark{Kind: wire.Control, Text: "DELETE FROM `heros`"}, nil, "savepoint"},
		"no constant":   {as2("acme"), &wire.Mark{Kind: wire.Migration, Text: "DELETE FROM `heros`"}, nil, "system scope"},
		"system's own":  {as2("acme"), &wire.Mark{Kind: wire.Library, Stmt: systemConstant}, nil, "system scope"},
		"constant of b": {as2("acme"), &wire.Mark{Kind: wire.Library, Stmt: tenantConstant}, []any{"globex"}, "another tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runFake(t, func(tb testing.TB) {
				m := testutil.NewMockStore(tb, heroTables())
				pool := m.Store.On(as(t.Context(), "acme"), key).Statement.ConnPool
				text := c.mark.Text
				if c.mark.Stmt != nil {
					text = c.mark.Stmt.Text()
				}
				_, err := pool.ExecContext(wire.With(c.ctx(t.Context()), c.mark), text, c.args...)
				var unscoped *testutil.UnscopedError
				if !errors.As(err, &unscoped) || unscoped.Text != text {
					t.Errorf("error %v, want an UnscopedError with the text", err)
				}
				if sent := m.Sent(); len(sent) != 0 {
					t.Errorf("it was sent: %+v", sent)
				}
			})
			f.failedWith(t, "unscoped", c.want)
		})
	}
}

// What gorm's callbacks would have let pass by a mistake of this module ends at the gate, before the mock sees it.
func TestMockStore_E3_TheGateStandsBeforeTheMock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mark *wire.Mark
		args []any
	}{
		"no predicate": {&wire.Mark{Kind: wire.Scoped, Tenant: "acme", Text: "DELETE FROM `heros`"}, nil},
		"other tenant": {&wire.Mark{Kind: wire.Scoped, Tenant: "acme", Text: "DELETE FROM `heros` WHERE tenant_id = ?"}, []any{"globex"}},
		"no tenant":    {&wire.Mark{Kind: wire.Scoped, Text: "DELETE FROM `heros` WHERE tenant_id = ?"}, []any{"acme"}},
		"not a bypass": {&wire.Mark{Kind: wire.Bypass, Text: "DELETE FROM `heros`"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := testutil.NewMockStore(t, heroTables())
			pool := m.Store.On(as(t.Context(), "acme"), dal.Key("player", "7")).Statement.ConnPool
			if _, err := pool.ExecContext(wire.With(as(t.Context(), "acme"), c.mark), c.mark.Text, c.args...); !errors.Is(err, wire.ErrRefused) {
				t.Errorf("error %v, want ErrRefused", err)
			}
			if sent := m.Sent(); len(sent) != 0 {
				t.Errorf("it was sent: %+v", sent)
			}
		})
	}
}

// as2 is as with its arguments in turn.
func as2(id tenant.ID) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return as(ctx, id) }
}

var (
	tenantConstant = wire.Register("testutil/mock test", "DELETE FROM heros WHERE tenant_id = ?", wire.Rows, 0)
	systemConstant = wire.RegisterSystem("testutil/mock test, system", "DELETE FROM heros", wire.Rows)
)

func TestMockStore_LibraryConstant(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, heroTables(), "s1")
	m.Shard("s1").ExpectExec(tenantConstant.Text()).WithArgs("acme").WillReturnResult(sqlmock.NewResult(0, 1))
	lib, err := m.Store.Library(dal.Place{Shard: "s1"}, dal.LaneTenant)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lib.Exec(as(t.Context(), "acme"), tenantConstant, "acme"); err != nil {
		t.Error(err)
	}
}

func TestMockStore_SystemScopeIsListed(t *testing.T) {
	t.Parallel()
	f := runFake(t, func(tb testing.TB) {
		m := testutil.NewMockStore(tb, heroTables())
		m.Shard("s2").ExpectQuery("SELECT * FROM `heros`").WithoutArgs().WillReturnRows(sqlmock.NewRows(heroColumns))
		sys := tenant.System(t.Context(), "nightly count", "heros")
		if err := m.Store.OnPlace(sys, dal.Place{Shard: "s2"}).Find(&[]Hero{}).Error; err != nil {
			t.Error(err)
		}
		if s := m.Sent(); len(s) != 1 || !s[0].System || s[0].Reason != "nightly count" || s[0].Tenant != "" || s[0].Place.Shard != "s2" {
			t.Errorf("Sent: %+v", s)
		}
	})
	if len(f.failures) != 0 {
		t.Errorf("failures: %q", f.failures)
	}
	if len(f.logs) != 1 || !strings.Contains(f.logs[0], "nightly count") || !strings.Contains(f.logs[0], "SELECT * FROM `heros`") {
		t.Errorf("logs: %q", f.logs)
	}
}

// Pet has what Hero lacks: soft deletion, a UUID, an owner to preload.
type Pet struct {
	dal.UUIDModel
	PlayerID  string
	HeroID    int64
	Hero      Hero
	DeletedAt gorm.DeletedAt
}

// The check finds no fault with any shape that the store sends. The mock expects none of them, which is its own error.
func TestMockStore_FindsNoFaultWithScopedShapes(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, append(heroTables(), dal.Tenant[Pet]("player", "player_id")), "s1")
	ctx := as(t.Context(), "acme")
	on := func() *gorm.DB {
		return m.Store.On(ctx, dal.Key("player", "7")).Session(&gorm.Session{SkipDefaultTransaction: true})
	}
	for name, run := range map[string]func() error{
		"First": func() error { return on().First(&Pet{}, "id = ?", 1).Error },
		"Take":  func() error { return on().Take(&Hero{}).Error },
		"Last":  func() error { return on().Last(&Hero{}).Error },
		"Or": func() error {
			return on().Where("name = ?", "a").Or("name = 'it''s' OR name = ?", "b").Find(&[]Pet{}).Error
		},
		"Not":        func() error { return on().Not("name = ?", "a").Find(&[]Hero{}).Error },
		"In":         func() error { return on().Where("id IN ?", []int64{1, 2}).Find(&[]Hero{}).Error },
		"Between":    func() error { return on().Where("id BETWEEN ? AND ?", 1, 2).Find(&[]Hero{}).Error },
		"Struct":     func() error { return on().Where(&Hero{Name: "a"}).Find(&[]Hero{}).Error },
		"Map":        func() error { return on().Where(map[string]any{"name": "a"}).Find(&[]Hero{}).Error },
		"own tenant": func() error { return on().Where("tenant_id = ?", tenant.ID("acme")).Find(&[]Hero{}).Error },
		"Count":      func() error { var n int64; return on().Model(&Pet{}).Distinct("player_id").Count(&n).Error },
		"Pluck":      func() error { return on().Model(&Hero{}).Pluck("name", &[]string{}).Error },
		"Group": func() error {
			return on().Model(&Hero{}).Select("name, COUNT(*) AS n").Group("name").Having("COUNT(*) > ?", 1).Find(&[]map[string]any{}).Error
		},
		"Offset": func() error { return on().Order("name").Limit(3).Offset(2).Find(&[]Hero{}).Error },
		"for update": func() error {
			return on().Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Find(&[]Hero{}).Error
		},
		"for share": func() error {
			return on().Clauses(clause.Locking{Strength: "SHARE"}).Where("id = ?", 1).Find(&[]Pet{}).Error
		},
		"Rows":          func() error { _, err := on().Model(&Hero{}).Rows(); return err },
		"Row":           func() error { return on().Model(&Hero{}).Select("MAX(id)").Row().Scan(new(int64)) },
		"Unscoped":      func() error { return on().Unscoped().Find(&[]Pet{}).Error },
		"Create":        func() error { return on().Create(&Pet{PlayerID: "7"}).Error },
		"Create slice":  func() error { return on().Create(&[]Hero{{PlayerID: "7", Name: "?"}, {PlayerID: "7"}}).Error },
		"Create Select": func() error { return on().Select("name").Create(&Hero{PlayerID: "7", Name: "a"}).Error },
		"Create Omit":   func() error { return on().Omit("tenant_id").Create(&Hero{PlayerID: "7", Name: "a"}).Error },
		"Update":        func() error { return on().Model(&Hero{Model: dal.Model{ID: 1}}).Update("name", "b").Error },
		"Updates":       func() error { return on().Model(&Hero{}).Where("id = ?", 1).Updates(Hero{Name: "b"}).Error },
		"Update Expr": func() error {
			return on().Model(&Hero{}).Where("id = ?", 1).Update("name", gorm.Expr("CONCAT(name, ?)", "x")).Error
		},
		"UpdateColumn":   func() error { return on().Model(&Hero{}).Where("1 = 1 OR id = ?", 1).UpdateColumn("name", "b").Error },
		"Delete":         func() error { return on().Delete(&Hero{}, 1).Error },
		"Delete softly":  func() error { return on().Where("player_id = ?", "7").Delete(&Pet{}).Error },
		"Delete in fact": func() error { return on().Unscoped().Where("player_id = ?", "7").Delete(&Pet{}).Error },
		"all of them":    func() error { return on().Session(&gorm.Session{AllowGlobalUpdate: true}).Delete(&Hero{}).Error },
		"generic":        func() error { _, err := gorm.G[Hero](on()).Where("name = ?", "a").Count(ctx, "id"); return err },
	} {
		before := len(m.Sent())
		if err := run(); err == nil || !strings.Contains(err.Error(), "not expected") {
			t.Errorf("%s: %v, want the mock's own error", name, err)
		}
		if n := len(m.Sent()) - before; n != 1 {
			t.Errorf("%s: %d statements were sent, want 1", name, n)
		}
	}
}

// Each statement of a preload is its own.
func TestMockStore_Preload(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, append(heroTables(), dal.Tenant[Pet]("player", "player_id")), "s1")
	m.Shard("s1").ExpectQuery("SELECT * FROM `pets` WHERE `pets`.`tenant_id` = ? AND `pets`.`deleted_at` IS NULL").WithArgs("acme").
		WillReturnRows(sqlmock.NewRows([]string{"tenant_id", "player_id", "hero_id"}).AddRow("acme", "7", 1))
	m.Shard("s1").ExpectQuery("SELECT * FROM `heros` WHERE `heros`.`tenant_id` = ? AND (`heros`.`id` = ?)").WithArgs("acme", 1).
		WillReturnRows(sqlmock.NewRows(heroColumns).AddRow(1, "acme", time.Time{}, time.Time{}, "7", "Ada"))
	var pets []Pet
	if err := m.Store.On(as(t.Context(), "acme"), dal.Key("player", "7")).Preload("Hero").Find(&pets).Error; err != nil || len(pets) != 1 || pets[0].Hero.Name != "Ada" {
		t.Errorf("Preload: %+v, %v", pets, err)
	}
}

func TestMockStore_UnmetExpectationFailsTheTest(t *testing.T) {
	t.Parallel()
	f := runFake(t, func(tb testing.TB) {
		m := testutil.NewMockStore(tb, heroTables())
		m.Shard("s2").ExpectQuery(selectHeroes)
	})
	f.failedWith(t, "place s2", "remaining expectation")
}

// What the service itself has not closed, and any number of connections, does not fail the test.
func TestMockStore_ClosesTheStore(t *testing.T) {
	t.Parallel()
	var store *dal.Store
	f := runFake(t, func(tb testing.TB) {
		m := testutil.NewMockStore(tb, heroTables(), "s1")
		store = m.Store
		const n = 5
		m.Shard("s1").MatchExpectationsInOrder(false)
		for range n {
			m.Shard("s1").ExpectQuery(selectHeroes).WithArgs("acme").WillReturnRows(sqlmock.NewRows(heroColumns))
		}
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := m.Store.On(as(t.Context(), "acme"), dal.Key("player", "7")).Find(&[]Hero{}).Error; err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	if len(f.failures) != 0 {
		t.Errorf("failures: %q", f.failures)
	}
	if err := store.On(as(t.Context(), "acme"), dal.Key("player", "7")).Find(&[]Hero{}).Error; err == nil {
		t.Error("the store is not closed")
	}
}

func TestMockStore_Tenants(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStoreWith(t, testutil.MockConfig{
		Config: dal.Config{Tables: heroTables()},
		Shards: []shardrouter.ShardID{"east", "west"},
		Tenants: []tenant.Tenant{
			{ID: "acme", Model: tenant.SharedTable},
			{ID: "zeta", Model: tenant.OwnSchema},
			{ID: "big", Model: tenant.OwnDatabase},
			{ID: "sleepy", Model: tenant.SharedTable, Status: tenant.Suspended},
		},
	})
	key := dal.Key("player", "7")
	for id, want := range map[tenant.ID]dal.Place{
		"acme": {Shard: m.Owner("acme", key)},
		"zeta": {Shard: m.Owner("zeta", key), Schema: tenant.SchemaName("zeta")},
		"big":  {Shard: "big-s1"},
	} {
		if m.On(id, key) != m.Place(want) {
			t.Errorf("tenant %s: another mock than that of %s", id, want)
		}
		m.Place(want).ExpectQuery(selectHeroes).WithArgs(string(id)).WillReturnRows(sqlmock.NewRows(heroColumns))
		if err := m.Store.On(as(t.Context(), id), key).Find(&[]Hero{}).Error; err != nil {
			t.Errorf("tenant %s: %v", id, err)
		}
		if sent := m.Sent(); sent[len(sent)-1].Place != want {
			t.Errorf("tenant %s: sent to %s, want %s", id, sent[len(sent)-1].Place, want)
		}
	}
	if m.Shard("big-s1") != m.On("big", key) {
		t.Error("Shard does not know a tenant's own shard")
	}
	if err := m.Store.On(as(t.Context(), "sleepy"), key).Find(&[]Hero{}).Error; !errors.Is(err, tenant.ErrSuspended) {
		t.Errorf("suspended: %v", err)
	}
	if err := m.Store.On(as(t.Context(), "nobody"), key).Find(&[]Hero{}).Error; !errors.Is(err, tenant.ErrUnknownTenant) {
		t.Errorf("unknown: %v", err)
	}
}

func TestMockStore_AnyWellFormedTenant(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, heroTables())
	key := dal.Key("player", "7")
	if err := m.Store.On(as(t.Context(), "Acme"), key).Find(&[]Hero{}).Error; !errors.Is(err, tenant.ErrInvalidID) {
		t.Errorf("ill-formed: %v", err)
	}
	if err := m.Store.On(t.Context(), key).Find(&[]Hero{}).Error; !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("none: %v", err)
	}
	if sent := m.Sent(); len(sent) != 0 {
		t.Errorf("Sent: %+v", sent)
	}
}

func TestMockStore_Misuse(t *testing.T) {
	t.Parallel()
	key := dal.Key("player", "7")
	for name, c := range map[string]struct {
		use  func(tb testing.TB)
		want string
	}{
		"table": {func(tb testing.TB) { testutil.NewMockStore(tb, []dal.Table{dal.Tenant[Motto]("player", "id")}) }, "tenant_id"},
		"shard": {func(tb testing.TB) { testutil.NewMockStore(tb, heroTables(), "s1", "s1") }, "s1"},
		"tenants twice": {func(tb testing.TB) {
			registry, err := tenant.NewStatic()
			if err != nil {
				t.Error(err)
			}
			testutil.NewMockStoreWith(tb, testutil.MockConfig{Config: dal.Config{Tables: heroTables(), Registry: registry}, Tenants: []tenant.Tenant{}})
		}, "both given"},
		"tenant": {func(tb testing.TB) {
			testutil.NewMockStoreWith(tb, testutil.MockConfig{Tenants: []tenant.Tenant{{ID: "A"}}})
		}, "invalid tenant id"},
		"unknown shard": {func(tb testing.TB) { testutil.NewMockStore(tb, heroTables()).Shard("s3") }, `"s3"`},
		"unknown schema": {func(tb testing.TB) {
			testutil.NewMockStore(tb, heroTables()).Place(dal.Place{Shard: "s1", Schema: "x"})
		}, "s1/x"},
		"unknown keyspace": {func(tb testing.TB) { testutil.NewMockStore(tb, heroTables()).Owner("acme", dal.Key("guild", "7")) }, "guild"},
		"zero key":         {func(tb testing.TB) { testutil.NewMockStore(tb, heroTables()).On("acme", dal.Key("player", 0)) }, "zero"},
		"ill-formed":       {func(tb testing.TB) { testutil.NewMockStore(tb, heroTables()).On("Acme", key) }, "invalid tenant id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runFake(t, c.use).failedWith(t, c.want)
		})
	}
}

func TestMockStore_DeadlineIsATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := testutil.NewMockStore(t, heroTables(), "s1")
		key := dal.Key("player", "7")
		m.Shard("s1").ExpectQuery(selectHeroes).WithArgs("acme").WillDelayFor(10 * time.Second).WillReturnRows(sqlmock.NewRows(heroColumns))
		ctx, cancel := context.WithTimeout(as(t.Context(), "acme"), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := m.Store.On(ctx, key).Find(&[]Hero{}).Error
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sqlmock.ErrCancelled) || !dal.IsTimeout(err) {
			t.Errorf("error %v", err)
		}

		// An error of that name from the test itself, with time left, stays what it is.
		m.Shard("s1").ExpectQuery(selectHeroes).WithArgs("acme").WillReturnError(sqlmock.ErrCancelled)
		if err := m.Store.On(as(t.Context(), "acme"), key).Find(&[]Hero{}).Error; !errors.Is(err, sqlmock.ErrCancelled) || dal.IsTimeout(err) {
			t.Errorf("error %v", err)
		}
	})
}

func TestMockStore_DeadlinePoisonsTheTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := testutil.NewMockStore(t, heroTables(), "s1")
		key := dal.Key("player", "7")
		mock := m.Shard("s1")
		mock.ExpectBegin()
		mock.ExpectExec(insertHero).WillDelayFor(time.Minute).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectRollback()
		err := m.Store.Transaction(as(t.Context(), "acme"), key, func(ctx context.Context, tx *gorm.DB) error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := tx.WithContext(short).Create(&Hero{PlayerID: "7"}).Error; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Create: %v", err)
			}
			return nil // the service forgets the error
		})
		if !errors.Is(err, wire.ErrPoisoned) {
			t.Errorf("the transaction was committed: %v", err)
		}
	})
}

func TestMockStore_Savepoint(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, heroTables(), "s1")
	key, ctx := dal.Key("player", "7"), as(t.Context(), "acme")
	boom := errors.New("boom")
	m.Shard("s1").ExpectBegin()
	m.Shard("s1").ExpectExec("SAVEPOINT sp").WillReturnResult(sqlmock.NewResult(0, 0))
	m.Shard("s1").ExpectExec("ROLLBACK TO SAVEPOINT sp").WillReturnResult(sqlmock.NewResult(0, 0))
	m.Shard("s1").ExpectCommit()
	err := m.Store.Transaction(ctx, key, func(ctx context.Context, _ *gorm.DB) error {
		if err := m.Store.Transaction(ctx, key, func(context.Context, *gorm.DB) error { return boom }); !errors.Is(err, boom) {
			t.Errorf("inner: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("outer: %v; sent %+v", err, m.Sent())
	}
}

func TestMockStore_SwallowedDeadlockPoisons(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, heroTables(), "s1")
	m.Shard("s1").ExpectBegin()
	m.Shard("s1").ExpectExec(insertHero).WillReturnError(&mysql.MySQLError{Number: 1213})
	m.Shard("s1").ExpectRollback()
	err := m.Store.Transaction(as(t.Context(), "acme"), dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		_ = tx.Create(&Hero{PlayerID: "7"}).Error
		return nil
	})
	if !errors.Is(err, wire.ErrPoisoned) {
		t.Errorf("committed: %v", err)
	}
}

func TestMockStore_RefusedWritesSendNothing(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, heroTables(), "s1") // expects nothing
	on := m.Store.On(as(t.Context(), "acme"), dal.Key("player", "7"))
	if err := on.Create(&Hero{Model: dal.Model{TenantID: "globex"}, PlayerID: "7"}).Error; !errors.Is(err, dal.ErrTenantMismatch) {
		t.Errorf("another tenant's row: %v", err)
	}
	if err := on.Delete(&Hero{}).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Errorf("no condition: %v", err)
	}
}

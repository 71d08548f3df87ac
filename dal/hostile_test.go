package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	schemapkg "github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// rawExpr prints its text wherever gorm lets it.
type rawExpr string

func (r rawExpr) Build(b clause.Builder) { _, _ = b.WriteString(string(r)) }

// TestHostile_TextThatWouldLeaveItsPlace runs what got out of earlier versions of the scope: each must be refused, or give the tenant's own rows alone.
func TestHostile_TextThatWouldLeaveItsPlace(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	a := func() *gorm.DB { return g.player(g.a) }
	sub := "(SELECT max(gold) FROM users WHERE tenant_id='b')"
	var m []map[string]any
	for name, run := range map[string]func() *gorm.DB{
		"surplus value": func() *gorm.DB {
			return a().Model(&User{}).Where("1=1").UpdateColumn("gold", gorm.Expr("gold + 1000", "b"))
		},
		"? in a string": func() *gorm.DB {
			return a().Model(&User{}).Where("gold > 0").UpdateColumn("name", gorm.Expr("name || ' ?'", "b"))
		},
		"? in a selected string": func() *gorm.DB { return a().Model(&User{}).Select("tenant_id, name, '?' AS q", "b").Find(&m) },
		"named as positional":    func() *gorm.DB { return a().Model(&User{}).Select("tenant_id ?, name", sql.Named("x", "b")).Find(&m) },
		"numbered placeholders": func() *gorm.DB {
			return a().Model(&User{}).Select("tenant_id, name, ?1 AS x, ?1 AS y", "v", "b").Find(&m)
		},
		"balanced elsewhere": func() *gorm.DB {
			return a().Model(&User{}).Select("tenant_id, name, ? AS q").Where("1=1 OR '?' = 'q'", "b").Find(&m)
		},
		"balanced in an update": func() *gorm.DB {
			return a().Model(&User{}).Where("'' = ? OR 1=1").UpdateColumn("gold", gorm.Expr("gold + 100", "b"))
		},
		"assigns the owner": func() *gorm.DB {
			return a().Model(&User{}).Where("id = 3").Update("gold", gorm.Expr("gold + 1, tenant_id = 'b', id = 4000"))
		},
		"update from": func() *gorm.DB {
			return a().Model(&User{}).Where("users.id = 1").UpdateColumn("name", gorm.Expr("i.name || '!' FROM items i"))
		},
		"text in a named arg": func() *gorm.DB {
			return a().Model(&User{}).Where("name = @x", sql.Named("x", gorm.Expr("'' ) OR (1=1"))).Find(&m)
		},
		"expression in a list": func() *gorm.DB {
			return a().Model(&User{}).Where("gold IN ?", [][]any{{gorm.Expr("1))) OR (1=1 OR gold IN ((2")}}).Find(&m)
		},
		"square brackets": func() *gorm.DB {
			return a().Model(&User{}).Where("CAST(1 AS [x']) OR 1=1) OR (1=1 OR CAST(1 AS [y'])").Find(&m)
		},
		"order in brackets": func() *gorm.DB {
			return a().Model(&User{}).Order("CAST(1 AS [x']), " + sub + ", CAST(1 AS [y'])").Find(&m)
		},
		"select in brackets": func() *gorm.DB {
			return a().Model(&User{}).Select("tenant_id, name AS [q'], name FROM users -- ']").Find(&m)
		},
		"is distinct from": func() *gorm.DB {
			return a().Model(&User{}).Unscoped().Select("i.tenant_id, i.name AS users FROM items i, users ON 1 IS DISTINCT").Find(&m)
		},
		"raw alias": func() *gorm.DB {
			return a().Model(&User{}).Clauses(clause.Select{Columns: []clause.Column{{Name: "name", Raw: true, Alias: "name FROM users -- "}}}).Find(&m)
		},
		"raw table": func() *gorm.DB {
			return a().Model(&User{}).Where(clause.Eq{Column: clause.Column{Raw: true, Table: "1=1) OR (1=1 OR users", Name: "name"}, Value: "q"}).Find(&m)
		},
		"dotted alias": func() *gorm.DB {
			return a().Model(&User{}).Clauses(clause.Select{Columns: []clause.Column{{Name: "gold", Alias: ".,name FROM users WHERE tenant_id <> 'a' -- "}}}).Find(&m)
		},
		"map key": func() *gorm.DB { return a().Model(&User{}).Where(map[string]any{"users.name.": 1}).Find(&m) },
		"string filled with text": func() *gorm.DB {
			return a().Model(&User{}).Where("name = '?'", gorm.Expr("' ) OR (1=1 OR name = '")).Find(&m)
		},
		"name filled with text": func() *gorm.DB {
			return a().Model(&User{}).Where("`n?`", gorm.Expr("ame`>'' ) OR (1=1 OR `name")).Find(&m)
		},
		"IN a table":     func() *gorm.DB { return a().Model(&User{}).Where("id NOT IN ?", gorm.Expr("jobs")).Find(&m) },
		"IN a column":    func() *gorm.DB { return a().Model(&User{}).Where("id IN ?", clause.Column{Name: "jobs"}).Find(&m) },
		"table function": func() *gorm.DB { return a().Model(&User{}).Where("id IN json_each('[1]')").Find(&m) },
		"user variable": func() *gorm.DB {
			return a().Model(&User{}).Where("(@leak := name) IS NOT NULL AND gold > @g", sql.Named("g", 0)).Find(&m)
		},
		"connection state":          func() *gorm.DB { return a().Model(&User{}).Select("last_insert_rowid(), changes()").Find(&m) },
		"expression as a condition": func() *gorm.DB { return a().Model(&User{}).Where(rawExpr("1=1) OR (1=1")).Find(&m) },
		"expression as a value":     func() *gorm.DB { return a().Model(&User{}).Where("gold > ?", rawExpr("0) OR (1=1")).Find(&m) },
		"expression to assign": func() *gorm.DB {
			return a().Model(&User{}).Where("id = 1").Update("gold", rawExpr("1, tenant_id = 'b'"))
		},
		"nil expression": func() *gorm.DB { return a().Model(&User{}).Where("gold > ?", (*clause.Expr)(nil)).Find(&m) },
	} {
		t.Run(name, func(t *testing.T) {
			before := g.dump(t, "b") + g.dump(t, "a")
			g.rec.take()
			err := run().Error
			if err == nil || !errors.Is(err, dal.ErrShape) && !errors.Is(err, dal.ErrImmutable) && !errors.Is(err, dal.ErrTenantMismatch) {
				t.Errorf("error %v", err)
			}
			for _, text := range g.rec.take() {
				t.Errorf("it left: %s", text)
			}
			if after := g.dump(t, "b") + g.dump(t, "a"); after != before {
				t.Errorf("rows changed:\n%s\nwere\n%s", after, before)
			}
		})
	}
}

// evil is a Valuer that does something while its value is asked for.
type evil struct{ do func() }

func (e evil) Value() (driver.Value, error) {
	e.do()
	return "x", nil
}

func TestHostile_CodeInsideTheStatement(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "b")
	mine := func(name string, run func(h *gorm.DB, m *[]map[string]any) error) {
		t.Helper()
		var m []map[string]any
		err := run(g.player(g.a).Model(&User{}).Select("tenant_id", "name"), &m)
		for _, row := range m {
			if fmt.Sprint(row["tenant_id"]) != "a" {
				t.Errorf("%s: %v came back (%v)", name, row, err)
			}
		}
	}
	mine("a Valuer that changes the arguments", func(h *gorm.DB, m *[]map[string]any) error {
		var st *gorm.Statement
		h = h.Where("name <> ?", evil{func() { st.Vars[0] = "b" }})
		st = h.Statement
		return h.Find(m).Error
	})
	mine("a Valuer that sends the statement for b", func(h *gorm.DB, m *[]map[string]any) error {
		var st *gorm.Statement
		h = h.Where("name <> ?", evil{func() {
			rows, err := st.ConnPool.QueryContext(st.Context, st.SQL.String(), "b", "q")
			if err == nil {
				t.Error("it was sent")
				_ = rows.Close()
			}
		}})
		st = h.Statement
		return h.Find(m).Error
	})
	mine("a Valuer that writes into the text", func(h *gorm.DB, m *[]map[string]any) error {
		var st *gorm.Statement
		h = h.Where(clause.Eq{Column: "name", Value: evil{func() { _, _ = st.SQL.WriteString(" IS NULL) OR (1=1 OR name") }}})
		st = h.Statement
		return h.Find(m).Error
	})
	mine("a clause under another name", func(h *gorm.DB, m *[]map[string]any) error {
		h = h.Order("name")
		c := h.Statement.Clauses["ORDER BY"]
		c.Name = "UNION ALL SELECT tenant_id, name FROM users ORDER BY"
		h.Statement.Clauses["ORDER BY"] = c
		return h.Find(m).Error
	})
	mine("clauses of the caller's own", func(h *gorm.DB, m *[]map[string]any) error {
		h = h.Where("id = 1")
		h.Statement.BuildClauses = []string{"SELECT", "FROM", "WHERE", "soft_delete_enabled"}
		h.Statement.Clauses["soft_delete_enabled"] = clause.Clause{Expression: clause.Expr{SQL: "OR 1=1"}}
		return h.Find(m).Error
	})
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s", after)
	}
}

// Field types and models that could spoil a statement are refused when they are declared.
type (
	orType  int64
	exprTyp string

	WithClauses struct {
		dal.Model
		PlayerID string
		Visible  orType
	}
	WithExpr struct {
		dal.Model
		PlayerID string
		Text     exprTyp
	}
	WithTwin struct {
		dal.Model
		PlayerID string
		Owner    string `gorm:"column:TENANT_ID;-:migration"`
	}
	WithSmallID struct {
		ID       int32
		TenantID tenant.ID `gorm:"column:tenant_id"`
		PlayerID string
	}
	WithOddColumn struct {
		dal.Model
		PlayerID string
		Name     string "gorm:\"column:a`b\""
	}
)

func (orType) QueryClauses(*schema.Field) []clause.Interface {
	return []clause.Interface{clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=1\nOR 1=1"}}}}
}

func (e exprTyp) Build(b clause.Builder) { _, _ = b.WriteString(string(e)) }

func TestHostile_ModelsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]dal.Table{
		"clauses of a field type":  dal.Tenant[WithClauses]("player", "player_id"),
		"a field that writes SQL":  dal.Tenant[WithExpr]("player", "player_id"),
		"the owner's column twice": dal.Tenant[WithTwin]("player", "player_id"),
		"a small integer id":       dal.Tenant[WithSmallID]("player", "player_id"),
		"a column with a quote":    dal.Tenant[WithOddColumn]("player", "player_id"),
	} {
		if err := (dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), 1), Tables: []dal.Table{table}}).Validate(); !errors.Is(err, dal.ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Memo has a field of any type.
type Memo struct {
	ID       uint
	TenantID tenant.ID `gorm:"column:tenant_id"`
	PlayerID string
	Note     any `gorm:"type:text"`
}

func TestHostile_InsertedValues(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Memo]("player", "player_id"))
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec("CREATE TABLE memos (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, note TEXT, PRIMARY KEY (tenant_id, id))"); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range map[string]any{
		"a row":               rawExpr("'x'),('b',777,'7','stolen'"),
		"another's sub-query": g.player(g.b).Model(&Item{}).Select("name"),
	} {
		err := g.player(g.a).Create(&Memo{PlayerID: "7", Note: v}).Error
		if !errors.Is(err, dal.ErrShape) && !errors.Is(err, dal.ErrTenantMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := g.count(t, "SELECT COUNT(*) FROM memos"); n != 0 {
		t.Errorf("%d rows", n)
	}
	g.seed(t)
	if err := g.player(g.a).Create(&Memo{ID: 1, PlayerID: "7", Note: gorm.Expr("(SELECT group_concat(tenant_id) FROM items)")}).Error; err != nil {
		t.Error(err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM memos WHERE note LIKE '%a%' AND note NOT LIKE '%b%'"); n != 1 {
		t.Error("the sub-select read other rows than the tenant's")
	}
	for range 2 { // a uint id is filled too
		m := Memo{PlayerID: "7", Note: "fine"}
		if err := g.player(g.a).Create(&m).Error; err != nil || m.ID < 1000 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if n := g.count(t, "SELECT COUNT(*) FROM memos WHERE id > 1000 AND tenant_id = 'a'"); n != 2 {
		t.Errorf("%d rows with ids of the library", n)
	}
}

func TestHostile_PanicsInAWriteEndItsTransaction(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(c *dal.Config, ts *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Hooked]("player", "player_id"))
		(*ts)[0].Limits.MaxConns = 1
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec("CREATE TABLE hookeds (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))"); err != nil {
			t.Fatal(err)
		}
	}
	g.seed(t)
	for name, run := range map[string]func(){
		"a hook":   func() { g.player(g.a).Create(&Hooked{hook: func(*gorm.DB) error { panic("hook") }}) },
		"a Valuer": func() { g.player(g.a).Model(&User{}).Where("id = 1").Update("name", evil{func() { panic("value") }}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic was swallowed", name)
				}
			}()
			run()
		}()
		g.idle(t)
		if err := g.player(g.b).Create(&Item{PlayerID: "7", Name: name}).Error; err != nil {
			t.Errorf("%s: another tenant's write: %v", name, err)
		}
	}
	if n := g.count(t, "SELECT COUNT(*) FROM hookeds"); n != 0 {
		t.Errorf("%d rows of the panicked hook", n)
	}
}

func TestHostile_TransactionsEndOnce(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	err := g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&User{PlayerID: "7"}).Error; err != nil {
			t.Error(err)
		}
		if err := tx.Commit().Error; !errors.Is(err, dal.ErrShape) {
			t.Errorf("Commit inside: %v", err)
		}
		return errors.New("no")
	})
	if err == nil {
		t.Error("the error was lost")
	}
	err = g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&User{PlayerID: "7"}).Error; err != nil {
			t.Error(err)
		}
		ended, cancel := context.WithCancel(g.a)
		cancel()
		if err := tx.WithContext(ended).Create(&User{PlayerID: "7"}).Error; !errors.Is(err, context.Canceled) {
			t.Errorf("under an ended context: %v", err)
		}
		return nil // swallowed
	})
	if !errors.Is(err, wire.ErrPoisoned) {
		t.Errorf("half a transaction: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users"); n != 0 {
		t.Errorf("%d rows were kept", n)
	}
	h := g.player(g.a).Begin() // the caller's own transaction is the caller's to end
	if err := h.Create(&User{PlayerID: "7"}).Error; err != nil {
		t.Fatal(err)
	}
	if err := h.Commit().Error; err != nil {
		t.Errorf("Commit of Begin: %v", err)
	}
	g.idle(t)
}

func TestHostile_OrdinaryCodeThatMustWork(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	a := func() *gorm.DB { return g.player(g.a) }
	if err := a().Model(User{}).Where("id = 1").Updates(User{Gold: 5}).Error; err != nil { // User holds a slice: not comparable
		t.Errorf("Updates by value: %v", err)
	}
	if _, err := gorm.G[User](a()).Where("id = ?", 2).Updates(g.a, User{Gold: 8}); err != nil {
		t.Errorf("generic Updates: %v", err)
	}
	var u User
	if err := a().First(&u, 1).Error; err != nil {
		t.Fatal(err)
	}
	u.Gold = 9
	if res := a().Model(&u).Updates(u); res.Error != nil || res.RowsAffected != 1 {
		t.Errorf("a whole copy: %d, %v", res.RowsAffected, res.Error)
	}
	g.rec.take()
	if err := a().Updates(&User{PlayerID: "7", Gold: 4242}).Error; !errors.Is(err, gorm.ErrMissingWhereClause) {
		t.Errorf("no id: %v", err)
	}
	if err := a().Create(&Line{No: 1}).Error; err != nil {
		t.Fatal(err)
	}
	if res := a().Delete(Line{No: 1}); res.Error != nil || res.RowsAffected != 1 {
		t.Errorf("Delete by value: %d, %v", res.RowsAffected, res.Error)
	}
	var n int
	if err := a().Session(&gorm.Session{DryRun: true}).Model(&User{}).Select("gold").Row().Scan(&n); !errors.Is(err, gorm.ErrDryRunModeUnsupported) {
		t.Errorf("Row under DryRun: %v", err)
	}
	var ctx context.Context
	if err := g.On(ctx, dal.Key("player", "7")).Find(&[]User{}).Error; !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("a nil context: %v", err)
	}
	var users []User
	for _, q := range []*gorm.DB{
		a().Where("(id, gold) IN ?", [][]any{{3, 30}}),
		a().Where("name = @name AND gold > @gold", map[string]any{"name": "n3", "gold": 1}),
		a().Where("name = @name", sql.Named("name", "n3")),
		a().Where("id IN ?", []int64{3}).Order("gold DESC, name"),
		a().Where(map[string]any{"name": []string{"n3"}}),
		a().Where("LOWER(name) LIKE ? AND COALESCE(gold, 0) BETWEEN ? AND ?", "n3%", 1, 100),
		a().Where("id = ?", sql.NullInt64{Int64: 3, Valid: true}),
		a().Select("id, tenant_id, name, CASE WHEN gold > 5 THEN 'rich' ELSE 'poor' END AS kind").Where("id = 3"),
	} {
		users = nil
		if err := q.Find(&users).Error; err != nil || len(users) != 1 || users[0].Name != "n3" {
			t.Errorf("%d rows, %v", len(users), err)
		}
	}
	type total struct {
		Name string
		Sum  int64
	}
	var totals []total
	if err := a().Model(&User{}).Select("name, SUM(gold) AS sum").Group("name").Having("SUM(gold) > ?", 8).Order("sum desc").Find(&totals).Error; err != nil || len(totals) != 2 {
		t.Errorf("group: %v, %v", totals, err)
	}
}

func TestHostile_RepositoryKeysHaveTheColumnsType(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: cluster(t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			store := openHeroes(t, cfg)
			repo, err := dal.NewRepository[Hero](store)
			if err != nil {
				t.Fatal(err)
			}
			ctx := tenant.NewContext(t.Context(), "base-d") // one shard: every player is on it
			for i, p := range []string{"7", "07", "7x"} {
				if err := repo.Create(ctx, &Hero{Model: dal.Model{ID: int64(i + 1)}, PlayerID: p}); err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range []int64{2, 3} {
				if h, err := repo.Get(ctx, 7, id); !dal.IsNotFound(err) {
					t.Errorf("player 7 has hero %d of player %q, %v", id, h.PlayerID, err)
				}
			}
			if h, err := repo.Get(ctx, 7, 1); err != nil || h.PlayerID != "7" {
				t.Errorf("player 7: %+v, %v", h, err)
			}
			if _, err := repo.Get(ctx, []byte("7"), 1); err != nil {
				t.Errorf("a key of bytes: %v", err)
			}
			for _, id := range []any{[]int64{1, 2}, gorm.Expr("id"), "1 OR 1=1", nil} {
				if err := repo.Delete(ctx, "7", id); !errors.Is(err, dal.ErrShape) {
					t.Errorf("Delete(%v): %v", id, err)
				}
			}
			if n, err := repo.Count(ctx, "7"); err != nil || n != 1 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

// MariaDB reads backslashes, variables and extra arguments in its own way: the same holds there.
func TestHostile_MariaDB(t *testing.T) {
	t.Parallel()
	testutil.RequireMariaDB(t)
	cfg := dal.Config{Cluster: clusters()["mariadb"](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	store := openHeroes(t, cfg)
	a, b := tenant.NewContext(t.Context(), "shared-a"), tenant.NewContext(t.Context(), "shared-b")
	key := ""
	for i := 1; key == ""; i++ {
		k := fmt.Sprint("p", i)
		ra, err := store.Route(a, dal.Key("player", k))
		if err != nil {
			t.Fatal(err)
		}
		if rb, _ := store.Route(b, dal.Key("player", k)); ra.Place == rb.Place {
			key = k
		}
	}
	on := func(ctx context.Context) *gorm.DB { return store.On(ctx, dal.Key("player", key)) }
	for _, ctx := range []context.Context{a, b} {
		if err := on(ctx).Create(&Hero{Model: dal.Model{ID: 1}, PlayerID: key, Name: "secret", Gold: 1}).Error; err != nil {
			t.Fatal(err)
		}
	}
	var m []map[string]any
	for name, run := range map[string]func() error{
		"balanced arguments": func() error {
			return on(a).Model(&Hero{}).Where("'' = ? OR 1=1").UpdateColumn("gold", gorm.Expr("gold + 100", "shared-b")).Error
		},
		"assigns the owner": func() error {
			return on(a).Model(&Hero{}).Where("id = 1").Update("gold", gorm.Expr("gold + 1, tenant_id = 'shared-b', id = 9")).Error
		},
		"user variable": func() error {
			return on(b).Model(&Hero{}).Select("@leak AS name, @g AS z", sql.Named("g", 0)).Find(&m).Error
		},
		"last_insert_id": func() error {
			return on(a).Model(&Hero{}).Where("id = 1").Update("gold", gorm.Expr("LAST_INSERT_ID(gold + 1)")).Error
		},
		"sleep":           func() error { return on(a).Where("SLEEP(1)").Find(&[]Hero{}).Error },
		"version comment": func() error { return on(a).Where("1=1 /*!50000 OR 1=1 */").Find(&[]Hero{}).Error },
	} {
		if err := run(); err == nil || !errors.Is(err, dal.ErrShape) && !errors.Is(err, dal.ErrTenantMismatch) && !errors.Is(err, dal.ErrImmutable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	hostile := []string{"\\", "' OR 1=1 -- ", "\\' OR 1=1 -- ", "a\x00b", "名\\'"}
	for _, v := range hostile {
		if err := on(a).Where("name = ?", v).Find(&[]Hero{}).Error; err != nil {
			t.Errorf("bound %q: %v", v, err)
		}
		h := Hero{PlayerID: key, Name: v}
		if err := on(a).Create(&h).Error; err != nil {
			t.Errorf("bound %q: %v", v, err)
		}
		var back Hero
		if err := on(a).First(&back, h.ID).Error; err != nil || back.Name != v {
			t.Errorf("%q came back as %q, %v", v, back.Name, err)
		}
	}
	var mine, theirs []Hero
	if err := errors.Join(on(a).Find(&mine).Error, on(b).Find(&theirs).Error); err != nil {
		t.Fatal(err)
	}
	if len(theirs) != 1 || theirs[0].Gold != 1 || len(mine) != 1+len(hostile) {
		t.Errorf("a has %d rows, b has %+v", len(mine), theirs)
	}
}

// openHeroes migrates and opens a store.
func openHeroes(tb testing.TB, cfg dal.Config) *dal.Store {
	tb.Helper()
	up(tb, cfg)
	store, err := dal.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return store
}

// FuzzScope_Text puts a fragment wherever gorm takes text, on a shard with another tenant's rows: whatever it says, none of them is read or changed.
func FuzzScope_Text(f *testing.F) {
	g := newGame(f)
	g.seed(f)
	for _, s := range []string{
		"name = 'n1'", "1=1) OR (1=1", "name DESC", "SUM(gold)", "gold + 1", "id IN users", "1=1 OR 1=1", "x' OR 'y", "name -- ", "[x'] OR 1=1", "tenant_id = 'b'",
		"gold + 1, tenant_id = 'b'", "1 IS DISTINCT FROM 2", "'?' = ?", "name FROM users", "NOT 1", "`tenant_id`", "1 OR (2", "CASE WHEN 1 THEN 2 END",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		before := g.dump(t, "b")
		a := func() *gorm.DB { return g.player(g.a).Model(&User{}) }
		var rows []map[string]any
		for _, q := range []*gorm.DB{
			a().Where(s), a().Where("id > ?", 0).Or(s), a().Not(s), a().Order(s), a().Group("tenant_id, name").Having(s).Select("tenant_id, name"),
			a().Where("gold > ?", gorm.Expr(s)), a().Where(map[string]any{s: 1}), a().Where(s, "b"), a().Where(s, []string{"b"}), a().Select("tenant_id, " + s),
			a().Distinct(s, "tenant_id"),
		} {
			rows = nil
			_ = q.Find(&rows).Error
			for _, row := range rows {
				if owner, ok := row["tenant_id"]; ok && fmt.Sprint(owner) == "b" && !strings.Contains(s, "tenant_id") {
					t.Fatalf("%q read a row of b: %v", s, row)
				}
			}
		}
		_ = a().Where("id = 1").Update("gold", gorm.Expr(s)).Error
		_ = a().Where(s).Update("gold", 7).Error
		_ = a().Where("id = 1").Updates(map[string]any{s: "b"}).Error
		_ = g.player(g.a).Where(s).Delete(&Item{}).Error
		if after := g.dump(t, "b"); after != before {
			t.Fatalf("%q changed rows of b:\n%s\nwere\n%s", s, after, before)
		}
		if n := g.count(t, "SELECT COUNT(*) FROM users WHERE tenant_id NOT IN ('a', 'b') OR player_id <> '7'"); n != 0 {
			t.Fatalf("%q moved %d rows", s, n)
		}
	})
}

// What the databases themselves say of a table's keys, from real DDL.
func TestHostile_KeysOfAnotherKind(t *testing.T) {
	t.Parallel()
	table := func(mysqlDDL, sqliteDDL string) schemapkg.Set {
		file := func(ddl string) *fstest.MapFile {
			return &fstest.MapFile{Data: []byte("-- +goose Up\n" + ddl + ";\n-- +goose Down\nDROP TABLE IF EXISTS heros;\n")}
		}
		return schemapkg.Set{Name: "game", FS: fstest.MapFS{"mysql/0001_heros.sql": file(mysqlDDL), "sqlite/0001_heros.sql": file(sqliteDDL)}}
	}
	const rest = "name VARCHAR(100), gold BIGINT, created_at DATETIME, updated_at DATETIME, "
	const owner = "tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
	for name, c := range map[string]struct {
		mysql, sqlite, want string
	}{
		"numeric tenant": {"", "CREATE TABLE IF NOT EXISTS heros (tenant_id NUMERIC NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, " + rest + "PRIMARY KEY (tenant_id, id))", "7 and 007 are one tenant"},
		"numeric shard key": {
			"CREATE TABLE IF NOT EXISTS heros (" + owner + "id BIGINT NOT NULL, player_id BIGINT NOT NULL, " + rest + "PRIMARY KEY (tenant_id, id))",
			"CREATE TABLE IF NOT EXISTS heros (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id INTEGER NOT NULL, " + rest + "PRIMARY KEY (tenant_id, id))", "would be one row",
		},
		"prefix key":           {"CREATE TABLE IF NOT EXISTS heros (" + owner + "id BIGINT NOT NULL, player_id VARBINARY(255) NOT NULL, " + rest + "PRIMARY KEY (tenant_id, id), UNIQUE KEY u (tenant_id, player_id(2)))", "", "only the beginning"},
		"no transactions":      {"CREATE TABLE IF NOT EXISTS heros (" + owner + "id BIGINT NOT NULL, player_id VARBINARY(255) NOT NULL, " + rest + "PRIMARY KEY (tenant_id, id)) ENGINE=MyISAM", "", "has no transactions"},
		"rollback on conflict": {"", "CREATE TABLE IF NOT EXISTS heros (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, " + rest + "PRIMARY KEY (tenant_id, id) ON CONFLICT ROLLBACK)", "ends the whole transaction"},
	} {
		for kind, cluster := range clusters() {
			ddl := map[string]string{"sqlite": c.sqlite, "mariadb": c.mysql}[kind]
			if ddl == "" {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				cfg := dal.Config{Cluster: cluster(t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
				good := heroes("", "")
				set := table(ddl, ddl)
				if kind == "sqlite" { // the other dialect's file is not looked at by the server
					set = table(string(good.FS.(fstest.MapFS)["mysql/0001_heros.sql"].Data), ddl)
					set.FS.(fstest.MapFS)["mysql/0001_heros.sql"] = good.FS.(fstest.MapFS)["mysql/0001_heros.sql"]
				} else {
					set.FS.(fstest.MapFS)["sqlite/0001_heros.sql"] = good.FS.(fstest.MapFS)["sqlite/0001_heros.sql"]
				}
				if _, err := schemapkg.Up(t.Context(), cfg, set); err != nil {
					t.Fatal(err)
				}
				_, err := dal.Open(t.Context(), cfg)
				if !errors.Is(err, dal.ErrModel) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		}
	}
}

func TestHostile_WholeRowWithoutAnID(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "a")
	g.refusedAs(t, g.player(g.a).Model(&Item{PlayerID: "7"}).Updates(&Item{PlayerID: "7", Name: "all"}).Error, gorm.ErrMissingWhereClause)
	g.refusedAs(t, g.player(g.a).Updates(&Item{PlayerID: "7", Name: "all"}).Error, gorm.ErrMissingWhereClause)
	if after := g.dump(t, "a"); after != before {
		t.Errorf("rows changed:\n%s", after)
	}
}

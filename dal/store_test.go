package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// keyOn returns a player that lives on the given shard for tenant a.
func (g *game) keyOn(tb testing.TB, shard shardrouter.ShardID) string {
	tb.Helper()
	for i := 1; ; i++ {
		k := fmt.Sprint("p", i)
		r, err := g.Route(g.a, dal.Key("player", k))
		if err != nil {
			tb.Fatal(err)
		}
		if r.Place.Shard == shard {
			return k
		}
	}
}

func TestStore_RouteErrors(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	for name, c := range map[string]struct {
		key  dal.KeyRef
		want error
	}{
		"empty":    {dal.Key("player", ""), shardrouter.ErrEmptyKey},
		"zero":     {dal.Key("player", 0), shardrouter.ErrZeroKey},
		"text 0":   {dal.Key("player", "0"), shardrouter.ErrZeroKey},
		"keyspace": {dal.Key("nowhere", "7"), nil},
	} {
		_, err := g.Route(g.a, c.key)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if herr := g.On(g.a, c.key).Find(&[]User{}).Error; herr == nil || herr.Error() != err.Error() {
			t.Errorf("%s: the handle says %v, Route says %v", name, herr, err)
		}
	}
	seven, err := g.Route(g.a, dal.Key("player", 7))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := g.Route(g.a, dal.Key("player", "7")); text.Place != seven.Place {
		t.Errorf("7 and \"7\" differ: %v, %v", seven.Place, text.Place)
	}
	g.refusedAs(t, nil, nil)
}

func TestStore_S14_ZeroKeyInARow(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	err := g.player(g.a).Create(&User{Name: "nobody"}).Error
	g.refusedAs(t, err, shardrouter.ErrEmptyKey)
	if !strings.Contains(err.Error(), "player_id") {
		t.Errorf("the error does not name the column: %v", err)
	}
	g.refusedAs(t, g.player(g.a).Create(&User{PlayerID: "0"}).Error, shardrouter.ErrZeroKey)
}

func TestStore_WritesForAnotherShardAreRefused(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	p1, p2 := g.keyOn(t, "s1"), g.keyOn(t, "s2")
	err := g.On(g.a, dal.Key("player", p1)).Create(&User{PlayerID: p2}).Error
	g.refusedAs(t, err, dal.ErrCrossShard)
	var cross *dal.CrossShardError
	if !errors.As(err, &cross) || cross.Held != "s1" || cross.Wanted != "s2" {
		t.Errorf("error %v does not name both shards", err)
	}
	err = g.On(g.a, dal.Key("player", p1)).Create(&[]User{{PlayerID: p1}, {PlayerID: p2}}).Error
	g.refusedAs(t, err, dal.ErrCrossShard)
}

func TestStore_S28_SecondShardInATransaction(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	p1, p2 := g.keyOn(t, "s1"), g.keyOn(t, "s2")
	err := g.Transaction(g.a, dal.Key("player", p1), func(ctx context.Context, tx *gorm.DB) error {
		if err := tx.Create(&User{PlayerID: p1, Name: "kept?"}).Error; err != nil {
			return err
		}
		if err := g.On(ctx, dal.Key("player", p2)).Create(&User{PlayerID: p2}).Error; !errors.Is(err, dal.ErrCrossShard) {
			t.Errorf("On: %v", err)
		}
		if err := g.Transaction(ctx, dal.Key("player", p2), func(context.Context, *gorm.DB) error { return nil }); !errors.Is(err, dal.ErrCrossShard) {
			t.Errorf("Transaction: %v", err)
		}
		if err := g.On(tenant.NewContext(ctx, "b"), dal.Key("player", p1)).Find(&[]User{}).Error; err == nil {
			t.Error("another tenant joined the transaction")
		}
		return tx.Create(&User{PlayerID: p2}).Error
	})
	if !errors.Is(err, dal.ErrCrossShard) {
		t.Errorf("error %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users"); n != 0 {
		t.Errorf("%d rows were kept", n)
	}
}

func TestStore_Q60_NestedCallsJoin(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(_ *dal.Config, ts *[]tenant.Tenant) { (*ts)[0].Limits.MaxConns = 1 })
	err := g.Transaction(g.a, dal.Key("player", "7"), func(ctx context.Context, tx *gorm.DB) error {
		if err := g.player(ctx).Create(&User{PlayerID: "7", Name: "outer"}).Error; err != nil {
			return err
		}
		inner := g.Transaction(ctx, dal.Key("player", "7"), func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Create(&User{PlayerID: "7", Name: "inner"}).Error; err != nil {
				return err
			}
			return errors.New("undo the inner part")
		})
		if inner == nil {
			t.Error("the inner error was lost")
		}
		var n int64
		if err := tx.Model(&User{}).Count(&n).Error; err != nil || n != 1 {
			t.Errorf("inside: %d rows, %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users WHERE name = 'outer'"); n != 1 {
		t.Errorf("outer rows: %d", n)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users WHERE name = 'inner'"); n != 0 {
		t.Errorf("inner rows: %d", n)
	}
	g.idle(t)
}

// idle checks that no permit is held.
func (g *game) idle(tb testing.TB) {
	tb.Helper()
	for _, s := range g.shards {
		if n, st := g.Permits("a", s); n != 0 || st.InUse != 0 || st.OverReleases != 0 {
			tb.Errorf("shard %s: %d permits of a in use, %+v", s, n, st)
		}
	}
}

func TestStore_Q63_PanicRollsBackAndGivesThePermitBack(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
			if err := tx.Create(&User{PlayerID: "7"}).Error; err != nil {
				t.Error(err)
			}
			panic("in the middle")
		})
	}()
	if n := g.count(t, "SELECT COUNT(*) FROM users"); n != 0 {
		t.Errorf("%d rows were kept", n)
	}
	g.idle(t)
}

func TestStore_PermitsLiveAsLongAsRows(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(c *dal.Config, ts *[]tenant.Tenant) {
		(*ts)[0].Limits.MaxConns = 1
		c.Quota.MaxWait = 50 * time.Millisecond
	})
	g.seed(t)
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := g.player(g.a).Model(&User{}).Rows()
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := g.Permits("a", r.Place.Shard); n != 1 {
		t.Errorf("with open rows: %d permits", n)
	}
	err = g.player(g.a).Find(&[]User{}).Error
	var exceeded *quota.ExceededError
	if !errors.As(err, &exceeded) || exceeded.Tenant != "a" || exceeded.Limit != quota.LimitWait {
		t.Errorf("a second connection: %v", err)
	}
	if err := g.player(g.b).Find(&[]User{}).Error; err != nil {
		t.Errorf("tenant b pays for a: %v", err)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.player(g.a).Find(&[]User{}).Error; err != nil {
		t.Errorf("after the rows were closed: %v", err)
	}
	ctx, cancel := context.WithCancel(g.a)
	if _, err := g.player(ctx).Model(&User{}).Rows(); err != nil {
		t.Fatal(err)
	}
	cancel() // nobody closes the rows; the end of the context does
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if n, _ := g.Permits("a", r.Place.Shard); n == 0 {
			break
		}
		if err := g.player(g.b).Find(&[]User{}).Error; err != nil {
			t.Fatal(err)
		}
	}
	g.idle(t)
}

func TestStore_RateRefusesBeforeTheDatabase(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(_ *dal.Config, ts *[]tenant.Tenant) {
		(*ts)[0].Limits = tenant.Limits{Rate: 0.001, Burst: 2}
	})
	for range 2 {
		if err := g.player(g.a).Find(&[]User{}).Error; err != nil {
			t.Fatal(err)
		}
	}
	g.rec.take()
	err := g.player(g.a).Find(&[]User{}).Error
	g.refusedAs(t, err, quota.ErrQuotaExceeded)
	if !dal.SafeToRetry(err) || !dal.IsQuota(err) {
		t.Errorf("predicates of %v", err)
	}
	var n int64
	g.refusedAs(t, g.player(g.a).Model(&User{}).Select("1").Row().Scan(&n), quota.ErrQuotaExceeded)
	g.idle(t)
}

func TestStore_Q24_PoisonedTransactionDoesNotCommit(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "a")
	broken := false
	g.rec.breaks(func(e wire.Event) error {
		if e.Op == "exec" && strings.HasPrefix(e.Text, "INSERT") && !broken {
			broken = true
			return context.DeadlineExceeded
		}
		return nil
	})
	err := g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Model(&User{}).Where("id = 1").Update("gold", 0).Error; err != nil {
			t.Error(err)
		}
		if err := tx.Create(&User{PlayerID: "7"}).Error; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the statement's error: %v", err)
		}
		return nil // swallowed
	})
	if !errors.Is(err, wire.ErrPoisoned) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("commit: %v", err)
	}
	if after := g.dump(t, "a"); after != before {
		t.Errorf("half of it was kept:\n%s", after)
	}
	g.idle(t)
}

func TestStore_FailedSavepointPoisons(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.rec.breaks(func(e wire.Event) error {
		if strings.HasPrefix(e.Text, "ROLLBACK TO") {
			return errors.New("the savepoint is gone")
		}
		return nil
	})
	err := g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		_ = tx.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&User{PlayerID: "7"}).Error; err != nil {
				t.Error(err)
			}
			return errors.New("undo")
		})
		return nil
	})
	if !errors.Is(err, wire.ErrPoisoned) {
		t.Errorf("commit: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users"); n != 0 {
		t.Errorf("nested work that was rolled back was committed: %d rows", n)
	}
}

func TestStore_System(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	sys := tenant.System(context.Background(), "monthly report", "users", "catalogs")
	var all []User
	for _, s := range g.shards {
		var users []User
		if err := g.OnPlace(sys, dal.Place{Shard: s}).Find(&users).Error; err != nil {
			t.Fatal(err)
		}
		all = append(all, users...)
	}
	if len(all) != 6 {
		t.Errorf("%d users under the system scope, want 6", len(all))
	}
	g.rec.take()
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s1"}).Find(&[]Item{}).Error, dal.ErrClosedTable)
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s9"}).Find(&[]User{}).Error, dal.ErrUnknownShard)
	g.refusedAs(t, g.OnPlace(g.a, dal.Place{Shard: "s1"}).Find(&[]User{}).Error, tenant.ErrNotSystem)
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s1"}).WithContext(g.a).Find(&[]User{}).Error, tenant.ErrNotSystem)
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s1"}).Create(&User{PlayerID: "7"}).Error, dal.ErrTenantMismatch)
	if _, err := g.Places(g.a); !errors.Is(err, tenant.ErrNotSystem) {
		t.Errorf("Places: %v", err)
	}
	places, err := g.Places(sys)
	if err != nil || len(places) != 2 {
		t.Errorf("Places: %v, %v", places, err)
	}
	jobs := tenant.System(context.Background(), "work", "jobs")
	if err := g.OnPlace(jobs, dal.Place{Shard: "s1"}).Create(&Job{ID: 5}).Error; err != nil {
		t.Errorf("a System table: %v", err)
	}
	var job Job
	if err := g.OnPlace(jobs, dal.Place{Shard: "s1"}).First(&job, 5).Error; err != nil || job.ID != 5 {
		t.Errorf("a System table: %+v, %v", job, err)
	}
	g.rec.take()
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s1"}).Find(&[]Job{}).Error, dal.ErrClosedTable)
	g.refusedAs(t, g.player(g.a).Find(&[]Job{}).Error, dal.ErrClosedTable)
	p1 := g.keyOn(t, "s1")
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s2"}).Create(&User{Model: dal.Model{TenantID: "a"}, PlayerID: p1}).Error, dal.ErrCrossShard)
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s1"}).Create(&User{Model: dal.Model{TenantID: "nobody"}, PlayerID: p1}).Error, tenant.ErrUnknownTenant)
	if err := g.OnPlace(sys, dal.Place{Shard: "s1"}).Create(&User{Model: dal.Model{TenantID: "a"}, PlayerID: p1}).Error; err != nil {
		t.Errorf("a row of a tenant in its place: %v", err)
	}
	if err := g.OnPlace(sys, dal.Place{Shard: "s1"}).Create(&Catalog{ID: 1, Name: "sword"}).Error; err != nil {
		t.Errorf("a Global table under System: %v", err)
	}
	g.rec.take()
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s1"}).Raw("SELECT COUNT(*) FROM jobs").Scan(&[]int{}).Error, dal.ErrClosedTable)
	g.refusedAs(t, g.OnPlace(sys, dal.Place{Shard: "s1"}).Exec("DROP TABLE jobs").Error, dal.ErrShape)
	var rows int64
	if err := g.OnPlace(sys, dal.Place{Shard: "s1"}).Raw("SELECT COUNT(*) FROM users").Scan(&rows).Error; err != nil || rows < 1 {
		t.Errorf("raw under System: %d, %v", rows, err)
	}
}

func TestRepository(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	repo, err := dal.NewRepository[Item](g.Store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dal.NewRepository[Stranger](g.Store); !errors.Is(err, dal.ErrUndeclared) {
		t.Errorf("undeclared: %v", err)
	}
	if _, err := dal.NewRepository[Line](g.Store); !errors.Is(err, dal.ErrShape) {
		t.Errorf("local: %v", err)
	}
	for _, ctx := range []context.Context{g.a, g.b} {
		for i := range 5 {
			if err := repo.Create(ctx, &Item{PlayerID: "7", Name: fmt.Sprint("i", i), Qty: int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := repo.Create(ctx, &Item{PlayerID: "8", Name: "other"}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := repo.Count(g.a, "7"); err != nil || n != 5 {
		t.Errorf("Count: %d, %v", n, err)
	}
	var seen []Item
	var cursor []any
	for {
		page, err := repo.List(g.a, "7", cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, page.Rows...)
		if cursor = page.Next; cursor == nil {
			break
		}
	}
	if len(seen) != 5 {
		t.Fatalf("List: %d rows", len(seen))
	}
	for _, it := range seen {
		if it.TenantID != "a" || it.PlayerID != "7" {
			t.Errorf("List brought %+v", it)
		}
	}
	row := seen[2]
	row.Qty, row.Name = 0, "renamed"
	if err := repo.Update(g.a, &row); err != nil {
		t.Fatal(err)
	}
	got, err := repo.Get(g.a, "7", row.ID)
	if err != nil || got.Name != "renamed" || got.Qty != 0 || !got.CreatedAt.Equal(row.CreatedAt) {
		t.Errorf("Get after Update: %+v, %v", got, err)
	}
	if _, err := repo.Get(g.b, "7", row.ID); !dal.IsNotFound(err) {
		t.Errorf("tenant b gets a's row: %v", err)
	}
	if err := repo.Update(g.b, &row); !errors.Is(err, dal.ErrTenantMismatch) {
		t.Errorf("tenant b updates a's row: %v", err)
	}
	stolen := row
	stolen.TenantID = ""
	if err := repo.Update(g.b, &stolen); !dal.IsNotFound(err) {
		t.Errorf("tenant b updates a's row by its id: %v", err)
	}
	if err := repo.Delete(g.b, "7", row.ID); !dal.IsNotFound(err) {
		t.Errorf("tenant b deletes a's row: %v", err)
	}
	if err := repo.Delete(g.a, "7", row.ID); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if err := repo.Create(g.a, &Item{}); !errors.Is(err, shardrouter.ErrEmptyKey) {
		t.Errorf("no key: %v", err)
	}
	dup := seen[0]
	if err := repo.Create(g.a, &dup); !dal.IsDuplicateKey(err) {
		t.Errorf("a taken id: %v", err)
	}
}

func TestStore_IDsAreUniqueAndOrdered(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	last := int64(0)
	for range 300 {
		u := User{PlayerID: "7"}
		if err := g.player(g.a).Create(&u).Error; err != nil {
			t.Fatal(err)
		}
		if u.ID <= last {
			t.Fatalf("id %d after %d", u.ID, last)
		}
		last = u.ID
	}
}

func TestStore_RowOfARefusedHandleNeverPanics(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	var n int
	if err := g.player(g.a).Raw("SELECT 1; SELECT 2").Row().Scan(&n); !errors.Is(err, dal.ErrShape) {
		t.Errorf("T50: %v", err)
	}
	if err := g.player(g.a).Model(&Stranger{}).Row().Scan(&n); !errors.Is(err, dal.ErrUndeclared) {
		t.Errorf("undeclared: %v", err)
	}
	if err := g.player(g.a).Model(&User{}).Select("gold").Where("id = 404").Row().Scan(&n); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("no row: %v", err)
	}
}

func TestStore_LocalRowsBelongToTheTransactionsPlace(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	err := g.Transaction(g.a, dal.Key("player", "7"), func(ctx context.Context, tx *gorm.DB) error {
		if err := tx.Create(&Line{No: 1, Note: "x"}).Error; err != nil {
			return err
		}
		return g.player(ctx).Create(&User{PlayerID: "7"}).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := g.raw[r.Place.Shard].QueryRow("SELECT COUNT(*) FROM lines WHERE tenant_id = 'a' AND no = 1").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d lines beside the row, %v", n, err)
	}
}

func TestConfig_ModelsThatCannotBeKeptApart(t *testing.T) {
	t.Parallel()
	type NoTenant struct{ ID int64 }
	type TextTenant struct {
		ID       int64
		TenantID string
		PlayerID string
	}
	type AutoInc struct {
		ID       int64     `gorm:"primaryKey;autoIncrement"`
		TenantID tenant.ID `gorm:"column:tenant_id"`
		PlayerID string
	}
	for name, table := range map[string]dal.Table{
		"no tenant column": dal.Tenant[NoTenant]("player", "id"),
		"T40 tenant type":  dal.Tenant[TextTenant]("player", "player_id"),
		"auto increment":   dal.Tenant[AutoInc]("player", "player_id"),
		"no shard key":     dal.Tenant[Item]("player", "nothing"),
		"no keyspace":      dal.Tenant[Item]("", "player_id"),
		"global tenant":    dal.Global[Item](),
		"not a struct":     dal.Tenant[int]("player", "id"),
	} {
		cfg := dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), 1), Tables: []dal.Table{table}}
		if err := cfg.Validate(); !errors.Is(err, dal.ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (dal.Config{Cluster: dal.SQLiteCluster("", 0)}).Validate(); err == nil || !strings.Contains(err.Error(), "Shards") || !strings.Contains(err.Error(), "Dir") {
		t.Errorf("an empty cluster: %v", err)
	}
	two := dal.MySQLCluster(dal.Endpoint{Network: "tcp", Address: "h:1", Database: "d"}, dal.Endpoint{Network: "tcp", Address: "h:1", Database: "d"})
	if err := (dal.Config{Cluster: two}).Validate(); err == nil || !strings.Contains(err.Error(), "s1 and s2 are one database") {
		t.Errorf("two shards with one database: %v", err)
	}
}

func TestParseURLs(t *testing.T) {
	t.Parallel()
	c, err := dal.ParseURLs("mysql://u@127.0.0.1:3306/game,mysql://u@[::1]:3307/game", "secret")
	if err != nil || len(c.Shards) != 2 || c.Shards[0].Password != "secret" || c.Shards[1].Address != "[::1]:3307" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{"", "u@h:1/d", "mysql://h:1/d", "mysql://u:hunter2@h:1/d", "mysql://u@h/d", "mysql://u@h:99999/d", "mysql://u@h:1/", "mysql://u@h:1/d,", "mysql://u@x@h:1/d"} {
		_, err := dal.ParseURLs(bad, "")
		var u *dal.URLError
		if !errors.As(err, &u) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestStore_CloseDrainsAndRefuses(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	inside, done := make(chan struct{}), make(chan error, 1)
	release := make(chan struct{})
	go func() {
		done <- g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
			close(inside)
			<-release
			return tx.Create(&User{PlayerID: "7", Name: "in time"}).Error
		})
	}()
	<-inside
	closed := make(chan error, 1)
	go func() { closed <- g.Close(context.Background()) }()
	for { // until Close has begun
		if _, err := g.Route(g.a, dal.Key("player", "7")); errors.Is(err, dal.ErrClosed) {
			break
		}
	}
	for what, err := range map[string]error{
		"Find":        g.player(g.a).Find(&[]User{}).Error,
		"Transaction": g.Transaction(g.a, dal.Key("player", "7"), func(context.Context, *gorm.DB) error { return nil }),
		"OnPlace":     g.OnPlace(tenant.System(g.a, "late", "users"), dal.Place{Shard: "s1"}).Find(&[]User{}).Error,
	} {
		if !errors.Is(err, dal.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait for the transaction: %v", err)
	default:
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the transaction under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users WHERE name = 'in time'"); n != 1 {
		t.Errorf("%d rows of it", n)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

func TestStore_SystemScopeInsideATransactionIsRefused(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	err := g.Transaction(g.a, dal.Key("player", "7"), func(ctx context.Context, _ *gorm.DB) error {
		return g.OnPlace(tenant.System(ctx, "nested", "users"), dal.Place{Shard: "s1"}).Find(&[]User{}).Error
	})
	if !errors.Is(err, dal.ErrNested) {
		t.Errorf("%v", err)
	}
}

package dal_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// What gorm's DB() and Connection() hand out is judged by the wire: the statement is bound to the tenant of its own context, or refused.
func TestDirect_T31_DatabaseSQLPassesTheGate(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	db, err := g.player(g.a).DB()
	if err != nil {
		t.Fatal(err)
	}
	scoped, open := "SELECT COUNT(*) FROM users WHERE tenant_id = ?", "SELECT COUNT(*) FROM users"
	var n int
	if err := db.QueryRowContext(g.a, scoped, "a").Scan(&n); err != nil || n != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
	g.rec.take()
	for name, err := range map[string]error{
		"without the predicate": db.QueryRowContext(g.a, open).Scan(&n),
		"with b's value":        db.QueryRowContext(g.a, scoped, "b").Scan(&n),
		"with b's literal":      db.QueryRowContext(g.a, "SELECT COUNT(*) FROM users WHERE tenant_id = 'b' AND tenant_id = ?", "a").Scan(&n),
		"surplus values":        db.QueryRowContext(g.a, scoped, "a", "b").Scan(&n),
		"state":                 exec(g.a, db.ExecContext, "SET @tenant = 'a'"),
		"pragma":                exec(g.a, db.ExecContext, "PRAGMA user_version = 7"),
		"two statements":        exec(g.a, db.ExecContext, "DELETE FROM items WHERE tenant_id = ?; DELETE FROM items", "a"),
	} {
		if !errors.Is(err, wire.ErrRefused) || !errors.Is(err, dal.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, ctx := range map[string]context.Context{"no tenant": t.Context(), "suspended": tenant.NewContext(t.Context(), "sleepy")} {
		if err := db.QueryRowContext(ctx, scoped, "a").Scan(&n); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	for _, text := range g.rec.take() {
		t.Errorf("a refused statement left: %s", text)
	}
	if err := db.QueryRowContext(g.b, scoped, "b").Scan(&n); err != nil { // its context says whose it is
		t.Error(err)
	}

	tx, err := db.BeginTx(g.a, nil)
	if err != nil {
		t.Fatal(err)
	}
	if used, _ := g.Permits("a", g.shardOf(t)); used != 1 {
		t.Errorf("%d permits while the transaction is open", used)
	}
	if _, err := tx.ExecContext(g.a, "UPDATE users SET gold = 99 WHERE tenant_id = ?", "a"); err != nil {
		t.Error(err)
	}
	if _, err := tx.ExecContext(g.b, "UPDATE users SET gold = 99 WHERE tenant_id = ?", "b"); err == nil {
		t.Error("b's statement ran on a's connection")
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	g.idle(t)

	conn, err := db.Conn(g.a)
	if err != nil {
		t.Fatal(err)
	}
	stmt, err := conn.PrepareContext(g.a, scoped)
	if err != nil {
		t.Fatal(err)
	}
	if err := stmt.QueryRowContext(g.a, "a").Scan(&n); err != nil || n != 3 {
		t.Errorf("prepared: %d, %v", n, err)
	}
	if err := stmt.QueryRowContext(g.a, "b").Scan(&n); !errors.Is(err, dal.ErrRefused) {
		t.Errorf("prepared with b's value: %v", err)
	}
	if err := stmt.QueryRowContext(g.b, "b").Scan(&n); err == nil {
		t.Error("a's prepared statement ran for b")
	}
	if err := errors.Join(stmt.Close(), conn.Close()); err != nil {
		t.Error(err)
	}
	g.idle(t)
	if _, err := db.ExecContext(g.a, "INSERT INTO items (tenant_id, id, player_id) VALUES (?, 77, ?)", "a", g.keyOn(t, g.other(t))); !errors.Is(err, dal.ErrCrossShard) {
		t.Errorf("a row of another shard: %v", err)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"tables of two keyspaces":         {"SELECT COUNT(*) FROM users u JOIN guilds g ON g.tenant_id = ? WHERE u.tenant_id = ?", dal.ErrKeyspace},
		"a shard key of another keyspace": {"INSERT INTO items (tenant_id, id, player_id) SELECT ?, 78, g.guild_id FROM guilds g WHERE g.tenant_id = ?", dal.ErrRefused},
	} {
		if _, err := db.ExecContext(g.a, c.text, "a", "a"); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func exec[R any](ctx context.Context, run func(context.Context, string, ...any) (R, error), text string, args ...any) error {
	_, err := run(ctx, text, args...)
	return err
}

func TestDirect_ConnectionIsScoped(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	err := g.player(g.a).Connection(func(tx *gorm.DB) error {
		if used, _ := g.Permits("a", g.shardOf(t)); used != 1 {
			t.Errorf("%d permits inside Connection", used)
		}
		var users []User
		if err := tx.Where("1=1 OR 1=1").Find(&users).Error; err != nil || len(users) != 3 {
			t.Errorf("%d rows, %v", len(users), err)
		}
		if err := tx.Raw("SELECT * FROM users").Scan(&users).Error; err != nil || len(users) != 3 {
			t.Errorf("raw: %d rows, %v", len(users), err)
		}
		return tx.Model(&User{}).Where("id = 1").Update("gold", 5).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	g.idle(t)
	if n := g.count(t, "SELECT COUNT(*) FROM users WHERE gold = 5 AND tenant_id = 'a'"); n != 1 {
		t.Errorf("%d rows updated", n)
	}
	var n int
	g.rec.take()
	err = g.player(g.a).Connection(func(tx *gorm.DB) error { return tx.WithContext(g.b).Raw("SELECT 1").Row().Scan(&n) })
	g.refusedAs(t, err, dal.ErrTenantMismatch)
}

func TestDirect_PreparedSessionInTransactions(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	prepared := g.player(g.a).Session(&gorm.Session{PrepareStmt: true})
	err := prepared.Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&User{}).Where("id = 1").Update("gold", 41).Error; err != nil {
			return err
		}
		return tx.Transaction(func(tx *gorm.DB) error {
			_ = tx.Model(&User{}).Where("id = 1").Update("gold", 42).Error
			return gorm.ErrInvalidData
		})
	})
	if !errors.Is(err, gorm.ErrInvalidData) {
		t.Error(err)
	}
	if err := g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		return tx.Session(&gorm.Session{PrepareStmt: true}).Model(&User{}).Where("id = 1").Update("gold", 43).Error
	}); err != nil {
		t.Error(err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM users WHERE gold = 43"); n != 1 {
		t.Errorf("%d rows", n)
	}
	g.idle(t)
}

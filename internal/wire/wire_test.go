package wire_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

var (
	selectItems = wire.Register("wire_test/select", "SELECT qty FROM items WHERE tenant_id = ?", wire.Rows, 0)
	pollItems   = wire.RegisterSystem("wire_test/poll", "SELECT qty FROM items", wire.Poll)
)

// permit counts its references.
type permit struct{ refs, over atomic.Int64 }

func (p *permit) Retain() { p.refs.Add(1) }
func (p *permit) Release() {
	if p.refs.Add(-1) < 0 {
		p.over.Add(1)
	}
}

func newPermit() *permit {
	p := &permit{}
	p.Retain()
	return p
}

// sqlitePool opens a file with one table and one row.
func sqlitePool(tb testing.TB, opts wire.Options) *wire.Pool {
	tb.Helper()
	opts.Gate = itemsGate(tb)
	p, err := wire.OpenSQLite(wire.SQLite{Path: tb.TempDir() + "/odd name?#%.db", Create: true}, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	ddl := wire.With(tb.Context(), &wire.Mark{Kind: wire.Migration})
	for _, text := range []string{"CREATE TABLE items (tenant_id TEXT NOT NULL, qty INTEGER NOT NULL CHECK (qty >= 0), PRIMARY KEY (tenant_id))", "INSERT INTO items VALUES ('a', 5)"} {
		if _, err := p.ExecContext(ddl, text); err != nil {
			tb.Fatal(err)
		}
	}
	return p
}

// itemsGate knows one tenant table.
func itemsGate(tb testing.TB) *gate.Gate {
	tb.Helper()
	s, err := gate.NewSchema(gate.SQLite, "tenant_id", gate.Table{Name: "items", Class: gate.Tenant})
	if err != nil {
		tb.Fatal(err)
	}
	return gate.New(s)
}

func scoped(ctx context.Context, text string) context.Context {
	return wire.With(ctx, &wire.Mark{Kind: wire.Scoped, Tenant: "a", Text: text})
}

func begin(ctx context.Context) context.Context {
	return wire.With(ctx, &wire.Mark{Kind: wire.Control, Tenant: "a"})
}

func TestGate_OnlyTheMarkedTextLeaves(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{Shard: "s1"})
	ctx := t.Context()
	text := "SELECT qty FROM items WHERE tenant_id = ?"
	var qty int
	if err := p.QueryRowContext(scoped(ctx, text), text, "a").Scan(&qty); err != nil || qty != 5 {
		t.Errorf("marked: %d, %v", qty, err)
	}
	if err := p.QueryRowContext(wire.With(ctx, &wire.Mark{Kind: wire.Library, Stmt: selectItems}), selectItems.Text(), "a").Scan(&qty); err != nil {
		t.Errorf("registered: %v", err)
	}
	refused := map[string]context.Context{
		"no mark":                 ctx,
		"another text":            scoped(ctx, text+" "),
		"empty mark":              wire.With(ctx, &wire.Mark{}),
		"mark without text":       wire.With(ctx, &wire.Mark{Kind: wire.Scoped}),
		"begin's mark":            begin(ctx),
		"another constant":        wire.With(ctx, &wire.Mark{Kind: wire.Library, Stmt: pollItems}),
		"constant without a name": wire.With(ctx, &wire.Mark{Kind: wire.Library, Text: text}),
		"only a tenant":           tenant.NewContext(ctx, "a"),
	}
	before := p.Stats()
	for name, ctx := range refused {
		var refusal *wire.UnmarkedError
		if err := p.QueryRowContext(ctx, text).Scan(&qty); !errors.As(err, &refusal) || refusal.Shard != "s1" || strings.Contains(err.Error(), "qty") {
			t.Errorf("%s: query: %v", name, err)
		}
		if _, err := p.ExecContext(ctx, text); !errors.Is(err, wire.ErrUnmarked) {
			t.Errorf("%s: exec: %v", name, err)
		}
		if _, err := p.PrepareContext(ctx, text); !errors.Is(err, wire.ErrUnmarked) {
			t.Errorf("%s: prepare: %v", name, err)
		}
	}
	if _, err := p.BeginTx(ctx, nil); !errors.Is(err, wire.ErrUnmarked) {
		t.Errorf("begin: %v", err)
	}
	if _, err := p.Begin(); !errors.Is(err, wire.ErrUnmarked) {
		t.Errorf("begin without a context: %v", err)
	}
	if s := p.Stats().Sub(before); s.Statements != 0 || s.Refused == 0 {
		t.Errorf("counted %+v", s)
	}
}

func TestGate_PreparedStatementIsJudgedAtEachRun(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{})
	text := "SELECT qty FROM items WHERE tenant_id = ?"
	stmt, err := p.PrepareContext(scoped(t.Context(), text), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stmt.Close() }()
	var qty int
	if err := stmt.QueryRowContext(scoped(t.Context(), text), "a").Scan(&qty); err != nil || qty != 5 {
		t.Errorf("marked run: %d, %v", qty, err)
	}
	if err := stmt.QueryRowContext(t.Context(), "b").Scan(&qty); !errors.Is(err, wire.ErrUnmarked) {
		t.Errorf("unmarked run: %v", err)
	}
}

func TestRaw_DriverConnectionIsTheWrapper(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{})
	conn, err := p.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	err = conn.Raw(func(c any) error {
		if _, err := c.(driver.Conn).Prepare("DELETE FROM items"); !errors.Is(err, wire.ErrUnmarked) {
			t.Errorf("Prepare: %v", err)
		}
		if _, err := c.(driver.Conn).Begin(); !errors.Is(err, wire.ErrUnmarked) {
			t.Errorf("Begin: %v", err)
		}
		_, err := c.(driver.ExecerContext).ExecContext(t.Context(), "DELETE FROM items", nil)
		return err
	})
	if !errors.Is(err, wire.ErrUnmarked) {
		t.Errorf("Exec: %v", err)
	}
}

func TestStats_CountByClass(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{})
	before := p.Stats()
	ctx := t.Context()
	up := "UPDATE items SET qty = qty + 1 WHERE tenant_id = ?"
	if _, err := p.ExecContext(scoped(ctx, up), up, "a"); err != nil {
		t.Fatal(err)
	}
	tx, err := p.BeginTx(begin(ctx), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(scoped(ctx, up), up, "a"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	rows, err := p.QueryContext(wire.With(ctx, &wire.Mark{Kind: wire.Library, Stmt: pollItems}), pollItems.Text())
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	got := p.Stats().Sub(before)
	got.Connects = 0
	if want := (wire.Stats{Statements: 2, Polls: 1, Begins: 1, Commits: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestPermit_LivesUntilTheConnectionComesBack(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{})
	text := "SELECT qty FROM items WHERE tenant_id = ?"
	held := newPermit()
	ctx := wire.With(t.Context(), &wire.Mark{Kind: wire.Scoped, Tenant: "a", Text: text, Permit: held})
	rows, err := p.QueryContext(ctx, text, "a")
	if err != nil {
		t.Fatal(err)
	}
	if n := held.refs.Load(); n != 2 {
		t.Errorf("with open rows: %d references, want the call's and the connection's", n)
	}
	held.Release()
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	if n := held.refs.Load(); n != 0 {
		t.Errorf("after Close: %d references", n)
	}
	held = newPermit()
	tx, err := p.BeginTx(wire.With(t.Context(), &wire.Mark{Kind: wire.Control, Permit: held}), nil)
	if err != nil {
		t.Fatal(err)
	}
	held.Release()
	if n := held.refs.Load(); n != 1 {
		t.Errorf("in a transaction: %d references", n)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := held.refs.Load(); n != 0 || held.over.Load() != 0 {
		t.Errorf("after Rollback: %d references", n)
	}
}

func TestMark_TenantArgumentsAreComparedWhenTheyLeave(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{Shard: "s1"})
	text := "SELECT qty FROM items WHERE tenant_id = ? AND qty > ?"
	ctx := func() context.Context {
		return wire.With(t.Context(), &wire.Mark{Kind: wire.Scoped, Tenant: "a", Text: text})
	}
	var qty int
	if err := p.QueryRowContext(ctx(), text, tenant.ID("a"), 0).Scan(&qty); err != nil {
		t.Errorf("the tenant's own: %v", err)
	}
	for name, args := range map[string][]any{"another": {"b", 0}, "a number": {0, 0}, "null": {nil, 0}, "bytes": {[]byte("a"), 0}, "none": {}} {
		if err := p.QueryRowContext(ctx(), text, args...).Scan(&qty); !errors.Is(err, wire.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPermit_ReturnsToZeroWhateverHappens(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{})
	p.SetMaxOpenConns(3)
	text := "SELECT qty FROM items WHERE tenant_id = ?"
	var permits []*permit
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			held := newPermit()
			mu.Lock()
			permits = append(permits, held)
			mu.Unlock()
			defer held.Release()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctx = wire.With(ctx, &wire.Mark{Kind: wire.Scoped, Tenant: "a", Text: text, Permit: held})
			switch i % 4 {
			case 0: // never closed: the end of the context closes them
				if rows, err := p.QueryContext(ctx, text, "a"); err == nil {
					_ = rows.Next()
					cancel()
				}
			case 1:
				cancel()
				_, _ = p.ExecContext(ctx, text, "a")
			case 2:
				tx, err := p.BeginTx(wire.With(ctx, &wire.Mark{Kind: wire.Control, Permit: held}), nil)
				if err == nil {
					cancel() // ended by its context
					_ = tx.Commit()
				}
			default:
				var qty int
				_ = p.QueryRowContext(ctx, text, "a").Scan(&qty)
			}
		}()
	}
	wg.Wait()
	for p.DB.Stats().InUse > 0 { // contexts close rows and transactions from goroutines of database/sql
		runtime.Gosched()
	}
	for _, held := range permits {
		if n := held.refs.Load(); n != 0 || held.over.Load() != 0 {
			t.Fatalf("a permit has %d references, %d released too often", n, held.over.Load())
		}
	}
}

func TestPoison_Q25_SwallowedErrorsDoNotCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		poison bool
	}{
		"lock wait":         {&mysql.MySQLError{Number: 1205}, true},
		"deadlock":          {&mysql.MySQLError{Number: 1213}, true},
		"changed":           {&mysql.MySQLError{Number: 1020}, true},
		"statement timeout": {&mysql.MySQLError{Number: 1969}, true},
		"max execution":     {&mysql.MySQLError{Number: 3024}, true},
		"deadline":          {context.DeadlineExceeded, true},
		"broken connection": {mysql.ErrInvalidConn, true},
		"duplicate key":     {&mysql.MySQLError{Number: 1062}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := "poison " + name
			mdb, mock, err := sqlmock.NewWithDSN(dsn, sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = mdb.Close() }()
			p := wire.NewPool(mockConnector{dsn, mdb.Driver()}, wire.Options{Shard: "s1", Poisons: wire.PoisonsMySQL, Gate: itemsGate(t)})
			defer func() { _ = p.Close() }()
			update, insert := "UPDATE items SET qty = 1 WHERE tenant_id = ?", "INSERT INTO items (tenant_id, qty) VALUES (?, 1)"
			mock.ExpectBegin()
			mock.ExpectExec(update).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectExec(insert).WillReturnError(c.err)
			if c.poison {
				mock.ExpectRollback()
			} else {
				mock.ExpectCommit()
			}
			ctx := t.Context()
			tx, err := p.BeginTx(begin(ctx), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(scoped(ctx, update), update, "a"); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(scoped(ctx, insert), insert, "a"); !errors.Is(err, c.err) {
				t.Errorf("the statement's error: %v", err)
			}
			err = tx.Commit()
			if c.poison != errors.Is(err, wire.ErrPoisoned) {
				t.Errorf("commit: %v", err)
			}
			if err := mock.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMySQL_DangerousCharsetsAreRefused(t *testing.T) {
	t.Parallel()
	for _, coll := range []string{"gbk_chinese_ci", "big5_bin", "sjis_japanese_ci"} {
		cfg := mysql.NewConfig()
		cfg.Collation = coll
		if _, err := wire.OpenMySQL(cfg, wire.Options{}); err == nil {
			t.Errorf("%s is accepted", coll)
		}
	}
}

func TestConnect_ErrorNamesTheShardAndNoPassword(t *testing.T) {
	t.Parallel()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd = "tcp", "127.0.0.1:1", "u", "hunter2"
	p, err := wire.OpenMySQL(cfg, wire.Options{Shard: "s7"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	err = p.PingContext(t.Context())
	var connect *wire.ConnectError
	if !errors.As(err, &connect) || connect.Shard != "s7" || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	if !wire.IsConnection(err) {
		t.Errorf("%v is no connection error", err)
	}
}

func TestSQLite_MissingFileIsAnError(t *testing.T) {
	t.Parallel()
	p, err := wire.OpenSQLite(wire.SQLite{Path: t.TempDir() + "/none.db"}, wire.Options{Shard: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if err := p.PingContext(t.Context()); err == nil {
		t.Error("a missing file was opened")
	}
	if _, err := wire.OpenSQLite(wire.SQLite{Path: "x", Synchronous: "MAYBE"}, wire.Options{}); err == nil {
		t.Error("an unknown synchronous was accepted")
	}
}

func TestRegister_BindsTenants(t *testing.T) {
	t.Parallel()
	if err := selectItems.CheckTenant("s1", "a", []any{tenant.ID("a")}); err != nil {
		t.Error(err)
	}
	for name, args := range map[string][]any{"other": {tenant.ID("b")}, "missing": {}, "number": {0}, "nil": {nil}} {
		if err := selectItems.CheckTenant("s1", "a", args); !errors.Is(err, wire.ErrUnmarked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := selectItems.CheckTenant("s1", "", []any{""}); err == nil {
		t.Error("an empty tenant equals an empty argument")
	}
	for _, bad := range []func(){
		func() { wire.Register("wire_test/select", "tenant_id", wire.Rows, 0) },
		func() { wire.Register("wire_test/unbound", "SELECT 1", wire.Rows, 0) },
		func() { wire.Register("wire_test/noargs", "SELECT tenant_id", wire.Rows) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			bad()
		}()
	}
}

// mockConnector opens sqlmock's driver by its data source name.
type mockConnector struct {
	dsn string
	of  driver.Driver
}

func (c mockConnector) Connect(context.Context) (driver.Conn, error) { return c.of.Open(c.dsn) }
func (c mockConnector) Driver() driver.Driver                        { return c.of }

func TestMark_IsSpentOnce(t *testing.T) {
	t.Parallel()
	p := sqlitePool(t, wire.Options{Shard: "s1"})
	text := "SELECT qty FROM items WHERE tenant_id = ?"
	ctx := scoped(t.Context(), text)
	var qty int
	if err := p.QueryRowContext(ctx, text, "a").Scan(&qty); err != nil {
		t.Fatal(err)
	}
	wire.From(ctx).Spend()
	if err := p.QueryRowContext(ctx, text, "a").Scan(&qty); !errors.Is(err, wire.ErrUnmarked) {
		t.Errorf("a spent mark: %v", err)
	}
	if _, err := wire.Admit(ctx, "s1", "query", text); !errors.Is(err, wire.ErrUnmarked) {
		t.Errorf("Admit: %v", err)
	}
}

package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// The store attacked as someone who holds one tenant's handle and its source code would: docs/attacks.md lists every case below.

var stamps = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+( \+0000 UTC|Z|\+00:00)?`)

// secretWorld gives tenant b what must not be learned, and analyzes, so that a planner knows of it.
func secretWorld(tb testing.TB, o *order, secrets bool) {
	tb.Helper()
	o.seed(tb)
	name := "'secret' || id"
	if o.kind == "mariadb" {
		name = "CONCAT('secret', id)"
	}
	for _, table := range []string{"knights", "houses", "pets", "badges", "seats"} {
		if !secrets {
			o.exec(tb, "DELETE FROM "+table+" WHERE tenant_id = 'b'")
			continue
		}
		o.exec(tb, "UPDATE "+table+" SET name = "+name+" WHERE tenant_id = 'b'")
	}
	for i := range 40 {
		o.exec(tb, fmt.Sprintf("INSERT INTO pets (tenant_id, id, player_id, name, qty) VALUES ('a', %d, '7', 'x%d', 1)", 1000+i, i))
	}
	if !secrets {
		o.exec(tb, "DELETE FROM notes WHERE tenant_id = 'b'", "DELETE FROM knight_badges WHERE tenant_id = 'b'")
	} else {
		o.exec(tb, "UPDATE pets SET qty = 777 WHERE tenant_id = 'b'", "UPDATE knights SET gold = 777 WHERE tenant_id = 'b'")
	}
	switch o.kind {
	case "sqlite", "postgres":
		o.exec(tb, "ANALYZE")
	case "mariadb":
		o.exec(tb, "ANALYZE TABLE pets PERSISTENT FOR ALL")
	}
}

// told is all that a caller can learn of a query.
func told(rows *sql.Rows, err error) (string, error) {
	if err != nil {
		return "error: " + err.Error(), err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "error: " + err.Error(), err
	}
	var lines []string // sorted: the order that nobody asked for is the plan's
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = &sql.NullString{}
		}
		if err := rows.Scan(cells...); err != nil {
			return "error: " + err.Error(), err
		}
		line := ""
		for _, c := range cells {
			line += c.(*sql.NullString).String + "|"
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		return "error: " + err.Error(), err
	}
	slices.Sort(lines)
	return stamps.ReplaceAllString(strings.Join(lines, "\n"), "T") + "\n", nil
}

// refusedByStore reports an error that says that nothing was sent.
func refusedByStore(err error) bool {
	for _, target := range []error{dal.ErrShape, dal.ErrTenantMismatch, dal.ErrUndeclared, dal.ErrClosedTable, dal.ErrImmutable, dal.ErrRefused, dal.ErrUnmarked, dal.ErrCrossShard, dal.ErrKeyspace} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// attackText runs one text as tenant a in every way, and returns what it tells.
func attackText(o *order, text string) (answer string, err error) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	reads := !strings.Contains("UPDATE DELETE INSERT", strings.ToUpper(first)) || strings.Contains(text, "RETURNING")
	if reads {
		rows, rerr := o.as(o.a).Raw(text).Rows()
		answer, err = told(rows, rerr)
	} else {
		res := o.as(o.a).Exec(text)
		answer, err = fmt.Sprintf("%d rows, %v", res.RowsAffected, res.Error), res.Error
	}
	db, derr := o.as(o.a).DB()
	if derr != nil {
		return answer, derr
	}
	direct, _ := told(db.QueryContext(o.a, text))
	return answer + "direct: " + direct, err
}

func TestAttack_Text(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			with, without := newOrder(t, kind), newOrder(t, kind)
			secretWorld(t, with, true)
			secretWorld(t, without, false)
			for _, a := range textAttacks {
				if !strings.Contains(a.on, kind[:1]) {
					continue
				}
				t.Run(a.name, func(t *testing.T) {
					with.rec.take()
					var answer string
					var err error
					with.unchanged(t, func() { answer, err = attackText(with, a.text) })
					sent := with.rec.take()
					alone, _ := attackText(without, a.text)
					if answer != alone && a.want != "estimates" {
						t.Errorf("with b's rows it tells\n%s\nwithout\n%s", answer, alone)
					}
					if strings.Contains(answer, "secret") {
						t.Errorf("it tells %s", answer)
					}
					got := "own"
					switch {
					case err == nil && a.want == "estimates":
						got = a.want
					case refusedByStore(err):
						got = "refused"
						if len(sent) > 0 {
							t.Errorf("a refused statement left: %q", sent)
						}
					case err != nil:
						got = "server"
					}
					if got != a.want {
						t.Errorf("%s, want %s: %v", got, a.want, err)
					}
				})
			}
			if used, _ := with.Permits("a", "s1"); used != 0 {
				t.Errorf("%d permits left", used)
			}
		})
	}
}

// thief is a context that sees the keys that it is asked for, and answers as it likes.
type thief struct {
	context.Context
	mu     sync.Mutex
	keys   []any
	answer func(key any) any
}

func (c *thief) Value(key any) any {
	c.mu.Lock()
	c.keys = append(c.keys, key)
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		if v := answer(key); v != nil {
			return v
		}
	}
	return c.Context.Value(key)
}

// forge sets what can be set of a value and of what it points to, by reflection alone.
func forge(v reflect.Value, set map[string]any) (done int) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return 0
	}
	for i := range v.NumField() {
		f := v.Field(i)
		value, wanted := set[v.Type().Field(i).Name]
		switch {
		case wanted && f.CanSet() && reflect.TypeOf(value).ConvertibleTo(f.Type()):
			f.Set(reflect.ValueOf(value).Convert(f.Type()))
			done++
		case f.Kind() == reflect.Struct:
			done += forge(f, set)
		}
	}
	return done
}

// stealMark returns the key under which contexts hold marks, the value, and the context of a statement under way.
func stealMark(t *testing.T, g *game) (key, value any, marked context.Context) {
	t.Helper()
	spy := &thief{Context: g.a}
	tx := g.player(spy).Model(&User{})
	tx = tx.Where("name = ?", evil{func() { marked = tx.Statement.Context }})
	_ = tx.Find(&[]User{}).Error
	if marked == nil {
		t.Fatal("the Valuer did not run")
	}
	for _, k := range spy.keys {
		if strings.HasSuffix(reflect.TypeOf(k).String(), "markKey") {
			key = k
		}
	}
	if key == nil {
		_ = g.player(spy).ConnPool.QueryRowContext(spy, "SELECT 1").Err()
		for _, k := range spy.keys {
			if strings.HasSuffix(reflect.TypeOf(k).String(), "markKey") {
				key = k
			}
		}
	}
	if key == nil {
		t.Fatal("no key was seen")
	}
	return key, marked.Value(key), marked
}

// rawConn shows what database/sql keeps below a connection of a's.
func rawConn(t *testing.T, h *gorm.DB, ctx context.Context) (*sql.Conn, driver.Conn) {
	t.Helper()
	db, err := h.DB()
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out driver.Conn
	if err := c.Raw(func(inner any) error { out = inner.(driver.Conn); return nil }); err != nil {
		t.Fatal(err)
	}
	return c, out
}

// values are arguments as drivers get them.
func values(list ...any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(list))
	for i, v := range list {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return out
}

// drain reads the first column of rows.
func drain(rows driver.Rows) (out []string) {
	dest := make([]driver.Value, len(rows.Columns()))
	for rows.Next(dest) == nil {
		out = append(out, fmt.Sprint(dest[0]))
	}
	return out
}

// keeper is a sql.Scanner that keeps the bytes that it is given.
type keeper struct{ kept []byte }

func (k *keeper) Scan(src any) error {
	k.kept, _ = src.([]byte)
	return nil
}

// writer is an expression that runs code while the statement is built.
type writer struct{ run func(b clause.Builder) }

func (w writer) Build(b clause.Builder) { w.run(b) }

// goAttacks use what a Go program can do beside text. Each gets a game with both tenants' rows, tenant b's of which are compared afterwards.
var goAttacks = []struct {
	target, name, what, outcome string
	run                         func(t *testing.T, g *game)
}{
	{"marks", "ForgedMark", "the key of a mark seen by a context of one's own; a mark made by reflection, for the migrator's kind or for b", "refused: ErrUnmarked, the mark is sealed (was a LEAK: any text left)", func(t *testing.T, g *game) {
		key, value, _ := stealMark(t, g)
		for _, set := range []map[string]any{{"Kind": 4}, {"Kind": 1, "Tenant": "b", "Text": "SELECT name FROM users WHERE tenant_id = ?"}} {
			typ := reflect.TypeOf(value)
			for typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
			made := reflect.New(typ)
			if forge(made, set) > 0 {
				t.Errorf("fields of %s can be set", typ)
			}
			for _, answer := range []any{made.Interface(), made.Elem().Interface()} {
				ctx := &thief{Context: g.a, answer: func(k any) any {
					if k == key {
						return answer
					}
					return nil
				}}
				var name string
				if err := g.player(g.a).ConnPool.QueryRowContext(ctx, "SELECT name FROM users WHERE tenant_id = ?", "b").Scan(&name); !errors.Is(err, dal.ErrUnmarked) {
					t.Errorf("a forged mark: %q, %v", name, err)
				}
				if _, err := g.player(g.a).ConnPool.ExecContext(ctx, "DELETE FROM users"); !errors.Is(err, dal.ErrUnmarked) {
					t.Errorf("a forged mark: %v", err)
				}
			}
		}
	}},
	{"marks", "ChangedMark", "the mark of a statement under way changed by reflection through its context", "refused: no field can be set", func(t *testing.T, g *game) {
		_, value, marked := stealMark(t, g)
		for _, v := range []any{value, marked} {
			if n := forge(reflect.ValueOf(v), map[string]any{"Kind": 4, "Tenant": "b", "Text": "DELETE FROM users"}); n > 0 {
				t.Errorf("%d fields of a %T can be set", n, v)
			}
			typ := reflect.TypeOf(v)
			for i := range typ.NumMethod() {
				for o := range typ.Method(i).Type.NumOut() {
					if out := typ.Method(i).Type.Out(o); strings.HasSuffix(out.String(), "wire.Mark") {
						t.Errorf("%s.%s returns a mark", typ, typ.Method(i).Name)
					}
				}
			}
		}
	}},
	{"marks", "ReplayedMark", "a context kept from a statement under way, used again with other values", "refused: ErrUnmarked, a mark is spent", func(t *testing.T, g *game) {
		_, _, marked := stealMark(t, g)
		for _, text := range []string{"SELECT * FROM users", "DELETE FROM users"} {
			if _, err := g.player(g.a).ConnPool.ExecContext(marked, text, "b"); !errors.Is(err, dal.ErrUnmarked) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}},
	{"marks", "ResentInsideItself", "a Valuer that sends the statement's own text with b's values while it is under way", "refused: in use, or another tenant's value", func(t *testing.T, g *game) {
		var tx *gorm.DB
		var err error
		tx = g.player(g.a).Model(&User{})
		tx = tx.Where("name = ?", evil{func() {
			_, err = tx.Statement.ConnPool.ExecContext(tx.Statement.Context, tx.Statement.SQL.String(), "b", "n1")
		}})
		_ = tx.Find(&[]User{}).Error
		if err == nil {
			t.Error("the text was sent again")
		}
	}},
	{"connections", "VerdictOfAnother", "two goroutines on one driver connection, so that one text's values are compared by the other's verdict", "own rows only: a verdict is of its text (was a LEAK)", func(t *testing.T, g *game) {
		c, raw := rawConn(t, g.player(g.a), g.a)
		q := raw.(driver.QueryerContext)
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if rows, err := q.QueryContext(g.a, "SELECT ? AS x", values("b")); err == nil {
						_ = rows.Close()
					}
				}
			}
		})
		for range 300 {
			rows, err := q.QueryContext(g.a, "SELECT name FROM items WHERE tenant_id = ?", values("b"))
			if err == nil {
				t.Errorf("b's rows: %v", drain(rows))
				_ = rows.Close()
				break
			}
		}
		close(done)
		wg.Wait()
		_ = c.Close()
	}},
	{"connections", "ValuesChangedAfterwards", "a value whose code changes the tenant's value after it was compared", "refused: ErrRefused (was a LEAK: a row written for b)", func(t *testing.T, g *game) {
		c, raw := rawConn(t, g.player(g.a), g.a)
		args := values("a", int64(900), nil)
		args[2].Value = valuerFunc(func() (driver.Value, error) {
			args[0].Value, args[2].Value = "b", "7"
			return "7", nil
		})
		_, err := raw.(driver.ExecerContext).ExecContext(g.a, "INSERT INTO items (tenant_id, id, player_id) VALUES (?, ?, ?)", args)
		if !errors.Is(err, dal.ErrRefused) {
			t.Errorf("error %v", err)
		}
		_ = c.Close()
	}},
	{"connections", "TransactionLeftOpen", "a transaction begun on the driver's connection, which is then given back", "rolled back, and the connection closed (was a LEAK: b's writes ran in it)", func(t *testing.T, g *game) {
		c, raw := rawConn(t, g.player(g.a), g.a)
		tx, err := raw.(driver.ConnBeginTx).BeginTx(g.a, driver.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := g.player(g.b).Create(&Item{Model: dal.Model{ID: 800}, PlayerID: "7", Name: "kept"}).Error; err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(); !errors.Is(err, wire.ErrGivenBack) {
			t.Errorf("a's transaction afterwards: %v", err)
		}
		if n := g.count(t, "SELECT COUNT(*) FROM items WHERE id = 800"); n != 1 {
			t.Errorf("%d of b's rows were kept, want 1", n)
		}
		if err := g.player(g.b).Delete(&Item{Model: dal.Model{ID: 800}}).Error; err != nil {
			t.Error(err)
		}
	}},
	{"connections", "TransactionOfTheNext", "a driver.Tx kept beyond its connection, to commit or roll back what b has begun there", "refused: ErrGivenBack (was a LEAK)", func(t *testing.T, g *game) {
		c, raw := rawConn(t, g.player(g.a), g.a)
		stale, err := raw.(driver.ConnBeginTx).BeginTx(g.a, driver.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stale.Rollback(), c.Close()); err != nil {
			t.Fatal(err)
		}
		err = g.Transaction(g.b, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Item{Model: dal.Model{ID: 801}, PlayerID: "7"}).Error; err != nil {
				return err
			}
			if err := stale.Commit(); !errors.Is(err, wire.ErrGivenBack) {
				t.Errorf("a committed for b: %v", err)
			}
			return errors.New("no")
		})
		if n := g.count(t, "SELECT COUNT(*) FROM items WHERE id = 801"); n != 0 || err == nil {
			t.Errorf("%d rows of what b rolled back, %v", n, err)
		}
	}},
	{"connections", "PartsKeptOpen", "rows, a statement and the connection itself kept beyond its end", "refused: ErrGivenBack (was a LEAK: they worked on b's connection)", func(t *testing.T, g *game) {
		c, raw := rawConn(t, g.player(g.a), g.a)
		text := "SELECT name FROM items WHERE tenant_id = ?"
		stmt, err := raw.(driver.ConnPrepareContext).PrepareContext(g.a, text)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := stmt.(driver.StmtQueryContext).QueryContext(g.a, values("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := rows.Next(make([]driver.Value, 1)); !errors.Is(err, wire.ErrGivenBack) {
			t.Errorf("rows: %v", err)
		}
		if _, err := stmt.(driver.StmtQueryContext).QueryContext(g.a, values("a")); !errors.Is(err, wire.ErrGivenBack) {
			t.Errorf("statement: %v", err)
		}
		if err := errors.Join(rows.Close(), stmt.Close()); err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{
			"query": func() error { _, err := raw.(driver.QueryerContext).QueryContext(g.a, text, values("a")); return err }(),
			"exec":  func() error { _, err := raw.(driver.ExecerContext).ExecContext(g.a, text, values("a")); return err }(),
			"begin": func() error { _, err := raw.(driver.ConnBeginTx).BeginTx(g.a, driver.TxOptions{}); return err }(),
			"ping":  raw.(driver.Pinger).Ping(g.a),
		} {
			if !errors.Is(err, wire.ErrGivenBack) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := g.player(g.b).Model(&Item{}).Where("id = 1").Update("qty", 1).Error; err != nil {
			t.Error(err)
		}
	}},
	{"connections", "DriverThroughReflection", "the driver below dug out of a connection and its rows by reflection", "nothing: no exported field leads there (was one)", func(t *testing.T, g *game) {
		c, raw := rawConn(t, g.player(g.a), g.a)
		rows, err := raw.(driver.QueryerContext).QueryContext(g.a, "SELECT name FROM items WHERE tenant_id = ?", values("a"))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{raw, rows} {
			rv := reflect.ValueOf(v).Elem()
			for i := range rv.NumField() {
				if rv.Type().Field(i).IsExported() {
					t.Errorf("%s has the exported field %s", rv.Type(), rv.Type().Field(i).Name)
				}
			}
		}
		_, _ = rows.Close(), c.Close()
	}},
	{"connections", "IdleConnections", "SetMaxIdleConns on the pool that DB() shares, so that a's connections wait there for b", "none is kept; no permit stays (was a leak of permits)", func(t *testing.T, g *game) {
		db, err := g.player(g.a).DB()
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxIdleConns(8)
		var n int
		if err := db.QueryRowContext(g.a, "SELECT COUNT(*) FROM items WHERE tenant_id = ?", "a").Scan(&n); err != nil {
			t.Fatal(err)
		}
		g.idle(t)
		if err := db.QueryRowContext(g.b, "SELECT COUNT(*) FROM items WHERE tenant_id = ?", "b").Scan(&n); err != nil {
			t.Errorf("b afterwards: %v", err)
		}
	}},
	{"connections", "ClosedPool", "Close and SetMaxOpenConns on the pool that DB() shares", "b's next DB() is a new one without the limit (was closed for all)", func(t *testing.T, g *game) {
		db, err := g.player(g.a).DB()
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		other, err := g.player(g.b).DB()
		if err != nil || other.Stats().MaxOpenConnections != 0 {
			t.Errorf("b's limit: %d, %v", other.Stats().MaxOpenConnections, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		var n int
		if other, err = g.player(g.b).DB(); err == nil {
			err = other.QueryRowContext(g.b, "SELECT COUNT(*) FROM items WHERE tenant_id = ?", "b").Scan(&n)
		}
		if err != nil || n != 3 {
			t.Errorf("b afterwards: %d, %v", n, err)
		}
	}},
	{"connections", "OthersContext", "a connection taken by a, used with b's context", "refused: ErrUnmarked", func(t *testing.T, g *game) {
		c, _ := rawConn(t, g.player(g.a), g.a)
		var n int
		if err := c.QueryRowContext(g.b, "SELECT COUNT(*) FROM items WHERE tenant_id = ?", "b").Scan(&n); !errors.Is(err, dal.ErrUnmarked) {
			t.Errorf("%d, %v", n, err)
		}
		_ = c.Close()
	}},
	{"connections", "BadConn", "driver.ErrBadConn out of Raw, with rows unread", "the connection is closed; b's next one works", func(t *testing.T, g *game) {
		c, raw := rawConn(t, g.player(g.a), g.a)
		if _, err := raw.(driver.QueryerContext).QueryContext(g.a, "SELECT name FROM items WHERE tenant_id = ?", values("a")); err != nil {
			t.Fatal(err)
		}
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
		if err := g.player(g.b).Model(&Item{}).Where("id = 1").Update("qty", 1).Error; err != nil {
			t.Error(err)
		}
	}},
	{"statement", "PoolExchanged", "Statement.ConnPool and Config.ConnPool set to other things", "refused: ErrShape", func(t *testing.T, g *game) {
		for _, of := range []gorm.ConnPool{g.raw[g.shardOf(t)], &gorm.PreparedStmtDB{ConnPool: g.raw[g.shardOf(t)]}, nil} {
			h := g.player(g.a)
			h.Statement.ConnPool = of
			if err := h.Find(&[]User{}).Error; err == nil {
				t.Errorf("a %T was used", of)
			}
			h = g.player(g.a)
			h.ConnPool = of
			if err := h.Find(&[]User{}).Error; err == nil {
				t.Errorf("a %T was used", of)
			}
		}
	}},
	{"statement", "NestedPrepared", "a PreparedStmtDB inside a PreparedStmtDB", "refused: ErrShape", func(t *testing.T, g *game) {
		h := g.player(g.a)
		h.Statement.ConnPool = &gorm.PreparedStmtDB{ConnPool: &gorm.PreparedStmtDB{ConnPool: h.Statement.ConnPool}}
		g.refusedAs(t, h.Find(&[]User{}).Error, dal.ErrShape)
	}},
	{"statement", "TextInAnExpression", "an expression that writes into Statement.SQL while the WHERE is built", "refused, or own rows only", func(t *testing.T, g *game) {
		for _, write := range []func(*gorm.Statement){
			func(s *gorm.Statement) { s.SQL.Reset(); s.SQL.WriteString("SELECT * FROM `users` WHERE 1=1") },
			func(s *gorm.Statement) { s.SQL.WriteString("1=1) OR (1=1") },
			func(s *gorm.Statement) {
				s.SQL.Reset()
				s.SQL.WriteString("SELECT * FROM users WHERE tenant_id = ?")
				s.Vars = []any{"b"}
			},
			func(s *gorm.Statement) { s.Vars[0] = tenant.ID("b"); s.SQL.WriteString("1=1") },
			func(s *gorm.Statement) { delete(s.Clauses, "WHERE"); s.SQL.WriteString("1=1") },
			func(s *gorm.Statement) { s.Table = "items"; s.SQL.WriteString("1=1") },
		} {
			var users []User
			err := g.player(g.a).Where(writer{func(b clause.Builder) { write(b.(*gorm.Statement)) }}).Find(&users).Error
			for _, u := range users {
				if u.TenantID == "b" {
					t.Errorf("b's row: %+v, %v", u, err)
				}
			}
		}
	}},
	{"statement", "ValueInAHook", "a hook that changes the statement after it was judged", "refused, or own rows only", func(t *testing.T, g *game) {
		for _, h := range []func(*gorm.DB) error{
			func(tx *gorm.DB) error { tx.Statement.Table = "items"; return nil },
			func(tx *gorm.DB) error { tx.Statement.SetColumn("tenant_id", "b"); return nil },
			func(tx *gorm.DB) error {
				tx.Statement.AddClause(clause.OnConflict{UpdateAll: true})
				return nil
			},
			func(tx *gorm.DB) error { tx.Statement.SQL.WriteString("DELETE FROM users"); return nil },
			func(tx *gorm.DB) error { return tx.Exec("DELETE FROM users WHERE tenant_id = 'b'").Error },
		} {
			_ = g.player(g.a).Create(&Hooked{Model: dal.Model{ID: 5}, PlayerID: "7", hook: h}).Error
			if n := g.count(t, "SELECT COUNT(*) FROM hookeds WHERE tenant_id <> 'a'"); n != 0 {
				t.Errorf("%d rows of others", n)
			}
		}
	}},
	{"statement", "ClauseBuilder", "a clause with a Builder of one's own for WHERE and FROM", "refused, or own rows only", func(t *testing.T, g *game) {
		for _, name := range []string{"WHERE", "FROM", "SELECT", "LIMIT"} {
			h := g.player(g.a).Model(&User{})
			h.Statement.Clauses[name] = clause.Clause{Name: name, Builder: func(_ clause.Clause, b clause.Builder) { _, _ = b.WriteString(" ") }}
			var users []User
			_ = h.Find(&users).Error
			for _, u := range users {
				if u.TenantID == "b" {
					t.Errorf("%s: b's row", name)
				}
			}
		}
	}},
	{"statement", "MarkedValueTwice", "a Valuer that is a's id first and b's afterwards", "own rows only: what is sent is compared", func(t *testing.T, g *game) {
		n := 0
		turn := valuerFunc(func() (driver.Value, error) {
			n++
			if n == 1 {
				return "a", nil
			}
			return "b", nil
		})
		var users []User
		_ = g.player(g.a).Raw("SELECT * FROM users WHERE tenant_id = ?", turn).Scan(&users).Error
		_ = g.player(g.a).Where("tenant_id = ?", turn).Find(&users).Error
		for _, u := range users {
			if u.TenantID == "b" {
				t.Error("b's row")
			}
		}
	}},
	{"statement", "OthersContext", "WithContext and Session with b's context", "refused: ErrTenantMismatch", func(t *testing.T, g *game) {
		g.refusedAs(t, g.player(g.a).WithContext(g.b).Find(&[]User{}).Error, dal.ErrTenantMismatch)
		g.refusedAs(t, g.player(g.a).Session(&gorm.Session{NewDB: true, Context: g.b}).Create(&User{PlayerID: "7"}).Error, dal.ErrTenantMismatch)
		_, err := gorm.G[User](g.player(g.a)).Find(g.b)
		g.refusedAs(t, err, dal.ErrTenantMismatch)
	}},
	{"statement", "SystemContext", "a system scope's context on a tenant's handle", "refused", func(t *testing.T, g *game) {
		g.refusedAs(t, g.player(g.a).WithContext(tenant.System(g.a, "mine", "users")).Find(&[]User{}).Error, tenant.ErrSystemScope)
	}},
	{"statement", "Scopes", "Scopes, Unscoped and AllowGlobalUpdate", "own rows only", func(t *testing.T, g *game) {
		h := g.player(g.a).Session(&gorm.Session{AllowGlobalUpdate: true})
		if res := h.Unscoped().Model(&User{}).Update("gold", 1); res.Error != nil || res.RowsAffected != 3 {
			t.Errorf("%d rows, %v", res.RowsAffected, res.Error)
		}
		if res := h.Scopes(func(tx *gorm.DB) *gorm.DB { delete(tx.Statement.Clauses, "WHERE"); return tx }).Delete(&Item{}); res.Error != nil || res.RowsAffected != 3 {
			t.Errorf("%d rows, %v", res.RowsAffected, res.Error)
		}
	}},
	{"statement", "Migrator", "the migrator's methods", "refused", func(t *testing.T, g *game) {
		m := g.player(g.a).Migrator()
		if err := m.DropTable(&User{}); err == nil {
			t.Error("DropTable passed")
		}
		if err := m.DropColumn(&User{}, "tenant_id"); err == nil {
			t.Error("DropColumn passed")
		}
		if tables, err := m.GetTables(); err == nil && len(tables) > 0 {
			t.Errorf("the tables: %v", tables)
		}
	}},
	{"statement", "PreparedForAnother", "PrepareStmt sessions of a and b with one text", "own rows only: nothing is kept", func(t *testing.T, g *game) {
		for _, ctx := range []context.Context{g.a, g.b, g.a} {
			id, _ := tenant.FromContext(ctx)
			var users []User
			if err := g.player(ctx).Session(&gorm.Session{PrepareStmt: true}).Where("id > ?", 0).Find(&users).Error; err != nil || len(users) != 3 || users[0].TenantID != id {
				t.Errorf("%s: %v, %v", id, users, err)
			}
		}
	}},
	{"statement", "OneTextManyTenants", "one text by many goroutines of both tenants at once", "own rows only", func(t *testing.T, g *game) {
		var wg sync.WaitGroup
		for i := range 8 {
			ctx, id := g.a, tenant.ID("a")
			if i%2 == 1 {
				ctx, id = g.b, "b"
			}
			wg.Go(func() {
				for range 25 {
					var items []Item
					if err := g.player(ctx).Raw("SELECT * FROM items WHERE qty > ?", 0).Scan(&items).Error; err != nil || len(items) != 3 {
						t.Errorf("%d rows, %v", len(items), err)
						return
					}
					for _, it := range items {
						if it.TenantID != id {
							t.Errorf("%s read a row of %s", id, it.TenantID)
						}
					}
				}
			})
		}
		wg.Wait()
	}},
	{"statement", "Savepoints", "the name of a savepoint", "refused: ErrShape", func(t *testing.T, g *game) {
		h := g.player(g.a).Begin()
		if err := h.SavePoint("x; DELETE FROM users").Error; err == nil {
			t.Error("the name passed")
		}
		if err := h.Statement.ConnPool.(gorm.TxCommitter).Rollback(); err != nil {
			t.Error(err)
		}
	}},
	{"statement", "TransactionOfAnother", "b's context and key inside a's transaction", "refused: ErrNested", func(t *testing.T, g *game) {
		err := g.Transaction(g.a, dal.Key("player", "7"), func(ctx context.Context, _ *gorm.DB) error {
			return g.On(tenant.NewContext(ctx, "b"), dal.Key("player", "7")).Find(&[]User{}).Error
		})
		if !errors.Is(err, dal.ErrNested) {
			t.Errorf("error %v", err)
		}
	}},
	{"statement", "DryRun", "DryRun, and the text sent by hand afterwards", "refused: ErrUnmarked", func(t *testing.T, g *game) {
		s := g.player(g.a).Session(&gorm.Session{DryRun: true}).Find(&[]User{}).Statement
		if _, err := s.ConnPool.ExecContext(g.a, s.SQL.String(), "b"); !errors.Is(err, dal.ErrUnmarked) {
			t.Errorf("error %v", err)
		}
	}},
}

// valuerFunc is a driver.Valuer made of a function.
type valuerFunc func() (driver.Value, error)

func (f valuerFunc) Value() (driver.Value, error) { return f() }

func TestAttack_Go(t *testing.T) {
	t.Parallel()
	for _, a := range goAttacks {
		t.Run(a.target+"/"+a.name, func(t *testing.T) {
			t.Parallel()
			g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
				c.Tables = append(c.Tables, dal.Tenant[Hooked]("player", "player_id"))
			})
			for _, s := range g.shards {
				if _, err := g.raw[s].Exec("CREATE TABLE hookeds (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))"); err != nil {
					t.Fatal(err)
				}
			}
			g.seed(t)
			before := stamps.ReplaceAllString(g.dump(t, "b"), "T")
			a.run(t, g)
			if after := stamps.ReplaceAllString(g.dump(t, "b"), "T"); after != before {
				t.Errorf("b's rows changed from\n%s\nto\n%s", before, after)
			}
			g.idle(t)
		})
	}
}

// The MySQL driver hands out pieces of its connection's buffer: who keeps them would read, or write, what the next tenant's statement puts there.
func TestAttack_KeptBytes(t *testing.T) {
	t.Parallel()
	testutil.RequireMariaDB(t)
	o := newOrder(t, "mariadb")
	o.seed(t)
	var kept keeper
	var raw sql.RawBytes
	rows, err := o.as(o.a).Raw("SELECT name, name FROM houses WHERE id = 1").Rows()
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	if err := rows.Scan(&kept, &raw); err != nil {
		t.Fatal(err)
	}
	mine := string(kept.kept) + string(raw)
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := o.as(o.b).Find(&[]House{}).Error; err != nil {
			t.Fatal(err)
		}
		if now := string(kept.kept) + string(raw); now != mine {
			t.Fatalf("what was kept is now %q, was %q", now, mine)
		}
	}
}

// Every attack is in docs/attacks.md, and nothing else is.
func TestAttack_Documented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z/_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = true
	}
	want := map[string]bool{
		"TestAttack_KeptBytes": true, "TestAttack_WatcherPanics": true, "TestAttack_RowsOfAWriteStayOpen": true, "TestAttack_GoexitInFanOut": true,
		"TestAttack_GoexitInCreateEach": true, "TestAttack_FanOutHandleKept": true, "TestAttack_KeysInOtherWords": true, "TestAttack_ForgedCursors": true,
		"TestAttack_TextInScatter": true,
	}
	for _, a := range textAttacks {
		want[a.name] = true
	}
	for _, a := range goAttacks {
		want[a.target+"/"+a.name] = true
	}
	for name := range want {
		if !listed[name] {
			t.Errorf("docs/attacks.md lacks %s", name)
		}
	}
	for name := range listed {
		if !want[name] {
			t.Errorf("docs/attacks.md lists %s, which no test runs", name)
		}
	}
}

package wire

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/tenant"
)

// lease is the time for which a [DirectConn] is one tenant's. Everything that is opened on the connection belongs to it.
type lease struct {
	tenant tenant.ID

	mu   sync.Mutex // held during each call below; guards conn and open
	conn *conn      // nil once it was given back
	open opened
}

// opened is what was opened on a lease and not closed, each with how to close it, in three steps.
type opened [3]map[any]func() error

// The steps of closing: rows, then what they may come from, then what they may be part of.
const (
	openRows = iota
	openStmt
	openTx
)

// end ends the lease, after the call under way. It closes what was left open, and reports whether there was any.
func (l *lease) end() (open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return false
	}
	for _, list := range l.open {
		for _, end := range list {
			open = true
			_ = end() // the connection is closed whatever comes of it
		}
	}
	open = open || l.conn.inTx
	l.conn, l.open = nil, opened{}
	return open
}

// with runs fn on the connection, alone.
func (l *lease) with(fn func(c *conn) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return ErrGivenBack
	}
	return fn(l.conn)
}

// keep notes what was opened. The lock must be held.
func (l *lease) keep(step int, what any, end func() error) {
	if l.open[step] == nil {
		l.open[step] = map[any]func() error{}
	}
	l.open[step][what] = end
}

// closed closes what was opened, once.
func (l *lease) closed(step int, what any) error {
	return l.with(func(*conn) error {
		end := l.open[step][what]
		if end == nil {
			return ErrGivenBack
		}
		delete(l.open[step], what)
		return end()
	})
}

// using runs fn on the connection if what is still open.
func (l *lease) using(step int, what any, fn func(c *conn) error) error {
	return l.with(func(c *conn) error {
		if l.open[step][what] == nil {
			return ErrGivenBack
		}
		return fn(c)
	})
}

// copied returns values that nobody else can change after they were judged. database/sql has made plain ones of them by now.
func copied(op string, c *conn, args []driver.NamedValue) ([]driver.NamedValue, error) {
	args = slices.Clone(args)
	for i := range args {
		switch v := args[i].Value.(type) {
		case []byte:
			args[i].Value = bytes.Clone(v)
		case json.RawMessage: // as go-sql-driver passes it on
			args[i].Value = json.RawMessage(bytes.Clone(v))
		case nil, int64, uint64, float64, bool, string, time.Time:
		default: // what a driver would read by itself could change after it was judged
			return nil, c.refused(op, &gate.Refusal{Code: gate.Shape, Reason: "a value that makes another one of itself", Hint: "use the methods of database/sql"})
		}
	}
	return args, nil
}

// ExecContext sends a statement that returns no rows.
func (c *DirectConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (res driver.Result, err error) {
	err = c.lease.with(func(c *conn) error {
		args, err := copied("exec", c, args)
		if err == nil {
			res, err = c.ExecContext(ctx, text, args)
		}
		return err
	})
	return res, err
}

// QueryContext sends a statement that returns rows.
func (c *DirectConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (out driver.Rows, err error) {
	err = c.lease.with(func(in *conn) error {
		args, err := copied("query", in, args)
		if err != nil {
			return err
		}
		r, err := in.QueryContext(ctx, text, args)
		if err == nil {
			out = c.lease.rows(r)
		}
		return err
	})
	return out, err
}

// rows makes rows the lease's. The lock must be held.
func (l *lease) rows(r driver.Rows) *directRows {
	out := &directRows{rows: r.(*rows), lease: l}
	l.keep(openRows, out, r.Close)
	return out
}

// PrepareContext prepares a statement.
func (c *DirectConn) PrepareContext(ctx context.Context, text string) (out driver.Stmt, err error) {
	err = c.lease.with(func(in *conn) error {
		s, err := in.PrepareContext(ctx, text)
		if err == nil {
			d := &directStmt{inner: s.(*stmt), lease: c.lease}
			c.lease.keep(openStmt, d, s.Close)
			out = d
		}
		return err
	})
	return out, err
}

// BeginTx starts a transaction.
func (c *DirectConn) BeginTx(ctx context.Context, opts driver.TxOptions) (out driver.Tx, err error) {
	err = c.lease.with(func(in *conn) error {
		if in.inTx {
			return &UnmarkedError{Shard: in.owner.opts.Shard, Op: "begin", Why: "a transaction is open on the connection"}
		}
		t, err := in.BeginTx(ctx, opts)
		if err == nil {
			d := &directTx{inner: t, lease: c.lease}
			c.lease.keep(openTx, d, t.Rollback)
			out = d
		}
		return err
	})
	return out, err
}

// Prepare is refused: it has no context, so nobody vouches for the text.
func (c *DirectConn) Prepare(string) (driver.Stmt, error) {
	return nil, c.lease.with(func(c *conn) error {
		_, err := c.Prepare("")
		return err
	})
}

// Begin is refused: it has no context, so nobody vouches for it.
func (c *DirectConn) Begin() (driver.Tx, error) {
	return nil, c.lease.with(func(c *conn) error {
		_, err := c.Begin()
		return err
	})
}

// Ping asks the server for a sign of life.
func (c *DirectConn) Ping(ctx context.Context) error {
	return c.lease.with(func(c *conn) error { return c.Ping(ctx) })
}

// CheckNamedValue asks the driver, which knows its own types. It runs without the lock: a value's own code may use the connection.
func (c *DirectConn) CheckNamedValue(v *driver.NamedValue) error {
	var in *conn
	if err := c.lease.with(func(c *conn) error { in = c; return nil }); err != nil {
		return err
	}
	return in.CheckNamedValue(v)
}

// directTx is a transaction of a lease.
type directTx struct {
	inner driver.Tx
	lease *lease
}

// Commit commits.
func (t *directTx) Commit() error {
	return t.lease.using(openTx, t, func(*conn) error {
		delete(t.lease.open[openTx], t)
		return t.inner.Commit()
	})
}

// Rollback rolls back.
func (t *directTx) Rollback() error { return t.lease.closed(openTx, t) }

// directStmt is a prepared statement of a lease.
type directStmt struct {
	inner *stmt
	lease *lease
}

var (
	_ driver.Stmt              = (*directStmt)(nil)
	_ driver.StmtExecContext   = (*directStmt)(nil)
	_ driver.StmtQueryContext  = (*directStmt)(nil)
	_ driver.NamedValueChecker = (*directStmt)(nil)
)

// Close closes the statement on the server. What ended before is closed.
func (s *directStmt) Close() error { return unlessGivenBack(s.lease.closed(openStmt, s)) }

// unlessGivenBack takes an end that came before for a good one.
func unlessGivenBack(err error) error {
	if errors.Is(err, ErrGivenBack) {
		return nil
	}
	return err
}

// NumInput returns the number of placeholders, or -1.
func (s *directStmt) NumInput() int {
	n := -1
	_ = s.lease.using(openStmt, s, func(*conn) error { n = s.inner.NumInput(); return nil })
	return n
}

// Exec is refused: it has no context.
func (s *directStmt) Exec([]driver.Value) (driver.Result, error) { return s.inner.Exec(nil) }

// Query is refused: it has no context.
func (s *directStmt) Query([]driver.Value) (driver.Rows, error) { return s.inner.Query(nil) }

// ExecContext judges and runs the statement.
func (s *directStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	err = s.lease.using(openStmt, s, func(c *conn) error {
		args, err := copied("exec", c, args)
		if err == nil {
			res, err = s.inner.ExecContext(ctx, args)
		}
		return err
	})
	return res, err
}

// QueryContext judges and runs the statement.
func (s *directStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (out driver.Rows, err error) {
	err = s.lease.using(openStmt, s, func(c *conn) error {
		args, err := copied("query", c, args)
		if err != nil {
			return err
		}
		r, err := s.inner.QueryContext(ctx, args)
		if err == nil {
			out = s.lease.rows(r)
		}
		return err
	})
	return out, err
}

// CheckNamedValue asks the driver, without the lock, as the connection does.
func (s *directStmt) CheckNamedValue(v *driver.NamedValue) error {
	if err := s.lease.using(openStmt, s, func(*conn) error { return nil }); err != nil {
		return err
	}
	return s.inner.CheckNamedValue(v)
}

// directRows are rows of a lease. What describes their columns is asked of the driver while the rows are open, and is nothing afterwards.
type directRows struct {
	*rows
	lease *lease
}

var _ driver.RowsNextResultSet = (*directRows)(nil)

// Close ends the reading. What ended before is closed.
func (r *directRows) Close() error { return unlessGivenBack(r.lease.closed(openRows, r)) }

// Next reads the next row.
func (r *directRows) Next(dest []driver.Value) error {
	return r.lease.using(openRows, r, func(*conn) error { return r.rows.Next(dest) })
}

// HasNextResultSet reports false: a text is one statement.
func (r *directRows) HasNextResultSet() bool { return false }

// NextResultSet returns io.EOF.
func (r *directRows) NextResultSet() error { return io.EOF }

// ColumnTypeDatabaseTypeName returns the server's name of the column's type, or "".
func (r *directRows) ColumnTypeDatabaseTypeName(i int) (name string) {
	_ = r.lease.using(openRows, r, func(*conn) error { name = r.rows.ColumnTypeDatabaseTypeName(i); return nil })
	return name
}

// ColumnTypeLength returns the column's length where it is known.
func (r *directRows) ColumnTypeLength(i int) (length int64, ok bool) {
	_ = r.lease.using(openRows, r, func(*conn) error { length, ok = r.rows.ColumnTypeLength(i); return nil })
	return length, ok
}

// ColumnTypeNullable reports whether the column may be NULL where it is known.
func (r *directRows) ColumnTypeNullable(i int) (nullable, ok bool) {
	_ = r.lease.using(openRows, r, func(*conn) error { nullable, ok = r.rows.ColumnTypeNullable(i); return nil })
	return nullable, ok
}

// ColumnTypePrecisionScale returns the precision and scale of a decimal column.
func (r *directRows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	_ = r.lease.using(openRows, r, func(*conn) error { precision, scale, ok = r.rows.ColumnTypePrecisionScale(i); return nil })
	return precision, scale, ok
}

// ColumnTypeScanType returns the Go type that fits the column.
func (r *directRows) ColumnTypeScanType(i int) reflect.Type {
	t := reflect.TypeFor[any]()
	_ = r.lease.using(openRows, r, func(*conn) error { t = r.rows.ColumnTypeScanType(i); return nil })
	return t
}

package wire

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// conn is one connection. database/sql serialises the calls on it, so its fields need no lock.
type conn struct {
	inner    driver.Conn
	owner    *Connector
	permit   Permit  // held from the first operation of a checkout until the connection is handed back
	direct   *Direct // set while a caller uses the connection through database/sql
	tx       tx      // the open transaction, while inTx
	inTx     bool
	poisoned error     // why the open transaction cannot commit
	wrote    []Written // by the open transaction, or by the statement that is sent just now
}

var (
	_ driver.Conn               = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
)

// judge lets an operation pass or refuses it, and attaches a permit to the connection. It is idempotent: a driver that answers ErrSkip sees the
// same statement three times.
func (c *conn) judge(ctx context.Context, op, text string) (context.Context, *Mark, *gate.Verdict, error) {
	m, err := c.admit(ctx, op, text)
	if err != nil {
		c.owner.count.refused.Add(1)
		return ctx, nil, nil, err
	}
	var v *gate.Verdict
	if op != "begin" {
		if v, err = c.passes(m, op, text); err != nil {
			return ctx, nil, nil, err
		}
	}
	if c.owner.opts.ReadOnly && (op == "begin" || op == "exec" || m.Write || v != nil && (v.Write || v.Locks)) {
		return ctx, nil, nil, c.refused(op, &gate.Refusal{Code: gate.Shape, Reason: "a write, a lock or a transaction on a replica", Hint: "use a handle of the primary"})
	}
	if c.poisoned != nil && c.inTx {
		return ctx, nil, nil, c.poisonError()
	}
	if c.permit == nil && m.Permit != nil {
		m.Permit.Retain()
		c.permit = m.Permit
	}
	if c.direct != nil {
		ctx = With(ctx, m) // what lies below looks there for the tenant
	}
	return ctx, m, v, nil
}

// admit finds who vouches for the statement.
func (c *conn) admit(ctx context.Context, op, text string) (*Mark, error) {
	if c.direct != nil && From(ctx) == nil {
		return c.direct.mark(ctx, c.owner.opts.Shard, op, text)
	}
	m, err := Admit(ctx, c.owner.opts.Shard, op, text)
	if err == nil && c.direct != nil && m.Tenant != c.direct.Tenant {
		return nil, &UnmarkedError{Shard: c.owner.opts.Shard, Op: op, Why: "the statement is of another tenant than the connection"}
	}
	return m, err
}

func (c *conn) poisonError() error {
	return fmt.Errorf("%w on shard %q by an earlier statement: %w", ErrPoisoned, c.owner.opts.Shard, c.poisoned)
}

// fail notes err when it forbids a commit. A savepoint that failed always does: what was nested in it would be committed.
func (c *conn) fail(err error, kind Kind) {
	if err == nil || !c.inTx || c.poisoned != nil || errors.Is(err, driver.ErrSkip) {
		return
	}
	if kind == Control || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrBadConn) ||
		(c.owner.opts.Poisons != nil && c.owner.opts.Poisons(err)) {
		c.poisoned = err
	}
}

// send runs one operation between the observer's two calls, counts it and logs it. v is the verdict of this very text, or nil.
func (c *conn) send(ctx context.Context, m *Mark, v *gate.Verdict, op, text string, args []driver.NamedValue, run func() error) error {
	if op == "exec" || op == "query" {
		if err := c.values(m, v, op, args); err != nil {
			return err
		}
		if c.direct != nil && v != nil {
			if err := c.direct.Judge(v, args); err != nil {
				c.owner.count.refused.Add(1)
				return err
			}
			c.direct.Charge()
		}
	}
	e := Event{Shard: c.owner.opts.Shard, Op: op, Text: text, Args: args, Kind: m.Kind, InTx: c.inTx}
	obs := c.owner.opts.Observer
	if obs != nil {
		if err := obs.Before(ctx, e); err != nil {
			c.fail(err, m.Kind)
			return err
		}
	}
	log := c.owner.opts.Logger
	var start time.Time
	if log != nil && log.Enabled(ctx, slog.LevelDebug) {
		start = time.Now()
	}
	err := withoutValue(run())
	if obs != nil && !errors.Is(err, driver.ErrSkip) {
		obs.After(ctx, e, err)
	}
	c.fail(err, m.Kind)
	if v != nil && v.Write && !errors.Is(err, driver.ErrSkip) {
		c.writes(m, v)
		switch {
		case c.inTx:
		case op == "query" && err == nil:
			c.tell() // and again when its rows are closed, see unsettled
		default:
			c.told() // an error as well: it may have been carried out
		}
	}
	if !start.IsZero() && !errors.Is(err, driver.ErrSkip) {
		attrs := []slog.Attr{slog.String("shard", e.Shard), slog.String("op", op), slog.Duration("duration", time.Since(start)), slog.Any("err", err)}
		if m.Tenant != "" { // under a system scope the handler says so
			attrs = append(attrs, slog.String("tenant", string(m.Tenant)))
		}
		log.LogAttrs(ctx, slog.LevelDebug, "statement", attrs...)
	}
	return err
}

// ExecContext sends a statement that returns no rows.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	inner, ok := c.inner.(driver.ExecerContext)
	ctx, m, v, err := c.judge(ctx, "exec", text)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, driver.ErrSkip
	}
	var res driver.Result
	err = c.send(ctx, m, v, "exec", text, args, func() error {
		var err error
		res, err = inner.ExecContext(ctx, text, args)
		return err
	})
	c.counted(m, err, true)
	return res, err
}

// counted counts a statement that was really sent.
func (c *conn) counted(m *Mark, err error, changes bool) {
	if errors.Is(err, driver.ErrSkip) {
		return
	}
	class := m.class()
	c.owner.count.statement(class)
	if changes && err == nil && !c.inTx && (class == Rows || class == Poll) {
		c.owner.count.commits.Add(1)
	}
}

// QueryContext sends a statement that returns rows.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	inner, ok := c.inner.(driver.QueryerContext)
	ctx, m, v, err := c.judge(ctx, "query", text)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, driver.ErrSkip
	}
	var res driver.Rows
	err = c.send(ctx, m, v, "query", text, args, func() error {
		var err error
		res, err = inner.QueryContext(ctx, text, args)
		return err
	})
	c.counted(m, err, false)
	if err != nil {
		return nil, err
	}
	return &rows{inner: res, conn: c, wrote: c.unsettled()}, nil
}

// PrepareContext prepares a statement; each run of it is judged again, since a prepared statement is shared by every caller of its pool.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	ctx, m, _, err := c.judge(ctx, "prepare", text)
	if err != nil {
		return nil, err
	}
	var inner driver.Stmt
	if p, ok := c.inner.(driver.ConnPrepareContext); ok {
		inner, err = p.PrepareContext(ctx, text)
	} else {
		inner, err = c.inner.Prepare(text)
	}
	if err != nil {
		c.fail(err, m.Kind)
		return nil, err
	}
	return &stmt{inner: inner, conn: c, text: text}, nil
}

// Prepare is refused: it has no context, so nobody vouches for the text.
func (c *conn) Prepare(string) (driver.Stmt, error) {
	c.owner.count.refused.Add(1)
	return nil, &UnmarkedError{Shard: c.owner.opts.Shard, Op: "prepare", Why: "it has no context"}
}

// Begin is refused: it has no context, so nobody vouches for it.
func (c *conn) Begin() (driver.Tx, error) {
	c.owner.count.refused.Add(1)
	return nil, &UnmarkedError{Shard: c.owner.opts.Shard, Op: "begin", Why: "it has no context"}
}

// BeginTx starts a transaction for a caller with a mark.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	ctx, m, _, err := c.judge(ctx, "begin", "")
	if err != nil {
		return nil, err
	}
	var inner driver.Tx
	err = c.send(ctx, m, nil, "begin", "", nil, func() error {
		var err error
		if b, ok := c.inner.(driver.ConnBeginTx); ok {
			inner, err = b.BeginTx(ctx, opts)
		} else {
			inner, err = c.inner.Begin() //nolint:staticcheck // the only way left for a driver without contexts
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.inTx, c.poisoned = true, nil
	c.owner.count.begins.Add(1)
	c.tx = tx{inner: inner, conn: c, ctx: ctx, mark: m}
	return &c.tx, nil
}

// Ping asks the server for a sign of life. It sends no statement of a caller's.
func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.inner.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

// ResetSession prepares a pooled connection for its next caller.
func (c *conn) ResetSession(ctx context.Context) error {
	c.inTx, c.poisoned, c.wrote = false, nil, c.wrote[:0]
	if r, ok := c.inner.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

// IsValid is called by database/sql when it takes the connection back: the caller's permit ends here. One with an open transaction serves nobody else.
func (c *conn) IsValid() bool {
	c.release()
	if c.inTx {
		return false
	}
	if v, ok := c.inner.(driver.Validator); ok {
		return v.IsValid()
	}
	return true
}

// Close closes the connection; a permit still held ends with it. A connection that is broken has nothing left to close: only what a database says
// about it is an error.
func (c *conn) Close() error {
	defer c.release()
	if err := c.inner.Close(); Code(err) != 0 {
		return err
	}
	return nil
}

func (c *conn) release() {
	c.direct = nil
	if p := c.permit; p != nil {
		c.permit = nil
		p.Release()
	}
}

// CheckNamedValue asks the driver, which knows its own types. SQLite compares times as texts, so all are written in UTC.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if c.owner.zones {
		value, err := driver.DefaultParameterConverter.ConvertValue(v.Value)
		if at, ok := value.(time.Time); ok {
			value = at.UTC()
		}
		v.Value = value
		return err
	}
	if n, ok := c.inner.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// tx is a transaction; it refuses to commit what was poisoned. It is a part of its connection, which has one at a time: database/sql calls none that has
// ended.
type tx struct {
	inner driver.Tx
	conn  *conn
	ctx   context.Context // captured at BEGIN: Commit and Rollback get none
	mark  *Mark
}

// Commit commits, or rolls back and returns [ErrPoisoned].
func (t *tx) Commit() error {
	c := t.conn
	if c.poisoned != nil {
		err := c.poisonError()
		if rerr := t.Rollback(); rerr != nil {
			return errors.Join(err, rerr)
		}
		return err
	}
	sent := false
	err := c.send(t.ctx, t.mark, nil, "commit", "", nil, func() error {
		sent = true
		return t.inner.Commit()
	})
	if !sent { // an observer's error stood in its way: nothing may stay open on the connection
		return errors.Join(err, t.Rollback())
	}
	c.told() // an error as well: the outcome may be open
	c.ended()
	if err == nil {
		c.owner.count.commits.Add(1)
	}
	return err
}

// Rollback rolls back.
func (t *tx) Rollback() error {
	c := t.conn
	err := c.send(t.ctx, t.mark, nil, "rollback", "", nil, t.inner.Rollback)
	c.ended()
	c.owner.count.rollbacks.Add(1)
	return err
}

// ended forgets the transaction, and the caller's context with it.
func (c *conn) ended() { c.inTx, c.poisoned, c.tx, c.wrote = false, nil, tx{}, c.wrote[:0] }

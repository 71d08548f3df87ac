package testutil

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// shadowStatement is one statement of a call.
type shadowStatement struct {
	text   string
	args   []any
	beside bool // on ShadowWorld.DB
}

// String is the text with its arguments; they are the run's own.
func (s shadowStatement) String() string {
	where := ""
	if s.beside {
		where = " (beside the store)"
	}
	return fmt.Sprintf("%q %v%s", s.text, s.args, where)
}

// query reports a statement that can be asked again.
func (s shadowStatement) query() bool {
	tokens, why := lexSQL(s.text)
	if why != "" || len(tokens) == 0 {
		return false
	}
	return tokens[0].is("SELECT") || tokens[0].is("WITH")
}

// unscoped returns why a statement is not bound to the caller's tenant, or "". It is a reading of the text alone, apart from the store's own: one
// mention of the tenant is enough; rows and results show what a second table without it would let through.
func (w *shadowWorld) unscoped(st shadowStatement) string {
	tokens, why := lexSQL(st.text)
	if why != "" {
		// A comment, or another dialect's quotes: nothing can be said of the text, so the names in it count.
		for _, word := range strings.FieldsFunc(st.text, func(r rune) bool { return r >= 0x80 || !isWordByte(byte(r)) }) {
			tokens = append(tokens, sqlToken{kind: 'w', text: word})
		}
	}
	touches := slices.ContainsFunc(tokens, func(t sqlToken) bool {
		return t.name() != "" && slices.ContainsFunc(w.tables, func(of *shadowTable) bool { return of.owned() && strings.EqualFold(of.name, t.name()) })
	})
	if !touches {
		return ""
	}
	names := func(id string) bool {
		return strings.Contains(st.text, "'"+id+"'") || slices.ContainsFunc(st.args, func(a any) bool { return fmt.Sprint(a) == id })
	}
	switch {
	case names(string(canaryTenant)):
		return "names the other tenant"
	case !names(string(shadowTenant)):
		return "names no tenant"
	}
	return ""
}

// shadowRecorder notes every statement of a call. It is safe for concurrent use.
type shadowRecorder struct {
	mu   sync.Mutex // guards sent
	sent []shadowStatement
}

var _ wire.Observer = (*shadowRecorder)(nil)

// Before notes a statement of the store's, but not what the library sends for itself.
func (r *shadowRecorder) Before(_ context.Context, e wire.Event) error {
	if (e.Op == "exec" || e.Op == "query") && e.Kind != wire.Control && e.Kind != wire.Library && e.Kind != wire.Migration {
		r.note(shadowStatement{text: e.Text, args: values(e.Args)})
	}
	return nil
}

// After is of no interest.
func (r *shadowRecorder) After(context.Context, wire.Event, error) {}

func (r *shadowRecorder) note(s shadowStatement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, s)
}

// take returns the statements since the last take.
func (r *shadowRecorder) take() []shadowStatement {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

// recordingConnector opens connections of ShadowWorld.DB.
type recordingConnector struct {
	inner driver.Connector
	rec   *shadowRecorder
}

// Connect opens a connection.
func (c *recordingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := inner.(recordedConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("testutil: the driver's connection is a %T, without contexts", inner), inner.Close())
	}
	return &recordingConn{recordedConn: conn, rec: c.rec}, nil
}

// Driver returns the driver below.
func (c *recordingConnector) Driver() driver.Driver { return c.inner.Driver() }

// recordedConn is what the drivers of both databases can do.
type recordedConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// recordingConn notes statements on their way.
type recordingConn struct {
	recordedConn
	rec *shadowRecorder
}

func (c *recordingConn) note(text string, args []driver.NamedValue) {
	c.rec.note(shadowStatement{text: text, args: values(args), beside: true})
}

// ExecContext notes and sends. A driver that skips it is called again through Prepare, and noted there.
func (c *recordingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.recordedConn.ExecContext(ctx, text, args)
	if !errors.Is(err, driver.ErrSkip) {
		c.note(text, args)
	}
	return res, err
}

// QueryContext notes and sends.
func (c *recordingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.recordedConn.QueryContext(ctx, text, args)
	if !errors.Is(err, driver.ErrSkip) {
		c.note(text, args)
	}
	return rows, err
}

// PrepareContext returns a statement that is noted each time it is sent.
func (c *recordingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	inner, err := c.recordedConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	st, ok := inner.(recordedStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("testutil: the driver's statement is a %T, without contexts", inner), inner.Close())
	}
	return &recordingStmt{recordedStmt: st, conn: c, text: text}, nil
}

// CheckNamedValue asks the driver, where it has a say.
func (c *recordingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.recordedConn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type recordedStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type recordingStmt struct {
	recordedStmt
	conn *recordingConn
	text string
}

// ExecContext notes and sends.
func (s *recordingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.conn.note(s.text, args)
	return s.recordedStmt.ExecContext(ctx, args)
}

// QueryContext notes and sends.
func (s *recordingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.conn.note(s.text, args)
	return s.recordedStmt.QueryContext(ctx, args)
}

// CheckNamedValue asks the driver, where it has a say.
func (s *recordingStmt) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.recordedStmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// besidePool opens a pool on a database, beside the store; with a recorder its statements are noted.
func besidePool(e dal.Endpoint, rec *shadowRecorder) (*sql.DB, error) {
	var c driver.Connector
	if e.Dialect == dal.SQLite {
		dsn, err := wire.SQLite{Path: e.Path}.DSN()
		if err != nil {
			return nil, err
		}
		if c, err = sqlite.NewConnector(dsn); err != nil {
			return nil, err
		}
	} else {
		cfg := e.MySQLConfig()
		cfg.ParseTime, cfg.ClientFoundRows = true, true
		var err error
		if c, err = mysql.NewConnector(cfg); err != nil {
			return nil, err
		}
	}
	if rec != nil {
		c = &recordingConnector{c, rec}
	}
	return sql.OpenDB(c), nil
}

package bench

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// NullDriver is a driver.Connector whose connections answer every query with the same rows and every other statement with one affected row. It reads
// no text and takes no time: what is measured above it is the client's own. It is safe for concurrent use.
type NullDriver struct {
	// Rows is how many rows a query returns; each is one of table items.
	Rows int

	last atomic.Pointer[Sent]
	keep bool
}

// Sent is a statement as it reached the driver.
type Sent struct {
	Text string
	Args []any
}

var (
	_ driver.Connector      = (*NullDriver)(nil)
	_ driver.QueryerContext = (*nullConn)(nil)
	_ driver.ExecerContext  = (*nullConn)(nil)
	_ driver.ConnBeginTx    = (*nullConn)(nil)
)

// Watch makes the driver keep the last statement for [NullDriver.Last]. It is called before the first use; while measuring nothing is kept.
func (d *NullDriver) Watch() { d.keep = true }

// Last returns the last statement that was sent, or nil.
func (d *NullDriver) Last() *Sent { return d.last.Load() }

// Connect returns a connection.
func (d *NullDriver) Connect(context.Context) (driver.Conn, error) { return &nullConn{driver: d}, nil }

// Driver returns the driver itself, which opens nothing by name.
func (d *NullDriver) Driver() driver.Driver { return byName{} }

type byName struct{}

// Open is never called: pools are opened over the connector.
func (byName) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }

type nullConn struct{ driver *NullDriver }

func (c *nullConn) note(text string, args []driver.NamedValue) {
	if !c.driver.keep {
		return
	}
	s := &Sent{Text: text}
	for _, a := range args {
		s.Args = append(s.Args, a.Value)
	}
	c.driver.last.Store(s)
}

// QueryContext answers with the driver's rows.
func (c *nullConn) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.note(text, args)
	return &nullRows{left: c.driver.Rows}, nil
}

// ExecContext answers that one row was changed.
func (c *nullConn) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.note(text, args)
	return nullResult{}, nil
}

type nullResult struct{}

func (nullResult) LastInsertId() (int64, error) { return 1, nil }
func (nullResult) RowsAffected() (int64, error) { return 1, nil }

// Prepare is refused, so that no measured statement takes two calls.
func (c *nullConn) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("bench: the null driver prepares nothing")
}

// Close closes nothing.
func (c *nullConn) Close() error { return nil }

// Begin starts a transaction.
func (c *nullConn) Begin() (driver.Tx, error) { return nullTx{}, nil }

// BeginTx starts a transaction.
func (c *nullConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nullTx{}, nil
}

type nullTx struct{}

func (nullTx) Commit() error   { return nil }
func (nullTx) Rollback() error { return nil }

// columns and row are one row of table items, with the types that the MySQL driver gives.
var (
	columns = []string{"id", "tenant_id", "player_id", "name", "qty", "created_at", "updated_at"}
	row     = []driver.Value{int64(1), []byte("acme"), []byte("7"), []byte("sword"), int64(3), time.Unix(1_750_000_000, 0).UTC(), time.Unix(1_750_000_000, 0).UTC()}
)

type nullRows struct{ left int }

func (*nullRows) Columns() []string { return columns }
func (*nullRows) Close() error      { return nil }

// Next copies the row.
func (r *nullRows) Next(dest []driver.Value) error {
	if r.left == 0 {
		return io.EOF
	}
	r.left--
	copy(dest, row)
	return nil
}

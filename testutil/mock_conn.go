package testutil

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/DATA-DOG/go-sqlmock"
)

// mockConnector opens connections to one place's sqlmock.
type mockConnector struct {
	driver driver.Driver
	dsn    string
}

var _ driver.Connector = (*mockConnector)(nil)

// Connect opens a connection.
func (c *mockConnector) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	conn, ok := inner.(mockedConn)
	if !ok {
		return nil, fmt.Errorf("testutil: sqlmock's connection is a %T, without contexts", inner)
	}
	return &mockConn{conn}, nil
}

// Driver returns sqlmock's driver.
func (c *mockConnector) Driver() driver.Driver { return c.driver }

// mockedConn is what sqlmock's connection can do.
type mockedConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
}

// mockConn is a connection to a sqlmock. It behaves as a server's driver does where sqlmock does not: the end of a context shows as the context's
// error, so that a timeout is classified and a transaction poisoned as in production, and closing a connection is the pool's own business.
type mockConn struct{ mockedConn }

// ExecContext asks the mock.
func (c *mockConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.mockedConn.ExecContext(ctx, text, args)
	return res, ended(ctx, err)
}

// QueryContext asks the mock.
func (c *mockConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.mockedConn.QueryContext(ctx, text, args)
	return rows, ended(ctx, err)
}

// BeginTx asks the mock.
func (c *mockConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.mockedConn.BeginTx(ctx, opts)
	return tx, ended(ctx, err)
}

// Close closes the connection. sqlmock returns an error for each that the test did not expect; how many a pool opens is no test's business.
func (c *mockConn) Close() error {
	_ = c.mockedConn.Close()
	return nil
}

// ended returns sqlmock's cancellation as the error of the context that caused it, too.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, sqlmock.ErrCancelled) && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

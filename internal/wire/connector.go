package wire

import (
	"context"
	"database/sql/driver"
	"io"
	"log/slog"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// Event is one operation on a connection, as an [Observer] sees it. Text may hold values that the caller wrote into it: never log it.
type Event struct {
	Shard string
	Op    string // "exec", "query", "begin", "commit", "rollback"
	Text  string
	Args  []driver.NamedValue
	Kind  Kind
	InTx  bool
}

// Observer sees every operation that is about to leave and its outcome. Tests record and break statements with it. An error from Before is
// returned to the caller in place of the operation, which is then not sent. Implementations must be safe for concurrent use.
type Observer interface {
	Before(ctx context.Context, e Event) error
	After(ctx context.Context, e Event, err error)
}

// Options configure a [Connector]. The zero value is usable.
type Options struct {
	// Shard names the pool in errors and logs.
	Shard string
	// Logger gets one debug record a statement, with tenant, shard, op, duration and err, and never a text or a value. Nil: none.
	Logger *slog.Logger
	// Setup is sent on each new connection, before it is used.
	Setup []string
	// Poisons reports errors after which a transaction must not commit. Context and connection errors always do.
	Poisons func(error) bool
	// Observer sees every operation. Nil: none.
	Observer Observer
	// Wrote is told of tables that a transaction or a statement outside of one has written, after it was committed and before the caller hears of it; also
	// where the outcome is open. It must not block, nor keep the slice. Nil: none.
	Wrote func([]Written)
	// Gate judges every statement of a tenant or a system scope as it leaves. Nil: only library and migration statements pass.
	Gate *gate.Gate
	// ReadOnly refuses, before anything is sent, whatever is no plain read: transactions, exec, and what the gate's verdict says writes or locks.
	ReadOnly bool
}

// Connector wraps a driver's connector. It is safe for concurrent use.
type Connector struct {
	inner driver.Connector
	opts  Options
	count counters
	lends bool // the driver's rows are pieces of its buffer; see [rows.Next]
	zones bool // the driver writes a time as a text of its own zone; see [conn.CheckNamedValue]
}

var (
	_ driver.Connector = (*Connector)(nil)
	_ io.Closer        = (*Connector)(nil)
)

// NewConnector returns a connector whose connections judge, count and release. It opens nothing.
func NewConnector(inner driver.Connector, opts Options) *Connector {
	_, lends := inner.Driver().(*mysql.MySQLDriver) // modernc's SQLite and pgx make bytes of their own
	_, zones := inner.Driver().(*sqlite.Driver)
	return &Connector{inner: inner, opts: opts, lends: lends, zones: zones}
}

// Connect opens a connection and sets it up. It demands no tenant: database/sql opens connections from a goroutine of its own.
//
// It returns a [*ConnectError].
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, &ConnectError{Shard: c.opts.Shard, Err: err}
	}
	c.count.connects.Add(1)
	for _, text := range c.opts.Setup {
		if err := setup(ctx, inner, text); err != nil {
			_ = inner.Close()
			return nil, &ConnectError{Shard: c.opts.Shard, Err: err}
		}
		c.count.statement(Session)
	}
	return &conn{inner: inner, owner: c}, nil
}

// setup runs one text on a raw connection.
func setup(ctx context.Context, inner driver.Conn, text string) error {
	if e, ok := inner.(driver.ExecerContext); ok {
		_, err := e.ExecContext(ctx, text, nil)
		if err != driver.ErrSkip {
			return err
		}
	}
	stmt, err := inner.Prepare(text)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	if s, ok := stmt.(driver.StmtExecContext); ok {
		_, err = s.ExecContext(ctx, nil)
		return err
	}
	_, err = stmt.Exec(nil) //nolint:staticcheck // the only way left for a driver without contexts
	return err
}

// Driver returns the wrapped driver.
func (c *Connector) Driver() driver.Driver { return c.inner.Driver() }

// Close closes the wrapped connector where it can be closed. sql.DB.Close calls it.
func (c *Connector) Close() error {
	if closer, ok := c.inner.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// Stats returns what this connector's pool has sent so far.
func (c *Connector) Stats() Stats { return c.count.snapshot() }

package wire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tenantdal/tenantdal/tenant"
)

// Postgres is how a PostgreSQL database is opened.
type Postgres struct {
	Network  string // "tcp" or "unix"
	Address  string // host:port, or the socket's path, which ends in .s.PGSQL.<port>
	User     string
	Password string
	Database string
	// Floor puts each statement under a tenant's mark into a transaction that begins with the tenant's row-level setting: for pools of the application role.
	Floor bool
	// LockTimeout is how long a statement waits for a lock. Zero: as long as its context lasts.
	LockTimeout time.Duration
}

// config returns pgx's configuration. Nothing is taken from PGPASSWORD, PGOPTIONS or a password file.
func (p Postgres) config() (*pgx.ConnConfig, error) {
	host, port := filepath.Dir(p.Address), strings.TrimPrefix(filepath.Base(p.Address), ".s.PGSQL.")
	if p.Network != "unix" {
		var err error
		if host, port, err = net.SplitHostPort(p.Address); err != nil {
			return nil, err
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("wire: address %q names no port", p.Address)
	}
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	cfg, err := pgx.ParseConfig("sslmode=prefer host='" + quote.Replace(host) + "' port=" + strconv.FormatUint(n, 10))
	if err != nil {
		return nil, err
	}
	cfg.User, cfg.Password, cfg.Database = p.User, p.Password, p.Database
	cfg.ConnectTimeout = 5 * time.Second
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	cfg.RuntimeParams = map[string]string{
		"application_name":              "tenantdal",
		"client_encoding":               "UTF8",
		"TimeZone":                      "UTC",
		"standard_conforming_strings":   "on",
		"row_security":                  "on",
		"default_transaction_isolation": "read committed",
		// One schema for everybody; a temporary table never stands in front of a table of the same name.
		"search_path": "public, pg_temp",
	}
	if p.LockTimeout > 0 {
		cfg.RuntimeParams["lock_timeout"] = strconv.FormatInt(max(p.LockTimeout.Milliseconds(), 1), 10)
	}
	return cfg, nil
}

// utc makes times come back in UTC, as they do from the other databases.
func utc(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
	return nil
}

// OpenPostgres opens a pool over one database of a PostgreSQL server: times are UTC, transactions READ COMMITTED, strings standard. Every text is sent
// by the extended protocol, in which a text is one statement. Registered constants, which are written with ?, leave with $1, $2, ...
func OpenPostgres(p Postgres, opts Options) (*Pool, error) {
	inner, err := p.connector()
	if err != nil {
		return nil, &ConnectError{Shard: opts.Shard, Err: err}
	}
	opts.Poisons = PoisonsPostgres
	pool := NewPool(inner, opts)
	pool.postgres = inner
	return pool, nil
}

// Connector returns what is below the pool of [OpenPostgres], for tests that put something between the two.
func (p Postgres) Connector() (driver.Connector, error) { return p.connector() }

func (p Postgres) connector() (*pgConnector, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	return &pgConnector{Connector: stdlib.GetConnector(*cfg, stdlib.OptionAfterConnect(utc)), floor: p.Floor}, nil
}

// PoisonsPostgres reports errors after which a PostgreSQL transaction must not commit, whatever a savepoint rolled back: lost locks, cancelled
// statements, a server in trouble. Every other error aborts the transaction too, but a savepoint heals it; see [pgConn].
func PoisonsPostgres(err error) bool {
	state := SQLState(err)
	if len(state) != 5 {
		return false
	}
	switch state[:2] {
	case "08", "40", "53", "57", "58", "XX":
		return true
	}
	return state == "55P03"
}

// Dollars returns text with each ? outside quotes as $1, $2, ... in order: PostgreSQL's placeholders. It is for texts of this module's own.
func Dollars(text string) string {
	if strings.IndexByte(text, '?') < 0 {
		return text
	}
	var b strings.Builder
	var quote byte
	n := 0
	for i := range len(text) {
		c := text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '?':
			n++
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(n))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// pgConnector makes connections that know PostgreSQL's ways.
type pgConnector struct {
	driver.Connector
	floor         bool
	floors, wraps atomic.Uint64
}

// Connect opens a connection.
func (c *pgConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &pgConn{inner: inner.(*stdlib.Conn), owner: c}, nil
}

// pgConn is a connection below the wire's own: what is PostgreSQL's alone is done here.
//
//   - A text without arguments goes by the extended protocol too, where pgx would take the simple one, which runs several statements.
//   - Arguments are database/sql's own kinds of values: pgx would take some types in the first place for orders of its own, one of which rewrites the text.
//   - An error aborts the transaction. What follows, COMMIT included, is [ErrPoisoned] with that error, until a savepoint is rolled back to.
//   - On a pool with a floor, a statement outside a transaction gets one.
type pgConn struct {
	inner  *stdlib.Conn
	owner  *pgConnector
	inTx   bool      // BeginTx opened it
	tenant tenant.ID // what the floor of the open transaction is set to
	moved  bool      // it was set again after BEGIN, so rolling back to a savepoint may have set it back
	cause  error     // what aborted the open transaction
}

var (
	_ driver.Conn               = (*pgConn)(nil)
	_ driver.ConnPrepareContext = (*pgConn)(nil)
	_ driver.ConnBeginTx        = (*pgConn)(nil)
	_ driver.ExecerContext      = (*pgConn)(nil)
	_ driver.QueryerContext     = (*pgConn)(nil)
	_ driver.Pinger             = (*pgConn)(nil)
	_ driver.SessionResetter    = (*pgConn)(nil)
	_ driver.Validator          = (*pgConn)(nil)
)

// errLostCommit reports a COMMIT whose answer was lost. It is no driver.ErrBadConn, after which database/sql would send the statement again.
var errLostCommit = errors.New("wire: the connection broke during COMMIT")

// endLimit bounds COMMIT and ROLLBACK, which no context of a caller's bounds.
const endLimit = 10 * time.Second

// textOf returns the text that leaves: a registered constant's in PostgreSQL's words.
func textOf(m *Mark, text string) string {
	if m != nil && m.Kind == Library && m.Stmt != nil && m.Stmt.text == text {
		return m.Stmt.dollars
	}
	return text
}

// aborted reports an open transaction that an error has ended.
func (c *pgConn) aborted() bool { return c.inner.Conn().PgConn().TxStatus() == 'E' }

// note keeps the first error of an aborted transaction.
func (c *pgConn) note(err error) {
	if err != nil && c.cause == nil && c.aborted() {
		c.cause = err
	}
}

func (c *pgConn) poisoned() error {
	if c.cause == nil {
		return fmt.Errorf("%w by an earlier statement", ErrPoisoned)
	}
	return fmt.Errorf("%w by an earlier statement: %w", ErrPoisoned, c.cause)
}

// simple sends a text without arguments by the extended protocol.
func (c *pgConn) simple(ctx context.Context, text string) (pgconn.CommandTag, error) {
	if c.inner.Conn().IsClosed() {
		return pgconn.CommandTag{}, driver.ErrBadConn
	}
	tag, err := c.inner.Conn().PgConn().ExecParams(ctx, text, nil, nil, nil, nil).Close()
	if err != nil && pgconn.SafeToRetry(err) {
		err = driver.ErrBadConn
	}
	return tag, err
}

// commit ends the open transaction. When it returns an error nothing is known to be kept.
func (c *pgConn) commit() error {
	if c.aborted() {
		return errors.Join(c.poisoned(), c.rollback())
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	tag, err := c.simple(ctx, "COMMIT")
	switch {
	case err != nil && SQLState(err) == "":
		return fmt.Errorf("%w: %w", errLostCommit, hidden{err})
	case err == nil && tag.String() == "ROLLBACK":
		return fmt.Errorf("%w: the server rolled it back", ErrPoisoned)
	}
	return err
}

// hidden keeps an error's words and drops what database/sql would take for a reason to send again.
type hidden struct{ err error }

func (h hidden) Error() string { return h.err.Error() }

// rollback ends the open transaction; a broken connection has ended it already.
func (c *pgConn) rollback() error {
	if c.inner.Conn().IsClosed() || c.inner.Conn().PgConn().TxStatus() == 'I' {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if _, err := c.simple(ctx, "ROLLBACK"); err != nil && !c.inner.Conn().IsClosed() {
		return errors.Join(err, c.inner.Close())
	}
	return nil
}

// BeginTx begins a transaction and sets the floor to the mark's tenant.
func (c *pgConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	id, err := c.ownerOf(From(ctx))
	if err != nil {
		return nil, err
	}
	text := "BEGIN"
	switch sql.IsolationLevel(opts.Isolation) {
	case sql.LevelDefault:
	case sql.LevelReadUncommitted, sql.LevelReadCommitted:
		text += " ISOLATION LEVEL READ COMMITTED"
	case sql.LevelRepeatableRead, sql.LevelSnapshot:
		text += " ISOLATION LEVEL REPEATABLE READ"
	case sql.LevelSerializable:
		text += " ISOLATION LEVEL SERIALIZABLE"
	default:
		return nil, fmt.Errorf("wire: PostgreSQL has no isolation level %v", sql.IsolationLevel(opts.Isolation))
	}
	if opts.ReadOnly {
		text += " READ ONLY"
	}
	if err := c.begin(ctx, text, id); err != nil {
		return nil, err
	}
	c.inTx = true
	return &pgTx{c}, nil
}

// pgTx is an open transaction.
type pgTx struct{ conn *pgConn }

// Commit commits, or rolls back and returns [ErrPoisoned] when a statement aborted the transaction.
func (t *pgTx) Commit() error {
	t.conn.inTx = false
	return t.conn.commit()
}

// Rollback rolls back.
func (t *pgTx) Rollback() error {
	t.conn.inTx = false
	return t.conn.rollback()
}

// enter makes ready for one statement: in the open transaction, in one of its own (implicit), or in none.
func (c *pgConn) enter(ctx context.Context, m *Mark) (implicit bool, err error) {
	if c.inner.Conn().IsClosed() {
		return false, driver.ErrBadConn
	}
	if c.inTx {
		if c.aborted() && (m == nil || m.Kind != Control) {
			return false, c.poisoned()
		}
		return false, c.settle(ctx, m)
	}
	id, err := c.ownerOf(m)
	if err != nil || id == "" {
		return false, err
	}
	c.owner.wraps.Add(1)
	return true, c.begin(ctx, "BEGIN", id)
}

// leave ends what enter began, after a statement that ended with err.
func (c *pgConn) leave(implicit bool, err error) error {
	if !implicit {
		c.note(err)
		if err == nil && !c.aborted() && c.cause != nil {
			c.cause = nil // a savepoint was rolled back to
		}
		return err
	}
	if err != nil {
		return errors.Join(err, c.rollback())
	}
	return c.commit()
}

// ExecContext sends a statement that returns no rows.
func (c *pgConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	m := From(ctx)
	implicit, err := c.enter(ctx, m)
	if err != nil {
		return nil, err
	}
	res, err := c.exec(ctx, textOf(m, text), args)
	if c.moved && m != nil && m.Kind == Control {
		c.tenant = ""
	}
	if err = c.leave(implicit, err); err != nil {
		return nil, err
	}
	return res, nil
}

func (c *pgConn) exec(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		tag, err := c.simple(ctx, text)
		return affected(tag.RowsAffected()), err
	}
	if err := positional(args); err != nil {
		return nil, err
	}
	res, err := c.inner.ExecContext(ctx, text, args)
	if err != nil {
		return nil, err
	}
	n, err := res.RowsAffected()
	return affected(n), err
}

// affected is a result without an id of the database's making: ids come from the library.
type affected int64

// LastInsertId returns 0.
func (a affected) LastInsertId() (int64, error) { return 0, nil }

// RowsAffected returns the number of matched rows.
func (a affected) RowsAffected() (int64, error) { return int64(a), nil }

// positional refuses named arguments, and values that database/sql did not make of its own kinds.
func positional(args []driver.NamedValue) error {
	for _, a := range args {
		if a.Name != "" {
			return fmt.Errorf("wire: PostgreSQL has no named argument %q", a.Name)
		}
		if !driver.IsValue(a.Value) {
			return fmt.Errorf("wire: argument %d is a %T, which is no value of database/sql", a.Ordinal, a.Value)
		}
	}
	return nil
}

// QueryContext sends a statement that returns rows; a transaction of its own ends when they are closed.
func (c *pgConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	m := From(ctx)
	if err := positional(args); err != nil {
		return nil, err
	}
	implicit, err := c.enter(ctx, m)
	if err != nil {
		return nil, err
	}
	rows, err := c.inner.QueryContext(ctx, textOf(m, text), args)
	if err != nil {
		return nil, c.leave(implicit, err)
	}
	return &pgRows{Rows: rows.(*stdlib.Rows), conn: c, implicit: implicit}, nil
}

// pgRows are rows whose end may be the end of a transaction.
type pgRows struct {
	*stdlib.Rows
	conn     *pgConn
	implicit bool
	closed   bool
}

// Close reads what is left, and ends the statement's own transaction.
func (r *pgRows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	return r.conn.leave(r.implicit, r.Rows.Close())
}

// PrepareContext prepares a statement.
func (c *pgConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if c.inTx && c.aborted() {
		return nil, c.poisoned()
	}
	text = textOf(From(ctx), text)
	inner, err := c.inner.PrepareContext(ctx, text)
	if err != nil {
		c.note(err)
		return nil, err
	}
	return &pgStmt{inner: inner, conn: c, text: text}, nil
}

// Prepare prepares a statement without a context.
func (c *pgConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// pgStmt is a prepared statement. pgx finds the server's by the text.
type pgStmt struct {
	inner driver.Stmt
	conn  *pgConn
	text  string
}

var (
	_ driver.StmtExecContext  = (*pgStmt)(nil)
	_ driver.StmtQueryContext = (*pgStmt)(nil)
)

// Close closes the statement on the server.
func (s *pgStmt) Close() error { return s.inner.Close() }

// NumInput returns the number of placeholders.
func (s *pgStmt) NumInput() int { return s.inner.NumInput() }

// Exec is refused: it has no context.
func (s *pgStmt) Exec([]driver.Value) (driver.Result, error) {
	return nil, &UnmarkedError{Op: "exec", Why: "it has no context"}
}

// Query is refused: it has no context.
func (s *pgStmt) Query([]driver.Value) (driver.Rows, error) {
	return nil, &UnmarkedError{Op: "query", Why: "it has no context"}
}

// ExecContext runs the statement.
func (s *pgStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.text, args)
}

// QueryContext runs the statement.
func (s *pgStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.text, args)
}

// Begin begins a transaction without a context, and so without a floor.
func (c *pgConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// Ping asks the server for a sign of life.
func (c *pgConn) Ping(ctx context.Context) error { return c.inner.Ping(ctx) }

// ResetSession prepares a pooled connection for its next caller; one with an open transaction is thrown away.
func (c *pgConn) ResetSession(ctx context.Context) error {
	c.inTx, c.tenant, c.moved, c.cause = false, "", false, nil
	return c.inner.ResetSession(ctx)
}

// IsValid reports whether the connection can serve another caller.
func (c *pgConn) IsValid() bool {
	return !c.inner.Conn().IsClosed() && c.inner.Conn().PgConn().TxStatus() == 'I'
}

// Close closes the connection.
func (c *pgConn) Close() error { return c.inner.Close() }

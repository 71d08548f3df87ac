package dal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// binding is what a handle is tied to: one tenant, or one bypass, in one place. It is immutable, but for what is known of the tenant's status.
type binding struct {
	store    *Store
	db       *database
	tenant   tenant.Tenant
	id       any // tenant.ID, boxed once: the value bound into every statement
	keyspace string
	key      shardrouter.Key
	bypass   *tenant.Bypass // for a handle under a system scope; then tenant is zero
	scope    *systemScope   // beside bypass
	err      error          // a refused handle: everything returns it
	reads    bool           // a handle of one shard for reads across shards: it has no key, and writes nothing
	over     *atomic.Bool   // beside reads: the call has returned
	asked    *reads         // where its reads may go; nil for a handle of the primary

	standing standing                 // what the tenant's status allowed when the handle was made
	renewed  atomic.Pointer[standing] // what it allowed when it was last looked up since; nil before
}

// pool is the gorm.ConnPool of one handle: it admits each statement, then hands it to the place's database/sql pool. The binding travels here since
// the pool is the one part of a handle that every session, transaction and generic call keeps.
type pool struct{ *binding }

var (
	_ gorm.ConnPool         = (*pool)(nil)
	_ gorm.ConnPoolBeginner = (*pool)(nil)
)

// admit judges the mark, then takes what the statement needs: a token, a permit of the tenant's share, and on SQLite the writer's turn.
func (p *pool) admit(ctx context.Context, op, text string, write bool) (context.Context, *wire.Mark, target, error) {
	if p.err != nil {
		return ctx, nil, target{}, p.err
	}
	m, err := wire.Admit(ctx, string(p.db.place.Shard), op, text)
	if err != nil {
		return ctx, nil, target{}, err
	}
	if m.Permit != nil { // a Valuer of the caller's runs inside the call and sends it again
		return ctx, nil, target{}, &wire.UnmarkedError{Shard: string(p.db.place.Shard), Op: op, Why: "the context's mark is in use"}
	}
	write = write || m.Write
	if p.asked != nil && write {
		return ctx, nil, target{}, p.refuseWrite("a write, a locking read or Exec")
	}
	to, permit, err := p.target(ctx, write)
	if err != nil {
		return ctx, nil, target{}, err
	}
	m.Permit = permit
	return ctx, m, to, nil
}

// target is where a statement goes.
type target struct {
	*sql.DB
	replica *replica // nil for the primary
}

// target takes a permit for a statement, of the server that it goes to.
func (p *pool) target(ctx context.Context, write bool) (target, wire.Permit, error) {
	if p.asked == nil {
		db, permit, err := p.enter(ctx, write)
		if err != nil {
			return target{}, nil, err
		}
		return target{DB: db.of(p.bypass != nil, write)}, permit, nil
	}
	return p.enterReads(ctx, p.reader)
}

// refuseWrite refuses what is no plain read on a handle that may read from a replica.
func (b *binding) refuseWrite(what string) error {
	return &ReadOnlyError{Place: b.db.place, What: what}
}

// ended spends the mark of a statement that was sent, and drops the call's hold on the permit; the connection keeps its own.
func ended(m *wire.Mark) {
	m.Spend()
	m.Permit.Release()
}

// enter takes a permit for a statement or a transaction. Until its last reference goes, the database stays open.
func (b *binding) enter(ctx context.Context, write bool) (*database, wire.Permit, error) {
	if b.store.shut() {
		return nil, nil, ErrClosed
	}
	if err := b.serves(ctx, write); err != nil {
		return nil, nil, err
	}
	db, permit, err := b.enterPlace(ctx, write)
	if err != nil {
		return nil, nil, err
	}
	if err := b.stillServes(ctx, write, permit); err != nil { // the status changed while it waited
		permit.Release()
		return nil, nil, err
	}
	b.audit(ctx)
	return db, permit, nil
}

// enterPlace is enter for a tenant that is served.
func (b *binding) enterPlace(ctx context.Context, write bool) (*database, wire.Permit, error) {
	if b.db.seat == nil { // a shared place is open for as long as the store is
		permit, err := b.permit(ctx, b.db, write)
		return b.db, permit, err
	}
	return b.db.enter(ctx, func(ctx context.Context, db *database) (wire.Permit, error) { return b.permit(ctx, db, write) })
}

func (b *binding) permit(ctx context.Context, db *database, write bool) (wire.Permit, error) {
	if b.bypass != nil {
		return db.systemPermit(ctx)
	}
	return db.tenantPermit(ctx, b.tenant, write)
}

// PrepareContext is refused: the handle's statements are not prepared, see [unprepared]. DB() prepares.
func (p *pool) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	if p.err != nil {
		return nil, p.err
	}
	return nil, &ShapeError{Shape: "prepared statement", Hint: "prepare on DB(), or use the handle's own methods"}
}

// ExecContext sends a marked statement.
func (p *pool) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	ctx, m, db, err := p.admit(ctx, "exec", text, true)
	if err != nil {
		return nil, err
	}
	defer ended(m)
	res, err := db.ExecContext(ctx, text, args...)
	sessionOf(ctx).ended(p.store, p.db.place, err)
	return res, err
}

// QueryContext sends a marked statement; its permit lives until the rows are closed.
func (p *pool) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	ctx, m, db, err := p.admit(ctx, "query", text, false)
	if err != nil {
		return nil, err
	}
	defer ended(m)
	if m.Write { // its commit comes with the end of its rows
		sessionOf(ctx).note(p.store, p.db.place, pinned)
	}
	rows, err := db.QueryContext(ctx, text, args...)
	if db.lost(ctx, err) {
		if db, err = p.instead(ctx, m, err); err != nil {
			return nil, err
		}
		return db.QueryContext(ctx, text, args...)
	}
	return rows, err
}

// QueryRowContext sends a marked statement; a refusal comes out of Scan.
func (p *pool) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	ctx, m, db, err := p.admit(ctx, "query", text, false)
	if err != nil {
		return errorRow(err)
	}
	defer ended(m)
	if m.Write {
		sessionOf(ctx).note(p.store, p.db.place, pinned)
	}
	row := db.QueryRowContext(ctx, text, args...)
	if db.lost(ctx, row.Err()) {
		if db, err = p.instead(ctx, m, row.Err()); err != nil {
			return errorRow(err)
		}
		return db.QueryRowContext(ctx, text, args...)
	}
	return row
}

// BeginTx starts a transaction; its permit lives until it ends.
func (p *pool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.begin(ctx, opts)
	if err != nil {
		return nil, err
	}
	return tx, nil
}

func (p *pool) begin(ctx context.Context, opts *sql.TxOptions) (*txPool, error) {
	if p.err != nil {
		return nil, p.err
	}
	if err := p.matches(ctx); err != nil {
		return nil, err
	}
	if p.asked != nil {
		return nil, p.refuseWrite("a transaction")
	}
	write := opts == nil || !opts.ReadOnly
	db, permit, err := p.enter(ctx, write)
	if err != nil {
		return nil, err
	}
	defer permit.Release()
	t := &begun{}
	m := wire.Fill(ctx, &t.marked)
	m.Kind, m.Tenant, m.Permit = wire.Control, p.tenant.ID, permit
	t.tx, err = db.of(p.bypass != nil, write).BeginTx(&t.marked, opts)
	if err != nil {
		return nil, err
	}
	t.readOnly = p.latest().readOnly
	if opts == nil || !opts.ReadOnly {
		t.writes = writes{sessionOf(ctx), p.store, p.db.place}
	}
	t.pool = txPool{binding: p.binding, transaction: &t.transaction}
	return &t.pool, nil
}

// begun is what a transaction needs for itself, in one piece of memory.
type begun struct {
	transaction
	pool   txPool
	marked wire.Marked // the context that it was begun under
}

// matches compares the scope of ctx with the handle's.
func (b *binding) matches(ctx context.Context) error {
	if b.err != nil {
		return b.err
	}
	if b.bypass != nil {
		return b.crosses(ctx)
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return err
	}
	if id != b.tenant.ID {
		return &MismatchError{Handle: b.tenant.ID, Other: id, What: "the context"}
	}
	return nil
}

// txPool is the gorm.ConnPool inside a transaction. One goroutine uses it.
type txPool struct {
	*binding
	*transaction
	of *gorm.Statement // the one write that it was begun for; nil for any other transaction
}

// transaction is an open transaction, shared by every handle on it.
type transaction struct {
	tx    *sql.Tx
	owned bool // Store.Transaction ends it, and nobody else

	writes writes // whose session is told of the commit

	readOnly error // why nothing may be written in it: the tenant was suspended when it began; fixed

	mu     sync.Mutex // guards failed
	failed error      // a call that ended by its context or connection, maybe before it reached the driver: nothing may be committed over it
}

var (
	_ gorm.ConnPool       = (*txPool)(nil)
	_ gorm.Tx             = (*txPool)(nil)
	_ gorm.GetDBConnector = (*txPool)(nil)
)

// charge puts a statement's token into the tenant's debt: inside a transaction nothing waits for rate, or locks would wait with it.
func (t *txPool) charge() {
	if t.bypass == nil {
		t.store.quota.Charge(t.tenant.ID, t.tenant.Limits, 1)
	}
}

// note keeps the first error that forbids a commit, and returns err.
func (t *transaction) note(err error) error {
	if err != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || wire.IsConnection(err)) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.failed == nil {
			t.failed = err
		}
	}
	return err
}

func (t *transaction) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// PrepareContext is refused, as outside a transaction.
func (t *txPool) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, &ShapeError{Shape: "prepared statement", Hint: "prepare on DB(), or use the handle's own methods"}
}

// StmtContext makes the type gorm's Tx, so that Session{PrepareStmt} can begin transactions. A statement's own context carries no mark: it is refused.
func (t *txPool) StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt {
	return t.tx.StmtContext(ctx, stmt)
}

// ExecContext sends a marked statement.
func (t *txPool) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	m, err := wire.Admit(ctx, string(t.db.place.Shard), "exec", text)
	if err != nil {
		return nil, err
	}
	defer m.Spend()
	t.charge()
	res, err := t.tx.ExecContext(ctx, text, args...)
	return res, t.note(err)
}

// QueryContext sends a marked statement.
func (t *txPool) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	m, err := wire.Admit(ctx, string(t.db.place.Shard), "query", text)
	if err != nil {
		return nil, err
	}
	defer m.Spend()
	t.charge()
	rows, err := t.tx.QueryContext(ctx, text, args...)
	return rows, t.note(err)
}

// QueryRowContext sends a marked statement.
func (t *txPool) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	m, err := wire.Admit(ctx, string(t.db.place.Shard), "query", text)
	if err != nil {
		return errorRow(err)
	}
	defer m.Spend()
	t.charge()
	row := t.tx.QueryRowContext(ctx, text, args...)
	_ = t.note(row.Err())
	return row
}

// GetDBConn is refused: what is sent beside a transaction would not be part of it.
func (t *txPool) GetDBConn() (*sql.DB, error) {
	return nil, &ShapeError{Shape: "DB() inside a transaction", Hint: "use the transaction's own handle"}
}

// errOwned refuses to end a transaction of [Store.Transaction] from inside.
func errOwned() error {
	return &ShapeError{Shape: "Commit or Rollback inside Store.Transaction", Hint: "return nil or an error from its function"}
}

// Commit commits. An error that leaves the outcome open is [ErrOutcomeUnknown].
func (t *txPool) Commit() error {
	if t.owned {
		return errOwned()
	}
	return t.commit(t.db.place.Shard)
}

// Rollback rolls back.
func (t *txPool) Rollback() error {
	if t.owned {
		return errOwned()
	}
	if err := t.tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil // its context ended it: gorm would put this error in front of the one that says so
}

// commit commits, or rolls back what must not be committed.
func (t *transaction) commit(shard shardrouter.ShardID) error {
	if err := t.failure(); err != nil {
		poisoned := fmt.Errorf("%w on shard %q by an earlier statement: %w", wire.ErrPoisoned, shard, err)
		if rerr := t.tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			return errors.Join(poisoned, rerr)
		}
		return poisoned
	}
	err := t.tx.Commit()
	t.writes.ended(err)
	if err != nil && wire.IsConnection(err) && !errors.Is(err, wire.ErrPoisoned) {
		return fmt.Errorf("%w on shard %q: %w", ErrOutcomeUnknown, shard, err)
	}
	return err
}

// savepoint sends one of gorm's fixed savepoint texts. A failure poisons the transaction.
func (t *txPool) savepoint(ctx context.Context, verb, name string) error {
	if err := t.matches(ctx); err != nil {
		return err
	}
	if name == "" || len(name) > 64 || strings.Contains(name, ".") || !isPlainName(name) {
		return &ShapeError{Shape: "savepoint name", Hint: "use letters, digits and _"}
	}
	text := verb + " " + name
	_, err := t.tx.ExecContext(wire.With(ctx, &wire.Mark{Kind: wire.Control, Tenant: t.tenant.ID, Text: text}), text)
	return t.note(err)
}

// errorRow returns a row whose Scan gives err. database/sql makes rows only from connections, so it comes from a pool that cannot connect.
func errorRow(err error) *sql.Row {
	db := sql.OpenDB(refuser{err})
	defer func() { _ = db.Close() }()
	return db.QueryRowContext(context.Background(), "")
}

// refuser is a connector that refuses with its error.
type refuser struct{ err error }

// Connect returns the error.
func (r refuser) Connect(context.Context) (driver.Conn, error) { return nil, r.err }

// Driver returns no driver, since there is none.
func (r refuser) Driver() driver.Driver { return refusedDriver{} }

type refusedDriver struct{}

// Open is never called by a pool over [refuser].
func (refusedDriver) Open(string) (driver.Conn, error) { return nil, driver.ErrBadConn }

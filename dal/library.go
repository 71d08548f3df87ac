package dal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Lane says whose share of a place's connections the library's own statements use.
type Lane uint8

const (
	// LaneTenant is the tenant's: rate, then a permit.
	LaneTenant Lane = iota + 1
	// LaneSystem is the library's own, so that a tenant at its limit does not stop its own refunds.
	LaneSystem
)

// Library runs the registered constants of this module in one place. Nothing outside the module can name a constant, so nothing outside can run
// one. It is safe for concurrent use.
type Library struct {
	store *Store
	place Place
	lane  Lane
}

// Library returns the runner of a place. It does no I/O: a place that is not known or not fit is refused by the first statement, within the time of
// that statement's context.
func (s *Store) Library(p Place, lane Lane) (*Library, error) {
	return &Library{store: s, place: p, lane: lane}, nil
}

// admit checks a constant against the scope of ctx and takes a permit.
func (l *Library) admit(ctx context.Context, st *wire.Statement, args []any, write bool) (context.Context, *database, wire.Permit, error) {
	id, err := scopeOf(ctx, string(l.place.Shard), st, args)
	if err != nil {
		return ctx, nil, nil, err
	}
	db, permit, err := l.permit(ctx, write)
	if err != nil {
		return ctx, nil, nil, err
	}
	return wire.With(ctx, &wire.Mark{Kind: wire.Library, Tenant: id, Stmt: st, TenantArgs: st.Owners(), Permit: permit, Write: write}), db, permit, nil
}

// scopeOf demands a tenant's context for a tenant's constant, with the same tenant in its arguments, and a system scope for a system constant.
func scopeOf(ctx context.Context, shard string, st *wire.Statement, args []any) (tenant.ID, error) {
	if st.System() {
		_, err := tenant.BypassFromContext(ctx)
		return "", err
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return "", err
	}
	return id, st.CheckTenant(shard, id, args)
}

func (l *Library) permit(ctx context.Context, write bool) (*database, wire.Permit, error) {
	if heldBy(ctx, l.store) != nil {
		return nil, nil, fmt.Errorf("%w: it would need a second connection while the first is held; call it outside the transaction", ErrNested)
	}
	if write {
		if err := l.store.fresh(); err != nil {
			return nil, nil, err
		}
	}
	db, err := l.store.place(ctx, l.place)
	if err != nil {
		return nil, nil, err
	}
	if l.lane == LaneSystem {
		return db.enter(ctx, func(ctx context.Context, db *database) (wire.Permit, error) { return db.systemPermit(ctx) })
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, nil, err
	}
	t, err := l.store.resolve(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if st := l.store.standing(t, 0); st.allows(write) != nil {
		return nil, nil, st.allows(write)
	}
	return db.enter(ctx, func(ctx context.Context, db *database) (wire.Permit, error) { return db.tenantPermit(ctx, t, write) })
}

// Exec runs a constant by itself; the server commits it.
func (l *Library) Exec(ctx context.Context, st *wire.Statement, args ...any) (sql.Result, error) {
	ctx, db, permit, err := l.admit(ctx, st, args, true)
	if err != nil {
		return nil, err
	}
	defer permit.Release()
	res, err := db.of(st.System(), true).ExecContext(ctx, st.Text(), args...)
	sessionOf(ctx).ended(l.store, l.place, err)
	return res, err
}

// Query runs a constant that returns rows. The caller closes them.
func (l *Library) Query(ctx context.Context, st *wire.Statement, args ...any) (*sql.Rows, error) {
	ctx, db, permit, err := l.admit(ctx, st, args, false)
	if err != nil {
		return nil, err
	}
	defer permit.Release()
	return db.of(st.System(), false).QueryContext(ctx, st.Text(), args...)
}

// Tx runs fn in a transaction and commits it if nothing failed. Any error, of fn or of a statement that fn swallowed, rolls everything back.
//
// A COMMIT whose answer was lost is [ErrOutcomeUnknown]. Nothing is retried.
func (l *Library) Tx(ctx context.Context, fn func(tx *LibraryTx) error) error {
	db, permit, err := l.permit(ctx, true)
	if err != nil {
		return err
	}
	defer permit.Release()
	id, _ := tenant.FromContext(ctx)
	inner, err := db.of(id == "", true).BeginTx(wire.With(ctx, &wire.Mark{Kind: wire.Control, Tenant: id, Permit: permit}), nil)
	if err != nil {
		return err
	}
	tx := &LibraryTx{shard: l.place.Shard, tx: &transaction{tx: inner, writes: writes{sessionOf(ctx), l.store, l.place}}}
	done := false
	defer func() {
		if !done {
			_ = inner.Rollback()
		}
	}()
	err = fn(tx)
	done = true
	if err == nil {
		err = tx.failed
	}
	if err != nil {
		if rerr := inner.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			return errors.Join(err, rerr)
		}
		return err
	}
	return tx.tx.commit(l.place.Shard)
}

// LibraryTx is an open transaction of the library's own. One goroutine uses it.
type LibraryTx struct {
	shard  shardrouter.ShardID
	tx     *transaction
	failed error // the first error of a statement: the transaction cannot commit
}

// Exec runs a constant.
func (t *LibraryTx) Exec(ctx context.Context, st *wire.Statement, args ...any) (sql.Result, error) {
	ctx, err := t.mark(ctx, st, args)
	if err != nil {
		return nil, err
	}
	res, err := t.tx.tx.ExecContext(ctx, st.Text(), args...)
	return res, t.note(err)
}

// Query runs a constant that returns rows. The caller closes them before the next statement.
func (t *LibraryTx) Query(ctx context.Context, st *wire.Statement, args ...any) (*sql.Rows, error) {
	ctx, err := t.mark(ctx, st, args)
	if err != nil {
		return nil, err
	}
	rows, err := t.tx.tx.QueryContext(ctx, st.Text(), args...)
	return rows, t.note(err)
}

func (t *LibraryTx) mark(ctx context.Context, st *wire.Statement, args []any) (context.Context, error) {
	id, err := scopeOf(ctx, string(t.shard), st, args)
	if err != nil {
		return ctx, t.note(err)
	}
	return wire.With(ctx, &wire.Mark{Kind: wire.Library, Tenant: id, Stmt: st, TenantArgs: st.Owners(), Write: true}), nil
}

func (t *LibraryTx) note(err error) error {
	if err != nil && t.failed == nil {
		t.failed = err
	}
	return err
}

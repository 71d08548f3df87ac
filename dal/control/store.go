package control

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// attempts is how often a transaction that loses to another one is run. Writers come one after the other, so a loser loses once or twice.
const attempts = 8

// Store reads and writes the control database. It keeps nothing in memory: every call asks the database.
//
// It is safe for concurrent use, within one process and between processes.
type Store struct {
	pool    *wire.Pool
	dialect dialect
}

var (
	_ tenant.Registry = (*Store)(nil)
	_ tenant.Lister   = (*Store)(nil)
)

// New returns a store over a pool of the control database. The caller owns the pool, closes it, and on SQLite gives it one connection
// (SetMaxOpenConns(1)); a pool of [wire.OpenSQLite] begins its transactions with the file's write lock, which the store counts on.
//
// dialect is "sqlite", "mysql" or "postgres"; New panics on any other, since it is a mistake in the calling code. It performs no I/O.
func New(pool *wire.Pool, dialect string) *Store {
	d, ok := dialects[dialect]
	if !ok {
		panic(fmt.Sprintf("control: New: unknown dialect %q: want sqlite, mysql or postgres", dialect))
	}
	return &Store{pool: pool, dialect: d}
}

// querier is a pool or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec sends a constant and returns the number of matched rows.
func exec(ctx context.Context, q querier, st *wire.Statement, args ...any) (int64, error) {
	res, err := q.ExecContext(library(ctx, st), st.Text(), args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", st.Name(), err)
	}
	return res.RowsAffected()
}

// execOne sends a constant that must match exactly one row.
func execOne(ctx context.Context, q querier, st *wire.Statement, args ...any) error {
	n, err := exec(ctx, q, st, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("%s: matched %d rows, want 1: another writer came between", st.Name(), n)
	}
	return err
}

// query sends a constant and calls scan for each row.
func query(ctx context.Context, q querier, st *wire.Statement, args []any, scan func(rows *sql.Rows) error) error {
	rows, err := q.QueryContext(library(ctx, st), st.Text(), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", st.Name(), err)
	}
	for err == nil && rows.Next() {
		err = scan(rows)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return fmt.Errorf("%s: %w", st.Name(), err)
	}
	return nil
}

func library(ctx context.Context, st *wire.Statement) context.Context {
	return wire.With(ctx, &wire.Mark{Kind: wire.Library, Stmt: st, Text: st.Text()})
}

// tx runs fn in a transaction, again when it lost to another one. fn must be repeatable.
func (s *Store) tx(ctx context.Context, op string, fn func(tx *sql.Tx) error) error {
	var err error
	for range attempts {
		if err = s.once(ctx, fn); err == nil {
			return nil
		}
		if !wire.IsDeadlock(err) && !wire.IsDuplicateKey(err) || ctx.Err() != nil {
			break
		}
	}
	return failed(op, err)
}

func (s *Store) once(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.pool.BeginTx(wire.With(ctx, &wire.Mark{Kind: wire.Control}), nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		if rerr := tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			return errors.Join(err, fmt.Errorf("roll back: %w", rerr))
		}
		return err
	}
	return tx.Commit()
}

// failed says what was being done, and tells a database without tables from one that fails.
func failed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case wire.IsMissing(err):
		return fmt.Errorf("control: %s: %w: %w", op, ErrNotMigrated, err)
	}
	return fmt.Errorf("control: %s: %w", op, err)
}

package schema

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// openAttempts is how often the file of a folder's lock is opened while another run makes it.
const openAttempts = 5

// releaseLimit bounds the clean-up after a run whose ctx has ended.
const releaseLimit = 10 * time.Second

// lock keeps other runs out until it is released or the process ends: it lives with one connection.
type lock struct {
	conn *sql.Conn
	pool *wire.Pool // closed with the lock; nil when the pool is somebody else's
	have string     // asks whether the connection holds the lock; empty: the file is the lock
	drop string     // gives it back
	arg  any        // the lock's name or number
}

const (
	getLock  = "SELECT GET_LOCK(?, ?)"
	haveLock = "SELECT IS_USED_LOCK(?) <=> CONNECTION_ID()"
	whoLocks = "SELECT COALESCE(IS_USED_LOCK(?), 0)"
	dropLock = "SELECT RELEASE_LOCK(?)"
)

// lockFolder waits for the lock of a folder of SQLite files: the write lock of a file of its own, which the operating system gives back whatever becomes
// of the process.
func (r *run) lockFolder(ctx context.Context) (*lock, error) {
	path := r.lockPath()
	pool, err := wire.OpenSQLite(wire.SQLite{Path: path, Create: true, BusyTimeout: r.LockWait}, wire.Options{Shard: "lock"})
	if err != nil {
		return nil, err
	}
	var conn *sql.Conn
	// Two runs that make the file at the same time can refuse each other at once, whatever the time-out; the next try finds it made.
	for range openAttempts {
		if conn, err = pool.Conn(ctx); err == nil || !wire.IsDeadlock(err) {
			break
		}
	}
	if err != nil {
		_ = pool.Close()
		return nil, fmt.Errorf("schema: open the lock of the folder: %w", err)
	}
	l := &lock{conn: conn, pool: pool}
	_, err = conn.ExecContext(mark(ctx), "BEGIN IMMEDIATE")
	switch {
	case err == nil:
		return l, nil
	case wire.IsDeadlock(err) && ctx.Err() == nil:
		err = &LockedError{What: r.cfg.Cluster.Dir, Waited: r.LockWait}
	default:
		err = fmt.Errorf("schema: lock the folder: %w", err)
	}
	l.release()
	return nil, err
}

// lockDatabase waits for the lock of one database of a server.
func (r *run) lockDatabase(ctx context.Context, db *database) (*lock, error) {
	if db.dialect == dal.Postgres {
		return r.lockPostgres(ctx, db)
	}
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var schema string
	if err := conn.QueryRowContext(mark(ctx), "SELECT DATABASE()").Scan(&schema); err != nil {
		_ = conn.Close()
		return nil, err
	}
	l := &lock{conn: conn, have: haveLock, drop: dropLock, arg: lockName(schema)}
	var got sql.NullInt64
	if err := conn.QueryRowContext(mark(ctx), getLock, l.arg, seconds(r.LockWait)).Scan(&got); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if got.Int64 != 1 {
		e := &LockedError{What: db.name, Waited: r.LockWait}
		_ = conn.QueryRowContext(mark(ctx), whoLocks, l.arg).Scan(&e.Holder) // for the message only
		_ = conn.Close()
		return nil, e
	}
	return l, nil
}

// lockName names the lock of one database: names of locks belong to the whole server, and have at most 64 characters.
func lockName(database string) string {
	sum := sha256.Sum256([]byte(database))
	return "tdal-migrate-" + hex.EncodeToString(sum[:20])
}

// held returns [ErrLockLost] when the lock's connection broke: the server gave the lock to the next run then.
func (l *lock) held(ctx context.Context) error {
	if l == nil || l.have == "" {
		return nil // a file's lock ends with the process
	}
	var mine bool
	if err := l.conn.QueryRowContext(mark(ctx), l.have, l.arg).Scan(&mine); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", ErrLockLost, err)
	}
	if !mine {
		return ErrLockLost
	}
	return nil
}

// release gives the lock back. Where that fails the connection's end does it.
func (l *lock) release() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if l.have != "" {
		var done any
		_ = l.conn.QueryRowContext(mark(ctx), l.drop, l.arg).Scan(&done)
	}
	_ = l.conn.Close()
	if l.pool != nil {
		_ = l.pool.Close()
	}
}

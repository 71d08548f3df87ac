package schema_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
)

// hold takes the lock that a run of the bench waits for, until the test ends or the function returned is called.
func hold(t *testing.T, b *bench) (release func()) {
	t.Helper()
	var pool *wire.Pool
	var err error
	text := "BEGIN IMMEDIATE"
	switch {
	case b.mysql():
		pool = b.open(s1, "")
		text = fmt.Sprintf("SELECT GET_LOCK('%s', 0)", schema.LockName(b.cfg.Cluster.Shards[0].Database))
	case b.postgres():
		pool = b.open(s1, "")
		text = fmt.Sprintf("SELECT pg_advisory_lock(%d)", schema.PostgresLockKey)
	default:
		if err := os.MkdirAll(b.cfg.Cluster.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if pool, err = wire.OpenSQLite(wire.SQLite{Path: filepath.Join(b.cfg.Cluster.Dir, "migrate.lock"), Create: true}, wire.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pool.Conn(t.Context())
	if err == nil {
		_, err = conn.ExecContext(migrator(t.Context()), text)
	}
	if err != nil {
		t.Fatalf("hold: %v", err)
	}
	done := false
	release = func() {
		if !done {
			done = true
			_ = conn.Raw(func(any) error { return errors.New("close it") })
			_ = conn.Close()
			_ = pool.Close()
		}
	}
	t.Cleanup(release)
	return release
}

func TestUp_Locked(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.mustUp(game1)
		release := hold(t, b)
		b.m.LockWait = 100 * time.Millisecond // a server rounds it up to a second
		_, err := b.up(game2)
		var le *schema.LockedError
		if !errors.As(err, &le) || !errors.Is(err, schema.ErrLocked) || le.Waited != b.m.LockWait || (le.Holder != 0) != b.server() {
			t.Fatalf("Up: got %v, want a *LockedError", err)
		}
		if len(b.columns(s1, "", "hero")) != 2 {
			t.Fatal("a file was applied without the lock")
		}
		// Status asks for no lock.
		if st := b.status(game2); st[1].Version != 1 || st[1].Err != nil {
			t.Fatalf("Status under a lock: got %+v", st[1])
		}
		release()
		b.mustUp(game2)
	})
}

// ctx ends the wait.
func TestUp_LockedUntilContextEnds(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.mustUp(game1)
		release := hold(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		b.m.LockWait = time.Hour
		_, err := b.m.Up(ctx, b.cfg, game2)
		if err == nil || errors.Is(err, schema.ErrLocked) || time.Since(start) > slow {
			t.Fatalf("Up: got %v after %v, want the end of ctx", err, time.Since(start))
		}
		release()
		b.m.LockWait = 0
		b.mustUp(game2)
	})
}

// The lock lives with a connection. When that breaks another run may begin, so this one stops.
func TestUp_LockLost(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 1)
	b.mustUp(game1)
	killed := false
	b.m = schema.Migrator{}.Observed(&hook{before: func(_ int, e wire.Event) error {
		if !killed && strings.HasPrefix(e.Text, "ALTER TABLE hero") {
			killed = true
			var id string
			lock := schema.LockName(b.cfg.Cluster.Shards[0].Database)
			for _, id = range b.list(s1, "", "SELECT IS_USED_LOCK('"+lock+"')") {
				b.root("KILL " + id)
			}
			b.list(s1, "", "SELECT GET_LOCK('"+lock+"', 30)") // until the server has noticed
		}
		return nil
	}})
	_, err := b.up(game2)
	if !errors.Is(err, schema.ErrLockLost) || !killed {
		t.Fatalf("Up: got %v, want ErrLockLost", err)
	}
	if e := upError(t, err); e.Failed[0].File != "0003_item.sql" {
		t.Fatalf("Up: got %+v, want it to stop at the next file", e.Failed)
	}
	b.m = schema.Migrator{}
	b.mustUp(game2)
}

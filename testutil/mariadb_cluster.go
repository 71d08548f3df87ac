package testutil

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"
)

// RequireMariaDBEnv is the environment variable that makes [RequireMariaDB] fail a test instead of skipping it. Any value but
// "" and "0" counts. `make test` sets it.
const RequireMariaDBEnv = "TENANTDAL_REQUIRE_MARIADB"

// dropLimit bounds the removal of a test's database.
const dropLimit = 10 * time.Second

// RequireMariaDB skips the test, with the reason, where [FindMariaDB] finds no server. With [RequireMariaDBEnv] set it fails
// the test instead, so that a run which must cover the database cannot pass without it.
func RequireMariaDB(tb TB) {
	tb.Helper()
	_, err := FindMariaDB()
	skipOrFail(tb, RequireMariaDBEnv, err)
}

// skipOrFail ends the test because of err, in the way that the environment asks for; it does nothing if err is nil.
func skipOrFail(tb TB, env string, err error) {
	tb.Helper()
	switch value := os.Getenv(env); {
	case err == nil:
	case value != "" && value != "0":
		tb.Fatalf("%s=%s, but: %v", env, value, err)
	default:
		tb.Skip(err)
	}
}

// NewMariaDBCluster starts n servers, in parallel and from empty, and returns when all of them answer. They are killed and
// their data removed when the test is over. On Linux this also holds when the test process itself is killed or panics. The
// test may stop, kill and restart them as it likes.
//
// len(result) == n. It calls [RequireMariaDB], and fails the test when a server does not come up. It must run on the goroutine
// of the test.
func NewMariaDBCluster(tb TB, n int) []*MariaDB {
	tb.Helper()
	RequireMariaDB(tb)
	return ownCluster(tb, "NewMariaDBCluster", n, func() (string, error) { return tb.TempDir(), nil }, launchMariaDB)
}

// shared is the cluster of [SharedMariaDB].
var shared sharedCluster[*MariaDB]

// SharedMariaDB returns n servers that all tests of this process share: the first call starts them, later ones start what is
// missing or down. Tests keep apart by databases of their own, see [NewDatabase], and must not stop the servers.
//
// The servers end with the process, however it ends, or by [StopSharedMariaDB]. Where the operating system is not Linux nothing
// would end them, so there each call is a [NewMariaDBCluster].
//
// len(result) == n; calls return the same servers in the same order. It calls [RequireMariaDB], and fails the test when a
// server does not come up. It must run on the goroutine of the test.
func SharedMariaDB(tb TB, n int) []*MariaDB {
	tb.Helper()
	if !canReap {
		return NewMariaDBCluster(tb, n)
	}
	RequireMariaDB(tb)
	return shared.take(tb, "SharedMariaDB", n, func() (string, error) { return os.MkdirTemp("", "tdal-shared-") }, launchMariaDB)
}

// StopSharedMariaDB ends the servers of [SharedMariaDB] and removes their data. Without it they end with the process, but the
// goroutines that watch them live until then: a TestMain that looks for leaked goroutines calls it first. A later SharedMariaDB
// starts new servers.
func StopSharedMariaDB() error { return shared.stop() }

// NewDatabase makes an empty database with a random name on the server, and returns a driver configuration for it that the
// caller may change. The database is dropped when the test is over, which fails the test if a connection still holds a lock
// there after 10 s. Nothing is dropped from a server that is down by then.
func NewDatabase(tb TB, m *MariaDB) *mysql.Config {
	tb.Helper()
	name := "t_" + rand.Text()
	if err := execSQL(m.MySQLConfig(), "CREATE DATABASE `"+name+"`"); err != nil {
		tb.Fatalf("NewDatabase: %v", err)
	}
	tb.Cleanup(func() {
		if m.Pid() == 0 {
			return
		}
		if err := execSQL(m.MySQLConfig(), "DROP DATABASE `"+name+"`"); err != nil {
			tb.Errorf("NewDatabase: cleanup: drop %s, is a transaction still open? %v", name, err)
		}
	})
	cfg := m.MySQLConfig()
	cfg.DBName = name
	return cfg
}

// execSQL runs one statement on a connection of its own, within dropLimit.
func execSQL(cfg *mysql.Config, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
	defer cancel()
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

// launchMariaDB starts a server of a cluster.
func launchMariaDB(ctx context.Context, dir string) (*MariaDB, error) {
	return StartMariaDB(ctx, MariaDBConfig{Dir: dir})
}

// discard ends the server at once, and removes the folder of its socket.
func (m *MariaDB) discard() error { return errors.Join(m.Kill(), m.Stop(context.Background())) }

package testutil

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"
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
	c, err := newCluster(tb.TempDir())
	if err == nil {
		tb.Cleanup(func() {
			if err := c.close(); err != nil {
				tb.Errorf("NewMariaDBCluster(%d): cleanup: %v", n, err)
			}
		})
		err = c.grow(n)
	}
	if err != nil {
		tb.Fatalf("NewMariaDBCluster(%d): %v", n, err)
	}
	return slices.Clone(c.servers)
}

// shared is the cluster of [SharedMariaDB]; nil before the first use.
var (
	sharedMu sync.Mutex // guards shared and is held over the start, so that one caller starts it and the others wait
	shared   *cluster
)

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
	sharedMu.Lock()
	defer sharedMu.Unlock()
	err := error(nil)
	if shared == nil {
		shared, err = newSharedCluster()
	}
	if err == nil {
		err = shared.grow(n)
	}
	if err != nil {
		tb.Fatalf("SharedMariaDB(%d): %v", n, err)
	}
	return slices.Clone(shared.servers[:n])
}

// StopSharedMariaDB ends the servers of [SharedMariaDB] and removes their data. Without it they end with the process, but the
// goroutines that watch them live until then: a TestMain that looks for leaked goroutines calls it first. A later SharedMariaDB
// starts new servers.
func StopSharedMariaDB() error {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared == nil {
		return nil
	}
	c := shared
	shared = nil
	return errors.Join(c.close(), os.RemoveAll(c.root))
}

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

// cluster is a number of servers in one directory, and the process that reaps them when this one dies.
type cluster struct {
	root    string // absolute, without symbolic links, as the servers' command lines have it
	reaper  *reaper
	servers []*MariaDB
}

// newCluster returns a cluster of no servers in the directory root, which exists.
func newCluster(root string) (*cluster, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	r, err := startReaper(root)
	if err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return &cluster{root: root, reaper: r}, nil
}

// newSharedCluster returns a cluster of no servers in a new temporary directory.
func newSharedCluster() (*cluster, error) {
	root, err := os.MkdirTemp("", "tdal-shared-")
	if err != nil {
		return nil, err
	}
	c, err := newCluster(root)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	return c, nil
}

// grow starts servers until there are n, and those of the first n that are down. When one does not come up, no new one is kept.
func (c *cluster) grow(n int) error {
	ctx := context.Background() // each start has its own limit
	servers := slices.Clone(c.servers)
	servers = append(servers, make([]*MariaDB, max(0, n-len(servers)))...)
	var group errgroup.Group
	for i, m := range servers[:n] {
		group.Go(func() (err error) {
			if m != nil {
				return m.Start(ctx)
			}
			servers[i], err = StartMariaDB(ctx, MariaDBConfig{Dir: filepath.Join(c.root, strconv.Itoa(i))})
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		c.servers = servers
		return nil
	}
	for _, m := range servers[len(c.servers):] {
		if m != nil {
			err = errors.Join(err, m.Kill(), m.Stop(ctx))
		}
	}
	return err
}

// close ends the servers at once, since their data goes with them, and then the reaper.
func (c *cluster) close() error {
	var group errgroup.Group
	for _, m := range c.servers {
		group.Go(func() error { return errors.Join(m.Kill(), m.Stop(context.Background())) })
	}
	return errors.Join(group.Wait(), c.reaper.dismiss())
}

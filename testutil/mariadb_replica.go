package testutil

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/go-sql-driver/mysql"
)

// replicaStartTries is how often a pair of servers is started anew because another process took the port that was free a moment ago.
const replicaStartTries = 3

// MariaDBPair is a server with a binary log, and another one that copies it. Make one with [NewMariaDBReplica].
//
// The replica follows by GTID over the loopback interface, since a replica cannot be told the path of a socket; everybody else reaches both by their
// sockets. It copies every database, login and right, and is read_only, which its root alone may pass over.
//
// All methods are safe for concurrent use.
type MariaDBPair struct {
	Primary, Replica *MariaDB
}

// NewMariaDBReplica starts a primary and its replica from empty, and returns when the replica copies. Both are killed and their data removed when the
// test is over, as by [NewMariaDBCluster]. The test may stop, kill and restart them as it likes: a replica that starts again goes on copying.
//
// It calls [RequireMariaDB], and fails the test when a server does not come up or the replica does not copy. It must run on the goroutine of the test.
func NewMariaDBReplica(tb TB) *MariaDBPair {
	tb.Helper()
	RequireMariaDB(tb)
	ctx, cancel := context.WithTimeoutCause(context.Background(), startLimit, errStartLimit)
	defer cancel()
	port := 0
	servers := ownCluster(tb, "NewMariaDBReplica", 2, func() (string, error) { return tb.TempDir(), nil }, func(ctx context.Context, dir string) (*MariaDB, error) {
		if filepath.Base(dir) != "0" {
			return StartMariaDB(ctx, MariaDBConfig{Dir: dir, ExtraArgs: []string{
				"--server-id=2", "--relay-log=relay", "--log-bin=binlog", "--log-slave-updates", "--read-only=ON", "--slave-net-timeout=10",
			}})
		}
		m, p, err := startPrimary(ctx, dir)
		port = p
		return m, err
	})
	pair := &MariaDBPair{Primary: servers[0], Replica: servers[1]}
	if err := pair.connect(ctx, port); err != nil {
		tb.Fatalf("NewMariaDBReplica: %v", err)
	}
	return pair
}

// startPrimary starts a server that can be copied, on a port of the loopback interface that is free.
func startPrimary(ctx context.Context, dir string) (m *MariaDB, port int, err error) {
	for range replicaStartTries {
		if port, err = freePort(ctx); err != nil {
			return nil, 0, err
		}
		m, err = StartMariaDB(ctx, MariaDBConfig{Dir: dir, loopbackPort: port, ExtraArgs: []string{"--server-id=1", "--log-bin=binlog"}})
		var failed *StartError
		if err == nil || !errors.As(err, &failed) {
			return m, port, err
		}
	}
	return nil, 0, err
}

// freePort returns a port of the loopback interface that nobody listens on now.
func freePort(ctx context.Context) (int, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// connect makes the login of the replica, and starts the copying.
func (p *MariaDBPair) connect(ctx context.Context, port int) error {
	password := rand.Text()
	for _, text := range []string{
		"CREATE USER 'replicator'@'%' IDENTIFIED BY '" + password + "'",
		"GRANT REPLICATION SLAVE ON *.* TO 'replicator'@'%'",
	} {
		if err := execSQL(p.Primary.MySQLConfig(), text); err != nil {
			return fmt.Errorf("make the replica's login: %w", err)
		}
	}
	for _, text := range []string{
		"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = " + strconv.Itoa(port) + ", MASTER_USER = 'replicator', MASTER_PASSWORD = '" + password +
			"', MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos",
		"START SLAVE",
	} {
		if err := execSQL(p.Replica.MySQLConfig(), text); err != nil {
			return fmt.Errorf("start the replica: %w", err)
		}
	}
	return p.Sync(ctx)
}

// Sync waits until the replica has everything that the primary has committed so far. It returns an error when ctx ends first, and after ten seconds
// without ctx's help: the replica's SQL thread may be stopped.
func (p *MariaDBPair) Sync(ctx context.Context) error {
	var position string
	if err := queryOne(ctx, p.Primary.MySQLConfig(), "SELECT @@GLOBAL.gtid_binlog_pos", &position); err != nil {
		return fmt.Errorf("testutil: read the primary's position: %w", err)
	}
	var reached int
	if err := queryOne(ctx, p.Replica.MySQLConfig(), "SELECT MASTER_GTID_WAIT('"+position+"', 10)", &reached); err != nil {
		return fmt.Errorf("testutil: wait for the replica: %w", err)
	}
	if reached != 0 {
		return fmt.Errorf("testutil: the replica did not reach %s", position)
	}
	return nil
}

// StopSQL makes the replica fall behind: it still receives what the primary commits, and applies nothing of it until [MariaDBPair.StartSQL].
func (p *MariaDBPair) StopSQL() error {
	return execSQL(p.Replica.MySQLConfig(), "STOP SLAVE SQL_THREAD")
}

// StartSQL lets the replica apply again what it has received.
func (p *MariaDBPair) StartSQL() error {
	return execSQL(p.Replica.MySQLConfig(), "START SLAVE SQL_THREAD")
}

// queryOne reads one value on a connection of its own.
func queryOne(ctx context.Context, cfg *mysql.Config, text string, value any) error {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	return errors.Join(db.QueryRowContext(ctx, text).Scan(value), db.Close())
}

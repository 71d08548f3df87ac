package testutil

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
)

// RequirePostgresEnv is the environment variable that makes [RequirePostgres] fail a test instead of skipping it. Any value but "" and "0" counts.
// `make test` sets it.
const RequirePostgresEnv = "TENANTDAL_REQUIRE_POSTGRES"

// RequirePostgres skips the test, with the reason, where [FindPostgres] finds no server. With [RequirePostgresEnv] set it fails the test instead.
func RequirePostgres(tb TB) {
	tb.Helper()
	_, err := FindPostgres()
	skipOrFail(tb, RequirePostgresEnv, err)
}

// NewPostgresCluster starts n servers, in parallel and from empty, and returns when all of them answer. They are killed and their data removed when the
// test is over; on Linux also when the test process is killed or panics. The test may stop, kill and restart them as it likes.
//
// len(result) == n. It calls [RequirePostgres], and fails the test when a server does not come up. It must run on the goroutine of the test.
func NewPostgresCluster(tb TB, n int) []*Postgres {
	tb.Helper()
	RequirePostgres(tb)
	return ownCluster(tb, "NewPostgresCluster", n, postgresRoot, StartPostgres)
}

// sharedPostgres is the cluster of [SharedPostgres].
var sharedPostgres sharedCluster[*Postgres]

// SharedPostgres returns n servers that all tests of this process share: the first call starts them, later ones start what is missing or down. Tests keep
// apart by databases of their own, see [NewPostgresDatabase], and must not stop the servers.
//
// The servers end with the process, however it ends, or by [StopSharedPostgres]. Where the operating system is not Linux nothing would end them, so there
// each call is a [NewPostgresCluster].
//
// len(result) == n; calls return the same servers in the same order. It calls [RequirePostgres], and fails the test when a server does not come up. It
// must run on the goroutine of the test.
func SharedPostgres(tb TB, n int) []*Postgres {
	tb.Helper()
	if !canReap {
		return NewPostgresCluster(tb, n)
	}
	RequirePostgres(tb)
	return sharedPostgres.take(tb, "SharedPostgres", n, postgresRoot, StartPostgres)
}

// StopSharedPostgres ends the servers of [SharedPostgres] and removes their data; a TestMain that looks for leaked goroutines calls it first. A later
// SharedPostgres starts new servers.
func StopSharedPostgres() error { return sharedPostgres.stop() }

// NewPostgresDatabase makes an empty database with a random name on the server, and returns its endpoint with the server's login. The database is dropped
// when the test is over, together with those that [github.com/tenantdal/tenantdal/migrations/schema.Up] named after it, whoever is connected to them.
// Nothing is dropped from a server that is down by then.
func NewPostgresDatabase(tb TB, p *Postgres) dal.Endpoint {
	tb.Helper()
	name := "t_" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
	defer cancel()
	if err := p.exec(ctx, postgresAdmin, `CREATE DATABASE "`+name+`" TEMPLATE template0`); err != nil {
		tb.Fatalf("NewPostgresDatabase: %v", err)
	}
	tb.Cleanup(func() {
		if p.Pid() == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
		defer cancel()
		if err := p.DropDatabases(ctx, name); err != nil {
			tb.Errorf("NewPostgresDatabase: cleanup: drop %s: %v", name, err)
		}
	})
	return p.Endpoint(name)
}

// DropDatabases drops the database with that name and those whose names go on with _, whoever is connected to them.
func (p *Postgres) DropDatabases(ctx context.Context, name string) error {
	names, err := p.list(ctx, "SELECT datname FROM pg_database WHERE datname = $1 OR starts_with(datname, $2)", name, name+"_")
	if err != nil {
		return err
	}
	for _, n := range names {
		err = errors.Join(err, p.exec(ctx, postgresAdmin, `DROP DATABASE IF EXISTS "`+n+`" WITH (FORCE)`))
	}
	return err
}

// postgresRoot makes a new temporary directory that the servers' user can pass.
func postgresRoot() (string, error) {
	root, err := os.MkdirTemp("", "tdal-postgres-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(root, 0o711); err != nil {
		return "", errors.Join(err, os.RemoveAll(root))
	}
	return root, nil
}

// discard ends the server at once, and removes the folder of its socket.
func (p *Postgres) discard() error { return errors.Join(p.Kill(), p.removeSocket()) }

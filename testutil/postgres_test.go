package testutil_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/testutil"
)

// postgresConn connects to an endpoint of a test's server.
func postgresConn(t *testing.T, e dal.Endpoint) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig("port=5432 sslmode=disable host=" + filepath.Dir(e.Address))
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.Password, cfg.Database = e.User, e.Password, e.Database
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestPostgres_KeepsWhatWasCommittedOverAKill(t *testing.T) {
	t.Parallel()
	p := testutil.NewPostgresCluster(t, 1)[0]
	e := testutil.NewPostgresDatabase(t, p)
	if _, err := postgresConn(t, e).Exec(t.Context(), "CREATE TABLE x AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil || p.Pid() != 0 {
		t.Fatalf("Kill: %v, pid %d", err, p.Pid())
	}
	if err := p.Start(t.Context()); err != nil || p.Pid() == 0 {
		t.Fatalf("Start: %v, pid %d", err, p.Pid())
	}
	var n int
	if err := postgresConn(t, e).QueryRow(t.Context(), "SELECT n FROM x").Scan(&n); err != nil || n != 7 {
		t.Errorf("after a kill: %d, %v", n, err)
	}
	if err := p.Stop(t.Context()); err != nil || p.Pid() != 0 {
		t.Errorf("Stop: %v, pid %d", err, p.Pid())
	}
	if err := p.Start(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPostgres_ChecksPasswords(t *testing.T) {
	t.Parallel()
	p := testutil.SharedPostgres(t, 1)[0]
	cfg, err := pgx.ParseConfig("port=5432 sslmode=disable host=" + filepath.Dir(p.Socket()))
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.Password, cfg.Database = p.User(), "wrong", "template1"
	if conn, err := pgx.ConnectConfig(t.Context(), cfg); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a wrong password was taken")
	}
}

func TestStartPostgres_SaysWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	testutil.RequirePostgres(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := testutil.StartPostgres(t.Context(), dir)
	var start *testutil.StartError
	if !errors.As(err, &start) || start.Server != "PostgreSQL" || !strings.Contains(err.Error(), "PostgreSQL") {
		t.Errorf("a data directory that holds something else: %v", err)
	}
	if _, err := os.Stat(filepath.Join(data, "mine")); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
}

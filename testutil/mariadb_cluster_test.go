//go:build linux

package testutil_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/tenantdal/tenantdal/testutil"
)

// hangEnv makes TestNewMariaDBCluster_OutlivesNoKill, in a process of its own, print where its servers are and then wait to be
// killed.
const hangEnv = "TENANTDAL_TESTUTIL_HANG"

func TestNewMariaDBCluster_TwoDoNotMeet(t *testing.T) {
	t.Parallel()
	var servers []*testutil.MariaDB
	for range 2 {
		cluster := testutil.NewMariaDBCluster(t, 2)
		if len(cluster) != 2 {
			t.Fatalf("NewMariaDBCluster(2) has %d servers", len(cluster))
		}
		servers = append(servers, cluster...)
	}
	seen := map[string]bool{}
	for i, m := range servers {
		for _, what := range []string{m.Socket(), m.Dir(), fmt.Sprint(m.Pid()), query(t, m, "SELECT @@datadir")} {
			if seen[what] {
				t.Errorf("two servers share %s", what)
			}
			seen[what] = true
		}
		if got := query(t, m, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'only%'"); got != "0" {
			t.Errorf("server %d sees %s databases of the others", i, got)
		}
		execAll(t, m, fmt.Sprintf("CREATE DATABASE only%d", i))
	}
}

func TestNewMariaDBCluster_EndsWithTheTest(t *testing.T) {
	t.Parallel()
	var m []*testutil.MariaDB
	t.Run("inner", func(t *testing.T) {
		m = testutil.NewMariaDBCluster(t, 2)
		must(t, m[0].Kill()) // a test may
	})
	for _, m := range m {
		if m.Pid() != 0 {
			t.Errorf("server %s runs after its test", m.Dir())
		}
		for _, gone := range []string{m.Dir(), filepath.Dir(m.Socket())} {
			if _, err := os.Stat(gone); !os.IsNotExist(err) {
				t.Errorf("%s after the test: %v, want it gone", gone, err)
			}
		}
	}
}

// A test process that is killed cannot clean up; the reaper does.
func TestNewMariaDBCluster_OutlivesNoKill(t *testing.T) {
	t.Parallel()
	testutil.RequireMariaDB(t)
	if os.Getenv(hangEnv) != "" {
		own, shared := testutil.NewMariaDBCluster(t, 1), testutil.SharedMariaDB(t, 1)
		fmt.Printf("\n%s\n%s\n", own[0].Dir(), shared[0].Dir())
		fmt.Printf("%s\n%s\nhanging\n", own[0].Socket(), shared[0].Socket())
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), hangEnv+"=1")
	output, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var paths []string
	for lines := bufio.NewScanner(output); lines.Scan() && lines.Text() != "hanging"; {
		if strings.HasPrefix(lines.Text(), "/") {
			paths = append(paths, lines.Text())
		}
	}
	if len(paths) != 4 {
		_ = cmd.Process.Kill()
		t.Fatalf("the hanging test named %q, want two directories and two sockets", paths)
	}
	for _, dir := range paths[:2] {
		if len(serversBelow(t, dir)) != 1 {
			t.Errorf("servers below %s: %v, want one", dir, serversBelow(t, dir))
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, path := range []string{filepath.Dir(paths[0]), filepath.Dir(paths[1]), filepath.Dir(paths[2]), filepath.Dir(paths[3])} {
		waitFor(t, path+" is gone", func() bool {
			_, err := os.Stat(path)
			return os.IsNotExist(err)
		})
	}
	for _, dir := range paths[:2] {
		if pids := serversBelow(t, dir); len(pids) > 0 {
			t.Errorf("servers %v run below %s", pids, dir)
		}
	}
	must(t, os.Remove(filepath.Dir(filepath.Dir(paths[0])))) // where t.TempDir of the killed process had begun
}

func TestSharedMariaDB(t *testing.T) {
	first := testutil.SharedMariaDB(t, 1)
	both := testutil.SharedMariaDB(t, 2)
	if len(first) != 1 || len(both) != 2 || first[0] != both[0] || both[0] == both[1] {
		t.Fatalf("SharedMariaDB(1), (2) = %v, %v; want the same first server in both", first, both)
	}
	must(t, both[1].Kill())
	if again := testutil.SharedMariaDB(t, 2); again[1].Pid() == 0 {
		t.Error("SharedMariaDB handed out a server that is down")
	}

	var cfg *mysql.Config
	t.Run("inner", func(t *testing.T) {
		cfg = testutil.NewDatabase(t, both[0])
		other := testutil.NewDatabase(t, both[0])
		if cfg.DBName == other.DBName {
			t.Errorf("two databases named %s", cfg.DBName)
		}
		db := open(t, cfg)
		if _, err := db.Exec("CREATE TABLE t (a INT)"); err != nil {
			t.Errorf("CREATE TABLE in the new database: %v", err)
		}
	})
	var gone *mysql.MySQLError
	if err := open(t, cfg).Ping(); !errors.As(err, &gone) || gone.Number != 1049 {
		t.Errorf("database after its test: %v, want error 1049, unknown database", err)
	}

	must(t, testutil.StopSharedMariaDB())
	must(t, testutil.StopSharedMariaDB())
	if both[0].Pid() != 0 || both[1].Pid() != 0 {
		t.Error("shared servers run after StopSharedMariaDB")
	}
	if _, err := os.Stat(filepath.Dir(both[0].Dir())); !os.IsNotExist(err) {
		t.Errorf("data of the shared servers: %v, want it gone", err)
	}
}

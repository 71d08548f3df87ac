//go:build linux

package testutil_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/tenantdal/tenantdal/testutil"
	"go.uber.org/goleak"
)

func TestMariaDB_KillLosesNoCommit(t *testing.T) {
	t.Parallel()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir()})
	execAll(t, m, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (42)")
	pid, socket := m.Pid(), m.Socket()
	if !alive(pid) {
		t.Fatalf("Pid() = %d, which does not run", pid)
	}

	must(t, m.Kill())
	if m.Pid() != 0 || alive(pid) {
		t.Fatalf("after Kill: Pid() = %d, process %d alive: %v; want 0, false", m.Pid(), pid, alive(pid))
	}
	if err := m.Wait(); err != nil {
		t.Fatalf("Wait() after Kill = %v, want nil", err)
	}
	must(t, m.Kill()) // of a server that is down

	must(t, m.Restart(context.Background()))
	if m.Socket() != socket {
		t.Errorf("Socket() after Restart = %s, want %s as before", m.Socket(), socket)
	}
	if got := query(t, m, "SELECT a FROM d.t"); got != "42" {
		t.Errorf("row after Kill and Restart = %s, want 42", got)
	}
}

func TestMariaDB_Settings(t *testing.T) {
	t.Parallel()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir(), ExtraArgs: []string{"--max_connections=77"}})
	for name, want := range map[string]string{
		"skip_networking": "1", "port": "0", "innodb_flush_log_at_trx_commit": "1", "log_bin": "0", "performance_schema": "0",
		"character_set_server": "utf8mb4", "time_zone": "+00:00", "skip_name_resolve": "1", "max_connections": "77",
		"socket": m.Socket(), "datadir": filepath.Join(m.Dir(), "data") + "/",
	} {
		if got := query(t, m, "SELECT @@"+name); got != want {
			t.Errorf("@@%s = %q, want %q", name, got, want)
		}
	}
	if got := query(t, m, "SELECT GROUP_CONCAT(User, '@', Host ORDER BY User) FROM mysql.global_priv"); got != "mariadb.sys@localhost,root@localhost" {
		t.Errorf("accounts = %s, want the login and the locked owner of the system views alone", got)
	}
}

func TestMariaDB_StopIsIdempotent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir()})
	pid, socket, done := m.Pid(), m.Socket(), m.Done()
	for range 3 {
		if err := m.Stop(ctx); err != nil {
			t.Fatalf("Stop() = %v, want nil", err)
		}
	}
	<-done
	if err := m.Wait(); err != nil || alive(pid) || m.Pid() != 0 {
		t.Errorf("after Stop: Wait() = %v, alive %v, Pid() = %d; want nil, false, 0", err, alive(pid), m.Pid())
	}
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket folder after Stop: %v, want it gone", err)
	}

	must(t, m.Start(ctx))
	must(t, m.Start(ctx)) // of a server that is up
	if m.Socket() != socket {
		t.Errorf("Socket() after Stop and Start = %s, want %s as before", m.Socket(), socket)
	}
	select {
	case <-m.Done():
		t.Error("Done() is closed while the server runs")
	default:
	}
}

func TestMariaDB_StopKillsWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir()})
	pid := m.Pid()
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("closing time")
	cancel(cause)
	err := m.Stop(ctx)
	var killed *testutil.KilledError
	if !errors.As(err, &killed) || !errors.Is(err, cause) {
		t.Errorf("Stop(ended ctx) = %v, want *KilledError with the cause", err)
	}
	if alive(pid) {
		t.Errorf("process %d runs after Stop", pid)
	}
	var failed *testutil.StartError
	if err := m.Start(ctx); !errors.As(err, &failed) || !errors.Is(err, cause) || m.Pid() != 0 {
		t.Errorf("Start(ended ctx) = %v, Pid() = %d; want *StartError with the cause, 0", err, m.Pid())
	}
}

func TestMariaDB_OneHandlePerDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, testutil.MariaDBConfig{Dir: dir})
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	for _, same := range []string{dir, link} {
		_, err := testutil.StartMariaDB(context.Background(), testutil.MariaDBConfig{Dir: same})
		var inUse *testutil.DirInUseError
		if !errors.As(err, &inUse) {
			t.Errorf("second StartMariaDB(%s) = %v, want *DirInUseError", same, err)
		}
	}
	if got := query(t, m, "SELECT 1"); got != "1" {
		t.Errorf("first server after that: %s", got)
	}
	must(t, m.Kill())
	second := start(t, testutil.MariaDBConfig{Dir: dir})
	if second.Socket() != m.Socket() {
		t.Errorf("socket after a crash = %s, want %s again, so that no folder is left behind", second.Socket(), m.Socket())
	}
}

func TestMariaDB_OddPath(t *testing.T) {
	t.Parallel()
	m := start(t, testutil.MariaDBConfig{Dir: filepath.Join(t.TempDir(), `a b'c"d[e]*?é\`, "sub")})
	if got := query(t, m, "SELECT 1"); got != "1" {
		t.Errorf("SELECT 1 = %s", got)
	}
}

func TestMariaDB_Secret(t *testing.T) {
	t.Parallel()
	const secret = `pa'ss"wörd\%`
	dir := t.TempDir()
	m := start(t, testutil.MariaDBConfig{Dir: dir, Secret: secret})
	if m.Password() != secret || m.User() != "root" {
		t.Errorf("User(), Password() = %q, %q", m.User(), m.Password())
	}
	if got := query(t, m, "SELECT CURRENT_USER()"); got != "root@localhost" {
		t.Errorf("login with the secret = %s, want root@localhost", got)
	}
	for _, login := range []struct{ user, password string }{{"root", ""}, {"root", "wrong"}, {"", ""}, {"mysql", ""}, {"mariadb.sys", ""}} {
		cfg := m.MySQLConfig()
		cfg.User, cfg.Passwd = login.user, login.password
		var refused *mysql.MySQLError
		if err := open(t, cfg).Ping(); !errors.As(err, &refused) {
			t.Errorf("login as %q with %q = %v, want a refusal by the server", login.user, login.password, err)
		}
	}
	must(t, m.Stop(context.Background()))

	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secret) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	must(t, err)

	for _, wrong := range []string{"", "other"} {
		_, err := testutil.StartMariaDB(context.Background(), testutil.MariaDBConfig{Dir: dir, Secret: wrong})
		var access *testutil.AccessError
		if !errors.As(err, &access) || strings.Contains(err.Error(), secret) {
			t.Errorf("StartMariaDB with the secret %q = %v, want *AccessError", wrong, err)
		}
		if pids := serversBelow(t, dir); len(pids) > 0 {
			t.Errorf("after *AccessError processes %v run", pids)
		}
	}
	must(t, m.Start(context.Background()))
}

func TestMariaDB_EnvironmentStaysHere(t *testing.T) {
	t.Setenv("TENANTDAL_PASSWORD", "not-for-children")
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir()})
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(m.Pid()), "environ"))
	must(t, err)
	if strings.Contains(string(env), "not-for-children") {
		t.Errorf("the server got TENANTDAL_PASSWORD")
	}
}

func TestMariaDB_LeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir(), Restart: true})
	must(t, m.Stop(context.Background()))
	goleak.VerifyNone(t, before)
}

func TestMariaDB_RestartsByItself(t *testing.T) {
	t.Parallel()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir(), Restart: true})
	execAll(t, m, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
	for i := range 2 {
		execAll(t, m, "INSERT INTO d.t VALUES ("+strconv.Itoa(i)+")")
		crash(t, m)
		must(t, m.Start(context.Background())) // waits for the watcher's restart
		if got, want := query(t, m, "SELECT COUNT(*) FROM d.t"), strconv.Itoa(i+1); got != want {
			t.Errorf("rows after crash %d = %s, want %s", i, got, want)
		}
	}
	select {
	case <-m.Done():
		t.Error("Done() is closed by a restart")
	default:
	}

	// Stopped in the middle of a restart, it does not come back.
	crash(t, m)
	must(t, m.Stop(context.Background()))
	if err := m.Wait(); err != nil || len(serversBelow(t, m.Dir())) > 0 {
		t.Errorf("after Stop: Wait() = %v, processes %v; want nil, none", err, serversBelow(t, m.Dir()))
	}
	must(t, m.Start(context.Background()))
	must(t, m.Kill())
	if pids := serversBelow(t, m.Dir()); len(pids) > 0 {
		t.Errorf("after Kill processes %v run", pids)
	}
}

func TestMariaDB_StaysDownWithoutRestart(t *testing.T) {
	t.Parallel()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir()})
	crash(t, m)
	var exit *testutil.ExitError
	if err := m.Wait(); !errors.As(err, &exit) || exit.State != "signal: killed" {
		t.Errorf("Wait() after a crash = %v, want *ExitError with the state \"signal: killed\"", err)
	}
	must(t, m.Start(context.Background()))
}

// crash kills the server behind its handle's back and waits until the handle knows.
func crash(t *testing.T, m *testutil.MariaDB) {
	t.Helper()
	pid := m.Pid()
	p, err := os.FindProcess(pid)
	must(t, err)
	must(t, p.Kill())
	waitFor(t, "the handle sees the crash", func() bool { return m.Pid() != pid })
}

func TestMariaDB_ConcurrentUse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir(), Restart: true})
	var wg sync.WaitGroup
	for _, call := range []func() error{
		func() error { return m.Start(ctx) },
		func() error { return m.Stop(ctx) },
		m.Kill,
		func() error { return m.Restart(ctx) },
		func() error { _ = m.MySQLConfig(); _ = m.Pid(); <-m.Done(); return m.Wait() },
	} {
		wg.Go(func() {
			for range 3 {
				if err := call(); err != nil {
					t.Errorf("concurrent call: %v", err)
				}
			}
		})
	}
	// Each Wait needs an end, also when all other calls are done.
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		wg.Wait()
	}()
	for again := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-again.C:
			must(t, m.Stop(ctx))
			continue
		case <-waited:
			again.Stop()
		}
		break
	}
	must(t, m.Start(ctx))
	if got := query(t, m, "SELECT 1"); got != "1" {
		t.Errorf("SELECT 1 after all that = %s", got)
	}
}

func TestMariaDB_ForeignPidFile(t *testing.T) {
	t.Parallel()
	sleeper := exec.Command("sleep", "600")
	must(t, sleeper.Start())
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	other := start(t, testutil.MariaDBConfig{Dir: t.TempDir()})
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir()})
	for name, text := range map[string]string{
		"AnotherProgram": strconv.Itoa(sleeper.Process.Pid), "AnotherServer": strconv.Itoa(other.Pid()),
		"Self": strconv.Itoa(os.Getpid()), "Init": "1", "Garbage": "x", "Group": "-1", "Zero": "0", "Empty": "",
	} {
		t.Run(name, func(t *testing.T) {
			must(t, m.Kill())
			must(t, os.WriteFile(filepath.Join(m.Dir(), "mariadbd.pid"), []byte(text+"\n"), 0o600))
			must(t, m.Start(context.Background()))
			if strconv.Itoa(m.Pid()) == text || !alive(m.Pid()) {
				t.Errorf("Pid() = %d, want a process of its own", m.Pid())
			}
			if !alive(sleeper.Process.Pid) || !alive(other.Pid()) {
				t.Errorf("a foreign process was ended")
			}
		})
	}
	if got := query(t, other, "SELECT 1"); got != "1" {
		t.Errorf("the other server: SELECT 1 = %s", got)
	}
}

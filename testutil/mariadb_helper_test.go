//go:build linux

package testutil_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/tenantdal/tenantdal/testutil"
)

// helperEnv makes the test binary a program that starts one server on the directory in the variable, prints "ready" and waits:
// a process that a test can kill without being killed itself.
const helperEnv = "TENANTDAL_TESTUTIL_HELPER_DIR"

func init() {
	if dir := os.Getenv(helperEnv); dir != "" {
		helperMain(dir)
	}
}

// helperMain is the helper program. It ends, with its server, when the test that started it does.
func helperMain(dir string) {
	m, err := testutil.StartMariaDB(context.Background(), testutil.MariaDBConfig{Dir: dir, Secret: os.Getenv("HELPER_SECRET")})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = m.Kill()
	_ = m.Stop(context.Background())
	os.Exit(0)
}

// helper is a running helper program.
type helper struct {
	cmd    *exec.Cmd
	output *bufio.Reader
}

// startHelper runs the helper program on dir. Whatever becomes of it, its server is gone when the test is over.
func startHelper(t *testing.T, dir, secret string) *helper {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+dir, "HELPER_SECRET="+secret)
	_, err := cmd.StdinPipe()
	must(t, err)
	output, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	h := &helper{cmd: cmd, output: bufio.NewReader(output)}
	t.Cleanup(func() {
		h.kill()
		for _, pid := range serversBelow(t, dir) {
			p, err := os.FindProcess(pid)
			must(t, err)
			_ = p.Kill()
		}
		waitFor(t, "no server below "+dir, func() bool { return len(serversBelow(t, dir)) == 0 })
	})
	return h
}

// awaitReady waits until the helper's server answers.
func (h *helper) awaitReady(t *testing.T) {
	t.Helper()
	line, err := h.output.ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("helper said %q, %v; want ready", line, err)
	}
}

// kill kills the helper as the system would, so that it cannot clean up.
func (h *helper) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// serversBelow returns the processes whose command line names a data directory below dir, as /proc has them.
func serversBelow(t *testing.T, dir string) []int {
	t.Helper()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended since
		}
		if slices.ContainsFunc(strings.Split(string(text), "\x00"), func(arg string) bool {
			return strings.HasPrefix(arg, "--datadir="+dir+"/")
		}) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			must(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// start starts a server that is gone, and seen to be gone, when the test is over.
func start(t *testing.T, cfg testutil.MariaDBConfig) *testutil.MariaDB {
	t.Helper()
	testutil.RequireMariaDB(t)
	m, err := testutil.StartMariaDB(context.Background(), cfg)
	if err != nil {
		t.Fatalf("StartMariaDB(%+v): %v", cfg, err)
	}
	t.Cleanup(func() {
		must(t, m.Kill())
		must(t, m.Stop(context.Background()))
		if pids := serversBelow(t, m.Dir()); len(pids) > 0 {
			t.Errorf("processes %v still run below %s", pids, m.Dir())
		}
		if _, err := os.Stat(filepath.Dir(m.Socket())); !os.IsNotExist(err) {
			t.Errorf("socket folder of %s: %v, want it gone", m.Socket(), err)
		}
	})
	return m
}

// open returns a pool for the configuration, closed when the test is over.
func open(t *testing.T, cfg *mysql.Config) *sql.DB {
	t.Helper()
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	must(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// execAll runs statements on the server's login.
func execAll(t *testing.T, m *testutil.MariaDB, statements ...string) {
	t.Helper()
	db := open(t, m.MySQLConfig())
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// query returns the one value that the query yields.
func query(t *testing.T, m *testutil.MariaDB, q string) string {
	t.Helper()
	var value string
	if err := open(t, m.MySQLConfig()).QueryRow(q).Scan(&value); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return value
}

// waitFor waits until a condition on other processes holds, which nothing tells of by itself.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("still not so after 30 s: %s", what)
		}
	}
}

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(text) > 0
}

// must fails the test on an error of the test's own means.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// suspend stops a process from running until it is killed.
func suspend(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
}

package testutil_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/testutil"
)

// askRedis sends a command in Redis's plain form and returns the first line of the answer.
func askRedis(t *testing.T, r *testutil.Redis, command string) string {
	t.Helper()
	conn, err := net.Dial("unix", r.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestStartRedis_KillAndStart(t *testing.T) {
	t.Parallel()
	var socket string
	t.Run("use", func(t *testing.T) {
		r := testutil.StartRedis(t)
		socket = r.Socket()
		if got := askRedis(t, r, "SET k v"); got != "+OK\r\n" {
			t.Errorf("SET = %q", got)
		}
		pid := r.Pid()
		if err := r.Kill(); err != nil || r.Pid() != 0 {
			t.Fatalf("Kill: %v, pid %d", err, r.Pid())
		}
		if _, err := net.Dial("unix", socket); err == nil {
			t.Error("a killed server still answers")
		}
		if err := r.Start(t.Context()); err != nil || r.Pid() == 0 || r.Pid() == pid || r.Socket() != socket {
			t.Fatalf("Start: %v, pid %d after %d", err, r.Pid(), pid)
		}
		if got := askRedis(t, r, "GET k"); got != "$-1\r\n" {
			t.Errorf("after a kill GET = %q, want nothing", got)
		}
		if err := r.Stop(t.Context()); err != nil || r.Pid() != 0 {
			t.Errorf("Stop: %v, pid %d", err, r.Pid())
		}
		if err := r.Start(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("after the test its socket's folder is there: %v", err)
	}
}

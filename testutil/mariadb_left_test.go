//go:build linux

package testutil_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenantdal/tenantdal/testutil"
)

// leave starts a server from another process, kills that process and returns the id of the server that it leaves.
func leave(t *testing.T, dir, secret string) int {
	t.Helper()
	testutil.RequireMariaDB(t)
	h := startHelper(t, dir, secret)
	h.awaitReady(t)
	h.kill()
	pids := serversBelow(t, dir)
	if len(pids) != 1 || !alive(pids[0]) {
		t.Fatalf("servers left on %s: %v, want one", dir, pids)
	}
	return pids[0]
}

func TestMariaDB_AdoptsWhatAKilledRunLeft(t *testing.T) {
	t.Parallel()
	for _, pidFile := range []string{"Kept", "Lost"} {
		t.Run(pidFile+"PidFile", func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			left := leave(t, dir, "")
			if pidFile == "Lost" { // the run was killed before the server had written it
				must(t, os.Remove(filepath.Join(dir, "mariadbd.pid")))
			}
			m := start(t, testutil.MariaDBConfig{Dir: dir})
			if m.Pid() != left {
				t.Fatalf("Pid() = %d, want %d, the one that was left", m.Pid(), left)
			}
			execAll(t, m, "CREATE DATABASE d")
			must(t, m.Restart(context.Background()))
			if m.Pid() == left || alive(left) {
				t.Errorf("Restart left the adopted process %d alone", left)
			}
			if got := query(t, m, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'd'"); got != "1" {
				t.Errorf("databases d after Restart = %s, want 1", got)
			}
		})
	}
}

func TestMariaDB_AdoptedServerThatCrashes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := leave(t, dir, "")
	m := start(t, testutil.MariaDBConfig{Dir: dir, Restart: true})
	if m.Pid() != left {
		t.Fatalf("Pid() = %d, want %d, the one that was left", m.Pid(), left)
	}
	crash(t, m)
	must(t, m.Start(context.Background()))
	if got := query(t, m, "SELECT 1"); got != "1" || m.Pid() == left {
		t.Errorf("after the crash: SELECT 1 = %s, Pid() = %d", got, m.Pid())
	}
}

func TestMariaDB_ReplacesWhatWasStartedOtherwise(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := leave(t, dir, "")
	m := start(t, testutil.MariaDBConfig{Dir: dir, ExtraArgs: []string{"--max-connections=50"}})
	if alive(left) || m.Pid() == left {
		t.Errorf("server %d with other settings was kept", left)
	}
	if got := query(t, m, "SELECT @@max_connections"); got != "50" {
		t.Errorf("@@max_connections = %s, want 50", got)
	}
}

func TestMariaDB_WrongSecretLeavesServerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := leave(t, dir, "right")
	_, err := testutil.StartMariaDB(context.Background(), testutil.MariaDBConfig{Dir: dir, Secret: "wrong"})
	var access *testutil.AccessError
	if !errors.As(err, &access) {
		t.Fatalf("StartMariaDB with a wrong secret = %v, want *AccessError", err)
	}
	if !alive(left) {
		t.Fatalf("server %d was stopped by a caller without its secret", left)
	}
	m := start(t, testutil.MariaDBConfig{Dir: dir, Secret: "right"})
	if m.Pid() != left {
		t.Errorf("Pid() = %d, want %d, the one that was left", m.Pid(), left)
	}
}

// A server that cannot answer, here since it is suspended, is not adopted but ended.
func TestMariaDB_EndsWhatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := leave(t, dir, "")
	suspend(t, left)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := testutil.StartMariaDB(ctx, testutil.MariaDBConfig{Dir: dir}); !errors.Is(err, context.Canceled) || !alive(left) {
		t.Fatalf("StartMariaDB(ended ctx) = %v, server alive: %v; want context.Canceled and the server left alone", err, alive(left))
	}
	m := start(t, testutil.MariaDBConfig{Dir: dir})
	if alive(left) || m.Pid() == left {
		t.Errorf("suspended server %d was kept", left)
	}
}

func TestMariaDB_RemakesHalfMadeData(t *testing.T) {
	t.Parallel()
	testutil.RequireMariaDB(t)
	making := func(dir string) []string {
		found, err := filepath.Glob(filepath.Join(dir, "making-*"))
		must(t, err)
		return found
	}
	check := func(t *testing.T, dir string) {
		t.Helper()
		m := start(t, testutil.MariaDBConfig{Dir: dir})
		if got := query(t, m, "SELECT COUNT(*) FROM mysql.global_priv"); got != "2" {
			t.Errorf("accounts = %s, want 2", got)
		}
		if left := making(dir); len(left) > 0 {
			t.Errorf("half made data is still there: %v", left)
		}
	}
	t.Run("Killed", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		h := startHelper(t, dir, "")
		waitFor(t, "the data is in the making", func() bool { return len(making(dir)) > 0 && len(serversBelow(t, dir)) > 0 })
		h.kill()
		check(t, dir)
	})
	t.Run("Cancelled", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() {
			_, err := testutil.StartMariaDB(ctx, testutil.MariaDBConfig{Dir: dir})
			result <- err
		}()
		waitFor(t, "the data is in the making", func() bool { return len(serversBelow(t, dir)) > 0 })
		cancel()
		var failed *testutil.StartError
		if err := <-result; !errors.As(err, &failed) || !errors.Is(err, context.Canceled) {
			t.Fatalf("StartMariaDB cancelled = %v, want *StartError of context.Canceled", err)
		}
		if pids := serversBelow(t, dir); len(pids) > 0 || len(making(dir)) > 0 {
			t.Errorf("after that: processes %v, directories %v; want none", pids, making(dir))
		}
		check(t, dir)
	})
	t.Run("EmptyDataDirectory", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
		check(t, dir)
	})
	t.Run("ForeignDataDirectory", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		letter := filepath.Join(dir, "data", "letter.txt")
		must(t, os.Mkdir(filepath.Dir(letter), 0o700))
		must(t, os.WriteFile(letter, []byte("dear"), 0o600))
		_, err := testutil.StartMariaDB(context.Background(), testutil.MariaDBConfig{Dir: dir})
		var data *testutil.DataDirError
		if !errors.As(err, &data) {
			t.Errorf("StartMariaDB on foreign data = %v, want *DataDirError", err)
		}
		if text, err := os.ReadFile(letter); err != nil || string(text) != "dear" {
			t.Errorf("foreign file = %q, %v; want it untouched", text, err)
		}
	})
}

package testutil

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindProgram_Missing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Neither a directory nor a file that cannot be run counts.
	if err := os.Mkdir(filepath.Join(dir, "tdal-no-such-program"), 0o700); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	path := filepath.Join(other, "tdal-no-such-program")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := findProgram("tdal-no-such-program", []string{dir, other})
	var missing *NotInstalledError
	if !errors.As(err, &missing) {
		t.Fatalf("findProgram = %v, want *NotInstalledError", err)
	}
	for _, want := range []string{"tdal-no-such-program", "mariadb-server-core", "make test", "PATH", dir} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message %q does not name %q", err, want)
		}
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := findProgram("tdal-no-such-program", []string{dir, other}); err != nil || got != path {
		t.Errorf("findProgram = %q, %v; want %q", got, err, path)
	}
}

// recorder is a testing.TB that records how a test was ended.
type recorder struct {
	testing.TB
	skipped, failed int
}

func (*recorder) Helper()                 {}
func (r *recorder) Skip(...any)           { r.skipped++ }
func (r *recorder) Fatalf(string, ...any) { r.failed++ }

func TestSkipOrFail(t *testing.T) {
	missing := &NotInstalledError{Program: "mariadbd", Searched: []string{"PATH"}}
	for _, c := range []struct {
		env             string
		err             error
		skipped, failed int
	}{
		{"", nil, 0, 0},
		{"1", nil, 0, 0},
		{"", missing, 1, 0},
		{"0", missing, 1, 0},
		{"1", missing, 0, 1},
		{"true", missing, 0, 1},
	} {
		t.Setenv(RequireMariaDBEnv, c.env)
		r := &recorder{}
		skipOrFail(r, RequireMariaDBEnv, c.err)
		if r.skipped != c.skipped || r.failed != c.failed {
			t.Errorf("%s=%q, error %v: skipped %d, failed %d; want %d, %d", RequireMariaDBEnv, c.env, c.err, r.skipped, r.failed, c.skipped, c.failed)
		}
	}
}

// A server that cannot come back is given up, and the error says why.
func TestMariaDB_ComeBackGivesUp(t *testing.T) {
	t.Parallel()
	m := NewMariaDBCluster(t, 1)[0]
	if err := m.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(m.files.data, "mysql"), filepath.Join(m.files.data, "lost")); err != nil {
		t.Fatal(err)
	}
	attempts := newRestarts()
	attempts.made = restartLimit - 2
	p, err := m.comeBack(context.Background(), attempts)
	var failed *StartError
	if p != nil || !errors.As(err, &failed) || attempts.made != restartLimit {
		t.Fatalf("comeBack = %v, %v after %d restarts; want *StartError after %d", p, err, attempts.made, restartLimit)
	}
	if !strings.Contains(failed.Log, "[ERROR]") || !strings.Contains(err.Error(), failed.Log) {
		t.Errorf("error %v does not hold the server's own words", err)
	}
	// One that came up each time and crashed again is given up too.
	again := newRestarts()
	again.made = restartLimit
	if _, err := m.comeBack(context.Background(), again); !errors.Is(err, errCrashLoop) {
		t.Errorf("comeBack after %d crashes = %v, want errCrashLoop", restartLimit, err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.comeBack(ended, newRestarts()); !errors.Is(err, context.Canceled) {
		t.Errorf("comeBack of a run that shall end = %v, want context.Canceled", err)
	}
}

func TestNativeHash(t *testing.T) {
	t.Parallel()
	// SELECT PASSWORD('mariadb') on MariaDB 10.11.
	if got, want := nativeHash("mariadb"), "*54958E764CE10E50764C2EECBB71D01F08549980"; got != want {
		t.Errorf("nativeHash = %s, want %s", got, want)
	}
}

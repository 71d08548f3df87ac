//go:build linux

package testutil_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/testutil"
)

// shortTempDir returns a directory with a path short enough for sockets, removed when the test is over.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "s")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func TestMariaDB_SocketPathLimit(t *testing.T) {
	t.Parallel()
	testutil.RequireMariaDB(t)
	const limit = 107
	base, dir := shortTempDir(t), t.TempDir()
	probe := start(t, testutil.MariaDBConfig{Dir: dir, SocketDir: base})
	tailLen := len(probe.Socket()) - len(base) // what is put behind SocketDir
	must(t, probe.Stop(context.Background()))

	for _, length := range []int{limit, limit + 1} {
		socketDir := filepath.Join(base, strings.Repeat("x", length-tailLen-len(base)-1))
		m, err := testutil.StartMariaDB(context.Background(), testutil.MariaDBConfig{Dir: dir, SocketDir: socketDir})
		if length <= limit {
			if err != nil || len(m.Socket()) != length {
				t.Fatalf("socket of %d bytes: %v, want it to work", length, err)
			}
			if got := query(t, m, "SELECT @@socket"); got != m.Socket() {
				t.Errorf("@@socket = %s, want %s", got, m.Socket())
			}
			must(t, m.Stop(context.Background()))
			continue
		}
		var long *testutil.SocketPathError
		if !errors.As(err, &long) || len(long.Path) != length || long.Limit != limit {
			t.Errorf("socket of %d bytes = %v, want *SocketPathError with that path and the limit %d", length, err, limit)
		}
		if _, err := os.Stat(socketDir); !os.IsNotExist(err) {
			t.Errorf("%s was made all the same", socketDir)
		}
	}
}

func TestMariaDB_SharedSocketDir(t *testing.T) {
	t.Parallel()
	base := shortTempDir(t)
	must(t, os.Chmod(base, 0o755)) // others may look in, not further
	a := start(t, testutil.MariaDBConfig{Dir: t.TempDir(), SocketDir: base})
	b := start(t, testutil.MariaDBConfig{Dir: t.TempDir(), SocketDir: base})
	if a.Socket() == b.Socket() {
		t.Fatalf("two servers at one socket %s", a.Socket())
	}
	for _, m := range []*testutil.MariaDB{a, b} {
		if got, want := query(t, m, "SELECT @@datadir"), filepath.Join(m.Dir(), "data")+"/"; got != want {
			t.Errorf("%s answers for %s, want %s", m.Socket(), got, want)
		}
		info, err := os.Stat(filepath.Dir(m.Socket()))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("socket folder: %v, %v; want mode 0700", info.Mode(), err)
		}
	}
}

func TestMariaDB_SocketDirOpenToOthers(t *testing.T) {
	t.Parallel()
	m := start(t, testutil.MariaDBConfig{Dir: t.TempDir(), SocketDir: shortTempDir(t)})
	must(t, m.Stop(context.Background()))
	folder := filepath.Dir(m.Socket())
	target := shortTempDir(t)
	for name, occupy := range map[string]func() error{
		"WideMode": func() error { return errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, 0o755)) },
		"Link":     func() error { return os.Symlink(target, folder) },
		"File":     func() error { return os.WriteFile(folder, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, occupy())
			err := m.Start(context.Background())
			var open *testutil.SocketDirError
			if !errors.As(err, &open) || open.Dir != folder {
				t.Errorf("Start() = %v, want *SocketDirError for %s", err, folder)
			}
			must(t, os.Remove(folder))
		})
	}
	must(t, m.Start(context.Background()))
}

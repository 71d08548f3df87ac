package testutil

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// postgresPackages bring the server's programs. Debian's scripts make and start a cluster of their own when they are installed, unless
// /etc/postgresql-common/createcluster.conf says otherwise; the Makefile sees to that.
const postgresPackages = "postgresql"

// FindPostgres returns the folder of the installed server's programs: that of the postgres in PATH, or else the newest of Debian's, Fedora's and
// Homebrew's places.
//
// It returns [*NotInstalledError] if there is none, or if initdb is missing beside it, and an error that is [errors.ErrUnsupported] where the operating
// system is no unix. It starts nothing.
func FindPostgres() (string, error) {
	if !canRunServers {
		return "", fmt.Errorf("testutil: PostgreSQL servers on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	dirs := []string{}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
		dirs = append(dirs, found...)
	}
	dirs = append(dirs, "/usr/local/bin", "/opt/homebrew/bin", "/usr/lib/postgresql/*/bin")
	path := ""
	if _, err := exec.LookPath("initdb"); err == nil {
		path, _ = exec.LookPath("postgres")
	}
	if path == "" {
		var err error
		if path, err = findProgram("postgres", dirs); err != nil {
			return "", missingPostgres(err)
		}
	}
	bin := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		bin = filepath.Dir(real)
	}
	if _, err := findProgram("initdb", []string{bin}); err != nil {
		return "", missingPostgres(err)
	}
	return filepath.Abs(bin)
}

// version returns the number in a path, 0 for none.
func version(path string) int {
	digits := ""
	for _, c := range path {
		if c >= '0' && c <= '9' {
			digits += string(c)
		}
	}
	n, _ := strconv.Atoi(digits)
	return n
}

func missingPostgres(err error) error {
	var missing *NotInstalledError
	if errors.As(err, &missing) {
		missing.Packages = postgresPackages
	}
	return err
}

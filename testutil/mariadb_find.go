package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// debianPackages bring all that a server needs and start no service by themselves: mariadb-server-core has mariadbd and
// mariadb-install-db, mariadb-client-core the my_print_defaults which the latter calls.
const debianPackages = "mariadb-server-core and mariadb-client-core"

// serverDirs are searched after PATH: Debian keeps mariadbd in /usr/sbin, which is not on the PATH of ordinary users.
var serverDirs = []string{"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/libexec", "/opt/homebrew/bin"}

// FindMariaDB returns the path of the installed mariadbd: the first one in PATH, else in the usual places of Debian, Fedora
// and Homebrew.
//
// It returns [*NotInstalledError] if there is none, or if the program that makes data directories (mariadb-install-db) is
// missing beside it, and an error that is [errors.ErrUnsupported] where the operating system is no unix. It starts nothing.
func FindMariaDB() (string, error) {
	if !canRunServers {
		return "", fmt.Errorf("testutil: MariaDB servers on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	bin, err := findProgram("mariadbd", serverDirs)
	if err != nil {
		return "", err
	}
	if _, err := findInstaller(bin); err != nil {
		return "", err
	}
	return bin, nil
}

// findInstaller returns the path of the mariadb-install-db that belongs to the server bin.
func findInstaller(bin string) (string, error) {
	prefix := filepath.Dir(filepath.Dir(bin))
	return findProgram("mariadb-install-db", []string{filepath.Join(prefix, "bin"), filepath.Join(prefix, "scripts"), "/usr/bin"})
}

// findProgram looks for an executable file in PATH and then in dirs.
func findProgram(name string, dirs []string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &NotInstalledError{Program: name, Searched: append([]string{"PATH"}, dirs...)}
}

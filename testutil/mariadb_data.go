package testutil

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// makingPrefix begins the names of data directories in the making.
const makingPrefix = "making-"

// makeData makes the data directory if it is missing. It is made under another name and renamed when it is complete, so
// that one which exists is complete; what a killed run left half made is thrown away. The caller holds the directory's lock.
func (m *MariaDB) makeData(ctx context.Context) error {
	made, err := m.dataMade()
	if err != nil || made {
		return err
	}
	m.endInstallers()
	leftovers, err := filepath.Glob(filepath.Join(globQuote(m.files.home), makingPrefix+"*"))
	if err != nil {
		return m.startError("make the data directory of", err)
	}
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return m.startError("remove the half made data directory of", err)
		}
	}
	if err := os.MkdirAll(m.files.tmp, 0o700); err != nil {
		return m.startError("make the data directory of", err)
	}
	dir, err := os.MkdirTemp(m.files.home, makingPrefix)
	if err != nil {
		return m.startError("make the data directory of", err)
	}
	if err := m.install(ctx, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	// An empty directory may be in the way; one with anything in it was refused above, and would be by this too.
	if err := os.Remove(m.files.data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(m.startError("make the data directory of", err), os.RemoveAll(dir))
	}
	if err := os.Rename(dir, m.files.data); err != nil {
		return errors.Join(m.startError("make the data directory of", err), os.RemoveAll(dir))
	}
	return nil
}

// dataMade reports whether the data directory exists, and refuses one that is no data directory.
func (m *MariaDB) dataMade() (bool, error) {
	entries, err := os.ReadDir(m.files.data)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &DataDirError{Dir: m.files.data, Reason: err.Error()}
	}
	for _, e := range entries {
		if e.Name() == "mysql" {
			return true, nil
		}
	}
	if len(entries) > 0 {
		return false, &DataDirError{Dir: m.files.data, Reason: "is not empty and holds no system tables of MariaDB"}
	}
	return false, nil
}

// install makes a data directory in dir, which exists and is empty, and leaves one account in it: the login.
func (m *MariaDB) install(ctx context.Context, dir string) error {
	installer, err := findInstaller(m.bin)
	if err != nil {
		return err
	}
	// No --user, also for root: mariadb-install-db would then give the system's own PAM helper to that user.
	args := append([]string{
		"--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal",
		"--skip-test-db", "--skip-name-resolve", "--force",
	}, storageArgs...)
	if err := m.runTool(ctx, "", installer, args...); err != nil {
		return err
	}
	args = append([]string{"--no-defaults", "--bootstrap", "--datadir=" + dir, "--tmpdir=" + m.files.tmp}, storageArgs...)
	return m.runTool(ctx, m.loginSQL(), m.bin, args...)
}

// loginSQL returns the statements that remove all accounts but the login (and the locked owner of the system views), and give
// the login its password. One statement a line, as mariadbd --bootstrap wants them.
func (m *MariaDB) loginSQL() string {
	sql := "DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys' AND NOT (User = '" + loginUser + "' AND Host = 'localhost');\n"
	if m.cfg.Secret != "" {
		sql += "UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.plugin', 'mysql_native_password', " +
			"'$.authentication_string', '" + nativeHash(m.cfg.Secret) + "') WHERE User = '" + loginUser + "';\n"
	}
	return sql
}

// nativeHash returns what the server stores for a password: "*" and 40 hexadecimal digits.
//
// Source: PASSWORD() in the MariaDB manual, SHA1 applied twice.
func nativeHash(secret string) string {
	once := sha1.Sum([]byte(secret))
	return fmt.Sprintf("*%X", sha1.Sum(once[:]))
}

// runTool runs a program of the installation with the given standard input. When ctx ends, the program and all that it
// started are killed.
func (m *MariaDB) runTool(ctx context.Context, input, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = m.files.home
	cmd.Env = m.environment()
	cmd.Stdin = strings.NewReader(input)
	detach(cmd)
	if log, err := finish(ctx, cmd); err != nil {
		return &StartError{Dir: m.files.home, Op: "make the data directory of", Err: err, Log: log}
	}
	return nil
}

// globQuote makes the characters of a path mean themselves in a pattern of [filepath.Glob].
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

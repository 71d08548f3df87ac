package testutil

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	socketName   = "m.sock" // the socket, in a folder of its own: a server makes it writable for everybody
	socketPrefix = "tdal-"  // begins the name of that folder

	// pingLimit bounds one try to reach a server. A server that is up answers in less than a millisecond.
	pingLimit = 5 * time.Second

	// pingPause lies between two tries. A start takes 0.1 s or more.
	pingPause = 10 * time.Millisecond
)

// errGone says that a server ended before it answered.
var errGone = errors.New("the server is gone")

// prepareSocket chooses the socket's path on the first start, makes sure of a private folder for it and records the path in
// the server's directory. The caller holds the directory's lock.
func (m *MariaDB) prepareSocket() (string, error) {
	socket, err := m.chooseSocket()
	if err != nil {
		return "", err
	}
	m.setSocket(socket)
	if len(socket) > maxSocketPath() {
		return "", &SocketPathError{Path: socket, Limit: maxSocketPath()}
	}
	dir := filepath.Dir(socket)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", m.startError("make the socket directory of", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", m.startError("make the socket directory of", err)
	}
	if err := privateDir(dir); err != nil {
		return "", err
	}
	if err := os.WriteFile(m.files.socket, []byte(socket+"\n"), 0o600); err != nil {
		return "", m.startError("record the socket of", err)
	}
	return socket, nil
}

// chooseSocket returns the socket's path: the one it had, the one recorded by the last run if its folder is still there, or
// a new one. A new temporary folder exists when it returns.
func (m *MariaDB) chooseSocket() (string, error) {
	if socket := m.Socket(); socket != "" {
		return socket, nil
	}
	if m.cfg.SocketDir != "" {
		dir, err := filepath.Abs(m.cfg.SocketDir)
		if err != nil {
			return "", m.startError("make the socket directory of", err)
		}
		// Named after the data, so that servers can share SocketDir and each finds its own again.
		sum := sha256.Sum256([]byte(m.files.data))
		return filepath.Join(dir, fmt.Sprintf("%s%x", socketPrefix, sum[:6]), socketName), nil
	}
	if socket := m.recordedSocket(); socket != "" && privateDir(filepath.Dir(socket)) == nil {
		return socket, nil
	}
	parent := os.TempDir()
	if len(filepath.Join(parent, socketPrefix+"0123456789", socketName)) > maxSocketPath() {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, socketPrefix)
	if err != nil {
		return "", m.startError("make the socket directory of", err)
	}
	return filepath.Join(dir, socketName), nil
}

// recordedSocket returns the path that the last run recorded, or "" if there is none that this package could have made.
func (m *MariaDB) recordedSocket() string {
	text, err := os.ReadFile(m.files.socket)
	socket := strings.TrimSuffix(string(text), "\n")
	if err != nil || !ownSocketName(socket) {
		return ""
	}
	return socket
}

// ownSocketName reports whether a path has the form of those that chooseSocket makes.
func ownSocketName(socket string) bool {
	return filepath.IsAbs(socket) && filepath.Base(socket) == socketName &&
		strings.HasPrefix(filepath.Base(filepath.Dir(socket)), socketPrefix)
}

// removeSocket removes the socket's folder; the next start makes it again. What cannot be removed stays: it is empty, or holds
// a file that is not ours. The caller holds the op token, and the server is down.
func (m *MariaDB) removeSocket() {
	socket := m.Socket()
	if socket == "" || privateDir(filepath.Dir(socket)) != nil {
		return
	}
	_ = os.Remove(socket)
	_ = os.Remove(filepath.Dir(socket))
}

// setSocket sets the path that Socket returns.
func (m *MariaDB) setSocket(socket string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.socket = socket
}

// privateDir returns [*SocketDirError] unless dir is a directory, no symbolic link, that this user alone can enter.
func privateDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return &SocketDirError{Dir: dir, Reason: err.Error()}
	case !info.IsDir():
		return &SocketDirError{Dir: dir, Reason: "is no directory"}
	case !ownedByUs(info):
		return &SocketDirError{Dir: dir, Reason: "belongs to another user"}
	case info.Mode().Perm()&0o077 != 0:
		return &SocketDirError{Dir: dir, Reason: fmt.Sprintf("has mode %04o and is open to others, want 0700", info.Mode().Perm())}
	}
	return nil
}

// maxSocketPath returns the longest path of a unix socket in bytes: sun_path of sockaddr_un less its closing zero.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// awaitReady waits until the server at the socket answers as ours. It returns errGone when gone is closed before, the cause
// when ctx ends, and at once [*AccessError] or [*DataDirError], which waiting would not mend.
func (m *MariaDB) awaitReady(ctx context.Context, socket string, gone <-chan struct{}) error {
	return awaitAnswer(ctx, gone,
		func() error { return m.ping(ctx, socket) },
		func(err error) bool {
			var access *AccessError
			var data *DataDirError
			return errors.As(err, &access) || errors.As(err, &data)
		})
}

// ping logs in once and asks the server for its data directory.
func (m *MariaDB) ping(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	cfg := m.configFor(socket)
	cfg.Logger = &mysql.NopLogger{} // a server that is not up yet is no news
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var dir string
	err = db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&dir)
	var answer *mysql.MySQLError
	if errors.As(err, &answer) && (answer.Number == 1045 || answer.Number == 1698) {
		return &AccessError{Dir: m.files.home, User: loginUser, Err: err}
	}
	if err != nil {
		return err
	}
	theirs, err := os.Stat(dir)
	if err == nil {
		var ours os.FileInfo
		if ours, err = os.Stat(m.files.data); err == nil && os.SameFile(ours, theirs) {
			return nil
		}
	}
	return &DataDirError{Dir: m.files.data, Reason: fmt.Sprintf("the server at %s serves %q instead", cfg.Addr, dir)}
}

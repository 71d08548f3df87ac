//go:build unix

package testutil

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// canRunServers says whether this operating system has what the servers need.
const canRunServers = true

// dirLock is the exclusive lock of a server's directory. The kernel drops it when the process that holds it ends, however
// that happens, so a lock that is held means a handle that lives.
type dirLock struct{ file *os.File }

// lockFile locks the file at path, which is made if it is missing. It never waits: it returns [*DirInUseError] if the lock is
// held, by a handle of this process or of another one.
func lockFile(path string) (*dirLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &dirLock{file}, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &DirInUseError{Dir: filepath.Dir(path)}
	}
	return nil, &fs.PathError{Op: "flock", Path: path, Err: err}
}

// release gives the lock back. Closing the file would do it too, but not while a child that is just being started has a copy of it. The file stays, since
// another process may wait on it.
func (l *dirLock) release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}

// detach gives the command a session of its own: neither an interrupt key nor a closing terminal, which are meant for this
// process, reaches it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killGroup kills a detached process and all that it started.
func killGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// ownedByUs reports whether a file belongs to the user that this process acts as.
func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

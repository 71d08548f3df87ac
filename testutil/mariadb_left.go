package testutil

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	adoptLimit = 5 * time.Second       // how long a server that was left behind may take to answer
	leftLimit  = 30 * time.Second      // how long one that answers, but is not adopted, may take to stop
	leftPause  = 20 * time.Millisecond // between two looks whether a process is gone
)

// takeOver looks for a server that a killed run left on our data directory. It returns nil if there is none, or if there was
// one that had to be stopped, since it was started with other settings or does not answer. A server that refuses the login is
// left alone: it belongs to whoever knows the secret. The caller holds the directory's lock, so no handle that lives owns
// the server.
func (m *MariaDB) takeOver(ctx context.Context) (*serverProcess, error) {
	pid, args := m.findLeft()
	if pid == 0 {
		return nil, nil
	}
	p := adopt(pid, m.isServer)
	if p == nil {
		return nil, nil // it ended meanwhile
	}
	log := m.cfg.Logger.With("dir", m.files.home, "pid", pid)
	if socket := m.adoptSocket(args); slices.Equal(args[1:], m.serverArgs(socket)) {
		wait, cancel := context.WithTimeout(ctx, adoptLimit)
		err := m.awaitReady(wait, socket, p.exited)
		cancel()
		var access *AccessError
		switch {
		case err == nil:
			log.Warn("adopted the MariaDB that an earlier run left")
			m.setSocket(socket)
			return p.serverProcess, nil
		case errors.As(err, &access):
			p.forget()
			return nil, err
		case ctx.Err() != nil:
			p.forget() // the caller gave up, not the server
			return nil, m.startError("adopt the", err)
		}
		// As after a crash, nothing that was committed is lost.
		log.Warn("killing the MariaDB that an earlier run left, since it does not answer", "err", err)
		p.kill()
		<-p.exited
		return nil, nil
	}
	log.Warn("stopping the MariaDB that an earlier run left, since it was started with other settings")
	p.terminate()
	wait, cancel := context.WithTimeout(ctx, leftLimit)
	defer cancel()
	select {
	case <-p.exited:
	case <-wait.Done():
		p.kill()
		<-p.exited
	}
	return nil, nil
}

// adoptSocket returns the socket that a server with these arguments would have if we had started it: the one it has, if we
// could have chosen it, or else "".
func (m *MariaDB) adoptSocket(args []string) string {
	theirs := ""
	for _, arg := range args {
		if path, ok := strings.CutPrefix(arg, "--socket="); ok {
			theirs = path
		}
	}
	// A handle that has run before keeps its path, and SocketDir names the one path that is right.
	if m.Socket() != "" || m.cfg.SocketDir != "" {
		if ours, err := m.chooseSocket(); err != nil || ours != theirs {
			return ""
		}
	}
	if !ownSocketName(theirs) || privateDir(filepath.Dir(theirs)) != nil {
		return ""
	}
	return theirs
}

// endInstallers kills the programs that a killed run left at work on data directories in the making. The caller holds the
// directory's lock, so nobody waits for them. It returns when they are gone.
func (m *MariaDB) endInstallers() {
	for _, pid := range processIDs() {
		if !m.isInstaller(processArgs(pid)) {
			continue
		}
		if p := adopt(pid, m.isInstaller); p != nil {
			m.cfg.Logger.Warn("killing an installer that an earlier run left", "dir", m.files.home, "pid", pid)
			p.kill()
			<-p.exited
		}
	}
}

// findLeft returns the process of a server that runs on our data directory, and its command line; 0 if there is none. The pid
// file tells where to look first. It is only believed if that process is what it should be, since ids are reused; and as a
// server that has just begun has no pid file yet, all processes are looked at next.
func (m *MariaDB) findLeft() (int, []string) {
	var pids []int
	if text, err := os.ReadFile(m.files.pid); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	for _, pid := range append(pids, processIDs()...) {
		if args := processArgs(pid); m.isServer(args) {
			return pid, args
		}
	}
	return 0, nil
}

// isServer reports whether a command line is that of a MariaDB server on our data directory. That of a process which has ended
// is empty, and so is none.
func (m *MariaDB) isServer(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"mariadbd", "mysqld"}, filepath.Base(args[0])) &&
		slices.Contains(args[1:], "--datadir="+m.files.data)
}

// isInstaller reports whether a command line is that of a program which makes a data directory for us. Its name is that of a
// shell, so the path that it works on decides.
func (m *MariaDB) isInstaller(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--datadir="+filepath.Join(m.files.home, makingPrefix))
	})
}

// adoptedProcess is one that is no child of this process, so that its end has to be looked for.
type adoptedProcess struct {
	*serverProcess
	forget func() // ends the looking and leaves the process alone; closes exited
}

// adopt returns a handle of the process, or nil if its command line is not the right one (any more). On Linux the handle is
// bound to one process, and the command line is read after it was taken: no signal can reach another process that gets the
// same id.
func adopt(pid int, right func(args []string) bool) *adoptedProcess {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	if !right(processArgs(pid)) {
		_ = handle.Release()
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &adoptedProcess{serverProcess: &serverProcess{handle: handle, exited: make(chan struct{}), state: "gone"}}
	p.forget = func() {
		cancel()
		<-p.exited
	}
	go func() {
		defer cancel()
		defer close(p.exited)
		look := time.NewTicker(leftPause)
		defer look.Stop()
		for right(processArgs(pid)) {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return p
}

package testutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// loginUser is the one account that can log in. It may do everything, creating databases and further logins included.
	loginUser = "root"

	// startLimit bounds one start, the recovery after a crash included, for callers whose context has no deadline. A start
	// takes about 0.1 s, making a data directory 0.7 s.
	startLimit = 2 * time.Minute
)

// errStartLimit is the cause of a start that gave up after [startLimit].
var errStartLimit = fmt.Errorf("not up after %v", startLimit)

// MariaDB is a mariadbd of our own: a child process with a data directory and a unix socket that nobody else uses, and no
// network. Start it with [StartMariaDB].
//
// The server outlives this process if that is killed. The next [StartMariaDB] on the same directory finds it and adopts it,
// if it was started with the same settings and answers; else it stops it and starts a new one.
//
// All methods are safe for concurrent use.
type MariaDB struct {
	cfg   MariaDBConfig
	files serverFiles
	bin   string // path of mariadbd

	// op has room for one token, taken by whoever starts, stops or kills the server, for as long as that takes. It guards
	// nothing else: reading the fields below never waits for I/O.
	op chan struct{}

	mu     sync.Mutex // guards the two fields below; held for the access only
	socket string     // path of the socket; empty before the first start
	run    *serverRun // the current run, or the last one; nil before the first start

	pid atomic.Int64 // of the running server, 0 while there is none; written by the process's owner: start, then watch
}

// serverFiles are the paths in MariaDBConfig.Dir. All are absolute and free of symbolic links, so that a later run computes
// the same texts and can compare them with the command line of a server that was left behind.
type serverFiles struct {
	home, data, tmp, log, pid, socket, lock string
}

// newServerFiles makes the directory dir if need be and returns the paths in it.
func newServerFiles(dir string) (serverFiles, error) {
	home, err := filepath.Abs(dir)
	if err != nil {
		return serverFiles{}, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return serverFiles{}, err
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return serverFiles{}, err
	}
	in := func(name string) string { return filepath.Join(home, name) }
	return serverFiles{
		home: home, data: in("data"), tmp: in("tmp"), log: in("mariadbd.log"),
		pid: in("mariadbd.pid"), socket: in("socket"), lock: in("lock"),
	}, nil
}

// StartMariaDB runs a server on cfg.Dir and returns when it answers. The data directory is made if it is missing, in one
// step that a killed run cannot leave half done. A server that a killed run left on the same directory is adopted or
// stopped. ctx bounds the start, not the life of the server: end that with [MariaDB.Stop].
//
// The server takes about 70 MB of memory. Each commit is flushed to disk, as in production; binary log and performance schema
// are off, the character set is utf8mb4, the time zone UTC, the limit 200 connections.
//
// Errors: [*NotInstalledError], [*SocketPathError], [*SocketDirError], [*DataDirError], [*DirInUseError], [*AccessError] for
// a wrong secret, [*StartError] with the end of the server's log for the rest; [errors.ErrUnsupported] where the operating
// system is no unix. After an error nothing runs that this call started.
func StartMariaDB(ctx context.Context, cfg MariaDBConfig) (*MariaDB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	bin, err := FindMariaDB()
	if err != nil {
		return nil, err
	}
	files, err := newServerFiles(cfg.Dir)
	if err != nil {
		return nil, &StartError{Dir: cfg.Dir, Op: "prepare the directory of", Err: err}
	}
	m := &MariaDB{cfg: cfg.WithDefaults(), files: files, bin: bin, op: make(chan struct{}, 1)}
	if err := m.Start(ctx); err != nil {
		m.removeSocket()
		return nil, err
	}
	return m, nil
}

// Start starts the server again after [MariaDB.Stop], [MariaDB.Kill] or its own end, and returns when it answers. If it runs
// already, or is being restarted by itself, Start waits until it answers. The socket keeps its path.
//
// The errors are those of [StartMariaDB].
func (m *MariaDB) Start(ctx context.Context) error {
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	return m.start(ctx)
}

// Restart stops the server if it runs, as [MariaDB.Stop] does, and starts it again.
func (m *MariaDB) Restart(ctx context.Context) error {
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	// A server that had to be killed is down all the same, and the start below reports that ctx is over.
	var killed *KilledError
	if err := m.stop(ctx); err != nil && !errors.As(err, &killed) {
		return err
	}
	return m.start(ctx)
}

// Stop ends the server in good order (SIGTERM) and waits for that until ctx ends, when it kills the server and returns
// [*KilledError]. In both cases the server is down when Stop returns. Stopping a server that is down does nothing and returns
// nil. The data is kept; the folder of the socket is removed.
func (m *MariaDB) Stop(ctx context.Context) error {
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	err := m.stop(ctx)
	m.removeSocket()
	return err
}

// Kill ends the server at once (SIGKILL), as a crash would, and returns when the process is gone. It stays down, also with
// MariaDBConfig.Restart, until [MariaDB.Start] or [MariaDB.Restart]. Killing a server that is down does nothing.
func (m *MariaDB) Kill() error {
	if err := m.acquire(context.Background()); err != nil {
		return err
	}
	defer m.release()
	if r := m.current(); r != nil {
		m.cfg.Logger.Debug("killing MariaDB", "dir", m.files.home, "pid", m.Pid())
		r.killNow()
		<-r.done
	}
	return nil
}

// Done returns a channel that is closed when the present run has ended for good: by [MariaDB.Stop], [MariaDB.Kill], or by
// itself with no restart to follow. A restart by MariaDBConfig.Restart belongs to the run; one by [MariaDB.Start] begins a
// new run with a new channel.
func (m *MariaDB) Done() <-chan struct{} { return m.current().done }

// Wait waits for [MariaDB.Done] and returns nil if the server was stopped or killed through m, and [*ExitError] if it ended by
// itself.
func (m *MariaDB) Wait() error {
	r := m.current()
	<-r.done
	return r.err
}

// Dir returns the server's directory, MariaDBConfig.Dir as an absolute path without symbolic links.
func (m *MariaDB) Dir() string { return m.files.home }

// Socket returns the path of the server's unix socket. It stays the same over restarts.
func (m *MariaDB) Socket() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.socket
}

// User returns the name of the login, which may do everything on this server.
func (m *MariaDB) User() string { return loginUser }

// Password returns the password of the login: MariaDBConfig.Secret.
func (m *MariaDB) Password() string { return m.cfg.Secret }

// Pid returns the id of the server's process, or 0 while there is none.
func (m *MariaDB) Pid() int { return int(m.pid.Load()) }

// MySQLConfig returns a new driver configuration that reaches this server with its login. It names no database and has the
// driver's defaults for all else; the caller may change it.
func (m *MariaDB) MySQLConfig() *mysql.Config { return m.configFor(m.Socket()) }

// configFor is MySQLConfig for a server at another socket.
func (m *MariaDB) configFor(socket string) *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.Net = "unix"
	cfg.Addr = socket
	cfg.User = loginUser
	cfg.Passwd = m.cfg.Secret
	return cfg
}

// acquire takes the op token. A context that is over still gets a token that is free, since Stop must stop the server then.
func (m *MariaDB) acquire(ctx context.Context) error {
	select {
	case m.op <- struct{}{}:
		return nil
	default:
	}
	select {
	case m.op <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("testutil: MariaDB in %q is busy starting or stopping: %w", m.files.home, context.Cause(ctx))
	}
}

// release gives the op token back.
func (m *MariaDB) release() { <-m.op }

// current returns the current run, or the last one.
func (m *MariaDB) current() *serverRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.run
}

// start does the work of Start. The caller holds the op token.
func (m *MariaDB) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errStartLimit)
	defer cancel()
	if r := m.current(); r != nil && !r.over() {
		if err := m.awaitReady(ctx, m.Socket(), r.done); err != nil {
			return m.startError("wait for", err)
		}
		return nil
	}
	if ctx.Err() != nil {
		return m.startError("start", context.Cause(ctx))
	}
	lock, err := lockFile(m.files.lock)
	if err != nil {
		return m.startError("lock the directory of", err)
	}
	p, err := m.startLocked(ctx)
	if err != nil {
		lock.release()
		return err
	}
	life, stop := context.WithCancel(context.Background())
	r := &serverRun{stopSoon: stop, kill: make(chan struct{}), done: make(chan struct{}), lock: lock}
	m.mu.Lock()
	m.run = r
	m.mu.Unlock()
	m.pid.Store(int64(p.handle.Pid))
	go m.watch(life, r, p)
	return nil
}

// startLocked adopts the server that was left on the directory, or starts one. The caller holds the directory's lock.
func (m *MariaDB) startLocked(ctx context.Context) (*serverProcess, error) {
	if p, err := m.takeOver(ctx); err != nil || p != nil {
		return p, err
	}
	// Before the data, so that a path which cannot be fails at once.
	if _, err := m.prepareSocket(); err != nil {
		return nil, err
	}
	if err := m.makeData(ctx); err != nil {
		return nil, err
	}
	return m.launch(ctx)
}

// stop ends the current run, if it is not over. The caller holds the op token.
func (m *MariaDB) stop(ctx context.Context) error {
	r := m.current()
	if r == nil || r.over() {
		return nil
	}
	m.cfg.Logger.Debug("stopping MariaDB", "dir", m.files.home, "pid", m.Pid())
	r.stopSoon()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	r.killNow()
	<-r.done
	return &KilledError{Dir: m.files.home, Err: context.Cause(ctx)}
}

// startError wraps err, unless it has a type of its own that says all.
func (m *MariaDB) startError(op string, err error) error {
	var (
		inUse  *DirInUseError
		access *AccessError
		data   *DataDirError
	)
	if errors.As(err, &inUse) || errors.As(err, &access) || errors.As(err, &data) {
		return err
	}
	return &StartError{Dir: m.files.home, Op: op, Err: err}
}

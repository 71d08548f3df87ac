package testutil

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	restartLimit = 10               // failures in a row after which a server is left down
	restartCalm  = 30 * time.Second // a server that was up for so long had not failed
)

// serverRun is the life of a server from one start through the API to its end for good; restarts by the watcher belong to it.
// Its watcher is the only one that signals the process. All others ask it through stopSoon and kill and wait for done.
type serverRun struct {
	stopSoon context.CancelFunc // asks the watcher for an end in good order
	kill     chan struct{}      // closed to ask for the end at once
	killOnce sync.Once
	lock     *dirLock // released when the run is over

	done chan struct{} // closed by the watcher when the run is over
	err  error         // what Wait returns; written before done is closed, read after
}

// over reports whether the run has ended.
func (r *serverRun) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// killNow asks the watcher to kill the server. The order matters: whoever sees the context end can see whether to kill.
func (r *serverRun) killNow() {
	r.killOnce.Do(func() { close(r.kill) })
	r.stopSoon()
}

// killed reports whether killNow was called.
func (r *serverRun) killed() bool {
	select {
	case <-r.kill:
		return true
	default:
		return false
	}
}

// serverProcess is one mariadbd, a child of this process or an adopted one; see [adopt].
type serverProcess struct {
	handle *os.Process
	exited chan struct{} // closed when the process is gone
	state  string        // how it ended; written before exited is closed, read after
}

// terminate asks the server to shut down. A process that is gone already is no error.
func (p *serverProcess) terminate() { _ = p.handle.Signal(syscall.SIGTERM) }

// kill ends the server at once. A process that is gone already is no error.
func (p *serverProcess) kill() { _ = p.handle.Kill() }

// watch owns the server's process until the run is over. life ends when the run shall end.
func (m *MariaDB) watch(life context.Context, r *serverRun, p *serverProcess) {
	defer close(r.done)
	defer r.lock.release()
	attempts := newRestarts()
	for {
		up := time.Now()
		r.oversee(life, p)
		m.pid.Store(0)
		if life.Err() != nil {
			return // as was asked for
		}
		m.cfg.Logger.Warn("MariaDB ended by itself", "dir", m.files.home, "state", p.state, "restart", m.cfg.Restart)
		if !m.cfg.Restart {
			r.err = &ExitError{Dir: m.files.home, State: p.state}
			return
		}
		if time.Since(up) > restartCalm {
			attempts = newRestarts()
		}
		next, err := m.comeBack(life, attempts)
		if life.Err() != nil && next == nil {
			return
		}
		if err != nil {
			r.err = &ExitError{Dir: m.files.home, State: p.state, Restarts: attempts.made, Err: err}
			m.cfg.Logger.Warn("MariaDB stays down", "dir", m.files.home, "restarts", attempts.made)
			return
		}
		p = next
		m.cfg.Logger.Warn("MariaDB was restarted", "dir", m.files.home, "pid", p.handle.Pid, "restarts", attempts.made)
	}
}

// restarts counts the restarts since the server last was up for long, and spaces them.
type restarts struct {
	made  int
	last  error // why the last one failed
	pause *backoff.ExponentialBackOff
}

// newRestarts returns the state of a server that has not failed.
func newRestarts() *restarts {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 5*time.Second
	return &restarts{pause: pause}
}

// comeBack restarts the server, again and again until it answers. It gives up with an error after restartLimit restarts, those
// counted in attempts before included, and when life ends.
func (m *MariaDB) comeBack(life context.Context, attempts *restarts) (*serverProcess, error) {
	for attempts.made < restartLimit {
		select {
		case <-time.After(attempts.pause.NextBackOff()):
		case <-life.Done():
			return nil, life.Err()
		}
		attempts.made++
		p, err := m.relaunch(life)
		if err == nil {
			return p, nil
		}
		attempts.last = err
		if life.Err() == nil {
			m.cfg.Logger.Warn("MariaDB did not come back", "dir", m.files.home, "restarts", attempts.made, "err", err)
		}
	}
	if attempts.last == nil {
		attempts.last = errCrashLoop
	}
	return nil, attempts.last
}

// errCrashLoop says that a server came up each time and did not stay.
var errCrashLoop = errors.New("it came up each time and ended again")

// oversee waits for the process to end and hands the wish for that on to it.
func (r *serverRun) oversee(life context.Context, p *serverProcess) {
	stop, kill := life.Done(), r.kill
	for {
		select {
		case <-p.exited:
			return
		case <-stop:
			stop = nil
			if !r.killed() {
				p.terminate()
			}
		case <-kill:
			kill = nil
			p.kill()
		}
	}
}

// relaunch is launch with its own time limit, for the watcher. When life ends meanwhile, the server is killed.
func (m *MariaDB) relaunch(life context.Context) (*serverProcess, error) {
	ctx, cancel := context.WithTimeoutCause(life, startLimit, errStartLimit)
	defer cancel()
	return m.launch(ctx)
}

// launch starts a server on a data directory that exists, and returns when it answers. When it returns an error, the process
// is gone.
func (m *MariaDB) launch(ctx context.Context) (*serverProcess, error) {
	socket, err := m.prepareSocket()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(m.files.tmp, 0o700); err != nil {
		return nil, m.startError("start", err)
	}
	log, err := os.OpenFile(m.files.log, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, m.startError("start", err)
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, m.startError("start", err)
	}

	cmd := exec.Command(m.bin, m.serverArgs(socket)...)
	cmd.Dir = m.files.home
	cmd.Env = m.environment()
	// The file itself, no pipe: the server must be able to write when this process is gone.
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, m.startError("start", err)
	}
	p := &serverProcess{handle: cmd.Process, exited: make(chan struct{})}
	m.pid.Store(int64(cmd.Process.Pid)) // before it answers: who reaches the server knows its process
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // its error says the same as the state
		p.state = cmd.ProcessState.String()
	}()
	m.cfg.Logger.Debug("started MariaDB", "dir", m.files.home, "pid", p.handle.Pid, "socket", socket)

	if err := m.awaitReady(ctx, socket, p.exited); err != nil {
		p.kill()
		<-p.exited
		m.pid.Store(0)
		if errors.Is(err, errGone) {
			err = errors.New("mariadbd ended: " + p.state)
		}
		err = m.startError("start", err)
		var failed *StartError
		if errors.As(err, &failed) {
			failed.Log = tail(log, begin)
		}
		return nil, err
	}
	return p, nil
}

// serverArgs returns the arguments of mariadbd. They are a pure function of the configuration and the paths: a server found
// running with other arguments than these is not adopted.
func (m *MariaDB) serverArgs(socket string) []string {
	args := []string{
		"--no-defaults", // must be the first; nothing in /etc changes how a test behaves
		"--datadir=" + m.files.data,
		"--socket=" + socket,
		"--pid-file=" + m.files.pid,
		"--tmpdir=" + m.files.tmp,
		"--skip-networking",
		"--skip-name-resolve",
		"--skip-log-bin",
		"--performance-schema=OFF",
		"--character-set-server=utf8mb4",
		"--collation-server=utf8mb4_general_ci",
		"--default-time-zone=+00:00",
		"--max-connections=200",
		"--table-open-cache=400", // with the default of 2000 the server asks for 32,000 open files
		"--innodb-flush-log-at-trx-commit=1",
		"--innodb-buffer-pool-dump-at-shutdown=OFF",
		"--innodb-buffer-pool-load-at-startup=OFF",
		"--aria-pagecache-buffer-size=8M",
		"--key-buffer-size=1M",
	}
	args = append(args, storageArgs...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // without it mariadbd refuses to run as root
	}
	if m.cfg.loopbackPort != 0 {
		args = append(args, "--skip-networking=OFF", "--bind-address=127.0.0.1", "--port="+strconv.Itoa(m.cfg.loopbackPort))
	}
	return append(args, m.cfg.ExtraArgs...)
}

// storageArgs are the settings that must be the same when the data directory is made.
var storageArgs = []string{"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=48M"}

// environment returns what the server and the installer get of this process's environment: the search paths alone. The rest
// may hold passwords, which a process that outlives its parent should not keep.
func (m *MariaDB) environment() []string {
	env := []string{"LC_ALL=C", "HOME=" + m.files.home, "TMPDIR=" + m.files.tmp}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// tail returns the last lines of what was written to the log from offset on. What cannot be read is left out: the error that
// it belongs to is the one that matters.
func tail(log io.ReaderAt, offset int64) string {
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.NewSectionReader(log, offset, 1<<20)); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

package testutil

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// RequireRedisEnv is the environment variable that makes [RequireRedis] fail a test instead of skipping it. Any value but "" and "0" counts. `make test`
// sets it.
const RequireRedisEnv = "TENANTDAL_REQUIRE_REDIS"

const (
	// redisPackages bring the server's program and no service: it is there under the name redis-check-rdb. The link named redis-server comes with the package
	// that starts a service.
	redisPackages = "redis-tools"
	redisSocket   = "redis.sock"
	redisEnd      = 10 * time.Second // how long a server that is asked to end may take
)

// Redis is a Redis server of our own: a child process with a folder and a unix socket that nobody else uses, no network, no password, and nothing on disk:
// what it held is gone when it ends. Start it with [StartRedis]. All methods are safe for concurrent use.
type Redis struct {
	dir    string // absolute, without symbolic links
	socket string
	bin    string

	mu   sync.Mutex // guards cmd; held over starts and stops, so that they come one after the other
	cmd  *exec.Cmd  // nil while there is no server
	gone chan struct{}
}

// FindRedis returns the path of the installed server's program: the first redis-server in PATH or the usual places, or else redis-check-rdb, which is the
// same program and a server when it is called by that name.
//
// It returns [*NotInstalledError] if there is neither, and an error that is [errors.ErrUnsupported] where the operating system is no unix. It starts
// nothing.
func FindRedis() (string, error) {
	if !canRunServers {
		return "", fmt.Errorf("testutil: Redis servers: %w", errors.ErrUnsupported)
	}
	dirs := []string{"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}
	path, err := findProgram("redis-server", dirs)
	if err != nil {
		if path, second := findProgram("redis-check-rdb", dirs); second == nil {
			return path, nil
		}
	}
	var missing *NotInstalledError
	if errors.As(err, &missing) {
		missing.Packages = redisPackages
	}
	return path, err
}

// RequireRedis skips the test, with the reason, where [FindRedis] finds no server. With [RequireRedisEnv] set it fails the test instead.
func RequireRedis(tb TB) {
	tb.Helper()
	_, err := FindRedis()
	skipOrFail(tb, RequireRedisEnv, err)
}

// StartRedis starts a server and returns when it answers. It is killed when the test is over; on Linux also when the test process is killed or panics. The
// test may stop, kill and restart it as it likes.
//
// It calls [RequireRedis], and fails the test when the server does not come up. It must run on the goroutine of the test.
func StartRedis(tb TB) *Redis {
	tb.Helper()
	RequireRedis(tb)
	return ownCluster(tb, "StartRedis", 1, func() (string, error) { return tb.TempDir(), nil }, launchRedis)[0]
}

// launchRedis starts a server of a cluster.
func launchRedis(ctx context.Context, dir string) (*Redis, error) {
	r := &Redis{dir: dir}
	var err error
	if r.bin, err = FindRedis(); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, errors.Join(r.failed("make", err, ""), r.removeSocket())
	}
	if err := r.Start(ctx); err != nil {
		return nil, errors.Join(err, r.removeSocket())
	}
	return r, nil
}

// prepare makes the server's folder and that of its socket, which must be short.
func (r *Redis) prepare() error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	parent := os.TempDir()
	if len(filepath.Join(parent, socketPrefix+"0123456789", redisSocket)) > maxSocketPath() {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, socketPrefix)
	if err != nil {
		return err
	}
	r.socket = filepath.Join(dir, redisSocket)
	// The reaper removes it with the server.
	return os.WriteFile(filepath.Join(r.dir, "socket"), []byte(r.socket+"\n"), 0o600)
}

// Start starts the server again after [Redis.Stop] or [Redis.Kill], and returns when it answers. It does nothing when the server runs. The socket keeps its
// path.
func (r *Redis) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errStartLimit)
	defer cancel()
	log, err := os.OpenFile(filepath.Join(r.dir, "redis.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return r.failed("start", err, "")
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return r.failed("start", err, "")
	}
	cmd := exec.Command(r.bin, r.serverArgs()...)
	cmd.Args[0] = "redis-server" // what the program is called by makes it a server
	cmd.Dir, cmd.Env = r.dir, []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return r.failed("start", err, "")
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait() // what it says is in the log
	}()
	r.cmd, r.gone = cmd, gone
	if err := awaitAnswer(ctx, gone, func() error { return r.ping(ctx) }, func(error) bool { return false }); err != nil {
		r.end()
		return r.failed("start", err, tail(log, begin))
	}
	return nil
}

// serverArgs returns the arguments of the server. The reaper knows it by the folder; an option and its value may share one argument.
func (r *Redis) serverArgs() []string {
	return []string{
		"--dir " + strconv.Quote(r.dir), "--set-proc-title", "no",
		"--port", "0", "--unixsocket " + strconv.Quote(r.socket), "--unixsocketperm", "700",
		"--save", "", "--appendonly", "no", "--loglevel", "warning",
	}
}

// ping asks the server whether it is there, on a connection of its own.
func (r *Redis) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", r.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(at)
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.TrimSpace(answer) != "+PONG" {
		err = fmt.Errorf("PING is answered by %q", answer)
	}
	return err
}

// running reports whether the server's process is there. The caller holds mu.
func (r *Redis) running() bool {
	if r.cmd == nil {
		return false
	}
	select {
	case <-r.gone:
		return false
	default:
		return true
	}
}

// Stop ends the server in good order, until ctx ends, when it kills the server and returns its cause. Stopping a server that is down does nothing.
func (r *Redis) Stop(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running() {
		return nil
	}
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-r.gone:
		return nil
	case <-time.After(redisEnd):
		r.end()
		return r.failed("stop", errors.New("it did not end by itself and was killed"), "")
	case <-ctx.Done():
		r.end()
		return context.Cause(ctx)
	}
}

// Kill ends the server at once, as a crash would. Killing a server that is down does nothing.
func (r *Redis) Kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running() {
		r.end()
	}
	return nil
}

// end kills the server's process and waits for its end. The caller holds mu.
func (r *Redis) end() {
	_ = r.cmd.Process.Kill()
	<-r.gone
}

// discard ends the server at once, and removes the folder of its socket.
func (r *Redis) discard() error { return errors.Join(r.Kill(), r.removeSocket()) }

func (r *Redis) removeSocket() error {
	if r.socket == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(r.socket))
}

// Socket returns the path of the server's unix socket. It stays the same over restarts.
func (r *Redis) Socket() string { return r.socket }

// Pid returns the id of the server's process, or 0 while there is none.
func (r *Redis) Pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running() {
		return 0
	}
	return r.cmd.Process.Pid
}

func (r *Redis) failed(op string, err error, log string) error {
	return &StartError{Server: "Redis", Dir: r.dir, Op: op, Err: err, Log: log}
}

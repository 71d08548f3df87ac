package testutil

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tenantdal/tenantdal/dal"
)

// The names that are the same on every server.
const (
	postgresUser   = "postgres"       // the login that may do everything
	postgresSocket = ".s.PGSQL.5432"  // no port is opened; the number is part of the socket's name
	postgresAdmin  = "template1"      // the database that is always there
	postgresEnd    = 10 * time.Second // how long a server that is killed may take to end
)

// Postgres is a PostgreSQL server of our own: a child process with a data directory and a unix socket that nobody else uses, and no network. Start it
// with [StartPostgres]. The server refuses to run as root, so under root it runs as the user postgres, or nobody.
//
// Passwords are checked (SCRAM), since the logins that the library derives are part of what is tested. All methods are safe for concurrent use.
type Postgres struct {
	dir      string // absolute, without symbolic links
	socket   string
	password string
	bin      string // the folder of the programs
	account  account

	mu   sync.Mutex // guards cmd; held over starts and stops, so that they come one after the other
	cmd  *exec.Cmd  // nil while there is no server
	gone chan struct{}
}

// StartPostgres makes a data directory in dir, which is made if it is missing and belongs to this server from then on, and runs a server on it. It returns
// when the server answers. Under root the folders above dir must let other users pass. ctx bounds the start, not the life of the server: end that with
// [Postgres.Stop].
//
// What was committed survives a kill of the server, not of the machine, since nothing is flushed to disk: dropping a database would flush every other. The
// time zone is UTC, the encoding UTF-8 with byte order, the limit 200 connections.
//
// Errors: [*NotInstalledError], [*SocketPathError], [*StartError] with the end of the server's log; [errors.ErrUnsupported] where the operating system is
// no unix. After an error nothing runs that this call started.
func StartPostgres(ctx context.Context, dir string) (*Postgres, error) {
	bin, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	p := &Postgres{bin: bin}
	if p.account, err = serverAccount(); err == nil {
		p.dir, err = p.folder(dir)
	}
	if err == nil {
		err = p.install(ctx)
	}
	if err == nil {
		err = p.Start(ctx)
	}
	if err != nil {
		var start *StartError
		if !errors.As(err, &start) {
			err = p.failed("make", err, "")
		}
		return nil, errors.Join(err, p.removeSocket())
	}
	return p, nil
}

// folder makes a folder that the server's user owns and everybody can pass, and returns its real path.
func (p *Postgres) folder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := p.account.own(dir); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// Start starts the server again after [Postgres.Stop] or [Postgres.Kill], and returns when it answers. It does nothing when the server runs. The socket
// keeps its path.
func (p *Postgres) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errStartLimit)
	defer cancel()
	log, err := os.OpenFile(filepath.Join(p.dir, "postgres.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return p.failed("start", err, "")
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return p.failed("start", err, "")
	}
	cmd := exec.Command(filepath.Join(p.bin, "postgres"), p.serverArgs()...)
	cmd.Dir, cmd.Env = p.dir, p.environment()
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	p.account.apply(cmd)
	if err := cmd.Start(); err != nil {
		return p.failed("start", err, "")
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait() // what it says is in the log
	}()
	p.cmd, p.gone = cmd, gone
	if err := p.awaitReady(ctx, gone); err != nil {
		_ = cmd.Process.Kill()
		<-gone
		return p.failed("start", err, tail(log, begin))
	}
	return nil
}

// serverArgs returns the arguments of the server. The reaper knows it by the first.
func (p *Postgres) serverArgs() []string {
	args := []string{"-D" + filepath.Join(p.dir, "data")}
	for _, set := range []string{
		"listen_addresses=", "unix_socket_directories=" + filepath.Dir(p.socket), "port=5432", "unix_socket_permissions=0777",
		"max_connections=200", "shared_buffers=32MB", "dynamic_shared_memory_type=mmap", "timezone=UTC", "log_timezone=UTC",
		"log_min_messages=fatal", "log_min_error_statement=panic", "max_wal_size=256MB",
		// What was committed is with the operating system when the server is killed; only the end of the machine could lose it.
		"fsync=off", "full_page_writes=off",
	} {
		args = append(args, "-c", set)
	}
	return args
}

func (p *Postgres) environment() []string {
	env := []string{"LC_ALL=C", "HOME=" + p.dir, "TMPDIR=" + p.dir}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// running reports whether the server's process is there. The caller holds mu.
func (p *Postgres) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// awaitReady waits until the server answers its login.
func (p *Postgres) awaitReady(ctx context.Context, gone <-chan struct{}) error {
	return awaitAnswer(ctx, gone,
		func() error { return p.exec(ctx, postgresAdmin, "SELECT 1") },
		func(err error) bool {
			var answer *pgconn.PgError
			return errors.As(err, &answer) && answer.Code == "28P01"
		})
}

// connect opens a connection with the server's login.
func (p *Postgres) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig("host=" + filepath.Dir(p.socket) + " port=5432 sslmode=disable")
	if err != nil {
		return nil, err
	}
	cfg.User, cfg.Password, cfg.Database, cfg.ConnectTimeout = postgresUser, p.password, database, pingLimit
	return pgx.ConnectConfig(ctx, cfg)
}

// exec runs statements, one after the other, on a connection of their own.
func (p *Postgres) exec(ctx context.Context, database string, statements ...string) error {
	conn, err := p.connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, text := range statements {
		if _, err := conn.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// list returns the first column of a query.
func (p *Postgres) list(ctx context.Context, query string, args ...any) ([]string, error) {
	conn, err := p.connect(ctx, postgresAdmin)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Stop ends the server in good order, and its open sessions with it, until ctx ends, when it kills the server and returns its cause. The data is kept.
// Stopping a server that is down does nothing.
func (p *Postgres) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		p.end()
		return context.Cause(ctx)
	}
}

// Kill ends the server at once, as a crash would: nothing is written any more, and the next start recovers. Killing a server that is down does nothing.
func (p *Postgres) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		p.end()
	}
	return nil
}

// end makes the server leave its sessions and end at once, and then its process. The caller holds mu.
func (p *Postgres) end() {
	quit(p.cmd.Process)
	select {
	case <-p.gone:
	case <-time.After(postgresEnd):
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
}

// Dir returns the server's folder.
func (p *Postgres) Dir() string { return p.dir }

// Socket returns the path of the server's unix socket. It stays the same over restarts.
func (p *Postgres) Socket() string { return p.socket }

// User returns the name of the login, a superuser.
func (p *Postgres) User() string { return postgresUser }

// Password returns the password of the login.
func (p *Postgres) Password() string { return p.password }

// Pid returns the id of the server's process, or 0 while there is none.
func (p *Postgres) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Endpoint returns how to reach a database of the server with its login.
func (p *Postgres) Endpoint(database string) dal.Endpoint {
	return dal.Endpoint{Dialect: dal.Postgres, Network: "unix", Address: p.socket, User: postgresUser, Password: p.password, Database: database}
}

func (p *Postgres) failed(op string, err error, log string) error {
	return &StartError{Server: "PostgreSQL", Dir: p.dir, Op: op, Err: err, Log: log}
}

// account is the user that a server runs as.
type account struct {
	change   bool // another one than this process's
	uid, gid uint32
}

// own gives a file to the account.
func (a account) own(path string) error {
	if !a.change {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// id reads a number of the user database.
func id(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

package testutil

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
)

// serverAccount returns the user to run a server as: this process's own, or postgres or nobody for root, whom the server refuses.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	var last error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			last = err
			continue
		}
		uid, err := id(u.Uid)
		if err != nil {
			return account{}, err
		}
		gid, err := id(u.Gid)
		return account{change: true, uid: uid, gid: gid}, err
	}
	return account{}, fmt.Errorf("PostgreSQL does not run as root, and there is no user to run it as: %w", last)
}

// install makes the data directory, and the socket's folder.
func (p *Postgres) install(ctx context.Context) error {
	p.password = rand.Text()
	parent := os.TempDir()
	if len(filepath.Join(parent, socketPrefix+"0123456789", postgresSocket+".lock")) > maxSocketPath() {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, socketPrefix)
	if err != nil {
		return p.failed("make the socket directory of", err, "")
	}
	p.socket = filepath.Join(dir, postgresSocket)
	if len(p.socket) > maxSocketPath() {
		return &SocketPathError{Path: p.socket, Limit: maxSocketPath()}
	}
	if err := p.account.own(dir); err != nil {
		return p.failed("make the socket directory of", err, "")
	}
	// The reaper removes it with the server.
	if err := os.WriteFile(filepath.Join(p.dir, "socket"), []byte(p.socket+"\n"), 0o600); err != nil {
		return p.failed("record the socket of", err, "")
	}
	secret := filepath.Join(p.dir, "password")
	if err := os.WriteFile(secret, []byte(p.password+"\n"), 0o600); err != nil {
		return p.failed("make the data directory of", err, "")
	}
	if err := p.account.own(secret); err != nil {
		return p.failed("make the data directory of", err, "")
	}
	err = p.runTool(ctx, "initdb", "-D"+filepath.Join(p.dir, "data"), "--username="+postgresUser, "--pwfile="+secret,
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions")
	return errors.Join(err, os.Remove(secret))
}

// runTool runs a program of the installation as the server's user.
func (p *Postgres) runTool(ctx context.Context, program string, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errStartLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, program), args...)
	cmd.Dir, cmd.Env = p.dir, p.environment()
	detach(cmd)
	p.account.apply(cmd)
	if log, err := finish(ctx, cmd); err != nil {
		return p.failed("make the data directory of", err, log)
	}
	return nil
}

// removeSocket removes the socket's folder, which the server has left.
func (p *Postgres) removeSocket() error {
	if p.socket == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(p.socket))
}

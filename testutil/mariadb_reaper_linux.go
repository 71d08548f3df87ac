package testutil

import (
	"fmt"
	"io"
	"os/exec"
)

// canReap says whether this operating system has a reaper.
const canReap = true

// reapScript waits at its standard input. A line there dismisses it. The end of the input means that the process at the other
// end is gone, be it by SIGKILL, by a panic or by the time limit of `go test`: then it kills every process that works on a data
// directory below $1 (MariaDB names it in --datadir=, PostgreSQL in -D, Redis in --dir), and removes those directories and their sockets. The
// patterns go through a pipe, since grep would find itself if they were arguments.
const reapScript = `
if read -r _; then exit 0; fi
for file in $(printf '%s\n' "--datadir=$1/" "-D$1/" "--dir \"$1/" | grep -lzF -f - /proc/[0-9]*/cmdline 2>/dev/null); do
	pid=${file#/proc/}
	kill -KILL "${pid%/cmdline}" 2>/dev/null
done
for file in "$1"/*/socket; do
	if read -r socket <"$file"; then
		rm -f -- "$socket" "$socket.lock"
		rmdir -- "${socket%/*}"
	fi
done 2>/dev/null
rm -rf -- "$1"
`

// reaper is a process that outlives this one by a moment, to end the servers of a test that could not clean up.
type reaper struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// startReaper starts a reaper for the servers below root, a path as their command lines have it.
func startReaper(root string) (*reaper, error) {
	cmd := exec.Command("/bin/sh", "-c", reapScript, "tdal-reaper", root)
	cmd.Dir = "/"
	detach(cmd)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &reaper{cmd: cmd, input: input}, nil
}

// dismiss ends the reaper when there is nothing to reap.
func (r *reaper) dismiss() error {
	if _, err := io.WriteString(r.input, "\n"); err != nil {
		return fmt.Errorf("dismiss the reaper: %w", err)
	}
	return r.cmd.Wait()
}

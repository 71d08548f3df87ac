//go:build unix

package testutil

import (
	"os"
	"os/exec"
	"syscall"
)

// apply makes a detached command run as the account.
func (a account) apply(cmd *exec.Cmd) {
	if a.change {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}

// quit asks a server to end at once and without order; its sessions end with it.
func quit(p *os.Process) { _ = p.Signal(syscall.SIGQUIT) }

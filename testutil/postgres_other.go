//go:build !unix

package testutil

import (
	"os"
	"os/exec"
)

// apply does nothing.
func (account) apply(*exec.Cmd) {}

// quit kills the process.
func quit(p *os.Process) { _ = p.Kill() }

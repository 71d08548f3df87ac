//go:build !unix

package testutil

import (
	"errors"
	"os"
	"os/exec"
)

// canRunServers says whether this operating system has what the servers need. The functions below are never called then.
const canRunServers = false

// dirLock has no counterpart here; see lockFile.
type dirLock struct{}

// lockFile refuses to work.
func lockFile(string) (*dirLock, error) { return nil, errors.ErrUnsupported }

// release does nothing.
func (*dirLock) release() {}

// detach does nothing.
func detach(*exec.Cmd) {}

// killGroup kills the process alone.
func killGroup(p *os.Process) error { return p.Kill() }

// ownedByUs reports false: nothing is known about owners.
func ownedByUs(os.FileInfo) bool { return false }

// processArgs returns nil: processes cannot be looked at.
func processArgs(int) []string { return nil }

// processIDs returns nil: processes cannot be looked at.
func processIDs() []int { return nil }

//go:build !linux

package testutil

// canReap says whether this operating system has a reaper.
const canReap = false

// reaper does nothing here: it needs /proc.
type reaper struct{}

// startReaper returns a reaper that does nothing.
func startReaper(string) (*reaper, error) { return &reaper{}, nil }

// dismiss does nothing.
func (*reaper) dismiss() error { return nil }

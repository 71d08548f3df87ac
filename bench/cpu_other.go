//go:build !unix

package bench

import "time"

var started = time.Now()

// cpuTime returns the time since the start, where the process's own is not to be had.
func cpuTime() time.Duration { return time.Since(started) }

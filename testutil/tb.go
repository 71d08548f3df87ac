package testutil

import "context"

// TB is the part of a test that this package needs; [testing.TB] satisfies it. The helpers take it instead of the real one, so that importing testutil
// brings no test framework and no flags along, and so that a helper's own verdict can be tested.
//
// [testing.TB]: https://pkg.go.dev/testing#TB
type TB interface {
	Helper()
	Context() context.Context
	TempDir() string
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	// Fatalf fails the test and ends its goroutine.
	Fatalf(format string, args ...any)
	// Skip ends the test's goroutine without failing it.
	Skip(args ...any)
}

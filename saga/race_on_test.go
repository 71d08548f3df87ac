//go:build race

package saga_test

// slow reports a run under the race detector, where SQLite is some ten times slower.
const slow = true

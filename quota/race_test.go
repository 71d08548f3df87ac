//go:build race

package quota_test

// raceEnabled tells the long tests that they run ten times slower.
const raceEnabled = true

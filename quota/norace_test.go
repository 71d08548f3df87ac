//go:build !race

package quota_test

// raceEnabled tells the long tests that they run at full speed.
const raceEnabled = false

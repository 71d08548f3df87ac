//go:build !race

package schema_test

// raceEnabled tells the long tests that they run at full speed.
const raceEnabled = false

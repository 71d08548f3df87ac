//go:build race

package schema_test

// raceEnabled tells the long tests that they run several times slower.
const raceEnabled = true

//go:build race

package shardrouter_test

// manyKeys is how many keys the distribution tests place: fewer, since the race detector makes each some ten times slower.
const manyKeys = 200_000

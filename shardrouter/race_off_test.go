//go:build !race

package shardrouter_test

// manyKeys is how many keys the distribution tests place.
const manyKeys = 1_000_000

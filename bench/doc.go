// Package bench measures what a tenant layer costs above gorm: the same four statements through plain gorm with a predicate written by hand, through
// tenantdal, gorm.io/sharding and go-saas, over one driver that answers at once.
//
//	go run ./cmd/layer            # one table; see docs/benchmarks.md
//	go run ./cmd/routing          # finding a key's shard; see docs/routing-benchmarks.md
//	go test -run '^$' -bench .    # each piece by itself
//
// It is a module of its own, so that what the peers need stays out of the library's go.mod.
package bench

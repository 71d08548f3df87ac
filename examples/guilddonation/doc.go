// Command guilddonation is the main job of the project, end to end: players of several tenants donate items out of their bags to the warehouses of
// guilds that live on other shards.
//
//	go run ./examples/guilddonation                                        # SQLite, a workload of its own, checked by itself
//	go run ./examples/guilddonation -shards mariadb:3                      # three local MariaDB servers, started and stopped by the program
//	go run ./examples/guilddonation -trace t.ndjson -report r.json -dir D  # a trace, a report, data that is kept; run it again to continue
//
// The way of one run, from top to bottom of run.go: read the whole trace, prepare the folder, start the servers, migrate, open the store, apply the setup
// lines once, let the donors donate, wait for every saga to end, read everything back from the databases, compare with the ledger, report.
//
// It may be killed at any moment, and one of its shards may die while it runs: nothing is lost, the donations that were under way are pending and end
// when it runs again or the shard is back.
//
// Exit status: 0 all ended and conserved; 1 otherwise; 2 unusable flags or trace, found before anything is written.
package main

// Command tdal is the operator's command of tenantdal.
//
//	tdal sql check --schema tables.yaml queries.sql
//
// says of each SQL statement what the gate will say of it at run time: scoped, rewritten, or refused and why. See docs/sql-check.md.
//
//	seq 1 10 | tdal ring owner --shards s1,s2,s3 --tenant acme
//	tdal ring plan --shards s1,s2,s3 --add s4
//	tdal ring stats --shards s1,s2,s3
//
// say which shard owns each key, what share of the keys moves when shards come or go, and how evenly they are shared.
//
//	tdal route explain --dir /var/lib/game --tenant acme --keyspace player --key 7
//
// asks the control database where a key lives and what decided it: a pin, a room, a range or the hash, at which epoch.
//
// Exit codes: 0 all is well, 1 the command did its work and found something wrong, 2 it was called wrongly or could not do its work.
package main

// Command tdal is the operator's command of tenantdal.
//
//	tdal sql check --schema tables.yaml queries.sql
//
// says of each SQL statement what the gate will say of it at run time: scoped, rewritten, or refused and why. See docs/sql-check.md.
//
// Exit codes: 0 all is well, 1 the command did its work and found something wrong, 2 it was called wrongly or could not do its work.
package main

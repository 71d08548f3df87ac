// Package control keeps the control database: which shards there are and at which epoch, which tenants there are and where they live, which
// version of the schema each place has, and which process holds which node number.
//
//	store := control.New(pool, "mysql")                // the caller owns the pool
//	topology, err := store.Topology(ctx)               // one consistent snapshot; ErrNotMigrated before schema.Up
//	epoch, err := store.Epoch(ctx)                     // cheap: has anything changed?
//	t, err := store.Tenant(ctx, id)                    // a tenant.Registry and tenant.Lister
//	lease, err := store.LeaseNode(ctx, "game-7", ttl)  // a node number of this process's own
//
// # Who writes
//
// Processes that serve tenants read, and lease node numbers. Topology, tenants, targets and versions are written by package migrations/schema
// alone, which is the reason why [Store.InitTopology], [Store.PutTenant], [Store.SetTarget] and [Store.SetVersion] are exported. The tables are
// made by migrations/schema as well: nothing here runs DDL.
//
// # Rules
//
// A state changes in a transaction that first locks the topology's row (on SQLite: the file), so that two processes which write at the same time
// come one after the other; affected rows are checked. A transaction that lost to another (deadlock, busy file) is run again, a few times. What is
// asked for and already so is not written again, so every write may be repeated after an error, a lost connection at COMMIT included.
//
// Times come from the database's clock alone: a process whose clock is wrong neither takes a lease early nor keeps it late.
//
// What is read back is parsed and validated like any input: a row that was changed by hand is a [*CorruptError], never a wrong route.
//
// Every statement is a registered constant, counted as a poll; none needs a tenant in the context.
package control

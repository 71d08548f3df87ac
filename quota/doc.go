// Package quota decides whether a tenant's work may start now: a rate of statements per tenant, and a number of connections per tenant
// and shard. It keeps one tenant's load from taking the pool away from the others.
//
//	q, err := quota.New(quota.Config{Rate: 500, MaxConns: 8})
//	...
//	p, err := q.Admit(ctx, id, "s1", limits, poolMax)
//	if err != nil {
//		var refused *quota.ExceededError // which limit, and when to come back
//		...
//	}
//	defer p.Release()
//	ctx = quota.WithPermit(ctx, p) // a nested Admit never waits for itself
//
// The data access layer admits and charges; a program sets the limits, and may use WithPermit for what it admits by itself. dal joins nested calls to the
// open transaction instead.
//
// # Rate
//
// Each tenant has a token bucket (golang.org/x/time/rate): [Config.Rate] tokens per second, at most [Config.Burst] of them. An admission takes one
// or is refused at once with the exact time to come back. Statements inside a transaction are charged afterwards with [Quota.Charge]: they
// never wait, since a transaction that waits holds its locks, but go into bounded debt, which has to be repaid before the next admission.
// Over any time t a tenant gets at most burst + rate*t tokens, and the debt on top of it.
//
// # Permits
//
// A [Permit] stands for one connection. A tenant has [Config.MaxConns] of them on each shard, never more than the pool has
// connections. Without a free one the call waits in a line of its tenant and shard, first come first served, bounded in length
// ([Config.MaxQueue]) and in time (ctx and [Config.MaxWait]). Permits count references, so that one may outlive the call that took it: until
// the rows are closed, the transaction has ended, the connection is back in its pool.
//
// Permits bound each tenant alone. Several tenants together may hold more permits than the pool has connections, and then wait
// for connections in database/sql.
//
// # System lane
//
// The library's own traffic (relay, leases, refunds) enters through [Quota.SystemAdmit]: no rate, and permits of its own on each shard.
//
// # Memory
//
// No goroutine runs. The state of tenants that are idle for a second or more is dropped by the admissions of others, and by [Quota.Sweep];
// it is dropped only when a new one would be equal to it, so no debt is forgotten. A tenant on one shard costs
// about 500 bytes (BenchmarkBytesPerTenant).
package quota

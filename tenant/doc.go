// Package tenant says for whom work is done: it names tenants, binds one to a context, carries it across process
// borders, and describes each in a registry.
//
//	id, err := tenant.ParseID(claims.Tenant)         // at the edge, once; never coerced
//	ctx = tenant.NewContext(ctx, id)                 // from here on every query is this tenant's
//
//	id, err = tenant.FromContext(ctx)                // ErrNoTenant when nothing is bound: never "all tenants"
//
//	ctx := tenant.System(ctx, "nightly reconcile", "bag", "warehouse") // across tenants: named, with a reason
//	go audit(tenant.Detach(ctx, traceKey))                             // outlives the request, keeps the tenant
//
// Work in the background names its tenant. A job travels in an [Envelope], or as headers through [Inject] and
// [Extract], and the worker takes its context from there:
//
//	env, err := tenant.NewEnvelope(ctx, "mail.welcome", payload, nil) // cannot be built without a tenant
//	b, err := json.Marshal(env)
//
//	env, err := tenant.DecodeEnvelope(b)                              // refuses a job without a tenant
//	ctx, err := env.Context(workerCtx)                                // exactly this tenant, nothing of the last job
//
// A context carries exactly one scope: one tenant, or the system scope. Deriving another replaces it. Absence is an
// error everywhere.
//
// [Registry] says who a tenant is: its isolation [Model], [Status], [Placement] and [Limits]. [Static] is a registry
// with a fixed list. [NewLogHandler] writes tenant and shard into each log record.
//
// The package performs no I/O, holds no state of its own and starts no goroutine. It imports the standard library alone.
package tenant

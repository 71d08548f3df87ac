// Command backgroundjob shows work in the background that names its tenant.
//
//	go run ./examples/backgroundjob
//
// Players of two tenants finish matches. Each request puts a job into a queue and leaves a note behind, both for its own tenant:
//
//	env, err := tenant.NewEnvelope(ctx, kindReward, payload, nil)   // the job carries the tenant; without one it cannot be made
//	go note(tenant.Detach(ctx), ...)                                // the goroutine keeps the tenant and outlives the request
//
// A worker handles the jobs of all tenants, one after the other:
//
//	env, err := tenant.DecodeEnvelope(body)                         // a job without a tenant ends here, and goes to the dead letters
//	ctx, err := env.Context(workerCtx)                              // exactly this job's tenant, nothing of the job before
//
// The tenant is named nowhere else: what the job reads and writes through the store is the tenant's of its context. The logs name tenant and shard by
// themselves (tenant.NewLogHandler). The databases are SQLite files in a temporary directory, so the program needs nothing but Go.
//
// The way of the program, from top to bottom: main.go opens the store and plays; game.go is the side of the requests; queue.go stands for a message
// broker; worker.go runs the jobs.
package main

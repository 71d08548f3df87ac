package tenant_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tenantdal/tenantdal/tenant"
)

func Example() {
	id, err := tenant.ParseID("acme") // at the edge, once
	if err != nil {
		panic(err)
	}
	ctx := tenant.NewContext(context.Background(), id)
	fmt.Println(tenant.FromContext(ctx))

	_, err = tenant.FromContext(context.Background())
	fmt.Println(errors.Is(err, tenant.ErrNoTenant))

	_, err = tenant.ParseID("Acme") // never coerced
	fmt.Println(errors.Is(err, tenant.ErrInvalidID))
	// Output:
	// acme <nil>
	// true
	// true
}

func ExampleEnvelope() {
	ctx := tenant.NewContext(context.Background(), "acme")
	env, err := tenant.NewEnvelope(ctx, "mail.welcome", []byte("hello"), nil)
	if err != nil {
		panic(err)
	}
	job, err := json.Marshal(env)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(job))

	// In the worker:
	env, err = tenant.DecodeEnvelope(job)
	if err != nil {
		panic(err) // dead-letter it
	}
	ctx, err = env.Context(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(tenant.FromContext(ctx))
	// Output:
	// {"tenant":"acme","v":1,"kind":"mail.welcome","payload":"aGVsbG8="}
	// acme <nil>
}

func ExampleSystem() {
	ctx := tenant.NewContext(context.Background(), "acme")
	sys := tenant.System(ctx, "nightly reconcile", "bag", "warehouse")
	_, err := tenant.FromContext(sys)
	fmt.Println(errors.Is(err, tenant.ErrSystemScope))
	bypass, err := tenant.BypassFromContext(sys)
	if err != nil {
		panic(err)
	}
	fmt.Println(bypass.Reason, bypass.Opens("bag"), bypass.Opens("ledger"))
	// Output:
	// true
	// nightly reconcile true false
}

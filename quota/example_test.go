package quota_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

func Example() {
	q, err := quota.New(quota.Config{Rate: 100, MaxConns: 1, MaxQueue: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	p, err := q.Admit(ctx, "acme", "s1", tenant.Limits{}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Release()
	fmt.Println("in use:", q.InUse("acme", "s1"))

	// A nested call never waits for itself.
	_, err = q.Admit(quota.WithPermit(ctx, p), "acme", "s1", tenant.Limits{}, 0)
	fmt.Println("nested:", errors.Is(err, quota.ErrNestedAcquire))

	// Nobody else gets a second connection of this tenant.
	_, err = q.TryAdmit("acme", "s1", tenant.Limits{}, 0)
	fmt.Println(err)

	// Output:
	// in use: 1
	// nested: true
	// quota: tenant "acme" on shard "s1": no free connection permit
}

func ExampleExceededError() {
	q, err := quota.New(quota.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits := tenant.Limits{Rate: 0.001, Burst: 1}
	p, err := q.TryAdmit("acme", "s1", limits, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Release()

	_, err = q.TryAdmit("acme", "s1", limits, 0)
	var refused *quota.ExceededError
	if errors.As(err, &refused) {
		fmt.Println(refused.Tenant, refused.Limit, refused.RetryAfter.Round(time.Minute))
	}
	// Output: acme rate 17m0s
}

package tenant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

type (
	traceKey struct{}
	userKey  struct{}
	roomKey  struct{}
)

func TestDetach_T33_KeepsTenantAndTrace(t *testing.T) {
	t.Parallel()
	ctx := context.WithValue(t.Context(), traceKey{}, "trace-1")
	ctx = context.WithValue(ctx, userKey{}, "secret")
	ctx = tenant.WithShard(tenant.NewContext(ctx, "a"), "s1")
	ctx, cancel := context.WithDeadline(ctx, time.Now().Add(time.Hour))

	got := tenant.Detach(ctx, traceKey{}, roomKey{}, nil)
	cancel()

	wantTenant(t, "detached", got, "a")
	if v := got.Value(traceKey{}); v != "trace-1" {
		t.Errorf("the listed value = %v, want trace-1", v)
	}
	for _, key := range []any{userKey{}, roomKey{}} {
		if v := got.Value(key); v != nil {
			t.Errorf("Value(%T) = %v, want nil", key, v)
		}
	}
	if shard, ok := tenant.ShardFromContext(got); !ok || shard != "s1" {
		t.Errorf("ShardFromContext = %q, %v, want s1", shard, ok)
	}
	if d, ok := got.Deadline(); ok {
		t.Errorf("Deadline = %v, want none", d)
	}
	if got.Done() != nil || got.Err() != nil || context.Cause(got) != nil {
		t.Errorf("the cancellation of the call reaches the detached work: %v", got.Err())
	}
}

// recycled is a request context that a framework hands to the next request.
type recycled struct {
	context.Context
	values map[any]any
}

func (r *recycled) Value(key any) any { return r.values[key] }

func TestDetach_T33_SurvivesRecycledContext(t *testing.T) {
	t.Parallel()
	req := &recycled{Context: t.Context(), values: map[any]any{traceKey{}: "trace-1"}}
	got := tenant.Detach(tenant.NewContext(req, "a"), traceKey{})
	req.values = map[any]any{traceKey{}: "trace-of-b"}
	wantTenant(t, "after recycling", got, "a")
	if v := got.Value(traceKey{}); v != "trace-1" {
		t.Errorf("the trace after recycling = %v, want trace-1", v)
	}
}

func TestDetach_T33_BackgroundHasNoTenant(t *testing.T) {
	t.Parallel()
	wantNone(t, "background", context.Background(), tenant.ErrNoTenant)
	wantNone(t, "detached background", tenant.Detach(context.Background()), tenant.ErrNoTenant)
	wantNone(t, "detached ill-formed", tenant.Detach(tenant.NewContext(t.Context(), "A")), tenant.ErrInvalidID)

	sys := tenant.Detach(tenant.System(t.Context(), "why", "bag"))
	wantNone(t, "detached system", sys, tenant.ErrSystemScope)
	if b, err := tenant.BypassFromContext(sys); err != nil || !b.Opens("bag") {
		t.Errorf("BypassFromContext = %+v, %v, want bag", b, err)
	}
	bad := tenant.Detach(tenant.System(t.Context(), "why"))
	if _, err := tenant.BypassFromContext(bad); !errors.Is(err, tenant.ErrNoTables) {
		t.Errorf("BypassFromContext = %v, want ErrNoTables", err)
	}
}

package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

// wantTenant fails unless ctx is bound to exactly id.
func wantTenant(t *testing.T, what string, ctx context.Context, id tenant.ID) {
	t.Helper()
	got, err := tenant.FromContext(ctx)
	if err != nil || got != id {
		t.Errorf("%s: FromContext = %q, %v, want %q", what, got, err, id)
	}
	if b, err := tenant.BypassFromContext(ctx); b != nil || !errors.Is(err, tenant.ErrNotSystem) {
		t.Errorf("%s: BypassFromContext = %v, %v, want ErrNotSystem", what, b, err)
	}
}

// wantNone fails unless ctx is bound to nothing, because of target.
func wantNone(t *testing.T, what string, ctx context.Context, target error) {
	t.Helper()
	got, err := tenant.FromContext(ctx)
	if got != "" || !errors.Is(err, target) {
		t.Errorf("%s: FromContext = %q, %v, want %v", what, got, err, target)
	}
}

func TestFromContext(t *testing.T) {
	t.Parallel()
	ctx := tenant.NewContext(t.Context(), "a")
	wantTenant(t, "bound", ctx, "a")
	type key struct{}
	child, cancel := context.WithCancel(context.WithValue(ctx, key{}, 1))
	cancel()
	wantTenant(t, "derived and cancelled", child, "a")
	wantTenant(t, "rebound", tenant.NewContext(child, "b"), "b")
	wantTenant(t, "the old one stays", child, "a")
}

// ptrCtx is a context as frameworks have them: a pointer that embeds another, and panics when it is nil.
type ptrCtx struct{ context.Context }

func TestFromContext_T36_ZeroValues(t *testing.T) {
	t.Parallel()
	wantNone(t, "nil", nil, tenant.ErrNoTenant) //nolint:staticcheck // the case itself
	wantNone(t, "typed nil", (*ptrCtx)(nil), tenant.ErrNoTenant)
	wantNone(t, "background", context.Background(), tenant.ErrNoTenant)
	wantNone(t, "TODO", context.TODO(), tenant.ErrNoTenant)
	wantNone(t, "empty id", tenant.NewContext(t.Context(), ""), tenant.ErrNoTenant)
	var zero tenant.Tenant
	wantNone(t, "id of a zero Tenant", tenant.NewContext(t.Context(), zero.ID), tenant.ErrNoTenant)
	a := tenant.NewContext(t.Context(), "a")
	wantNone(t, "empty id over a tenant", tenant.NewContext(a, ""), tenant.ErrNoTenant)
	wantNone(t, "ill-formed id over a tenant", tenant.NewContext(a, "B"), tenant.ErrInvalidID)
	wantNone(t, "the number 0 as a string is an id, NUL is not", tenant.NewContext(a, "\x00"), tenant.ErrInvalidID)
	wantTenant(t, "typed wrapper", &ptrCtx{a}, "a")
	if errors.Is(tenant.ErrNoTenant, tenant.ErrInvalidID) {
		t.Error("ErrNoTenant is ErrInvalidID, want two states")
	}
}

func TestNewContext_InvalidIDIsTyped(t *testing.T) {
	t.Parallel()
	_, err := tenant.FromContext(tenant.NewContext(t.Context(), "Acme"))
	var invalid *tenant.InvalidIDError
	if !errors.As(err, &invalid) || invalid.Value != "Acme" {
		t.Errorf("FromContext = %v, want an *InvalidIDError for Acme", err)
	}
}

func TestNewContext_NilParentPanics(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"NewContext": func() { tenant.NewContext(nil, "a") },                   //nolint:staticcheck // the case itself
		"System":     func() { tenant.System((*ptrCtx)(nil), "why", "table") }, // a typed nil is no parent either
		"WithShard":  func() { tenant.WithShard(nil, "s1") },                   //nolint:staticcheck // the case itself
		"Detach":     func() { tenant.Detach(nil) },                            //nolint:staticcheck // the case itself
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s(nil) did not panic", name)
				}
			}()
			call()
		}()
	}
}

func TestSystem(t *testing.T) {
	t.Parallel()
	a := tenant.NewContext(t.Context(), "a")
	sys := tenant.System(a, "reconcile", "bag", "warehouse")
	wantNone(t, "system", sys, tenant.ErrSystemScope)
	b, err := tenant.BypassFromContext(sys)
	if err != nil || b.Reason != "reconcile" || !slices.Equal(b.Tables, []string{"bag", "warehouse"}) {
		t.Fatalf("BypassFromContext = %+v, %v", b, err)
	}
	for table, want := range map[string]bool{"bag": true, "warehouse": true, "BAG": false, "bag ": false, "ledger": false, "*": false, "": false} {
		if got := b.Opens(table); got != want {
			t.Errorf("Opens(%q) = %v, want %v", table, got, want)
		}
	}
	if (*tenant.Bypass)(nil).Opens("bag") || (&tenant.Bypass{}).Opens("bag") {
		t.Error("a nil or zero Bypass opens a table")
	}
	wantTenant(t, "the parent keeps its tenant", a, "a")
	wantTenant(t, "a tenant under the system scope", tenant.NewContext(sys, "b"), "b")

	inner, err := tenant.BypassFromContext(tenant.System(sys, "other", "jobs"))
	if err != nil || inner.Opens("bag") || !inner.Opens("jobs") {
		t.Errorf("nested System = %+v, %v, want jobs alone", inner, err)
	}
}

func TestSystem_Refused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, c := range map[string]struct {
		ctx  context.Context
		want error
	}{
		"nil":          {nil, tenant.ErrNotSystem},
		"typed nil":    {(*ptrCtx)(nil), tenant.ErrNotSystem},
		"background":   {ctx, tenant.ErrNotSystem},
		"tenant":       {tenant.NewContext(ctx, "a"), tenant.ErrNotSystem},
		"no reason":    {tenant.System(ctx, "", "bag"), tenant.ErrNoReason},
		"blank reason": {tenant.System(ctx, " \t\n", "bag"), tenant.ErrNoReason},
		"no tables":    {tenant.System(ctx, "why"), tenant.ErrNoTables},
		"blank table":  {tenant.System(ctx, "why", "bag", " "), tenant.ErrNoTables},
		"no arguments": {tenant.System(ctx, ""), tenant.ErrNoReason},
	} {
		if b, err := tenant.BypassFromContext(c.ctx); b != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: BypassFromContext = %+v, %v, want %v", name, b, err, c.want)
		}
	}
	// An ill-formed bypass is not the tenant it replaced either.
	wantNone(t, "no tables over a tenant", tenant.System(tenant.NewContext(ctx, "a"), "why"), tenant.ErrSystemScope)
}

func TestSystem_CannotBeWidened(t *testing.T) {
	t.Parallel()
	tables := []string{"bag"}
	ctx := tenant.System(t.Context(), "why", tables...)
	tables[0] = "players"
	b, err := tenant.BypassFromContext(ctx)
	if err != nil || b.Opens("players") {
		t.Fatalf("BypassFromContext = %+v, %v, want bag alone after the caller's slice changed", b, err)
	}
	b.Tables[0] = "players"
	b.Tables = append(b.Tables, "guilds")
	again, err := tenant.BypassFromContext(ctx)
	if err != nil || !slices.Equal(again.Tables, []string{"bag"}) {
		t.Errorf("BypassFromContext = %+v, %v, want bag alone after a copy changed", again, err)
	}
}

func TestContext_Allocations(t *testing.T) {
	base := context.Background()
	a := tenant.NewContext(base, "a")
	child, cancel := context.WithCancel(a)
	defer cancel()
	sys := tenant.System(base, "why", "bag")
	bad := tenant.NewContext(base, "Acme")
	shard := tenant.WithShard(child, "s1")
	var id tenant.ID = "some-tenant"
	for name, c := range map[string]struct {
		want float64
		call func()
	}{
		"FromContext direct":       {0, func() { _, _ = tenant.FromContext(a) }},
		"FromContext child":        {0, func() { _, _ = tenant.FromContext(child) }},
		"FromContext none":         {0, func() { _, _ = tenant.FromContext(base) }},
		"FromContext system":       {0, func() { _, _ = tenant.FromContext(sys) }},
		"FromContext ill-formed":   {0, func() { _, _ = tenant.FromContext(bad) }},
		"BypassFromContext tenant": {0, func() { _, _ = tenant.BypassFromContext(a) }},
		"ShardFromContext":         {0, func() { _, _ = tenant.ShardFromContext(shard) }},
		"NewContext":               {1, func() { sink = tenant.NewContext(base, id) }},
	} {
		if got := testing.AllocsPerRun(100, c.call); got != c.want {
			t.Errorf("%s: %v allocations, want %v", name, got, c.want)
		}
	}
}

var sink context.Context

// One context may be used by many goroutines, and each sees the tenant of the context it holds.
func TestContext_T32_SharedByGoroutines(t *testing.T) {
	t.Parallel()
	root := tenant.NewContext(t.Context(), "root")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			want := tenant.ID(fmt.Sprintf("t%d", i))
			for range 200 {
				mine := tenant.WithShard(tenant.NewContext(root, want), string(want))
				if got, err := tenant.FromContext(mine); err != nil || got != want {
					t.Errorf("FromContext = %q, %v, want %q", got, err, want)
					return
				}
				if got, err := tenant.FromContext(root); err != nil || got != "root" {
					t.Errorf("FromContext(root) = %q, %v", got, err)
					return
				}
				_, _ = tenant.BypassFromContext(tenant.System(mine, "why", "bag"))
			}
		})
	}
	wg.Wait()
}

func TestShard(t *testing.T) {
	t.Parallel()
	a := tenant.NewContext(t.Context(), "a")
	s1 := tenant.WithShard(a, "s1")
	for name, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"none":             {a, ""},
		"nil":              {nil, ""},
		"typed nil":        {(*ptrCtx)(nil), ""},
		"noted":            {s1, "s1"},
		"noted twice":      {tenant.WithShard(s1, "s2"), "s2"},
		"empty":            {tenant.WithShard(s1, ""), ""},
		"below new tenant": {tenant.NewContext(s1, "b"), ""},
		"below system":     {tenant.System(s1, "why", "bag"), ""},
	} {
		got, ok := tenant.ShardFromContext(c.ctx)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: ShardFromContext = %q, %v, want %q", name, got, ok, c.want)
		}
	}
	wantTenant(t, "below a shard", s1, "a")
}

func BenchmarkFromContext(b *testing.B) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(tenant.NewContext(context.Background(), "acme"), key{}, 1))
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tenant.FromContext(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

package tenant_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

func TestInjectExtract_RoundTrip(t *testing.T) {
	t.Parallel()
	carrier := map[string]string{"trace": "1"}
	if err := tenant.Inject(tenant.NewContext(t.Context(), "acme"), carrier); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(carrier, map[string]string{"trace": "1", tenant.CarrierKey: "acme"}) {
		t.Errorf("the carrier holds %v", carrier)
	}
	ctx, err := tenant.Extract(t.Context(), carrier)
	if err != nil {
		t.Fatal(err)
	}
	wantTenant(t, "extracted", ctx, "acme")

	// As HTTP spells it on the other side.
	http := map[string]string{http.CanonicalHeaderKey(tenant.CarrierKey): "acme"}
	ctx, err = tenant.Extract(t.Context(), http)
	if err != nil {
		t.Fatal(err)
	}
	wantTenant(t, "from HTTP headers", ctx, "acme")
	if err := tenant.Inject(tenant.NewContext(t.Context(), "acme"), http); err != nil || len(http) != 1 {
		t.Errorf("Inject of the same tenant = %v, carrier %v, want it unchanged", err, http)
	}
}

func TestInject_Refused(t *testing.T) {
	t.Parallel()
	a := tenant.NewContext(t.Context(), "a")
	for name, c := range map[string]struct {
		ctx     context.Context
		carrier map[string]string
		want    error
	}{
		"no tenant":      {t.Context(), map[string]string{"k": "v"}, tenant.ErrNoTenant},
		"ill-formed":     {tenant.NewContext(t.Context(), "A"), map[string]string{}, tenant.ErrInvalidID},
		"system":         {tenant.System(a, "why", "bag"), map[string]string{}, tenant.ErrSystemScope},
		"nil carrier":    {a, nil, tenant.ErrNilCarrier},
		"nil, no tenant": {t.Context(), nil, tenant.ErrNoTenant},
		"other":          {a, map[string]string{tenant.CarrierKey: "b"}, tenant.ErrCarrierConflict},
		"other spelling": {a, map[string]string{"TENANTDAL-TENANT": "b"}, tenant.ErrCarrierConflict},
		"empty value":    {a, map[string]string{tenant.CarrierKey: ""}, tenant.ErrCarrierConflict},
		"two spellings":  {a, map[string]string{tenant.CarrierKey: "a", "Tenantdal-Tenant": "b"}, tenant.ErrCarrierConflict},
	} {
		before := maps.Clone(c.carrier)
		err := tenant.Inject(c.ctx, c.carrier)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: Inject = %v, want %v", name, err, c.want)
		}
		if !maps.Equal(before, c.carrier) {
			t.Errorf("%s: Inject wrote %v over %v beside an error", name, c.carrier, before)
		}
	}
}

func TestExtract_Refused(t *testing.T) {
	t.Parallel()
	bg := context.Background()
	a := tenant.NewContext(bg, "a")
	type m = map[string]string
	for name, c := range map[string]struct {
		ctx     context.Context
		carrier m
		want    error
	}{
		"nil carrier":              {bg, nil, tenant.ErrNoTenant},
		"missing":                  {bg, m{"tenant": "a", "x-tenant": "a"}, tenant.ErrNoTenant},
		"empty":                    {bg, m{tenant.CarrierKey: ""}, tenant.ErrNoTenant},
		"upper case":               {bg, m{tenant.CarrierKey: "Acme"}, tenant.ErrInvalidID},
		"blank around":             {bg, m{tenant.CarrierKey: " acme"}, tenant.ErrInvalidID},
		"list":                     {bg, m{tenant.CarrierKey: "a,b"}, tenant.ErrInvalidID},
		"two spellings":            {bg, m{"tenantdal-tenant": "a", "Tenantdal-Tenant": "b"}, tenant.ErrCarrierConflict},
		"two spellings, one empty": {bg, m{"tenantdal-tenant": "a", "Tenantdal-Tenant": ""}, tenant.ErrCarrierConflict},
		// T35: the context of the job before is not a default.
		"T35 missing over a tenant":    {a, m{}, tenant.ErrNoTenant},
		"T35 empty over a tenant":      {a, m{tenant.CarrierKey: ""}, tenant.ErrNoTenant},
		"T35 ill-formed over a tenant": {a, m{tenant.CarrierKey: "B"}, tenant.ErrInvalidID},
		// T45: the context says what a token proved.
		"T45 other tenant":   {a, m{tenant.CarrierKey: "b"}, tenant.ErrCarrierConflict},
		"T45 system by name": {a, m{tenant.CarrierKey: "__system__"}, tenant.ErrInvalidID},
		"T45 system word":    {a, m{tenant.CarrierKey: "system"}, tenant.ErrCarrierConflict},
		"T45 broken claim":   {tenant.NewContext(bg, "A"), m{tenant.CarrierKey: "b"}, tenant.ErrInvalidID},
	} {
		ctx, err := tenant.Extract(c.ctx, c.carrier)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: Extract = %v, want %v", name, err, c.want)
		}
		// A caller who drops the error has no tenant either, least of all the one before.
		wantNone(t, name, ctx, c.want)
	}
}

func TestExtract_T45_ConflictNamesBoth(t *testing.T) {
	t.Parallel()
	_, err := tenant.Extract(tenant.NewContext(t.Context(), "a"), map[string]string{"Tenantdal-Tenant": "b"})
	var conflict *tenant.CarrierConflictError
	if !errors.As(err, &conflict) || *conflict != (tenant.CarrierConflictError{Key: "Tenantdal-Tenant", Carrier: "b", Want: "a"}) {
		t.Errorf("Extract = %#v", err)
	}
	// "system" is an id like any other: it gives a tenant of that name, never the system scope.
	ctx, err := tenant.Extract(t.Context(), map[string]string{tenant.CarrierKey: "system"})
	if err != nil {
		t.Fatal(err)
	}
	wantTenant(t, "the word system", ctx, "system")
}

func TestExtract_NothingOfAnEarlierJob(t *testing.T) {
	t.Parallel()
	carrier := map[string]string{tenant.CarrierKey: "b"}
	for name, worker := range map[string]context.Context{
		"system":        tenant.System(t.Context(), "claim jobs", "jobs"),
		"shard":         tenant.WithShard(t.Context(), "s9"),
		"same tenant":   tenant.WithShard(tenant.NewContext(t.Context(), "b"), "s9"),
		"failed before": first(tenant.Extract(t.Context(), nil)),
	} {
		ctx, err := tenant.Extract(worker, carrier)
		if err != nil {
			t.Errorf("%s: Extract = %v", name, err)
			continue
		}
		wantTenant(t, name, ctx, "b")
		if shard, ok := tenant.ShardFromContext(ctx); ok {
			t.Errorf("%s: the shard %q of an earlier job is kept", name, shard)
		}
	}
}

func first(ctx context.Context, _ error) context.Context { return ctx }

func TestExtract_KeepsCancellation(t *testing.T) {
	t.Parallel()
	worker, cancel := context.WithCancel(t.Context())
	ctx, err := tenant.Extract(worker, map[string]string{tenant.CarrierKey: "b"})
	cancel()
	if err != nil || ctx.Err() == nil {
		t.Errorf("Extract = %v; after cancel ctx.Err() = %v, want canceled", err, ctx.Err())
	}
}

package tenant_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
)

func TestStatic(t *testing.T) {
	t.Parallel()
	reg, err := tenant.NewStatic(
		tenant.Tenant{ID: "whale", Model: tenant.OwnDatabase, Limits: tenant.Limits{Rate: 100}},
		tenant.Tenant{ID: "a", Model: tenant.SharedTable},
		tenant.Tenant{ID: "beta", Model: tenant.OwnSchema, Status: tenant.Suspended},
	)
	if err != nil {
		t.Fatal(err)
	}
	whale, err := reg.Tenant(t.Context(), "whale")
	if err != nil || !slices.Equal(whale.Placement.Shards, []string{"whale-s1"}) || whale.Status != tenant.Active || whale.Limits.Rate != 100 {
		t.Errorf("Tenant(whale) = %+v, %v", whale, err)
	}
	beta, err := reg.Tenant(t.Context(), "beta")
	if err != nil || beta.Placement.Schema != "t_beta" || beta.Status != tenant.Suspended {
		t.Errorf("Tenant(beta) = %+v, %v", beta, err)
	}
	all, err := reg.Tenants(t.Context())
	var ids []string
	for _, tn := range all {
		ids = append(ids, string(tn.ID))
	}
	if err != nil || !slices.Equal(ids, []string{"a", "beta", "whale"}) {
		t.Errorf("Tenants = %v, %v, want sorted", ids, err)
	}

	// What a caller does to its copy does not reach the registry.
	whale.Placement.Shards[0], all[2].Placement.Shards[0], all[0].ID = "x", "y", "z"
	again, err := reg.Tenants(t.Context())
	if err != nil || again[0].ID != "a" || again[2].Placement.Shards[0] != "whale-s1" {
		t.Errorf("Tenants = %+v, %v after a copy changed", again, err)
	}
}

func TestStatic_T36_UnknownAndZero(t *testing.T) {
	t.Parallel()
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := tenant.NewStatic()
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]tenant.Registry{"one": reg, "empty": empty, "zero": &tenant.Static{}} {
		got, err := r.Tenant(t.Context(), "b")
		var unknown *tenant.UnknownTenantError
		if !errors.Is(err, tenant.ErrUnknownTenant) || !errors.As(err, &unknown) || unknown.ID != "b" || got.ID != "" {
			t.Errorf("%s: Tenant(b) = %+v, %v, want ErrUnknownTenant", name, got, err)
		}
		for _, id := range []tenant.ID{"", "A", "a ", "*", "default "} {
			if got, err := r.Tenant(t.Context(), id); !errors.Is(err, tenant.ErrInvalidID) || got.ID != "" {
				t.Errorf("%s: Tenant(%q) = %+v, %v, want ErrInvalidID", name, id, got, err)
			}
		}
	}
	all, err := (&tenant.Static{}).Tenants(context.Background())
	if err != nil || len(all) != 0 {
		t.Errorf("Tenants of the zero Static = %v, %v", all, err)
	}
}

func TestNewStatic_AllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	reg, err := tenant.NewStatic(
		tenant.Tenant{ID: "ok", Model: tenant.SharedTable},
		tenant.Tenant{ID: "ok", Model: tenant.SharedTable},
		tenant.Tenant{ID: "Bad", Model: tenant.SharedTable},
		tenant.Tenant{ID: "nomodel"},
		tenant.Tenant{ID: "x", Model: tenant.SharedTable, Placement: tenant.Placement{Schema: "y"}},
		tenant.Tenant{ID: "s1", Model: tenant.OwnSchema},
		tenant.Tenant{ID: "s2", Model: tenant.OwnSchema, Placement: tenant.Placement{Schema: "t_s1"}},
		tenant.Tenant{ID: "d1", Model: tenant.OwnDatabase},
		tenant.Tenant{ID: "d2", Model: tenant.OwnDatabase, Placement: tenant.Placement{Shards: []string{"d2-s1", "d1-s1"}}},
	)
	if reg != nil || err == nil {
		t.Fatalf("NewStatic = %v, %v, want one error", reg, err)
	}
	if !errors.Is(err, tenant.ErrInvalidID) {
		t.Errorf("the error is not ErrInvalidID: %v", err)
	}
	for _, want := range []string{
		`tenant "ok" is given twice`, `invalid tenant id "Bad"`, `tenant "nomodel"`, "Placement.Schema is set",
		`tenants "s1" and "s2" share the schema "t_s1"`, `tenants "d1" and "d2" share the shard "d1-s1"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

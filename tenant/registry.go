package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Registry says who a tenant is. Implementations are safe for concurrent use, and answer from memory where they can:
// the store asks once per call.
type Registry interface {
	// Tenant returns the tenant named id, complete as [Tenant.Validate] wants it.
	//
	// An id that the registry lacks is an [*UnknownTenantError], which is [ErrUnknownTenant]; never a default tenant.
	Tenant(ctx context.Context, id ID) (Tenant, error)
}

// Lister lists all tenants, for schema changes, relays and operators.
type Lister interface {
	// Tenants returns every tenant, whatever its status, sorted by ID.
	Tenants(ctx context.Context) ([]Tenant, error)
}

var (
	_ Registry = (*Static)(nil)
	_ Lister   = (*Static)(nil)
)

// Static is a registry with a fixed list of tenants. It never changes and is safe for concurrent use. The zero value
// knows no tenant.
type Static struct {
	byID   map[ID]Tenant
	sorted []Tenant
}

// NewStatic returns a registry of these tenants, each completed by [Place].
//
// All problems come as one error: what Place refuses, an id given twice, two tenants with one schema, two tenants with
// one shard of their own. With no tenants at all it is a registry that refuses everybody.
func NewStatic(tenants ...Tenant) (*Static, error) {
	s := &Static{byID: make(map[ID]Tenant, len(tenants)), sorted: make([]Tenant, 0, len(tenants))}
	schemas, shards := make(map[string]ID), make(map[string]ID)
	var errs []error
	for _, t := range tenants {
		t, err := Place(t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, dup := s.byID[t.ID]; dup {
			errs = append(errs, fmt.Errorf("tenant: tenant %q is given twice: keep one", t.ID))
			continue
		}
		if schema := t.Placement.Schema; schema != "" {
			if other, taken := schemas[schema]; taken {
				errs = append(errs, fmt.Errorf("tenant: tenants %q and %q share the schema %q: give each its own", other, t.ID, schema))
			}
			schemas[schema] = t.ID
		}
		for _, shard := range t.Placement.Shards {
			if other, taken := shards[shard]; taken {
				errs = append(errs, fmt.Errorf("tenant: tenants %q and %q share the shard %q: give each its own", other, t.ID, shard))
			}
			shards[shard] = t.ID
		}
		s.byID[t.ID] = t
		s.sorted = append(s.sorted, t)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(s.sorted, compareTenants)
	return s, nil
}

// Tenant returns the tenant named id. It performs no I/O. An ill-formed id is an [*InvalidIDError]; one that is not in
// the list is an [*UnknownTenantError].
func (s *Static) Tenant(_ context.Context, id ID) (Tenant, error) {
	if err := id.Validate(); err != nil {
		return Tenant{}, err
	}
	t, ok := s.byID[id]
	if !ok {
		return Tenant{}, &UnknownTenantError{ID: id}
	}
	return t.clone(), nil
}

// Tenants returns all tenants, sorted by ID, as a copy. It performs no I/O and returns no error.
func (s *Static) Tenants(context.Context) ([]Tenant, error) {
	out := make([]Tenant, len(s.sorted))
	for i, t := range s.sorted {
		out[i] = t.clone()
	}
	return out, nil
}

package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// plannedPlace is a place with what is needed to make it.
type plannedPlace struct {
	dal.Place
	owner     tenant.ID // empty for a shared place
	dedicated bool      // a database of the owner's own, with a login of its own
	endpoint  dal.Endpoint
}

// registered lists the registry's tenants, complete and each once; none for a nil registry.
func (r *run) registered(ctx context.Context) ([]tenant.Tenant, error) {
	if r.cfg.Registry == nil {
		return nil, nil
	}
	lister, ok := r.cfg.Registry.(tenant.Lister)
	if !ok {
		return nil, fmt.Errorf("%w: Config.Registry is a %T, which cannot list its tenants: give it the method of tenant.Lister, or leave it nil", ErrRegistry, r.cfg.Registry)
	}
	listed, err := lister.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("schema: list the registry's tenants: %w", err)
	}
	all := make([]tenant.Tenant, 0, len(listed))
	seen := map[tenant.ID]bool{}
	var errs []error
	for _, t := range listed {
		t, err := tenant.Place(t)
		switch {
		case err != nil:
			errs = append(errs, err)
		case seen[t.ID]:
			errs = append(errs, fmt.Errorf("%w: it lists tenant %q twice", ErrRegistry, t.ID))
		default:
			seen[t.ID] = true
			all = append(all, t)
		}
	}
	return all, errors.Join(errs...)
}

// tenant asks the registry for one tenant.
func (r *run) tenant(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	if err := id.Validate(); err != nil {
		return tenant.Tenant{}, err
	}
	if r.cfg.Registry == nil {
		return tenant.Tenant{}, fmt.Errorf("%w: Config.Registry is nil, so nobody says how tenant %q is to be placed", ErrRegistry, id)
	}
	t, err := r.cfg.Registry.Tenant(ctx, id)
	if err != nil {
		return tenant.Tenant{}, fmt.Errorf("schema: ask the registry for tenant %q: %w", id, err)
	}
	if t.ID != id {
		return tenant.Tenant{}, fmt.Errorf("%w: asked for tenant %q it answered with %q", ErrRegistry, id, t.ID)
	}
	return tenant.Place(t)
}

// merge adds the wanted tenants to the known ones. changed are those that are new or differ, to be written down.
func merge(known, wanted []tenant.Tenant) (all, changed []tenant.Tenant, failed []Failure) {
	byID := map[tenant.ID]tenant.Tenant{}
	for _, t := range known {
		byID[t.ID] = t
	}
	for _, t := range wanted {
		have, ok := byID[t.ID]
		if ok && !control.SamePlacement(have, t) {
			failed = append(failed, Failure{Tenant: t.ID, Err: control.NewPlacementChangeError(have, t)})
			continue
		}
		if !ok || have.Status != t.Status || have.Limits != t.Limits {
			changed = append(changed, t)
		}
		byID[t.ID] = t
	}
	for _, id := range sortedKeys(byID) {
		all = append(all, byID[id])
	}
	return all, changed, failed
}

// plan lists the places of the default shards and of the tenants, sorted. It refuses places that would be one database, whether one tenant's shard is named
// like another's or like something of the library's: the name of a file or database is all that keeps them apart.
func (r *run) plan(tenants []tenant.Tenant) ([]plannedPlace, []Failure) {
	var places []plannedPlace
	for _, id := range r.cfg.Cluster.ShardIDs() {
		places = append(places, plannedPlace{Place: dal.Place{Shard: id}})
	}
	for _, t := range tenants {
		places = append(places, placesOf(r.cfg.Cluster, t)...)
	}
	var failed []Failure
	claims := map[string]string{address(r.cfg.Cluster.Control()): "the control database"}
	for i := range places {
		p := &places[i]
		e, err := r.cfg.Cluster.Endpoint(p.Place, p.owner)
		if err == nil {
			claim := "shared " + placeName(p.Place)
			if p.owner != "" {
				claim = fmt.Sprintf("%s of tenant %q", placeName(p.Place), p.owner)
			}
			at := address(e)
			if first, taken := claims[at]; taken {
				err = &PlaceConflictError{Database: e.String(), First: first, Second: claim}
			}
			claims[at] = claim
		}
		if err != nil {
			failed = append(failed, Failure{Place: p.Place, Tenant: p.owner, Err: err})
		}
		p.endpoint = e
	}
	slices.SortFunc(places, func(a, b plannedPlace) int { return a.Compare(b.Place) })
	return places, failed
}

// placesOf lists the places that a tenant has for itself.
func placesOf(c dal.Cluster, t tenant.Tenant) (places []plannedPlace) {
	switch t.Model {
	case tenant.OwnSchema:
		for _, id := range c.ShardIDs() {
			places = append(places, plannedPlace{Place: dal.Place{Shard: id, Schema: t.Placement.Schema}, owner: t.ID})
		}
	case tenant.OwnDatabase:
		for _, id := range t.Placement.Shards {
			places = append(places, plannedPlace{Place: dal.Place{Shard: shardrouter.ShardID(id)}, owner: t.ID, dedicated: true})
		}
	}
	return places
}

// address is one text for one database, in lower case: file systems and servers that fold case would make one database of two.
func address(e dal.Endpoint) string {
	if e.Dialect == dal.SQLite {
		return strings.ToLower(e.Path)
	}
	return strings.ToLower(e.Network + "|" + e.Address + "|" + e.Database)
}

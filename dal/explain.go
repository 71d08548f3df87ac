package dal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// RouteExplanation says where a key of a tenant lives, and why.
type RouteExplanation struct {
	shardrouter.Explanation

	// Place is the shard with the tenant's schema, as "s1" or "s1/t_acme".
	Place string `json:"place"`

	// Model is how the tenant is kept apart, as "shared", and Status whether it is served.
	Model  tenant.Model  `json:"model"`
	Status tenant.Status `json:"status"`
}

// ExplainRoute says where the key of the tenant lives and why, by what the cluster's control database has now: for operators and tools, beside the
// services and without a store. It opens the control database alone, asks it twice, and changes nothing.
//
// The tenant is one that schema.Up or schema.Provision wrote down, also where a registry of the service's own decides. It returns the errors of
// [Cluster.Validate], [ErrNotMigrated], [tenant.ErrUnknownTenant] and [tenant.ErrInvalidID], those of [shardrouter.Topology.Owner], and the database's.
func ExplainRoute(ctx context.Context, c Cluster, id tenant.ID, keyspace string, key shardrouter.Key) (x RouteExplanation, err error) {
	if err := errors.Join(c.Validate(), id.Validate()); err != nil {
		return x, err
	}
	pool, err := openControl(ctx, Config{Cluster: c}.WithDefaults(), slog.New(slog.DiscardHandler))
	if pool != nil {
		defer func() { err = errors.Join(err, pool.Close()) }()
	}
	if err != nil {
		return x, err
	}
	ctl := control.New(pool, string(c.Dialect))
	top, err := ctl.Topology(ctx)
	if err != nil {
		return x, migrated("read the topology", err)
	}
	t, err := ctl.Tenant(ctx, id)
	if err != nil {
		return x, migrated("read the tenant", err)
	}
	if t.Model == tenant.OwnDatabase && len(top.Dedicated(string(id))) == 0 {
		return x, fmt.Errorf("%w: tenant %q has no shards in the topology of epoch %d", ErrNotMigrated, id, top.Epoch())
	}
	x = RouteExplanation{Model: t.Model, Status: t.Status}
	if x.Explanation, err = top.Explain(keyspace, string(id), key); err != nil {
		return RouteExplanation{}, err
	}
	x.Place = Place{Shard: x.Shard, Schema: t.Placement.Schema}.String()
	return x, nil
}

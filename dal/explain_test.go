package dal_test

import (
	"errors"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestExplainRoute_AgreesWithTheStore(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: cluster(t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			if _, err := dal.ExplainRoute(t.Context(), cfg.Cluster, "shared-a", "player", "7"); !errors.Is(err, dal.ErrNotMigrated) {
				t.Errorf("before schema.Up: got %v, want ErrNotMigrated", err)
			}
			up(t, cfg)
			store := opened(t, cfg)
			for _, id := range []tenant.ID{"shared-a", "schema-c", "base-d"} {
				for _, key := range []string{"7", "8", "9"} {
					r, err := store.Route(tenant.NewContext(t.Context(), id), dal.Key("player", key))
					if err != nil {
						t.Fatal(err)
					}
					x, err := dal.ExplainRoute(t.Context(), cfg.Cluster, id, "player", shardrouter.Key(key))
					if err != nil || x.Place != r.Place.String() || x.Shard != r.Place.Shard || x.Epoch != r.Epoch || x.By != shardrouter.ByHash || x.Model != r.Tenant.Model {
						t.Errorf("tenant %s, key %s: got %+v, %v, the store has %+v", id, key, x, err, r)
					}
				}
			}
			if _, err := dal.ExplainRoute(t.Context(), cfg.Cluster, "nobody", "player", "7"); !errors.Is(err, tenant.ErrUnknownTenant) {
				t.Errorf("a tenant that is not there: got %v, want ErrUnknownTenant", err)
			}
			if _, err := dal.ExplainRoute(t.Context(), cfg.Cluster, "shared-a", "player", "0"); !errors.Is(err, shardrouter.ErrZeroKey) {
				t.Errorf("a zero key: got %v, want ErrZeroKey", err)
			}
		})
	}
}

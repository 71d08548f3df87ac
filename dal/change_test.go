package dal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestChange_A3_PinOfAnEmptyKeyIsRoutedElsewhere(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		if name == "postgres" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: cluster(t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, Notifier: notify.NewLocal()}
			up(t, cfg)
			stores := make([]*dal.Store, 2)
			for i := range stores {
				var err error
				if stores[i], err = dal.Open(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := stores[i].Close(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			if err := stores[1].Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx := tenant.NewContext(t.Context(), "shared-a")
			r, err := stores[0].Route(ctx, dal.Key("player", "7"))
			if err != nil {
				t.Fatal(err)
			}
			to := shardrouter.ShardID("s1")
			if r.Place.Shard == to {
				to = "s2"
			}
			pin := func(shard shardrouter.ShardID) shardrouter.Change {
				return shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "shared-a", Keyspace: "player", Key: "7", Shard: shard}}
			}
			if _, err := stores[0].Change(ctx, "ops", pin(to)); !errors.Is(err, tenant.ErrNotSystem) {
				t.Errorf("a tenant changed the topology: %v", err)
			}
			system := tenant.System(t.Context(), "canary", "heroes")
			next, err := stores[0].Change(system, "ops", pin(to))
			if err != nil || next.Epoch() != r.Epoch+1 {
				t.Fatalf("Change: %v", err)
			}
			deadline, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			for _, s := range stores {
				for {
					got, err := s.Route(ctx, dal.Key("player", "7"))
					if err != nil || deadline.Err() != nil {
						t.Fatalf("route %+v, %v, want %s", got, err, to)
					}
					if got.Epoch == next.Epoch() && got.Place.Shard == to {
						break
					}
				}
			}
			if err := stores[1].On(ctx, dal.Key("player", "7")).Create(&Hero{PlayerID: "7"}).Error; err != nil {
				t.Fatal(err)
			}
			for what, c := range map[string]shardrouter.Change{
				"back":                          pin(r.Place.Shard),
				"another strategy, A12 and S15": shardrouter.PutKeyspace{Keyspace: shardrouter.Keyspace{Name: "player", Strategy: shardrouter.StrategyModulo}},
			} {
				var needs *shardrouter.NeedsReshardError
				if _, err := stores[0].Change(system, "ops", c); !errors.As(err, &needs) || needs.Plan.Empty() {
					t.Errorf("%s: %v, want a *NeedsReshardError", what, err)
				}
			}
			if got := stores[0].Topology().Epoch(); got != next.Epoch() {
				t.Errorf("a refusal made epoch %d of %d", got, next.Epoch())
			}
		})
	}
}

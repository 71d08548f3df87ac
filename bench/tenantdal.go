package bench

import (
	"context"
	"database/sql/driver"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Item is the row as tenantdal's users declare it.
type Item struct {
	dal.Model
	PlayerID string
	Name     string
	Qty      int64
}

// openTenantDAL is the whole layer, for each statement anew: Store.On, routing over eight shards, a rate limit that never refuses, the permit of the
// tenant's share and the pool's line, the gate. Telemetry is off: the logger is none.
func openTenantDAL(d *NullDriver) (map[Case]Op, func() error, error) {
	shards := []shardrouter.ShardID{"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: shards, Keyspaces: []shardrouter.Keyspace{{Name: "player"}}})
	if err != nil {
		return nil, nil, err
	}
	registry, err := tenant.NewStatic(tenant.Tenant{ID: tenantID, Model: tenant.SharedTable, Limits: tenant.Limits{Rate: 1e9, Burst: 1e6, MaxConns: 8}})
	if err != nil {
		return nil, nil, err
	}
	store, err := dal.OpenFixed(
		dal.Config{Registry: registry, Tables: []dal.Table{dal.Tenant[Item]("player", "player_id")}},
		dal.Fixed{Topology: top, Dialect: dal.MySQL, Connect: func(dal.Place) (driver.Connector, error) { return d, nil }},
	)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := requestContext()
	ctx = tenant.NewContext(ctx, tenantID)
	ops := map[Case]Op{
		First: func() error {
			var it Item
			return store.On(ctx, dal.Key("player", playerID)).First(&it, itemID).Error
		},
		Find20: func() error {
			var its []Item
			return store.On(ctx, dal.Key("player", playerID)).Where("player_id = ?", playerID).Limit(20).Find(&its).Error
		},
		Update: func() error {
			return store.On(ctx, dal.Key("player", playerID)).Model(&Item{}).Where("id = ?", itemID).Update("qty", 5).Error
		},
		Create: func() error {
			return store.On(ctx, dal.Key("player", playerID)).Create(&Item{Model: dal.Model{ID: itemID}, PlayerID: playerID, Name: "sword", Qty: 3}).Error
		},
	}
	return ops, func() error {
		cancel()
		return store.Close(context.Background())
	}, nil
}

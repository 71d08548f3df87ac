// Package dal is the data access layer: gorm bound to one tenant, in the place that owns a key.
//
//	store, err := dal.Open(ctx, dal.Config{
//		Cluster:  dal.SQLiteCluster(dir, 3), // made by schema.Up
//		Registry: registry,                  // nil: the tenants that schema.Up wrote down
//		Tables:   []dal.Table{dal.Tenant[Item]("player", "player_id")},
//	})
//	ctx = tenant.NewContext(ctx, "acme")
//	err = store.On(ctx, dal.Key("player", "7")).Where("qty > ?", 0).Find(&items).Error
//
// The handle that [Store.On] returns is gorm's own *gorm.DB. Every statement that it sends carries tenant_id = the context's tenant, or is refused
// with a typed error and nothing is sent: [ErrShape] for a shape that the scope cannot be written into, [ErrUndeclared], [ErrKeyspace],
// [ErrCrossShard], [ErrImmutable], [ErrTenantMismatch]. Below gorm stands a second fence, the driver wrapper: a statement that did not come through
// the first does not leave, so db.DB(), Connection() and raw database/sql fail closed.
//
// The way of one call, from top to bottom: [Store.On] (context, registry, route) -> a session of the place's *gorm.DB -> the scope in front of
// gorm's callbacks -> the handle's pool (rate, permit) -> database/sql -> the wire.
package dal

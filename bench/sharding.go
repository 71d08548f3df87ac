package bench

import "gorm.io/sharding"

// openSharding is gorm.io/sharding: it parses each statement as it leaves and renames the table by the sharding key. The predicate is the caller's;
// a statement without it is refused.
func openSharding(d *NullDriver) (map[Case]Op, func() error, error) {
	g, closer, err := openGorm(d)
	if err != nil {
		return nil, nil, err
	}
	err = g.Use(sharding.Register(sharding.Config{
		ShardingKey: "tenant_id", NumberOfShards: 8, PrimaryKeyGenerator: sharding.PKCustom,
		PrimaryKeyGeneratorFn: func(int64) int64 { return 0 }, // ids are given
	}, "items"))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := requestContext()
	return map[Case]Op{
		First: func() error {
			var it PlainItem
			// First(&it, id) would leave a reference to the table's old name in its text, which no server takes.
			return g.WithContext(ctx).Where("tenant_id = ? AND id = ?", tenantID, itemID).First(&it).Error
		},
		Find20: func() error {
			var its []PlainItem
			return g.WithContext(ctx).Where("tenant_id = ? AND player_id = ?", tenantID, playerID).Limit(20).Find(&its).Error
		},
		Update: func() error {
			return g.WithContext(ctx).Model(&PlainItem{}).Where("tenant_id = ? AND id = ?", tenantID, itemID).Update("qty", 5).Error
		},
		Create: func() error {
			return g.WithContext(ctx).Create(&PlainItem{PlainModel: PlainModel{ID: itemID, TenantID: tenantID}, PlayerID: playerID, Name: "sword", Qty: 3}).Error
		},
	}, func() error {
		cancel()
		return closer()
	}, nil
}

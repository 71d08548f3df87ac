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
	// First(&it, id) would leave a reference to the table's old name in its text, which no server takes.
	return handWritten(ctx, g), func() error {
		cancel()
		return closer()
	}, nil
}

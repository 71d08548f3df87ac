// Package shardrouter says where a row lives: which shard owns a key of a tenant, in which epoch.
//
//	topo, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
//		Epoch:     1,
//		Shards:    []shardrouter.ShardID{"s1", "s2", "s3"},
//		Dedicated: map[string][]shardrouter.ShardID{"whale": {"whale-s1"}},
//		Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}},
//	})
//	key, err := shardrouter.KeyOf(player.ID)            // 7, "7" and []byte("7") are one key
//	shard, err := topo.Owner("player", "acme", key)     // the same in every process
//	groups, err := topo.Group("player", "acme", members) // len(groups) is the number of shards touched
//
// Routing is a pure function of the [Topology] snapshot, the tenant, the keyspace and the key: no I/O, no clock, no seed.
// Equal inputs give equal shards in every process and language; golden vectors in the tests hold the function in place,
// since a change there moves data. A topology never changes. Growing makes a new one with a greater [Epoch], while the
// old one goes on serving.
//
// Above the hash stand what is placed by hand: a [Pin] for a key, a [Room] for a room of a keyspace of rooms. What is known
// of a shard beside its id is its [ShardInfo]. Below them stands one of the [Strategies], by default the
// consistent-hash [Ring]. The package imports nothing of the project and no database.
package shardrouter

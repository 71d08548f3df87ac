package shardrouter_test

import (
	"fmt"

	"github.com/tenantdal/tenantdal/shardrouter"
)

func Example() {
	topo, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
		Epoch:     1,
		Shards:    []shardrouter.ShardID{"s1", "s2", "s3"},
		Dedicated: map[string][]shardrouter.ShardID{"whale": {"whale-s1"}},
		Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}},
	})
	if err != nil {
		panic(err)
	}
	key, err := shardrouter.KeyOf(7)
	if err != nil {
		panic(err)
	}
	fmt.Println(topo.Owner("player", "acme", key))
	fmt.Println(topo.Owner("player", "whale", key))

	groups, err := topo.Group("player", "acme", []shardrouter.Key{"1", "2", "3", "4", "2"})
	if err != nil {
		panic(err)
	}
	for _, g := range groups {
		fmt.Println(g.Shard, g.Keys, g.Index)
	}
	// Output:
	// s2 <nil>
	// whale-s1 <nil>
	// s1 [2 3] [1 2]
	// s3 [1 4] [0 3]
}

package shardrouter

import (
	"slices"
	"strings"
)

// Group is the part of a list of keys that one shard owns.
type Group struct {
	Shard ShardID
	Keys  []Key // each key once, in the order in which the list names it first; never empty
	Index []int // Index[i] is the position in the list where Keys[i] comes first; len(Index) == len(Keys)
}

// Group sorts the keys by the shard that owns them. The groups are sorted by shard, and len(result) is the number of
// shards that a query over these keys touches; nil for no keys. A key that is listed several times is asked for once.
//
// The errors are those of [Topology.Owners]. On an error nothing is returned.
func (t *Topology) Group(keyspace, tenant string, keys []Key) ([]Group, error) {
	owners, err := t.Owners(keyspace, tenant, keys)
	if err != nil {
		return nil, err
	}
	var groups []Group
	at := make(map[ShardID]int)
	seen := make(map[Key]struct{}, len(keys))
	for i, key := range keys {
		if _, dup := seen[key]; dup {
			continue
		}
		seen[key] = struct{}{}
		g, ok := at[owners[i]]
		if !ok {
			g = len(groups)
			at[owners[i]] = g
			groups = append(groups, Group{Shard: owners[i]})
		}
		groups[g].Keys = append(groups[g].Keys, key)
		groups[g].Index = append(groups[g].Index, i)
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(string(a.Shard), string(b.Shard)) })
	return groups, nil
}

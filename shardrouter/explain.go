package shardrouter

// What decided where a key lives, see [Explanation].
const (
	ByPin   = "pin"
	ByRoom  = "room"
	ByRange = "range"
	ByHash  = "hash"
)

// Explanation says why a key lives where it does.
type Explanation struct {
	Epoch     Epoch      `json:"epoch"`
	Keyspace  string     `json:"keyspace"`
	Tenant    string     `json:"tenant"`
	Key       Key        `json:"key"`
	Strategy  string     `json:"strategy"`
	By        string     `json:"by"`   // [ByPin], [ByRoom], [ByRange] or [ByHash]
	Hash      uint64     `json:"hash"` // [Hash] of tenant and key, whatever decided
	Dedicated bool       `json:"dedicated"`
	Shard     ShardID    `json:"shard"`
	State     ShardState `json:"state"` // of the shard
	Zone      string     `json:"zone,omitempty"`

	// Split is the range that holds the key. For ByRange only.
	Split *Split `json:"split,omitempty"`
}

// Explain returns where the key of the tenant lives and why. Its errors are those of [Topology.Owner].
func (t *Topology) Explain(keyspace, tenant string, key Key) (Explanation, error) {
	shard, err := t.Owner(keyspace, tenant, key)
	if err != nil {
		return Explanation{}, err
	}
	k, h := t.byName[keyspace], Hash(tenant, key)
	_, own := t.dedicated[tenant]
	x := Explanation{
		Epoch: t.epoch, Keyspace: keyspace, Tenant: tenant, Key: key, Strategy: t.keyspaces[k].Strategy, By: ByHash, Hash: h,
		Dedicated: own, Shard: shard, State: t.info[shard].State, Zone: t.info[shard].Zone,
	}
	_, assigned := t.assigned.find(h, k, tenant, key)
	ranges := t.set(tenant).placings[t.wayOf[k]].ranges
	switch {
	case assigned && x.Strategy == StrategyRoom:
		x.By = ByRoom
	case assigned:
		x.By = ByPin
	case ranges != nil:
		at, err := ranges.parse(key)
		if err != nil {
			return Explanation{}, err
		}
		split := ranges.splits[ranges.find(at)]
		x.By, x.Split = ByRange, &split
	}
	return x, nil
}

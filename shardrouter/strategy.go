package shardrouter

// The names of the strategies, as they are persisted.
const (
	StrategyRing       = "ring"       // [Ring]
	StrategyModulo     = "modulo"     // [Modulo]
	StrategyKetama     = "ketama"     // [Ketama]
	StrategyRendezvous = "rendezvous" // [Rendezvous]
	StrategySlots      = "slots"      // [Slots]
	StrategyRange      = "range"      // [Range]
	StrategyRoom       = "room"       // by assignment only, see [Room]
)

// Strategies returns the names of the strategies that this version has, sorted.
func Strategies() []string {
	return []string{StrategyKetama, StrategyModulo, StrategyRange, StrategyRendezvous, StrategyRing, StrategyRoom, StrategySlots}
}

// Strategy says which shard owns a key, as a pure function of its shards and parameters. Implementations are immutable
// and safe for concurrent use, and answer the same whatever order the shards were listed in.
type Strategy interface {
	// Name is the name under which the strategy is persisted, such as "ring".
	Name() string

	// Shards returns the shards, sorted, as a copy.
	Shards() []ShardID

	// Owner returns the shard that owns the key of the tenant. It always returns one of Shards, performs no I/O, and
	// does not judge the key: [Topology] refuses empty and zero keys.
	Owner(tenant string, key Key) ShardID
}

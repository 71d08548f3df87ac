package shardrouter

import "fmt"

// ShardState says what a shard takes and what it has. It is persisted by its name.
type ShardState uint8

const (
	// Active is the state of a shard that serves and takes what is new. It is the zero value.
	Active ShardState = iota

	// Draining is the state of a shard that is going away: it keeps the keys, pins, rooms and slots that it has, and
	// takes no new pins, rooms and slots. A hash knows no new keys: until a reshard empties the shard, keys that hash to it
	// belong to it.
	Draining

	// Down is the state of a shard that does not answer. It owns what it owned: see [Topology.Check].
	Down

	// Joining is the state of a shard that is being prepared: it owns nothing yet.
	Joining
)

var stateNames = [...]string{Active: "active", Draining: "draining", Down: "down", Joining: "joining"}

// String returns the name: "active", "draining", "down" or "joining".
func (s ShardState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("ShardState(%d)", uint8(s))
}

// ParseShardState returns the state of that name. Any other is an [*InvalidShardStateError].
func ParseShardState(name string) (ShardState, error) {
	for s, n := range stateNames {
		if n == name {
			return ShardState(s), nil
		}
	}
	return 0, &InvalidShardStateError{Value: clip(name)}
}

// MarshalText returns the name; an unknown state is an [*InvalidShardStateError].
func (s ShardState) MarshalText() ([]byte, error) {
	if int(s) >= len(stateNames) {
		return nil, &InvalidShardStateError{Value: s.String()}
	}
	return []byte(stateNames[s]), nil
}

// UnmarshalText is [ParseShardState].
func (s *ShardState) UnmarshalText(text []byte) error {
	parsed, err := ParseShardState(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}

// MaxWeight is the greatest weight of a shard.
const MaxWeight = 1000

// ShardInfo is what a topology knows of a shard beside its id. The zero value is an active shard of weight 1 in no zone.
type ShardInfo struct {
	// State is what the shard takes and has.
	State ShardState `json:"state"`

	// Zone is where the shard stands, for reads that prefer the near one. May be empty.
	Zone string `json:"zone,omitempty"`

	// Weight is the shard's part of the keys in proportion to the others: on a ring, in rendezvous and in a table of
	// slots. Modulo, ketama and range ignore it.
	//
	// Zero means 1; the most is [MaxWeight].
	Weight int `json:"weight,omitempty"`
}

func (i ShardInfo) weight() int { return max(i.Weight, 1) }

func (i ShardInfo) validate(id ShardID) error {
	if int(i.State) >= len(stateNames) {
		return fmt.Errorf("shardrouter: shard %q: %w", clip(string(id)), &InvalidShardStateError{Value: i.State.String()})
	}
	if i.Weight < 0 || i.Weight > MaxWeight {
		return &WeightError{Shard: id, Weight: i.Weight}
	}
	return nil
}

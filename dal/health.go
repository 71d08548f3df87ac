package dal

import (
	"time"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// StaleWrites says what happens to writes while the topology cannot be confirmed.
type StaleWrites uint8

const (
	// AllowStaleWrites goes on writing with the last topology that was read. It is the zero value: nothing moves while the control database is away, since a
	// change of the topology needs it.
	AllowStaleWrites StaleWrites = iota
	// RefuseStaleWrites refuses writes, locking reads and transactions with [ErrStaleTopology] once the topology could not be confirmed for
	// Config.TopologyMaxAge: for a process that may be cut off from the control database while others are not. It needs [Store.Start].
	RefuseStaleWrites
)

// Health is what the store knows of its topology, as of one moment.
type Health struct {
	// Epoch is the snapshot's.
	Epoch shardrouter.Epoch
	// Watching reports whether the watch runs: [Store.Start] was called, and neither its context nor the store has ended. A store of [OpenFixed] watches
	// nothing.
	Watching bool
	// Age is for how long the snapshot could not be confirmed: since the beginning of the last look that found it up to date. Zero for a store of [OpenFixed].
	Age time.Duration
	// Stale reports that Age is above Config.TopologyMaxAge.
	Stale bool
	// WritesRefused reports that writes are refused with [ErrStaleTopology]: Stale, and Config.StaleWrites says so.
	WritesRefused bool
	// Err is why the last look failed, nil if it did not.
	Err error
	// Shards are all shards of the snapshot, default and dedicated, sorted by id.
	Shards []ShardHealth
}

// ShardHealth is what the store knows of one shard.
type ShardHealth struct {
	Shard shardrouter.ShardID
	// Info is the state, zone and weight in the topology.
	Info shardrouter.ShardInfo
	// Missing reports a default shard that Config.Cluster lacks: its keys are refused with [*ShardNotConfiguredError].
	Missing bool
	// Open reports whether the place of the shard's shared tables is open in this process; false for a tenant's own shard.
	Open bool
}

// Health returns what the store knows of its topology. It performs no I/O, and so answers while no database does.
func (s *Store) Health() Health {
	t := s.snapshot()
	h := Health{Epoch: t.Epoch(), Watching: s.watch.running.Load(), Age: s.age()}
	h.Stale = h.Age > s.cfg.TopologyMaxAge
	h.WritesRefused = h.Stale && s.cfg.StaleWrites == RefuseStaleWrites
	s.watch.mu.Lock()
	h.Err = s.watch.err
	s.watch.mu.Unlock()
	missing := map[shardrouter.ShardID]bool{}
	for _, id := range s.lacking(t) {
		missing[id] = true
	}
	for _, id := range t.AllShards() {
		_, open := s.places.Load(Place{Shard: id})
		h.Shards = append(h.Shards, ShardHealth{Shard: id, Info: t.Info(id), Missing: missing[id], Open: open})
	}
	return h
}

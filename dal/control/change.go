package control

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// What the columns hold, in bytes.
const (
	maxActor  = 255
	maxReason = 1024
	maxZone   = 64
	maxKey    = 1024
)

// TopologyChange is one row of the history of the topology.
type TopologyChange struct {
	// Epoch is the one that the changes made.
	Epoch shardrouter.Epoch
	// Actor and Reason are as they were given.
	Actor, Reason string
	// Changes are as [shardrouter.MarshalChange] wrote them, in their order: a newer version may have kinds that this one lacks.
	Changes []json.RawMessage
	// At is when, by the clock of the process that made the change, to the millisecond.
	At time.Time
}

// ChangeTopology applies the changes to the topology of the epoch at, if that is still the present one, and writes the next one and a row of its history:
// all of it in one transaction, or nothing. It returns the new topology and what moves by it. It does not ask whether the keys that move have rows;
// allow, called with the plan before anything is written, does. allow does not use this store, whose topology is locked meanwhile; nil allows only what
// moves nothing.
//
// actor (1 to 255 bytes) and reason (1 to 1024) are kept. It returns a [*ChangeArgumentError], an [*EpochConflictError], which is [ErrEpochConflict], the
// errors of [shardrouter.Topology.Apply], [*shardrouter.NeedsReshardError], what allow returned, [ErrNotMigrated] and [*CorruptError].
func (s *Store) ChangeTopology(ctx context.Context, at shardrouter.Epoch, actor, reason string, allow func(*shardrouter.Plan) error, changes ...shardrouter.Change) (*shardrouter.Topology, *shardrouter.Plan, error) {
	const op = "change the topology"
	if err := checkChange(actor, reason, changes); err != nil {
		return nil, nil, failed(op, err)
	}
	texts := make([]json.RawMessage, len(changes))
	for i, c := range changes {
		text, err := shardrouter.MarshalChange(c)
		if err != nil {
			return nil, nil, failed(op, err)
		}
		texts[i] = text
	}
	log, err := json.Marshal(texts)
	if err != nil {
		return nil, nil, failed(op, err)
	}
	if allow == nil {
		allow = (*shardrouter.Plan).Refuse
	}
	var next *shardrouter.Topology
	var plan *shardrouter.Plan
	err = s.tx(ctx, op, func(tx *sql.Tx) error {
		have, _, err := s.lockTopology(ctx, tx)
		if err != nil {
			return err
		}
		if have == 0 {
			return fmt.Errorf("there is none: %w", ErrNotMigrated)
		}
		if have != at {
			return &EpochConflictError{Have: have, Want: at}
		}
		old, err := readTopology(ctx, tx) // the lock came before the transaction's first plain read
		if err != nil {
			return err
		}
		if next, plan, err = old.Apply(changes...); err != nil {
			return err
		}
		if err := checkColumns(next.Config()); err != nil {
			return err
		}
		if err := allow(plan); err != nil {
			return err
		}
		if err := writeTopology(ctx, tx, old.Config(), next.Config()); err != nil {
			return err
		}
		if err := execOne(ctx, tx, stEpochNext, int64(have)); err != nil {
			return err
		}
		return execOne(ctx, tx, stLogInsert, int64(next.Epoch()), actor, reason, string(log), time.Now().UnixMilli())
	})
	if err != nil {
		return nil, nil, err
	}
	return next, plan, nil
}

// TopologyLog returns the newest changes of the topology, the newest first, at most limit of them; a limit below 1 is a [*ChangeArgumentError]. Of
// what schema.Up and schema.Provision added, shards that joined are in it, keyspaces and tenants' shards are not.
func (s *Store) TopologyLog(ctx context.Context, limit int) ([]TopologyChange, error) {
	const op = "read the topology's history"
	if limit < 1 {
		return nil, failed(op, &ChangeArgumentError{What: "limit", Problem: "is below 1"})
	}
	var all []TopologyChange
	err := query(ctx, s.pool, stLog, []any{limit}, func(rows *sql.Rows) error {
		var c TopologyChange
		var epoch, ms int64
		var text []byte
		if err := rows.Scan(&epoch, &c.Actor, &c.Reason, &text, &ms); err != nil {
			return err
		}
		c.Epoch, c.At = shardrouter.Epoch(epoch), time.UnixMilli(ms).UTC()
		if err := json.Unmarshal(text, &c.Changes); err != nil {
			return &CorruptError{Table: "tdal_topology_log", Err: err}
		}
		all = append(all, c)
		return nil
	})
	if err != nil {
		return nil, failed(op, err)
	}
	return all, nil
}

func checkChange(actor, reason string, changes []shardrouter.Change) error {
	switch {
	case actor == "" || len(actor) > maxActor:
		return &ChangeArgumentError{What: "actor", Problem: fmt.Sprintf("has %d bytes, want 1 to %d", len(actor), maxActor)}
	case reason == "" || len(reason) > maxReason:
		return &ChangeArgumentError{What: "reason", Problem: fmt.Sprintf("has %d bytes, want 1 to %d", len(reason), maxReason)}
	case len(changes) == 0:
		return &ChangeArgumentError{What: "changes", Problem: "are none"}
	}
	for i, c := range changes {
		if c == nil {
			return &ChangeArgumentError{What: fmt.Sprintf("change %d", i), Problem: "is nil"}
		}
	}
	return nil
}

// checkColumns refuses what the router takes and the columns do not.
func checkColumns(cfg shardrouter.TopologyConfig) error {
	for id, info := range cfg.Info {
		if len(info.Zone) > maxZone {
			return &ChangeArgumentError{What: fmt.Sprintf("the zone of shard %q", id), Problem: fmt.Sprintf("has %d bytes, want at most %d", len(info.Zone), maxZone)}
		}
	}
	for a := range placements(cfg) {
		if len(a.key) > maxKey || len(a.tenant) > 63 {
			return &ChangeArgumentError{What: "a pin or room", Problem: fmt.Sprintf("has a key above %d bytes or a tenant above 63", maxKey)}
		}
	}
	return nil
}

// placement is a pin or a room without its shard.
type placement struct {
	room             bool
	tenant, keyspace string
	key              shardrouter.Key
}

func placements(cfg shardrouter.TopologyConfig) map[placement]shardrouter.ShardID {
	all := make(map[placement]shardrouter.ShardID, len(cfg.Pins)+len(cfg.Rooms))
	for _, p := range cfg.Pins {
		all[placement{false, p.Tenant, p.Keyspace, p.Key}] = p.Shard
	}
	for _, r := range cfg.Rooms {
		all[placement{true, r.Tenant, r.Keyspace, r.Key}] = r.Shard
	}
	return all
}

// owners maps every shard to the tenant it is dedicated to, or to "".
func owners(cfg shardrouter.TopologyConfig) map[shardrouter.ShardID]string {
	all := map[shardrouter.ShardID]string{}
	for _, id := range cfg.Shards {
		all[id] = ""
	}
	for owner, ids := range cfg.Dedicated {
		for _, id := range ids {
			all[id] = owner
		}
	}
	return all
}

// writeTopology writes what differs between both.
func writeTopology(ctx context.Context, tx *sql.Tx, old, next shardrouter.TopologyConfig) error {
	if err := writeShards(ctx, tx, old, next); err != nil {
		return err
	}
	if err := writeKeyspaces(ctx, tx, old.Keyspaces, next.Keyspaces); err != nil {
		return err
	}
	before, after := placements(old), placements(next)
	for p, shard := range before {
		if after[p] == shard {
			continue
		}
		st := stPinDelete
		if p.room {
			st = stRoomDelete
		}
		if err := execOne(ctx, tx, st, p.tenant, p.keyspace, []byte(p.key)); err != nil {
			return err
		}
	}
	for p, shard := range after {
		if before[p] == shard {
			continue
		}
		st := stPinInsert
		if p.room {
			st = stRoomInsert
		}
		if err := execOne(ctx, tx, st, p.tenant, p.keyspace, []byte(p.key), string(shard)); err != nil {
			return err
		}
	}
	return nil
}

func writeShards(ctx context.Context, tx *sql.Tx, old, next shardrouter.TopologyConfig) error {
	before, after := owners(old), owners(next)
	for id := range before {
		if _, stays := after[id]; !stays {
			if err := execOne(ctx, tx, stShardDelete, string(id)); err != nil {
				return err
			}
		}
	}
	for id, owner := range after {
		info := next.Info[id]
		weight := cmp.Or(info.Weight, 1)
		if _, had := before[id]; had {
			if old.Info[id] == info {
				continue
			}
			// MySQL's driver counts matched rows, changed or not: see execOne.
			if err := execOne(ctx, tx, stShardInfo, info.State.String(), info.Zone, weight, string(id)); err != nil {
				return err
			}
			continue
		}
		var last int64
		if err := query(ctx, tx, stShardLast, []any{owner}, func(rows *sql.Rows) error { return rows.Scan(&last) }); err != nil {
			return err
		}
		if err := execOne(ctx, tx, stShardAdd, string(id), owner, last+1, info.State.String(), info.Zone, weight); err != nil {
			return err
		}
	}
	return nil
}

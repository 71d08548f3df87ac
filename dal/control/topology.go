package control

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// kinds of rows in the statement of [Store.Topology].
const (
	rowTopology = iota
	rowShard
	rowKeyspace
	rowPin
	rowRoom
)

// Topology returns the present topology: epoch, hash, shards with what is known of them, keyspaces, pins and rooms as of one moment, read by one
// statement.
//
// It returns [ErrNotMigrated], and a [*CorruptError] for rows that make no topology, an unknown hash or strategy included.
func (s *Store) Topology(ctx context.Context) (*shardrouter.Topology, error) {
	t, err := readTopology(ctx, s.pool)
	return t, failed("read the topology", err)
}

func readTopology(ctx context.Context, q querier) (*shardrouter.Topology, error) {
	cfg := shardrouter.TopologyConfig{Dedicated: map[string][]shardrouter.ShardID{}, Info: map[shardrouter.ShardID]shardrouter.ShardInfo{}}
	err := query(ctx, q, stTopology, nil, func(rows *sql.Rows) error {
		var kind, n int64
		var key []byte
		var a, b, c, text string
		if err := rows.Scan(&kind, &key, &a, &b, &c, &n, &text); err != nil {
			return err
		}
		switch kind {
		case rowTopology:
			epoch, err := parseEpoch(n)
			cfg.Epoch, cfg.Hash = epoch, a
			return err
		case rowShard:
			return addShard(&cfg, a, b, c, n, text)
		case rowKeyspace:
			d, err := parseKeyspace(a, b, n, text)
			cfg.Keyspaces = append(cfg.Keyspaces, d.Keyspace)
			return err
		case rowPin:
			cfg.Pins = append(cfg.Pins, shardrouter.Pin{Tenant: a, Keyspace: b, Key: shardrouter.Key(key), Shard: shardrouter.ShardID(c)})
		case rowRoom:
			cfg.Rooms = append(cfg.Rooms, shardrouter.Room{Tenant: a, Keyspace: b, Key: shardrouter.Key(key), Shard: shardrouter.ShardID(c)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if cfg.Epoch == 0 {
		return nil, fmt.Errorf("there is none: %w", ErrNotMigrated)
	}
	t, err := shardrouter.NewTopology(cfg)
	if err != nil {
		return nil, &CorruptError{Table: "tdal_topology", Err: err}
	}
	return t, nil
}

// addShard reads one shard into cfg.
func addShard(cfg *shardrouter.TopologyConfig, name, owner, state string, weight int64, zone string) error {
	id, err := parseShard(name)
	if err != nil {
		return err
	}
	info := shardrouter.ShardInfo{Zone: zone, Weight: int(weight)}
	if info.State, err = shardrouter.ParseShardState(state); err != nil {
		return &CorruptError{Table: "tdal_shards", Err: err}
	}
	if info != (shardrouter.ShardInfo{Weight: 1}) {
		cfg.Info[id] = info
	}
	if owner == "" {
		cfg.Shards = append(cfg.Shards, id)
		return nil
	}
	t, err := tenant.ParseID(owner)
	if err != nil {
		return &CorruptError{Table: "tdal_shards", Err: err}
	}
	cfg.Dedicated[string(t)] = append(cfg.Dedicated[string(t)], id)
	return nil
}

// Epoch returns the epoch of the present topology: one row, by primary key. A topology read before is out of date when the epoch has grown.
//
// It returns [ErrNotMigrated] and [*CorruptError].
func (s *Store) Epoch(ctx context.Context) (shardrouter.Epoch, error) {
	const op = "read the epoch"
	var epoch shardrouter.Epoch
	err := query(ctx, s.pool, stEpoch, nil, func(rows *sql.Rows) error {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		var err error
		epoch, err = parseEpoch(n)
		return err
	})
	if err != nil {
		return 0, failed(op, err)
	}
	if epoch == 0 {
		return 0, fmt.Errorf("control: %s: there is no topology: %w", op, ErrNotMigrated)
	}
	return epoch, nil
}

// InitTopology makes the topology with epoch 1 when there is none. Where there is one it wins: the same default shards (in any order), hash and
// keyspaces are fine and change nothing, a keyspace that is not there yet is added with the next epoch, and one that is only there stays. Shards beyond
// those that are there change nothing either: [Store.JoinShards] adds them once their places are made. It returns the epoch after that. Only package
// migrations/schema calls it.
//
// Keyspaces are compared as by [Store.MatchKeyspaces]. An empty hash means [shardrouter.HashName]. It returns a [*TopologyMismatchError] where a shard is
// missing, for another hash or another definition of a keyspace, the errors of [shardrouter.NewTopology] for a configuration that makes none, or whose new keyspace the
// topology's shards cannot have, [ErrNotMigrated] and [*CorruptError]; nothing is changed then.
func (s *Store) InitTopology(ctx context.Context, shards []shardrouter.ShardID, keyspaces []shardrouter.Keyspace, hash string) (shardrouter.Epoch, error) {
	const op = "initialise the topology"
	if hash == "" {
		hash = shardrouter.HashName
	}
	want, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Hash: hash, Shards: shards, Keyspaces: keyspaces})
	if err != nil {
		return 0, failed(op, err)
	}
	var epoch shardrouter.Epoch
	err = s.tx(ctx, op, func(tx *sql.Tx) error {
		have, haveHash, err := s.lockTopology(ctx, tx)
		if err != nil {
			return err
		}
		epoch = have
		if have == 0 {
			epoch = 1
			return createTopology(ctx, tx, want)
		}
		if haveHash != hash {
			return &TopologyMismatchError{What: "hash", Have: haveHash, Want: hash}
		}
		changed, err := matchTopology(ctx, tx, want, keyspaces)
		if err != nil || !changed {
			return err
		}
		epoch = have + 1
		return execOne(ctx, tx, stEpochNext, int64(have))
	})
	if err != nil {
		return 0, err
	}
	return epoch, nil
}

// MatchShards compares the default shards of a configuration, in any order, with the topology's, and returns the present epoch.
//
// It returns a [*TopologyMismatchError] for a shard too many or too few, [ErrNotMigrated] and [*CorruptError].
func (s *Store) MatchShards(ctx context.Context, shards []shardrouter.ShardID) (shardrouter.Epoch, error) {
	const op = "compare the shards"
	t, err := readTopology(ctx, s.pool)
	if err != nil {
		return 0, failed(op, err)
	}
	if want := slices.Sorted(slices.Values(shards)); !slices.Equal(want, t.Shards()) {
		return 0, failed(op, &TopologyMismatchError{What: "shards", Have: shardList(t.Shards()), Want: shardList(want)})
	}
	return t.Epoch(), nil
}

// JoinShards adds those of the shards that the topology lacks to the default shards, in the state [shardrouter.Joining]: they own nothing until
// [Store.ChangeTopology] makes them active. It returns the epoch after that, and the shards that it added, in their order; with none nothing is written.
// The history keeps actor and reason. Where others change the topology meanwhile it tries again until ctx ends.
//
// The errors are those of [Store.ChangeTopology], [*shardrouter.DuplicateShardError] for a tenant's own shard among them.
func (s *Store) JoinShards(ctx context.Context, shards []shardrouter.ShardID, actor, reason string) (shardrouter.Epoch, []shardrouter.ShardID, error) {
	for {
		t, err := s.Topology(ctx)
		if err != nil {
			return 0, nil, err
		}
		var joined []shardrouter.ShardID
		var changes []shardrouter.Change
		for _, id := range shards {
			if !slices.Contains(t.Shards(), id) {
				joined = append(joined, id)
				changes = append(changes, shardrouter.AddShard{Shard: id, Info: shardrouter.ShardInfo{State: shardrouter.Joining}})
			}
		}
		if len(changes) == 0 {
			return t.Epoch(), nil, nil
		}
		next, _, err := s.ChangeTopology(ctx, t.Epoch(), actor, reason, nil, changes...)
		switch {
		case err == nil:
			return next.Epoch(), joined, nil
		case !errors.Is(err, ErrEpochConflict):
			return 0, nil, err
		}
	}
}

// lockTopology keeps other writers out until tx ends. It returns epoch 0 when there is no topology, and then locks nothing.
func (s *Store) lockTopology(ctx context.Context, tx *sql.Tx) (epoch shardrouter.Epoch, hash string, err error) {
	err = query(ctx, tx, s.dialect.lock, nil, func(rows *sql.Rows) error {
		var n int64
		if err := rows.Scan(&n, &hash); err != nil {
			return err
		}
		var err error
		epoch, err = parseEpoch(n)
		return err
	})
	return epoch, hash, err
}

// createTopology inserts the first topology. A duplicate key means that another process was faster: the transaction is run again.
func createTopology(ctx context.Context, tx *sql.Tx, t *shardrouter.Topology) error {
	if err := execOne(ctx, tx, stTopologyInsert, t.Hash()); err != nil {
		return err
	}
	for i, id := range t.Shards() {
		if err := execOne(ctx, tx, stShardInsert, string(id), "", i); err != nil {
			return err
		}
	}
	for _, k := range t.Keyspaces() {
		if err := defineKeyspace(ctx, tx, keyspaceDefinition{Keyspace: k}); err != nil {
			return err
		}
	}
	return nil
}

// matchTopology compares want, whose keyspaces were declared so, with what is there and inserts the keyspaces that are new. changed reports whether there
// were any.
func matchTopology(ctx context.Context, tx *sql.Tx, want *shardrouter.Topology, declared []shardrouter.Keyspace) (changed bool, err error) {
	var shards []shardrouter.ShardID
	err = query(ctx, tx, stShards, nil, func(rows *sql.Rows) error {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		id, err := parseShard(name)
		shards = append(shards, id)
		return err
	})
	if err != nil {
		return false, err
	}
	slices.Sort(shards)
	if slices.ContainsFunc(shards, func(id shardrouter.ShardID) bool { return !slices.Contains(want.Shards(), id) }) {
		return false, &TopologyMismatchError{What: "shards", Have: shardList(shards), Want: shardList(want.Shards())}
	}
	fresh, err := matchKeyspaces(ctx, tx, declared)
	if err != nil || len(fresh) == 0 {
		return false, err
	}
	have, err := readTopology(ctx, tx)
	if err != nil {
		return false, err
	}
	cfg := have.Config()
	for _, name := range fresh {
		k, _ := want.Keyspace(name)
		cfg.Keyspaces = append(cfg.Keyspaces, k)
		if err := defineKeyspace(ctx, tx, keyspaceDefinition{Keyspace: k}); err != nil {
			return false, err
		}
	}
	_, err = shardrouter.NewTopology(cfg) // its shards and their states may be others than the configuration's
	return true, err
}

func parseEpoch(n int64) (shardrouter.Epoch, error) {
	if n < 1 {
		return 0, &CorruptError{Table: "tdal_topology", Err: fmt.Errorf("epoch %d is below 1", n)}
	}
	return shardrouter.Epoch(n), nil
}

func parseShard(name string) (shardrouter.ShardID, error) {
	id, err := shardrouter.ParseShardID(name)
	if err != nil {
		return "", &CorruptError{Table: "tdal_shards", Err: err}
	}
	return id, nil
}

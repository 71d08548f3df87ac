package control

import (
	"context"
	"database/sql"
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
)

// Topology returns the present topology: epoch, hash, default shards, dedicated shards and keyspaces as of one moment, read by one statement.
//
// It returns [ErrNotMigrated], and a [*CorruptError] for rows that make no topology, an unknown hash or strategy included.
func (s *Store) Topology(ctx context.Context) (*shardrouter.Topology, error) {
	const op = "read the topology"
	cfg := shardrouter.TopologyConfig{Dedicated: map[string][]shardrouter.ShardID{}}
	err := query(ctx, s.pool, stTopology, nil, func(rows *sql.Rows) error {
		var kind, n int64
		var name, detail string
		if err := rows.Scan(&kind, &name, &detail, &n); err != nil {
			return err
		}
		switch kind {
		case rowTopology:
			epoch, err := parseEpoch(n)
			if err != nil {
				return err
			}
			cfg.Epoch, cfg.Hash = epoch, name
		case rowShard:
			id, err := parseShard(name)
			if err != nil {
				return err
			}
			if detail == "" {
				cfg.Shards = append(cfg.Shards, id)
				return nil
			}
			owner, err := tenant.ParseID(detail)
			if err != nil {
				return &CorruptError{Table: "tdal_shards", Err: err}
			}
			cfg.Dedicated[string(owner)] = append(cfg.Dedicated[string(owner)], id)
		case rowKeyspace:
			k, err := parseKeyspace(name, detail, n)
			if err != nil {
				return err
			}
			cfg.Keyspaces = append(cfg.Keyspaces, k)
		}
		return nil
	})
	if err != nil {
		return nil, failed(op, err)
	}
	if cfg.Epoch == 0 {
		return nil, fmt.Errorf("control: %s: there is none: %w", op, ErrNotMigrated)
	}
	t, err := shardrouter.NewTopology(cfg)
	if err != nil {
		return nil, failed(op, &CorruptError{Table: "tdal_topology", Err: err})
	}
	return t, nil
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
// keyspaces are fine and change nothing, a keyspace that is not there yet is added with the next epoch, and one that is only there stays. It
// returns the epoch after that. Only package migrations/schema calls it.
//
// An empty hash means [shardrouter.HashName]. It returns a [*TopologyMismatchError] for other shards, another hash or another definition of a
// keyspace, the errors of [shardrouter.NewTopology] for a configuration that makes none, [ErrNotMigrated] and [*CorruptError]; nothing is changed
// then.
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
		changed, err := matchTopology(ctx, tx, want)
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
		if err := execOne(ctx, tx, stKeyspaceInsert, k.Name, k.Strategy, k.VirtualNodes); err != nil {
			return err
		}
	}
	return nil
}

// matchTopology compares want with what is there and inserts the keyspaces that are new. changed reports whether there were any.
func matchTopology(ctx context.Context, tx *sql.Tx, want *shardrouter.Topology) (changed bool, err error) {
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
	if !slices.Equal(shards, want.Shards()) {
		return false, &TopologyMismatchError{What: "shards", Have: shardList(shards), Want: shardList(want.Shards())}
	}
	have := map[string]shardrouter.Keyspace{}
	err = query(ctx, tx, stKeyspaces, nil, func(rows *sql.Rows) error {
		var name, strategy string
		var n int64
		if err := rows.Scan(&name, &strategy, &n); err != nil {
			return err
		}
		k, err := parseKeyspace(name, strategy, n)
		have[name] = k
		return err
	})
	if err != nil {
		return false, err
	}
	for _, k := range want.Keyspaces() {
		old, known := have[k.Name]
		switch {
		case !known:
			if err := execOne(ctx, tx, stKeyspaceInsert, k.Name, k.Strategy, k.VirtualNodes); err != nil {
				return false, err
			}
			changed = true
		case !old.Equal(k):
			return false, &TopologyMismatchError{What: "keyspace " + k.Name, Have: describe(old), Want: describe(k)}
		}
	}
	return changed, nil
}

func describe(k shardrouter.Keyspace) string {
	return fmt.Sprintf("%s with %d virtual nodes", k.Strategy, k.VirtualNodes)
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

// parseKeyspace reads one keyspace. [shardrouter.NewTopology] judges name and strategy; the number must fit before it can.
func parseKeyspace(name, strategy string, virtualNodes int64) (shardrouter.Keyspace, error) {
	if virtualNodes < shardrouter.MinVirtualNodes || virtualNodes > shardrouter.MaxVirtualNodes {
		return shardrouter.Keyspace{}, &CorruptError{Table: "tdal_keyspaces", Err: fmt.Errorf("keyspace %q has %d virtual nodes", name, virtualNodes)}
	}
	return shardrouter.Keyspace{Name: name, Strategy: strategy, VirtualNodes: int(virtualNodes)}, nil
}

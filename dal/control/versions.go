package control

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// PlaceVersion is the version that one set of schema files has in one place.
type PlaceVersion struct {
	Shard   shardrouter.ShardID
	Schema  string // empty: the shard's shared tables
	Set     string
	Version int64 // of the last file that was applied
}

// Versions returns the version of every set in every place, sorted by shard, schema and set, and beside it the version that each set should have
// everywhere. A place whose version is below the target, or missing, is not migrated. Both are as of one moment.
//
// It returns [ErrNotMigrated] and [*CorruptError].
func (s *Store) Versions(ctx context.Context) ([]PlaceVersion, map[string]int64, error) {
	var all []PlaceVersion
	targets := map[string]int64{}
	err := query(ctx, s.pool, stVersions, nil, func(rows *sql.Rows) error {
		var kind int64
		var shard string
		var v PlaceVersion
		if err := rows.Scan(&kind, &shard, &v.Schema, &v.Set, &v.Version); err != nil {
			return err
		}
		if !ValidSet(v.Set) || v.Version < 0 {
			return &CorruptError{Table: "tdal_versions", Err: fmt.Errorf("set %q has version %d", v.Set, v.Version)}
		}
		if kind == 1 {
			targets[v.Set] = v.Version
			return nil
		}
		var err error
		if v.Shard, err = shardrouter.ParseShardID(shard); err != nil {
			return &CorruptError{Table: "tdal_versions", Err: err}
		}
		all = append(all, v)
		return nil
	})
	if err != nil {
		return nil, nil, failed("read the versions", err)
	}
	slices.SortFunc(all, func(a, b PlaceVersion) int {
		return strings.Compare(string(a.Shard)+"\x00"+a.Schema+"\x00"+a.Set, string(b.Shard)+"\x00"+b.Schema+"\x00"+b.Set)
	})
	return all, targets, nil
}

// SetVersion is what one place has of a set, and should have.
type SetVersion struct {
	Set     string
	Version int64 // of the last file that was applied; -1 for none
	Target  int64
}

// VersionsAt returns what one place has of every set that has a target, sorted by set, as of one moment. It reads as many rows as there are sets.
//
// It returns [ErrNotMigrated] and [*CorruptError].
func (s *Store) VersionsAt(ctx context.Context, shard shardrouter.ShardID, schema string) ([]SetVersion, error) {
	var all []SetVersion
	err := query(ctx, s.pool, stVersionsAt, []any{string(shard), schema}, func(rows *sql.Rows) error {
		var v SetVersion
		if err := rows.Scan(&v.Set, &v.Target, &v.Version); err != nil {
			return err
		}
		if !ValidSet(v.Set) || v.Version < -1 || v.Target < 0 {
			return &CorruptError{Table: "tdal_versions", Err: fmt.Errorf("set %q has version %d and target %d", v.Set, v.Version, v.Target)}
		}
		all = append(all, v)
		return nil
	})
	if err != nil {
		return nil, failed("read the versions of a place", err)
	}
	return all, nil
}

// SetTarget writes down the version that a set should have in every place. It only grows: a lower version changes nothing, so that an older
// process does not take back what a newer one demands. Only package migrations/schema calls it.
//
// It returns an error for an ill-formed set or a negative version, and [ErrNotMigrated].
func (s *Store) SetTarget(ctx context.Context, set string, version int64) error {
	if !ValidSet(set) || version < 0 {
		return fmt.Errorf("control: set %q cannot have the target %d", set, version)
	}
	return s.tx(ctx, "set a target", func(tx *sql.Tx) error {
		// Writers of targets come one after the other: the larger one wins, whoever is first.
		if _, _, err := s.lockTopology(ctx, tx); err != nil {
			return err
		}
		have, found, err := number(ctx, tx, stTarget, set)
		switch {
		case err != nil:
			return err
		case !found:
			return execOne(ctx, tx, stTargetInsert, set, version)
		case have >= version:
			return nil
		}
		return execOne(ctx, tx, stTargetUpdate, version, set, have)
	})
}

// SetVersion writes down the version that a set has in a place. Only package migrations/schema calls it, while it holds the lock of the place.
//
// It returns an error for an ill-formed shard or set or a negative version, and [ErrNotMigrated].
func (s *Store) SetVersion(ctx context.Context, v PlaceVersion) error {
	if err := v.Shard.Validate(); err != nil {
		return err
	}
	if !ValidSet(v.Set) || v.Version < 0 {
		return fmt.Errorf("control: set %q cannot have the version %d", v.Set, v.Version)
	}
	return s.tx(ctx, "set a version", func(tx *sql.Tx) error {
		have, found, err := number(ctx, tx, stVersion, string(v.Shard), v.Schema, v.Set)
		switch {
		case err != nil:
			return err
		case !found:
			return execOne(ctx, tx, stVersionInsert, string(v.Shard), v.Schema, v.Set, v.Version)
		case have == v.Version:
			return nil
		}
		return execOne(ctx, tx, stVersionUpdate, v.Version, string(v.Shard), v.Schema, v.Set)
	})
}

// ValidSet reports whether name can name a set of schema files: [a-z][a-z0-9_]{0,30}.
func ValidSet(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '_')) {
			return false
		}
	}
	return 0 < len(name) && len(name) <= 31
}

package schema

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
)

// The states of a step in tdal_checksums.
const (
	stateStarted = "started" // its statement was about to be sent
	stateApplied = "applied" // its statement took effect and goose has it in its list
)

// ownTables are the statements about the migrator's own tables in each place. They differ in types alone; none holds a value.
type ownTables struct {
	list      string // names of the library's tables in this database
	checksums string
	place     string
	heartbeat string // empty: the dialect has no replicas
}

var ownTablesOf = map[dal.Dialect]ownTables{
	dal.MySQL: {
		list: "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND LEFT(TABLE_NAME, 5) = 'tdal_'",
		checksums: "CREATE TABLE IF NOT EXISTS tdal_checksums (" +
			"set_name VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
			"version BIGINT NOT NULL, " +
			"file VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
			"checksum CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
			"state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
			"PRIMARY KEY (set_name, version)) ENGINE=InnoDB",
		place: "CREATE TABLE IF NOT EXISTS tdal_place (" +
			"id TINYINT NOT NULL, " +
			"shard VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
			"schema_name VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
			"PRIMARY KEY (id), CONSTRAINT c_tdal_place_one CHECK (id = 1)) ENGINE=InnoDB",
		heartbeat: "CREATE TABLE IF NOT EXISTS tdal_heartbeat (" +
			"id TINYINT NOT NULL, " +
			"beat BIGINT NOT NULL, " +
			"written_at DATETIME(6) NOT NULL, " +
			"PRIMARY KEY (id), CONSTRAINT c_tdal_heartbeat_one CHECK (id = 1)) ENGINE=InnoDB",
	},
	dal.Postgres: {
		list: "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND starts_with(relname, 'tdal_')",
		checksums: "CREATE TABLE IF NOT EXISTS tdal_checksums (" +
			"set_name TEXT COLLATE \"C\" NOT NULL, version BIGINT NOT NULL, file TEXT COLLATE \"C\" NOT NULL, " +
			"checksum TEXT COLLATE \"C\" NOT NULL, state TEXT COLLATE \"C\" NOT NULL, PRIMARY KEY (set_name, version))",
		place: "CREATE TABLE IF NOT EXISTS tdal_place (" +
			"id INT NOT NULL, shard TEXT COLLATE \"C\" NOT NULL, schema_name TEXT COLLATE \"C\" NOT NULL, " +
			"PRIMARY KEY (id), CONSTRAINT c_tdal_place_one CHECK (id = 1))",
	},
	dal.SQLite: {
		list: "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 5) = 'tdal_'",
		checksums: "CREATE TABLE IF NOT EXISTS tdal_checksums (" +
			"set_name TEXT NOT NULL, version INTEGER NOT NULL, file TEXT NOT NULL, checksum TEXT NOT NULL, state TEXT NOT NULL, " +
			"PRIMARY KEY (set_name, version)) STRICT",
		place: "CREATE TABLE IF NOT EXISTS tdal_place (" +
			"id INTEGER NOT NULL, shard TEXT NOT NULL, schema_name TEXT NOT NULL, " +
			"PRIMARY KEY (id), CONSTRAINT c_tdal_place_one CHECK (id = 1)) STRICT",
	},
}

// All of them read or write by primary key, or read a table of a few rows as a whole.
const (
	checksumsTable = "tdal_checksums"
	placeTable     = "tdal_place"
	heartbeatTable = "tdal_heartbeat"

	selectPlace  = "SELECT shard, schema_name FROM tdal_place WHERE id = 1"
	insertPlace  = "INSERT INTO tdal_place (id, shard, schema_name) VALUES (1, ?, ?)"
	selectSteps  = "SELECT set_name, version, file, checksum, state FROM tdal_checksums ORDER BY set_name, version"
	insertStep   = "INSERT INTO tdal_checksums (set_name, version, file, checksum, state) VALUES (?, ?, ?, ?, ?)"
	restartStep  = "UPDATE tdal_checksums SET file = ?, checksum = ?, state = ? WHERE set_name = ? AND version = ?"
	finishStep   = "UPDATE tdal_checksums SET state = ? WHERE set_name = ? AND version = ? AND state = ?"
	deleteStep   = "DELETE FROM tdal_checksums WHERE set_name = ? AND version = ? AND state = ?"
	selectDone   = "SELECT version_id FROM %s WHERE version_id > 0" // goose's list of a set
	versionTable = "tdal_version_%s"
)

// history is what a database says of itself.
type history struct {
	tables map[string]bool       // those of the library
	place  *dal.Place            // nil when it was never written down
	done   map[string][]int64    // by set: the versions in goose's list, sorted
	steps  map[string]stepsOfSet // by set
}

// stepsOfSet are the rows of tdal_checksums by version.
type stepsOfSet map[int64]step

type step struct {
	file, checksum, state string
}

// readHistory reads what a database says of itself and of the sets. It changes nothing. The lists of goose are read before the steps, so that of a
// run in progress no file is seen applied that was not seen started.
func readHistory(ctx context.Context, db *database, sets []loadedSet) (*history, error) {
	h := &history{tables: map[string]bool{}, done: map[string][]int64{}, steps: map[string]stepsOfSet{}}
	err := db.query(ctx, ownTablesOf[db.dialect].list, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		h.tables[name] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	if h.tables[placeTable] {
		err := db.query(ctx, selectPlace, func(rows *sql.Rows) error {
			h.place = &dal.Place{}
			return rows.Scan((*string)(&h.place.Shard), &h.place.Schema)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, set := range sets {
		table := fmt.Sprintf(versionTable, set.Name)
		if !h.tables[table] {
			continue
		}
		var done []int64
		err := db.query(ctx, fmt.Sprintf(selectDone, table), func(rows *sql.Rows) error {
			var v int64
			err := rows.Scan(&v)
			done = append(done, v)
			return err
		})
		if err != nil {
			return nil, err
		}
		slices.Sort(done)
		h.done[set.Name] = slices.Compact(done)
	}
	if h.tables[checksumsTable] {
		err := db.query(ctx, selectSteps, func(rows *sql.Rows) error {
			var set string
			var version int64
			var s step
			err := rows.Scan(&set, &version, &s.file, &s.checksum, &s.state)
			if h.steps[set] == nil {
				h.steps[set] = stepsOfSet{}
			}
			h.steps[set][version] = s
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// query sends a text of this package and calls scan for each row.
func (d *database) query(ctx context.Context, text string, scan func(rows *sql.Rows) error, args ...any) error {
	rows, err := d.pool.QueryContext(mark(ctx), d.text(text), args...)
	if err != nil {
		return err
	}
	for err == nil && rows.Next() {
		err = scan(rows)
	}
	return errors.Join(err, rows.Err(), rows.Close())
}

// exec sends a text of this package.
func (d *database) exec(ctx context.Context, text string, args ...any) error {
	_, err := d.pool.ExecContext(mark(ctx), d.text(text), args...)
	return err
}

// execOne sends a text of this package that matches one row, or is an error.
func (d *database) execOne(ctx context.Context, text string, args ...any) error {
	res, err := d.pool.ExecContext(mark(ctx), d.text(text), args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		verb, _, _ := strings.Cut(text, " ")
		err = fmt.Errorf("schema: %s of a step matched %d rows, want 1: another run came between", strings.ToLower(verb), n)
	}
	return err
}

// checkPlace returns an [*IdentityError] when the database was made as another place.
func (h *history) checkPlace(db *database) error {
	if h.place == nil || *h.place == db.place {
		return nil
	}
	return &IdentityError{Place: db.place, Found: *h.place, Database: db.name}
}

// prepare makes the migrator's own tables where they are missing, and writes down whose place the database is.
func (h *history) prepare(ctx context.Context, db *database) error {
	own := ownTablesOf[db.dialect]
	if !h.tables[placeTable] {
		if err := db.exec(ctx, own.place); err != nil {
			return db.grants.missing("create table "+placeTable, err)
		}
	}
	if h.place == nil {
		if err := db.execOne(ctx, insertPlace, string(db.place.Shard), db.place.Schema); err != nil {
			return err
		}
	}
	if own.heartbeat != "" && !h.tables[heartbeatTable] {
		if err := db.exec(ctx, own.heartbeat); err != nil {
			return db.grants.missing("create table "+heartbeatTable, err)
		}
	}
	if !h.tables[checksumsTable] {
		if err := db.exec(ctx, own.checksums); err != nil {
			return db.grants.missing("create table "+checksumsTable, err)
		}
	}
	return nil
}

// verdict compares what a database has of a set with the files.
type verdict struct {
	version  int64  // the last one applied
	pending  []file // sorted
	unmarked []int64
	changed  []error // [*ChecksumError]
	order    error   // [*OutOfOrderError]
	dirty    []*DirtyError
}

// judge compares. In a database that commits DDL by itself a step that was started and is not in goose's list may have taken effect.
func (h *history) judge(db *database, set loadedSet) verdict {
	var v verdict
	done, steps := h.done[set.Name], h.steps[set.Name]
	for _, version := range done {
		v.version = max(v.version, version)
		st, recorded := steps[version]
		f := set.file(version)
		e := &ChecksumError{Place: db.place, Set: set.Name, Version: version, File: st.file, Applied: st.checksum}
		switch {
		case f == nil && version > set.target():
			// A newer process was here. What it applied is its own business.
		case f == nil:
			v.changed = append(v.changed, e)
		case !recorded:
			e.File, e.Found = f.name, f.checksum
			v.changed = append(v.changed, e)
		case st.checksum != f.checksum || st.file != f.name:
			e.Found = f.checksum
			v.changed = append(v.changed, e)
		}
		if recorded && st.state == stateStarted {
			v.unmarked = append(v.unmarked, version)
		}
	}
	var late []string
	for _, f := range set.files {
		if slices.Contains(done, f.version) {
			continue
		}
		if f.version < v.version {
			late = append(late, f.name)
		}
		v.pending = append(v.pending, f)
	}
	if len(late) > 0 {
		v.order = &OutOfOrderError{Place: db.place, Set: set.Name, Files: late, Version: v.version}
	}
	if db.dialect == dal.MySQL {
		v.dirty = steps.dirty(db, set, done)
	}
	return v
}

// dirty lists the steps that may have taken effect and cannot be run again.
func (s stepsOfSet) dirty(db *database, set loadedSet, done []int64) (out []*DirtyError) {
	for version, st := range s {
		if st.state != stateStarted || slices.Contains(done, version) {
			continue
		}
		f := set.file(version)
		e := &DirtyError{Place: db.place, Set: set.Name, Version: version, File: st.file}
		switch {
		case f == nil || f.checksum != st.checksum:
			e.Changed = true
		case f.up.repeatable:
			continue
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *DirtyError) int { return cmp.Compare(a.Version, b.Version) })
	return out
}

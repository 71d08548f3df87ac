package schema

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pressly/goose/v3"
	goosedb "github.com/pressly/goose/v3/database"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// gooseDialect is goose's name of a dialect.
var gooseDialect = map[dal.Dialect]goosedb.Dialect{
	dal.SQLite: goosedb.DialectSQLite3, dal.MySQL: goosedb.DialectMySQL, dal.Postgres: goosedb.DialectPostgres,
}

// applySets brings every set to its last file, in order, and stops at the first that fails. The caller holds the database's lock.
func (r *run) applySets(ctx context.Context, db *database, lk *lock, sets []loadedSet, rep *PlaceReport) error {
	h, err := readHistory(ctx, db, sets)
	if err != nil {
		return err
	}
	if err := h.checkPlace(db); err != nil {
		return err
	}
	if err := h.prepare(ctx, db); err != nil {
		return err
	}
	for _, set := range sets {
		rep.Sets = append(rep.Sets, SetReport{Set: set.Name})
		err := r.applySet(ctx, db, lk, set, h, rep)
		// What was reached is written down even when the next file failed, and even when ctx ended.
		if rerr := r.record(ctx, db, rep.Sets[len(rep.Sets)-1]); rerr != nil {
			err = errors.Join(err, rerr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applySet applies the pending files of one set, the last of rep.
func (r *run) applySet(ctx context.Context, db *database, lk *lock, set loadedSet, h *history, rep *PlaceReport) error {
	s := &rep.Sets[len(rep.Sets)-1]
	v := h.judge(db, set)
	s.From, s.Version = v.version, v.version
	if err := errors.Join(append(v.changed, v.order)...); err != nil {
		return err
	}
	if len(v.dirty) > 0 {
		rep.File = v.dirty[0].File
		return v.dirty[0]
	}
	store, err := newStore(ctx, db, set, h)
	if err != nil {
		return err
	}
	for _, version := range v.unmarked {
		if err := db.execOne(ctx, finishStep, stateApplied, set.Name, version, stateStarted); err != nil {
			return err
		}
	}
	if len(v.pending) == 0 {
		return nil
	}
	provider, err := goose.NewProvider(goose.DialectCustom, db.pool.DB, set.fs, goose.WithStore(store),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	for _, f := range v.pending {
		_, again := h.steps[set.Name][f.version]
		if err := r.applyFile(ctx, db, lk, provider, store, f, again); err != nil {
			rep.File = f.name
			return err
		}
		s.Version = f.version
		s.Applied = append(s.Applied, f.name)
		r.cfg.Logger.DebugContext(ctx, "schema file applied", slog.String("shard", db.place.String()), slog.String("set", set.Name), slog.String("file", f.name))
	}
	return nil
}

// applyFile notes that the file is started, lets goose run it, and takes the note back when the statement is known to have had no effect.
func (r *run) applyFile(ctx context.Context, db *database, lk *lock, provider *goose.Provider, store *recorder, f file, again bool) error {
	if err := errors.Join(ctx.Err(), lk.held(ctx)); err != nil {
		return err
	}
	var err error
	if again {
		err = db.execOne(ctx, restartStep, f.name, f.checksum, stateStarted, store.set, f.version)
	} else {
		err = db.execOne(ctx, insertStep, store.set, f.version, f.name, f.checksum, stateStarted)
	}
	if err != nil {
		return err
	}
	store.ran = false
	if _, err = provider.ApplyVersion(mark(ctx), f.version, true); err == nil {
		return nil
	}
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		err = partial.Err
	}
	if db.dialect != dal.MySQL || !store.ran && hadNoEffect(err) {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		if derr := db.execOne(clean, deleteStep, store.set, f.version, stateStarted); derr != nil {
			err = errors.Join(err, derr)
		}
	}
	return db.grants.missing("apply file "+f.name, err)
}

// hadNoEffect reports an error after which a single DDL statement is known to have changed nothing: the server refused it, or never got it. A statement
// that was interrupted, or whose answer was lost, may have taken effect.
func hadNoEffect(err error) bool {
	switch wire.Code(err) {
	case 0:
		var ce *wire.ConnectError
		return errors.As(err, &ce) || errors.Is(err, wire.ErrUnmarked)
	case 1053, 1105, 1180, 1317, 1969, 3024: // shutdown, unknown, error during commit, interrupted, timed out
		return false
	}
	return true
}

// record writes down in the control database which version a set has reached in a place.
func (r *run) record(ctx context.Context, db *database, s SetReport) error {
	if db.place == (dal.Place{}) {
		return nil // the control database keeps no version of itself there
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	return r.control.setVersion(clean, db.place, s)
}

// recorder is goose's list of a set's applied files, which also notes in tdal_checksums that a file is applied: in the same transaction where DDL is
// rolled back with it, right after it where DDL commits by itself.
type recorder struct {
	goosedb.Store
	db  *database
	set string
	ran bool // the statement of the present file took effect
}

var _ goosedb.StoreExtender = (*recorder)(nil)

// newStore returns goose's list, which it makes where it is missing.
func newStore(ctx context.Context, db *database, set loadedSet, h *history) (*recorder, error) {
	table := fmt.Sprintf(versionTable, set.Name)
	inner, err := goosedb.NewStore(gooseDialect[db.dialect], table)
	if err != nil {
		return nil, err
	}
	s := &recorder{Store: inner, db: db, set: set.Name}
	if h.tables[table] {
		return s, nil
	}
	tx, err := db.pool.BeginTx(mark(ctx), nil)
	if err != nil {
		return nil, err
	}
	if err := inner.CreateVersionTable(mark(ctx), tx); err != nil {
		return nil, db.grants.missing("create table "+table, errors.Join(err, tx.Rollback()))
	}
	if err := inner.Insert(mark(ctx), tx, goosedb.InsertRequest{Version: 0}); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return s, tx.Commit()
}

// TableExists reports true: newStore made it.
func (s *recorder) TableExists(context.Context, goosedb.DBTxConn) (bool, error) { return true, nil }

// Insert adds a file to the list. goose calls it once the file's statement has succeeded.
func (s *recorder) Insert(ctx context.Context, db goosedb.DBTxConn, req goosedb.InsertRequest) error {
	s.ran = true
	if err := s.Store.Insert(ctx, db, req); err != nil {
		return err
	}
	res, err := db.ExecContext(ctx, s.db.text(finishStep), stateApplied, s.set, req.Version, stateStarted)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("schema: set %q, version %d: its step is gone from %s: another run came between", s.set, req.Version, checksumsTable)
	}
	return err
}

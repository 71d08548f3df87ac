package schema

import (
	"context"
	"errors"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
)

// controlDB is the control database, open.
type controlDB struct {
	*database
	store *control.Store
}

func newControlDB(db *database) *controlDB {
	return &controlDB{database: db, store: control.New(db.pool, string(db.dialect))}
}

func (c *controlDB) setVersion(ctx context.Context, p dal.Place, s SetReport) error {
	return c.store.SetVersion(ctx, control.PlaceVersion{Shard: p.Shard, Schema: p.Schema, Set: s.Set, Version: s.Version})
}

// makeControl makes the control database and brings its own tables to their last file. A failure names the file.
func (r *run) makeControl(ctx context.Context) []Failure {
	rep := PlaceReport{}
	err := r.applyControl(ctx, &rep)
	if len(rep.Sets) > 0 {
		r.report.Control = rep.Sets[0]
	}
	if err != nil {
		rep.Err = err
		return []Failure{rep.failure()}
	}
	return nil
}

func (r *run) applyControl(ctx context.Context, rep *PlaceReport) error {
	own, err := read(controlSet(), r.dialect)
	if err != nil {
		return err
	}
	if r.dialect == dal.SQLite {
		if err := r.makeFolder(); err != nil {
			return err
		}
		if r.folder, err = r.lockFolder(ctx); err != nil {
			return err
		}
	}
	db, err := r.openControlDB(ctx, true)
	if err != nil {
		return err
	}
	r.control = newControlDB(db)
	lk := r.folder
	if r.dialect != dal.SQLite {
		if lk, err = r.lockDatabase(ctx, db); err != nil {
			return err
		}
		defer lk.release()
	}
	return errors.Join(r.applySets(ctx, db, lk, []loadedSet{own}, rep), r.secure(ctx, db))
}

// openControl opens a control database that [Up] made.
func (r *run) openControl(ctx context.Context) error {
	if r.dialect == dal.SQLite {
		db, err := r.openControlDB(ctx, false)
		if errors.Is(err, errMissing) {
			return ErrNotMigrated
		}
		if err != nil {
			return err
		}
		r.control = newControlDB(db)
		r.folder, err = r.lockFolder(ctx)
		return err
	}
	db, err := r.openControlDB(ctx, false)
	if errors.Is(err, errMissing) {
		return ErrNotMigrated
	}
	if err == nil {
		r.control = newControlDB(db)
	}
	return err
}

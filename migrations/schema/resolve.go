package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"

	goosedb "github.com/pressly/goose/v3/database"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
)

// Resolution is what a person found out about a file that was started and not finished; see [DirtyError].
type Resolution struct {
	Place   dal.Place // zero: the control database
	Set     string
	Version int64
	// Applied says that the file's statement took effect. Otherwise it did not, and the next Up runs it.
	Applied bool
}

// Resolve writes down what became of a file that was started and not finished, so that [Up] can go on. It changes nothing else: the person who says so
// has looked.
//
// It returns [ErrNotDirty] when there is no such file, [ErrUnknownPlace], [ErrNotMigrated], [*LockedError], and an error for an invalid cfg.
func Resolve(ctx context.Context, cfg dal.Config, res Resolution) error {
	return Migrator{}.Resolve(ctx, cfg, res)
}

// Resolve is the function [Resolve] with this migrator's settings.
func (m Migrator) Resolve(ctx context.Context, cfg dal.Config, res Resolution) error {
	r, err := m.newRun("resolve", cfg, nil)
	if err != nil {
		return err
	}
	if !control.ValidSet(res.Set) {
		return fmt.Errorf("schema: resolve: set %q: %w", res.Set, ErrNotDirty)
	}
	defer r.close()
	if err := r.openControl(ctx); err != nil {
		return fmt.Errorf("schema: resolve: %w", err)
	}
	if err := r.resolve(ctx, res); err != nil {
		return fmt.Errorf("schema: resolve %s, set %q, version %d: %w", placeName(res.Place), res.Set, res.Version, err)
	}
	return nil
}

func (r *run) resolve(ctx context.Context, res Resolution) error {
	db := r.control.database
	if res.Place != (dal.Place{}) {
		p, err := r.find(ctx, res.Place)
		if err != nil {
			return err
		}
		if db, err = r.openPlace(ctx, p, false); err != nil {
			return err
		}
		defer db.close()
	}
	if r.dialect != dal.SQLite {
		lk, err := r.lockDatabase(ctx, db)
		if err != nil {
			return err
		}
		defer lk.release()
	}
	set := loadedSet{Set: Set{Name: res.Set}}
	h, err := readHistory(ctx, db, []loadedSet{set})
	if err != nil {
		return err
	}
	if err := h.checkPlace(db); err != nil {
		return err
	}
	done := h.done[res.Set]
	if h.steps[res.Set][res.Version].state != stateStarted || slices.Contains(done, res.Version) {
		return ErrNotDirty
	}
	if !res.Applied {
		return db.execOne(ctx, deleteStep, res.Set, res.Version, stateStarted)
	}
	store, err := newStore(ctx, db, set, h)
	if err != nil {
		return err
	}
	tx, err := db.pool.BeginTx(mark(ctx), nil)
	if err != nil {
		return err
	}
	if err := store.Insert(mark(ctx), tx, goosedb.InsertRequest{Version: res.Version}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return r.record(ctx, db, SetReport{Set: res.Set, Version: slices.Max(append(done, res.Version))})
}

// find returns a place of the topology or of a tenant.
func (r *run) find(ctx context.Context, want dal.Place) (plannedPlace, error) {
	places, _, failed := r.prepare(ctx, nil)
	for _, p := range places {
		if p.Place != want {
			continue
		}
		for _, f := range failed {
			if f.Place == want {
				return plannedPlace{}, f.Err
			}
		}
		return p, nil
	}
	if places == nil && len(failed) > 0 {
		return plannedPlace{}, failed[0].Err
	}
	return plannedPlace{}, ErrUnknownPlace
}

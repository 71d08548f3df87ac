package schema

import (
	"context"
	"errors"
	"slices"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/tenant"
)

// PlaceStatus says what one set has and lacks in one place.
type PlaceStatus struct {
	Place   dal.Place // zero: the control database
	Tenant  tenant.ID // whose place it is; empty for a shared one
	Set     string
	Exists  bool     // the database is there
	Version int64    // of the last file that was applied; 0 for none
	Target  int64    // of the set's last file; below Version when a newer process was here
	Pending []string // files that Up would apply, in order
	Changed []string // files that were changed, or removed, after they were applied: Up refuses them
	Dirty   []string // files whose outcome is not known and that cannot run twice: see Resolve
	Err     error    // why the place could not be read, or why Up refuses it for another reason
}

// UpToDate reports whether Up would find nothing to do or to refuse here.
func (s PlaceStatus) UpToDate() bool {
	return s.Exists && s.Err == nil && len(s.Pending)+len(s.Changed)+len(s.Dirty) == 0
}

// Status is the function [Status] with this migrator's settings.
func (m Migrator) Status(ctx context.Context, cfg dal.Config, sets ...Set) ([]PlaceStatus, error) {
	r, err := m.newRun("status", cfg, sets)
	if err != nil {
		return nil, err
	}
	registered, err := r.registered(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	own, err := read(controlSet(), r.dialect)
	if err != nil {
		return nil, err
	}
	var known []tenant.Tenant
	db, err := r.openControlDB(ctx, false)
	switch {
	case errors.Is(err, errMissing):
	case err != nil:
		return nil, err
	default:
		r.control = newControlDB(db)
		if known, err = r.control.store.Tenants(ctx); err != nil && !errors.Is(err, control.ErrNotMigrated) {
			return nil, err
		}
	}
	var controlStatus []PlaceStatus
	if r.control == nil {
		controlStatus = missing(plannedPlace{}, []loadedSet{own})
	} else {
		controlStatus = statusOf(ctx, db, plannedPlace{}, []loadedSet{own})
	}
	all, _, failed := merge(known, registered)
	places, conflicts := r.plan(all)
	refused := map[dal.Place]error{}
	for _, f := range append(failed, conflicts...) {
		if f.Place == (dal.Place{}) {
			return nil, f.Err // a tenant that cannot be placed at all
		}
		refused[f.Place] = f.Err
	}
	perPlace := make([][]PlaceStatus, len(places))
	r.each(len(places), func(i int) {
		perPlace[i] = r.statusOfPlace(ctx, places[i], refused[places[i].Place])
	})
	return append(controlStatus, slices.Concat(perPlace...)...), nil
}

func (r *run) statusOfPlace(ctx context.Context, p plannedPlace, refused error) []PlaceStatus {
	if refused != nil {
		return unreadable(p, r.sets, refused)
	}
	db, err := r.openPlace(ctx, p, false)
	switch {
	case errors.Is(err, errMissing):
		return missing(p, r.sets)
	case err != nil:
		return unreadable(p, r.sets, err)
	}
	defer db.close()
	return statusOf(ctx, db, p, r.sets)
}

func statusOf(ctx context.Context, db *database, p plannedPlace, sets []loadedSet) []PlaceStatus {
	h, err := readHistory(ctx, db, sets)
	if err != nil {
		return unreadable(p, sets, err)
	}
	all := make([]PlaceStatus, len(sets))
	for i, set := range sets {
		v := h.judge(db, set)
		s := PlaceStatus{Place: p.Place, Tenant: p.owner, Set: set.Name, Exists: true, Version: v.version, Target: set.target()}
		s.Err = errors.Join(h.checkPlace(db), v.order)
		for _, f := range v.pending {
			s.Pending = append(s.Pending, f.name)
		}
		for _, err := range v.changed {
			var ce *ChecksumError
			errors.As(err, &ce)
			s.Changed = append(s.Changed, ce.File)
		}
		for _, d := range v.dirty {
			s.Dirty = append(s.Dirty, d.File)
		}
		all[i] = s
	}
	return all
}

// missing is the status of a database that does not exist: every file is pending.
func missing(p plannedPlace, sets []loadedSet) []PlaceStatus {
	all := make([]PlaceStatus, len(sets))
	for i, set := range sets {
		all[i] = PlaceStatus{Place: p.Place, Tenant: p.owner, Set: set.Name, Target: set.target()}
		for _, f := range set.files {
			all[i].Pending = append(all[i].Pending, f.name)
		}
	}
	return all
}

func unreadable(p plannedPlace, sets []loadedSet, err error) []PlaceStatus {
	all := make([]PlaceStatus, len(sets))
	for i, set := range sets {
		all[i] = PlaceStatus{Place: p.Place, Tenant: p.owner, Set: set.Name, Target: set.target(), Err: err}
	}
	return all
}

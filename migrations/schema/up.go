package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// up does the work of [Up]. It returns the failures that kept places from being begun; those of places are in their reports.
func (r *run) up(ctx context.Context, registered []tenant.Tenant) []Failure {
	if failed := r.makeControl(ctx); failed != nil {
		return failed
	}
	epoch, err := r.control.store.InitTopology(ctx, r.cfg.Cluster.ShardIDs(), r.cfg.Keyspaces(), "")
	if err != nil {
		return one(err)
	}
	r.report.Epoch = epoch
	for _, k := range r.cfg.Keyspaces() {
		for _, w := range k.Warnings() {
			r.cfg.Logger.WarnContext(ctx, "schema: a keyspace is as it is seldom meant", "keyspace", k.Name, "warning", w)
		}
	}
	places, changed, failed := r.prepare(ctx, registered)
	if failed != nil {
		return failed
	}
	if failed := r.preflight(ctx, places); failed != nil {
		return failed
	}
	for _, set := range r.sets {
		if err := r.control.store.SetTarget(ctx, set.Name, set.target()); err != nil {
			return one(err)
		}
	}
	if failed := r.execute(ctx, places, changed); failed != nil {
		return failed
	}
	return r.join(ctx)
}

// What the history of the topology says of shards that join.
const (
	joinActor  = "schema.Up"
	joinReason = "the configuration has shards that the topology lacks"
)

// join adds the shards that the topology lacks, unless a place of theirs has failed: no store knows of a shard before its places are made.
func (r *run) join(ctx context.Context) []Failure {
	made := slices.DeleteFunc(r.cfg.Cluster.ShardIDs(), func(id shardrouter.ShardID) bool {
		return slices.ContainsFunc(r.report.Places, func(p PlaceReport) bool { return p.Place.Shard == id && p.Err != nil })
	})
	epoch, joined, err := r.control.store.JoinShards(ctx, made, joinActor, joinReason)
	if err != nil {
		return one(err)
	}
	r.report.Epoch, r.report.Joined = epoch, joined
	return nil
}

// provision does the work of [Provision].
func (r *run) provision(ctx context.Context, t tenant.Tenant) []Failure {
	if err := r.openControl(ctx); err != nil {
		return one(err)
	}
	if _, err := r.control.store.Epoch(ctx); err != nil {
		if errors.Is(err, control.ErrNotMigrated) {
			err = fmt.Errorf("%w: %w", ErrNotMigrated, err)
		}
		return one(err)
	}
	epoch, err := r.control.store.MatchShards(ctx, r.cfg.Cluster.ShardIDs())
	if err != nil {
		return one(err)
	}
	r.report.Epoch = epoch
	places, changed, failed := r.prepare(ctx, []tenant.Tenant{t})
	if failed != nil {
		return failed
	}
	var own []plannedPlace
	for _, p := range places {
		if p.owner == t.ID {
			own = append(own, p)
		}
	}
	if failed := r.preflight(ctx, own); failed != nil {
		return failed
	}
	return r.execute(ctx, own, changed)
}

// one is the failure of the control database.
func one(err error) []Failure { return []Failure{{Err: err}} }

// prepare adds the wanted tenants to those that the control database knows, and plans the places of all.
func (r *run) prepare(ctx context.Context, wanted []tenant.Tenant) (places []plannedPlace, changed []tenant.Tenant, failed []Failure) {
	known, err := r.control.store.Tenants(ctx)
	if err != nil {
		return nil, nil, one(err)
	}
	all, changed, failed := merge(known, wanted)
	if failed != nil {
		return nil, nil, failed
	}
	places, failed = r.plan(all)
	return places, changed, failed
}

// preflight reads what every place that exists has applied, and finds files that were changed before any is run.
func (r *run) preflight(ctx context.Context, places []plannedPlace) []Failure {
	failures := make([][]Failure, len(places))
	r.each(len(places), func(i int) {
		failures[i] = r.preflightPlace(ctx, places[i])
	})
	var failed []Failure
	for _, f := range failures {
		failed = append(failed, f...)
	}
	return failed
}

func (r *run) preflightPlace(ctx context.Context, p plannedPlace) (failed []Failure) {
	db, err := r.openPlace(ctx, p, false)
	if err != nil {
		return nil // missing, or unreachable: its turn comes
	}
	defer db.close()
	h, err := readHistory(ctx, db, r.sets)
	if err != nil {
		return nil // its turn comes
	}
	add := func(set, file string, err error) {
		failed = append(failed, Failure{Place: p.Place, Tenant: p.owner, Set: set, File: file, Err: err})
	}
	if err := h.checkPlace(db); err != nil {
		add("", "", err)
	}
	for _, set := range r.sets {
		v := h.judge(db, set)
		for _, err := range v.changed {
			var ce *ChecksumError
			errors.As(err, &ce)
			add(set.Name, ce.File, err)
		}
		if v.order != nil {
			add(set.Name, "", v.order)
		}
	}
	return failed
}

// execute writes the tenants down and works on the places, several at a time.
func (r *run) execute(ctx context.Context, places []plannedPlace, changed []tenant.Tenant) (failed []Failure) {
	for _, t := range changed {
		if err := r.control.store.PutTenant(ctx, t); err != nil {
			failed = append(failed, Failure{Tenant: t.ID, Err: err})
		}
	}
	if failed != nil {
		return failed
	}
	epoch, err := r.control.store.Epoch(ctx)
	if err != nil {
		return one(err)
	}
	r.report.Epoch = epoch
	r.report.Places = make([]PlaceReport, len(places))
	ended := make(chan int, len(places))
	go func() {
		defer close(ended)
		r.each(len(places), func(i int) {
			r.report.Places[i] = r.executePlace(ctx, places[i])
			ended <- i
		})
	}()
	for i := range ended {
		if r.Progress != nil {
			r.Progress(r.report.Places[i])
		}
	}
	return nil
}

// executePlace makes the place's database and applies every set.
func (r *run) executePlace(ctx context.Context, p plannedPlace) PlaceReport {
	rep := PlaceReport{Place: p.Place, Tenant: p.owner}
	if rep.Err = ctx.Err(); rep.Err != nil {
		return rep
	}
	db, err := r.openPlace(ctx, p, true)
	if err != nil {
		rep.Err = err
		return rep
	}
	defer db.close()
	lk := r.folder
	if r.dialect != dal.SQLite {
		if lk, rep.Err = r.lockDatabase(ctx, db); rep.Err != nil {
			return rep
		}
		defer lk.release()
	}
	if rep.Err = r.applySets(ctx, db, lk, r.sets, &rep); rep.Err == nil {
		rep.Err = r.secure(ctx, db)
	}
	return rep
}

// each calls fn for 0 to n-1, several at a time, and returns when all calls have.
func (r *run) each(n int, fn func(i int)) {
	var g errgroup.Group
	g.SetLimit(r.Parallelism)
	for i := range n {
		g.Go(func() error {
			fn(i)
			return nil
		})
	}
	_ = g.Wait() // fn has no errors
}

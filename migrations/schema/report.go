package schema

import (
	"slices"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Report says what a run did.
type Report struct {
	// Epoch is the topology's at the end; 0 when the run ended before there was one.
	Epoch shardrouter.Epoch
	// Joined are the shards that the run added to a topology that was there, in the state joining; nil for none.
	Joined []shardrouter.ShardID
	// Control is the control database's own set; zero for a run that did not come to it.
	Control SetReport
	// Places are all places of the run, sorted, each with its outcome; nil when the run ended before the first.
	Places []PlaceReport
}

// PlaceReport says what a run did in one place.
type PlaceReport struct {
	Place  dal.Place
	Tenant tenant.ID   // whose place it is; empty for a shared one
	Sets   []SetReport // those that were begun, in order
	File   string      // the file that failed, of the last set; empty when none did
	Err    error       // nil when every set is at its last file
}

// SetReport says what a run did with one set in one place.
type SetReport struct {
	Set     string
	From    int64    // the version before; 0 for none
	Version int64    // the version after
	Applied []string // the files that were applied, in order
}

// failure makes the failure of a place that ended with an error.
func (p PlaceReport) failure() Failure {
	f := Failure{Place: p.Place, Tenant: p.Tenant, File: p.File, Err: p.Err}
	if n := len(p.Sets); n > 0 {
		f.Set = p.Sets[n-1].Set
	}
	return f
}

// result returns the report, and one error of all failures: those given, which kept places from being begun, or those of the places.
func (r *run) result(failed []Failure) (*Report, error) {
	e := &UpError{Op: r.op, Failed: failed}
	for _, p := range r.report.Places {
		if p.Err != nil {
			e.Failed = append(e.Failed, p.failure())
		} else {
			e.Done = append(e.Done, p.Place)
		}
	}
	if len(e.Failed) == 0 {
		return &r.report, nil
	}
	slices.SortStableFunc(e.Failed, func(a, b Failure) int { return a.Place.Compare(b.Place) })
	return &r.report, e
}

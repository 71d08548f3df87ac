package saga

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tenantdal/tenantdal/dal"
)

// sweepParallelism bounds how many places a drain or a reconciliation works on at a time.
const sweepParallelism = 8

// Ended counts what one call carried on.
type Ended struct {
	Settled     int // came to their end in a warehouse
	Refunded    int // came to their end in the bag again
	Quarantined int // stopped; see Donations.Quarantined
}

// Step does once, in the caller's goroutine, what the relay's polls do: it claims what is due in every place, at most Config.PerTenant donations of
// each tenant, and carries it as far as it goes. It is for services that run the relay from a scheduler of their own, without [Donations.Start].
//
// ctx is under [tenant.System] over [TableNames]. What was done is counted also when an error is returned; a [*PlacesError] names the places that
// failed.
func (d *Donations) Step(ctx context.Context) (Ended, error) {
	if err := requireSystem(ctx, "step"); err != nil {
		return Ended{}, err
	}
	t, err := d.sweep(ctx, "step", dueTenants, d.due, claimDue)
	return t.report(), err
}

// Drain ends every donation that can be ended now: it waits for what is under way in this process, then carries on whatever is open in any place, due
// or not, leased or not, until a pass ends none. What stays open after it has a guild's place that is away, or is quarantined: see
// [Donations.Pending]. While donors go on it goes on too, until ctx ends. ctx and errors are as for [Donations.Step].
func (d *Donations) Drain(ctx context.Context) (Ended, error) {
	if err := requireSystem(ctx, "drain"); err != nil {
		return Ended{}, err
	}
	var all tally
	for {
		if err := d.relay.flush(ctx); err != nil {
			return all.report(), err
		}
		t, err := d.sweep(ctx, "drain", openTenants, d.open, claimOpen)
		all.add(t)
		if err != nil || t.ended() == 0 {
			return all.report(), err
		}
	}
}

func (t tally) report() Ended {
	return Ended{Settled: t.settled, Refunded: t.refunded, Quarantined: t.quarantined}
}

// sweep carries the open donations of every place on once: list names the tenants, ids their donations, and by claims them.
func (d *Donations) sweep(ctx context.Context, op string, list statement, ids func(context.Context, *dal.Library, openTenant) ([]ID, error), by listed) (tally, error) {
	var mu sync.Mutex
	var all tally
	err := d.everywhere(ctx, op, func(ctx context.Context, p dal.Place, lib *dal.Library) error {
		t, err := d.sweepPlace(ctx, p, lib, list, ids, by)
		mu.Lock()
		defer mu.Unlock()
		all.add(t)
		return err
	})
	return all, err
}

// everywhere runs f once for each place, some at a time. A [*PlacesError] holds the places that failed.
func (d *Donations) everywhere(ctx context.Context, op string, f func(ctx context.Context, p dal.Place, lib *dal.Library) error) error {
	places, err := d.store.Places(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := map[dal.Place]error{}
	var g errgroup.Group
	g.SetLimit(sweepParallelism)
	for _, p := range places {
		g.Go(func() error {
			lib, err := d.store.Library(p, dal.LaneSystem)
			if err == nil {
				err = f(ctx, p, lib)
			}
			if err != nil {
				mu.Lock()
				failed[p] = err
				mu.Unlock()
			}
			return nil
		})
	}
	_ = g.Wait()
	if len(failed) > 0 {
		return &PlacesError{Op: op, Failed: failed}
	}
	return nil
}

// sweepPlace carries on one place's open donations, chunk by chunk. One that fails costs none of the others their turn.
func (d *Donations) sweepPlace(ctx context.Context, p dal.Place, lib *dal.Library, list statement, ids func(context.Context, *dal.Library, openTenant) ([]ID, error), by listed) (tally, error) {
	var t tally
	work, err := d.tenants(ctx, lib, list)
	if err != nil {
		return t, err
	}
	var errs []error
	for _, w := range work {
		open, err := ids(ctx, lib, w)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for chunk := range slices.Chunk(open, maxList) {
			if err := context.Cause(ctx); err != nil {
				return t, errors.Join(append(errs, err)...)
			}
			jobs, done, err := d.claim(ctx, lib, p, w.tenant, d.relay.grounded(w.tenant, chunk), by)
			if err == nil {
				var n tally
				n, err = d.finish(ctx, p, append(done, d.decideEach(ctx, jobs)...))
				t.add(n)
			}
			errs = append(errs, err)
		}
	}
	return t, errors.Join(errs...)
}

// decideEach decides jobs of any targets, in batches of one target.
func (d *Donations) decideEach(ctx context.Context, jobs []*job) []decided {
	byTarget := map[dal.Place][]*job{}
	for _, j := range jobs {
		byTarget[j.target] = append(byTarget[j.target], j)
	}
	done := make([]decided, 0, len(jobs))
	for _, p := range sortedPlaces(byTarget) {
		for batch := range slices.Chunk(byTarget[p], d.cfg.Batch) {
			for i, v := range d.decide(ctx, p, batch) {
				done = append(done, decided{batch[i], v})
			}
		}
	}
	return done
}

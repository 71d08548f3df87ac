package saga

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// pollIn sets a site's timer. Call it with mu held.
func (r *relay) pollIn(s *site, pause time.Duration) {
	s.next = time.Now().Add(pause)
	if s.timer == nil {
		s.timer = time.AfterFunc(pause, func() { r.poll(s) })
		return
	}
	s.timer.Reset(pause)
}

// pollSoon brings a site's next poll forward to pause from now, if it is later than that. Call it with mu held.
func (r *relay) pollSoon(s *site, pause time.Duration) {
	if r.state != relayRunning {
		return
	}
	s.pause = r.d.cfg.PollMin
	if s.timer != nil && !s.polling && s.next.After(time.Now().Add(pause)) {
		r.pollIn(s, pause)
	}
}

// poll runs when a site's timer ends.
func (r *relay) poll(s *site) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != relayRunning || s.polling {
		return
	}
	s.polling = true
	r.spawn(func() {
		found, err := r.round(s.place)
		r.mu.Lock()
		defer r.mu.Unlock()
		s.polling = false
		switch {
		case err != nil && !s.failing && context.Cause(r.ctx) == nil:
			r.d.log.LogAttrs(r.ctx, slog.LevelWarn, "poll failed", slog.String("shard", s.place.String()), slog.Any("err", err))
		case err == nil && s.failing:
			r.d.log.LogAttrs(r.ctx, slog.LevelInfo, "poll works again", slog.String("shard", s.place.String()))
		}
		s.failing = err != nil
		if found > 0 {
			s.pause = r.d.cfg.PollMin
		} else {
			s.pause = min(2*s.pause, r.d.cfg.PollMax)
		}
		if r.state == relayRunning && !s.gone {
			r.pollIn(s, s.pause*3/4+mathrand.N(s.pause/2+1))
		}
	})
}

// round claims what is due in one place, at most Config.PerTenant donations of each tenant, and queues it. A tenant whose rows cannot be read delays no
// other; a place that is away ends the round.
func (r *relay) round(p dal.Place) (found int, err error) {
	lib, err := r.d.store.Library(p, dal.LaneSystem)
	if err != nil {
		return 0, err
	}
	work, err := r.d.tenants(r.ctx, lib, dueTenants)
	if err != nil {
		return 0, err
	}
	// A round that is cut short must not always serve the same ones.
	mathrand.Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
	var errs []error
	for _, w := range work {
		n, more, err := r.serve(lib, p, w)
		found += n
		if err != nil {
			errs = append(errs, err)
		}
		// A row that somebody has locked is one tenant's; a database that is away is everybody's.
		if !more || wire.IsConnection(err) || errors.Is(err, context.DeadlineExceeded) && !lost(err) || context.Cause(r.ctx) != nil {
			break
		}
	}
	return found, errors.Join(errs...)
}

// serve claims and queues what is due of one tenant, and reports whether the round may go on.
func (r *relay) serve(lib *dal.Library, p dal.Place, w openTenant) (found int, more bool, err error) {
	ids, err := r.d.due(r.ctx, lib, w)
	if err != nil {
		return 0, true, err
	}
	jobs, bad, err := r.d.claim(r.ctx, lib, p, w.tenant, r.grounded(w.tenant, ids), claimDue)
	if err != nil {
		return 0, true, err
	}
	return len(jobs) + len(bad), r.accept(jobs, bad), nil
}

// accept queues what a round claimed, and reports whether the round may go on.
func (r *relay) accept(jobs []*job, bad []decided) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range jobs {
		r.claimed(j)
	}
	for _, dj := range bad {
		r.sendBack(dj)
	}
	return r.state == relayRunning
}

// grounded returns the ids that are not under way in this process.
func (r *relay) grounded(id tenant.ID, ids []ID) []ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := ids[:0]
	for _, x := range ids {
		if _, flies := r.flying[flight{id, x}]; !flies {
			out = append(out, x)
		}
	}
	return out
}

// relist finds the places of tenants that were added since, and forgets those that are no more.
func (r *relay) relist() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != relayRunning {
		return
	}
	r.spawn(func() {
		ctx, cancel := r.d.step(r.ctx)
		defer cancel()
		places, err := r.d.store.Places(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.d.log.LogAttrs(r.ctx, slog.LevelDebug, "places not listed", slog.Any("err", err))
		}
		if r.state != relayRunning {
			return
		}
		if err == nil {
			r.know(places)
		}
		r.places.Reset(r.d.cfg.PlacesEvery)
	})
}

// know starts polls of new places and ends those of places that are no more. Call it with mu held.
func (r *relay) know(places []dal.Place) {
	known := make(map[dal.Place]bool, len(places))
	for _, p := range places {
		known[p] = true
		r.site(p)
	}
	for p, s := range r.sites {
		if !known[p] && s.applies+s.ends == 0 {
			s.gone = true
			if s.timer != nil {
				s.timer.Stop()
			}
			delete(r.sites, p)
		}
	}
}

// openTenant is a tenant with open donations of one state in one place.
type openTenant struct {
	state  State
	tenant tenant.ID
}

// tenants lists who has work in a place. A row whose tenant is none is logged and left alone: no statement could name it.
func (d *Donations) tenants(ctx context.Context, lib *dal.Library, st statement) ([]openTenant, error) {
	ctx, cancel := d.step(ctx)
	defer cancel()
	var out []openTenant
	err := each(ctx, lib, d.st(st), nil, func(rows *sql.Rows) error {
		var w openTenant
		if err := rows.Scan(&w.state, &w.tenant); err != nil {
			return err
		}
		if err := w.tenant.Validate(); err != nil {
			d.log.LogAttrs(ctx, slog.LevelWarn, "journal rows of no tenant", slog.Any("err", err))
			return nil
		}
		out = append(out, w)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("saga: list tenants with open donations: %w", err)
	}
	return out, nil
}

// due lists the donations of a tenant that have been due longest.
func (d *Donations) due(ctx context.Context, lib *dal.Library, w openTenant) ([]ID, error) {
	return d.ids(ctx, lib, w.tenant, d.st(dueIDs), w.state, string(w.tenant), d.cfg.PerTenant)
}

// open lists all donations of a tenant in one state, due or not.
func (d *Donations) open(ctx context.Context, lib *dal.Library, w openTenant) ([]ID, error) {
	return d.ids(ctx, lib, w.tenant, d.st(openIDs), w.state, string(w.tenant))
}

func (d *Donations) ids(ctx context.Context, lib *dal.Library, id tenant.ID, st *wire.Statement, args ...any) ([]ID, error) {
	ctx, cancel := d.step(ctx)
	defer cancel()
	var ids []ID
	err := each(tenant.NewContext(ctx, id), lib, st, args, func(rows *sql.Rows) error {
		var x ID
		if err := rows.Scan(&x); err != nil {
			return err
		}
		ids = append(ids, x)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("saga: list open donations of tenant %q: %w", id, err)
	}
	return ids, nil
}

// claim leases donations of one tenant, at most maxList, and reads them. Those that contradict themselves or cannot be routed come back as bad, to be
// quarantined or postponed. Fewer come back than asked for when others claimed or ended some.
func (d *Donations) claim(ctx context.Context, lib *dal.Library, p dal.Place, id tenant.ID, ids []ID, by listed) (jobs []*job, bad []decided, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	ctx, cancel := d.step(ctx)
	defer cancel()
	token := make([]byte, 16)
	_, _ = rand.Read(token) // never fails
	lease := micros(d.cfg.LeaseFor)
	tenantCtx := tenant.NewContext(ctx, id)
	st, args := by.of(d.dialect, ids, token, lease, lease, string(id))
	if _, err := d.exec(tenantCtx, lib, st, args...); err != nil {
		return nil, nil, fmt.Errorf("saga: claim donations of tenant %q in %s: %w", id, p, err)
	}
	st, args = readClaimed.of(d.dialect, ids, string(id), token)
	var claimed []*job
	err = each(tenantCtx, lib, st, args, func(rows *sql.Rows) error {
		j := &job{tenant: id, source: p}
		var state State
		var hash looseHash
		if err := rows.Scan(&j.id, &state, &j.player, &j.key, &j.guild, &j.item, &j.qty, &hash, &j.epoch, &j.attempts, &j.fence); err != nil {
			return err
		}
		j.hash = ID(hash)
		j.void = state == Voiding
		claimed = append(claimed, j)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("saga: read claimed donations of tenant %q in %s: %w", id, p, err)
	}
	for _, j := range claimed {
		if v := d.check(ctx, j); v.err != nil || v.poison != "" {
			bad = append(bad, decided{j, v})
			continue
		}
		jobs = append(jobs, j)
	}
	return jobs, bad, nil
}

// check finds the target of a job that was read from a journal, after comparing the row with itself.
func (d *Donations) check(ctx context.Context, j *job) verdict {
	if j.id != DeriveID(j.tenant, j.player, j.key) || j.hash != bodyHash(j.guild, j.item, j.qty) {
		return verdict{poison: ReasonBadRow}
	}
	r, err := d.store.Locate(ctx, j.tenant, dal.Key(GuildKeyspace, j.guild))
	if err == nil {
		j.target, j.epoch = r.Place, int64(r.Epoch)
		return verdict{}
	}
	if unroutable(err) && j.attempts >= d.cfg.MaxAttempts {
		return verdict{poison: ReasonBadRoute, err: err}
	}
	return verdict{err: err}
}

// wake brings a place's next poll forward to now.
func (r *relay) wake(p dal.Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == relayRunning {
		r.pollSoon(r.site(p), 0)
	}
}

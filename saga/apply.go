package saga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tenantdal/tenantdal/dal"
)

// verdict is what became of one job at its target.
type verdict struct {
	outcome Outcome
	reason  Reason
	poison  Reason // not empty: the donation is to be quarantined
	err     error  // it is not decided, and why
}

// decided is a job with its verdict, on its way back to the source.
type decided struct {
	job *job
	verdict
}

// errDecided reports a decision row that was there already.
var errDecided = errors.New("saga: decided already")

// decide runs T2 or T2' for jobs of one target and returns a verdict for each, in their order. It decides all of them in one transaction where it can;
// one that was decided before, or whose values are refused, costs the others the transaction and not the verdict, and a row that somebody has locked
// costs its own tenant alone.
func (d *Donations) decide(ctx context.Context, target dal.Place, jobs []*job) []verdict {
	lib, err := d.store.Library(target, dal.LaneSystem)
	if err != nil {
		return slices.Repeat([]verdict{{err: err}}, len(jobs))
	}
	verdicts := make([]verdict, len(jobs))
	all := make([]int, len(jobs))
	for i := range all {
		all[i] = i
	}
	if d.decideSome(ctx, lib, jobs, all, verdicts, once) {
		return verdicts
	}
	// Somebody holds a row: the tenants go apart, so that only the one whose row it is waits for it.
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(jobs[a].tenant, jobs[b].tenant) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && jobs[all[n]].tenant == jobs[all[0]].tenant {
			n++
		}
		d.decideSome(ctx, lib, jobs, all[:n], verdicts, d.again)
		all = all[n:]
	}
	return verdicts
}

// once runs a transaction without trying it again.
func once(_ context.Context, fn func() error) error { return fn() }

// decideSome decides the jobs of the given indexes in a step of their own. It reports false, with errors as verdicts, when they should be tried apart:
// several of them waited in vain for a lock, or lost one.
func (d *Donations) decideSome(ctx context.Context, lib *dal.Library, jobs []*job, which []int, verdicts []verdict, run func(context.Context, func() error) error) bool {
	ctx, cancel := d.step(ctx)
	defer cancel()
	some := make([]*job, len(which))
	for k, i := range which {
		some[k] = jobs[i]
	}
	if len(some) > 1 {
		got, err := d.decideAll(ctx, lib, some, run)
		if err == nil {
			for k, i := range which {
				verdicts[i] = got[k]
			}
			return true
		}
		if !errors.Is(err, errDecided) && !badData(err) {
			for _, i := range which {
				verdicts[i] = verdict{err: err}
			}
			return !lost(err) && !errors.Is(err, context.DeadlineExceeded)
		}
	}
	for k, i := range which {
		verdicts[i] = d.decideOne(ctx, lib, some[k])
	}
	return true
}

// decideOne decides one job, or reads what was decided about it.
func (d *Donations) decideOne(ctx context.Context, lib *dal.Library, j *job) verdict {
	verdicts, err := d.decideAll(ctx, lib, []*job{j}, d.again)
	switch {
	case err == nil:
		return verdicts[0]
	case errors.Is(err, errDecided):
		return d.recorded(ctx, lib, j)
	case badData(err) && j.attempts >= d.cfg.MaxAttempts:
		return verdict{poison: ReasonBadData, err: err}
	}
	return verdict{err: err}
}

// decideAll decides every job in one transaction, or none.
func (d *Donations) decideAll(ctx context.Context, lib *dal.Library, jobs []*job, run func(context.Context, func() error) error) (verdicts []verdict, err error) {
	err = run(ctx, func() error {
		verdicts = make([]verdict, len(jobs))
		return lib.Tx(system(ctx, "decide donations"), func(tx *dal.LibraryTx) error { return d.decideIn(ctx, tx, jobs, verdicts) })
	})
	if err != nil {
		return nil, err
	}
	for i, v := range verdicts {
		if v.outcome == Voided {
			d.log.LogAttrs(ctx, slog.LevelWarn, "donation voided", jobs[i].attrs(jobs[i].target)...)
		}
	}
	return verdicts, nil
}

// decideIn is the transaction's body. Decision rows come first and then the cells, each in the order of their keys, so that no two transactions over
// other donations can wait for each other in a circle.
func (d *Donations) decideIn(ctx context.Context, tx *dal.LibraryTx, jobs []*job, verdicts []verdict) error {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareID(jobs[a], jobs[b]) })
	for _, i := range order {
		j := jobs[i]
		verdicts[i] = verdict{outcome: Applied}
		if j.void {
			verdicts[i] = verdict{outcome: Voided, reason: ReasonTimeout}
		}
		_, err := tx.Exec(j.scope(ctx), d.st(insertDecision), string(j.tenant), j.id.bytes(), verdicts[i].outcome, d.text(j.player), d.text(j.guild),
			d.text(j.item), j.qty, j.hash.bytes(), d.text(string(verdicts[i].reason)), j.epoch)
		if dal.IsDuplicateKey(err) {
			return errDecided
		}
		if err != nil {
			return err
		}
	}
	slices.SortFunc(order, func(a, b int) int { return compareCell(jobs[a], jobs[b]) })
	for _, i := range order {
		if verdicts[i].outcome != Applied {
			continue
		}
		reason, err := d.credit(ctx, tx, jobs[i])
		if err != nil {
			return err
		}
		if reason != "" {
			verdicts[i] = verdict{outcome: Rejected, reason: reason}
		}
	}
	return nil
}

// credit adds the job's items to the warehouse, or turns the decision row that this transaction inserted into a rejection and returns its reason.
func (d *Donations) credit(ctx context.Context, tx *dal.LibraryTx, j *job) (Reason, error) {
	ctx = j.scope(ctx)
	guild, item := d.text(j.guild), d.text(j.item)
	n, err := changed(ctx, tx, d.st(addToWarehouse), j.qty, string(j.tenant), guild, item, j.qty, string(j.tenant), guild)
	if err != nil || n > 0 {
		return "", err
	}
	reason, err := d.refusal(ctx, tx, j)
	if err != nil || reason == "" {
		return "", err
	}
	n, err = changed(ctx, tx, d.st(rejectDecision), d.text(string(reason)), string(j.tenant), j.id.bytes())
	if err == nil && n != 1 {
		err = fmt.Errorf("saga: %d decision rows rejected, want 1", n)
	}
	return reason, err
}

// refusal finds out why no cell was credited. A cell that is not there yet is made, with the items, and is no refusal.
func (d *Donations) refusal(ctx context.Context, tx *dal.LibraryTx, j *job) (Reason, error) {
	guild, item := d.text(j.guild), d.text(j.item)
	var status int8
	found, err := first(ctx, tx, d.st(readGuild), []any{string(j.tenant), guild}, &status)
	switch {
	case err != nil:
		return "", err
	case !found:
		return ReasonNoGuild, nil
	case status != guildOpen:
		return ReasonClosed, nil
	}
	var qty int64
	found, err = first(ctx, tx, d.st(readWarehouse), []any{string(j.tenant), guild, item}, &qty)
	switch {
	case err != nil:
		return "", err
	case found && !fits(qty, j.qty):
		return ReasonOverflow, nil
	case found: // it was credited or emptied, or the guild opened, since the update looked
		return "", errAgain
	}
	_, err = tx.Exec(ctx, d.st(insertWarehouse), string(j.tenant), guild, item, j.qty)
	if dal.IsDuplicateKey(err) {
		return "", errAgain
	}
	return "", err
}

// recorded reads the decision that stands. One about another body is poison: it belongs to something else than this donation.
func (d *Donations) recorded(ctx context.Context, lib *dal.Library, j *job) verdict {
	var v verdict
	var hash looseHash
	var player string
	found, err := first(j.scope(ctx), lib, d.st(readDecision), []any{string(j.tenant), j.id.bytes()}, &v.outcome, &hash, &player, &v.reason)
	switch {
	case err != nil:
		return verdict{err: err}
	case !found:
		return verdict{err: errAgain} // whoever was deciding rolled back: the next attempt decides
	case ID(hash) != j.hash || player != j.player:
		return verdict{poison: ReasonBodyMismatch}
	case v.outcome == Voided: // by another, or by this process, whose COMMIT lost its answer
		d.log.LogAttrs(ctx, slog.LevelDebug, "donation was voided before", j.attrs(j.target)...)
	}
	return v
}

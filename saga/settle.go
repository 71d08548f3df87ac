package saga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// tally counts what became of donations on the player's side.
type tally struct {
	settled, refunded, quarantined int
	postponed                      int // to be tried again
	passed                         int // another relay has taken over, or ended it
}

func (t *tally) add(o tally) {
	t.settled += o.settled
	t.refunded += o.refunded
	t.quarantined += o.quarantined
	t.postponed += o.postponed
	t.passed += o.passed
}

// ended returns the number of donations that came to an end.
func (t tally) ended() int { return t.settled + t.refunded }

// group is a set of jobs that one statement can name: of one tenant, under one fence.
type group struct {
	tenant tenant.ID
	fence  int64
	pause  time.Duration // before the next attempt
	ids    []ID
}

// attrs are what every log record about the group holds.
func (g *group) attrs(p dal.Place, more ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{slog.String("tenant", string(g.tenant)), slog.String("shard", p.String()), slog.Any("sagas", idList(g.ids))}, more...)
}

// idList is ids that become text only when a record is written.
type idList []ID

// LogValue returns the ids as a list of texts.
func (l idList) LogValue() slog.Value {
	all := make([]string, len(l))
	for i, id := range l {
		all[i] = id.String()
	}
	return slog.AnyValue(all)
}

// finish runs T3 and T3' for decided jobs of one source: applied donations are settled in batches, refused ones refunded each in a transaction of its
// own, undecided ones postponed. What fails here is found again by a poll.
func (d *Donations) finish(ctx context.Context, source dal.Place, done []decided) (tally, error) {
	lib, err := d.store.Library(source, dal.LaneSystem)
	if err != nil {
		return tally{}, err
	}
	var t tally
	var errs []error
	var settle, refund, postpone []decided
	for _, dj := range done {
		switch {
		case dj.poison != "":
			errs = append(errs, d.quarantine(ctx, lib, source, dj, &t))
		case dj.err != nil:
			if errors.Is(dj.err, errNoRoom) || errors.Is(dj.err, errTwice) {
				dj.job.attempts = 1 // it was not tried: the shortest pause will do
			}
			postpone = append(postpone, dj)
		case dj.outcome == Applied:
			settle = append(settle, dj)
		default:
			refund = append(refund, dj)
		}
	}
	for _, g := range grouped(settle, func(*job) time.Duration { return 0 }) {
		errs = append(errs, d.settle(ctx, lib, source, g, &t))
	}
	blocked := map[tenant.ID]error{} // whoever's row is locked waits alone
	for _, dj := range refund {
		if err := blocked[dj.job.tenant]; err != nil {
			dj.err = err
			postpone = append(postpone, dj)
			continue
		}
		if err := d.refund(ctx, lib, source, dj, &t); err != nil {
			errs = append(errs, err)
			if lost(err) || errors.Is(err, context.DeadlineExceeded) {
				blocked[dj.job.tenant] = err
			}
		}
	}
	pause := func(j *job) time.Duration { return backoff(d.cfg.RetryMin, d.cfg.RetryMax, j.attempts) }
	for _, g := range grouped(postpone, pause) {
		errs = append(errs, d.postpone(ctx, lib, g, &t))
	}
	for _, dj := range postpone {
		d.log.LogAttrs(ctx, slog.LevelDebug, "donation postponed", dj.job.attrs(source, slog.Any("err", dj.err))...)
	}
	return t, errors.Join(errs...)
}

// grouped puts jobs of one tenant, fence and number of attempts together, at most maxList a group, in order.
func grouped(done []decided, pause func(*job) time.Duration) []group {
	slices.SortFunc(done, func(a, b decided) int {
		return cmp.Or(cmp.Compare(a.job.tenant, b.job.tenant), cmp.Compare(a.job.fence, b.job.fence), cmp.Compare(a.job.attempts, b.job.attempts),
			compareID(a.job, b.job))
	})
	var groups []group
	attempts := 0
	for _, dj := range done {
		j := dj.job
		if n := len(groups); n == 0 || groups[n-1].tenant != j.tenant || groups[n-1].fence != j.fence || attempts != j.attempts || len(groups[n-1].ids) == maxList {
			groups = append(groups, group{tenant: j.tenant, fence: j.fence, pause: pause(j)})
		}
		attempts = j.attempts
		last := &groups[len(groups)-1]
		last.ids = append(last.ids, j.id)
	}
	return groups
}

// settle runs T3 for one group.
func (d *Donations) settle(ctx context.Context, lib *dal.Library, source dal.Place, g group, t *tally) error {
	ctx, cancel := d.step(ctx)
	defer cancel()
	st, args := settleJournal.of(d.dialect, g.ids, string(g.tenant), g.fence)
	n, err := d.exec(tenant.NewContext(ctx, g.tenant), lib, st, args...)
	if err != nil {
		d.log.LogAttrs(ctx, slog.LevelDebug, "donations not settled", g.attrs(source, slog.Any("err", err))...)
		return fmt.Errorf("saga: settle %d donations of tenant %q in %s: %w", len(g.ids), g.tenant, source, err)
	}
	t.settled += int(n)
	t.passed += len(g.ids) - int(n)
	// With a count below the number of ids, the others were settled, or will be, by whoever claimed them since: all of them were applied.
	d.log.LogAttrs(ctx, slog.LevelDebug, "donations settled", g.attrs(source, slog.Int64("count", n))...)
	return nil
}

// postpone makes a group due later. Its number of attempts grew when it was claimed or handed over.
func (d *Donations) postpone(ctx context.Context, lib *dal.Library, g group, t *tally) error {
	ctx, cancel := d.step(ctx)
	defer cancel()
	st, args := postponeJournal.of(d.dialect, g.ids, micros(g.pause), string(g.tenant), g.fence)
	t.postponed += len(g.ids)
	_, err := d.exec(tenant.NewContext(ctx, g.tenant), lib, st, args...)
	return err
}

// The refund's own reasons to roll back.
var (
	errPassed  = errors.New("saga: refunded or claimed by another")
	errBagFull = errors.New("saga: the bag's cell would pass 2^63-1")
)

// refund runs T3' for one job: the compare-and-set on the journal row and the bag, in one transaction.
func (d *Donations) refund(ctx context.Context, lib *dal.Library, source dal.Place, dj decided, t *tally) error {
	ctx, cancel := d.step(ctx)
	defer cancel()
	j := dj.job
	tenantCtx := j.scope(ctx)
	err := d.again(ctx, func() error {
		return lib.Tx(tenantCtx, func(tx *dal.LibraryTx) error { return d.giveBack(tenantCtx, tx, dj) })
	})
	switch {
	case err == nil:
		t.refunded++
		d.log.LogAttrs(tenantCtx, slog.LevelWarn, "donation refunded", j.attrs(source, slog.String("reason", string(dj.reason)))...)
		return nil
	case errors.Is(err, errPassed):
		t.passed++
		return nil
	case errors.Is(err, errBagFull) && j.attempts >= d.cfg.MaxAttempts:
		dj.poison = ReasonBagFull
		return d.quarantine(ctx, lib, source, dj, t)
	case errors.Is(err, errBagFull):
		return d.postpone(ctx, lib, group{j.tenant, j.fence, backoff(d.cfg.RetryMin, d.cfg.RetryMax, j.attempts), []ID{j.id}}, t)
	}
	d.log.LogAttrs(tenantCtx, slog.LevelDebug, "donation not refunded", j.attrs(source, slog.Any("err", err))...)
	return fmt.Errorf("saga: refund donation %s of tenant %q in %s: %w", j.id, j.tenant, source, err)
}

// giveBack is T3's body: the journal row, then the bag.
func (d *Donations) giveBack(ctx context.Context, tx *dal.LibraryTx, dj decided) error {
	j := dj.job
	n, err := changed(ctx, tx, d.st(refundJournal), d.text(string(dj.reason)), string(j.tenant), j.id.bytes(), j.fence)
	if err != nil {
		return err
	}
	if n == 0 {
		return errPassed
	}
	err = d.add(ctx, tx, cell{j.tenant, bagSide, j.player, j.item}, j.qty)
	if errors.Is(err, ErrOverflow) {
		return errBagFull
	}
	return err
}

// quarantine stops the sending of one donation. Its items stay pending.
func (d *Donations) quarantine(ctx context.Context, lib *dal.Library, source dal.Place, dj decided, t *tally) error {
	ctx, cancel := d.step(ctx)
	defer cancel()
	j := dj.job
	tenantCtx := j.scope(ctx)
	n, err := d.exec(tenantCtx, lib, d.st(quarantineJournal), d.text(string(dj.poison)), string(j.tenant), j.id.bytes(), j.fence)
	if err != nil {
		return fmt.Errorf("saga: quarantine donation %s of tenant %q in %s: %w", j.id, j.tenant, source, err)
	}
	if n == 0 {
		t.passed++
		return nil
	}
	t.quarantined++
	d.log.LogAttrs(tenantCtx, slog.LevelWarn, "donation quarantined", j.attrs(source, slog.String("reason", string(dj.poison)), slog.Any("err", dj.err))...)
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// patience is how long one line is tried while its shard is away, and how long the end waits without any donation ending.
const patience = 2 * time.Minute

// donate applies the setup lines, sends every donation and waits until all have ended or are quarantined. It returns how many lines it sent and how long
// that took, from the first line sent to the last donation ended.
func (w *work) donate(ctx context.Context) (sent int, took time.Duration, err error) {
	if err := patiently(ctx, func() error { return w.donations.Start(ctx) }); err != nil {
		return 0, 0, err
	}
	defer func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		err = errors.Join(err, w.donations.Close(drain))
	}()
	if err := w.setup(ctx); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := w.send(ctx); err != nil {
		return 0, 0, err
	}
	if err := w.await(ctx); err != nil {
		return 0, 0, err
	}
	return len(w.trace.Donations), time.Since(start), nil
}

// setup applies the tenant, guild, stock and grant lines, each once: its ledger row stands for it, in the transaction of its effect. Lines about one
// guild or one player keep their order; others do not meet.
func (w *work) setup(ctx context.Context) error {
	bar := w.say.bar("setup", len(w.trace.Setup))
	defer bar.end()
	return w.each(ctx, setupChains(w.trace.Setup), func(ctx context.Context, l trace.Line) error {
		return bar.count(w.patient(ctx, l, func() error { return w.apply(ctx, l) }))
	})
}

// setupChains groups setup lines by what they change.
func setupChains(lines []trace.Line) [][]trace.Line {
	type owner struct{ tenant, guild, player string }
	var chains [][]trace.Line
	index := map[owner]int{}
	for _, l := range lines {
		o := owner{l.Tenant, l.Guild, l.Player}
		i, ok := index[o]
		if !ok {
			i = len(chains)
			index[o] = i
			chains = append(chains, nil)
		}
		chains[i] = append(chains[i], l)
	}
	return chains
}

// apply carries out one setup line.
func (w *work) apply(ctx context.Context, l trace.Line) error {
	ctx = tenant.NewContext(ctx, tenant.ID(l.Tenant))
	id := fmt.Sprintf("line-%d", l.No)
	switch l.Op {
	case trace.OpTenant:
		return nil // registered by schema.Up
	case trace.OpGuild:
		return w.donations.SetGuildOnce(ctx, id, l.Guild, l.Status == trace.Open)
	case trace.OpStock:
		return w.donations.Stock(ctx, id, l.Guild, l.Item, l.Qty)
	case trace.OpGrant:
		return w.donations.Grant(ctx, id, l.Player, l.Item, l.Qty)
	}
	return fmt.Errorf("line %d: unknown op %q", l.No, l.Op)
}

// send lets the donors donate: lines of one key keep their order, all others are concurrent.
func (w *work) send(ctx context.Context) error {
	bar := w.say.bar("donations", len(w.trace.Donations))
	defer bar.end()
	return w.each(ctx, trace.Chains(w.trace.Donations), func(ctx context.Context, l trace.Line) error {
		return bar.count(w.patient(ctx, l, func() error {
			_, err := w.donations.Donate(tenant.NewContext(ctx, tenant.ID(l.Tenant)), saga.Donation{
				Key: l.Key, Player: l.Player, Guild: l.Guild, Item: l.Item, Qty: l.Qty,
			})
			if rejected(err) {
				return nil // an outcome: nothing happened, and nothing is left behind
			}
			return err
		}))
	})
}

// rejected reports an error that is an outcome.
func rejected(err error) bool {
	for _, outcome := range []error{
		saga.ErrInsufficient, saga.ErrConflict, saga.ErrQuantity, saga.ErrField,
		tenant.ErrNoTenant, tenant.ErrInvalidID, tenant.ErrUnknownTenant,
	} {
		if errors.Is(err, outcome) {
			return true
		}
	}
	return false
}

// each runs the chains over the workers; the first error stops them all.
func (w *work) each(ctx context.Context, chains [][]trace.Line, do func(context.Context, trace.Line) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(w.workers, len(chains)) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(chains) {
					return nil
				}
				for _, l := range chains[i] {
					if err := ctx.Err(); err != nil {
						return context.Cause(ctx)
					}
					if err := do(ctx, l); err != nil {
						return err
					}
				}
			}
		})
	}
	return g.Wait()
}

// patient tries a line again while time may mend what failed, at most for [patience]: everything it calls may be called again. Any other error ends the
// run.
func (w *work) patient(ctx context.Context, l trace.Line, do func() error) error {
	deadline := time.Now().Add(patience)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passing(err) || time.Now().After(deadline):
			return fmt.Errorf("line %d: %w", l.No, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// passing reports an error that time may mend: a shard that is away or busy, a limit of the tenant, a transaction that was poisoned, a commit whose answer
// was lost.
func passing(err error) bool {
	return dal.SafeToRetry(err) || dal.IsConnection(err) || dal.IsRetryable(err) || dal.IsTimeout(err) || dal.IsQuota(err) ||
		errors.Is(err, dal.ErrPoisoned) || errors.Is(err, dal.ErrOutcomeUnknown) || errors.Is(err, saga.ErrUnknownOutcome) || errors.Is(err, saga.ErrContended)
}

// await waits until no donation is open, or those that are open are quarantined, which only an operator ends: it names some of them. It gives up when
// none ended for long.
func (w *work) await(ctx context.Context) error {
	last, since := int64(-1), time.Now()
	var told sync.Once
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if _, err := w.donations.Drain(system(ctx)); err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		open, quarantined, err := w.open(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && open == quarantined:
			return w.tellQuarantined(ctx, quarantined)
		case err == nil && open != last:
			last, since = open, time.Now()
			told.Do(func() { w.say.step("waiting for %d donations to end", open) })
		case time.Since(since) > patience:
			if err != nil {
				return err
			}
			return fmt.Errorf("%d donations have not ended", open)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// maxTold is how many quarantined donations are named.
const maxTold = 5

// tellQuarantined says how many donations are quarantined and names the first of them. The report counts them as pending.
func (w *work) tellQuarantined(ctx context.Context, n int64) error {
	if n == 0 {
		return nil
	}
	var all []saga.QuarantinedDonation
	err := patiently(ctx, func() (err error) {
		all, err = w.donations.Quarantined(system(ctx))
		return err
	})
	if err != nil {
		return err
	}
	w.say.step("%d donations are quarantined: their items are neither in a bag nor in a warehouse until they are replayed", n)
	for _, q := range all[:min(len(all), maxTold)] {
		w.say.step("  tenant %s, donation %s on %s: %s after %d attempts", q.Tenant, q.SagaID, q.Place, q.Reason, q.Attempts)
	}
	if len(all) > maxTold {
		w.say.step("  and %d more", len(all)-maxTold)
	}
	return nil
}

// open returns the number of donations that hold items, and how many of them are quarantined.
func (w *work) open(ctx context.Context) (open, quarantined int64, err error) {
	backlogs, err := w.donations.Pending(system(ctx))
	for _, b := range backlogs {
		open += b.Open()
		quarantined += b.Quarantined
	}
	return open, quarantined, err
}

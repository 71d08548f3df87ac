package saga

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// pageSize is how many decision rows a page of the audit holds.
const pageSize = 1024

// ReconcileReport says what a reconciliation found and did.
type ReconcileReport struct {
	Ended
	// Open is what is still open in each place: those whose guild's place is away, those that came meanwhile, and the quarantined.
	Open []Backlog
	// Quarantine lists what only [Donations.Replay] moves on.
	Quarantine []QuarantinedDonation
	// Alarms lists credits that no donation accounts for, sorted by tenant and id. Nothing is changed about them.
	Alarms []Alarm
}

// AlarmKind says what is wrong with a credit.
type AlarmKind string

// The kinds of alarms.
const (
	// AlarmOrphan: a credit without a journal row, as after restoring the player's shard from a backup, or by a forged event.
	AlarmOrphan AlarmKind = "orphan"
	// AlarmMismatch: a credit whose journal row has another body.
	AlarmMismatch AlarmKind = "mismatch"
	// AlarmRefunded: a credit whose journal row says that the items were refunded.
	AlarmRefunded AlarmKind = "refunded"
)

// Alarm is a credit that no donation accounts for.
type Alarm struct {
	Kind   AlarmKind
	Tenant tenant.ID
	SagaID ID
	Place  dal.Place // of the decision row
	Player string
	Guild  string
	Item   string
	Qty    int64
}

// Reconcile finds what is half done in every place and ends it, by the code that the relay runs, whoever had leased it; what this process is carrying on
// already it leaves to itself. Then it looks the other way, from each credit to its journal row, and lists those that have none as alarms, which it
// never mends. It may run at any time, beside relays and donors. It reads every decision row.
//
// ctx is under [tenant.System] over [TableNames]. The report holds what was done also beside an error; a [*PlacesError] names the places that failed.
func (d *Donations) Reconcile(ctx context.Context) (ReconcileReport, error) {
	if err := requireSystem(ctx, "reconcile"); err != nil {
		return ReconcileReport{}, err
	}
	var rep ReconcileReport
	t, err := d.sweep(ctx, "reconcile", openTenants, d.open, claimOpen)
	rep.Ended = t.report()
	errs := []error{err}
	rep.Alarms, err = d.audit(ctx)
	errs = append(errs, err)
	rep.Quarantine, err = d.Quarantined(ctx)
	errs = append(errs, err)
	rep.Open, err = d.Pending(ctx)
	return rep, errors.Join(append(errs, err)...)
}

// credit is a decision row that credited a warehouse.
type credit struct {
	Alarm
	hash ID
}

// flight names the credit's donation.
func (c *credit) flight() flight { return flight{c.Tenant, c.SagaID} }

// idsOf returns the ids of the credits' donations.
func idsOf(credits []credit) []ID {
	ids := make([]ID, len(credits))
	for i, c := range credits {
		ids[i] = c.SagaID
	}
	return ids
}

// audit compares every credit with its journal row.
func (d *Donations) audit(ctx context.Context) ([]Alarm, error) {
	var mu sync.Mutex
	var all []Alarm
	err := d.everywhere(ctx, "reconcile", func(ctx context.Context, p dal.Place, lib *dal.Library) error {
		var last credit
		for {
			page, err := d.credits(ctx, p, lib, last)
			if err != nil {
				return err
			}
			alarms, err := d.accounted(ctx, page)
			if err != nil {
				return err
			}
			mu.Lock()
			all = append(all, alarms...)
			mu.Unlock()
			if len(page) < pageSize {
				return nil
			}
			last = page[len(page)-1]
		}
	})
	slices.SortFunc(all, func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), slices.Compare(a.SagaID[:], b.SagaID[:]), a.Place.Compare(b.Place))
	})
	for _, a := range all {
		d.log.LogAttrs(ctx, slog.LevelWarn, "credit without a donation", slog.String("tenant", string(a.Tenant)), slog.String("shard", a.Place.String()),
			slog.String("saga", a.SagaID.String()), slog.String("kind", string(a.Kind)))
	}
	return all, err
}

// credits reads the page of credits behind last.
func (d *Donations) credits(ctx context.Context, p dal.Place, lib *dal.Library, last credit) ([]credit, error) {
	page := make([]credit, 0, pageSize)
	err := each(ctx, lib, d.st(listApplied), []any{string(last.Tenant), string(last.Tenant), last.SagaID.bytes(), pageSize}, func(rows *sql.Rows) error {
		c := credit{Alarm: Alarm{Place: p}}
		err := rows.Scan(&c.Tenant, &c.SagaID, &c.Player, &c.Guild, &c.Item, &c.Qty, (*looseHash)(&c.hash))
		page = append(page, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("saga: list credits in %s: %w", p, err)
	}
	return page, nil
}

// accounted returns the credits that their journal rows do not account for. A journal row was committed before the credit, so it must be there.
func (d *Donations) accounted(ctx context.Context, page []credit) ([]Alarm, error) {
	var alarms []Alarm
	type line struct {
		place  dal.Place
		tenant tenant.ID
	}
	lines := map[line][]credit{}
	for _, c := range page {
		r, err := d.store.Locate(ctx, c.Tenant, dal.Key(PlayerKeyspace, c.Player))
		switch {
		case err == nil:
			at := line{r.Place, c.Tenant}
			lines[at] = append(lines[at], c)
		case unroutable(err):
			c.Kind = AlarmOrphan
			alarms = append(alarms, c.Alarm)
		default:
			return nil, err
		}
	}
	for at, credits := range lines {
		lib, err := d.store.Library(at.place, dal.LaneSystem)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(credits, maxList) {
			rows, err := d.journals(ctx, lib, at.tenant, chunk)
			if err != nil {
				return nil, fmt.Errorf("saga: read the journal in %s: %w", at.place, err)
			}
			for _, c := range chunk {
				row, found := rows[c.SagaID]
				switch {
				case !found:
					c.Kind = AlarmOrphan
				case row.hash != c.hash:
					c.Kind = AlarmMismatch
				case row.state == Refunded:
					c.Kind = AlarmRefunded
				default:
					continue
				}
				alarms = append(alarms, c.Alarm)
			}
		}
	}
	return alarms, nil
}

// journaled is what the audit needs of a journal row.
type journaled struct {
	state State
	hash  ID
}

// journals reads the journal rows of up to maxList credits of one tenant.
func (d *Donations) journals(ctx context.Context, lib *dal.Library, id tenant.ID, credits []credit) (map[ID]journaled, error) {
	out := make(map[ID]journaled, len(credits))
	st, args := readJournals.of(d.dialect, idsOf(credits), string(id))
	err := each(tenant.NewContext(ctx, id), lib, st, args, func(rows *sql.Rows) error {
		var x ID
		var j journaled
		err := rows.Scan(&x, &j.state, (*looseHash)(&j.hash))
		out[x] = j
		return err
	})
	return out, err
}

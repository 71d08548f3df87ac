package saga

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// Backlog counts the donations that hold items in one place.
type Backlog struct {
	Place       dal.Place
	Pending     int64
	Voiding     int64
	Quarantined int64
	Oldest      time.Duration // the age of the oldest of them, by the place's clock; 0 when there is none
}

// Open returns the number of donations that hold items.
func (b Backlog) Open() int64 { return b.Pending + b.Voiding + b.Quarantined }

// Pending counts the open donations of every place, sorted by place; places without any are in the list with zeros. ctx is under [tenant.System] over
// [TableNames]. Places that were read are returned also beside a [*PlacesError].
func (d *Donations) Pending(ctx context.Context) ([]Backlog, error) {
	if err := requireSystem(ctx, "pending"); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all []Backlog
	err := d.everywhere(ctx, "pending", func(ctx context.Context, p dal.Place, lib *dal.Library) error {
		b := Backlog{Place: p}
		err := each(ctx, lib, d.st(countOpen), nil, func(rows *sql.Rows) error {
			var state State
			var n, age int64
			if err := rows.Scan(&state, &n, &age); err != nil {
				return err
			}
			switch state {
			case Pending:
				b.Pending = n
			case Voiding:
				b.Voiding = n
			case Quarantined:
				b.Quarantined = n
			}
			b.Oldest = max(b.Oldest, time.Duration(age)*time.Microsecond)
			return nil
		})
		if err != nil {
			return fmt.Errorf("saga: count open donations in %s: %w", p, err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, b)
		return nil
	})
	slices.SortFunc(all, func(a, b Backlog) int { return a.Place.Compare(b.Place) })
	return all, err
}

// QuarantinedDonation is a donation that was stopped. Its items are pending.
type QuarantinedDonation struct {
	Tenant   tenant.ID
	SagaID   ID
	Place    dal.Place // of its journal row
	Donation Donation
	Reason   Reason
	Attempts int
}

// Quarantined lists the quarantined donations of every place, sorted by tenant and id. ctx and errors are as for [Donations.Pending].
func (d *Donations) Quarantined(ctx context.Context) ([]QuarantinedDonation, error) {
	if err := requireSystem(ctx, "quarantined"); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all []QuarantinedDonation
	err := d.everywhere(ctx, "quarantined", func(ctx context.Context, p dal.Place, lib *dal.Library) error {
		return each(ctx, lib, d.st(listQuarantined), nil, func(rows *sql.Rows) error {
			q := QuarantinedDonation{Place: p}
			err := rows.Scan(&q.Tenant, &q.SagaID, &q.Donation.Player, &q.Donation.Key, &q.Donation.Guild, &q.Donation.Item, &q.Donation.Qty, &q.Reason, &q.Attempts)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, q)
			return nil
		})
	})
	slices.SortFunc(all, func(a, b QuarantinedDonation) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), slices.Compare(a.SagaID[:], b.SagaID[:]))
	})
	return all, err
}

// Replay makes a quarantined donation pending again, with all its attempts and a new Config.VoidAfter before it. It reports whether this call did so:
// of two at a time one does, and a donation that is not quarantined (any more) is left alone. ctx is under [tenant.System] over [TableNames].
func (d *Donations) Replay(ctx context.Context, q QuarantinedDonation) (bool, error) {
	if err := requireSystem(ctx, "replay"); err != nil {
		return false, err
	}
	lib, err := d.store.Library(q.Place, dal.LaneSystem)
	if err != nil {
		return false, fmt.Errorf("saga: replay: %w", err)
	}
	tenantCtx := tenant.NewContext(ctx, q.Tenant)
	n, err := d.exec(tenantCtx, lib, d.st(replayJournal), d.voidAfter(), string(q.Tenant), q.SagaID.bytes())
	if err != nil {
		return false, fmt.Errorf("saga: replay donation %s of tenant %q in %s: %w", q.SagaID, q.Tenant, q.Place, err)
	}
	if n > 0 {
		d.log.LogAttrs(tenantCtx, slog.LevelInfo, "donation replayed", slog.String("tenant", string(q.Tenant)), slog.String("shard", q.Place.String()),
			slog.String("saga", q.SagaID.String()))
		d.relay.wake(q.Place)
	}
	return n > 0, nil
}

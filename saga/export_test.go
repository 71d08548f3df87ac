package saga

import (
	"context"

	"github.com/tenantdal/tenantdal/dal"
)

// The parts of a step that tests force into an order.

// DecideForTest runs T2 (or T2' with void) for one donation, as a relay does that was told about it at any time, any number of times.
func (d *Donations) DecideForTest(ctx context.Context, don Donation, void bool) (Outcome, Reason, error) {
	j, err := d.prepare(ctx, don)
	if err != nil {
		return 0, "", err
	}
	j.void = void
	v := d.decide(system(ctx, "test"), j.target, []*job{j})[0]
	if v.poison != "" {
		return 0, v.poison, v.err
	}
	return v.outcome, v.reason, v.err
}

// RefundForTest runs T3' for one donation under a fence and reports whether this call refunded.
func (d *Donations) RefundForTest(ctx context.Context, don Donation, fence int64) (bool, error) {
	j, err := d.prepare(ctx, don)
	if err != nil {
		return false, err
	}
	j.fence = fence
	t, err := d.finish(system(ctx, "test"), j.source, []decided{{j, verdict{outcome: Rejected, reason: ReasonClosed}}})
	return t.refunded == 1, err
}

// SourceForTest and TargetForTest return the places of a donation.
func (d *Donations) SourceForTest(ctx context.Context, don Donation) (source, target dal.Place, err error) {
	j, err := d.prepare(ctx, don)
	if err != nil {
		return source, target, err
	}
	return j.source, j.target, nil
}

// BodyHash is bodyHash.
var BodyHash = bodyHash

package quota

import (
	"fmt"
	"math"

	"github.com/tenantdal/tenantdal/tenant"
)

// bounds are a tenant's limits with all defaults filled in.
type bounds struct {
	rate  float64 // statements per second, or unlimited
	burst int     // at least 1
	conns int     // permits per shard; math.MaxInt for no limit
	queue int     // waiters per shard; 0 for no waiting
}

// resolve fills in l from the service's defaults. It returns an error wrapping [ErrInvalidLimits] for values that cannot be enforced,
// since guessing would open or close a tenant by accident.
func (c Config) resolve(id tenant.ID, l tenant.Limits) (bounds, error) {
	switch {
	case !validRate(l.Rate):
		return bounds{}, fmt.Errorf("%w: tenant %q: Rate is %v", ErrInvalidLimits, id, l.Rate)
	case l.Burst < 0 || l.Burst > maxBurst:
		return bounds{}, fmt.Errorf("%w: tenant %q: Burst is %d", ErrInvalidLimits, id, l.Burst)
	case l.MaxConns < unlimited:
		return bounds{}, fmt.Errorf("%w: tenant %q: MaxConns is %d", ErrInvalidLimits, id, l.MaxConns)
	case l.MaxQueue < -1:
		return bounds{}, fmt.Errorf("%w: tenant %q: MaxQueue is %d", ErrInvalidLimits, id, l.MaxQueue)
	}

	b := bounds{rate: l.Rate, burst: l.Burst, conns: l.MaxConns, queue: l.MaxQueue}
	if b.burst == 0 {
		// The service's burst belongs to the service's rate. A tenant with a rate of its own gets the burst that fits it.
		b.burst = c.Burst
		if b.rate != 0 {
			b.burst = burstFor(b.rate)
		}
	}
	if b.rate == 0 {
		b.rate = c.Rate
	}
	if b.conns == 0 {
		b.conns = c.MaxConns
	}
	if b.conns == unlimited {
		b.conns = math.MaxInt
	}
	if b.queue == 0 {
		b.queue = c.MaxQueue
	}
	b.queue = max(b.queue, 0)
	return b, nil
}

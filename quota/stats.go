package quota

import "github.com/tenantdal/tenantdal/tenant"

// Stats are totals over all tenants and shards. They name no tenant, so a metrics exporter may use them as they are.
type Stats struct {
	// InUse is the number of permits that are held now, SystemInUse those among them of the system lanes.
	InUse, SystemInUse int
	// Waiting is the number of callers that wait for a permit now, SystemWaiting those among them of the system lanes.
	Waiting, SystemWaiting int
	// Tenants is the number of tenants whose state is kept now. A shard's system lane counts as one.
	Tenants int

	// Granted and Refused count admissions since the start. Each call that has returned is in exactly one of them.
	Granted, Refused uint64
	// DebtDropped counts statements inside transactions that were not charged since the debt was at its bound, see
	// [Config.DebtBursts], and debt forgiven since a tenant's burst was lowered.
	DebtDropped uint64
	// OverReleases counts calls of [Permit.Release] on a permit that was given back. Each is a mistake of the caller that did no harm.
	OverReleases uint64
	// LateRetains counts calls of [Permit.Retain] on a permit that was given back. Each is a mistake of the caller, which now uses a
	// connection without a permit.
	LateRetains uint64
}

// Stats returns the totals. They are exact while nothing is going on; else each part is from a slightly different moment.
func (q *Quota) Stats() Stats {
	st := Stats{OverReleases: q.overReleases.Load(), LateRetains: q.lateRetains.Load()}
	for i := range q.stripes {
		s := &q.stripes[i]
		s.mu.Lock()
		st.InUse += s.tenants.inUse + s.system.inUse
		st.SystemInUse += s.system.inUse
		st.Waiting += s.tenants.waiting + s.system.waiting
		st.SystemWaiting += s.system.waiting
		st.Tenants += len(s.order)
		st.Granted += s.granted
		st.Refused += s.refused
		st.DebtDropped += s.debtDropped
		s.mu.Unlock()
	}
	return st
}

// InUse returns the number of permits that a tenant holds on a shard now.
func (q *Quota) InUse(id tenant.ID, shard string) int {
	if id == "" {
		return 0
	}
	return q.inUse(q.stripe(string(id)), laneKey{id, shard})
}

// SystemInUse returns the number of permits that the system lane of a shard holds now.
func (q *Quota) SystemInUse(shard string) int {
	return q.inUse(q.stripe(shard), laneKey{"", shard})
}

func (q *Quota) inUse(s *stripe, key laneKey) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lanes[key]; ln != nil {
		return ln.inUse
	}
	return 0
}

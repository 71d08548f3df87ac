package cache

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/tenantdal/tenantdal/tenant"
)

// stripes is how many counters the tenants share. Two that share one drop each other's rows, and never see them.
const stripes = 1024

// generations counts what was written, by tenant. A row is kept under the count that stood before its load began, and found under the present one: a load
// that began before a write is of no use after it. It needs no memory per tenant.
type generations struct {
	seed   maphash.Seed
	counts [stripes]atomic.Uint64
	all    atomic.Uint64
}

func (g *generations) of(id tenant.ID) *atomic.Uint64 {
	return &g.counts[maphash.String(g.seed, string(id))%stripes]
}

// now returns the tenant's count. It never returns to a value that it had.
func (g *generations) now(id tenant.ID) uint64 { return g.of(id).Load() + g.all.Load() }

// drop makes the tenant's rows unreachable; everybody's for "".
func (g *generations) drop(id tenant.ID) {
	if id == "" {
		g.all.Add(1)
	} else {
		g.of(id).Add(1)
	}
}

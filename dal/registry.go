package dal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// staleLimit is how much longer a tenant is served from memory while the control database cannot be reached.
const staleLimit = time.Minute

// cachedRegistry keeps what the control database says of each tenant for a bounded time. Unknown tenants are not kept: a flood of made-up ids costs
// no memory. It is safe for concurrent use.
type cachedRegistry struct {
	of     *control.Store
	maxAge time.Duration
	known  sync.Map // tenant.ID -> *cachedTenant
}

type cachedTenant struct {
	tenant tenant.Tenant
	until  time.Time
}

var (
	_ tenant.Registry = (*cachedRegistry)(nil)
	_ tenant.Lister   = (*cachedRegistry)(nil)
)

func newCachedRegistry(of *control.Store, maxAge time.Duration) *cachedRegistry {
	return &cachedRegistry{of: of, maxAge: maxAge}
}

// Tenant returns a tenant that was read at most maxAge ago.
func (r *cachedRegistry) Tenant(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	now := time.Now()
	var old *cachedTenant
	if v, ok := r.known.Load(id); ok {
		if old = v.(*cachedTenant); now.Before(old.until) {
			return old.tenant, nil
		}
	}
	t, err := r.of.Tenant(ctx, id)
	if err != nil {
		// A control database that is away for a moment stops no shard: what was known is used a while longer.
		if old != nil && wire.IsConnection(err) && now.Before(old.until.Add(staleLimit)) {
			return old.tenant, nil
		}
		if errors.Is(err, tenant.ErrUnknownTenant) {
			r.known.Delete(id)
		}
		return tenant.Tenant{}, err
	}
	// What somebody else stored meanwhile may be newer than what was read here.
	fresh := &cachedTenant{t, now.Add(r.maxAge)}
	if old == nil {
		r.known.LoadOrStore(id, fresh)
	} else {
		r.known.CompareAndSwap(id, old, fresh)
	}
	return t, nil
}

// read returns a tenant as it is now, and keeps that.
func (r *cachedRegistry) read(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	now := time.Now()
	t, err := r.of.Tenant(ctx, id)
	if err != nil {
		return tenant.Tenant{}, err
	}
	r.known.Store(id, &cachedTenant{t, now.Add(r.maxAge)})
	return t, nil
}

// Tenants lists every tenant, read now.
func (r *cachedRegistry) Tenants(ctx context.Context) ([]tenant.Tenant, error) {
	return r.of.Tenants(ctx)
}

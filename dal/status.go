package dal

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/tenant"
)

// Suspension says what a suspended tenant may still do.
type Suspension uint8

const (
	// SuspendAll refuses everything of a suspended tenant with [tenant.ErrSuspended].
	SuspendAll Suspension = iota
	// SuspendWrites lets a suspended tenant read. Writes, locking reads and transactions that could write are refused with [tenant.ErrSuspended] before
	// anything is sent; [Store.Transaction] begins a read-only one.
	SuspendWrites
)

// standing is what a tenant's status lets a handle do, as of one look at the registry.
type standing struct {
	look     uint64        // the store's count of [Store.Drain] calls when it was looked up
	until    time.Duration // on the store's clock; it is looked up again afterwards
	refused  error         // nothing may start
	readOnly error         // nothing that writes may start
}

// allows returns why a call that writes, or one that does not, may not start.
func (s *standing) allows(write bool) error {
	if s.refused != nil || !write {
		return s.refused
	}
	return s.readOnly
}

// standing judges a tenant that was looked up when the count of looks was look.
func (s *Store) standing(t tenant.Tenant, look uint64) standing {
	st := standing{look: look, until: s.clock() + s.cfg.TenantMaxAge}
	switch err := t.CheckStatus(); {
	case err == nil:
	case t.Status == tenant.Suspended && s.cfg.Suspended == SuspendWrites:
		st.readOnly = err
	default:
		st.refused = err
	}
	return st
}

// serves returns why the handle's tenant may not start a call now. A handle that is kept looks the tenant up again after Config.TenantMaxAge.
func (b *binding) serves(ctx context.Context, write bool) error {
	if b.reads {
		switch {
		case write:
			return ErrReadOnly
		case b.over.Load():
			return ErrHandleOver
		}
	}
	if write {
		if err := b.store.fresh(); err != nil {
			return err
		}
	}
	if b.bypass != nil {
		return nil
	}
	st := b.latest()
	look := b.store.looks.Load()
	if st.look != look || b.store.clock() >= st.until {
		t, err := b.store.resolve(ctx, b.tenant.ID)
		if err != nil {
			return err
		}
		now := b.store.standing(t, look)
		b.renewed.Store(&now)
		st = &now
	}
	return st.allows(write)
}

// stillServes is serves once more, after a permit was taken: what ends a tenant's work waits for permits, and so sees this one or is seen here.
func (b *binding) stillServes(ctx context.Context, write bool, permit wire.Permit) error {
	if p, ok := permit.(*quota.Permit); ok && !p.Waited() && b.bypass == nil {
		if st := b.latest(); st.look == b.store.looks.Load() { // no time has passed in which it could have grown old
			return st.allows(write)
		}
	}
	return b.serves(ctx, write)
}

// clock is the time since the store was made. It costs half of what time.Now does.
func (s *Store) clock() time.Duration { return time.Since(s.began) }

// latest returns what was last known of the tenant's status.
func (b *binding) latest() *standing {
	if st := b.renewed.Load(); st != nil {
		return st
	}
	return &b.standing
}

// permits returns why the tenant's status forbids a statement that writes or locks. A transaction keeps the status that it began with.
func (b *binding) permits(stmt *gorm.Statement) error {
	if b.reads {
		return ErrReadOnly
	}
	if b.bypass != nil {
		return nil
	}
	if tx, ok := unprepared(stmt.ConnPool).(*txPool); ok {
		return tx.readOnly
	}
	return b.latest().readOnly
}

// Drain waits until this process has nothing of a tenant under way: statements, open rows and transactions that had begun finish, and nothing new
// begins, on no handle however old. It needs a system scope, and a tenant whose status refuses new work: deleting, or suspended under [SuspendAll]. The
// library's own work goes on, so that what the tenant began ends as applied or refunded. Places of the tenant's own are closed unless that uses them. Each process drains for itself; one that was
// not asked to learns of the status within Config.TenantMaxAge.
//
// It asks the registry past the store's own cache; a Registry of your own must answer with the new status by then.
//
// It returns [*StillServedError], [*DrainError] when ctx ends first, [tenant.ErrNotSystem], and the registry's errors.
func (s *Store) Drain(ctx context.Context, id tenant.ID) error {
	if _, err := tenant.BypassFromContext(ctx); err != nil {
		return err
	}
	if s.shut() {
		return ErrClosed
	}
	t, err := s.lookUp(ctx, id)
	if err != nil {
		return err
	}
	if s.standing(t, 0).refused == nil {
		return &StillServedError{Tenant: id, Status: t.Status}
	}
	// From here on every handle looks the tenant up again, and does so after it took its permit: who is not seen below holds none.
	s.looks.Add(1)
	for {
		inUse := 0
		for _, shard := range s.shardsOf(t) {
			inUse += s.quota.InUse(id, string(shard))
		}
		if inUse == 0 {
			for _, p := range s.placesOf(t) {
				s.own.evict(p)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return &DrainError{Tenant: id, InUse: inUse, Err: context.Cause(ctx)}
		case <-time.After(drainPause):
		}
	}
}

// lookUp asks the registry for a tenant as it is now.
func (s *Store) lookUp(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	if c, ok := s.registry.(*cachedRegistry); ok {
		return c.read(ctx, id)
	}
	return s.registry.Tenant(ctx, id)
}

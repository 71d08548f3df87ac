package dal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// directConnector makes the *sql.DB that gorm's DB() and Connection() hand out: a pool in front of a place's pool. Each of its connections is taken from
// there for the tenant of the context, with a permit, and given back as soon as it is free. Every statement on it passes the gate, which here adds
// nothing: a statement without its tenant_id is refused.
type directConnector struct {
	store *Store
	db    *database // the place; opened anew when it was closed meanwhile
}

var _ driver.Connector = (*directConnector)(nil)

// Connect takes a connection for the tenant of ctx. Its errors are those of [Store.Route], a quota's refusal, and [*CrossShardError] for a tenant who
// does not live in the place.
func (c *directConnector) Connect(ctx context.Context) (driver.Conn, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, err
	}
	t, err := c.store.registry.Tenant(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := t.CheckStatus(); err != nil {
		return nil, err
	}
	if !slices.Contains(c.store.placesOf(t), c.db.place) {
		return nil, &CrossShardError{Held: c.db.place.Shard}
	}
	b := &binding{store: c.store, db: c.db, tenant: t, id: t.ID}
	db, permit, err := b.enter(ctx, true)
	if err != nil {
		return nil, err
	}
	defer permit.Release()
	return db.writer.Direct(ctx, wire.Direct{
		Tenant: id, Permit: permit,
		Charge: func() { c.store.quota.Charge(id, t.Limits, 1) },
		Judge: func(v *gate.Verdict, args []driver.NamedValue) error {
			return b.ownsAll(v, func(i int) any { return args[i].Value })
		},
	})
}

// Driver returns no driver, since connections are not opened by name.
func (c *directConnector) Driver() driver.Driver { return refusedDriver{} }

// direct returns the pool that stands in front of the place's, one a place.
func (s *Store) direct(db *database) (*sql.DB, error) {
	if d, ok := s.directs.Load(db.place); ok {
		return d.(*sql.DB), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if d, ok := s.directs.Load(db.place); ok {
		return d.(*sql.DB), nil
	}
	d := sql.OpenDB(&directConnector{store: s, db: db})
	d.SetMaxIdleConns(-1) // one that waits for its next caller would hold a permit
	s.directs.Store(db.place, d)
	return d, nil
}

// took reports a connection that was taken for the handle's tenant.
func (b *binding) took(c *sql.Conn) bool {
	own := false
	_ = c.Raw(func(inner any) error {
		d, ok := inner.(*wire.DirectConn)
		own = ok && d.Tenant() == b.tenant.ID
		return nil
	})
	return own
}

// GetDBConn returns a pool of database/sql over the handle's place: see [directConnector]. Its statements name the tenant by their own context.
func (p *pool) GetDBConn() (*sql.DB, error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case p.bypass != nil:
		return nil, &ShapeError{Shape: "DB() or Connection() under a system scope", Hint: "use the handle's own methods"}
	}
	return p.store.direct(p.db)
}

var _ gorm.GetDBConnector = (*pool)(nil)

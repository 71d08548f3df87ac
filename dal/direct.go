package dal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// directConnector makes the *sql.DB that gorm's DB() and Connection() hand out: a pool in front of the places' pools. Each of its connections is taken
// from the place of the context's tenant, with a permit, and given back as soon as it is free. Every statement on it passes the gate, which here adds
// nothing: a statement without its tenant_id is refused.
type directConnector struct {
	store *Store
	front front
}

// front is what one pool of direct connections stands in front of: a default shard, with its shared tables and the schemas of tenants on it, or the n-th
// shard of whichever tenant has shards of its own. So there are few of them with any number of tenants, and none is closed before the store, however often
// a tenant's place is closed and opened anew behind it.
type front struct {
	shard shardrouter.ShardID
	own   int // from 1
}

// frontOf returns the front of a handle's place.
func (b *binding) frontOf() front {
	dedicated := b.store.snapshot().Dedicated(string(b.tenant.ID))
	if n := slices.Index(dedicated, b.db.place.Shard); n >= 0 {
		return front{own: n + 1}
	}
	return front{shard: b.db.place.Shard}
}

// place returns where a tenant lives behind the front.
func (f front) place(s *Store, t tenant.Tenant) (Place, error) {
	dedicated := s.snapshot().Dedicated(string(t.ID))
	switch {
	case f.own > 0 && f.own <= len(dedicated):
		return Place{Shard: dedicated[f.own-1]}, nil
	case f.own == 0 && len(dedicated) == 0 && t.Model != tenant.OwnDatabase:
		return Place{Shard: f.shard, Schema: t.Placement.Schema}, nil
	}
	return Place{}, &CrossShardError{Held: f.shard}
}

var _ driver.Connector = (*directConnector)(nil)

// Connect takes a connection for the tenant of ctx, in that tenant's own place. Its errors are those of [Store.Route], a quota's refusal, and
// [*CrossShardError] for a tenant who does not live there.
func (c *directConnector) Connect(ctx context.Context) (driver.Conn, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, err
	}
	t, err := c.store.resolve(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := t.CheckStatus(); err != nil {
		return nil, err
	}
	p, err := c.front.place(c.store, t)
	if err != nil {
		return nil, err
	}
	place, err := c.store.at(ctx, p, id)
	if err != nil {
		return nil, err
	}
	sessionOf(ctx).note(c.store, p, pinned) // what it writes is not seen here
	b := &binding{store: c.store, db: place, tenant: t, id: t.ID}
	db, permit, err := b.enter(ctx, true)
	if err != nil {
		return nil, err
	}
	defer permit.Release()
	return db.writer.Direct(ctx, wire.Direct{
		Tenant: id, Permit: permit,
		Charge: func() { c.store.quota.Charge(id, t.Limits, 1) },
		Judge: func(v *gate.Verdict, args []driver.NamedValue) error {
			if err := oneKeyspace(v); err != nil {
				return err
			}
			if err := c.store.refuseCapped(v, "an INSERT beside gorm into a table with a capacity", "use the handle's own methods"); err != nil {
				return err
			}
			arg := func(i int) any { return args[i].Value }
			if err := b.ownsAll(v, arg); err != nil {
				return err
			}
			return b.ownsKeys(v, arg)
		},
	})
}

// oneKeyspace refuses a statement over tables of two keyspaces, whose rows need not be in one place. A connection has no key that would name one.
func oneKeyspace(v *gate.Verdict) error {
	first := ""
	for _, u := range v.Tables {
		switch of := u.Table.Keyspace; {
		case of == "" || of == first:
		case first == "":
			first = of
		default:
			return &KeyspaceError{Table: u.Table.Name, Keyspace: of, Handle: first}
		}
	}
	return nil
}

// Driver returns no driver, since connections are not opened by name.
func (c *directConnector) Driver() driver.Driver { return refusedDriver{} }

// Close forgets the pool, which a caller has closed for every tenant behind the front: the next one is new.
func (c *directConnector) Close() error {
	c.store.directs.Delete(c.front)
	return nil
}

// direct returns the pool of a front. Every tenant behind it shares the pool, so a limit that one has set on it is taken back.
func (s *Store) direct(f front) (*sql.DB, error) {
	if d, ok := s.directs.Load(f); ok {
		db := d.(*sql.DB)
		if db.Stats().MaxOpenConnections != 0 {
			db.SetMaxOpenConns(0)
		}
		return db, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if d, ok := s.directs.Load(f); ok {
		return d.(*sql.DB), nil
	}
	d := sql.OpenDB(&directConnector{store: s, front: f})
	d.SetMaxIdleConns(-1) // one that waits for its next caller would hold a permit
	s.directs.Store(f, d)
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
	case p.reads:
		return nil, ErrReadOnly
	case p.bypass != nil:
		return nil, &ShapeError{Shape: "DB() or Connection() under a system scope", Hint: "use the handle's own methods"}
	case p.asked != nil:
		return nil, p.refuseWrite("DB() or Connection()")
	}
	return p.store.direct(p.frontOf())
}

var _ gorm.GetDBConnector = (*pool)(nil)

package wire

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/tenant"
)

// Direct says for whom a connection is taken that database/sql's own methods will use, without a mark on each statement.
type Direct struct {
	Tenant tenant.ID
	// Permit is held until the connection is given back.
	Permit Permit
	// Charge is called once for each statement.
	Charge func()
	// Judge may refuse a statement that the gate lets pass, by its values.
	Judge func(v *gate.Verdict, args []driver.NamedValue) error
}

// DirectConn is a connection of a pool, taken for one tenant until it is closed. It is a driver.Conn: a pool of the caller's side can be made of it.
// Every statement on it names the tenant in its context and passes the gate.
type DirectConn struct {
	*conn
	taken *sql.Conn
}

var (
	_ driver.Conn            = (*DirectConn)(nil)
	_ driver.SessionResetter = (*DirectConn)(nil)
	_ driver.Validator       = (*DirectConn)(nil)
)

// Direct takes a connection for a tenant.
func (p *Pool) Direct(ctx context.Context, d Direct) (*DirectConn, error) {
	taken, err := p.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	dc := &DirectConn{taken: taken}
	err = taken.Raw(func(inner any) error {
		dc.conn = inner.(*conn)
		d.Permit.Retain()
		dc.permit, dc.direct = d.Permit, &d
		return nil
	})
	if err != nil {
		_ = taken.Close()
		return nil, err
	}
	return dc, nil
}

// Tenant returns for whom the connection was taken.
func (c *DirectConn) Tenant() tenant.ID { return c.direct.Tenant }

// Close gives the connection back to its pool, with its permit.
func (c *DirectConn) Close() error { return c.taken.Close() }

// ResetSession does nothing: a direct connection serves one caller and is then given back.
func (c *DirectConn) ResetSession(context.Context) error { return nil }

// IsValid reports whether the connection may be used on; its permit stays with it until it is closed.
func (c *DirectConn) IsValid() bool { return true }

// mark vouches for a statement on a direct connection, if its context names the same tenant.
func (d *Direct) mark(ctx context.Context, shard, op, text string) (*Mark, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, err
	}
	if id != d.Tenant {
		return nil, &UnmarkedError{Shard: shard, Op: op, Why: "the context names another tenant than the connection's"}
	}
	if op == "begin" {
		return &Mark{Kind: Control, Tenant: id}, nil
	}
	return &Mark{Kind: Scoped, Tenant: id, Text: text}, nil
}

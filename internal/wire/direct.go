package wire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

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
//
// sql.Conn.Raw shows it to callers, who may keep it and whatever its methods return, and use all of that from several goroutines. So each call holds the
// lease's lock, values are copied before they are judged, and once the connection was given back every part of it is refused with [ErrGivenBack]: the
// connection below serves another tenant then.
type DirectConn struct {
	lease *lease
	taken *sql.Conn
}

var (
	_ driver.Conn               = (*DirectConn)(nil)
	_ driver.ConnPrepareContext = (*DirectConn)(nil)
	_ driver.ConnBeginTx        = (*DirectConn)(nil)
	_ driver.ExecerContext      = (*DirectConn)(nil)
	_ driver.QueryerContext     = (*DirectConn)(nil)
	_ driver.Pinger             = (*DirectConn)(nil)
	_ driver.SessionResetter    = (*DirectConn)(nil)
	_ driver.Validator          = (*DirectConn)(nil)
	_ driver.NamedValueChecker  = (*DirectConn)(nil)
)

// Direct takes a connection for a tenant.
func (p *Pool) Direct(ctx context.Context, d Direct) (*DirectConn, error) {
	taken, err := p.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	dc := &DirectConn{lease: &lease{tenant: d.Tenant}, taken: taken}
	err = taken.Raw(func(inner any) error {
		c := inner.(*conn)
		d.Permit.Retain()
		c.permit, c.direct = d.Permit, &d
		dc.lease.conn = c
		return nil
	})
	if err != nil {
		_ = taken.Close()
		return nil, err
	}
	return dc, nil
}

// Tenant returns for whom the connection was taken.
func (c *DirectConn) Tenant() tenant.ID { return c.lease.tenant }

// Close gives the connection back to its pool, with its permit. One on which something is still open is closed instead.
func (c *DirectConn) Close() error {
	if open := c.lease.end(); open {
		_ = c.taken.Raw(func(any) error { return driver.ErrBadConn })
	}
	if err := c.taken.Close(); !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}

// ResetSession does nothing: a direct connection serves one caller and is then given back.
func (c *DirectConn) ResetSession(context.Context) error { return nil }

// IsValid reports that the connection is not to be kept for a next caller: its permit would stay with it.
func (c *DirectConn) IsValid() bool { return false }

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

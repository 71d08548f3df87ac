package wire

import (
	"slices"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/tenant"
)

// Written names a declared table, some rows of which a caller's statement may have changed.
type Written struct {
	Tenant tenant.ID // whose rows; "" for a statement under a system scope: anybody's
	Table  string
}

// writes notes what a statement that was sent has written, by its verdict.
func (c *conn) writes(m *Mark, v *gate.Verdict) {
	for i := range v.Tables {
		if !v.Tables[i].Write {
			continue
		}
		if w := (Written{Tenant: m.Tenant, Table: v.Tables[i].Table.Name}); !slices.Contains(c.wrote, w) {
			c.wrote = append(c.wrote, w)
		}
	}
}

// tell hands out what was written and committed.
func (c *conn) tell() {
	if len(c.wrote) > 0 && c.owner.opts.Wrote != nil {
		c.owner.opts.Wrote(c.wrote)
	}
}

// unsettled takes what a statement outside a transaction has written whose rows are about to be read: a database may commit it only when they are closed, and
// other statements on the connection may come between.
func (c *conn) unsettled() []Written {
	if c.inTx || len(c.wrote) == 0 {
		return nil
	}
	w := slices.Clone(c.wrote)
	c.wrote = c.wrote[:0]
	return w
}

// told is tell for the last time: what follows on the connection is another transaction.
func (c *conn) told() {
	c.tell()
	c.wrote = c.wrote[:0]
}

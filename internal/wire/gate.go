package wire

import (
	"database/sql/driver"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/tenant"
)

// gated says whose statements the gate reads; the others pass by identity.
func (m *Mark) gated() bool { return m.Kind == Scoped || m.Kind == Bypass }

// passes returns the gate's verdict, nil for a statement that it does not read, and reports with a [*RefusedError] that it does not let the text pass
// for the mark's scope.
func (c *conn) passes(m *Mark, op, text string) (*gate.Verdict, error) {
	if !m.gated() {
		return nil, nil
	}
	g := c.owner.opts.Gate
	if g == nil {
		return nil, c.refused(op, &gate.Refusal{Code: gate.Closed, Reason: "a statement of a caller on a pool that serves the library alone"})
	}
	if m.Kind == Bypass {
		v := g.SystemVerdict(text)
		if v.Refusal != nil {
			return nil, c.refused(op, v.Refusal)
		}
		if why := Opened(m.Bypass, v); why != nil {
			return nil, c.refused(op, why)
		}
		return v, nil
	}
	v := g.Verdict(text)
	switch {
	case v.Refusal != nil:
		return nil, c.refused(op, v.Refusal)
	case v.Rewrite != nil:
		return nil, c.refused(op, &gate.Refusal{Code: gate.Shape, Reason: "a tenant table without its tenant_id", Hint: "add tenant_id = ? with the tenant's id for each table, or use Raw and Exec of the handle, which add it"})
	}
	return v, nil
}

// Opened reports why a system scope does not open what the statement names, or nil. No scope opens nothing.
func Opened(scope *tenant.Bypass, v *gate.Verdict) *gate.Refusal {
	for _, u := range v.Tables {
		if u.Table.Class == gate.Global && !u.Write || scope.Opens(u.Table.Name) {
			continue
		}
		return &gate.Refusal{Code: gate.Closed, Reason: "a table that the system scope does not name", Hint: "name it in tenant.System", Table: u.Table.Name}
	}
	return nil
}

// values compares what was bound with the scope, after the caller's types have made of it what they would.
func (c *conn) values(m *Mark, v *gate.Verdict, op string, args []driver.NamedValue) error {
	if !m.gated() {
		if why := m.owns(args); why != "" {
			c.owner.count.refused.Add(1)
			return &UnmarkedError{Shard: c.owner.opts.Shard, Op: op, Why: why}
		}
		return nil
	}
	for i := range args {
		if args[i].Name != "" {
			return c.refused(op, &gate.Refusal{Code: gate.Shape, Reason: "a named argument", Hint: "bind by position"})
		}
	}
	if v.Args != len(args) {
		return c.refused(op, &gate.Refusal{Code: gate.Shape, Reason: "more or fewer values than placeholders", Hint: "bind one for each"})
	}
	for _, i := range v.TenantArgs { // none under a system scope
		if got, ok := args[i].Value.(string); !ok || got != string(m.Tenant) || got == "" {
			return c.refused(op, &gate.Refusal{Code: gate.Foreign, Reason: "a value of tenant_id that is another tenant's", Hint: "bind the tenant's id as a text"})
		}
	}
	for _, name := range v.Names {
		if name != string(m.Tenant) {
			return c.refused(op, &gate.Refusal{Code: gate.Foreign, Reason: "a value of tenant_id that is another tenant's", Hint: "bind the tenant's id as a text"})
		}
	}
	return nil
}

func (c *conn) refused(op string, why *gate.Refusal) error {
	c.owner.count.refused.Add(1)
	return &RefusedError{Shard: c.owner.opts.Shard, Op: op, Why: why}
}

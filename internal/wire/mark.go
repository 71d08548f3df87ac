package wire

import (
	"context"
	"database/sql/driver"
	"sync/atomic"

	"github.com/tenantdal/tenantdal/tenant"
)

// Kind says who vouches for a statement.
type Kind uint8

const (
	// Scoped statements were built by gorm and carry the tenant's predicate that dal's callbacks wrote into them.
	Scoped Kind = iota + 1
	// Bypass statements run under a system scope, over the tables that it names.
	Bypass
	// Library statements are registered constants of this project.
	Library
	// Migration statements come from the migrator; any text passes.
	Migration
	// Control marks what a pool sends for itself: BEGIN and SAVEPOINT.
	Control
)

// Permit is a place in a tenant's share of a shard's connections. Retain and Release count references; the last Release gives the place back.
type Permit interface {
	Retain()
	Release()
}

// Mark lets one statement pass. The zero Mark lets nothing pass.
type Mark struct {
	Kind   Kind
	Tenant tenant.ID  // empty under a system scope and for migrations
	Text   string     // the exact text that may leave; ignored for Migration, empty for BEGIN
	Stmt   *Statement // for Library
	Write  bool       // the statement may change rows, whichever call carries it
	Permit Permit     // held by the call; the connection that serves it retains it
	// TenantArgs are the positions of a Library statement's values that must be Tenant when it leaves.
	TenantArgs []int
	// Bypass is the system scope of a Bypass statement: the tables that it opens.
	Bypass *tenant.Bypass

	spent atomic.Bool // its statement was sent: the mark is worth nothing any more
}

type markKey struct{}

// sealed is how a context holds its mark. A context of the caller's own sees the key when it is asked for a mark, and a caller's code may see the
// answer while its statement is under way: of a *Mark it could make others by reflection, with any tenant, kind and text. Of this it cannot, since the
// field is not exported.
type sealed struct{ mark *Mark }

// markContext carries a mark and nothing else.
type markContext struct {
	context.Context
	mark *Mark
}

// Value answers for the mark and passes every other key on.
func (c *markContext) Value(key any) any {
	if key == (markKey{}) {
		return sealed{c.mark}
	}
	return c.Context.Value(key)
}

// With returns a context under which m's statement may leave, once: see [Mark.Spend].
func With(ctx context.Context, m *Mark) context.Context {
	return &markContext{Context: ctx, mark: m}
}

// Marked is what [With] returns, with the mark in it: one piece of memory, or a part of a caller's. See [Fill].
type Marked struct {
	context.Context
	mark Mark
}

// Fill sets c's context and returns its mark, to be set before c is used. It is no method, which whoever holds a context could call.
func Fill(ctx context.Context, c *Marked) *Mark {
	c.Context = ctx
	return &c.mark
}

// Value answers for the mark and passes every other key on.
func (c *Marked) Value(key any) any {
	if key == (markKey{}) {
		return sealed{&c.mark}
	}
	return c.Context.Value(key)
}

// Spend makes the mark worth nothing. Whoever sent the statement calls it as soon as the call has returned: code of the caller's that runs while the
// rows are read sees the context, and must not send the text again with other values. A migrator's mark is never spent.
func (m *Mark) Spend() {
	if m.Kind != Migration {
		m.spent.Store(true)
	}
}

// From returns the mark that ctx carries, or nil. The pool that serves the statement puts its permit into it.
func From(ctx context.Context) *Mark {
	s, _ := ctx.Value(markKey{}).(sealed)
	return s.mark
}

// Admit reports with an [*UnmarkedError] that text may not leave under ctx, so that a pool can refuse it before it takes a connection.
func Admit(ctx context.Context, shard, op, text string) (*Mark, error) {
	m := From(ctx)
	if why := m.admits(text); why != "" {
		return nil, &UnmarkedError{Shard: shard, Op: op, Why: why}
	}
	return m, nil
}

// admits reports why m does not let text pass, or "".
func (m *Mark) admits(text string) string {
	switch {
	case m == nil:
		return "the context carries no mark"
	case m.Kind == Migration:
		return ""
	case m.spent.Load():
		return "the context's mark was used for a statement before"
	case m.Kind == Control:
		if m.Text == text {
			return ""
		}
	case m.Kind == Library:
		if m.Stmt != nil && m.Stmt.text == text {
			return ""
		}
	case m.Kind == Scoped, m.Kind == Bypass:
		if m.Text != "" && m.Text == text {
			return ""
		}
	}
	return "the context's mark belongs to another statement"
}

// owns reports why the arguments that were bound are not the tenant's, or "".
func (m *Mark) owns(args []driver.NamedValue) string {
	for _, i := range m.TenantArgs {
		if i >= len(args) {
			return "it lacks the tenant's argument"
		}
		if got, ok := args[i].Value.(string); !ok || got != string(m.Tenant) || got == "" {
			return "an argument names another tenant than the scope"
		}
	}
	return ""
}

// class is what the statement counts as.
func (m *Mark) class() Class {
	switch m.Kind {
	case Migration:
		return Schema
	case Control:
		return Session
	case Library:
		return m.Stmt.class
	}
	return Rows
}

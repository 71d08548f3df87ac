package testutil

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// MockStatement is one statement that was handed to a mock.
type MockStatement struct {
	Place  dal.Place
	Tenant tenant.ID // empty under the system scope
	System bool      // it ran under the system scope
	Reason string    // why, under the system scope
	Text   string
	Args   []any // as the driver got them, in order; nil without any
}

// UnscopedError reports a statement that is not bound to the tenant of its context. It was not sent, and has failed the test.
type UnscopedError struct {
	Place  dal.Place
	Tenant tenant.ID // of the context; empty when it names none
	Text   string
	Reason string
}

// Error names the place, the tenant, what is wrong, and the text.
func (e *UnscopedError) Error() string {
	return fmt.Sprintf("testutil: unscoped statement for tenant %q on %s: %s: %s", e.Tenant, e.Place, e.Reason, e.Text)
}

// mockLog sees every statement on its way to a mock: it notes it, or refuses it and fails the test. It is safe for concurrent use.
type mockLog struct {
	report func(format string, args ...any) // fails the test

	mu   sync.Mutex // guards sent
	sent []MockStatement
}

var _ wire.Observer = (*mockLog)(nil)

// Before judges a statement.
func (l *mockLog) Before(ctx context.Context, e wire.Event) error {
	if e.Op != "exec" && e.Op != "query" {
		return nil
	}
	shard, schema, _ := strings.Cut(e.Shard, "/")
	s := MockStatement{Place: dal.Place{Shard: shardrouter.ShardID(shard), Schema: schema}, Text: e.Text, Args: values(e.Args)}
	if why := l.judge(ctx, e, &s); why != "" {
		err := &UnscopedError{Place: s.Place, Tenant: s.Tenant, Text: s.Text, Reason: why}
		l.report("%v", err)
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, s)
	return nil
}

// After is of no interest: the mock's answer is the test's.
func (l *mockLog) After(context.Context, wire.Event, error) {}

// judge names the scope of a statement and returns why it may not be sent, or "". The tenant is the context's, not the one that dal noted.
func (l *mockLog) judge(ctx context.Context, e wire.Event, s *MockStatement) string {
	if bypass, err := tenant.BypassFromContext(ctx); err == nil {
		s.System, s.Reason = true, bypass.Reason
		if e.Kind == wire.Scoped {
			return "it was made for a tenant and runs under the system scope"
		}
		return ""
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return err.Error()
	}
	s.Tenant = id
	switch e.Kind {
	case wire.Scoped:
		return "" // the gate has read it, with its values
	case wire.Library:
		return libraryFault(ctx, e, id)
	case wire.Control: // BEGIN has no text: this is a savepoint of gorm's nested transactions
		if !strings.HasPrefix(e.Text, "SAVEPOINT ") && !strings.HasPrefix(e.Text, "ROLLBACK TO SAVEPOINT ") {
			return "it was sent as a savepoint and is none"
		}
		return ""
	}
	return "it was made for the system scope"
}

// libraryFault judges a constant of the library's own: its text names tenant_id, its arguments must name the tenant.
func libraryFault(ctx context.Context, e wire.Event, id tenant.ID) string {
	m := wire.From(ctx)
	if m == nil || m.Stmt == nil || m.Stmt.System() {
		return "it was made for the system scope"
	}
	if err := m.Stmt.CheckTenant(e.Shard, id, values(e.Args)); err != nil {
		return err.Error()
	}
	return ""
}

// values returns the arguments without their names; nil when there are none.
func values(args []driver.NamedValue) []any {
	var out []any
	for _, a := range args {
		out = append(out, a.Value)
	}
	return out
}

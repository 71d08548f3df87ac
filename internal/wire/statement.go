package wire

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/tenantdal/tenantdal/tenant"
)

// Class says what a statement is counted as.
type Class uint8

const (
	// Rows reads or changes rows for a caller.
	Rows Class = iota + 1
	// Poll looks for work, claims it or renews a lease.
	Poll
	// Session sets a connection or a savepoint up.
	Session
	// Schema creates or checks tables.
	Schema
)

// Statement is one registered constant: a text of the project's own that passes by identity. Statements are made at package initialisation
// and never change, so they are safe for concurrent use.
type Statement struct {
	name    string
	text    string
	dollars string // the text with PostgreSQL's placeholders
	class   Class
	tenants []int // positions of the arguments that must equal the tenant of the scope
	system  bool
}

var registry = struct {
	sync.Mutex
	byName map[string]*Statement
}{byName: map[string]*Statement{}}

// Register adds a tenant's statement: text holds tenant_id, and the arguments at the positions tenantArgs (from 0) are compared with the tenant of
// the context each time it runs. It panics on a name that is taken or on a text without tenant_id, since both are mistakes in this module.
func Register(name, text string, class Class, tenantArgs ...int) *Statement {
	if !strings.Contains(text, "tenant_id") || len(tenantArgs) == 0 {
		panic(fmt.Sprintf("wire: statement %s is not bound to a tenant", name))
	}
	return register(&Statement{name: name, text: text, class: class, tenants: tenantArgs})
}

// RegisterSystem adds a statement that runs under a system scope alone: relay polls, control tables, checks.
func RegisterSystem(name, text string, class Class) *Statement {
	return register(&Statement{name: name, text: text, class: class, system: true})
}

func register(s *Statement) *Statement {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.byName[s.name]; taken {
		panic(fmt.Sprintf("wire: statement %s is registered twice", s.name))
	}
	s.dollars = Dollars(s.text)
	registry.byName[s.name] = s
	return s
}

// Statements returns every registered statement, sorted by name. Tests use it to run each of them.
func Statements() []*Statement {
	registry.Lock()
	defer registry.Unlock()
	all := make([]*Statement, 0, len(registry.byName))
	for _, s := range registry.byName {
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}

// Name returns the name under which the statement was registered.
func (s *Statement) Name() string { return s.name }

// Text returns the statement's text with its placeholders.
func (s *Statement) Text() string { return s.text }

// System reports whether the statement needs a system scope.
func (s *Statement) System() bool { return s.system }

// TenantArgs returns the positions of the arguments that must be the tenant of the scope.
func (s *Statement) TenantArgs() []int { return append([]int(nil), s.tenants...) }

// Owners is [Statement.TenantArgs] without a copy, for marks. The caller does not change it.
func (s *Statement) Owners() []int { return s.tenants }

// CheckTenant compares the statement's tenant arguments with id. It returns an [*UnmarkedError] when one differs or is missing.
func (s *Statement) CheckTenant(shard string, id tenant.ID, args []any) error {
	for _, i := range s.tenants {
		if i < len(args) {
			if got, ok := args[i].(tenant.ID); ok && got == id && id != "" {
				continue
			}
			if got, ok := args[i].(string); ok && got == string(id) && id != "" {
				continue
			}
		}
		return &UnmarkedError{Shard: shard, Op: s.name, Why: "an argument names another tenant than the scope"}
	}
	return nil
}

package tenant

import (
	"context"
	"reflect"
	"slices"
	"strings"
)

// scopeKey and shardKey are the keys under which a context answers for its scope and shard. They are unexported types:
// no other package can set or forge them.
type (
	scopeKey struct{}
	shardKey struct{}
)

// scope is what a context is bound to: one tenant, the system scope, or nothing at all for a stated reason. Exactly one
// of these holds, and the checks are done once, when the scope is made.
type scope struct {
	id     ID
	err    error   // why there is no tenant; nil exactly when id is valid
	bypass *Bypass // set under System only
	bad    error   // why the bypass may not be used
}

// scopedCtx binds a scope to a context. It is one allocation, and a lookup neither allocates nor computes.
//
// A new scope hides the shard of the contexts above it: a shard belongs to the scope that was routed there.
type scopedCtx struct {
	context.Context
	scope
}

func (c *scopedCtx) Value(key any) any {
	switch key.(type) {
	case scopeKey:
		return c
	case shardKey:
		return nil
	}
	return c.Context.Value(key)
}

// NewContext returns a context bound to the tenant id. It replaces whatever scope ctx had, be it another tenant or
// [System], and the shard noted by [WithShard].
//
// An id that is not well formed binds nothing: [FromContext] on the result returns the error, so the mistake shows at
// the first use and never widens a query. NewContext panics when ctx is nil.
func NewContext(ctx context.Context, id ID) context.Context {
	c := &scopedCtx{Context: parent(ctx)}
	switch {
	case id == "":
		c.err = ErrNoTenant
	default:
		c.id, c.err = id, id.Validate()
	}
	return c
}

// FromContext returns the tenant that ctx is bound to. It does not allocate.
//
// It returns [ErrNoTenant] when ctx is nil, a typed nil, bound to nothing or to the zero ID; an [*InvalidIDError] when
// it is bound to an ill-formed one; [ErrSystemScope] under [System]. The ID is "" beside any error.
func FromContext(ctx context.Context) (ID, error) {
	s := scopeOf(ctx)
	switch {
	case s == nil:
		return "", ErrNoTenant
	case s.err != nil:
		return "", s.err
	}
	return s.id, nil
}

// System returns a context for work across tenants: an audited bypass that opens the named tables, each by its exact
// name, and nothing else. It replaces the tenant of ctx, and ends with the context it returns: derive from the old ctx,
// or call [NewContext], to be one tenant again.
//
// reason says why tenants are crossed, for the log and for the reviewer. A blank reason and an empty or blank list of
// tables open nothing: [BypassFromContext] on the result returns the error. System panics when ctx is nil.
func System(ctx context.Context, reason string, tables ...string) context.Context {
	c := &scopedCtx{Context: parent(ctx)}
	c.err = ErrSystemScope
	c.bypass = &Bypass{Reason: reason, Tables: slices.Clone(tables)}
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	switch {
	case blank(reason):
		c.bad = ErrNoReason
	case len(tables) == 0 || slices.ContainsFunc(tables, blank):
		c.bad = ErrNoTables
	}
	return c
}

// Bypass is what a context under [System] may do.
type Bypass struct {
	Reason string   // why, never blank
	Tables []string // the tables it opens, never empty
}

// Opens reports whether the bypass opens the table: whether it is listed, byte for byte. There is no wildcard. A nil
// Bypass opens nothing.
func (b *Bypass) Opens(table string) bool {
	return b != nil && slices.Contains(b.Tables, table)
}

// BypassFromContext returns the bypass of a context under [System], as a copy that the caller may keep.
//
// It returns [ErrNotSystem] when ctx is not under System, [ErrNoReason] when the reason is blank and [ErrNoTables] when
// no table, or a blank one, is listed.
func BypassFromContext(ctx context.Context) (*Bypass, error) {
	s := scopeOf(ctx)
	switch {
	case s == nil || s.bypass == nil:
		return nil, ErrNotSystem
	case s.bad != nil:
		return nil, s.bad
	}
	return &Bypass{Reason: s.bypass.Reason, Tables: slices.Clone(s.bypass.Tables)}, nil
}

// noTenant returns a context that is bound to nothing because of err, which FromContext returns. Functions that fail
// return it beside the error, so that a caller who drops the error does not go on as an earlier job's tenant.
func noTenant(ctx context.Context, err error) context.Context {
	return &scopedCtx{Context: parent(ctx), scope: scope{err: err}}
}

// scopeOf returns the nearest scope of ctx, or nil.
func scopeOf(ctx context.Context) *scope {
	if c, ok := ctx.(*scopedCtx); ok && c != nil {
		return &c.scope
	}
	if isNil(ctx) {
		return nil
	}
	if c, ok := ctx.Value(scopeKey{}).(*scopedCtx); ok {
		return &c.scope
	}
	return nil
}

// isNil reports whether ctx is nil or a typed nil pointer. Calling Value on the latter would panic in most
// implementations, and a tenant that is looked up through nothing is no tenant.
func isNil(ctx context.Context) bool {
	if ctx == nil {
		return true
	}
	v := reflect.ValueOf(ctx)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// parent returns ctx, and panics when it is nil, as the context package does.
func parent(ctx context.Context) context.Context {
	if isNil(ctx) {
		panic("tenant: cannot derive a context from nil: pass context.Background at least")
	}
	return ctx
}

package quota

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

var (
	// ErrQuotaExceeded says that a quota refused an admission. It comes wrapped in an [*ExceededError], which names the limit and
	// says when to come back. Nothing was taken: the caller may simply try again later.
	ErrQuotaExceeded = errors.New("quota: exceeded")

	// ErrNestedAcquire says that a call which holds a permit asked for a second one of the same tenant and shard, and none was free.
	// Waiting could mean waiting for itself, so it is refused at once. Possibly wrapped. It is no [ErrQuotaExceeded]: trying again
	// without giving back the first permit may fail for ever. Use the connection that is held, or end it first.
	ErrNestedAcquire = errors.New("quota: no second permit for a caller that holds one")

	// ErrInvalidLimits says that a tenant's limits hold values that cannot be enforced: NaN, an infinity, or a negative number other
	// than -1. Possibly wrapped. Nothing is admitted under such limits.
	ErrInvalidLimits = errors.New("quota: invalid limits")

	// ErrNoShard says that an admission named no shard. Possibly wrapped.
	ErrNoShard = errors.New("quota: no shard")
)

// Limit names the limit that refused an admission.
type Limit string

// The limits of this package.
const (
	// LimitRate refuses when the tenant's token bucket is empty or in debt.
	LimitRate Limit = "rate"
	// LimitConns refuses when all permits are taken and the caller may not wait.
	LimitConns Limit = "conns"
	// LimitQueue refuses when all permits are taken and the queue is full.
	LimitQueue Limit = "queue"
	// LimitWait refuses when the wait for a permit was ended by [Config.MaxWait] or by the caller's ctx.
	LimitWait Limit = "wait"
)

// ExceededError is the refusal of one admission. errors.Is finds [ErrQuotaExceeded] in it and, when the caller's ctx ended the wait,
// both ctx.Err() and context.Cause(ctx).
type ExceededError struct {
	// Tenant is the tenant that was refused; empty for the system lane.
	Tenant tenant.ID
	// Shard is the shard that the admission was for.
	Shard string
	// Limit is the limit that refused.
	Limit Limit
	// RetryAfter says how long to wait before trying again. For [LimitRate] it is exact, if nobody else takes the token first, and
	// above 0. For the other limits it is an estimate: the time that the last waiter to be served on that lane had waited, or 0 while
	// none was, which means unknown.
	RetryAfter time.Duration
	// Queued is the number of callers of that tenant and shard that were waiting for a permit at the refusal, without the refused one.
	Queued int

	causes []error // the ctx's cause and error, or nil
}

// Error names the tenant, the shard, the limit, and when to come back.
func (e *ExceededError) Error() string {
	var b strings.Builder
	b.WriteString("quota: ")
	if e.Tenant == "" {
		b.WriteString("system lane")
	} else {
		fmt.Fprintf(&b, "tenant %q", string(e.Tenant))
	}
	fmt.Fprintf(&b, " on shard %q: ", e.Shard)
	switch e.Limit {
	case LimitRate:
		b.WriteString("statement rate exceeded")
	case LimitConns:
		b.WriteString("no free connection permit")
	case LimitQueue:
		fmt.Fprintf(&b, "queue for a connection permit is full (%d waiting)", e.Queued)
	case LimitWait:
		b.WriteString("gave up waiting for a connection permit")
	default:
		fmt.Fprintf(&b, "limit %q exceeded", string(e.Limit))
	}
	if len(e.causes) > 0 {
		fmt.Fprintf(&b, ": %v", e.causes[0])
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, ", retry after %v", e.RetryAfter)
	}
	return b.String()
}

// Unwrap returns [ErrQuotaExceeded] and, when the caller's ctx ended the wait, its cause and its error.
func (e *ExceededError) Unwrap() []error {
	return append([]error{ErrQuotaExceeded}, e.causes...)
}

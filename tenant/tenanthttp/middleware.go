package tenanthttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tenantdal/tenantdal/tenant"
)

// Header is the header that carries the tenant, in the form in which net/http keeps it.
const Header = "Tenantdal-Tenant"

// Claim returns the tenant that the request proved it may act for, from a token or a client certificate that was verified. It must not read [Header].
type Claim func(*http.Request) (tenant.ID, error)

// Option changes a [Middleware].
type Option func(*config)

type config struct {
	required bool
	refused  func(*http.Request, error)
}

// RequireHeader refuses requests without [Header] as [ErrAmbiguous]: for callers whose token is good for one tenant only by their own account.
func RequireHeader() Option { return func(c *config) { c.required = true } }

// OnRefusal calls fn with each refused request and why, for logs and counters, before it is answered. fn writes no answer. The error may hold what the
// claim function said, which no caller sees.
func OnRefusal(fn func(r *http.Request, why error)) Option {
	return func(c *config) { c.refused = fn }
}

// Middleware runs the next handler under a context of exactly the claimed tenant: a tenant, system scope or shard that the context had is replaced. A
// request without [Header] passes by the claim alone, unless [RequireHeader] is given.
//
// A request that nothing proves a tenant for is answered with 401, one whose header names another tenant, no tenant or several with 403, and the next
// handler does not run. The answer's body is the status text: it names no tenant, so that nobody learns which exist. Middleware panics when claim is nil.
func Middleware(claim Claim, opts ...Option) func(http.Handler) http.Handler {
	if claim == nil {
		panic("tenanthttp: the claim function is nil: without it no tenant is proved")
	}
	var c config
	for _, o := range opts {
		o(&c)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, err := verify(r, claim, c.required)
			if err != nil {
				if c.refused != nil {
					c.refused(r, err)
				}
				status := http.StatusForbidden
				if errors.Is(err, ErrNoClaim) {
					status = http.StatusUnauthorized
				}
				http.Error(w, http.StatusText(status), status)
				return
			}
			next.ServeHTTP(w, r.WithContext(tenant.NewContext(r.Context(), id)))
		})
	}
}

func verify(r *http.Request, claim Claim, required bool) (tenant.ID, error) {
	id, err := claim(r)
	if err == nil {
		err = id.Validate()
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoClaim, err)
	}
	switch values := r.Header.Values(Header); {
	case len(values) == 0 && !required:
		return id, nil
	case len(values) != 1: // equal ones as well: a proxy in between may have read one, and may have added it
		return "", fmt.Errorf("%w: it has %d values", ErrAmbiguous, len(values))
	default:
		carried, err := tenant.ParseID(values[0])
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrAmbiguous, err)
		}
		if carried != id {
			return "", fmt.Errorf("%w: %w", ErrMismatch, &tenant.CarrierConflictError{Key: Header, Carrier: string(carried), Want: string(id)})
		}
		return id, nil
	}
}

// Transport sends the tenant of each request's context in [Header], for calls to other services that use [Middleware].
//
// A request whose context has no tenant is refused with the error of [tenant.FromContext], and one whose header names another tenant with a
// [*tenant.CarrierConflictError], before anything is sent. The request itself is not changed. Base nil means [http.DefaultTransport].
type Transport struct {
	Base http.RoundTripper
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip is [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	id, err := tenant.FromContext(r.Context())
	if err == nil {
		for _, v := range r.Header.Values(Header) {
			if v != string(id) {
				err = &tenant.CarrierConflictError{Key: Header, Carrier: v, Want: string(id)}
			}
		}
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // RoundTrip closes it, on errors too
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	if r.Header == nil { // of a request that was made by hand
		r.Header = http.Header{}
	}
	r.Header.Set(Header, string(id))
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}

package tenant

import (
	"errors"
	"fmt"
)

// The states that callers test with errors.Is. All of them may be wrapped.
var (
	// ErrNoTenant means that the context, carrier or envelope names no tenant. It never stands for "all tenants" or for a
	// default one.
	ErrNoTenant = errors.New("tenant: no tenant: bind one with tenant.NewContext, or tenant.Extract in a worker")

	// ErrInvalidID means that a value is not shaped as an [ID]. The error is an [*InvalidIDError].
	ErrInvalidID = errors.New("tenant: invalid tenant id")

	// ErrUnknownTenant means that the registry has no such tenant. The error is an [*UnknownTenantError].
	ErrUnknownTenant = errors.New("tenant: unknown tenant")

	// ErrSystemScope means that the context is under [System] while one tenant was asked for.
	ErrSystemScope = errors.New("tenant: the context is under the system scope and names no tenant: derive one per tenant with tenant.NewContext")

	// ErrNotSystem means that the context is not under [System] while the system scope was asked for.
	ErrNotSystem = errors.New("tenant: the context is not under the system scope: derive it with tenant.System, with a reason and the tables it opens")

	// ErrNoReason means that [System] was given no reason.
	ErrNoReason = errors.New("tenant: the system scope has no reason: say in tenant.System why tenants are crossed")

	// ErrNoTables means that [System] was given no table, or a blank table name.
	ErrNoTables = errors.New("tenant: the system scope opens no tables: name each of them in tenant.System")

	// ErrCarrierConflict means that a carrier names two tenants, or another one than the context. The error is a
	// [*CarrierConflictError].
	ErrCarrierConflict = errors.New("tenant: carrier conflict")

	// ErrNilCarrier means that [Inject] was given a nil map, which cannot be written.
	ErrNilCarrier = errors.New("tenant: the carrier is a nil map: make it before tenant.Inject")

	// ErrInvalidEnvelope means that an [Envelope] cannot be built or read. The error is an [*EnvelopeError], unless the
	// tenant is what fails, which has errors of its own.
	ErrInvalidEnvelope = errors.New("tenant: invalid envelope")

	// ErrSuspended means that the tenant is suspended. The error is a [*StatusError].
	ErrSuspended = errors.New("tenant: tenant is suspended")

	// ErrDeleting means that the tenant is being deleted. The error is a [*StatusError].
	ErrDeleting = errors.New("tenant: tenant is being deleted")
)

// InvalidIDError reports a value that is not shaped as an [ID]. It is [ErrInvalidID].
type InvalidIDError struct {
	Value  string // the value, cut after 64 bytes
	Reason string // what is wrong with it
}

// Error names the value, quoted, its fault, and the shape wanted.
func (e *InvalidIDError) Error() string {
	return fmt.Sprintf("tenant: invalid tenant id %q: %s: want [a-z0-9][a-z0-9_-]{0,62}, checked at the edge by tenant.ParseID", clip(e.Value), e.Reason)
}

// Is reports whether target is [ErrInvalidID].
func (e *InvalidIDError) Is(target error) bool { return target == ErrInvalidID }

// UnknownTenantError reports a tenant that the registry lacks. It is [ErrUnknownTenant].
type UnknownTenantError struct {
	ID ID
}

// Error names the tenant.
func (e *UnknownTenantError) Error() string {
	return fmt.Sprintf("tenant: unknown tenant %q: add it to the registry first", clip(string(e.ID)))
}

// Is reports whether target is [ErrUnknownTenant].
func (e *UnknownTenantError) Is(target error) bool { return target == ErrUnknownTenant }

// CarrierConflictError reports a carrier that names another tenant than the context, or two tenants. It is
// [ErrCarrierConflict].
type CarrierConflictError struct {
	Key     string // the carrier's key, as the carrier spells it
	Carrier string // the value under that key, cut after 64 bytes
	Want    string // the tenant of the context, or the value under another spelling of the key; cut after 64 bytes
}

// Error names both values, quoted.
func (e *CarrierConflictError) Error() string {
	return fmt.Sprintf("tenant: carrier conflict: %q is %q, but the tenant is already %q: drop the carrier's value, or refuse the request",
		clip(e.Key), clip(e.Carrier), clip(e.Want))
}

// Is reports whether target is [ErrCarrierConflict].
func (e *CarrierConflictError) Is(target error) bool { return target == ErrCarrierConflict }

// EnvelopeError reports a field that keeps an [Envelope] from being built or read. It is [ErrInvalidEnvelope]. It holds
// no payload.
type EnvelopeError struct {
	Field  string // as encoded: "tenant", "keyspace", "key", "v", "kind", "payload", "meta"; "" for the envelope as a whole
	Reason string
	Err    error // the cause, may be nil
}

// Error names the field and its fault.
func (e *EnvelopeError) Error() string {
	s := "tenant: invalid envelope: "
	if e.Field != "" {
		s += e.Field + ": "
	}
	s += e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + ": do not run the job; dead-letter it with this reason"
}

// Is reports whether target is [ErrInvalidEnvelope].
func (e *EnvelopeError) Is(target error) bool { return target == ErrInvalidEnvelope }

// Unwrap returns the cause, or nil.
func (e *EnvelopeError) Unwrap() error { return e.Err }

// StatusError reports a tenant that is not served in its present status. It is [ErrSuspended] or [ErrDeleting].
type StatusError struct {
	Tenant ID
	Status Status
}

// Error names the tenant and its status.
func (e *StatusError) Error() string {
	todo := "set its status in the registry"
	switch e.Status {
	case Suspended:
		todo = "set it active in the registry to serve it again"
	case Deleting:
		todo = "stop its work; its data is being removed"
	}
	return fmt.Sprintf("tenant: tenant %q is %s and not served: %s", clip(string(e.Tenant)), e.Status, todo)
}

// Is reports whether target is the sentinel of the status.
func (e *StatusError) Is(target error) bool {
	switch e.Status {
	case Suspended:
		return target == ErrSuspended
	case Deleting:
		return target == ErrDeleting
	}
	return false
}

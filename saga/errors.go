package saga

import (
	"errors"
	"fmt"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// The states that callers test with errors.Is. All of them may be wrapped.
var (
	// ErrNoDonation means that no donation was started under that player and key.
	ErrNoDonation = errors.New("saga: no such donation")

	// ErrConflict means that the idempotency key was used before with another body. The error is a [*ConflictError] or a [*MintConflictError].
	ErrConflict = errors.New("saga: the key was used before with another body")

	// ErrInsufficient means that the balance is smaller than what was asked for. The error is an [*InsufficientError].
	ErrInsufficient = errors.New("saga: not enough in the balance")

	// ErrQuantity means that a quantity is not positive. The error is a [*QuantityError].
	ErrQuantity = errors.New("saga: the quantity is not positive")

	// ErrField means that a donation or mint lacks a field or has an unusable one. The error is a [*FieldError].
	ErrField = errors.New("saga: unusable field")

	// ErrOverflow means that a balance would pass 2^63-1. The error is an [*OverflowError].
	ErrOverflow = errors.New("saga: the balance would pass 2^63-1")

	// ErrUnknownOutcome means that the connection broke during a commit and the journal could not be read since. The error is an
	// [*UnknownOutcomeError].
	ErrUnknownOutcome = errors.New("saga: it is not known whether the donation was started")

	// ErrContended means that a transaction was tried Config.Retries times, each time in vain, and may be tried again later. The error is a
	// [*ContendedError].
	ErrContended = errors.New("saga: every try of the transaction was lost")

	// ErrScope means that a system scope does not open the tables of this package. The error is a [*ScopeError].
	ErrScope = errors.New("saga: the system scope does not open the saga tables")

	// ErrStarted means that Start was called twice.
	ErrStarted = errors.New("saga: started already")

	// ErrClosed means that the donations were closed. It is the cause with which a cut drain cancels its work.
	ErrClosed = errors.New("saga: closed")
)

// ConflictError reports a key that its player used before for a donation with another guild, item or quantity. That donation stands, and nothing was
// changed. It is [ErrConflict].
type ConflictError struct {
	Tenant tenant.ID
	Player string
	Key    string
	SagaID ID // of the donation that stands
}

// Error names the tenant and the donation that stands.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("saga: tenant %q: donation %s stands under this player and key, with another guild, item or quantity: use a new key", e.Tenant, e.SagaID)
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// MintConflictError reports a mint id that its player or guild used before for something else. Nothing was changed. It is [ErrConflict].
type MintConflictError struct {
	Tenant tenant.ID
	MintID string
	Owner  string // the player or the guild
}

// Error names the tenant.
func (e *MintConflictError) Error() string {
	return fmt.Sprintf("saga: tenant %q: the ledger holds this id for this owner already, with another kind, item or quantity: use a new id", e.Tenant)
}

// Is reports whether target is [ErrConflict].
func (e *MintConflictError) Is(target error) bool { return target == ErrConflict }

// InsufficientError reports a balance that is smaller than what was asked for. Nothing is left behind: the key stays free. It is [ErrInsufficient].
type InsufficientError struct {
	Tenant tenant.ID
	Owner  string // the player, or the guild for [Donations.BurnStock]
	Item   string
	Qty    int64 // what was asked for
}

// Error names the tenant and the quantity asked for.
func (e *InsufficientError) Error() string {
	return fmt.Sprintf("saga: tenant %q: the balance is smaller than %d", e.Tenant, e.Qty)
}

// Is reports whether target is [ErrInsufficient].
func (e *InsufficientError) Is(target error) bool { return target == ErrInsufficient }

// QuantityError reports a quantity of zero or less. Nothing was sent. It is [ErrQuantity].
type QuantityError struct{ Qty int64 }

// Error names the quantity.
func (e *QuantityError) Error() string {
	return fmt.Sprintf("saga: quantity %d is not positive", e.Qty)
}

// Is reports whether target is [ErrQuantity].
func (e *QuantityError) Is(target error) bool { return target == ErrQuantity }

// FieldError reports a field that is empty, too long or no shard key. Nothing was sent. It is [ErrField].
type FieldError struct {
	Field string // "Key", "Player", "Guild", "Item" or "MintID"
	Err   error  // what is wrong with it; shardrouter's error for a key of 0
}

// Error names the field and its fault.
func (e *FieldError) Error() string { return fmt.Sprintf("saga: field %s: %v", e.Field, e.Err) }

// Is reports whether target is [ErrField].
func (e *FieldError) Is(target error) bool { return target == ErrField }

// Unwrap returns what is wrong with the field.
func (e *FieldError) Unwrap() error { return e.Err }

// OverflowError reports a cell that would pass 2^63-1. Nothing was changed. It is [ErrOverflow].
type OverflowError struct {
	Tenant tenant.ID
	Owner  string // the player or the guild
	Item   string
	Qty    int64 // what was to be added
}

// Error names the tenant and the quantity.
func (e *OverflowError) Error() string {
	return fmt.Sprintf("saga: tenant %q: adding %d would pass 2^63-1", e.Tenant, e.Qty)
}

// Is reports whether target is [ErrOverflow].
func (e *OverflowError) Is(target error) bool { return target == ErrOverflow }

// UnknownOutcomeError reports a donation whose commit broke and whose journal could not be read since. Donating again with the same key and body
// is safe: it finds what happened. It is [ErrUnknownOutcome].
type UnknownOutcomeError struct {
	Tenant tenant.ID
	SagaID ID
	Err    error // why the journal could not be read, joined with the broken commit
}

// Error names the tenant, the donation and the cause.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("saga: tenant %q: donation %s: it is not known whether it was started; donate again with the same key to find out: %v", e.Tenant, e.SagaID, e.Err)
}

// Is reports whether target is [ErrUnknownOutcome].
func (e *UnknownOutcomeError) Is(target error) bool { return target == ErrUnknownOutcome }

// Unwrap returns the cause.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// ContendedError reports a transaction that was tried Config.Retries times. Each try lost a lock, met rows that others changed meanwhile, or broke during
// its COMMIT. The same call again is safe, after a pause: a donation or a mint that was carried out is found and not done twice. Of a donation nothing
// was moved; of a mint neither, unless the error is also [dal.ErrOutcomeUnknown]. It is [ErrContended].
type ContendedError struct {
	Tries int
	Err   error // how the last try was lost
}

// Error names the number of tries and how the last one was lost.
func (e *ContendedError) Error() string {
	return fmt.Sprintf("saga: %d tries of the transaction were lost; call again later: %v", e.Tries, e.Err)
}

// Is reports whether target is [ErrContended].
func (e *ContendedError) Is(target error) bool { return target == ErrContended }

// Unwrap returns how the last try was lost.
func (e *ContendedError) Unwrap() error { return e.Err }

// ScopeError reports a system scope that does not open a table that the call reads or writes. It is [ErrScope].
type ScopeError struct {
	Op    string
	Table string
}

// Error names the call, the table and the mend.
func (e *ScopeError) Error() string {
	return fmt.Sprintf("saga: %s: the system scope does not open table %q: pass saga.TableNames() to tenant.System", e.Op, e.Table)
}

// Is reports whether target is [ErrScope].
func (e *ScopeError) Is(target error) bool { return target == ErrScope }

// PlacesError reports work over many places that was not done in some of them. What was done elsewhere stands, and the report beside the error holds
// it. It unwraps to the errors of the places.
type PlacesError struct {
	Op     string
	Failed map[dal.Place]error // never empty
}

// Error names the first failed place, in order, and how many failed.
func (e *PlacesError) Error() string {
	places := sortedPlaces(e.Failed)
	if len(places) == 0 {
		return "saga: " + e.Op + " failed"
	}
	return fmt.Sprintf("saga: %s failed in %d place(s); in %s: %v", e.Op, len(places), places[0], e.Failed[places[0]])
}

// Unwrap returns the errors of the places, in the order of the places.
func (e *PlacesError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed))
	for _, p := range sortedPlaces(e.Failed) {
		errs = append(errs, e.Failed[p])
	}
	return errs
}

package tenanthttp

import "errors"

// The states that an [Option] for refusals may test with errors.Is; all of them are wrapped.
var (
	// ErrNoClaim means that nothing proved a tenant: the claim function failed, or returned no tenant or an ill-formed one. The status is 401.
	ErrNoClaim = errors.New("tenanthttp: no verified tenant")

	// ErrMismatch means that the header names another tenant than the claim. The status is 403.
	ErrMismatch = errors.New("tenanthttp: the header names another tenant than the claim")

	// ErrAmbiguous means that the header has several values, or one that is no tenant. The status is 403.
	ErrAmbiguous = errors.New("tenanthttp: the header does not name one tenant")
)

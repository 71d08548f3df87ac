package tenant

import (
	"context"
	"slices"
	"strings"
)

// CarrierKey is the key under which a carrier (message headers, HTTP headers, job metadata) holds the tenant.
const CarrierKey = "tenantdal-tenant"

// Inject writes the tenant of ctx into carrier under [CarrierKey].
//
// Where ctx has no tenant it writes nothing and returns the error of [FromContext]. Where the carrier already names a
// tenant, in any spelling of the key's case, it writes nothing: an equal value is fine, another one is a
// [*CarrierConflictError]. A nil carrier is [ErrNilCarrier].
func Inject(ctx context.Context, carrier map[string]string) error {
	id, err := FromContext(ctx)
	if err != nil {
		return err
	}
	if carrier == nil {
		return ErrNilCarrier
	}
	key, value, found, err := carried(carrier)
	switch {
	case err != nil:
		return err
	case !found:
		carrier[CarrierKey] = string(id)
	case value != string(id):
		return &CarrierConflictError{Key: clip(key), Carrier: clip(value), Want: string(id)}
	}
	return nil
}

// Extract returns a context bound to the tenant that carrier names, and to nothing that ctx had from an earlier job:
// its tenant, its system scope and its shard are replaced. Deadline, cancellation and other values of ctx stay.
//
// The key is matched without regard to case, since HTTP changes it. The value is parsed by [ParseID] and never coerced.
//
//   - A carrier without the key, or with the empty value, is [ErrNoTenant].
//   - An ill-formed value is an [*InvalidIDError].
//   - Two spellings of the key with different values are a [*CarrierConflictError].
//   - So is a ctx that is bound to another tenant: what a token proved is never overridden by a header. A ctx that is
//     bound to an ill-formed id returns that error.
//
// A ctx under [System] is narrowed to the carrier's tenant. Beside an error the context returned has no tenant:
// [FromContext] on it gives the same error. Like [NewContext], Extract panics when ctx is nil.
func Extract(ctx context.Context, carrier map[string]string) (context.Context, error) {
	id, err := extract(ctx, carrier)
	if err != nil {
		return noTenant(ctx, err), err
	}
	return NewContext(ctx, id), nil
}

func extract(ctx context.Context, carrier map[string]string) (ID, error) {
	key, value, _, err := carried(carrier)
	if err != nil {
		return "", err
	}
	if value == "" {
		return "", ErrNoTenant
	}
	id, err := ParseID(value)
	if err != nil {
		return "", err
	}
	switch s := scopeOf(ctx); {
	case s == nil || s.bypass != nil || s.err == ErrNoTenant:
	case s.err != nil:
		return "", s.err
	case s.id != id:
		return "", &CarrierConflictError{Key: clip(key), Carrier: string(id), Want: string(s.id)}
	}
	return id, nil
}

// carried returns the tenant entry of a carrier, however its key is spelled. Two entries with different values are a
// conflict; the error names them in sorted order, so that it reads the same each time.
func carried(carrier map[string]string) (key, value string, found bool, err error) {
	var keys []string
	for k := range carrier {
		if isCarrierKey(k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		switch {
		case !found:
			key, value, found = k, carrier[k], true
		case carrier[k] != value:
			return "", "", true, &CarrierConflictError{Key: k, Carrier: clip(carrier[k]), Want: clip(value)}
		}
	}
	return key, value, found, nil
}

// isCarrierKey reports whether k is CarrierKey in any case.
func isCarrierKey(k string) bool {
	return strings.EqualFold(k, CarrierKey)
}

package tenant

import "fmt"

// Model is how a tenant's rows are kept apart from those of others. The zero value is invalid.
type Model uint8

const (
	SharedTable Model = iota + 1 // "shared": the default shards, tables shared with other tenants
	OwnSchema                    // "schema": the default shards, a schema of its own on each
	OwnDatabase                  // "database": shards of its own
)

var modelWords = [...]string{SharedTable: "shared", OwnSchema: "schema", OwnDatabase: "database"}

// ParseModel returns the model that the word names: "shared", "schema" or "database". Any other word is an error.
func ParseModel(s string) (Model, error) {
	for m := SharedTable; m <= OwnDatabase; m++ {
		if modelWords[m] == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("tenant: unknown isolation model %q: want shared, schema or database", clip(s))
}

// Validate returns nil for the three models and an error for any other value, the zero one included.
func (m Model) Validate() error {
	if m < SharedTable || m > OwnDatabase {
		return fmt.Errorf("tenant: invalid isolation model %d: want SharedTable, OwnSchema or OwnDatabase", uint8(m))
	}
	return nil
}

// String returns the word that [ParseModel] reads, or "Model(n)" for an invalid value.
func (m Model) String() string {
	if m.Validate() != nil {
		return fmt.Sprintf("Model(%d)", uint8(m))
	}
	return modelWords[m]
}

// MarshalText returns the word of the model, or the error of [Model.Validate].
func (m Model) MarshalText() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return []byte(modelWords[m]), nil
}

// UnmarshalText sets the model from its word, as [ParseModel] reads it.
func (m *Model) UnmarshalText(text []byte) error {
	v, err := ParseModel(string(text))
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// Status is whether a tenant is served. The zero value is invalid in a [Tenant], and read as Active by [Place] and
// [NewStatic].
type Status uint8

const (
	Active    Status = iota + 1 // "active": served
	Suspended                   // "suspended": kept, not served, or reads only where the store says so
	Deleting                    // "deleting": being removed, not served
)

var statusWords = [...]string{Active: "active", Suspended: "suspended", Deleting: "deleting"}

// ParseStatus returns the status that the word names: "active", "suspended" or "deleting". Any other word is an error.
func ParseStatus(s string) (Status, error) {
	for st := Active; st <= Deleting; st++ {
		if statusWords[st] == s {
			return st, nil
		}
	}
	return 0, fmt.Errorf("tenant: unknown status %q: want active, suspended or deleting", clip(s))
}

// Validate returns nil for the three statuses and an error for any other value, the zero one included.
func (s Status) Validate() error {
	if s < Active || s > Deleting {
		return fmt.Errorf("tenant: invalid status %d: want Active, Suspended or Deleting", uint8(s))
	}
	return nil
}

// String returns the word that [ParseStatus] reads, or "Status(n)" for an invalid value.
func (s Status) String() string {
	if s.Validate() != nil {
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
	return statusWords[s]
}

// MarshalText returns the word of the status, or the error of [Status.Validate].
func (s Status) MarshalText() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return []byte(statusWords[s]), nil
}

// UnmarshalText sets the status from its word, as [ParseStatus] reads it.
func (s *Status) UnmarshalText(text []byte) error {
	v, err := ParseStatus(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

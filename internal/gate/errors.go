package gate

// Code says why a statement is refused, for callers that have an error of their own for it.
type Code uint8

const (
	// Shape is a text that is not on the list of what can be scoped.
	Shape Code = iota + 1
	// Undeclared is a table that the schema lacks.
	Undeclared
	// Closed is a declared table that the scope does not open.
	Closed
	// Immutable is a write to a column that never changes.
	Immutable
	// Foreign is a value of another tenant.
	Foreign
)

// Refusal says why a statement may not leave and how to write it. It never holds the statement's text or values.
type Refusal struct {
	Code   Code
	Reason string
	Hint   string // may be empty
	Table  string // may be empty
	Column string // for Immutable
}

// Error returns reason and hint.
func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Reason
	}
	return r.Reason + "; " + r.Hint
}

func refuse(reason, hint string) *Refusal { return &Refusal{Code: Shape, Reason: reason, Hint: hint} }

package wire

import (
	"errors"
	"fmt"

	"github.com/tenantdal/tenantdal/internal/gate"
)

var (
	// ErrUnmarked reports a statement that reached the driver without the mark of the data access layer. Nothing was sent. Possibly wrapped.
	ErrUnmarked = errors.New("wire: statement refused: it did not come through the data access layer")

	// ErrPoisoned reports a transaction that cannot be committed because one of its statements failed in a way that leaves it half done.
	// Everything in it was rolled back. Possibly wrapped; the cause is wrapped beside it.
	ErrPoisoned = errors.New("wire: transaction poisoned")
)

// ErrGivenBack reports a connection of database/sql's, or what was opened on it, that was kept beyond its end and used again. Nothing was sent.
// Possibly wrapped.
var ErrGivenBack = errors.New("wire: the connection was given back")

// UnmarkedError is the refusal of one operation. It is [ErrUnmarked].
type UnmarkedError struct {
	Shard string // the shard whose pool was asked; empty for pools outside a topology
	Op    string // "exec", "query", "prepare" or "begin"
	Why   string
}

// Error names the shard, the operation and the way to do it right. It never holds the statement's text.
func (e *UnmarkedError) Error() string {
	return fmt.Sprintf("wire: shard %q: %s refused: %s; use the *gorm.DB that Store.On returns, with its own methods", e.Shard, e.Op, e.Why)
}

// Is reports that every UnmarkedError is an [ErrUnmarked].
func (e *UnmarkedError) Is(target error) bool { return target == ErrUnmarked }

// ErrRefused reports a statement that the gate did not let pass: it is not bound to its tenant, or cannot be read. Nothing was sent. Possibly wrapped;
// see [RefusedError].
var ErrRefused = errors.New("wire: statement refused by the gate")

// RefusedError is the gate's refusal of one statement. It is [ErrRefused].
type RefusedError struct {
	Shard string
	Op    string // "exec", "query" or "prepare"
	Why   *gate.Refusal
}

// Error names shard, operation, reason and hint. It never holds the statement's text or values.
func (e *RefusedError) Error() string {
	s := fmt.Sprintf("wire: shard %q: %s refused: %s", e.Shard, e.Op, e.Why.Reason)
	if e.Why.Table != "" {
		s += fmt.Sprintf(" (table %q)", e.Why.Table)
	}
	if e.Why.Hint != "" {
		s += "; " + e.Why.Hint
	}
	return s
}

// Is reports that every RefusedError is an [ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// ConnectError reports a database that could not be reached or did not accept the connection. Nothing was sent to it.
type ConnectError struct {
	Shard string
	Err   error
}

// Error names the shard and the driver's reason; the driver's messages hold no password.
func (e *ConnectError) Error() string {
	return fmt.Sprintf("wire: shard %q: cannot connect: %v", e.Shard, e.Err)
}

// Unwrap returns the driver's error.
func (e *ConnectError) Unwrap() error { return e.Err }

package schema

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// The states that callers test with errors.Is. All of them may be wrapped.
var (
	// ErrLint means that a set is not one that [Up] applies. The error holds one or more [*LintError].
	ErrLint = errors.New("schema: set refused")

	// ErrRegistry means that the configuration's registry cannot do what the call needs: list its tenants for [Up] and [Status]
	// ([tenant.Lister]), be there at all for [Provision].
	ErrRegistry = errors.New("schema: unsuitable registry")

	// ErrChecksum means that a file was changed after it was applied. The error is a [*ChecksumError].
	ErrChecksum = errors.New("schema: an applied file was changed")

	// ErrOutOfOrder means that a file was added before one that is applied. The error is an [*OutOfOrderError].
	ErrOutOfOrder = errors.New("schema: file out of order")

	// ErrDirty means that a file was started and it is not known whether it took effect. The error is a [*DirtyError].
	ErrDirty = errors.New("schema: a file was started and not finished")

	// ErrNotDirty means that [Resolve] was asked about a file that is not dirty.
	ErrNotDirty = errors.New("schema: nothing to resolve: the file is not one that was started and not finished")

	// ErrLocked means that another run holds a database. The error is a [*LockedError].
	ErrLocked = errors.New("schema: locked by another run")

	// ErrLockLost means that the connection that holds the lock broke, so that another run may have begun. Nothing more is applied then.
	ErrLockLost = errors.New("schema: the lock was lost")

	// ErrGrant means that the operator's login lacks a right. The error is a [*GrantError].
	ErrGrant = errors.New("schema: missing right")

	// ErrLogin means that a tenant's own login cannot be used. The error is a [*LoginError].
	ErrLogin = errors.New("schema: unusable login")

	// ErrIdentity means that a database belongs to another place. The error is an [*IdentityError].
	ErrIdentity = errors.New("schema: the database belongs to another place")

	// ErrPlaceConflict means that two places would be one database. The error is a [*PlaceConflictError].
	ErrPlaceConflict = errors.New("schema: two places in one database")

	// ErrNotMigrated means that [Provision] or [Resolve] found no control database: [Up] comes first. The driver's error may be wrapped beside it.
	ErrNotMigrated = errors.New("schema: there is no control database yet: run schema.Up")

	// ErrUnknownPlace means that [Resolve] was asked about a place that neither the topology nor a tenant has.
	ErrUnknownPlace = errors.New("schema: unknown place")
)

// LintError reports one fault of a set. It is [ErrLint].
type LintError struct {
	Set     string
	File    string // with its folder; empty for the set as a whole
	Problem string
	Mend    string
}

// Error names set, file, fault and mend.
func (e *LintError) Error() string {
	at := ""
	if e.File != "" {
		at = ", file " + e.File
	}
	return fmt.Sprintf("schema: set %q%s: %s: %s", e.Set, at, e.Problem, e.Mend)
}

// Is reports whether target is [ErrLint].
func (e *LintError) Is(target error) bool { return target == ErrLint }

// ChecksumError reports a file that was changed, renamed to another number or removed after it was applied. It is [ErrChecksum].
type ChecksumError struct {
	Place   dal.Place // zero: the control database
	Set     string
	Version int64
	File    string // as it was when it was applied; empty when that was never recorded
	Applied string // the checksum then, empty when that was never recorded
	Found   string // the checksum now, empty when the file is gone
}

// Error names place, set and file, what happened to it and the way on.
func (e *ChecksumError) Error() string {
	what := "was changed after it was applied"
	switch {
	case e.Found == "":
		what = "was applied and is gone"
	case e.Applied == "":
		what = "was applied, but not by this library: its checksum was never recorded"
	}
	name := e.File
	if name == "" {
		name = fmt.Sprintf("number %d", e.Version)
	}
	return fmt.Sprintf("schema: %s, set %q: file %s %s: bring it back as it was, and make the change in a new file", placeName(e.Place), e.Set, name, what)
}

// Is reports whether target is [ErrChecksum].
func (e *ChecksumError) Is(target error) bool { return target == ErrChecksum }

// OutOfOrderError reports files whose numbers are below one that is applied. It is [ErrOutOfOrder].
type OutOfOrderError struct {
	Place   dal.Place
	Set     string
	Files   []string // sorted, never empty
	Version int64    // the last one applied
}

// Error names place, set and files and the way on.
func (e *OutOfOrderError) Error() string {
	return fmt.Sprintf("schema: %s, set %q: %s came after version %d was applied: give it a number above that", placeName(e.Place), e.Set, strings.Join(e.Files, ", "), e.Version)
}

// Is reports whether target is [ErrOutOfOrder].
func (e *OutOfOrderError) Is(target error) bool { return target == ErrOutOfOrder }

// DirtyError reports a file whose statement was sent to a server that commits DDL by itself, in a run that ended before the answer came. It may have
// taken effect, and it may not run twice. It is [ErrDirty].
type DirtyError struct {
	Place   dal.Place
	Set     string
	Version int64
	File    string
	Changed bool // the file was changed since, so it cannot be run again even where it could have been
}

// Error names the file and says how to go on.
func (e *DirtyError) Error() string {
	why := "cannot run twice"
	if e.Changed {
		why = "was changed since"
	}
	return fmt.Sprintf("schema: %s, set %q: file %s was started, its outcome is not known, and it %s: look whether its statement took effect, tell schema.Resolve, and run schema.Up again",
		placeName(e.Place), e.Set, e.File, why)
}

// Is reports whether target is [ErrDirty].
func (e *DirtyError) Is(target error) bool { return target == ErrDirty }

// LockedError reports a database that another run held for all the time this one waited. It is [ErrLocked].
type LockedError struct {
	What   string // the folder, or the database
	Waited time.Duration
	Holder int64 // the id of the connection (MySQL) or of the server's process (PostgreSQL) that holds it, 0 when it is not known
}

// Error names what is locked, by whom where that is known, and the way on.
func (e *LockedError) Error() string {
	by := ""
	if e.Holder != 0 {
		by = fmt.Sprintf(" (connection %d)", e.Holder)
	}
	return fmt.Sprintf("schema: %s is locked by another run%s; waited %v: run again when that one is done", e.What, by, e.Waited)
}

// Is reports whether target is [ErrLocked].
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// GrantError reports a right that the operator's login lacks. It is [ErrGrant].
type GrantError struct {
	Server string // without its password
	Op     string // what was being done
	Grant  string // the statement that gives the right, for an administrator of the server to run
	Err    error  // the server's refusal
}

// Error names the server and the statement that mends it.
func (e *GrantError) Error() string {
	return fmt.Sprintf("schema: %s: %s: missing right: %v: run %s;", e.Server, e.Op, e.Err, e.Grant)
}

// Is reports whether target is [ErrGrant].
func (e *GrantError) Is(target error) bool { return target == ErrGrant }

// Unwrap returns the server's refusal.
func (e *GrantError) Unwrap() error { return e.Err }

// LoginError reports the login of a tenant with a database of its own that could not be made or does not work. It never holds the password, nor the
// server's message, which might. It is [ErrLogin].
type LoginError struct {
	Server string
	User   string
	Op     string
	Code   int    // the server's error number, 0 when it gave none
	State  string // PostgreSQL's code; empty for the other servers
}

// Error names server, user and the server's error number.
func (e *LoginError) Error() string {
	if e.State != "" {
		return fmt.Sprintf("schema: %s: %s login %q: the server's error %s: look its code up, and whether pg_hba.conf lets the login in with a password", e.Server, e.Op, e.User, e.State)
	}
	return fmt.Sprintf("schema: %s: %s login %q: the server's error %d: look its number up; accounts named '' or of a narrower host hide this one", e.Server, e.Op, e.User, e.Code)
}

// Is reports whether target is [ErrLogin].
func (e *LoginError) Is(target error) bool { return target == ErrLogin }

// IdentityError reports a database that says it is another place than the one it was opened for: servers were named in another order, or a copy of
// one place was put where another belongs. Nothing was changed in it. It is [ErrIdentity].
type IdentityError struct {
	Place    dal.Place // asked for
	Found    dal.Place // what the database says
	Database string    // without a password
}

// Error names the database and both places.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("schema: %s is %s and was named as %s: name the databases in the order in which they were made", e.Database, placeName(e.Found), placeName(e.Place))
}

// Is reports whether target is [ErrIdentity].
func (e *IdentityError) Is(target error) bool { return target == ErrIdentity }

// PlaceConflictError reports two places that would be one database, of two tenants or of a tenant and the library. Nothing was done. It is
// [ErrPlaceConflict].
type PlaceConflictError struct {
	Database string
	First    string
	Second   string
}

// Error names the database and both claims on it.
func (e *PlaceConflictError) Error() string {
	return fmt.Sprintf("schema: %s would be both %s and %s: change the shard or schema name of one tenant's placement", e.Database, e.First, e.Second)
}

// Is reports whether target is [ErrPlaceConflict].
func (e *PlaceConflictError) Is(target error) bool { return target == ErrPlaceConflict }

// Failure is one place, or the control database, that a run did not bring to its end.
type Failure struct {
	Place  dal.Place // zero: the control database
	Tenant tenant.ID // whose place it is; empty for a shared one
	Set    string    // the set that failed; empty when none was begun
	File   string    // the file that failed; empty when none was begun
	Err    error
}

// String names place, set, file and cause.
func (f Failure) String() string {
	s := placeName(f.Place)
	if f.Set != "" {
		s += fmt.Sprintf(", set %q", f.Set)
	}
	if f.File != "" {
		s += ", file " + f.File
	}
	return s + ": " + f.Err.Error()
}

// UpError reports a run that left something undone. What is done stays; running again goes on from there.
type UpError struct {
	Op     string      // "up" or "provision"
	Done   []dal.Place // brought to their end, sorted; may be empty
	Failed []Failure   // sorted by place, never empty; a failure of the control database stands alone, since nothing else is begun then
}

// maxListed is how many failures the message of an [UpError] shows.
const maxListed = 5

// Error counts what is done and lists the first failures.
func (e *UpError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schema: %s: %d done, %d failed: ", e.Op, len(e.Done), len(e.Failed))
	for i, f := range e.Failed[:min(len(e.Failed), maxListed)] {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.String())
	}
	if more := len(e.Failed) - maxListed; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	b.WriteString(": mend the cause and run again")
	return b.String()
}

// Unwrap returns the cause of every failure.
func (e *UpError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f.Err
	}
	return errs
}

// placeName names a place in messages.
func placeName(p dal.Place) string {
	if p == (dal.Place{}) {
		return "the control database"
	}
	return "place " + p.String()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

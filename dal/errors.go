package dal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// ErrNoLoginSecret reports a cluster without a secret from which the login of a tenant with a database of its own could be derived.
var ErrNoLoginSecret = errors.New("dal: no secret for the logins of tenants with databases of their own: set Cluster.LoginSecret")

// ErrUnknownShard reports a shard that the cluster or the topology lacks. Possibly wrapped; see [UnknownShardError].
var ErrUnknownShard = errors.New("dal: unknown shard")

// UnknownShardError names the shard. It is [ErrUnknownShard].
type UnknownShardError struct{ Shard shardrouter.ShardID }

// Error names the shard.
func (e *UnknownShardError) Error() string {
	return fmt.Sprintf("dal: unknown shard %q: it is neither in the topology nor the tenant's own", e.Shard)
}

// Is reports that every UnknownShardError is an [ErrUnknownShard].
func (e *UnknownShardError) Is(target error) bool { return target == ErrUnknownShard }

// URLError reports an unusable shard URL. It never holds the URL, which may hold a password.
type URLError struct {
	Position int // from 1
	Reason   string
}

// Error names the URL by its position in the list.
func (e *URLError) Error() string {
	return fmt.Sprintf("dal: shard URL %d: %s; the form is mysql://user@host:port/database, or postgres://", e.Position, e.Reason)
}

// ErrNotMigrated reports a place, or the control database, whose tables are missing or of an older version. Possibly wrapped.
var ErrNotMigrated = errors.New("dal: schema not migrated: run schema.Up, or schema.Provision for a tenant added later")

// ErrModel reports a declared table that cannot be kept apart by tenant. Possibly wrapped and joined; see [ModelError].
var ErrModel = errors.New("dal: model refused")

// ModelError names one mistake in a declared table, with its mend. It is [ErrModel].
type ModelError struct {
	Place   Place  // where the database was found to disagree; zero for the declaration itself
	Table   string // may be empty when the model has none
	Model   string
	Problem string
	Mend    string
}

// Error names table, problem and mend.
func (e *ModelError) Error() string {
	at := ""
	if e.Place.Shard != "" {
		at = " in " + e.Place.String()
	}
	return fmt.Sprintf("dal: table %q (%s)%s: %s; %s", e.Table, e.Model, at, e.Problem, e.Mend)
}

// Is reports that every ModelError is an [ErrModel].
func (e *ModelError) Is(target error) bool { return target == ErrModel }

// ErrRole reports a PostgreSQL login under which row-level security would not hold. Possibly wrapped and joined; see [RoleError].
var ErrRole = errors.New("dal: role refused")

// RoleError names the login and why. It is [ErrRole].
type RoleError struct {
	Place   Place
	Role    string
	Problem string
}

// Error names place, role and problem.
func (e *RoleError) Error() string {
	return fmt.Sprintf("dal: role %q in %s: %s; take that right away, schema.Up makes the role without it", e.Role, e.Place, e.Problem)
}

// Is reports that every RoleError is an [ErrRole].
func (e *RoleError) Is(target error) bool { return target == ErrRole }

// ErrShape reports a statement shape that the scope cannot be written into. Nothing was sent. Possibly wrapped; see [ShapeError].
var ErrShape = errors.New("dal: statement shape refused")

// ShapeError names the shape and how to write it. It is [ErrShape]. It never holds the statement's text or values.
type ShapeError struct {
	Shape string
	Table string // may be empty
	Hint  string
}

// Error names the shape, the table and the hint.
func (e *ShapeError) Error() string {
	s := "dal: refused: " + e.Shape
	if e.Table != "" {
		s += fmt.Sprintf(" on table %q", e.Table)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Is reports that every ShapeError is an [ErrShape].
func (e *ShapeError) Is(target error) bool { return target == ErrShape }

// ErrUndeclared reports a model or table that Config.Tables lacks. Nothing was sent. Possibly wrapped; see [UndeclaredError].
var ErrUndeclared = errors.New("dal: undeclared table")

// UndeclaredError names the table and the model. It is [ErrUndeclared].
type UndeclaredError struct{ Table, Model string }

// Error names the table and how to declare it.
func (e *UndeclaredError) Error() string {
	model := ""
	if e.Model != "" {
		model = " (" + e.Model + ")"
	}
	return fmt.Sprintf("dal: refused: table %q%s is not declared; add it to Config.Tables", e.Table, model)
}

// Is reports that every UndeclaredError is an [ErrUndeclared].
func (e *UndeclaredError) Is(target error) bool { return target == ErrUndeclared }

// ErrTenantMismatch reports a context or row of another tenant than the handle's. Nothing was sent. Possibly wrapped.
var ErrTenantMismatch = errors.New("dal: another tenant than the handle's")

// MismatchError names both tenants. It is [ErrTenantMismatch].
type MismatchError struct {
	Handle, Other tenant.ID // either may be empty
	What          string
}

// Error names what disagrees.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("dal: refused: %s belongs to tenant %q, the handle to tenant %q", e.What, e.Other, e.Handle)
}

// Is reports that every MismatchError is an [ErrTenantMismatch].
func (e *MismatchError) Is(target error) bool { return target == ErrTenantMismatch }

// ErrImmutable reports a change of a row's tenant, primary key or shard key. Nothing was sent. Possibly wrapped; see [ImmutableError].
var ErrImmutable = errors.New("dal: column is immutable")

// ImmutableError names the column. It is [ErrImmutable].
type ImmutableError struct{ Table, Column string }

// Error names table and column.
func (e *ImmutableError) Error() string {
	return fmt.Sprintf("dal: refused: table %q: column %q never changes: it says whose row it is and where it lives; omit it", e.Table, e.Column)
}

// Is reports that every ImmutableError is an [ErrImmutable].
func (e *ImmutableError) Is(target error) bool { return target == ErrImmutable }

// ErrKeyspace reports a statement on a table of another keyspace than the handle's. Nothing was sent. Possibly wrapped; see [KeyspaceError].
var ErrKeyspace = errors.New("dal: table of another keyspace")

// KeyspaceError names both keyspaces. It is [ErrKeyspace].
type KeyspaceError struct{ Table, Keyspace, Handle string }

// Error names the table, its keyspace and the handle's.
func (e *KeyspaceError) Error() string {
	return fmt.Sprintf("dal: refused: table %q is in keyspace %q, the handle in %q; ask Store.On for a key of that keyspace", e.Table, e.Keyspace, e.Handle)
}

// Is reports that every KeyspaceError is an [ErrKeyspace].
func (e *KeyspaceError) Is(target error) bool { return target == ErrKeyspace }

// ErrCrossShard reports a row or a nested call whose key another shard owns. Nothing was sent. Possibly wrapped; see [CrossShardError].
var ErrCrossShard = errors.New("dal: key of another shard")

// CrossShardError names both shards. It is [ErrCrossShard].
type CrossShardError struct {
	Table        string // empty for a nested call
	Held, Wanted shardrouter.ShardID
}

// Error names both shards.
func (e *CrossShardError) Error() string {
	if e.Table == "" {
		return fmt.Sprintf("dal: refused: the transaction is on shard %q, the key on shard %q; use a saga for work over two shards", e.Held, e.Wanted)
	}
	return fmt.Sprintf("dal: refused: table %q: the handle is on shard %q, the row's key on shard %q; ask Store.On for the row's own key", e.Table, e.Held, e.Wanted)
}

// Is reports that every CrossShardError is an [ErrCrossShard].
func (e *CrossShardError) Is(target error) bool { return target == ErrCrossShard }

// ErrClosedTable reports a table that the scope does not open. Nothing was sent. Possibly wrapped; see [ClosedTableError].
var ErrClosedTable = errors.New("dal: table not open to this scope")

// ClosedTableError names the table and why. It is [ErrClosedTable].
type ClosedTableError struct{ Table, Reason string }

// Error names the table and why.
func (e *ClosedTableError) Error() string {
	return fmt.Sprintf("dal: refused: table %q: %s", e.Table, e.Reason)
}

// Is reports that every ClosedTableError is an [ErrClosedTable].
func (e *ClosedTableError) Is(target error) bool { return target == ErrClosedTable }

var (
	// ErrOutcomeUnknown reports a COMMIT whose answer was lost: read what it wrote before doing it again. Possibly wrapped.
	ErrOutcomeUnknown = errors.New("dal: the connection broke during COMMIT, its outcome is unknown")
	// ErrClosed reports a store that was closed. Possibly wrapped.
	ErrClosed = errors.New("dal: store closed")
	// ErrPoisoned reports a transaction that cannot be committed, since a statement of it failed in a way that leaves it half done. All of it was rolled
	// back. Possibly wrapped; the cause is wrapped beside it.
	ErrPoisoned = wire.ErrPoisoned
	// ErrUnmarked reports a statement that reached a pool by another way than through the store. Nothing was sent. Possibly wrapped.
	ErrUnmarked = wire.ErrUnmarked
	// ErrRefused reports a statement sent by database/sql itself, through DB(), that is not bound to the context's tenant. Nothing was sent. Possibly
	// wrapped.
	ErrRefused = wire.ErrRefused
	// ErrNested reports a call that would need a second transaction or tenant inside an open one. Possibly wrapped.
	ErrNested = errors.New("dal: refused inside a transaction")
)

// ErrPlacesBusy reports that as many places of single tenants as may be open at a time are all in use. Nothing was sent. Possibly wrapped; see
// [PlacesBusyError].
var ErrPlacesBusy = errors.New("dal: too many tenants' own places in use")

// PlacesBusyError names the place that found no room. It is [ErrPlacesBusy], and [SafeToRetry].
type PlacesBusyError struct {
	Place  Place
	Max    int           // Config.MaxOwnPlaces
	Waited time.Duration // zero: the line was full
}

// Error names the place and the limit.
func (e *PlacesBusyError) Error() string {
	why := "the line for one is full"
	if e.Waited > 0 {
		why = fmt.Sprintf("none became free in %v", e.Waited)
	}
	return fmt.Sprintf("dal: place %s is not open, and the %d tenants' own places that may be open at a time are all in use: %s; raise Config.MaxOwnPlaces, or spread the tenants over more processes",
		e.Place, e.Max, why)
}

// Is reports that every PlacesBusyError is an [ErrPlacesBusy].
func (e *PlacesBusyError) Is(target error) bool { return target == ErrPlacesBusy }

// IsRetryable reports an error after which the whole transaction may be run again: deadlock, lock wait, row changed since read, busy. Nothing of it
// was kept.
func IsRetryable(err error) bool { return wire.IsDeadlock(err) }

// IsDuplicateKey reports a broken primary or unique key.
func IsDuplicateKey(err error) bool { return wire.IsDuplicateKey(err) || errors.Is(err, ErrConflict) }

// IsConnection reports a database that could not be reached, or a connection that broke: it may work again later. Whether a statement that was under way
// took effect is not known; see [SafeToRetry].
func IsConnection(err error) bool { return wire.IsConnection(err) }

// IsTimeout reports a deadline, the caller's or the server's.
func IsTimeout(err error) bool { return wire.IsTimeout(err) }

// IsQuota reports a refusal by a tenant's limits; the [*quota.ExceededError] inside says which and when to come back.
func IsQuota(err error) bool { return errors.Is(err, quota.ErrQuotaExceeded) }

// IsNotFound reports a row that is not there, or not the tenant's: the two cannot be told apart.
func IsNotFound(err error) bool { return errors.Is(err, gorm.ErrRecordNotFound) }

// SafeToRetry reports that nothing reached a server: the call may be made again as it is.
func SafeToRetry(err error) bool {
	if errors.Is(err, ErrOutcomeUnknown) {
		return false
	}
	var connect *wire.ConnectError
	return errors.As(err, &connect) || errors.Is(err, quota.ErrQuotaExceeded) || errors.Is(err, ErrPlacesBusy) ||
		errors.Is(err, ErrStaleTopology)
}

// ErrStillServed reports a tenant whose status lets new work begin, so that it cannot be drained. Possibly wrapped; see [StillServedError].
var ErrStillServed = errors.New("dal: tenant is still served")

// StillServedError names the tenant and its status. It is [ErrStillServed].
type StillServedError struct {
	Tenant tenant.ID
	Status tenant.Status
}

// Error names the tenant, its status, and what to do first.
func (e *StillServedError) Error() string {
	return fmt.Sprintf("dal: tenant %q is %s and still served: set it deleting in the registry first", e.Tenant, e.Status)
}

// Is reports that every StillServedError is an [ErrStillServed].
func (e *StillServedError) Is(target error) bool { return target == ErrStillServed }

// DrainError reports a tenant whose work had not ended in time. It wraps the cause of the context's end.
type DrainError struct {
	Tenant tenant.ID
	InUse  int // connections that the tenant still holds in this process
	Err    error
}

// Error names the tenant and what is left.
func (e *DrainError) Error() string {
	return fmt.Sprintf("dal: tenant %q is not drained: it still holds %d connections: %v", e.Tenant, e.InUse, e.Err)
}

// Unwrap returns the cause.
func (e *DrainError) Unwrap() error { return e.Err }

// ErrScopeEnded reports a handle of a system scope whose context has ended, or that was given the context of another system scope. Nothing was sent.
// Possibly wrapped, beside the cause of the context's end.
var ErrScopeEnded = errors.New("dal: the system scope of the handle has ended")

// ErrRights reports a database login that can reach what it must not, or lacks what it needs. Possibly wrapped and joined; see [RightsError].
var ErrRights = errors.New("dal: rights of a database login refused")

// RightsError names one mistake in a login's rights, with the statement that mends it. It is [ErrRights]. It never holds a password or its hash.
type RightsError struct {
	Place   Place
	Account string // as the server writes it: `user`@`host`
	Problem string
	Mend    string

	tolerable bool // for the login of a shared place
}

// Error names the account, the problem and the mend.
func (e *RightsError) Error() string {
	return fmt.Sprintf("dal: place %s: login %s: %s; %s", e.Place, e.Account, e.Problem, e.Mend)
}

// Is reports that every RightsError is an [ErrRights].
func (e *RightsError) Is(target error) bool { return target == ErrRights }

// ErrIdentity reports a database that is another place's. Possibly wrapped; see [IdentityError].
var ErrIdentity = errors.New("dal: database of another place")

// IdentityError names both places. It is [ErrIdentity].
type IdentityError struct{ Want, Have Place }

// Error names both places and what to look at.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("dal: the database configured for place %s says that it is place %q: check the order of Cluster.Shards", e.Want, e.Have)
}

// Is reports that every IdentityError is an [ErrIdentity].
func (e *IdentityError) Is(target error) bool { return target == ErrIdentity }

// ErrTarget reports a relation or a foreign key that names a row which is not there for the tenant: it does not exist, or it is another tenant's; the two
// cannot be told apart. Nothing of the statement was kept. Possibly wrapped; see [TargetError].
var ErrTarget = errors.New("dal: related row not found")

// TargetError names the relation and the table of the row that is missing. It is [ErrTarget].
type TargetError struct{ Table, Relation string }

// Error names the relation, the table, and what to do.
func (e *TargetError) Error() string {
	return fmt.Sprintf("dal: refused: relation %q names a row of table %q that is not there; create it first, or leave its key zero for a new one", e.Relation, e.Table)
}

// Is reports that every TargetError is an [ErrTarget].
func (e *TargetError) Is(target error) bool { return target == ErrTarget }

// ErrConflict reports an upsert on MySQL that met a row it may not touch, by a unique key without tenant_id: nothing was written. It is a duplicate key to
// [IsDuplicateKey]. Possibly wrapped; see [ConflictError].
var ErrConflict = errors.New("dal: a unique key is taken")

// ConflictError names the table. It is [ErrConflict].
type ConflictError struct {
	Table string
	Err   error // the server's
}

// Error names the table and nothing of the row.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("dal: table %q: a unique key of the row is taken", e.Table)
}

// Is reports that every ConflictError is an [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Unwrap returns the server's error.
func (e *ConflictError) Unwrap() error { return e.Err }

var (
	// ErrNoReturn is the error of a shard whose function or hook ended its goroutine ([runtime.Goexit]) instead of returning. Possibly wrapped.
	ErrNoReturn = errors.New("dal: the call ended its goroutine and did not return")
	// ErrHandleOver reports a handle of [Store.FanOut] that is used after the call for its shard has returned. Nothing was sent. Possibly wrapped.
	ErrHandleOver = errors.New("dal: refused: the handle was for one call over shards, which has returned")
)

// FanOutError reports a call that succeeded on some shards and failed on others: a read, see [Store.FanOut], or a write that was committed on those in Done, see
// [CreateEach]. It unwraps to the errors of the shards.
type FanOutError struct {
	Op        string
	Done      []shardrouter.ShardID         // completed, sorted; may be empty
	Failed    map[shardrouter.ShardID]error // never empty
	Cancelled []shardrouter.ShardID         // given up since another failed, sorted; empty in partial mode, and of a write
}

// Error names every shard that failed, in order, with its error.
func (e *FanOutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dal: %s: %d shards done, %d failed, %d cancelled", e.Op, len(e.Done), len(e.Failed), len(e.Cancelled))
	for _, id := range slices.Sorted(maps.Keys(e.Failed)) {
		fmt.Fprintf(&b, "; shard %q: %v", id, e.Failed[id])
	}
	return b.String()
}

// Unwrap returns the errors, sorted by shard.
func (e *FanOutError) Unwrap() []error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(e.Failed)) {
		errs = append(errs, e.Failed[id])
	}
	return errs
}

// ErrStaleTopology reports a write that was refused since the topology could not be confirmed for too long. Nothing was sent. Possibly wrapped; see
// [StaleTopologyError].
var ErrStaleTopology = errors.New("dal: the topology is stale")

// StaleTopologyError names the snapshot and its age. It is [ErrStaleTopology], and [SafeToRetry].
type StaleTopologyError struct {
	Epoch      shardrouter.Epoch
	Age, Limit time.Duration
}

// Error names the epoch, the age and the limit.
func (e *StaleTopologyError) Error() string {
	return fmt.Sprintf("dal: refused: the topology of epoch %d could not be confirmed for %v, above Config.TopologyMaxAge %v: keys may have moved; see Store.Health for the cause", e.Epoch, e.Age, e.Limit)
}

// Is reports that every StaleTopologyError is an [ErrStaleTopology].
func (e *StaleTopologyError) Is(target error) bool { return target == ErrStaleTopology }

// OlderTopologyError reports a control database that has an older topology than this process has seen: it was restored from a backup, or a replica was
// asked. The newer snapshot stays in use.
type OlderTopologyError struct{ Have, Found shardrouter.Epoch }

// Error names both epochs.
func (e *OlderTopologyError) Error() string {
	return fmt.Sprintf("dal: the control database has the topology of epoch %d, epoch %d was seen before: it was set back, or a replica that lags answered; the newer one stays in use", e.Found, e.Have)
}

// RoutingError reports a keyspace in Config.Routing that cannot be.
type RoutingError struct {
	Keyspace string
	Reason   string
	Err      error // of package shardrouter; may be nil
}

// Error names the keyspace and the fault.
func (e *RoutingError) Error() string {
	text := fmt.Sprintf("dal: Config.Routing: keyspace %q: %s", e.Keyspace, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the router's error.
func (e *RoutingError) Unwrap() error { return e.Err }

// ShardNotConfiguredError reports a key of a shard that the topology has and Config.Cluster lacks. Nothing was sent. It is [ErrUnknownShard].
type ShardNotConfiguredError struct {
	Shard shardrouter.ShardID
	Epoch shardrouter.Epoch
}

// Error names the shard and the way on.
func (e *ShardNotConfiguredError) Error() string {
	return fmt.Sprintf("dal: shard %q of the topology of epoch %d is not in Config.Cluster: add it there, and open the store anew", e.Shard, e.Epoch)
}

// Is reports that every ShardNotConfiguredError is an [ErrUnknownShard].
func (e *ShardNotConfiguredError) Is(target error) bool { return target == ErrUnknownShard }

// ErrCapacity reports rows beyond the capacity of their shard key. Nothing of the transaction is committed. Possibly wrapped; see [CapacityError].
var ErrCapacity = errors.New("dal: capacity reached")

// CapacityError names the table, the key and how many rows of it there may be; see [Table.Capacity]. It is [ErrCapacity].
type CapacityError struct {
	Table string
	Key   shardrouter.Key
	Limit int
}

// Error names table, key and limit.
func (e *CapacityError) Error() string {
	return fmt.Sprintf("dal: refused: table %q: key %q may have %d rows and would have more", e.Table, e.Key, e.Limit)
}

// Is reports that every CapacityError is an [ErrCapacity].
func (e *CapacityError) Is(target error) bool { return target == ErrCapacity }

// ErrOffset reports an offset over shards that is out of range. Nothing was sent. Possibly wrapped; see [OffsetError].
var ErrOffset = errors.New("dal: offset over shards refused")

// OffsetError names the offset. It is [ErrOffset].
type OffsetError struct{ Offset int }

// Error names the offset, the bound, and the call to use.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("dal: refused: OFFSET %d over shards, at most %d: each shard would send all rows before it; use Query.Page, which costs the same at any depth", e.Offset, MaxOffset)
}

// Is reports that every OffsetError is an [ErrOffset].
func (e *OffsetError) Is(target error) bool { return target == ErrOffset }

// ErrOrder reports an order over shards that cannot be reproduced. Possibly wrapped; see [OrderError].
var ErrOrder = errors.New("dal: order over shards refused")

// OrderError names the column and why rows of several shards cannot be put in its order. It is [ErrOrder].
type OrderError struct{ Table, Column, Problem string }

// Error names table, column and problem.
func (e *OrderError) Error() string {
	return fmt.Sprintf("dal: refused: table %q: rows of several shards cannot be ordered by column %q: %s", e.Table, e.Column, e.Problem)
}

// Is reports that every OrderError is an [ErrOrder].
func (e *OrderError) Is(target error) bool { return target == ErrOrder }

// ErrCursor reports a cursor that is not this query's. Nothing was sent. Possibly wrapped; see [CursorError].
var ErrCursor = errors.New("dal: cursor refused")

// CursorError says why. It is [ErrCursor], and holds nothing of the cursor.
type CursorError struct{ Problem string }

// Error says why.
func (e *CursorError) Error() string { return "dal: cursor refused: " + e.Problem }

// Is reports that every CursorError is an [ErrCursor].
func (e *CursorError) Is(target error) bool { return target == ErrCursor }

// ErrReadOnly reports a statement that writes or locks, or a transaction that could, on a handle that only reads: one of [Store.FanOut], or
// one with [Replica] or [Nearest], where it is a [*ReadOnlyError]. Nothing was sent. Possibly wrapped.
var ErrReadOnly = errors.New("dal: refused: the handle only reads; ask Store.On for the row's own key, without Replica or Nearest")

// ErrOption reports an [Option] that cannot be used. Possibly wrapped; see [OptionError].
var ErrOption = errors.New("dal: option refused")

// OptionError names the option. It is [ErrOption].
type OptionError struct{ Option, Reason string }

// Error names the option and what is wrong with it.
func (e *OptionError) Error() string { return fmt.Sprintf("dal: option %s: %s", e.Option, e.Reason) }

// Is reports that every OptionError is an [ErrOption].
func (e *OptionError) Is(target error) bool { return target == ErrOption }

// ReadOnlyError names what was refused on a handle that may read from a replica: a write, a locking read, a transaction, a raw connection. Nothing was sent. It is [ErrReadOnly].
type ReadOnlyError struct {
	Place Place
	What  string
}

// Error names the place and what was refused.
func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("dal: %s in place %s on a handle with Replica or Nearest: use a handle without", e.What, e.Place)
}

// Is reports that every ReadOnlyError is an [ErrReadOnly].
func (e *ReadOnlyError) Is(target error) bool { return target == ErrReadOnly }

// ErrReplicaInTransaction reports [Replica] or [Nearest] inside [Store.Transaction], whose reads belong to the transaction.
var ErrReplicaInTransaction = errors.New("dal: a transaction reads from the primary: ask for the handle without Replica or Nearest, or outside")

// ErrReplicaLag reports a read with [OrRefuse] for which there is no fit replica. Possibly wrapped; see [ReplicaLagError].
var ErrReplicaLag = errors.New("dal: no replica is fit")

// ReplicaLagError says what was asked for. It is [ErrReplicaLag].
type ReplicaLagError struct {
	Place    Place
	MaxLag   time.Duration
	Replicas int  // how many were considered
	Session  bool // the caller's session has written in the place, and no replica is known to have that
	Err      error
}

// Error names the place and the bound.
func (e *ReplicaLagError) Error() string {
	text := fmt.Sprintf("dal: place %s: none of %d replicas is known to be at most %v behind", e.Place, e.Replicas, e.MaxLag)
	if e.Session {
		text += " and to have what the session wrote"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Is reports that every ReplicaLagError is an [ErrReplicaLag].
func (e *ReplicaLagError) Is(target error) bool { return target == ErrReplicaLag }

// Unwrap returns why the last replica was not used, or nil.
func (e *ReplicaLagError) Unwrap() error { return e.Err }

// ErrReplicaConfig reports a replica in a [Cluster] that cannot be used. Possibly wrapped and joined; see [ReplicaConfigError].
var ErrReplicaConfig = errors.New("dal: replica refused")

// ReplicaConfigError names the field. It is [ErrReplicaConfig].
type ReplicaConfigError struct{ Field, Reason string }

// Error names the field and what is wrong with it.
func (e *ReplicaConfigError) Error() string { return fmt.Sprintf("dal: %s: %s", e.Field, e.Reason) }

// Is reports that every ReplicaConfigError is an [ErrReplicaConfig].
func (e *ReplicaConfigError) Is(target error) bool { return target == ErrReplicaConfig }

// LeftBehindError reports a change of the topology that was made, after which rows were found that it moved, or could not be looked for. They are on the
// shard that owned them before. Change the topology back, or move them.
type LeftBehindError struct {
	Table string // empty where Err is set
	Plan  *shardrouter.Plan
	Err   error // why the databases could not be looked at; nil if rows were found
}

// Error names the table or the failure, and the way on.
func (e *LeftBehindError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("dal: the topology changed to epoch %d, and whether rows were left behind is unknown: %v", e.Plan.To, e.Err)
	}
	return fmt.Sprintf("dal: the topology changed to epoch %d, and rows of table %q that came meanwhile were left behind: change it back, or move them", e.Plan.To, e.Table)
}

// Unwrap returns why the databases could not be looked at.
func (e *LeftBehindError) Unwrap() error { return e.Err }

// ErrGroups reports an aggregate over shards of more groups, or distinct values, than [MaxGroups] on one shard. See [GroupsError].
var ErrGroups = errors.New("dal: too many groups for an aggregate over shards")

// GroupsError names the table, the shard, and what there is too much of. It is [ErrGroups].
type GroupsError struct {
	Table string
	Shard shardrouter.ShardID
	What  string
}

// Error names the bound, and what to do.
func (e *GroupsError) Error() string {
	return fmt.Sprintf("dal: refused: table %q, shard %q: more than %d %s for an aggregate over shards; narrow it with Where, or order by the columns of the group alone", e.Table, e.Shard, MaxGroups, e.What)
}

// Is reports that every GroupsError is an [ErrGroups].
func (e *GroupsError) Is(target error) bool { return target == ErrGroups }

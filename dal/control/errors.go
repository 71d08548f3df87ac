package control

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// The states that callers test with errors.Is. All of them may be wrapped.
var (
	// ErrNotMigrated means that the control database, one of its tables or the topology is missing. The driver's error is wrapped beside it.
	ErrNotMigrated = errors.New("control: the control database is not migrated: run schema.Up")

	// ErrNoNode means that all node numbers, 1 to [MaxNode], are leased.
	ErrNoNode = errors.New("control: no free node number: all are leased; end processes that are not needed, or wait for a lease to expire")

	// ErrLeaseLost means that a lease is no longer the caller's: it expired and another process took the number, or it was released.
	ErrLeaseLost = errors.New("control: node lease lost: lease a number anew before making another id")

	// ErrMismatch means that the configuration describes another topology than the control database holds. The error is a
	// [*TopologyMismatchError].
	ErrMismatch = errors.New("control: topology mismatch")

	// ErrPlacementChange means that a tenant is known with another isolation model or placement. The error is a [*PlacementChangeError].
	ErrPlacementChange = errors.New("control: placement change refused")

	// ErrPlacementTaken means that a shard or schema of a new tenant serves somebody else. The error is a [*PlacementTakenError].
	ErrPlacementTaken = errors.New("control: placement taken")

	// ErrEpochConflict means that the topology changed meanwhile. The error is an [*EpochConflictError].
	ErrEpochConflict = errors.New("control: the topology changed meanwhile")

	// ErrCorrupt means that a row of the control database is not what this package writes. The error is a [*CorruptError].
	ErrCorrupt = errors.New("control: corrupt row")
)

// TopologyMismatchError reports a configuration that describes another topology than the control database holds. Nothing was changed. It is
// [ErrMismatch].
type TopologyMismatchError struct {
	What string // "shards", "hash" or "keyspace <name>"
	Have string // in the control database
	Want string // in the configuration
}

// Error names both sides and the way on.
func (e *TopologyMismatchError) Error() string {
	return fmt.Sprintf("control: topology mismatch: %s: the control database has %s, the configuration %s; the change would move keys: configure what is there; schema.Up adds shards, and what moves no rows is changed by Store.Change",
		e.What, e.Have, e.Want)
}

// Is reports whether target is [ErrMismatch].
func (e *TopologyMismatchError) Is(target error) bool { return target == ErrMismatch }

// PlacementChangeError reports a tenant that is known with another isolation model or placement. Nothing was changed. It is [ErrPlacementChange].
type PlacementChangeError struct {
	Tenant tenant.ID
	Have   string // model and placement in the control database
	Want   string // those asked for
}

// Error names the tenant, both placements and the way on.
func (e *PlacementChangeError) Error() string {
	return fmt.Sprintf("control: tenant %q is %s and cannot become %s: its rows would stay behind; move it with a reshard", e.Tenant, e.Have, e.Want)
}

// Is reports whether target is [ErrPlacementChange].
func (e *PlacementChangeError) Is(target error) bool { return target == ErrPlacementChange }

// PlacementTakenError reports a new tenant whose shard or schema serves somebody else. Nothing was changed. It is [ErrPlacementTaken].
type PlacementTakenError struct {
	Tenant tenant.ID
	What   string    // `shard "x"` or `schema "x"`
	Owner  tenant.ID // empty: the default shards
}

// Error names the tenant, what it asked for and who has it.
func (e *PlacementTakenError) Error() string {
	owner := "is one of the default shards"
	if e.Owner != "" {
		owner = fmt.Sprintf("serves tenant %q", e.Owner)
	}
	return fmt.Sprintf("control: tenant %q: %s %s: give the tenant another", e.Tenant, e.What, owner)
}

// Is reports whether target is [ErrPlacementTaken].
func (e *PlacementTakenError) Is(target error) bool { return target == ErrPlacementTaken }

// CorruptError reports a row of the control database that is not what this package writes: it was changed by hand, or by a newer version. It is
// [ErrCorrupt].
type CorruptError struct {
	Table string
	Err   error // what is wrong with the row
}

// Error names the table and the fault.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("control: corrupt row in %s: %v: mend the row, or use the version that wrote it", e.Table, e.Err)
}

// Is reports whether target is [ErrCorrupt].
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns what is wrong with the row.
func (e *CorruptError) Unwrap() error { return e.Err }

// EpochConflictError reports a change of a topology that is not the present one any more. Nothing was changed. It is [ErrEpochConflict].
type EpochConflictError struct {
	Have shardrouter.Epoch // the present one
	Want shardrouter.Epoch // the one that was to be changed
}

// Error names both epochs and the way on.
func (e *EpochConflictError) Error() string {
	return fmt.Sprintf("control: the topology is of epoch %d, the change was made for epoch %d: read it anew, and decide again", e.Have, e.Want)
}

// Is reports whether target is [ErrEpochConflict].
func (e *EpochConflictError) Is(target error) bool { return target == ErrEpochConflict }

// ChangeArgumentError reports an argument of a change that cannot be kept. Nothing was changed.
type ChangeArgumentError struct{ What, Problem string }

// Error names the argument and the problem.
func (e *ChangeArgumentError) Error() string {
	return fmt.Sprintf("control: %s %s", e.What, e.Problem)
}

func shardList(ids []shardrouter.ShardID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return "[" + strings.Join(names, " ") + "]"
}

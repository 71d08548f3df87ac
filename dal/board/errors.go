package board

import (
	"errors"
	"fmt"

	"github.com/tenantdal/tenantdal/tenant"
)

// ErrNeverRefreshed is a read of a materialised board that no [Board.Refresh] has stored yet.
var ErrNeverRefreshed = errors.New("board: never refreshed")

// ErrStarted is a second [Refresher.Start], or one after [Refresher.Close].
var ErrStarted = errors.New("board: refresher started already or closed")

// ErrRebuilding is an update, or a removal, that met a group whose entries are being moved by [Board.Rebuild]. Nothing was changed: try again later.
var ErrRebuilding = errors.New("board: being rebuilt; nothing was changed, try again")

// ConfigError reports a [Config] or an argument that cannot be. Nothing was sent.
type ConfigError struct {
	Board   string
	Problem string
}

// Error names the board and the problem.
func (e *ConfigError) Error() string { return fmt.Sprintf("board: board %q: %s", e.Board, e.Problem) }

// GroupsChangedError reports a board that was made with another number of groups or another K. Its rows lie where the old number placed them, so it is
// not opened, and nothing was changed.
type GroupsChangedError struct {
	Tenant             tenant.ID
	Board              string
	Groups, Keep       int // as the board was made
	AskGroups, AskKeep int // as it was asked for
}

// Error names both definitions.
func (e *GroupsChangedError) Error() string {
	return fmt.Sprintf("board: tenant %q: board %q has %d groups that keep %d each, asked for %d that keep %d: open it as it was made, and Rebuild it to change them",
		e.Tenant, e.Board, e.Groups, e.Keep, e.AskGroups, e.AskKeep)
}

// OverflowError reports an update in mode [Add] whose sum is no int64. The score was not changed.
type OverflowError struct {
	Tenant tenant.ID
	Board  string
	Err    error // of the database
}

// Error names the board.
func (e *OverflowError) Error() string {
	return fmt.Sprintf("board: tenant %q: board %q: the sum of a score and what is added is out of range", e.Tenant, e.Board)
}

// Unwrap returns the database's error.
func (e *OverflowError) Unwrap() error { return e.Err }

// RebuildingError reports a [Board.Rebuild] while another one runs, or after one that has not ended and wants other numbers. Nothing was changed. It is
// [ErrRebuilding].
type RebuildingError struct {
	Tenant       tenant.ID
	Board        string
	Groups, Keep int // what the board is being rebuilt to
}

// Error names the board and what it is being rebuilt to.
func (e *RebuildingError) Error() string {
	return fmt.Sprintf("board: tenant %q: board %q is being rebuilt to %d groups that keep %d each: wait for its end, or, if it died, call Rebuild with these numbers",
		e.Tenant, e.Board, e.Groups, e.Keep)
}

// Is reports [ErrRebuilding].
func (e *RebuildingError) Is(target error) bool { return target == ErrRebuilding }

// TooDeepError reports a read of more entries than each group keeps. No entry was read.
type TooDeepError struct {
	Board   string
	N, Keep int
}

// Error names the board and its limit.
func (e *TooDeepError) Error() string {
	return fmt.Sprintf("board: board %q: top %d asked for, but each group keeps %d", e.Board, e.N, e.Keep)
}

// TenantError reports a board that was opened for one tenant and used under another. Nothing was sent.
type TenantError struct {
	Board        string
	Opened, Used tenant.ID
}

// Error names the board and both tenants.
func (e *TenantError) Error() string {
	return fmt.Sprintf("board: board %q was opened for tenant %q and used under %q", e.Board, e.Opened, e.Used)
}

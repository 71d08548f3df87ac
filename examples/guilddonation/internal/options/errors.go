package options

import (
	"errors"
	"flag"
	"fmt"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

// UsageError says which flag cannot be used and why. It never holds the flag's value.
type UsageError struct {
	// Flag is the flag's name without its dash, or empty when the fault is not one flag's.
	Flag string
	// Reason says what is wrong and what is wanted instead.
	Reason string
}

// Error names the flag.
func (e *UsageError) Error() string {
	if e.Flag == "" {
		return "guilddonation: " + e.Reason
	}
	return fmt.Sprintf("guilddonation: -%s: %s", e.Flag, e.Reason)
}

// The exit statuses of guilddonation.
const (
	ExitOK       = 0 // all donations ended, and items are conserved
	ExitFailed   = 1 // they did not, or are not, or something broke
	ExitUnusable = 2 // the flags or the trace cannot be used; nothing was written
)

// ExitCode maps what ended a run to an exit status: [ExitOK] for nil and for [flag.ErrHelp], [ExitUnusable] for a [*UsageError] and for
// [trace.ErrUnusable], wrapped or not, and [ExitFailed] for any other error.
func ExitCode(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	if _, usage := errors.AsType[*UsageError](err); usage || errors.Is(err, trace.ErrUnusable) {
		return ExitUnusable
	}
	return ExitFailed
}

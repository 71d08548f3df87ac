package trace

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnusable is what every error of [Read] and [ReadFile] is: the trace cannot be run, and nothing of it was. Possibly wrapped.
var ErrUnusable = errors.New("trace: unusable")

// maxErrors is the number of mistakes after which reading stops.
const maxErrors = 20

// LineError is a mistake in one line of a trace. It is an [ErrUnusable].
type LineError struct {
	// File is the name given to [Read].
	File string
	// Line counts from 1.
	Line int
	// Field is the name of the field at fault, or empty when the whole line is.
	Field string
	// Reason says what is wrong, with the value where that helps.
	Reason string
}

// Error names file, line and field.
func (e *LineError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("trace: %s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("trace: %s:%d: field %q: %s", e.File, e.Line, clip(e.Field), e.Reason)
}

// Is reports true for [ErrUnusable].
func (e *LineError) Is(target error) bool { return target == ErrUnusable }

// LineErrors is all that was found wrong with a trace, one mistake a line, in the order of the lines. errors.As finds the first [*LineError] in it.
type LineErrors struct {
	// Lines is never empty, and holds at most 20 mistakes.
	Lines []*LineError
	// Cut says that reading stopped at the last of them: the lines after it were not looked at.
	Cut bool
}

// Error gives each mistake a line of text.
func (e *LineErrors) Error() string {
	var b strings.Builder
	for i, line := range e.Lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line.Error())
	}
	if e.Cut {
		b.WriteString("\ntrace: too many mistakes, the lines after that one were not looked at")
	}
	return b.String()
}

// Unwrap returns the mistakes.
func (e *LineErrors) Unwrap() []error {
	errs := make([]error, len(e.Lines))
	for i, line := range e.Lines {
		errs[i] = line
	}
	return errs
}

// maxShown is how many bytes of a value from the trace an error shows.
const maxShown = 64

func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

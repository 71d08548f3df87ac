package tenant

import (
	"fmt"
	"strings"
)

// MaxIDLen is the largest length of an [ID] in bytes. It is the width of every tenant_id column.
const MaxIDLen = 63

// ID names a tenant.
//
// Its shape is [a-z0-9][a-z0-9_-]{0,62}: 1 to 63 bytes of ASCII. Within this alphabet "equal", "equal without regard to
// case", "equal after Unicode normalisation" and "equal after trimming blanks" are one relation, so no database
// collation and no file system can take two tenants for one. No ID is reserved: the system scope of [System] is not an
// ID and cannot be made from a string.
//
// The zero value "" is no tenant.
type ID string

// ParseID returns s as an [ID].
//
// It never coerces: it does not trim, fold case or normalise; bytes in are bytes out. Any other shape is an
// [*InvalidIDError], which is [ErrInvalidID].
func ParseID(s string) (ID, error) {
	if err := ID(s).Validate(); err != nil {
		return "", err
	}
	return ID(s), nil
}

// MustParseID is [ParseID] for constants in tests and examples. It panics where ParseID returns an error.
func MustParseID(s string) ID {
	id, err := ParseID(s)
	if err != nil {
		panic(err)
	}
	return id
}

// Validate returns nil when id has the shape of an [ID], else an [*InvalidIDError]. A conversion such as ID(s) checks
// nothing, so values from outside go through [ParseID] or this method.
func (id ID) Validate() error {
	if at := id.badByte(); at >= 0 {
		return newInvalidIDError(string(id), at)
	}
	return nil
}

// String returns the ID as it is.
func (id ID) String() string { return string(id) }

// badByte returns the offset of the first byte that keeps id from being an ID (len(id) when the empty length is the
// fault, MaxIDLen when it is too long), or -1 when id is well formed.
func (id ID) badByte() int {
	for i := range len(id) {
		c := id[i]
		switch {
		case i == MaxIDLen:
			return i
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case (c == '_' || c == '-') && i > 0:
		default:
			return i
		}
	}
	if len(id) == 0 {
		return 0
	}
	return -1
}

func newInvalidIDError(s string, at int) *InvalidIDError {
	err := &InvalidIDError{Value: clip(s)}
	switch {
	case s == "":
		err.Reason = "it is empty"
	case at == MaxIDLen:
		err.Reason = fmt.Sprintf("it is longer than %d bytes", MaxIDLen)
	default:
		err.Reason = fmt.Sprintf("byte %d (0x%02x) is not allowed there", at, s[at])
	}
	return err
}

// maxQuoted is how many bytes of a foreign value an error keeps and shows.
const maxQuoted = 64

// clip returns at most maxQuoted bytes of s, as a copy when it is cut, so that an error does not keep a large input alive.
func clip(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.Clone(s[:maxQuoted])
}

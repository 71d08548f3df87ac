package wire

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"
)

// Code returns the server's error number (MySQL, MariaDB) or SQLite's extended result code, or 0.
func Code(err error) int {
	var m *mysql.MySQLError
	if errors.As(err, &m) {
		return int(m.Number)
	}
	var s *sqlite.Error
	if errors.As(err, &s) {
		return s.Code()
	}
	return 0
}

// IsDuplicateKey reports a broken primary or unique key.
func IsDuplicateKey(err error) bool {
	switch Code(err) {
	case 1062, 1586, // MySQL, MariaDB
		1555, 2067: // SQLITE_CONSTRAINT_PRIMARYKEY, _UNIQUE
		return true
	}
	return false
}

// IsDeadlock reports a transaction that lost a lock to another and may be run again as a whole: deadlock, lock wait, changed since read, busy.
func IsDeadlock(err error) bool {
	switch code := Code(err); code {
	case 1213, 1205, 1020:
		return true
	default:
		return code&0xff == 5 && code < 1000 // SQLITE_BUSY and its extended codes
	}
}

// IsConnection reports a connection that broke or could not be made: whether the statement ran is not known, unless the error is a [ConnectError].
func IsConnection(err error) bool {
	switch Code(err) {
	case 1053, 1927: // shutdown in progress, connection killed
		return true
	}
	var ce *ConnectError
	return errors.As(err, &ce) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || isNet(err)
}

// IsTimeout reports a deadline, the caller's or the server's.
func IsTimeout(err error) bool {
	switch Code(err) {
	case 1969, 3024, 1205, 1317:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// isNet reports an error of the network below the driver.
func isNet(err error) bool {
	var ne *net.OpError
	return errors.As(err, &ne) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED)
}

// IsMissing reports a missing database, file, table or column.
func IsMissing(err error) bool {
	switch code := Code(err); code {
	case 1049, 1146, 1054: // unknown database, table, column
		return true
	case 14: // SQLITE_CANTOPEN
		return true
	case 1: // SQLITE_ERROR: only its text tells
		return strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column")
	default:
		return false
	}
}

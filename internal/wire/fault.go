package wire

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// SQLState returns the five characters of PostgreSQL's error code, or "".
func SQLState(err error) string {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// Code returns the server's error number (MySQL, MariaDB), SQLite's extended result code, PostgreSQL's SQLSTATE read as a number of base 36 (above all
// numbers of the others), or 0.
func Code(err error) int {
	if state := SQLState(err); state != "" {
		n, _ := strconv.ParseInt(state, 36, 32)
		return int(n)
	}
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
	return SQLState(err) == "23505"
}

// IsOutOfRange reports a number that its column cannot hold. (SQLite says so of any value of another type in a STRICT table: a sum that became REAL.)
func IsOutOfRange(err error) bool {
	switch Code(err) {
	case 1690, 1264, // MySQL, MariaDB: of an expression, of a column
		3091: // SQLITE_CONSTRAINT_DATATYPE
		return true
	}
	return SQLState(err) == "22003"
}

// IsDeadlock reports a transaction that lost a lock to another and may be run again as a whole: deadlock, lock wait, changed since read, busy.
func IsDeadlock(err error) bool {
	switch SQLState(err) {
	case "40P01", "40001", "55P03": // deadlock, serialization, lock timeout
		return true
	case "0A000": // a table was changed under a prepared statement, which is prepared anew the next time
		return strings.Contains(err.Error(), "cached plan must not change result type")
	}
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
	switch state := SQLState(err); {
	case strings.HasPrefix(state, "08"), state == "57P01", state == "57P02", state == "57P03", state == "57P05": // shutdown, crash, starting, idle
		return true
	}
	var ce *ConnectError
	return errors.As(err, &ce) || errors.Is(err, errLostCommit) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || isNet(err)
}

// IsTimeout reports a deadline, the caller's or the server's.
func IsTimeout(err error) bool {
	switch Code(err) {
	case 1969, 3024, 1205, 1317:
		return true
	}
	switch SQLState(err) {
	case "57014", "55P03": // cancelled, lock timeout
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
	switch SQLState(err) {
	case "3D000", "3F000", "42P01", "42703": // database, schema, table, column
		return true
	}
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

// withoutValue cuts the value out of MySQL's message that one could not be converted: an UPDATE or DELETE whose conditions the server tests on other
// tenants' rows before it looks at their owner would print theirs.
func withoutValue(err error) error {
	var m *mysql.MySQLError
	if err == nil || !errors.As(err, &m) || m.Number != 1292 && m.Number != 1366 {
		return err
	}
	from := strings.Index(m.Message, ": '")
	if from < 0 {
		return err
	}
	after := ""
	if i := strings.LastIndex(m.Message, "' for "); i > from {
		after = m.Message[i+1:]
	}
	return &mysql.MySQLError{Number: m.Number, SQLState: m.SQLState, Message: m.Message[:from] + ": (not shown)" + after}
}

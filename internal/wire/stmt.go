package wire

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"
)

// stmt is a prepared statement. It may outlive the call that prepared it, so each run needs a mark of its own.
type stmt struct {
	inner driver.Stmt
	conn  *conn
	text  string
}

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// Close closes the statement on the server.
func (s *stmt) Close() error { return s.inner.Close() }

// NumInput returns the number of placeholders, or -1.
func (s *stmt) NumInput() int { return s.inner.NumInput() }

// Exec is refused: it has no context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) {
	return nil, &UnmarkedError{Shard: s.conn.owner.opts.Shard, Op: "exec", Why: "it has no context"}
}

// Query is refused: it has no context.
func (s *stmt) Query([]driver.Value) (driver.Rows, error) {
	return nil, &UnmarkedError{Shard: s.conn.owner.opts.Shard, Op: "query", Why: "it has no context"}
}

// ExecContext judges and runs the statement.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	ctx, m, v, err := s.conn.judge(ctx, "exec", s.text)
	if err != nil {
		return nil, err
	}
	var res driver.Result
	err = s.conn.send(ctx, m, v, "exec", s.text, args, func() error {
		var err error
		if e, ok := s.inner.(driver.StmtExecContext); ok {
			res, err = e.ExecContext(ctx, args)
			return err
		}
		values, err := plain(args)
		if err != nil {
			return err
		}
		res, err = s.inner.Exec(values) //nolint:staticcheck // the only way left for a driver without contexts
		return err
	})
	s.conn.counted(m, err, true)
	return res, err
}

// QueryContext judges and runs the statement.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	ctx, m, v, err := s.conn.judge(ctx, "query", s.text)
	if err != nil {
		return nil, err
	}
	var res driver.Rows
	err = s.conn.send(ctx, m, v, "query", s.text, args, func() error {
		var err error
		if q, ok := s.inner.(driver.StmtQueryContext); ok {
			res, err = q.QueryContext(ctx, args)
			return err
		}
		values, err := plain(args)
		if err != nil {
			return err
		}
		res, err = s.inner.Query(values) //nolint:staticcheck // the only way left for a driver without contexts
		return err
	})
	s.conn.counted(m, err, false)
	if err != nil {
		return nil, err
	}
	return &rows{inner: res, conn: s.conn, wrote: s.conn.unsettled()}, nil
}

// CheckNamedValue asks the statement, then the connection.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := s.inner.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// plain drops the names for drivers that know only positions.
func plain(args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, fmt.Errorf("wire: the driver does not support the named argument %q", a.Name)
		}
		values[i] = a.Value
	}
	return values, nil
}

// rows forwards what database/sql may ask of a driver's rows, and poisons the transaction when reading them fails.
//
// The driver is reached through an unexported field: what a caller digs out of a connection may be no part of the driver's own.
type rows struct {
	inner driver.Rows
	conn  *conn
	wrote []Written // by the statement that returns them, outside a transaction
}

var (
	_ driver.RowsNextResultSet              = (*rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ driver.RowsColumnTypeLength           = (*rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*rows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*rows)(nil)
)

// Columns returns the columns' names.
func (r *rows) Columns() []string { return r.inner.Columns() }

// Close ends the reading.
func (r *rows) Close() error {
	err := r.inner.Close()
	if len(r.wrote) > 0 && r.conn.owner.opts.Wrote != nil {
		r.conn.owner.opts.Wrote(r.wrote)
	}
	return err
}

// Next reads the next row. Its bytes are the caller's own: the MySQL driver hands out pieces of the connection's buffer, which the next statement on it
// fills, another tenant's as well, and database/sql passes them on to a sql.Scanner or a sql.RawBytes that may keep them.
func (r *rows) Next(dest []driver.Value) error {
	err := r.inner.Next(dest)
	if err == nil && r.conn.owner.lends {
		own(dest)
	}
	if err != nil && err != io.EOF {
		r.conn.fail(err, 0)
	}
	return err
}

// own puts copies in the place of bytes, all of a row in one piece of memory.
func own(dest []driver.Value) {
	n := 0
	for _, v := range dest {
		if b, ok := v.([]byte); ok {
			n += len(b)
		}
	}
	if n == 0 {
		return
	}
	piece := make([]byte, 0, n)
	for i, v := range dest {
		if b, ok := v.([]byte); ok && len(b) > 0 {
			at := len(piece)
			piece = append(piece, b...)
			dest[i] = piece[at:len(piece):len(piece)]
		}
	}
}

// HasNextResultSet reports whether another result set follows.
func (r *rows) HasNextResultSet() bool {
	n, ok := r.inner.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

// NextResultSet moves to the next result set, or returns io.EOF.
func (r *rows) NextResultSet() error {
	if n, ok := r.inner.(driver.RowsNextResultSet); ok {
		return n.NextResultSet()
	}
	return io.EOF
}

// ColumnTypeDatabaseTypeName returns the server's name of the column's type, or "".
func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if t, ok := r.inner.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// ColumnTypeLength returns the column's length where it is known.
func (r *rows) ColumnTypeLength(i int) (int64, bool) {
	if t, ok := r.inner.(driver.RowsColumnTypeLength); ok {
		return t.ColumnTypeLength(i)
	}
	return 0, false
}

// ColumnTypeNullable reports whether the column may be NULL where it is known.
func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if t, ok := r.inner.(driver.RowsColumnTypeNullable); ok {
		return t.ColumnTypeNullable(i)
	}
	return false, false
}

// ColumnTypePrecisionScale returns the precision and scale of a decimal column.
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if t, ok := r.inner.(driver.RowsColumnTypePrecisionScale); ok {
		return t.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}

// ColumnTypeScanType returns the Go type that fits the column.
func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if t, ok := r.inner.(driver.RowsColumnTypeScanType); ok {
		return t.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

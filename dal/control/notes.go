package control

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// MaxNote is the largest value of a note in bytes.
const MaxNote = 1024

var (
	// Primary key.
	stNote       = register("control.note", "SELECT value FROM tdal_notes WHERE name = ?")
	stNoteInsert = register("control.note_insert", "INSERT INTO tdal_notes (name, value) VALUES (?, ?)")
	// Primary key.
	stNoteUpdate = register("control.note_update", "UPDATE tdal_notes SET value = ? WHERE name = ?")
)

// Note returns the value of a note that a program left about the deployment, and whether there is one.
//
// It returns [ErrNotMigrated].
func (s *Store) Note(ctx context.Context, name string) (value string, found bool, err error) {
	err = query(ctx, s.pool, stNote, []any{name}, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&value)
	})
	return value, found, failed("read a note", err)
}

// SetNote writes a note; an earlier value is replaced. name is [a-z][a-z0-9_]{0,62}, as a keyspace's; value has at most [MaxNote] bytes. Notes are for a
// program's own facts about the deployment: the library reads none.
func (s *Store) SetNote(ctx context.Context, name, value string) error {
	if !validNote(name) || len(value) > MaxNote {
		return fmt.Errorf("control: note %q: want a name of [a-z][a-z0-9_]{0,62} and a value of at most %d bytes", name, MaxNote)
	}
	for range attempts {
		n, err := exec(ctx, s.pool, stNoteUpdate, value, name)
		if err == nil && n == 0 {
			_, err = exec(ctx, s.pool, stNoteInsert, name, value)
		}
		if !wire.IsDuplicateKey(err) { // somebody else wrote it first: write over it
			return failed("write a note", err)
		}
	}
	return fmt.Errorf("control: note %q: too many writers", name)
}

func validNote(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '_')) {
			return false
		}
	}
	return name != "" && len(name) <= 63
}

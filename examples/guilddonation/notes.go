package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

// The notes that the program leaves in the control database.
const (
	noteTrace    = "guilddonation_trace"
	noteShards   = "guilddonation_shards"
	noteFinished = "guilddonation_finished"
)

// notesOf says what the databases of a run belong to. The shards are hashed, since a list of URLs may be longer than a note.
func notesOf(opts options.Options, tr *trace.Trace) map[string]string {
	shards := sha256.Sum256([]byte(opts.Shards.String()))
	return map[string]string{noteTrace: hash(tr), noteShards: hex.EncodeToString(shards[:])}
}

// sameRun refuses servers that hold another trace, or this one over other shards, before anything is written to them. It reads the control database by
// itself: a store opens only when every database is migrated, and of a shard that does not belong here none is.
func sameRun(ctx context.Context, control dal.Endpoint, notes map[string]string) error {
	connector, err := mysql.NewConnector(control.MySQLConfig())
	if err != nil {
		return fmt.Errorf("control database: %w", err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	for name, want := range notes {
		var got string
		err := db.QueryRowContext(ctx, "SELECT value FROM tdal_notes WHERE name = ?", name).Scan(&got)
		switch {
		case errors.Is(err, sql.ErrNoRows) || notThere(err):
		case err != nil:
			return fmt.Errorf("control database: %w", err)
		case got != want:
			return &options.UsageError{Flag: "shards", Reason: "these databases hold a run of another trace or of other shards"}
		}
	}
	return nil
}

// notThere reports a database or table that is not made yet, or that the login may not see: schema.Up makes it, or says what is missing.
func notThere(err error) bool {
	m, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && (m.Number == 1044 || m.Number == 1049 || m.Number == 1146)
}

// finished reports whether an earlier run ended, and otherwise writes down which trace this one is, and over which shards.
func (w *work) finished(ctx context.Context) (bool, error) {
	_, done, err := w.store.Note(system(ctx), noteFinished)
	if err != nil || done {
		return done, err
	}
	for name, value := range w.notes {
		if err := w.note(ctx, name, value); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (w *work) note(ctx context.Context, name, value string) error {
	return patiently(ctx, func() error { return w.store.SetNote(system(ctx), name, value) })
}

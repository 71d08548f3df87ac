package schema_test

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
)

var s1 = dal.Place{Shard: "s1"}

// diesAt returns a migrator that dies just before it sends a statement that begins so.
func diesAt(prefix string) schema.Migrator {
	dead := false
	return schema.Migrator{}.Observed(&hook{before: func(_ int, e wire.Event) error {
		if dead = dead || strings.HasPrefix(e.Text, prefix); dead {
			return errDied
		}
		return nil
	}})
}

// The process died while a statement that cannot run twice was on its way. Nobody but a person can know what became of it.
func TestUp_Dirty(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		diesAt  string
		applied bool // the statement took effect
	}{
		{"before the statement", "ALTER TABLE hero ADD", false},
		{"after the statement", "INSERT INTO tdal_version_game", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := onMariaDB(t, 1)
			b.mustUp(game1)
			b.m = diesAt(tc.diesAt)
			if _, err := b.up(game2); !errors.Is(err, errDied) {
				t.Fatalf("Up: got %v, want it to die", err)
			}
			b.m = schema.Migrator{}
			for range 2 { // asking again changes nothing
				_, err := b.up(game2)
				var de *schema.DirtyError
				if !errors.As(err, &de) || !errors.Is(err, schema.ErrDirty) || de.Place != s1 || de.Version != 2 || de.File != "0002_level.sql" || de.Changed {
					t.Fatalf("Up: got %v, want a *DirtyError about 0002_level.sql", err)
				}
				if !strings.Contains(err.Error(), "schema.Resolve") {
					t.Fatalf("Up: %v does not say how to go on", err)
				}
				if e := upError(t, err); e.Failed[0].File != "0002_level.sql" || e.Failed[0].Set != "game" {
					t.Fatalf("Up: got %+v", e.Failed)
				}
			}
			if st := b.status(game2); !reflect.DeepEqual(st[1].Dirty, []string{"0002_level.sql"}) || st[1].UpToDate() || st[1].Version != 1 {
				t.Fatalf("Status: got %+v, want 0002_level.sql dirty", st[1])
			}
			if got := len(b.columns(s1, "", "hero")) == 3; got != tc.applied {
				t.Fatalf("the test is wrong: the statement took effect: %v, want %v", got, tc.applied)
			}

			for _, res := range []schema.Resolution{
				{Place: s1, Set: "game", Version: 1},
				{Place: s1, Set: "game", Version: 3, Applied: true},
				{Place: s1, Set: "other", Version: 2},
				{Place: s1, Set: "No Set", Version: 2},
				{Set: "control", Version: 2},
			} {
				if err := schema.Resolve(t.Context(), b.cfg, res); !errors.Is(err, schema.ErrNotDirty) {
					t.Fatalf("Resolve(%+v): got %v, want ErrNotDirty", res, err)
				}
			}
			if err := schema.Resolve(t.Context(), b.cfg, schema.Resolution{Place: dal.Place{Shard: "s9"}, Set: "game", Version: 2}); !errors.Is(err, schema.ErrUnknownPlace) {
				t.Fatalf("Resolve in an unknown place: got %v, want ErrUnknownPlace", err)
			}
			if err := schema.Resolve(t.Context(), b.cfg, schema.Resolution{Place: s1, Set: "game", Version: 2, Applied: tc.applied}); err != nil {
				t.Fatalf("Resolve: %v", err)
			}
			versions, _, err := b.control().Versions(t.Context())
			if want := map[bool]int64{false: 1, true: 2}[tc.applied]; err != nil || len(versions) != 1 || versions[0].Version != want {
				t.Fatalf("Versions after Resolve: got %v, %v, want version %d", versions, err, want)
			}
			b.mustUp(game2)
			b.wantUpToDate(game2)
			if got := b.columns(s1, "", "hero"); len(got) != 3 {
				t.Fatalf("hero has columns %v, want level once", got)
			}
		})
	}
}

// The process lives, and what it heard of the statement says whether it may have taken effect.
func TestUp_DirtyByAnswer(t *testing.T) {
	t.Parallel()
	const statement, list = "ALTER TABLE hero ADD", "INSERT INTO tdal_version_game"
	for name, tc := range map[string]struct {
		at     string
		answer error
		dirty  bool
	}{
		"the answer was lost":         {statement, io.ErrUnexpectedEOF, true},
		"it was interrupted":          {statement, &mysql.MySQLError{Number: 1317, Message: "interrupted"}, true},
		"the server shut down":        {statement, &mysql.MySQLError{Number: 1053, Message: "shutdown"}, true},
		"it was refused":              {statement, &mysql.MySQLError{Number: 1064, Message: "syntax"}, false},
		"it never left":               {statement, &wire.ConnectError{Shard: "s1", Err: io.EOF}, false},
		"goose's list was refused":    {list, &mysql.MySQLError{Number: 1114, Message: "full"}, true},
		"goose's list was never sent": {list, &wire.ConnectError{Shard: "s1", Err: io.EOF}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := onMariaDB(t, 1)
			b.mustUp(game1)
			b.m = schema.Migrator{}.Observed(&hook{before: func(_ int, e wire.Event) error {
				if strings.HasPrefix(e.Text, tc.at) {
					return tc.answer
				}
				return nil
			}})
			if _, err := b.up(game2); !errors.Is(err, tc.answer) {
				t.Fatalf("Up: got %v, want %v", err, tc.answer)
			}
			b.m = schema.Migrator{}
			_, err := b.up(game2)
			if errors.Is(err, schema.ErrDirty) != tc.dirty || !tc.dirty && err != nil {
				t.Fatalf("second Up: got %v, want dirty: %v", err, tc.dirty)
			}
		})
	}
}

// What SQLite did not commit never happened, and what may run twice is run twice: neither needs a person.
func TestUp_DirtyHealsItself(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"ALTER TABLE hero ADD", "INSERT INTO tdal_version_game", "UPDATE tdal_checksums SET state"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := onSQLite(t, 1)
			b.mustUp(game1)
			b.m = diesAt(at)
			if _, err := b.up(game2); !errors.Is(err, errDied) {
				t.Fatalf("Up: got %v, want it to die", err)
			}
			b.m = schema.Migrator{}
			b.mustUp(game2)
			b.wantUpToDate(game2)
		})
	}
	for _, at := range []string{"CREATE TABLE IF NOT EXISTS item", "INSERT INTO tdal_version_item", "UPDATE tdal_checksums SET state"} {
		t.Run("mariadb "+at, func(t *testing.T) {
			t.Parallel()
			item := files("item", map[string]string{"0001_item.sql": createItem})
			b := onMariaDB(t, 1)
			b.mustUp(game1)
			b.m = diesAt(at)
			if _, err := b.up(game1, item); !errors.Is(err, errDied) {
				t.Fatalf("Up: got %v, want it to die", err)
			}
			b.m = schema.Migrator{}
			b.mustUp(game1, item)
			b.wantUpToDate(game1, item)
		})
	}
}

// A file that was started and then changed cannot be run again, even where it could have been: it is not the same statement.
func TestUp_DirtyAndChanged(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.m = diesAt("CREATE TABLE IF NOT EXISTS hero")
		if _, err := b.up(game1); !errors.Is(err, errDied) {
			t.Fatalf("Up: got %v, want it to die", err)
		}
		b.m = schema.Migrator{}
		changed := files("game", map[string]string{"0001_hero.sql": strings.Replace(createHero, "id BIGINT", "id INT", 1)})
		_, err := b.up(changed)
		if !b.mysql() {
			if err != nil {
				t.Fatalf("Up on SQLite, where the first file never happened: %v", err)
			}
			return
		}
		var de *schema.DirtyError
		if !errors.As(err, &de) || !de.Changed {
			t.Fatalf("Up: got %v, want a *DirtyError about a changed file", err)
		}
		b.mustUp(game1)
	})
}

// A statement that waits for a table in use gives up after LockWait. The server refused it, so nothing is dirty.
func TestUp_TableInUse(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 1)
	b.mustUp(game1)
	pool := b.open(s1, "")
	tx, err := pool.BeginTx(migrator(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(migrator(t.Context()), "INSERT INTO hero (tenant_id, id) VALUES ('acme', 1)"); err != nil {
		t.Fatal(err)
	}
	b.m.LockWait = time.Second
	if _, err := b.up(game2); wire.Code(err) != 1205 || errors.Is(err, schema.ErrDirty) {
		t.Fatalf("Up: got %v, want the server's lock wait time-out", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	b.mustUp(game2)
}

func TestResolve_NotMigrated(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		if err := schema.Resolve(t.Context(), b.cfg, schema.Resolution{Place: s1, Set: "game", Version: 1}); !errors.Is(err, schema.ErrNotMigrated) {
			t.Fatalf("Resolve: got %v, want ErrNotMigrated", err)
		}
	})
}

// A step of the control database can be dirty too.
func TestResolve_Control(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 1)
	b.mustUp(game1)
	b.exec(dal.Place{}, "", "INSERT INTO tdal_checksums (set_name, version, file, checksum, state) VALUES ('control', 9001, '9001_x.sql', 'x', 'started')")
	if _, err := b.up(game1); !errors.Is(err, schema.ErrDirty) {
		t.Fatalf("Up: got %v, want ErrDirty", err)
	}
	if err := schema.Resolve(t.Context(), b.cfg, schema.Resolution{Set: "control", Version: 9001}); err != nil {
		t.Fatal(err)
	}
	b.mustUp(game1)
}

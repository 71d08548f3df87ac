package schema_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/pressly/goose/v3"
	goosedb "github.com/pressly/goose/v3/database"

	"github.com/tenantdal/tenantdal/migrations/schema"
)

// bookless is goose's list of applied files without a database: it says that exactly the opposite of what is asked for was done.
type bookless struct{ applied bool }

func (bookless) Tablename() string { return "none" }

func (bookless) CreateVersionTable(context.Context, goosedb.DBTxConn) error { return nil }

func (bookless) Insert(context.Context, goosedb.DBTxConn, goosedb.InsertRequest) error { return nil }

func (bookless) Delete(context.Context, goosedb.DBTxConn, int64) error { return nil }

func (bookless) GetLatestVersion(context.Context, goosedb.DBTxConn) (int64, error) { return 0, nil }

func (bookless) TableExists(context.Context, goosedb.DBTxConn) (bool, error) { return true, nil }

func (bookless) ListMigrations(context.Context, goosedb.DBTxConn) ([]*goosedb.ListMigrationsResult, error) {
	return nil, nil
}

func (b bookless) GetMigration(context.Context, goosedb.DBTxConn, int64) (*goosedb.GetMigrationResult, error) {
	if b.applied {
		return &goosedb.GetMigrationResult{Timestamp: time.Unix(0, 0), IsApplied: true}, nil
	}
	return nil, goosedb.ErrVersionNotFound
}

// goosesStatements returns what goose sends for a file.
func goosesStatements(t *testing.T, text string, up bool) []string {
	t.Helper()
	var sent []string
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(_, actual string) error {
		sent = append(sent, actual)
		return nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	mock.ExpectBegin()
	mock.ExpectExec("any").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectCommit()
	p, err := goose.NewProvider(goose.DialectCustom, db, fstest.MapFS{"0001_x.sql": {Data: []byte(text)}},
		goose.WithStore(bookless{applied: !up}), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatalf("goose does not read %q: %v", text, err)
	}
	if _, err := p.ApplyVersion(t.Context(), 1, up); err != nil {
		t.Fatalf("goose, of %q: %v", text, err)
	}
	return sent
}

// What Lint lets through, goose reads in the same way: it sends the one statement that was judged, and nothing else.
func FuzzLint_GooseAgrees(f *testing.F) {
	f.Add(gooseFile(createHero))
	f.Add(gooseFile(addLevel))
	f.Add("-- +goose Up\n-- +goose StatementBegin\nCREATE TRIGGER t AFTER INSERT ON u FOR EACH ROW BEGIN DELETE FROM v; END;\n-- +goose StatementEnd\n-- +goose Down\nDROP TRIGGER t;\n")
	f.Add("-- +goose Up\nALTER TABLE `a``b` ADD COLUMN x INT,\n-- why\nDROP COLUMN y; -- x;\n\n-- +goose Down\n\n -- z\nDROP INDEX i;\n  \n")
	f.Add("-- +goose Up\nALTER TABLE a ADD COLUMN x VARCHAR(9) DEFAULT ';\n';\n-- +goose Down\r\nDROP INDEX i;\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		set := schema.Set{Name: "game", FS: fstest.MapFS{"sqlite/0001_x.sql": {Data: []byte(text)}, "mysql/0001_x.sql": {Data: []byte(text)}}}
		if schema.Lint(set) != nil {
			return
		}
		up, down, err := schema.Split(text)
		if err != nil {
			t.Fatalf("Lint passes %q, Split does not: %v", text, err)
		}
		for _, dir := range []struct {
			up   bool
			want string
		}{{true, up}, {false, down}} {
			sent := goosesStatements(t, text, dir.up)
			if len(sent) != 1 || squeeze(sent[0]) != squeeze(dir.want) {
				t.Fatalf("of %q goose sends %q, Lint judged %q", text, sent, dir.want)
			}
		}
	})
}

// squeeze makes blanks equal: goose normalises line ends.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

package schema_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tenantdal/tenantdal/migrations/schema"
)

func TestLint_BuiltIn(t *testing.T) {
	t.Parallel()
	if err := schema.Lint(schema.Saga()); err != nil {
		t.Errorf("Saga: %v", err)
	}
	if err := schema.Lint(schema.ControlSet()); err != nil {
		t.Errorf("control: %v", err)
	}
}

const down = "\n-- +goose Down\nDROP TABLE IF EXISTS t;\n"

func TestLint_File(t *testing.T) {
	t.Parallel()
	create := "CREATE TABLE IF NOT EXISTS t (tenant_id VARCHAR(63) NOT NULL, id BIGINT NOT NULL, PRIMARY KEY (tenant_id, id))"
	for name, tc := range map[string]struct {
		text string
		want string // part of the error; empty: none
		only string // the dialect it is tried in; empty: both
	}{
		"fine":                      {text: "-- why\n\n-- +goose Up\n-- more\n" + create + "; -- done\n" + down},
		"windows line ends":         {text: strings.ReplaceAll("-- +goose Up\n"+create+";\n"+down, "\n", "\r\n")},
		"semicolon in a literal":    {text: "-- +goose Up\n" + strings.Replace(create, "id BIGINT NOT NULL", "id BIGINT NOT NULL, note VARCHAR(9) DEFAULT ';x'", 1) + ";\n" + down},
		"empty":                     {text: "", want: "0 statements going up"},
		"no down":                   {text: "-- +goose Up\n" + create + ";\n", want: "0 statements going down"},
		"no up":                     {text: down, want: "not allowed there"},
		"empty down":                {text: "-- +goose Up\n" + create + ";\n-- +goose Down\n", want: "0 statements going down"},
		"two ups":                   {text: "-- +goose Up\n" + create + ";\n-- +goose Up\n", want: "not allowed there"},
		"text before up":            {text: create + ";\n-- +goose Up\n" + create + ";\n" + down, want: "before -- +goose Up"},
		"indented":                  {text: "  -- +goose Up\n" + create + ";\n" + down, want: "indented"},
		"no transaction":            {text: "-- +goose NO TRANSACTION\n-- +goose Up\n" + create + ";\n" + down, want: "not allowed there"},
		"environment":               {text: "-- +goose Up\n-- +goose ENVSUB ON\n" + create + ";\n" + down, want: "not allowed there"},
		"unknown annotation":        {text: "-- +goose Sideways\n-- +goose Up\n" + create + ";\n" + down, want: "not allowed there"},
		"no semicolon":              {text: "-- +goose Up\n" + create + "\n" + down, want: "not allowed there"},
		"no last semicolon":         {text: "-- +goose Up\n" + create + ";\n-- +goose Down\nDROP TABLE IF EXISTS t\n", want: "does not end with a semicolon"},
		"two statements":            {text: "-- +goose Up\n" + create + ";\nCREATE INDEX i ON t (tenant_id);\n" + down, want: "2 statements going up"},
		"two in one line":           {text: "-- +goose Up\n" + create + "; DROP TABLE IF EXISTS u;\n" + down, want: "more than one statement"},
		"two going down":            {text: "-- +goose Up\n" + create + ";\n-- +goose Down\nDROP TABLE IF EXISTS t; DROP TABLE IF EXISTS u;\n", want: "more than one statement"},
		"two in a block":            {text: "-- +goose Up\n-- +goose StatementBegin\n" + create + "; DROP TABLE IF EXISTS u;\n-- +goose StatementEnd\n" + down, want: "more than one statement"},
		"one in a block":            {text: "-- +goose Up\n-- +goose StatementBegin\n" + create + ";\n-- +goose StatementEnd\n" + down},
		"open block":                {text: "-- +goose Up\n-- +goose StatementBegin\n" + create + ";\n", want: "does not end"},
		"end without begin":         {text: "-- +goose Up\n" + create + ";\n-- +goose StatementEnd\n" + down, want: "not allowed there"},
		"open literal":              {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a VARCHAR(9) DEFAULT 'x);\n" + down, want: "does not end"},
		"open comment":              {text: "-- +goose Up\n" + create + " /* ;\n" + down, want: "does not end"},
		"executable comment":        {text: "-- +goose Up\n" + create + " /*!50000 ENGINE=MyISAM */;\n" + down, want: "server executes"},
		"executable comment 2":      {text: "-- +goose Up\n" + create + " /*M!100000 ENGINE=MyISAM */;\n" + down, want: "server executes"},
		"insert":                    {text: "-- +goose Up\nINSERT INTO t VALUES (1);\n" + down, want: "none of CREATE"},
		"use":                       {text: "-- +goose Up\nUSE mysql;\n" + down, want: "none of CREATE"},
		"set":                       {text: "-- +goose Up\nSET GLOBAL x = 1;\n" + down, want: "none of CREATE"},
		"attach":                    {text: "-- +goose Up\nATTACH 'x.db' AS x;\n" + down, want: "none of CREATE"},
		"create database":           {text: "-- +goose Up\nCREATE DATABASE x;\n" + down, want: "none of CREATE"},
		"create user":               {text: "-- +goose Up\nCREATE USER x;\n" + down, want: "none of CREATE"},
		"temporary table":           {text: "-- +goose Up\nCREATE TEMPORARY TABLE t (a INT);\n" + down, want: "none of CREATE"},
		"grant":                     {text: "-- +goose Up\nGRANT ALL ON *.* TO x;\n" + down, want: "none of CREATE"},
		"truncate":                  {text: "-- +goose Up\nTRUNCATE TABLE t;\n" + down, want: "none of CREATE"},
		"lacks if not exists":       {text: "-- +goose Up\nCREATE TABLE t (a INT);\n" + down, want: "IF NOT EXISTS"},
		"lacks if exists":           {text: "-- +goose Up\n" + create + ";\n-- +goose Down\nDROP TABLE t;\n", want: "IF EXISTS"},
		"or replace":                {text: "-- +goose Up\nCREATE OR REPLACE TABLE t (a INT);\n" + down, want: "throws away"},
		"as select":                 {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t AS SELECT 1;\n" + down, want: "copies another table"},
		"columns and select":        {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a INT) SELECT 1 AS a;\n" + down, want: "fills a table"},
		"like":                      {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t LIKE u;\n" + down, want: "copies another table"},
		"like in parentheses":       {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (LIKE u);\n" + down, want: "copies another table"},
		"another database":          {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS mysql.t (a INT);\n" + down, want: "another database"},
		"another database, quoted":  {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS `mysql` . `t` (a INT);\n" + down, want: "another database"},
		"another database, altered": {text: "-- +goose Up\nALTER TABLE other.t ADD COLUMN a INT;\n" + down, want: "another database"},
		"another database, dropped": {text: "-- +goose Up\nDROP TABLE IF EXISTS other.t;\n" + down, want: "another database"},
		"another database, key":     {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a INT REFERENCES other.u (a));\n" + down, want: "another database"},
		"two dropped":               {text: "-- +goose Up\nDROP TABLE IF EXISTS t, u;\n" + down, want: "more than one table"},
		"two renamed":               {text: "-- +goose Up\nRENAME TABLE t TO a, u TO b;\n" + down, want: "more than one table"},
		"placeholder":               {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a INT DEFAULT ?);\n" + down, want: "no parameters"},
		"variable":                  {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a INT DEFAULT (@x));\n" + down, want: "no parameters"},
		"auto increment":            {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (tenant_id INT, id BIGINT AUTO_INCREMENT PRIMARY KEY);\n" + down, want: "AUTO_INCREMENT"},
		"autoincrement":             {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (\"tenant_id\" TEXT, id INTEGER PRIMARY KEY autoincrement);\n" + down, want: "AUTO_INCREMENT", only: "sqlite"},
		"serial":                    {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (`tenant_id` INT, id SERIAL);\n" + down, want: "AUTO_INCREMENT", only: "mysql"},
		"a column named serial":     {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (tenant_id INT, serial INT);\n" + down},
		"auto increment, global":    {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (id BIGINT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(20) DEFAULT 'tenant_id');\n" + down},
		"the library's":             {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS TDAL_x (a INT);\n" + down, want: "the library's"},
		"the library's, going down": {text: "-- +goose Up\n" + create + ";\n-- +goose Down\nDROP TABLE IF EXISTS `tdal_checksums`;\n", want: "the library's"},
		"renamed to the library's":  {text: "-- +goose Up\nALTER TABLE t RENAME TO tdal_t;\n" + down, want: "the library's"},
		"no name":                   {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS (a INT);\n" + down, want: "no name"},
		"nothing but a semicolon":   {text: "-- +goose Up\n;\n" + down, want: "none of CREATE"},
		"minus minus":               {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a INT DEFAULT 5--1\n);\n" + down, want: "minus", only: "mysql"},
		"a backslash hides a quote": {text: "-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a VARCHAR(9) DEFAULT '\\', b VARCHAR(9) DEFAULT '; DROP TABLE IF EXISTS u /* ' */);\n" + down, want: "more than one statement", only: "mysql"},
		"trigger": {text: "-- +goose Up\n-- +goose StatementBegin\nCREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW BEGIN\n  DELETE FROM u;\n  DELETE FROM v;\nEND;\n-- +goose StatementEnd\n" +
			"-- +goose Down\nDROP TRIGGER IF EXISTS tr;\n"},
		"trigger and more": {text: "-- +goose Up\n-- +goose StatementBegin\nCREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW DELETE FROM u; DROP TABLE IF EXISTS v;\n-- +goose StatementEnd\n" +
			"-- +goose Down\nDROP TRIGGER IF EXISTS tr;\n", want: "more than one statement"},
		"view":  {text: "-- +goose Up\nCREATE OR REPLACE VIEW v AS SELECT t.a FROM t;\n-- +goose Down\nDROP VIEW IF EXISTS v;\n"},
		"index": {text: "-- +goose Up\nCREATE UNIQUE INDEX i ON t (tenant_id, a);\n-- +goose Down\nDROP INDEX i ON t;\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range []string{"sqlite", "mysql"} {
				if tc.only != "" && tc.only != d {
					continue
				}
				other := map[string]string{"sqlite": "mysql", "mysql": "sqlite"}[d]
				err := schema.Lint(schema.Set{Name: "game", FS: fstest.MapFS{
					d + "/0001_t.sql":     {Data: []byte(tc.text)},
					other + "/0001_t.sql": {Data: []byte("-- +goose Up\n" + create + ";\n" + down)},
				}})
				if tc.want == "" {
					if err != nil {
						t.Errorf("%s: got %v, want none", d, err)
					}
					continue
				}
				var le *schema.LintError
				if !errors.As(err, &le) || !errors.Is(err, schema.ErrLint) || !strings.Contains(err.Error(), tc.want) || le.File != d+"/0001_t.sql" {
					t.Errorf("%s: got %v, want a *LintError with %q", d, err, tc.want)
				}
			}
		})
	}
}

// Faults that show only when the files of a set are seen together.
func TestLint_Set(t *testing.T) {
	t.Parallel()
	file := func(body string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(gooseFile(body))} }
	good := fstest.MapFS{"sqlite/0001_hero.sql": file(createHero), "mysql/0001_hero.sql": file(createHero)}
	for name, tc := range map[string]struct {
		name string
		add  fstest.MapFS
		want []string
	}{
		"good":            {name: "game"},
		"name":            {name: "Game", want: []string{"[a-z]"}},
		"empty name":      {name: "", want: []string{"[a-z]"}},
		"name with quote": {name: "g`", want: []string{"[a-z]"}},
		"one dialect":     {name: "game", add: fstest.MapFS{"mysql/0002_x.sql": file(createItem)}, want: []string{"there is no sqlite/0002_x.sql"}},
		"other name":      {name: "game", add: fstest.MapFS{"mysql/0002_x.sql": file(createItem), "sqlite/0002_y.sql": file(createItem)}, want: []string{"there is no sqlite/0002_x.sql", "there is no mysql/0002_y.sql"}},
		"one number twice": {
			name: "game", add: fstest.MapFS{"mysql/00001_x.sql": file(createItem), "sqlite/00001_x.sql": file(createItem)},
			want: []string{"its number is that of"},
		},
		"zero":         {name: "game", add: fstest.MapFS{"mysql/0000_x.sql": file(createItem), "sqlite/0000_x.sql": file(createItem)}, want: []string{"not above 0"}},
		"odd names":    {name: "game", add: fstest.MapFS{"mysql/2_x.sql": file(createItem), "mysql/0003-x.sql": file(createItem), "mysql/0004_X.sql": file(createItem), "mysql/0005_x.go": file("x")}, want: []string{"2_x.sql", "0003-x.sql", "0004_X.sql", "0005_x.go"}},
		"a folder":     {name: "game", add: fstest.MapFS{"mysql/more/0002_x.sql": file(createItem)}, want: []string{"mysql/more"}},
		"twice made":   {name: "game", add: fstest.MapFS{"mysql/0002_x.sql": file(createHero), "sqlite/0002_x.sql": file(createHero)}, want: []string{"created before"}},
		"made anew":    {name: "game", add: both(map[string]string{"0002_x.sql": "DROP TABLE IF EXISTS hero|DROP TABLE IF EXISTS x", "0003_x.sql": createHero}, file)},
		"renamed away": {name: "game", add: both(map[string]string{"0002_x.sql": "ALTER TABLE hero RENAME TO champion|ALTER TABLE champion RENAME TO hero", "0003_x.sql": createHero}, file)},
		"column renamed": {
			name: "game", add: both(map[string]string{"0002_x.sql": "ALTER TABLE hero RENAME COLUMN id TO champion|ALTER TABLE hero RENAME COLUMN champion TO id", "0003_x.sql": createHero}, file),
			want: []string{"created before"},
		},
		"late auto increment": {name: "game", add: both(map[string]string{"0002_x.sql": "ALTER TABLE HERO MODIFY id BIGINT AUTO_INCREMENT|ALTER TABLE hero MODIFY id BIGINT"}, file), want: []string{"AUTO_INCREMENT"}},
		"auto increment of a renamed table": {
			name: "game", add: both(map[string]string{
				"0002_x.sql": "ALTER TABLE hero RENAME TO champion|ALTER TABLE champion RENAME TO hero", "0003_x.sql": "ALTER TABLE champion ADD n INT AUTO_INCREMENT|ALTER TABLE champion DROP COLUMN n",
			}, file),
			want: []string{"AUTO_INCREMENT"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := maps.Clone(good)
			maps.Copy(all, tc.add)
			err := schema.Lint(schema.Set{Name: tc.name, FS: all})
			if (err == nil) != (len(tc.want) == 0) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %v, want %q in it", err, w)
				}
			}
		})
	}
	if err := schema.Lint(schema.Set{Name: "game"}); !errors.Is(err, schema.ErrLint) {
		t.Errorf("a set without files: got %v, want ErrLint", err)
	}
	if err := schema.Lint(schema.Set{Name: "game", FS: fstest.MapFS{}}); !errors.Is(err, schema.ErrLint) {
		t.Errorf("a set without folders: got %v, want ErrLint", err)
	}
}

func both(bodies map[string]string, file func(string) *fstest.MapFile) fstest.MapFS {
	all := fstest.MapFS{}
	for name, body := range bodies {
		all["sqlite/"+name], all["mysql/"+name] = file(body), file(body)
	}
	return all
}

package gate_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/gate/gatetest"
	"github.com/tenantdal/tenantdal/testutil"
)

// A world is a database in which tenant a has the same rows in every world, and tenant b, the system's jobs and an undeclared table have rows of this
// world alone. A statement of a that is kept to a's rows gives the same answer in every world: whatever it shows of another's rows, be it their number
// or that there are any, makes a difference.
type world struct {
	db     *sql.DB
	others string // all rows that are not a's, as they are in the beginning
	mine   string // a's
}

// worldTables are the tables as the gate knows them. The database has one more: secrets, which is not declared.
var worldTables = []gate.Table{
	{Name: "items", Class: gate.Tenant},
	{Name: "players", Class: gate.Tenant},
	{Name: "bags", Class: gate.Tenant},
	{Name: "catalog", Class: gate.Global},
	{Name: "jobs", Class: gate.System},
}

func worldSchema(tb testing.TB, d gate.Dialect) *gate.Schema {
	tb.Helper()
	s, err := gate.NewSchema(d, "tenant_id", worldTables...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// canaries are in no row of a's, and nothing that is computed of a's rows is one.
var canaries = []string{"CANARY", "KANARI", "QUOKKA"}

// isCanary reports a value of another's row.
func isCanary(cell string) bool {
	for _, c := range canaries {
		if strings.Contains(strings.ToUpper(cell), c) {
			return true
		}
	}
	n, err := strconv.ParseFloat(cell, 64)
	return err == nil && (n > 900_000 && n < 900_020 || n > 800_000 && n < 800_020 || n > 700_000 && n < 700_020)
}

// worldRows are the rows of world n: table, tenant_id, id, player_id, gold, name.
func worldRows(n int) [][]any {
	rows := [][]any{
		{"items", "a", 1, 1, 5, "sword"},
		{"items", "a", 2, 1, 20, "bow"},
		{"items", "a", 3, 2, 7, "x"},
		{"players", "a", 1, 2, 3, "ann"},
		{"players", "a", 2, 2, 11, "bow"},
		{"bags", "a", 1, 1, 2, "bag"},
		{"bags", "a", 2, 2, 9, "sack"},
		{"catalog", "", 1, 1, 5, "sword"},
		{"catalog", "", 2, 1, 4, "x"},
	}
	if n == 0 {
		return append(rows, [][]any{
			{"items", "b", 1, 1, 900_001, "CANARY-1"},
			{"items", "b", 2, 2, 900_002, "CANARY-2"},
			{"items", "b", 4, 1, 900_003, "sword"},
			{"players", "b", 1, 1, 900_004, "CANARY-3"},
			{"players", "b", 3, 2, 900_005, "CANARY-4"},
			{"bags", "b", 1, 1, 900_006, "x"},
			{"bags", "b", 3, 2, 900_007, "sword"},
			{"jobs", "b", 1, 1, 700_001, "QUOKKA-1"},
			{"secrets", "b", 1, 1, 700_002, "QUOKKA-2"},
		}...)
	}
	return append(rows, [][]any{
		{"items", "b", 2, 2, 800_001, "KANARI-1"},
		{"items", "b", 3, 1, 800_002, "x"},
		{"items", "b", 5, 3, 800_003, "KANARI-2"},
		{"items", "b", 6, 1, 800_004, "KANARI-3"},
		{"players", "b", 2, 1, 800_005, "KANARI-4"},
		{"bags", "b", 1, 2, 800_006, "bow"},
		{"jobs", "b", 2, 1, 700_003, "QUOKKA-3"},
		{"secrets", "b", 2, 1, 700_004, "QUOKKA-4"},
		{"secrets", "b", 3, 1, 700_005, "QUOKKA-5"},
	}...)
}

// worlds returns two worlds of the dialect.
func worlds(tb testing.TB, d gate.Dialect) []*world {
	tb.Helper()
	list := make([]*world, 2)
	for n := range list {
		var db *sql.DB
		switch d {
		case gate.SQLite:
			var err error
			if db, err = sql.Open("sqlite", filepath.Join(tb.TempDir(), "world.db")); err != nil {
				tb.Fatal(err)
			}
		case gate.MySQL: // as the pools open it
			cfg := testutil.NewDatabase(tb, testutil.SharedMariaDB(tb, 1)[0])
			cfg.InterpolateParams = true
			cfg.Logger = &mysql.NopLogger{}
			cfg.Params = map[string]string{
				"sql_mode":           "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
				"max_statement_time": "1",
			}
			connector, err := mysql.NewConnector(cfg)
			if err != nil {
				tb.Fatal(err)
			}
			db = sql.OpenDB(connector)
		default:
			e := testutil.NewPostgresDatabase(tb, testutil.SharedPostgres(tb, 1)[0])
			cfg, err := pgx.ParseConfig("port=5432 sslmode=disable host=" + filepath.Dir(e.Address))
			if err != nil {
				tb.Fatal(err)
			}
			cfg.User, cfg.Password, cfg.Database = e.User, e.Password, e.Database
			cfg.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
			cfg.RuntimeParams = map[string]string{"standard_conforming_strings": "on", "statement_timeout": "1000"}
			db = stdlib.OpenDB(*cfg)
		}
		db.SetMaxOpenConns(1)
		tb.Cleanup(func() { db.Close() })
		list[n] = newWorld(tb, d, db, n)
	}
	return list
}

func newWorld(tb testing.TB, d gate.Dialect, db *sql.DB, n int) *world {
	tb.Helper()
	exec := func(text string) {
		if _, err := db.Exec(text); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
	tenant, name := "VARCHAR(63)", "VARCHAR(300)"
	if d == gate.MySQL {
		tenant, name = "VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin", "VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	}
	for _, t := range []string{"items", "players", "bags", "jobs", "secrets"} {
		exec("CREATE TABLE " + t + " (tenant_id " + tenant + " NOT NULL, id BIGINT NOT NULL, player_id BIGINT, gold BIGINT, name " + name + ", PRIMARY KEY (tenant_id, id))")
	}
	exec("CREATE TABLE catalog (id BIGINT NOT NULL PRIMARY KEY, player_id BIGINT, gold BIGINT, name " + name + ")")
	exec("CREATE UNIQUE INDEX u_name ON bags (name)") // knows no tenant: an upsert meets other tenants' rows here
	for _, t := range []string{"items", "players"} {
		exec("CREATE INDEX k_gold" + map[bool]string{true: "_" + t}[d != gate.MySQL] + " ON " + t + " (tenant_id, gold)")
	}
	for _, r := range worldRows(n) {
		if r[0] == "catalog" {
			exec(fmt.Sprintf("INSERT INTO catalog (id, player_id, gold, name) VALUES (%d, %d, %d, '%s')", r[2:]...))
			continue
		}
		exec(fmt.Sprintf("INSERT INTO %s (tenant_id, id, player_id, gold, name) VALUES ('%s', %d, %d, %d, '%s')", r...))
	}
	w := &world{db: db}
	var err error
	if w.mine, w.others, err = snapshot(context.Background(), db); err != nil {
		tb.Fatal(err)
	}
	return w
}

// queryer is a pool or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// snapshot returns a's rows and all others, as texts.
func snapshot(ctx context.Context, q queryer) (mine, others string, err error) {
	var b strings.Builder
	for n, t := range []string{"items", "players", "bags", "jobs", "secrets", "catalog"} {
		if n > 0 {
			b.WriteString(" UNION ALL ")
		}
		owner := "tenant_id"
		if t == "catalog" {
			owner = "''"
		}
		b.WriteString("SELECT '" + t + "' AS t, " + owner + " AS o, id, player_id, gold, name FROM " + t)
	}
	rows, err := read(ctx, q, b.String())
	if err != nil {
		return "", "", err
	}
	var own, other []string
	for _, r := range rows {
		if r[1] == "a" {
			own = append(own, strings.Join(r, "|"))
		} else {
			other = append(other, strings.Join(r, "|"))
		}
	}
	slices.Sort(own)
	slices.Sort(other)
	return strings.Join(own, "\n"), strings.Join(other, "\n"), nil
}

// maxRows bounds what is read of an answer.
const maxRows = 20_000

func read(ctx context.Context, q queryer, text string, args ...any) ([][]string, error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var list [][]string
	for rows.Next() && len(list) < maxRows {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			return nil, err
		}
		row := make([]string, len(cells))
		for i, c := range cells {
			switch c := (*c.(*any)).(type) {
			case nil:
				row[i] = "NULL"
			case []byte:
				row[i] = string(c)
			case bool:
				row[i] = map[bool]string{false: "0", true: "1"}[c]
			default:
				row[i] = fmt.Sprint(c)
			}
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

// answer is what a statement did in a world.
type answer struct {
	rows         string
	canary       bool
	mine, others string // the rows after it; empty if they were not looked at
	err          error
}

// do runs a statement in a transaction and rolls it back. With look it looks at all rows after it.
func (w *world) do(text string, args []any, look bool) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return answer{err: fmt.Errorf("begin: %w", err)}
	}
	defer func() { _ = tx.Rollback() }() // of a statement that was cut off, the connection is gone, and its work with it
	rows, err := read(ctx, tx, text, args...)
	a := answer{err: err}
	list := make([]string, 0, len(rows))
	for _, r := range rows {
		a.canary = a.canary || slices.ContainsFunc(r, isCanary)
		list = append(list, strings.Join(r, "|"))
	}
	slices.Sort(list)
	a.rows = strings.Join(list, "\n")
	if err == nil && look {
		a.mine, a.others, a.err = snapshot(ctx, tx)
	}
	return a
}

// leak compares what a statement of a's did in two worlds and returns what it shows or changes of another's rows, or "". Where an answer depends on
// the order in which the server happens to read the rows, exact is false and the answers are not compared with each other.
func leak(ws []*world, text string, args []any, look, exact bool) (problem string, ran bool) {
	answers := make([]answer, len(ws))
	for n, w := range ws {
		a := w.do(text, args, look)
		answers[n] = a
		switch {
		case a.canary:
			return fmt.Sprintf("world %d: the answer has another's values:\n%s", n, a.rows), true
		case a.err != nil:
			return "", false
		case a.others != "" && a.others != w.others:
			return fmt.Sprintf("world %d: another's rows are now\n%s\nand were\n%s", n, a.others, w.others), true
		case slices.ContainsFunc(strings.FieldsFunc(a.mine, func(r rune) bool { return r == '|' || r == '\n' }), isCanary):
			return fmt.Sprintf("world %d: a's rows now have another's values:\n%s", n, a.mine), true
		}
	}
	if exact && answers[0].rows != answers[1].rows {
		return fmt.Sprintf("the answer depends on another's rows:\n%s\nand\n%s", answers[0].rows, answers[1].rows), true
	}
	if exact && answers[0].mine != answers[1].mine {
		return fmt.Sprintf("what it changes depends on another's rows:\n%s\nand\n%s", answers[0].mine, answers[1].mine), true
	}
	return "", true
}

// isExact reports a statement whose answer is the same however the server finds its rows.
func isExact(v *gate.Verdict, text string, mutated bool) bool {
	for _, w := range gatetest.Words(strings.ToUpper(text)) {
		switch w {
		case "LIMIT", "OFFSET", "EXPLAIN", "RAND", "RANDOM", "UUID", "GEN_RANDOM_UUID", "ROW_NUMBER", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "ROWS",
			"GROUP_CONCAT", "STRING_AGG", "ARRAY_AGG", "JSON_AGG", "JSON_ARRAYAGG", "JSON_GROUP_ARRAY", "ANY_VALUE", "NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "LOCKED", "NOWAIT":
			return false
		case "GROUP", "HAVING", "DISTINCT", "MAX", "MIN", "SUM", "COUNT", "AVG", "OVER", "COALESCE":
			if mutated { // a column beside an aggregate comes from any row of its group
				return false
			}
		}
	}
	return !v.Write || len(v.Tables) <= 2 && !slices.ContainsFunc(v.Tables, func(u gate.Use) bool { return u.Table.Name == "bags" || u.Table.Name != v.Tables[0].Table.Name })
}

// values makes the values of a statement's placeholders. Those that must be the tenant's are, most of the time.
func values(r *rand.Rand, d gate.Dialect, v *gate.Verdict) []any {
	list := make([]any, v.Args)
	for i := range list {
		n := 1 + r.IntN(4)
		list[i] = int64(n)
		if d == gate.Postgres || r.IntN(5) == 0 {
			list[i] = strconv.Itoa(n) // a number to a number's column and a text to a text's
		}
		if slices.Contains(v.TenantArgs, i) {
			list[i] = "a"
			if r.IntN(12) == 0 {
				list[i] = "b"
			}
		}
	}
	return list
}

// bind does what the wire does with a verdict: it gives the text that leaves and its values, and false when a value is not a's where it must be.
func bind(v *gate.Verdict, text string, args []any) (string, []any, bool) {
	if r := v.Rewrite; r != nil {
		list := make([]any, len(r.Args))
		for i, arg := range r.Args {
			list[i] = any("a")
			if arg != gate.TenantArg {
				list[i] = args[arg]
			}
		}
		text, args, v = r.Text, list, r.Verdict
	}
	for _, i := range v.TenantArgs {
		if args[i] != any("a") {
			return "", nil, false
		}
	}
	for _, name := range v.Names {
		if name != "a" {
			return "", nil, false
		}
	}
	return text, args, true
}

package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gormlite "github.com/libtnb/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// The tables of the differential test. They have no times of their own, so that two runs can be equal.
type (
	// Actor is a player's character. Names are unique for a player.
	Actor struct {
		ID        int64     `gorm:"primaryKey;autoIncrement:false"`
		TenantID  tenant.ID `gorm:"column:tenant_id;size:63;not null"`
		PlayerID  string    `gorm:"not null"`
		Name      string
		Gold      int64
		Level     *int64
		DeletedAt gorm.DeletedAt
		Tools     []Tool `gorm:"foreignKey:ActorID"`
	}
	// Tool belongs to an actor.
	Tool struct {
		ID       int64     `gorm:"primaryKey;autoIncrement:false"`
		TenantID tenant.ID `gorm:"column:tenant_id;size:63;not null"`
		PlayerID string    `gorm:"not null"`
		ActorID  int64
		Name     string
		Qty      int64
		Kind     *string
		Actor    *Actor `gorm:"foreignKey:ActorID"`
	}
	// Jotting is in a local table.
	Jotting struct {
		TenantID tenant.ID `gorm:"primaryKey;column:tenant_id;size:63"`
		No       int64     `gorm:"primaryKey;autoIncrement:false"`
		Note     string
		Amount   int64
	}
	// Price is in a global table.
	Price struct {
		ID   int64 `gorm:"primaryKey;autoIncrement:false"`
		Name string
		Cost int64
	}
)

const playerSeven = "7"

// rivals share the tables.
var rivals = []tenant.ID{"a", "b", "a-b", "z9"}

func rivalTables() []dal.Table {
	return []dal.Table{
		dal.Tenant[Actor]("player", "player_id"), dal.Tenant[Tool]("player", "player_id"), dal.Tenant[Guild]("guild", "guild_id"),
		dal.Local[Jotting](), dal.Global[Price](), dal.System[Job](),
	}
}

// rivalDDL makes the tables; alone, a row that names no tenant is id's.
func rivalDDL(my bool, id string) []string {
	owner, num, text, key := "TEXT NOT NULL", "INTEGER", "TEXT", "TEXT"
	if my {
		owner, num, text, key = "VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL", "BIGINT", "VARBINARY(100)", "VARBINARY(100)"
	}
	if id != "" {
		owner += " DEFAULT '" + id + "'"
	}
	return []string{
		"CREATE TABLE actors (tenant_id " + owner + ", id " + num + " NOT NULL, player_id " + key + " NOT NULL, name " + key + ", gold " + num + ", level " + num +
			", deleted_at DATETIME, PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, player_id, name))",
		"CREATE TABLE tools (tenant_id " + owner + ", id " + num + " NOT NULL, player_id " + key + " NOT NULL, actor_id " + num + ", name " + text + ", qty " + num +
			", kind " + text + ", PRIMARY KEY (tenant_id, id))",
		"CREATE TABLE jottings (tenant_id " + owner + ", no " + num + " NOT NULL, note " + text + ", amount " + num + ", PRIMARY KEY (tenant_id, no))",
		"CREATE TABLE guilds (tenant_id " + owner + ", id " + num + " NOT NULL, guild_id " + key + " NOT NULL, name " + text + ", created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))",
		"CREATE TABLE prices (id " + num + " NOT NULL PRIMARY KEY, name " + text + ", cost " + num + ")",
		"CREATE TABLE jobs (id " + num + " NOT NULL PRIMARY KEY)",
	}
}

// fill returns the statements that empty the tables and write the rows of these tenants: all have equal keys and equal names, other numbers.
func fill(seed uint64, ids ...tenant.ID) []string {
	return fillWith(func(tenant.ID) uint64 { return seed }, ids...)
}

// fillWith is fill with a seed of each tenant's own.
func fillWith(seed func(tenant.ID) uint64, ids ...tenant.ID) []string {
	var actors, tools, jottings, prices []string
	null := func(r *rand.Rand, s string) string {
		if r.IntN(4) == 0 {
			return "NULL"
		}
		return s
	}
	for _, id := range ids {
		r := rand.New(rand.NewPCG(seed(id), uint64(slices.Index(rivals, id))))
		for i := 1; i <= 7; i++ {
			deleted := "NULL"
			if r.IntN(5) == 0 {
				deleted = "'2020-01-02 03:04:05'"
			}
			actors = append(actors, fmt.Sprintf("('%s',%d,'7','n%d',%d,%s,%s)", id, i, i, r.IntN(10), null(r, strconv.Itoa(r.IntN(4))), deleted))
		}
		for i := 1; i <= 8; i++ {
			tools = append(tools, fmt.Sprintf("('%s',%d,'7',%d,'t%d',%d,%s)", id, i, 1+r.IntN(9), r.IntN(5), r.IntN(10), null(r, fmt.Sprintf("'k%d'", r.IntN(3)))))
		}
		for i := 1; i <= 4; i++ {
			jottings = append(jottings, fmt.Sprintf("('%s',%d,'m%d',%d)", id, i, r.IntN(4), r.IntN(10)))
		}
	}
	for i := 1; i <= 3; i++ {
		prices = append(prices, fmt.Sprintf("(%d,'t%d',%d)", i, i, 2*i))
	}
	out := []string{"DELETE FROM actors", "DELETE FROM tools", "DELETE FROM jottings", "DELETE FROM guilds", "DELETE FROM prices"}
	return append(out,
		"INSERT INTO actors (tenant_id, id, player_id, name, gold, level, deleted_at) VALUES "+strings.Join(actors, ","),
		"INSERT INTO tools (tenant_id, id, player_id, actor_id, name, qty, kind) VALUES "+strings.Join(tools, ","),
		"INSERT INTO jottings (tenant_id, no, note, amount) VALUES "+strings.Join(jottings, ","),
		"INSERT INTO prices (id, name, cost) VALUES "+strings.Join(prices, ","))
}

// dump reads what tables are compared by, in one statement. A time of deletion differs from run to run.
const dump = "SELECT 'actor' AS c1, tenant_id AS c2, id AS c3, player_id AS c4, name AS c5, gold AS c6, level AS c7, deleted_at IS NULL AS c8 FROM actors WHERE tenant_id %[1]s ? " +
	"UNION ALL SELECT 'tool', tenant_id, id, player_id, name, qty, actor_id, kind FROM tools WHERE tenant_id %[1]s ? " +
	"UNION ALL SELECT 'jotting', tenant_id, no, note, NULL, amount, NULL, NULL FROM jottings WHERE tenant_id %[1]s ? " +
	"UNION ALL SELECT 'guild', tenant_id, id, guild_id, NULL, NULL, NULL, NULL FROM guilds WHERE tenant_id %[1]s ? " +
	"UNION ALL SELECT 'price', '', id, name, NULL, cost, NULL, NULL FROM prices ORDER BY 1, 2, 3"

func dumpOwn(db *sql.DB, id tenant.ID) (string, error)    { return dumpRows(db, "=", id) }
func dumpOthers(db *sql.DB, id tenant.ID) (string, error) { return dumpRows(db, "<>", id) }

func dumpRows(db *sql.DB, compare string, id tenant.ID) (string, error) {
	rows, err := db.Query(fmt.Sprintf(dump, compare), string(id), string(id), string(id), string(id))
	if err != nil {
		return "", err
	}
	all, err := lines(rows)
	return strings.Join(all, "\n"), err
}

// lines reads all rows, one line each, and closes them.
func lines(rows *sql.Rows) ([]string, error) {
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, at := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		at[i] = &values[i]
	}
	var out []string
	var b strings.Builder
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			return out, err
		}
		b.Reset()
		for _, v := range values {
			b.WriteString(plain(v))
			b.WriteByte('|')
		}
		out = append(out, b.String())
	}
	return out, rows.Err()
}

// plain is a value as text. All times are one.
func plain(v any) string {
	switch x := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(x)
	case string:
		return x
	case int64:
		return strconv.FormatInt(x, 10)
	case time.Time, *time.Time:
		return "T"
	case *any:
		return plain(*x)
	}
	return fmt.Sprint(v)
}

// duels numbers the databases in memory.
var duels atomic.Int64

func openDuelSQLite(tb testing.TB, rival int, sum *tally) *duel {
	tb.Helper()
	// SQLite's own file system in memory: several connections see one database, and no lock of a file is taken.
	name := func(of string) string {
		return fmt.Sprintf("file:/differential-%d-%s?vfs=memdb&_pragma=busy_timeout(5000)&_txlock=immediate&_time_format=sqlite", duels.Add(1), of)
	}
	id := rivals[rival]
	open := func(dsn, owner string) *sql.DB {
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			tb.Fatal(err)
		}
		db.SetMaxIdleConns(1) // the database lives as long as one connection does
		tb.Cleanup(func() { _ = db.Close() })
		for _, text := range rivalDDL(false, owner) {
			if _, err := db.Exec(text); err != nil {
				tb.Fatal(err)
			}
		}
		return db
	}
	shared, single := name("shared"), name("alone")
	d := &duel{id: id, shared: open(shared, ""), single: open(single, string(id)), tally: sum}
	d.open(tb, dal.SQLite, func(dal.Place) (driver.Connector, error) { return sqlite.NewConnector(shared) }, gormlite.Dialector{Conn: d.single})
	return d
}

// open opens a store over the shared database, with plain gorm over the other.
func (d *duel) open(tb testing.TB, dialect dal.Dialect, connect func(dal.Place) (driver.Connector, error), plain gorm.Dialector) {
	tb.Helper()
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
		Epoch: 1, Shards: []shardrouter.ShardID{"s1"}, Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	store, err := dal.OpenFixed(dal.Config{Registry: rivalRegistry(tb), Tables: rivalTables()}, dal.Fixed{Topology: top, Dialect: dialect, Connect: connect})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := store.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	d.store = store
	d.bind(tb, plain)
}

// bind makes the two sides: a handle of the store, and plain gorm on the other database.
func (d *duel) bind(tb testing.TB, plain gorm.Dialector) {
	tb.Helper()
	alone, err := gorm.Open(plain, &gorm.Config{Logger: logger.Discard, DisableAutomaticPing: true})
	if err != nil {
		tb.Fatal(err)
	}
	// Alone, gorm is told the owner of each row, as an application without the store would do by itself.
	if err := alone.Callback().Create().Before("gorm:before_create").Register("owner", func(db *gorm.DB) {
		if s := db.Statement.Schema; s != nil && s.LookUpField("tenant_id") != nil {
			db.Statement.SetColumn("tenant_id", d.id, true)
		}
	}); err != nil {
		tb.Fatal(err)
	}
	ctx := tenant.NewContext(context.Background(), d.id)
	dialect := gate.SQLite
	if d.my {
		dialect = gate.MySQL
	}
	if d.gate, err = gate.NewSchema(dialect, dal.TenantColumn,
		gate.Table{Name: "actors", Class: gate.Tenant, ShardKey: "player_id"}, gate.Table{Name: "tools", Class: gate.Tenant, ShardKey: "player_id"},
		gate.Table{Name: "jottings", Class: gate.Tenant}, gate.Table{Name: "prices", Class: gate.Global}, gate.Table{Name: "jobs", Class: gate.System}); err != nil {
		tb.Fatal(err)
	}
	d.beside = side{db: d.store.On(ctx, dal.Key("player", playerSeven)), ctx: ctx, store: d.store, my: d.my}
	d.alone = side{db: alone.WithContext(ctx), ctx: ctx, alone: true, my: d.my}
	d.reset = func(seed uint64) error {
		if err := d.exec(d.shared, fill(seed, rivals...)); err != nil {
			return err
		}
		return d.exec(d.single, fill(seed, d.id))
	}
}

// exec runs texts in a database, beside the store.
func (d *duel) exec(db *sql.DB, texts []string) error {
	_, err := db.Exec("BEGIN;" + strings.Join(texts, ";") + ";COMMIT")
	return err
}

// throughGate sends texts beside gorm: in the store's database as the gate rewrites them, alone as they are.
func (d *duel) throughGate() {
	send := func(db *sql.DB, text string, args []any, write bool) outcome {
		if write {
			return execOn(d.beside.ctx, db, text, args)
		}
		return rowsOf(db.QueryContext(d.beside.ctx, text, args...))
	}
	d.beside.raw = func(text string, args []any, write bool) outcome {
		v := d.gate.Judge(text)
		if v.Refusal != nil {
			return outcome{err: &dal.ShapeError{Shape: v.Refusal.Reason, Hint: v.Refusal.Hint, Table: v.Refusal.Table}}
		}
		if v.Rewrite != nil {
			args = rebind(v.Rewrite, args, string(d.id))
			text, v = v.Rewrite.Text, v.Rewrite.Verdict
		}
		for _, i := range v.TenantArgs {
			if args[i] != string(d.id) {
				return outcome{err: &dal.ShapeError{Shape: "another tenant's value"}}
			}
		}
		return send(d.shared, text, args, write)
	}
	d.alone.raw = func(text string, args []any, write bool) outcome { return send(d.single, text, args, write) }
}

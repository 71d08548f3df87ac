package dal_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// Knight and its relatives have every kind of relation: a house that it belongs to, a seat of its own, pets, badges over a join table, notes that may
// be about anything.
type Knight struct {
	dal.Model
	PlayerID string `gorm:"size:255;not null"`
	Name     string
	Gold     int64
	HouseID  *int64
	House    *House
	Seat     *Seat
	Pets     []Pet
	Badges   []Badge `gorm:"many2many:knight_badges"`
	Notes    []Note  `gorm:"polymorphic:Subject"`
}

type House struct {
	dal.Model
	PlayerID string `gorm:"size:255;not null"`
	Name     string
}

type Seat struct {
	dal.Model
	PlayerID string `gorm:"size:255;not null"`
	KnightID *int64
	Name     string
}

type Pet struct {
	dal.Model
	PlayerID string `gorm:"size:255;not null"`
	KnightID *int64
	Knight   *Knight
	Name     string
	Qty      int64
}

type Badge struct {
	dal.Model
	PlayerID string `gorm:"size:255;not null"`
	Name     string
}

type KnightBadge struct {
	TenantID tenant.ID `gorm:"primaryKey;column:tenant_id;size:63"`
	KnightID int64     `gorm:"primaryKey;autoIncrement:false"`
	BadgeID  int64     `gorm:"primaryKey;autoIncrement:false"`
	PlayerID string    `gorm:"size:255;not null"`
}

type Note struct {
	dal.Model
	PlayerID    string `gorm:"size:255;not null"`
	SubjectID   int64
	SubjectType string
	Text        string
}

// Scroll is deleted softly, and has a serialized and an embedded part.
type Scroll struct {
	dal.Model
	PlayerID  string `gorm:"size:255;not null"`
	KnightID  *int64
	Knight    *Knight
	Title     string
	Tags      []string `gorm:"serializer:json"`
	Spot      Spot     `gorm:"embedded;embeddedPrefix:spot_"`
	DeletedAt gorm.DeletedAt
}

// Spot is a place on a shelf.
type Spot struct{ Row, Col int64 }

// Rally lives in another keyspace.
type Rally struct {
	dal.Model
	GuildID string `gorm:"size:255;not null"`
	Name    string
}

// Echo is a local row, Edict one of all tenants, Errand one of nobody.
type Echo struct {
	TenantID tenant.ID `gorm:"primaryKey;column:tenant_id;size:63"`
	No       int64     `gorm:"primaryKey;autoIncrement:false"`
	Name     string
}

type Edict struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Name string
}

type Errand struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Name string
}

// knightTables lists their tables, and what each has beside tenant_id, id, player_id and the times.
var knightTables = []struct{ name, columns, key string }{
	{"knights", "name VARCHAR(100), gold BIGINT, house_id BIGINT,", "PRIMARY KEY (tenant_id, id)"},
	{"houses", "name VARCHAR(100),", "PRIMARY KEY (tenant_id, id)"},
	{"seats", "knight_id BIGINT, name VARCHAR(100),", "PRIMARY KEY (tenant_id, id)"},
	{"pets", "knight_id BIGINT, name VARCHAR(100), qty BIGINT,", "PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, player_id, name)"},
	{"badges", "name VARCHAR(100),", "PRIMARY KEY (tenant_id, id)"},
	{"notes", "subject_id BIGINT, subject_type VARCHAR(100), text VARCHAR(100),", "PRIMARY KEY (tenant_id, id)"},
	{"scrolls", "knight_id BIGINT, title VARCHAR(100), tags VARCHAR(100), spot_row BIGINT, spot_col BIGINT, deleted_at MOMENT NULL,", "PRIMARY KEY (tenant_id, id)"},
	{"rallies", "", ""},
	{"echos", "", ""},
	{"edicts", "", ""},
	{"errands", "", ""},
	{"knight_badges", "", ""},
}

func knightDDL(kind, name, columns, key string) string {
	owner, player, moment := "TEXT", "TEXT", "DATETIME"
	switch kind {
	case "postgres":
		owner, player, moment = `VARCHAR(63) COLLATE "C"`, `VARCHAR(255) COLLATE "C"`, "TIMESTAMPTZ(6)"
	case "mariadb":
		owner, player, moment = "VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin", "VARBINARY(255)", "DATETIME(6)"
		columns = strings.ReplaceAll(columns, "name VARCHAR(100)", "name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin")
	}
	switch name {
	case "knight_badges":
		return fmt.Sprintf("CREATE TABLE IF NOT EXISTS knight_badges (tenant_id %s NOT NULL, knight_id BIGINT NOT NULL, badge_id BIGINT NOT NULL, player_id %s NOT NULL, PRIMARY KEY (tenant_id, player_id, knight_id, badge_id))", owner, player)
	case "rallies":
		return fmt.Sprintf("CREATE TABLE IF NOT EXISTS rallies (tenant_id %s NOT NULL, id BIGINT NOT NULL, guild_id %s NOT NULL, name VARCHAR(100), created_at %s NULL, updated_at %s NULL, PRIMARY KEY (tenant_id, id))", owner, player, moment, moment)
	case "echos":
		return fmt.Sprintf("CREATE TABLE IF NOT EXISTS echos (tenant_id %s NOT NULL, no BIGINT NOT NULL, name VARCHAR(100), PRIMARY KEY (tenant_id, no))", owner)
	case "edicts", "errands":
		return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100))", name)
	}
	columns = strings.ReplaceAll(columns, "MOMENT", moment)
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (tenant_id %s NOT NULL, id BIGINT NOT NULL, player_id %s NOT NULL, %s created_at %s NULL, updated_at %s NULL, %s)", name, owner, player, columns, moment, moment, key)
}

// order is a store with the knights on one shard, so that the tenants a and b, with equal keys, share every table.
type order struct {
	*dal.Store
	kind string
	rec  *recorder
	a, b context.Context
	raw  *sql.DB // beside the store
}

// kinds are the databases of the tests.
var kinds = []string{"sqlite", "mariadb", "postgres"}

func newOrder(tb testing.TB, kind string) *order {
	tb.Helper()
	o := &order{kind: kind, rec: &recorder{}}
	files := fstest.MapFS{}
	for i, t := range knightTables {
		for _, k := range kinds {
			dir := map[string]string{"sqlite": "sqlite", "mariadb": "mysql", "postgres": "postgres"}[k]
			files[fmt.Sprintf("%s/%04d_%s.sql", dir, i+1, t.name)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + knightDDL(k, t.name, t.columns, t.key) + ";\n-- +goose Down\nDROP TABLE IF EXISTS " + t.name + ";\n")}
		}
	}
	var cluster dal.Cluster
	switch kind {
	case "sqlite":
		dir := tb.TempDir()
		cluster = dal.SQLiteCluster(dir, 1)
		raw, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "s1.db")+"?_pragma=busy_timeout(5000)")
		if err != nil {
			tb.Fatal(err)
		}
		o.raw = raw
	case "mariadb":
		cfg := testutil.NewDatabase(tb, testutil.SharedMariaDB(tb, 1)[0])
		cluster = dal.MySQLCluster(dal.Endpoint{Network: cfg.Net, Address: cfg.Addr, User: cfg.User, Password: cfg.Passwd, Database: cfg.DBName})
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			tb.Fatal(err)
		}
		o.raw = sql.OpenDB(connector)
	case "postgres":
		end := testutil.NewPostgresDatabase(tb, testutil.SharedPostgres(tb, 1)[0])
		cluster = dal.PostgresCluster(end)
		cluster.LoginSecret = "a secret of the tests"
		cfg, err := pgx.ParseConfig("sslmode=disable port=5432 host=" + filepath.Dir(end.Address))
		if err != nil {
			tb.Fatal(err)
		}
		cfg.User, cfg.Password, cfg.Database = end.User, end.Password, end.Database
		o.raw = stdlib.OpenDB(*cfg)
	}
	tb.Cleanup(func() { _ = o.raw.Close() })
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable}, tenant.Tenant{ID: "b", Model: tenant.SharedTable})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := dal.Config{Cluster: cluster, Registry: reg, Tables: []dal.Table{
		dal.Tenant[Knight]("player", "player_id"), dal.Tenant[House]("player", "player_id"), dal.Tenant[Seat]("player", "player_id"),
		dal.Tenant[Pet]("player", "player_id"), dal.Tenant[Badge]("player", "player_id"), dal.Tenant[KnightBadge]("player", "player_id"), dal.Tenant[Note]("player", "player_id"),
		dal.Tenant[Scroll]("player", "player_id"), dal.Tenant[Rally]("guild", "guild_id"), dal.Local[Echo](), dal.Global[Edict](), dal.System[Errand](),
	}}
	if _, err := schema.Up(tb.Context(), cfg, schema.Set{Name: "order", FS: files}); err != nil {
		tb.Fatal(err)
	}
	if o.Store, err = dal.Open(tb.Context(), dal.WithObserver(cfg, o.rec)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := o.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	o.a, o.b = tenant.NewContext(tb.Context(), "a"), tenant.NewContext(tb.Context(), "b")
	if err := o.as(o.a).Find(&[]House{}).Error; err != nil { // the place is opened and checked
		tb.Fatal(err)
	}
	o.rec.take()
	return o
}

// as returns a handle of ctx's tenant for player 7.
func (o *order) as(ctx context.Context) *gorm.DB { return o.On(ctx, dal.Key("player", "7")) }

// seed gives both tenants knights, houses, seats, pets, badges and notes with the ids 1 to 3; pet i, seat i and note i are knight i's.
func (o *order) seed(tb testing.TB) {
	tb.Helper()
	for _, ctx := range []context.Context{o.a, o.b} {
		id, _ := tenant.FromContext(ctx)
		for i := int64(1); i <= 3; i++ {
			m := dal.Model{ID: i}
			name := fmt.Sprintf("%s%d", id, i)
			for _, row := range []any{
				&House{Model: m, PlayerID: "7", Name: name}, &Knight{Model: m, PlayerID: "7", Name: name, Gold: i},
				&Seat{Model: m, PlayerID: "7", KnightID: &i, Name: name}, &Pet{Model: m, PlayerID: "7", KnightID: &i, Name: name, Qty: i},
				&Badge{Model: m, PlayerID: "7", Name: name}, &Note{Model: m, PlayerID: "7", SubjectID: i, SubjectType: "knights", Text: name},
				&KnightBadge{KnightID: i, BadgeID: i, PlayerID: "7"},
			} {
				if err := o.as(ctx).Create(row).Error; err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	o.rec.take()
}

// exec sends statements beside the store.
func (o *order) exec(tb testing.TB, statements ...string) {
	tb.Helper()
	for _, s := range statements {
		if _, err := o.raw.Exec(s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}

// loosen makes the pets' keys what the start-up check would refuse: a primary key and a unique name without tenant_id.
func (o *order) loosen(tb testing.TB) {
	tb.Helper()
	if o.kind == "postgres" { // a table of its own would need its grants and policies
		o.exec(tb, "ALTER TABLE pets DROP CONSTRAINT pets_pkey, DROP CONSTRAINT pets_tenant_id_player_id_name_key, ADD PRIMARY KEY (id), ADD UNIQUE (name)")
		return
	}
	o.exec(tb, "DROP TABLE pets", knightDDL(o.kind, "pets", knightTables[3].columns, "PRIMARY KEY (id), UNIQUE (name)"))
}

// dump returns every row of a tenant's, as text.
func (o *order) dump(tb testing.TB, id tenant.ID) string {
	tb.Helper()
	var b strings.Builder
	for _, table := range []string{"knights", "houses", "seats", "pets", "badges", "notes", "knight_badges", "scrolls", "rallies", "echos"} {
		rows, err := o.raw.Query("SELECT * FROM " + table + " WHERE tenant_id = '" + string(id) + "' ORDER BY 1, 2, 3")
		if err != nil {
			tb.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			tb.Fatal(err)
		}
		for rows.Next() {
			cells := make([]any, len(columns))
			for i := range cells {
				cells[i] = &sql.NullString{}
			}
			if err := rows.Scan(cells...); err != nil {
				tb.Fatal(err)
			}
			fmt.Fprint(&b, table)
			for i, c := range cells {
				fmt.Fprintf(&b, " %s=%s", columns[i], c.(*sql.NullString).String)
			}
			b.WriteByte('\n')
		}
		if err := rows.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return b.String()
}

// value returns one value, as text; "" for NULL.
func (o *order) value(tb testing.TB, query string, args ...any) string {
	tb.Helper()
	if o.kind == "postgres" {
		query = strings.Replace(query, "?", "$1", 1)
	}
	var v sql.NullString
	if err := o.raw.QueryRow(query, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return v.String
}

// unchanged runs fn and checks that tenant b's rows are what they were.
func (o *order) unchanged(tb testing.TB, fn func()) {
	tb.Helper()
	before := o.dump(tb, "b")
	fn()
	if after := o.dump(tb, "b"); after != before {
		tb.Errorf("tenant b's rows changed from\n%s\nto\n%s", before, after)
	}
}

var numbered = regexp.MustCompile(`\$[0-9]+`)

// texts returns the statements since the last call, with quotes and placeholders as the other databases have them.
func (o *order) texts() []string {
	texts := o.rec.take()
	if o.kind == "postgres" {
		for i := range texts {
			texts[i] = numbered.ReplaceAllString(strings.ReplaceAll(texts[i], `"`, "`"), "?")
		}
	}
	return texts
}

// pick returns MariaDB's form or the other databases'.
func (o *order) pick(mariadb, others string) string {
	if o.kind == "mariadb" {
		return mariadb
	}
	return others
}

// locked is how a read ends that locks its rows.
func (o *order) locked() string {
	if o.kind == "sqlite" { // the transaction is the lock
		return ""
	}
	return " FOR UPDATE"
}

// sent checks that the statements since the last call are these: each is a text with * for what does not matter.
func (o *order) sent(tb testing.TB, want ...string) {
	tb.Helper()
	texts := o.texts()
	ok := len(texts) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = like(texts[i], want[i])
	}
	if !ok {
		tb.Errorf("sent\n\t%s\nwant\n\t%s", strings.Join(texts, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// like reports whether the parts of want between * stand in text in their order, from its beginning to its end.
func like(text, want string) bool {
	parts := strings.Split(want, "*")
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	for _, p := range parts {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(want, "*") || strings.TrimSpace(text) == ""
}

// onEach runs a test on every kind of database.
func onEach(t *testing.T, test func(t *testing.T, o *order)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newOrder(t, kind))
		})
	}
}

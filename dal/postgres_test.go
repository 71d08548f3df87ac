package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// castle is one shard on PostgreSQL with the heroes of two tenants, and ways beside the store.
type castle struct {
	*testing.T
	cfg  dal.Config
	sets []schema.Set
	end  dal.Endpoint // of the shared place, with its two logins
	a, b context.Context
}

// newCastle makes the place; extra is DDL for the table.
func newCastle(t *testing.T, extra string) *castle {
	t.Helper()
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "shared-a", Model: tenant.SharedTable}, tenant.Tenant{ID: "shared-b", Model: tenant.SharedTable})
	if err != nil {
		t.Fatal(err)
	}
	cluster := dal.PostgresCluster(testutil.NewPostgresDatabase(t, testutil.SharedPostgres(t, 1)[0]))
	cluster.LoginSecret = "a secret of the tests"
	c := &castle{
		T: t, cfg: dal.Config{Cluster: cluster, Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}},
		sets: []schema.Set{heroes("", extra)},
		a:    tenant.NewContext(t.Context(), "shared-a"), b: tenant.NewContext(t.Context(), "shared-b"),
	}
	c.up()
	if c.end, err = cluster.Endpoint(dal.Place{Shard: "s1"}, ""); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *castle) up() {
	c.Helper()
	if _, err := schema.Up(c.Context(), c.cfg, c.sets...); err != nil {
		c.Fatal(err)
	}
}

func (c *castle) open(opts ...func(*dal.Config)) *dal.Store {
	c.Helper()
	cfg := c.cfg
	for _, o := range opts {
		o(&cfg)
	}
	store, err := dal.Open(c.Context(), cfg)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			c.Error(err)
		}
	})
	return store
}

// refused opens the store, which must not open, and returns why.
func (c *castle) refused() error {
	c.Helper()
	store, err := dal.Open(c.Context(), c.cfg)
	if err == nil {
		_ = store.Close(context.Background())
	}
	return err
}

// fill gives both tenants n heroes with the same ids.
func (c *castle) fill(store *dal.Store, n int64) {
	c.Helper()
	for _, ctx := range []context.Context{c.a, c.b} {
		id, err := tenant.FromContext(ctx)
		if err != nil {
			c.Fatal(err)
		}
		for i := int64(1); i <= n; i++ {
			if err := store.On(ctx, dal.Key("player", "p1")).Create(&Hero{Model: dal.Model{ID: i}, PlayerID: "p1", Name: string(id), Gold: i}).Error; err != nil {
				c.Fatal(err)
			}
		}
	}
}

// pool opens a pool of one connection as one of the place's two logins, under which any text leaves.
func (c *castle) pool(system bool) *wire.Pool {
	c.Helper()
	p := wire.Postgres{Network: c.end.Network, Address: c.end.Address, User: c.end.User, Password: c.end.Password, Database: c.end.Database, Floor: !system}
	if system {
		p.User, p.Password = c.end.SystemUser, c.end.SystemPassword
	}
	pool, err := wire.OpenPostgres(p, wire.Options{Shard: "s1"})
	if err != nil {
		c.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	c.Cleanup(func() { _ = pool.Close() })
	return pool
}

// raw marks any text as one of a tenant's, or of nobody's.
func raw(ctx context.Context, id tenant.ID) context.Context {
	return wire.With(ctx, &wire.Mark{Kind: wire.Migration, Tenant: id})
}

// admin runs statements as the server's superuser in the place's database.
func (c *castle) admin(texts ...string) {
	c.Helper()
	op := c.cfg.Cluster.Shards[0]
	cfg, err := pgx.ParseConfig("sslmode=disable port=5432 host=" + filepath.Dir(op.Address))
	if err != nil {
		c.Fatal(err)
	}
	cfg.User, cfg.Password, cfg.Database = op.User, op.Password, op.Database
	conn, err := pgx.ConnectConfig(context.Background(), cfg)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, text := range texts {
		if _, err := conn.Exec(context.Background(), strings.NewReplacer("{base}", c.end.Database, "{app}", c.end.User, "{system}", c.end.SystemUser).Replace(text)); err != nil {
			c.Fatalf("%s: %v", text, err)
		}
	}
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// whose returns whose heroes a query sees, sorted.
func whose(ctx context.Context, q querier, text string, args ...any) (out []string, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return slices.Compact(out), errors.Join(rows.Err(), rows.Close())
}

func TestPostgres_FloorHoldsWithoutAPredicate(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	c.fill(c.open(), 3)
	c.admin("CREATE TABLE undeclared (tenant_id VARCHAR(63), x INT)", "INSERT INTO undeclared VALUES ('shared-a', 1)")
	app, system := c.pool(false), c.pool(true)
	ctx := t.Context()

	for _, at := range []struct {
		what string
		pool *wire.Pool
		id   tenant.ID
		want []string
	}{
		{"tenant a", app, "shared-a", []string{"shared-a"}},
		{"tenant b", app, "shared-b", []string{"shared-b"}},
		{"no tenant", app, "", nil},
		{"a tenant without rows", app, "nobody", nil},
		{"the system role", system, "", []string{"shared-a", "shared-b"}},
	} {
		for _, text := range []string{
			"SELECT name FROM heros", "SELECT name FROM heros WHERE tenant_id = 'shared-a' OR 1 = 1", "WITH x AS (SELECT * FROM heros) SELECT name FROM x",
			"SELECT h.name FROM (VALUES (1)) v(i) LEFT JOIN heros h ON true WHERE h.name IS NOT NULL", "SELECT name FROM heros FOR UPDATE",
		} {
			if got, err := whose(raw(ctx, at.id), at.pool, text); err != nil || !slices.Equal(got, at.want) {
				t.Errorf("%s, %s: %v, %v; want %v", at.what, text, got, err, at.want)
			}
		}
	}

	// Writes without a predicate change the tenant's rows alone, and nothing changes hands.
	as := raw(ctx, "shared-a")
	if res, err := app.ExecContext(as, "UPDATE heros SET gold = 100"); err != nil {
		t.Error(err)
	} else if n, _ := res.RowsAffected(); n != 3 {
		t.Errorf("an UPDATE without a predicate changed %d rows, want 3", n)
	}
	for _, text := range []string{
		"INSERT INTO heros (tenant_id, id, player_id) VALUES ('shared-b', 77, 'p1')", "UPDATE heros SET tenant_id = 'shared-b' WHERE id = 1",
		"INSERT INTO heros (tenant_id, id, player_id) VALUES ('shared-b', 1, 'p1') ON CONFLICT (tenant_id, id) DO UPDATE SET gold = 7",
		"INSERT INTO heros (tenant_id, id, player_id) VALUES ('', 1, 'p1')",
		"TRUNCATE heros", "SELECT x FROM undeclared", "DELETE FROM undeclared", "ALTER TABLE heros DISABLE ROW LEVEL SECURITY", "DROP POLICY tdal_tenant ON heros",
		"CREATE TABLE mine (x INT)", "CREATE TEMPORARY TABLE heros (x INT)", "SET ROLE " + c.end.SystemUser, "UPDATE tdal_place SET shard = 's9'", "SELECT * FROM tdal_checksums",
	} {
		if _, err := app.ExecContext(as, text); wire.SQLState(err) != "42501" {
			t.Errorf("%s: %v, want it denied", text, err)
		}
		if strings.Contains(text, "'shared-b'") || strings.Contains(text, "''") || strings.Contains(text, "SET ROLE") {
			continue // rows of every tenant are the system role's business
		}
		if _, err := system.ExecContext(raw(ctx, ""), text); wire.SQLState(err) != "42501" {
			t.Errorf("the system role, %s: %v, want it denied", text, err)
		}
	}
	if _, err := app.ExecContext(raw(ctx, ""), "INSERT INTO heros (tenant_id, id, player_id) VALUES ('', 1, 'p1')"); wire.SQLState(err) != "42501" {
		t.Errorf("no tenant, and an empty one in the row: %v", err)
	}
	if res, err := app.ExecContext(as, "DELETE FROM heros"); err != nil {
		t.Error(err)
	} else if n, _ := res.RowsAffected(); n != 3 {
		t.Errorf("a DELETE without a predicate took %d rows, want 3", n)
	}
	if got, err := whose(raw(ctx, ""), system, "SELECT tenant_id || ' ' || gold FROM heros"); err != nil || !slices.Equal(got, []string{"shared-b 1", "shared-b 2", "shared-b 3"}) {
		t.Errorf("the other tenant's rows: %v, %v", got, err)
	}
}

func TestPostgres_T25_T26_T27_OneConnectionTwoTenants(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	c.fill(c.open(), 2)
	pool := c.pool(false)
	ctx := t.Context()
	const text = "SELECT name FROM heros WHERE gold > $1"
	prepared, err := pool.PrepareContext(raw(ctx, "shared-a"), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prepared.Close() }()
	seen := func(ctx context.Context) (map[string][]string, error) {
		out := map[string][]string{}
		var err error
		if out["plain"], err = whose(ctx, pool, text, 0); err != nil {
			return nil, err
		}
		rows, err := prepared.QueryContext(ctx, 0)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				return nil, err
			}
			out["prepared"] = append(out["prepared"], s)
		}
		out["prepared"] = slices.Compact(out["prepared"])
		return out, errors.Join(rows.Err(), rows.Close())
	}
	for round := range 10 { // more than five times, when the server may turn to a plan for all values
		for _, id := range []tenant.ID{"shared-a", "shared-b", ""} {
			got, err := seen(raw(ctx, id))
			if err != nil {
				t.Fatal(err)
			}
			for way, seen := range got {
				if id == "" && len(seen) != 0 || id != "" && !slices.Equal(seen, []string{string(id)}) {
					t.Errorf("round %d, tenant %q, %s: sees %v", round, id, way, seen)
				}
			}
			// What is left on the connection between two statements is nobody's.
			var left string
			if err := pool.QueryRowContext(raw(ctx, ""), "SELECT COALESCE(current_setting('tenantdal.tenant', true), '')").Scan(&left); err != nil || left != "" {
				t.Errorf("round %d: after tenant %q the connection says %q, %v", round, id, left, err)
			}
		}
	}
	// A transaction that ends badly leaves nothing either.
	for _, end := range []string{"rollback", "error", "cancel"} {
		short, cancel := context.WithCancel(raw(ctx, "shared-a"))
		tx, err := pool.BeginTx(short, nil)
		if err != nil {
			t.Fatal(err)
		}
		if end == "error" {
			if _, err := tx.ExecContext(raw(short, "shared-a"), "SELECT 1/0"); wire.SQLState(err) != "22012" {
				t.Errorf("%v", err)
			}
		}
		if end == "cancel" {
			cancel()
		}
		_ = tx.Rollback()
		cancel()
		if got, err := whose(raw(ctx, ""), pool, "SELECT name FROM heros"); err != nil || got != nil {
			t.Errorf("after %s the next borrower sees %v, %v", end, got, err)
		}
	}
	if st := pool.Stats(); st.Connects > 2 { // the one, and one after the cancelled transaction
		t.Errorf("%d connections were made", st.Connects)
	}
}

func TestPostgres_T25_StoreOfOneConnection(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	rec := &recorder{}
	store := c.open(func(cfg *dal.Config) {
		cfg.MaxOpen = 1
		*cfg = dal.WithObserver(*cfg, rec)
	})
	c.fill(store, 3)
	key := dal.Key("player", "p1")
	for range 3 {
		for ctx, want := range map[context.Context]string{c.a: "shared-a", c.b: "shared-b"} {
			var all []Hero
			if err := store.On(ctx, key).Find(&all).Error; err != nil || len(all) != 3 || all[0].Name != want || all[2].Name != want {
				t.Fatalf("%s: %+v, %v", want, all, err)
			}
			err := store.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
				if err := tx.First(&all[0], 1).Error; err != nil || all[0].Name != want {
					return fmt.Errorf("%s: %+v, %w", want, all[0], err)
				}
				return tx.Model(&Hero{}).Where("id = ?", 2).Update("gold", gorm.Expr("gold + 1")).Error
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, text := range rec.take() {
		if up := strings.ToUpper(text); strings.HasPrefix(up, "SET ") || strings.Contains(up, "SEARCH_PATH") || strings.HasPrefix(up, "RESET") || strings.Contains(up, "SET_CONFIG") {
			t.Errorf("session state for tenancy: %s", text)
		}
	}
}

var dollar = regexp.MustCompile(`\$\d+`)

func TestPostgres_T16_PlaceholdersInOrder(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	var texts []string
	var args [][]any
	store := c.open(func(cfg *dal.Config) {
		*cfg = dal.WithObserver(*cfg, watch(func(e wire.Event) {
			if !strings.Contains(e.Text, "heros") || e.Kind != wire.Scoped {
				return
			}
			var values []any
			for _, a := range e.Args {
				values = append(values, a.Value)
			}
			texts, args = append(texts, e.Text), append(args, values)
		}))
	})
	c.fill(store, 2)
	h := store.On(c.a, dal.Key("player", "p1"))
	var all []Hero
	for name, err := range map[string]error{
		"find":   h.Where("gold > ? OR name = ?", 0, "x").Where("player_id IN ?", []string{"p1", "p2"}).Order("id").Limit(5).Offset(0).Find(&all).Error,
		"struct": h.Where(&Hero{Name: "shared-a"}).Not("gold = ?", 77).First(&Hero{}).Error,
		"update": h.Model(&Hero{}).Where("id = ?", 1).Updates(map[string]any{"gold": 9, "name": "n"}).Error,
		"delete": h.Where("gold = ? AND name = ?", 1, "nobody").Delete(&Hero{}).Error,
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(texts) < 8 {
		t.Fatalf("%d statements were seen", len(texts))
	}
	for i, text := range texts {
		holes := dollar.FindAllString(text, -1)
		if len(holes) != len(args[i]) {
			t.Errorf("%d placeholders for %d values: %s", len(holes), len(args[i]), text)
		}
		for n, hole := range holes {
			if hole != "$"+strconv.Itoa(n+1) {
				t.Errorf("placeholder %d is %s: %s", n+1, hole, text)
			}
		}
		// The placeholder beside tenant_id takes the tenant.
		if m := regexp.MustCompile(`"tenant_id" = \$(\d+)`).FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
			if got := args[i][n-1]; got != "shared-a" {
				t.Errorf("tenant_id is compared with %v: %s", got, text)
			}
		} else if !strings.HasPrefix(text, "INSERT") {
			t.Errorf("it lacks the tenant: %s", text)
		}
	}
}

// watch is an observer of what leaves.
type watch func(wire.Event)

func (w watch) Before(_ context.Context, e wire.Event) error {
	w(e)
	return nil
}

func (watch) After(context.Context, wire.Event, error) {}

func TestPostgres_T46_HostileIDsReachNoSQL(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	rec := &recorder{}
	store := c.open(func(cfg *dal.Config) { *cfg = dal.WithObserver(*cfg, rec) })
	c.fill(store, 1)
	rec.take()
	pool := c.pool(false)
	before := pool.Stats()
	for _, id := range []tenant.ID{`x"; DROP SCHEMA public; --`, "shared-a' OR '1'='1", "", "Shared-A", "shared-a ", "shared-a\x00", "../x", "shared-a,shared-b"} {
		if err := store.On(tenant.NewContext(t.Context(), id), dal.Key("player", "p1")).Find(&[]Hero{}).Error; err == nil {
			t.Errorf("id %q was let in", id)
		}
		if _, err := tenant.Place(tenant.Tenant{ID: id, Model: tenant.OwnSchema, Status: tenant.Active}); err == nil {
			t.Errorf("id %q got a schema", id)
		}
		if id == "" {
			continue // no tenant: no floor, and no rows
		}
		var invalid *tenant.InvalidIDError
		if _, err := pool.ExecContext(raw(t.Context(), id), "SELECT 1"); !errors.As(err, &invalid) {
			t.Errorf("the floor was set to %q: %v", id, err)
		}
		if _, err := pool.BeginTx(raw(t.Context(), id), nil); !errors.As(err, &invalid) {
			t.Errorf("a transaction began for %q: %v", id, err)
		}
	}
	if got := rec.take(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
	if d := pool.Stats().Sub(before); d.Floors != 0 {
		t.Errorf("the floor was set %d times", d.Floors)
	}
}

// refusals are the ways in which a place on PostgreSQL must not be: what makes it so, what ends that where schema.Up does not, and what the error says.
// An empty want means that it is fine.
var refusals = []struct {
	name string
	do   []string
	undo []string
	role bool // about a role; otherwise about the table
	mend bool // schema.Up puts it right again
	want string
}{
	{name: "superuser", do: []string{`ALTER ROLE "{app}" SUPERUSER`}, undo: []string{`ALTER ROLE "{app}" NOSUPERUSER`}, role: true, want: "superuser"},
	{name: "superuser for systems", do: []string{`ALTER ROLE "{system}" SUPERUSER`}, undo: []string{`ALTER ROLE "{system}" NOSUPERUSER`}, role: true, want: "superuser"},
	{name: "bypass", do: []string{`ALTER ROLE "{app}" BYPASSRLS`}, undo: []string{`ALTER ROLE "{app}" NOBYPASSRLS`}, role: true, want: "BYPASSRLS"},
	{name: "bypass for systems", do: []string{`ALTER ROLE "{system}" BYPASSRLS`}, undo: []string{`ALTER ROLE "{system}" NOBYPASSRLS`}, role: true, want: "BYPASSRLS"},
	{name: "creates roles", do: []string{`ALTER ROLE "{app}" CREATEROLE`}, undo: []string{`ALTER ROLE "{app}" NOCREATEROLE`}, role: true, want: "CREATEROLE"},
	{name: "member of the superuser", do: []string{`GRANT postgres TO "{app}"`}, undo: []string{`REVOKE postgres FROM "{app}"`}, role: true, want: "as a member of postgres"},
	{name: "member of the system role", do: []string{`GRANT "{system}" TO "{app}"`}, undo: []string{`REVOKE "{system}" FROM "{app}"`}, role: true, want: "to which every tenant's rows are open"},
	{name: "owner", do: []string{`ALTER TABLE heros OWNER TO "{app}"`}, undo: []string{"ALTER TABLE heros OWNER TO postgres"}, role: true, want: "owns"},
	{name: "owner of the database", do: []string{`ALTER DATABASE "{base}" OWNER TO "{app}"`}, undo: []string{`ALTER DATABASE "{base}" OWNER TO postgres`}, role: true, mend: true, want: "owns"},
	{name: "creates tables", do: []string{"GRANT CREATE ON SCHEMA public TO PUBLIC"}, role: true, mend: true, want: "create tables"},
	{name: "a tenant by default", do: []string{`ALTER DATABASE "{base}" SET tenantdal.tenant = 'shared-a'`}, undo: []string{`ALTER DATABASE "{base}" RESET tenantdal.tenant`}, role: true, want: "sets tenantdal.tenant"},
	{name: "a tenant by role", do: []string{`ALTER ROLE "{app}" SET tenantdal.tenant = 'shared-a'`}, undo: []string{`ALTER ROLE "{app}" RESET ALL`}, role: true, want: "sets tenantdal.tenant"},
	{name: "no force", do: []string{"ALTER TABLE heros NO FORCE ROW LEVEL SECURITY"}, mend: true, want: "not forced"},
	{name: "disabled", do: []string{"ALTER TABLE heros DISABLE ROW LEVEL SECURITY"}, mend: true, want: "not enabled"},
	{name: "policy gone", do: []string{"DROP POLICY tdal_tenant ON heros"}, mend: true, want: `lacks the policy "tdal_tenant"`},
	{name: "system policy gone", do: []string{"DROP POLICY tdal_system ON heros"}, mend: true, want: `lacks the policy "tdal_system"`},
	{name: "wide policy", do: []string{"ALTER POLICY tdal_tenant ON heros USING (true)"}, mend: true, want: "not what schema.Up makes"},
	{name: "wide check", do: []string{"ALTER POLICY tdal_tenant ON heros WITH CHECK (true)"}, mend: true, want: "not what schema.Up makes"},
	{name: "policy for everybody", do: []string{"ALTER POLICY tdal_system ON heros TO PUBLIC"}, mend: true, want: "not what schema.Up makes"},
	{name: "policy of the other", do: []string{`ALTER POLICY tdal_system ON heros TO "{app}"`}, mend: true, want: "not what schema.Up makes"},
	{name: "policy for both", do: []string{`ALTER POLICY tdal_system ON heros TO "{app}", "{system}"`}, mend: true, want: "not what schema.Up makes"},
	{name: "one more policy", do: []string{"CREATE POLICY mine ON heros USING (true)"}, undo: []string{"DROP POLICY mine ON heros"}, want: `policy "mine"`},
	{name: "truncate", do: []string{`GRANT TRUNCATE ON heros TO "{app}"`}, mend: true, want: "truncate"},
	{name: "truncate for everybody", do: []string{"GRANT TRUNCATE ON heros TO PUBLIC"}, mend: true, want: "truncate"},
	{name: "rule", do: []string{"CREATE RULE r AS ON DELETE TO heros DO ALSO NOTHING"}, undo: []string{"DROP RULE r ON heros"}, want: "rules"},
	{name: "view", do: []string{"CREATE VIEW v AS SELECT * FROM heros"}, undo: []string{"DROP VIEW v"}, want: `view "v"`},
	{name: "view that invokes", do: []string{"CREATE VIEW v WITH (security_invoker = on) AS SELECT * FROM heros"}, undo: []string{"DROP VIEW v"}},
	{
		name: "view over a view", do: []string{"CREATE VIEW mid WITH (security_invoker) AS SELECT * FROM heros", "CREATE VIEW v AS SELECT name FROM mid"},
		undo: []string{"DROP VIEW v", "DROP VIEW mid"}, want: `view "v"`,
	},
	{name: "materialized view", do: []string{"CREATE MATERIALIZED VIEW v AS SELECT * FROM heros"}, undo: []string{"DROP MATERIALIZED VIEW v"}, want: "materialized view"},
	{
		name: "view in its place", do: []string{"ALTER TABLE heros RENAME TO heros2", "CREATE VIEW heros WITH (security_invoker) AS SELECT * FROM heros2"},
		undo: []string{"DROP VIEW heros", "ALTER TABLE heros2 RENAME TO heros"}, want: "it is no table",
	},
	{
		name: "identity", do: []string{"ALTER TABLE heros ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY"},
		undo: []string{"ALTER TABLE heros ALTER COLUMN id DROP IDENTITY"}, want: "identity or a serial",
	},
	{
		name: "serial", do: []string{"CREATE SEQUENCE s", "ALTER TABLE heros ALTER COLUMN id SET DEFAULT nextval('s')"},
		undo: []string{"ALTER TABLE heros ALTER COLUMN id DROP DEFAULT", "DROP SEQUENCE s"}, want: "identity or a serial",
	},
	{
		name: "nullable", do: []string{"ALTER TABLE heros DROP CONSTRAINT heros_pkey", "ALTER TABLE heros ALTER COLUMN tenant_id DROP NOT NULL"},
		undo: []string{"ALTER TABLE heros ALTER COLUMN tenant_id SET NOT NULL", "ALTER TABLE heros ADD PRIMARY KEY (tenant_id, id)"}, want: "may be NULL",
	},
	{
		name: "column that folds case", do: []string{"DROP POLICY tdal_tenant ON heros", "ALTER TABLE heros ALTER COLUMN tenant_id TYPE VARCHAR(63) COLLATE folds"},
		undo: []string{`ALTER TABLE heros ALTER COLUMN tenant_id TYPE VARCHAR(63) COLLATE "C"`}, mend: true, want: "two tenants may be equal",
	},
	{
		name: "key that folds case", do: []string{"ALTER TABLE heros ALTER COLUMN player_id TYPE VARCHAR(255) COLLATE folds"},
		undo: []string{`ALTER TABLE heros ALTER COLUMN player_id TYPE VARCHAR(255) COLLATE "C"`}, want: "two keys would be one row",
	},
	{
		name: "index that folds case", do: []string{"CREATE UNIQUE INDEX u ON heros (tenant_id COLLATE folds, player_id, id)"},
		undo: []string{"DROP INDEX u"}, want: "without regard to case",
	},
	{
		name: "padded column", do: []string{"DROP POLICY tdal_tenant ON heros", "ALTER TABLE heros ALTER COLUMN tenant_id TYPE CHAR(63)"},
		undo: []string{`ALTER TABLE heros ALTER COLUMN tenant_id TYPE VARCHAR(63) COLLATE "C"`}, mend: true, want: "two tenants may be equal",
	},
	{
		name: "short column", do: []string{"DROP POLICY tdal_tenant ON heros", "ALTER TABLE heros ALTER COLUMN tenant_id TYPE VARCHAR(20)"},
		undo: []string{`ALTER TABLE heros ALTER COLUMN tenant_id TYPE VARCHAR(63) COLLATE "C"`}, mend: true, want: "two tenants may be equal",
	},
	{
		name: "text column", do: []string{"DROP POLICY tdal_tenant ON heros", "ALTER TABLE heros ALTER COLUMN tenant_id TYPE TEXT"}, mend: true,
		want: `lacks the policy "tdal_tenant"`, // the type is as good as the other
	},
	{name: "index without the tenant", do: []string{"CREATE INDEX k ON heros (gold)"}, undo: []string{"DROP INDEX k"}, want: "does not begin with tenant_id"},
	{name: "index of an expression", do: []string{"CREATE UNIQUE INDEX k ON heros (lower(name))"}, undo: []string{"DROP INDEX k"}, want: "does not begin with tenant_id"},
	{
		name: "foreign key", do: []string{"CREATE TABLE guilds (id BIGINT PRIMARY KEY)", "ALTER TABLE heros ADD CONSTRAINT f FOREIGN KEY (gold) REFERENCES guilds (id)"},
		undo: []string{"DROP TABLE guilds CASCADE"}, want: "foreign key f",
	},
}

func TestPostgres_T53_StartUpRefusals(t *testing.T) {
	t.Parallel()
	const castles = 3
	for n := range castles {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			c := newCastle(t, "")
			t.Cleanup(func() { // roles are the server's
				c.admin(`ALTER ROLE "{app}" NOSUPERUSER NOBYPASSRLS`, `ALTER ROLE "{system}" NOSUPERUSER NOBYPASSRLS`, `ALTER DATABASE "{base}" OWNER TO postgres`)
			})
			c.admin("CREATE COLLATION folds (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
			if err := c.refused(); err != nil {
				t.Fatalf("before: %v", err)
			}
			for i, r := range refusals {
				if i%castles != n {
					continue
				}
				c.admin(r.do...)
				err := c.refused()
				sentinel := dal.ErrModel
				if r.role {
					sentinel = dal.ErrRole
				}
				switch {
				case r.want == "" && err != nil:
					t.Errorf("%s: refused: %v", r.name, err)
				case r.want != "" && (!errors.Is(err, sentinel) || !strings.Contains(err.Error(), r.want) || !strings.Contains(err.Error(), "s1")):
					t.Errorf("%s: got %v, want %v about %q", r.name, err, sentinel, r.want)
				}
				c.admin(r.undo...)
				if r.mend {
					c.up()
				}
				if err := c.refused(); err != nil {
					t.Fatalf("%s: after it was mended: %v", r.name, err)
				}
			}
		})
	}
}

func TestPostgres_AbortedTransactions(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	store := c.open()
	c.fill(store, 1)
	key := dal.Key("player", "p1")
	twice := &Hero{Model: dal.Model{ID: 1}, PlayerID: "p1"}
	err := store.Transaction(c.a, key, func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&Hero{Model: dal.Model{ID: 8}, PlayerID: "p1"}).Error; err != nil {
			return err
		}
		_ = tx.Create(twice).Error // swallowed
		if err := tx.First(&Hero{}, 8).Error; !errors.Is(err, dal.ErrPoisoned) || !dal.IsDuplicateKey(err) {
			t.Errorf("a read after the error: %v, want ErrPoisoned with the cause", err)
		}
		return nil
	})
	if !errors.Is(err, dal.ErrPoisoned) || !dal.IsDuplicateKey(err) {
		t.Errorf("a commit over a swallowed error: %v", err)
	}
	if err := store.On(c.a, key).First(&Hero{}, 8).Error; !dal.IsNotFound(err) {
		t.Errorf("what stood before the error: %v", err)
	}
	// A savepoint heals what it holds.
	err = store.Transaction(c.a, key, func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&Hero{Model: dal.Model{ID: 9}, PlayerID: "p1"}).Error; err != nil {
			return err
		}
		nested := tx.Transaction(func(tx *gorm.DB) error { return tx.Create(twice).Error })
		if !dal.IsDuplicateKey(nested) {
			t.Errorf("nested: %v", nested)
		}
		return tx.Model(&Hero{}).Where("id = 9").Update("gold", 5).Error
	})
	if err != nil {
		t.Errorf("a commit after a savepoint was rolled back to: %v", err)
	}
	var h Hero
	if err := store.On(c.a, key).First(&h, 9).Error; err != nil || h.Gold != 5 {
		t.Errorf("%+v, %v", h, err)
	}
	if h.CreatedAt.IsZero() || h.CreatedAt.Location().String() != "UTC" {
		t.Errorf("times come back in %v: %v", h.CreatedAt.Location(), h.CreatedAt)
	}
}

// rewriter is what pgx would let rewrite the text, below everything that judges it.
type rewriter struct{}

func (rewriter) RewriteQuery(context.Context, *pgx.Conn, string, []any) (string, []any, error) {
	return "SELECT tenant_id FROM heros", nil, nil
}

func TestPostgres_NothingChangesTheTextBelowTheWire(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	store := c.open()
	c.fill(store, 1)
	system := c.pool(true)
	ctx := raw(t.Context(), "")
	for _, orders := range [][]any{{rewriter{}}, {pgx.NamedArgs{"x": 1}}, {pgx.QueryResultFormats{1}}} {
		if rows, err := system.QueryContext(ctx, "SELECT 'mine'", orders...); err == nil {
			_ = rows.Close()
			t.Errorf("%T was taken for an order", orders[0])
		}
		if _, err := system.ExecContext(ctx, "SELECT 'mine'", orders...); err == nil {
			t.Errorf("%T was taken for an order", orders[0])
		}
		if err := store.On(c.a, dal.Key("player", "p1")).Where("name = ?", orders[0]).Find(&[]Hero{}).Error; err == nil {
			t.Errorf("%T passed the store", orders[0])
		}
	}
	// An order to speak the simple protocol, in which a text may hold several statements, is a number like any other.
	if _, err := system.ExecContext(ctx, "SELECT 1; SELECT $1", pgx.QueryExecModeSimpleProtocol, 1); wire.SQLState(err) != "42601" {
		t.Errorf("two statements with an order: %v", err)
	}
	for _, text := range []string{"SELECT 1; SELECT 2", "SELECT 1; DROP TABLE heros", ";SELECT 1;SELECT 1"} {
		if _, err := system.ExecContext(ctx, text); wire.SQLState(err) != "42601" {
			t.Errorf("%s: %v, want it refused as two statements", text, err)
		}
		if rows, err := system.QueryContext(ctx, text); wire.SQLState(err) != "42601" {
			t.Errorf("%s as a query: %v", text, err)
			_ = rows
		}
	}
}

// tap stands between a pool and its server and counts round trips: how often the client spoke after the server had.
func (c *castle) tap() (address string, trips *atomic.Int64) {
	c.Helper()
	trips = &atomic.Int64{}
	target := c.end.Address
	dir, err := os.MkdirTemp("", "tap")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = os.RemoveAll(dir) })
	address = filepath.Join(dir, ".s.PGSQL.5432")
	l, err := net.Listen("unix", address)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", target)
			if err != nil {
				_ = client.Close()
				return
			}
			answered := &atomic.Bool{}
			answered.Store(true)
			pass := func(from, to net.Conn, seen func()) {
				defer func() { _, _ = from.Close(), to.Close() }()
				buf := make([]byte, 1<<16)
				for {
					n, err := from.Read(buf)
					if n > 0 {
						seen()
						if _, err := to.Write(buf[:n]); err != nil {
							return
						}
					}
					if err != nil {
						return
					}
				}
			}
			go pass(client, server, func() {
				if answered.Swap(false) {
					trips.Add(1)
				}
			})
			go pass(server, client, func() { answered.Store(true) })
		}
	}()
	return address, trips
}

// TestPostgres_CostOfTheFloor states what the floor costs: a statement by itself two round trips more, a transaction none.
func TestPostgres_CostOfTheFloor(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	c.fill(c.open(), 1)
	address, trips := c.tap()
	c.end.Address = address
	for _, at := range []struct {
		what         string
		system       bool
		alone, whole int64 // round trips of a statement by itself, of BEGIN, two statements and COMMIT
		floors       uint64
	}{
		{"without the floor", true, 1, 4, 0},
		{"with the floor", false, 3, 4, 2},
	} {
		pool := c.pool(at.system)
		id := tenant.ID("shared-a")
		ctx := raw(t.Context(), id)
		const text = "SELECT name FROM heros WHERE tenant_id = $1"
		read := func(q querier) {
			t.Helper()
			if got, err := whose(ctx, q, text, "shared-a"); err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
		}
		read(pool) // connects, and prepares the text
		read(pool) // pings a connection that was never used again before
		before, stats := trips.Load(), pool.Stats()
		read(pool)
		if got := trips.Load() - before; got != at.alone {
			t.Errorf("%s: a read by itself took %d round trips, want %d", at.what, got, at.alone)
		}
		before = trips.Load()
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		read(tx)
		read(tx)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := trips.Load() - before; got != at.whole {
			t.Errorf("%s: a transaction of two reads took %d round trips, want %d", at.what, got, at.whole)
		}
		d := pool.Stats().Sub(stats)
		if d.Floors != at.floors || d.Wraps != at.floors/2 {
			t.Errorf("%s: set_config %d times, wrapped %d times, want %d and %d", at.what, d.Floors, d.Wraps, at.floors, at.floors/2)
		}
	}
}

func TestPostgres_SystemScope(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	store := c.open()
	c.fill(store, 2)
	ctx := tenant.System(t.Context(), "count the heroes", "heros")
	var n int64
	if err := store.OnPlace(ctx, dal.Place{Shard: "s1"}).Model(&Hero{}).Count(&n).Error; err != nil || n != 4 {
		t.Errorf("a system scope counts %d, %v; want both tenants' 4", n, err)
	}
	if err := store.OnPlace(tenant.System(t.Context(), "nothing"), dal.Place{Shard: "s1"}).Model(&Hero{}).Count(&n).Error; err == nil {
		t.Error("a system scope that names no table counts heroes")
	}
}

func TestPostgres_T16_Association(t *testing.T) {
	t.Parallel()
	o := newOrder(t, "postgres")
	o.seed(t)
	type sent struct {
		text string
		args []any
	}
	var all []sent
	o.rec.fail = func(e wire.Event) error {
		s := sent{text: e.Text}
		for _, a := range e.Args {
			s.args = append(s.args, a.Value)
		}
		all = append(all, s)
		return nil
	}
	knight := Knight{Model: dal.Model{ID: 2}, PlayerID: "7"}
	var badges []Badge
	if err := o.as(o.a).Model(&knight).Association("Badges").Find(&badges); err != nil || len(badges) != 1 || badges[0].Name != "a2" {
		t.Fatalf("a's badge: %+v, %v", badges, err)
	}
	var knights []Knight
	if err := o.as(o.a).Preload("Badges").Preload("Pets").Find(&knights, []int64{1, 2}).Error; err != nil || len(knights) != 2 || len(knights[1].Badges) != 1 || knights[1].Badges[0].Name != "a2" {
		t.Fatalf("preloaded: %+v, %v", knights, err)
	}
	if len(all) < 4 {
		t.Fatalf("%d statements were seen", len(all))
	}
	owner := regexp.MustCompile(`tenant_id"? = \$(\d+)`)
	for _, s := range all {
		holes := dollar.FindAllString(s.text, -1)
		if len(holes) != len(s.args) {
			t.Errorf("%d placeholders for %d values: %s", len(holes), len(s.args), s.text)
		}
		for n, hole := range holes {
			if hole != "$"+strconv.Itoa(n+1) {
				t.Errorf("placeholder %d is %s: %s", n+1, hole, s.text)
			}
		}
		found := owner.FindAllStringSubmatch(s.text, -1)
		if len(found) == 0 {
			t.Errorf("it lacks the tenant: %s", s.text)
		}
		for _, m := range found {
			if n, _ := strconv.Atoi(m[1]); s.args[n-1] != "a" {
				t.Errorf("tenant_id is compared with %v: %s", s.args[n-1], s.text)
			}
		}
	}
}

// What comes by database/sql itself, and raw text on the handle, have the floor too.
func TestPostgres_T31_DirectConnections(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	store := c.open()
	c.fill(store, 2)
	key := dal.Key("player", "p1")
	before := store.Stats()
	db, err := store.On(c.a, key).DB()
	if err != nil {
		t.Fatal(err)
	}
	const text = "SELECT name FROM heros WHERE tenant_id = $1 AND gold > $2"
	if got, err := whose(c.a, db, text, "shared-a", 0); err != nil || !slices.Equal(got, []string{"shared-a"}) {
		t.Errorf("through DB(): %v, %v", got, err)
	}
	if got, err := whose(c.a, db, text, "shared-b", 0); err == nil {
		t.Errorf("another tenant's id through DB(): %v", got)
	}
	tx, err := db.BeginTx(c.a, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := tx.ExecContext(c.a, "UPDATE heros SET gold = 9 WHERE tenant_id = $1", "shared-a"); err != nil {
		t.Error(err)
	} else if n, _ := res.RowsAffected(); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	prepared, err := db.PrepareContext(c.a, text)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := prepared.QueryRowContext(c.a, "shared-a", 8).Scan(&name); err != nil || name != "shared-a" {
		t.Errorf("prepared: %q, %v", name, err)
	}
	if err := prepared.Close(); err != nil {
		t.Error(err)
	}
	if d := store.Stats().Sub(before); d.Floors < 3 {
		t.Errorf("the floor was set %d times, want 3 or more", d.Floors)
	}
	var rows []Hero
	if err := store.On(c.b, key).Raw("SELECT * FROM heros WHERE gold > ? ORDER BY id", 0).Scan(&rows).Error; err != nil || len(rows) != 2 || rows[0].Name != "shared-b" {
		t.Errorf("raw text: %+v, %v", rows, err)
	}
	if res := store.On(c.b, key).Exec("UPDATE heros SET gold = gold + ? WHERE id = ?", 1, 1); res.Error != nil || res.RowsAffected != 1 {
		t.Errorf("raw write: %d rows, %v", res.RowsAffected, res.Error)
	}
	for _, text := range []string{
		"SELECT set_config('tenantdal.tenant', 'shared-a', true)", "SET LOCAL tenantdal.tenant = 'shared-a'", "SET tenantdal.tenant = 'shared-a'", "RESET ALL", "DISCARD ALL",
		"SET ROLE postgres", "SELECT current_setting('tenantdal.tenant')", "COPY heros TO STDOUT", "DO $$ BEGIN END $$", "SELECT * FROM pg_policy", "LISTEN x",
		"SELECT query_to_xml('SELECT * FROM heros', true, true, '')", "TABLE heros", "SELECT 1; SELECT 2", "SELECT $1", "LOCK heros",
	} {
		if err := store.On(c.b, key).Exec(text).Error; err == nil {
			t.Errorf("%s was let out", text)
		}
		if rows, err := db.QueryContext(c.b, text); err == nil {
			_ = rows.Close()
			t.Errorf("%s was let out by DB()", text)
		}
	}
}

// In a transaction of the library's own that works for several tenants the floor follows each statement, also over savepoints, which take a setting back.
func TestPostgres_FloorFollowsTheStatement(t *testing.T) {
	t.Parallel()
	c := newCastle(t, "")
	c.fill(c.open(), 1)
	pool := c.pool(false)
	tx, err := pool.BeginTx(raw(t.Context(), "shared-a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	sees := func(id tenant.ID) {
		t.Helper()
		if got, err := whose(raw(t.Context(), id), tx, "SELECT name FROM heros"); err != nil || !slices.Equal(got, []string{string(id)}) {
			t.Errorf("%s sees %v, %v", id, got, err)
		}
	}
	savepoint := func(text string) {
		t.Helper()
		if _, err := tx.ExecContext(wire.With(t.Context(), &wire.Mark{Kind: wire.Control, Tenant: "shared-a", Text: text}), text); err != nil {
			t.Fatal(err)
		}
	}
	sees("shared-a")
	sees("shared-b")
	sees("shared-a")
	savepoint("SAVEPOINT x")
	sees("shared-b")
	savepoint("ROLLBACK TO SAVEPOINT x")
	sees("shared-b")
	savepoint("ROLLBACK TO SAVEPOINT x")
	sees("shared-a")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := whose(raw(t.Context(), ""), pool, "SELECT name FROM heros"); err != nil || got != nil {
		t.Errorf("afterwards nobody sees %v, %v", got, err)
	}
}

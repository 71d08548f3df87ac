package schema_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/testutil"
)

// Hero is the model of heroSet's table.
type Hero struct {
	dal.Model
	PlayerID string
}

// admin runs statements on the PostgreSQL server as its superuser, in the database of that name.
func (b *bench) admin(database string, texts ...string) {
	b.t.Helper()
	e := testutil.SharedPostgres(b.t, 1)[0].Endpoint(database)
	pool, err := wire.OpenPostgres(wire.Postgres{Network: e.Network, Address: e.Address, User: e.User, Password: e.Password, Database: e.Database}, wire.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	for _, text := range texts {
		if _, err := pool.ExecContext(migrator(context.Background()), text); err != nil {
			b.t.Fatalf("%s: %v", text, err)
		}
	}
}

// as opens a place as one of its two logins.
func (b *bench) as(p dal.Place, system bool) (*wire.Pool, dal.Endpoint) {
	b.t.Helper()
	e, err := b.cfg.Cluster.Endpoint(p, "big")
	if err != nil {
		b.t.Fatal(err)
	}
	w := wire.Postgres{Network: e.Network, Address: e.Address, User: e.User, Password: e.Password, Database: e.Database}
	if system {
		w.User, w.Password = e.SystemUser, e.SystemPassword
	}
	pool, err := wire.OpenPostgres(w, wire.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = pool.Close() })
	return pool, e
}

// An operator who may log in and nothing else is told the statements that an administrator has to run; running them, and nothing else, gets there.
func TestUp_Postgres_MissingGrant(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, 2).tenants(schemaTenant("zeta"), databaseTenant("big"))
	b.cfg.Tables = []dal.Table{dal.Tenant[Hero]("player", "player_id")}
	operator, password := "op"+strings.ToLower(rand.Text()[:8]), "pw-"+rand.Text()
	b.admin("template1", fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", operator, password))
	for i := range b.cfg.Cluster.Shards {
		b.cfg.Cluster.Shards[i].User, b.cfg.Cluster.Shards[i].Password = operator, password
	}
	// The second shard's database is there, and somebody else's.
	other := b.cfg.Cluster.Shards[1].Database
	b.admin("template1", fmt.Sprintf("CREATE DATABASE %s TEMPLATE template0", other))
	var logged bytes.Buffer
	b.cfg.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var mu sync.Mutex
	var sent []string
	b.m = b.m.Observed(&hook{before: func(_ int, e wire.Event) error {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, e.Text)
		return nil
	}})
	own, err := b.cfg.Cluster.Endpoint(bigS1, "big")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{password, own.Password, own.SystemPassword, b.cfg.Cluster.LoginSecret}
	ran := map[string]bool{}
	for round := 1; ; round++ {
		_, err := b.up(heroSet())
		if err == nil {
			break
		}
		for _, f := range upError(t, err).Failed {
			var ge *schema.GrantError
			if !errors.As(f.Err, &ge) || !errors.Is(f.Err, schema.ErrGrant) {
				t.Fatalf("round %d: got %v, want a *GrantError", round, f)
			}
			if !strings.Contains(ge.Grant, `"`+operator+`"`) {
				t.Fatalf("round %d: %s says nothing of the operator", round, ge.Grant)
			}
			if !ran[ge.Grant] {
				b.admin("template1", ge.Grant)
			}
			ran[ge.Grant] = true
		}
		if round > 8 {
			t.Fatalf("after %d rounds: %v", round, err)
		}
	}
	want := []string{
		fmt.Sprintf("ALTER DATABASE %q OWNER TO %q", other, operator), fmt.Sprintf("ALTER ROLE %q CREATEDB", operator), fmt.Sprintf("ALTER ROLE %q CREATEROLE", operator),
	}
	var got []string
	for g := range ran {
		got = append(got, g)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
	b.wantUpToDate(heroSet())
	for _, s := range secrets {
		for _, text := range sent {
			if strings.Contains(text, s) {
				t.Fatalf("a statement holds a secret: %.40s", text)
			}
		}
		if strings.Contains(logged.String(), s) {
			t.Fatal("the log holds a secret")
		}
	}
	// What is done needs no rights to be found done, and is not done again.
	b.admin("template1", fmt.Sprintf("ALTER ROLE %q NOCREATEDB NOCREATEROLE", operator))
	mu.Lock()
	sent = nil
	mu.Unlock()
	b.mustUp(heroSet())
	for _, text := range sent {
		for _, verb := range []string{"CREATE", "ALTER", "GRANT", "REVOKE", "DROP"} {
			if strings.HasPrefix(text, verb) {
				t.Errorf("a run that has nothing to do sent: %s", text)
			}
		}
	}
}

// The two logins of a place are of no use in any other, and can do nothing but read and write rows of declared tables.
func TestUp_Postgres_Logins(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, 1).tenants(databaseTenant("big"), databaseTenant("other"), schemaTenant("zeta"))
	b.cfg.Tables = []dal.Table{dal.Tenant[Hero]("player", "player_id")}
	b.mustUp(heroSet(), game1) // game1's table is not declared
	base := b.cfg.Cluster.Shards[0].Database
	for _, system := range []bool{false, true} {
		pool, own := b.as(bigS1, system)
		for _, text := range []string{"SELECT id FROM heros", "DELETE FROM heros", "SELECT shard FROM tdal_place"} {
			if _, err := pool.ExecContext(migrator(t.Context()), text); err != nil {
				t.Errorf("system %v: %s: %v", system, text, err)
			}
		}
		for _, text := range []string{
			"CREATE TABLE x (id INT)", "DROP TABLE heros", "ALTER TABLE heros ADD COLUMN x INT", "TRUNCATE heros", "SELECT * FROM hero", "UPDATE tdal_checksums SET file = ''",
			"DELETE FROM tdal_place", "CREATE DATABASE mine", "CREATE ROLE mine", "CREATE TEMPORARY TABLE t (x INT)", "SELECT * FROM pg_authid",
		} {
			if _, err := pool.ExecContext(migrator(t.Context()), text); wire.SQLState(err) != "42501" {
				t.Errorf("system %v: %s: got %v, want it denied", system, text, err)
			}
		}
		for _, elsewhere := range []string{base, base + "_other-s1", base + "_tdal_control", base + "_t_zeta"} {
			w := wire.Postgres{Network: own.Network, Address: own.Address, User: own.User, Password: own.Password, Database: elsewhere}
			if system {
				w.User, w.Password = own.SystemUser, own.SystemPassword
			}
			foreign, err := wire.OpenPostgres(w, wire.Options{})
			if err == nil {
				err = errors.Join(foreign.PingContext(t.Context()), foreign.Close())
			}
			if wire.SQLState(err) != "42501" {
				t.Errorf("system %v: got into %s: %v", system, elsewhere, err)
			}
		}
	}
	// Somebody changed a password: the next run sets it again.
	_, own := b.as(bigS1, false)
	b.admin("template1", fmt.Sprintf("ALTER ROLE %q PASSWORD 'changed'", own.User), fmt.Sprintf("ALTER ROLE %q NOLOGIN", own.SystemUser))
	if pool, _ := b.as(bigS1, false); wire.SQLState(pool.PingContext(t.Context())) != "28P01" {
		t.Error("the login works with its old password")
	}
	b.mustUp(heroSet(), game1)
	for _, system := range []bool{false, true} {
		pool, _ := b.as(bigS1, system)
		if err := pool.PingContext(t.Context()); err != nil {
			t.Errorf("after Up, system %v: %v", system, err)
		}
	}
}

// A tenant's schema and a tenant's database have the floor too, and a table that becomes a tenant's gets it.
func TestUp_Postgres_PoliciesFollowTheDeclaration(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, 1).tenants(schemaTenant("zeta"), databaseTenant("big"))
	places := map[dal.Place]string{s1: "", {Shard: "s1", Schema: "t_zeta"}: "zeta", bigS1: "big"}
	const secured = "SELECT relrowsecurity::text || relforcerowsecurity::text || (SELECT COUNT(*) FROM pg_policy WHERE polrelid = pg_class.oid) FROM pg_class WHERE relname = 'heros'"
	wantAll := func(want string) {
		t.Helper()
		for p := range places {
			if got := b.list(p, "big", secured); !slices.Equal(got, []string{want}) {
				t.Errorf("%v: got %q, want %q", p, got, want)
			}
		}
	}
	b.mustUp(heroSet())
	wantAll("falsefalse0")
	b.cfg.Tables = []dal.Table{dal.Tenant[Hero]("player", "player_id")}
	b.mustUp(heroSet())
	wantAll("truetrue2")
	b.mustUp(heroSet())
	wantAll("truetrue2")
}

// The lock lives with a connection. When that breaks another run may begin, so this one stops.
func TestUp_Postgres_LockLost(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, 1)
	b.mustUp(game1)
	killed := false
	b.m = schema.Migrator{}.Observed(&hook{before: func(_ int, e wire.Event) error {
		if !killed && strings.HasPrefix(e.Text, "ALTER TABLE hero") {
			killed = true
			for _, pid := range b.list(s1, "", "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") {
				b.admin("template1", "SELECT pg_terminate_backend("+pid+", 10000)")
			}
		}
		return nil
	}})
	_, err := b.up(game2)
	if !errors.Is(err, schema.ErrLockLost) || !killed {
		t.Fatalf("Up: got %v, want ErrLockLost", err)
	}
	b.m = schema.Migrator{}
	b.mustUp(game2)
	b.wantUpToDate(game2)
}

// The server rolls DDL back with the list of files, so nothing is ever dirty, wherever a run dies.
func TestUp_Postgres_NothingIsDirty(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, 1)
	b.mustUp(game1)
	for _, at := range []string{"ALTER TABLE hero ADD", "INSERT INTO tdal_version_game", "UPDATE tdal_checksums"} {
		b.m = diesAt(at)
		if _, err := b.up(game2); !errors.Is(err, errDied) {
			t.Fatalf("Up: got %v, want it to die at %s", err, at)
		}
		if got := b.columns(s1, "", "hero"); len(got) != 2 {
			t.Errorf("after it died at %s the table has %q", at, got)
		}
	}
	b.m = schema.Migrator{}
	b.mustUp(game2)
	b.wantUpToDate(game2)
}

func TestUp_Postgres_NeedsTheFolder(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, 1)
	old := fstest.MapFS{}
	for name, f := range game1.FS.(fstest.MapFS) {
		if !strings.HasPrefix(name, "postgres/") {
			old[name] = f
		}
	}
	set := schema.Set{Name: "game", FS: old}
	if err := schema.Lint(set); err != nil {
		t.Errorf("Lint of a set without the folder: %v", err)
	}
	var le *schema.LintError
	if _, err := b.up(set); !errors.As(err, &le) || !strings.Contains(err.Error(), "postgres") {
		t.Errorf("Up: got %v, want a *LintError about the folder", err)
	}
}

func TestLint_Postgres(t *testing.T) {
	t.Parallel()
	const down = "-- +goose Down\nDROP TABLE IF EXISTS t;\n"
	for name, at := range map[string]struct{ text, want string }{
		"bigserial":            {"CREATE TABLE IF NOT EXISTS t (tenant_id TEXT, id BIGSERIAL);", "the same ids"},
		"identity":             {"CREATE TABLE IF NOT EXISTS t (tenant_id TEXT, id BIGINT GENERATED ALWAYS AS IDENTITY);", "the same ids"},
		"nextval":              {"CREATE TABLE IF NOT EXISTS t (tenant_id TEXT, id BIGINT DEFAULT nextval('s'));", "the same ids"},
		"dollars":              {"CREATE TABLE IF NOT EXISTS t (a TEXT DEFAULT $$; DROP TABLE u$$);", "$"},
		"escapes":              {`CREATE TABLE IF NOT EXISTS t (a TEXT DEFAULT E'\'; DROP TABLE u; --');`, "E'"},
		"a comment in another": {"CREATE TABLE IF NOT EXISTS t (a INT /* /* */ , b INT */);", "comment"},
		"another schema":       {"CREATE TABLE IF NOT EXISTS other.t (a INT);", "another database"},
		"concurrently":         {"CREATE INDEX CONCURRENTLY k ON t (a);", "CONCURRENTLY"},
		"a role":               {"ALTER ROLE x SUPERUSER;", "none of"},
		"a policy":             {"CREATE POLICY p ON t USING (true);", "none of"},
		"a function":           {"CREATE FUNCTION f() RETURNS INT LANGUAGE sql AS 'SELECT 1';", "none of"},
		"fine":                 {`CREATE TABLE IF NOT EXISTS t (tenant_id VARCHAR(63) COLLATE "C", a TEXT DEFAULT 'x\', b JSONB DEFAULT '{}'::jsonb, c INT[]);`, ""},
	} {
		good := "CREATE TABLE IF NOT EXISTS t (a INT);"
		set := schema.Set{Name: "game", FS: fstest.MapFS{
			"sqlite/0001_t.sql":   {Data: []byte("-- +goose Up\n" + good + "\n" + down)},
			"mysql/0001_t.sql":    {Data: []byte("-- +goose Up\n" + good + "\n" + down)},
			"postgres/0001_t.sql": {Data: []byte("-- +goose Up\n" + at.text + "\n" + down)},
		}}
		err := schema.Lint(set)
		if at.want == "" && err != nil || at.want != "" && (!errors.Is(err, schema.ErrLint) || !strings.Contains(err.Error(), at.want)) {
			t.Errorf("%s: got %v, want %q", name, err, at.want)
		}
	}
}

// Runs of several processes at the same time come one after the other, the making of databases and logins included.
func TestUp_Postgres_ManyAtOnce(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, 1).tenants(sharedTenant("acme"), databaseTenant("big"))
	b.cfg.Tables = []dal.Table{dal.Tenant[Hero]("player", "player_id")}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := schema.Up(ctx, b.cfg, heroSet()); err != nil {
				t.Errorf("Up: %v", err)
			}
		})
	}
	wg.Wait()
	b.wantUpToDate(heroSet())
	store, err := dal.Open(ctx, b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(ctx); err != nil {
		t.Error(err)
	}
}

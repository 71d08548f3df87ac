package schema_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

var bigS1 = dal.Place{Shard: "big-s1"}

// login opens a place with the login that a store uses there.
func (b *bench) login(p dal.Place, owner tenant.ID) *wire.Pool {
	b.t.Helper()
	e, err := b.cfg.Cluster.Endpoint(p, owner)
	if err != nil {
		b.t.Fatal(err)
	}
	pool, err := wire.OpenMySQL(e.MySQLConfig(), wire.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// A tenant with a database of its own has a login that reads and writes rows there, and can do nothing else anywhere.
func TestUp_Login(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 1).tenants(databaseTenant("big"), databaseTenant("other"))
	b.mustUp(game1)
	own, err := b.cfg.Cluster.Endpoint(bigS1, "big")
	if err != nil {
		t.Fatal(err)
	}
	// In GRANT a _ stands for any byte: a neighbour whose name differs there must stay closed.
	neighbour := strings.Replace(own.Database, "_", "x", 1)
	b.root("CREATE DATABASE `" + neighbour + "`")
	t.Cleanup(func() { b.rootCleanup("DROP DATABASE `" + neighbour + "`") })
	b.root("CREATE TABLE `" + neighbour + "`.hero (id INT)")
	pool := b.login(bigS1, "big")
	ctx := migrator(t.Context())
	for _, text := range []string{
		"INSERT INTO hero (tenant_id, id) VALUES ('big', 1)", "UPDATE hero SET id = 2 WHERE tenant_id = 'big'", "SELECT id FROM hero WHERE tenant_id = 'big'",
		"DELETE FROM hero WHERE tenant_id = 'big'",
	} {
		if _, err := pool.ExecContext(ctx, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	base := b.cfg.Cluster.Shards[0].Database
	for _, text := range []string{
		"CREATE TABLE x (id INT)", "DROP TABLE hero", "ALTER TABLE hero ADD COLUMN x INT", "SELECT * FROM `" + base + "`.hero",
		"SELECT * FROM `" + base + "_other-s1`.hero", "SELECT * FROM `" + base + "_tdal_control`.tdal_tenants", "SELECT * FROM `" + neighbour + "`.hero",
		"CREATE DATABASE `" + base + "_mine`", "SELECT * FROM mysql.user",
	} {
		_, err := pool.ExecContext(ctx, text)
		if !slices.Contains([]int{1044, 1142, 1143, 1227, 1370}, wire.Code(err)) {
			t.Errorf("%s: got %v, want it denied", text, err)
		}
	}
	// Two tenants have two logins.
	if other, _ := b.cfg.Cluster.Endpoint(dal.Place{Shard: "other-s1"}, "other"); other.User == own.User || other.Password == own.Password {
		t.Error("two tenants share a login or a password")
	}

	// Somebody changed the password: the next run sets it again.
	b.root("ALTER USER '" + own.User + "'@'%' IDENTIFIED BY 'something else'")
	if err := b.login(bigS1, "big").PingContext(t.Context()); err == nil {
		t.Fatal("the test is wrong: the changed password does not matter")
	}
	b.mustUp(game1)
	if err := b.login(bigS1, "big").PingContext(t.Context()); err != nil {
		t.Fatalf("after Up: %v", err)
	}
}

// rootCleanup is [bench.root] for a test that is over.
func (b *bench) rootCleanup(text string) {
	pool, err := wire.OpenMySQL(testutil.SharedMariaDB(b.t, 1)[0].MySQLConfig(), wire.Options{})
	if err == nil {
		_, err = pool.ExecContext(migrator(context.Background()), text)
		err = errors.Join(err, pool.Close())
	}
	if err != nil {
		b.t.Errorf("%s: %v", text, err)
	}
}

// An operator without rights is told the very statement that an administrator has to run. Running what the errors say, and nothing else, gets there.
func TestUp_MissingGrant(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 2).tenants(schemaTenant("zeta"), databaseTenant("big"))
	operator, password := "op"+strings.ToLower(rand.Text()[:8]), "pw-"+rand.Text()
	b.root(fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", operator, password))
	t.Cleanup(func() { b.rootCleanup(fmt.Sprintf("DROP USER '%s'@'%%'", operator)) })
	for i := range b.cfg.Cluster.Shards {
		b.cfg.Cluster.Shards[i].User, b.cfg.Cluster.Shards[i].Password = operator, password
	}
	var logged bytes.Buffer
	b.cfg.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	dedicated, err := b.cfg.Cluster.Endpoint(bigS1, "big")
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{password, dedicated.Password, b.cfg.Cluster.LoginSecret}
	ran := map[string]bool{}
	for round := 1; ; round++ {
		_, err := b.up(game2)
		if err == nil {
			break
		}
		for _, s := range secrets {
			if strings.Contains(err.Error(), s) {
				t.Fatalf("round %d: the error holds a secret: %v", round, err)
			}
		}
		for _, f := range upError(t, err).Failed {
			var ge *schema.GrantError
			if !errors.As(f.Err, &ge) || !errors.Is(f.Err, schema.ErrGrant) {
				t.Fatalf("round %d: got %v, want a *GrantError", round, f)
			}
			if ran[ge.Grant] {
				t.Fatalf("round %d: %s was run and is still asked for", round, ge.Grant)
			}
			if !strings.HasPrefix(ge.Grant, "GRANT ") || !strings.HasSuffix(ge.Grant, " TO '"+operator+"'@'%'") && !strings.HasSuffix(ge.Grant, " TO '"+operator+"'@'%' WITH GRANT OPTION") {
				t.Fatalf("round %d: got %q, want a GRANT to the operator", round, ge.Grant)
			}
			ran[ge.Grant] = true
			b.root(ge.Grant)
		}
		if round > 10 {
			t.Fatalf("after %d rounds: %v", round, err)
		}
	}
	b.wantUpToDate(game2)
	for g := range ran {
		if strings.Contains(g, "ON *.*") && g != "GRANT CREATE USER ON *.* TO '"+operator+"'@'%'" {
			t.Errorf("%s asks for more than it needs", g)
		}
	}
	// What is done needs no rights to be found done.
	b.root(fmt.Sprintf("REVOKE CREATE USER ON *.* FROM '%s'@'%%'", operator))
	b.mustUp(game2)
	for _, s := range secrets {
		if strings.Contains(logged.String(), s) {
			t.Fatal("the log holds a secret")
		}
	}
	if logged.Len() == 0 {
		t.Fatal("nothing was logged, so the test says nothing about logs")
	}
}

// An account that hides the tenant's login is found at once, not by the first player.
func TestUp_LoginHidden(t *testing.T) {
	t.Parallel()
	server := testutil.NewMariaDBCluster(t, 1)[0]
	b := &bench{t: t, cfg: dal.Config{Cluster: dal.MySQLCluster(dal.Endpoint{Network: "unix", Address: server.Socket(), User: server.User(), Database: "game"})}}
	b.cfg.Cluster.LoginSecret = "a secret of this test"
	b.tenants(databaseTenant("big"))
	b.exec0(server, "CREATE USER ''@'localhost'")
	_, err := b.up(game1)
	var le *schema.LoginError
	if !errors.As(err, &le) || !errors.Is(err, schema.ErrLogin) || le.Code == 0 {
		t.Fatalf("Up: got %v, want a *LoginError", err)
	}
	e, _ := b.cfg.Cluster.Endpoint(bigS1, "big")
	if le.User != e.User || strings.Contains(err.Error(), e.Password) {
		t.Fatalf("Up: got %v, want the login's name and not its password", err)
	}
	if done := placeNames(upError(t, err).Done); !slices.Equal(done, []string{"s1"}) {
		t.Fatalf("Done: got %v, want s1", done)
	}
	b.exec0(server, "DROP USER ''@'localhost'")
	b.mustUp(game1)
}

// exec0 runs a statement on a server of the test's own.
func (b *bench) exec0(server *testutil.MariaDB, text string) {
	b.t.Helper()
	pool, err := wire.OpenMySQL(server.MySQLConfig(), wire.Options{})
	if err == nil {
		_, err = pool.ExecContext(migrator(b.t.Context()), text)
		err = errors.Join(err, pool.Close())
	}
	if err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
}

func TestUp_NoLoginSecret(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 1).tenants(databaseTenant("big"))
	b.cfg.Cluster.LoginSecret = ""
	if _, err := b.up(game1); !errors.Is(err, dal.ErrNoLoginSecret) {
		t.Fatalf("Up: got %v, want ErrNoLoginSecret", err)
	}
}

// One server is down: what lies on the others is done, and the rest follows when it is back.
func TestUp_Unreachable(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(t *testing.T, b *bench) {
		b.tenants(schemaTenant("zeta"))
		var back func()
		if b.server() {
			socket := b.cfg.Cluster.Shards[1].Address
			b.cfg.Cluster.Shards[1].Address = filepath.Join(t.TempDir(), "no.sock")
			back = func() { b.cfg.Cluster.Shards[1].Address = socket }
		} else {
			for _, name := range []string{"s2.db", "s2.t_zeta.db"} {
				if err := os.MkdirAll(filepath.Join(b.cfg.Cluster.Dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			back = func() {
				for _, name := range []string{"s2.db", "s2.t_zeta.db"} {
					if err := os.Remove(filepath.Join(b.cfg.Cluster.Dir, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		_, err := b.up(game1)
		e := upError(t, err)
		if done := placeNames(e.Done); !slices.Equal(done, []string{"s1", "s1/t_zeta", "s3", "s3/t_zeta"}) {
			t.Fatalf("Done: got %v, want all but those on s2", done)
		}
		for _, f := range e.Failed {
			var ce *wire.ConnectError
			if !errors.As(f.Err, &ce) || f.Place.Shard != "s2" {
				t.Fatalf("Failed: got %v, want a *ConnectError for s2", f)
			}
		}
		for _, s := range b.status(game1) {
			if (s.Err != nil) != (s.Place.Shard == "s2") {
				t.Errorf("Status: got %+v", s)
			}
		}
		back()
		b.mustUp(game1)
		b.wantUpToDate(game1)
	})
}

// Without the control database nothing is begun.
func TestUp_ControlUnreachable(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, b *bench) {
		if b.server() {
			b.cfg.Cluster.Shards[0].Address = filepath.Join(t.TempDir(), "no.sock")
		} else if err := os.MkdirAll(filepath.Join(b.cfg.Cluster.Dir, "control.db"), 0o700); err != nil {
			t.Fatal(err)
		}
		rep, err := b.up(game1)
		e := upError(t, err)
		var ce *wire.ConnectError
		if !errors.As(err, &ce) || len(e.Failed) != 1 || e.Failed[0].Place != (dal.Place{}) || len(e.Done) != 0 || rep.Places != nil {
			t.Fatalf("Up: got %v, want a *ConnectError for the control database alone", err)
		}
		if !strings.Contains(err.Error(), "the control database") {
			t.Errorf("error %q does not name the control database", err)
		}
	})
}

// Tenants with a database of their own can have a server of their own, with another operator.
func TestUp_DedicatedServer(t *testing.T) {
	t.Parallel()
	b := onMariaDB(t, 1).tenants(databaseTenant("big"), schemaTenant("zeta"))
	operator := "op" + strings.ToLower(rand.Text()[:8])
	dedicated := b.cfg.Cluster.Shards[0]
	dedicated.Database, dedicated.User, dedicated.Password = dedicated.Database+"_ded", operator, "pw"
	b.root(fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY 'pw'", operator))
	t.Cleanup(func() { b.rootCleanup(fmt.Sprintf("DROP USER '%s'@'%%'", operator)) })
	b.root(fmt.Sprintf("GRANT ALL PRIVILEGES ON *.* TO '%s'@'%%' WITH GRANT OPTION", operator))
	b.cfg.Cluster.Dedicated = &dedicated
	b.mustUp(game1)
	e, err := b.cfg.Cluster.Endpoint(bigS1, "big")
	if err != nil || e.Database != dedicated.Database+"_big-s1" {
		t.Fatalf("Endpoint: got %v, %v", e, err)
	}
	if _, err := b.login(bigS1, "big").ExecContext(migrator(t.Context()), "INSERT INTO hero (tenant_id, id) VALUES ('big', 1)"); err != nil {
		t.Fatal(err)
	}
	b.wantUpToDate(game1)
}

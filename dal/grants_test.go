package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// granted is a deployment on a server of its own, since rights are the server's.
type granted struct {
	cfg  dal.Config // with the operator's login
	root *sql.DB
	end  dal.Endpoint
	own  string // the account of the database tenant, as a text for GRANT
	base string // that tenant's database
}

func newGranted(t *testing.T) *granted {
	t.Helper()
	server := testutil.NewMariaDBCluster(t, 1)[0]
	c := testutil.NewDatabase(t, server)
	g := &granted{end: dal.Endpoint{Dialect: dal.MySQL, Network: c.Net, Address: c.Addr, User: c.User, Password: c.Passwd, Database: c.DBName}}
	cluster := dal.MySQLCluster(g.end)
	cluster.LoginSecret = "a secret of the tests"
	g.cfg = dal.Config{Cluster: cluster, Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	up(t, g.cfg)
	e, err := cluster.Endpoint(dal.Place{Shard: "base-d-s1"}, "base-d")
	if err != nil {
		t.Fatal(err)
	}
	g.own, g.base = "'"+e.User+"'@'%'", e.Database
	g.root, err = sql.Open("mysql", g.end.MySQLConfig().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.root.Close() })
	g.exec(t, "CREATE DATABASE other", "CREATE TABLE other.t (id INT)", "CREATE PROCEDURE other.p() SELECT 1", "CREATE ROLE r", "GRANT SELECT ON other.* TO r")
	return g
}

func (g *granted) exec(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := g.root.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// use opens a store and reads as the tenant.
func (g *granted) use(t *testing.T, cfg dal.Config, id tenant.ID) error {
	t.Helper()
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		return fmt.Errorf("Open: %w", err)
	}
	defer func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	return store.On(tenant.NewContext(t.Context(), id), dal.Key("player", "p")).Find(&[]Hero{}).Error
}

// The login of a tenant with a database of its own reaches that database and nothing else, or its tenant is refused, alone, with the statement that mends it.
func TestGrants_OwnDatabaseLogin(t *testing.T) {
	t.Parallel()
	g := newGranted(t)
	if err := g.use(t, g.cfg, "base-d"); err != nil {
		t.Fatalf("as schema.Up made it: %v", err)
	}
	pattern := strings.ReplaceAll(g.base, "`", "``")
	for _, c := range []struct{ name, grant, revoke, says string }{
		{"another database", "GRANT SELECT ON other.* TO " + g.own, "REVOKE SELECT ON other.* FROM " + g.own, "REVOKE SELECT ON `other`.* FROM"},
		{"the shared database", "GRANT SELECT ON `" + g.end.Database + "`.* TO " + g.own, "REVOKE SELECT ON `" + g.end.Database + "`.* FROM " + g.own, "REVOKE SELECT ON"},
		{"one table", "GRANT UPDATE ON other.t TO " + g.own, "REVOKE UPDATE ON other.t FROM " + g.own, "REVOKE UPDATE ON `other`.`t` FROM"},
		{"one column", "GRANT SELECT (id) ON other.t TO " + g.own, "REVOKE SELECT (id) ON other.t FROM " + g.own, "`other`.`t`"},
		{"a procedure", "GRANT EXECUTE ON PROCEDURE other.p TO " + g.own, "REVOKE EXECUTE ON PROCEDURE other.p FROM " + g.own, "REVOKE EXECUTE ON PROCEDURE `other`.`p`"},
		{"every database", "GRANT SELECT ON *.* TO " + g.own, "REVOKE SELECT ON *.* FROM " + g.own, "REVOKE SELECT ON *.* FROM"},
		{"FILE", "GRANT FILE ON *.* TO " + g.own, "REVOKE FILE ON *.* FROM " + g.own, "FILE on every database"},
		{"PROCESS", "GRANT PROCESS ON *.* TO " + g.own, "REVOKE PROCESS ON *.* FROM " + g.own, "PROCESS on every database"},
		{"GRANT OPTION", "GRANT SELECT ON `" + strings.ReplaceAll(pattern, "_", `\_`) + "`.* TO " + g.own + " WITH GRANT OPTION", "REVOKE GRANT OPTION ON `" + strings.ReplaceAll(pattern, "_", `\_`) + "`.* FROM " + g.own, "REVOKE GRANT OPTION"},
		{"a pattern", "GRANT SELECT ON `" + pattern + "`.* TO " + g.own, "REVOKE SELECT ON `" + pattern + "`.* FROM " + g.own, "is a pattern"},
		{"a role", "GRANT r TO " + g.own, "REVOKE r FROM " + g.own, "REVOKE `r` FROM"},
		{"PUBLIC", "GRANT SELECT ON other.* TO PUBLIC", "REVOKE SELECT ON other.* FROM PUBLIC", "FROM PUBLIC"},
		{"an anonymous account", "INSERT INTO mysql.db (Host, Db, User, Select_priv) VALUES ('%', 'other', '', 'Y')", "DELETE FROM mysql.db WHERE User = ''", `it can see database "other"`},
		{"a missing right", "REVOKE DELETE ON `" + strings.ReplaceAll(pattern, "_", `\_`) + "`.* FROM " + g.own, "GRANT DELETE ON `" + strings.ReplaceAll(pattern, "_", `\_`) + "`.* TO " + g.own, "GRANT DELETE ON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.exec(t, c.grant, "FLUSH PRIVILEGES")
			err := g.use(t, g.cfg, "base-d")
			var r *dal.RightsError
			if !errors.As(err, &r) || !errors.Is(err, dal.ErrRights) || r.Place.Shard != "base-d-s1" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("refused with %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "*") && strings.Contains(err.Error(), "PASSWORD") {
				t.Errorf("the error holds a password's hash: %v", err)
			}
			for _, id := range []tenant.ID{"shared-a", "schema-c"} {
				if err := g.use(t, g.cfg, id); err != nil {
					t.Errorf("%s pays for it: %v", id, err)
				}
			}
			g.exec(t, c.revoke, "FLUSH PRIVILEGES")
			if err := g.use(t, g.cfg, "base-d"); err != nil {
				t.Fatalf("after it was mended: %v", err)
			}
		})
	}
	// A tenant with two shards has two databases and one login, each of which serves.
	two := g.cfg
	static, err := tenant.NewStatic(tenant.Tenant{ID: "base-d", Model: tenant.OwnDatabase}, tenant.Tenant{ID: "twin", Model: tenant.OwnDatabase, Placement: tenant.Placement{Shards: []string{"twin-s1", "twin-s2"}}})
	if err != nil {
		t.Fatal(err)
	}
	two.Registry = static
	up(t, two)
	store, err := dal.Open(t.Context(), two)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		h := store.On(tenant.NewContext(t.Context(), "twin"), dal.Key("player", fmt.Sprint("p", i)))
		if err := h.Find(&[]Hero{}).Error; err != nil {
			t.Errorf("a tenant of two databases: %v", err)
		}
	}
	if st := store.OwnPlaces(); st.Opened != 2 || st.Failed != 0 {
		t.Errorf("%+v", st)
	}
	if err := store.Close(t.Context()); err != nil {
		t.Error(err)
	}
	// What the error says is the mend: sent as it is, it mends.
	g.exec(t, "GRANT SELECT, INSERT ON other.* TO "+g.own)
	var r *dal.RightsError
	if err := g.use(t, g.cfg, "base-d"); !errors.As(err, &r) {
		t.Fatalf("refused with %v", err)
	}
	g.exec(t, r.Mend)
	if err := g.use(t, g.cfg, "base-d"); err != nil {
		t.Errorf("after %s: %v", r.Mend, err)
	}
	// The floor itself: the tenant's login, with no library in between, reads nobody else's rows.
	e, err := g.cfg.Cluster.Endpoint(dal.Place{Shard: "base-d-s1"}, "base-d")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("mysql", e.MySQLConfig().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	var n int
	if err := raw.QueryRow("SELECT COUNT(*) FROM heros").Scan(&n); err != nil {
		t.Errorf("its own table: %v", err)
	}
	if err := raw.QueryRow("SELECT COUNT(*) FROM `" + g.end.Database + "`.heros").Scan(&n); err == nil {
		t.Error("the login of one tenant reads the shared table")
	}
}

// The login of shared places and schemas: what is too much is a warning or, if asked for, a refusal; what is too little is refused.
func TestGrants_SharedLogin(t *testing.T) {
	t.Parallel()
	g := newGranted(t)
	open := func(user, password string, strict bool) (warned []map[string]any, err error) {
		j := &journal{}
		cfg := g.cfg
		end := g.end
		end.User, end.Password = user, password
		secret := cfg.Cluster.LoginSecret
		cfg.Cluster = dal.MySQLCluster(end)
		cfg.Cluster.LoginSecret = secret
		cfg.StrictGrants, cfg.Logger = strict, slog.New(slog.NewJSONHandler(j, nil))
		err = errors.Join(g.use(t, cfg, "shared-a"), g.use(t, cfg, "schema-c"))
		return j.records(t, "login has rights beyond its databases"), err
	}
	// The operator's login works, and is warned of once a store, not once a place.
	warned, err := open(g.end.User, g.end.Password, false)
	if err != nil || len(warned) != 2 || !strings.Contains(fmt.Sprint(warned[0]["rights"]), "ALL PRIVILEGES") || warned[0]["level"] != "WARN" || warned[0]["login"] != g.end.User {
		t.Errorf("the operator's login: %v, warnings %v", err, warned)
	}
	if _, err = open(g.end.User, g.end.Password, true); !errors.Is(err, dal.ErrRights) || !strings.Contains(err.Error(), "ALL PRIVILEGES") {
		t.Errorf("the operator's login under StrictGrants: %v", err)
	}
	// A service's login with what it needs, and nothing else.
	const svc = "'svc'@'%'"
	esc := func(db string) string { return "`" + strings.ReplaceAll(db, "_", `\_`) + "`.*" }
	g.exec(t, "CREATE USER "+svc+" IDENTIFIED BY 'svc-secret'")
	for _, db := range []string{g.end.Database, g.end.Database + "_tdal_control", g.end.Database + "_t_schema-c"} {
		g.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+esc(db)+" TO "+svc)
	}
	if warned, err = open("svc", "svc-secret", true); err != nil || len(warned) != 0 {
		t.Errorf("a login with what it needs: %v, warnings %v", err, warned)
	}
	for _, c := range []struct {
		name, grant, revoke, says string
		refused                   bool // without StrictGrants too
	}{
		{"FILE", "GRANT FILE ON *.* TO " + svc, "REVOKE FILE ON *.* FROM " + svc, "FILE", false},
		{"SUPER and PROCESS", "GRANT SUPER, PROCESS ON *.* TO " + svc, "REVOKE SUPER, PROCESS ON *.* FROM " + svc, "PROCESS, SUPER", false},
		{"GRANT OPTION", "GRANT SELECT ON " + esc(g.end.Database) + " TO " + svc + " WITH GRANT OPTION", "REVOKE GRANT OPTION ON " + esc(g.end.Database) + " FROM " + svc, "may pass its rights", false},
		{"no INSERT", "REVOKE INSERT ON " + esc(g.end.Database) + " FROM " + svc, "GRANT INSERT ON " + esc(g.end.Database) + " TO " + svc, "lacks INSERT", true},
		{"no UPDATE in a schema", "REVOKE UPDATE ON " + esc(g.end.Database+"_t_schema-c") + " FROM " + svc, "GRANT UPDATE ON " + esc(g.end.Database+"_t_schema-c") + " TO " + svc, "lacks UPDATE", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.exec(t, c.grant)
			warned, err := open("svc", "svc-secret", false)
			if c.refused != errors.Is(err, dal.ErrRights) || c.refused != (len(warned) == 0) || !strings.Contains(fmt.Sprint(err, warned), c.says) {
				t.Errorf("%v, warnings %v", err, warned)
			}
			if _, err := open("svc", "svc-secret", true); !errors.Is(err, dal.ErrRights) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("under StrictGrants: %v", err)
			}
			g.exec(t, c.revoke)
			if warned, err := open("svc", "svc-secret", true); err != nil || len(warned) != 0 {
				t.Fatalf("after it was mended: %v, %v", err, warned)
			}
		})
	}
	// schema.Up asks for more, with a login of its own.
	if _, err := schema.Up(t.Context(), g.cfg, heroes("", "")); err != nil {
		t.Error(err)
	}
}

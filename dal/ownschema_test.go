package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// Two tenants with a schema each on one server take turns, each place on one connection. Every row comes from the schema of its tenant, and the
// server's own log shows that no connection was ever switched from one to the other.
func TestOwnSchema_T25_T26_TwoTenantsAlternate(t *testing.T) {
	t.Parallel()
	server := testutil.NewMariaDBCluster(t, 1)[0]
	c := testutil.NewDatabase(t, server)
	end := dal.Endpoint{Network: c.Net, Address: c.Addr, User: c.User, Password: c.Passwd, Database: c.DBName}
	reg, err := tenant.NewStatic(
		tenant.Tenant{ID: "one", Model: tenant.OwnSchema}, tenant.Tenant{ID: "two", Model: tenant.OwnSchema}, tenant.Tenant{ID: "plain", Model: tenant.SharedTable},
	)
	if err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	cfg := dal.Config{Cluster: dal.MySQLCluster(end), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}, MaxOpen: 1}
	up(t, cfg)
	root, err := sql.Open("mysql", end.MySQLConfig().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, text := range []string{"SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = ON"} {
		if _, err := root.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	store, err := dal.Open(t.Context(), dal.WithObserver(cfg, rec))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ids := []tenant.ID{"one", "two", "plain"}
	key := dal.Key("player", "p")
	on := func(id tenant.ID) *gorm.DB { return store.On(tenant.NewContext(t.Context(), id), key) }
	for i, id := range ids { // the same key everywhere, another value
		if err := on(id).Create(&Hero{Model: dal.Model{ID: 1}, PlayerID: "p", Name: string(id), Gold: int64(i)}).Error; err != nil {
			t.Fatal(err)
		}
	}
	handles := map[tenant.ID]*gorm.DB{}
	for _, id := range ids {
		handles[id] = on(id)
	}
	repo, err := dal.NewRepository[Hero](store)
	if err != nil {
		t.Fatal(err)
	}
	// database/sql beneath the handles, with one text for all tenants. The prepared statement and the pool are the first tenant's; whose rows come is said by
	// the context alone.
	const text = "SELECT name FROM heros WHERE tenant_id = ? AND id = 1"
	direct, err := on("one").DB()
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := direct.PrepareContext(tenant.NewContext(t.Context(), "one"), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prepared.Close() }()
	paths := map[string]func(id tenant.ID) (string, error){
		"DB()": func(id tenant.ID) (name string, err error) {
			err = direct.QueryRowContext(tenant.NewContext(t.Context(), id), text, string(id)).Scan(&name)
			return name, err
		},
		"DB(), prepared once": func(id tenant.ID) (name string, err error) {
			err = prepared.QueryRowContext(tenant.NewContext(t.Context(), id), string(id)).Scan(&name)
			return name, err
		},
		"DB(), prepared on a connection": func(id tenant.ID) (name string, err error) {
			ctx := tenant.NewContext(t.Context(), id)
			conn, err := direct.Conn(ctx)
			if err != nil {
				return "", err
			}
			stmt, err := conn.PrepareContext(ctx, text)
			if err == nil {
				err = errors.Join(stmt.QueryRowContext(ctx, string(id)).Scan(&name), stmt.Close())
			}
			return name, errors.Join(err, conn.Close())
		},
		"DB(), in a transaction": func(id tenant.ID) (name string, err error) {
			ctx := tenant.NewContext(t.Context(), id)
			tx, err := direct.BeginTx(ctx, nil)
			if err != nil {
				return "", err
			}
			return name, errors.Join(tx.QueryRowContext(ctx, text, string(id)).Scan(&name), tx.Rollback())
		},
		"PrepareStmt": func(id tenant.ID) (string, error) {
			var h Hero
			err := on(id).Session(&gorm.Session{PrepareStmt: true}).First(&h, 1).Error
			return h.Name, err
		},
		"Connection": func(id tenant.ID) (name string, err error) {
			err = on(id).Connection(func(tx *gorm.DB) error { return tx.Model(&Hero{}).Select("name").Row().Scan(&name) })
			return name, err
		},
		"raw": func(id tenant.ID) (name string, err error) {
			err = on(id).Raw("SELECT name FROM heros WHERE id = ?", 1).Row().Scan(&name)
			return name, err
		},
		"new handle": func(id tenant.ID) (string, error) {
			var h Hero
			err := on(id).First(&h, 1).Error
			return h.Name, err
		},
		"kept handle": func(id tenant.ID) (string, error) {
			var h Hero
			err := handles[id].First(&h, 1).Error
			return h.Name, err
		},
		"generic": func(id tenant.ID) (string, error) {
			h, err := gorm.G[Hero](on(id)).Where("id = 1").First(tenant.NewContext(t.Context(), id))
			return h.Name, err
		},
		"repository": func(id tenant.ID) (string, error) {
			h, err := repo.Get(tenant.NewContext(t.Context(), id), "p", int64(1))
			return h.Name, err
		},
		"transaction": func(id tenant.ID) (name string, err error) {
			err = store.Transaction(tenant.NewContext(t.Context(), id), key, func(_ context.Context, tx *gorm.DB) error {
				return tx.Model(&Hero{}).Select("name").Row().Scan(&name)
			})
			return name, err
		},
		"write, then read": func(id tenant.ID) (string, error) {
			var h Hero
			err := errors.Join(on(id).Model(&Hero{}).Where("id = 1").Update("gold", gorm.Expr("gold + 1")).Error, on(id).First(&h, 1).Error)
			return h.Name, err
		},
	}
	for round := range 5 {
		for name, path := range paths {
			for _, id := range ids {
				if got, err := path(id); err != nil || got != string(id) {
					t.Errorf("%s, round %d: tenant %s reads the row of %q, %v", name, round, id, got, err)
				}
			}
		}
	}
	// A statement of one tenant on the connection or with the values of another is refused.
	for _, id := range ids[1:] {
		var name string
		if err := prepared.QueryRowContext(tenant.NewContext(t.Context(), id), "one").Scan(&name); !errors.Is(err, dal.ErrRefused) {
			t.Errorf("%s asks with the values of one: %q, %v", id, name, err)
		}
	}
	for _, id := range ids {
		r, err := store.Route(tenant.NewContext(t.Context(), id), key)
		if err != nil {
			t.Fatal(err)
		}
		if n := store.StatsOf(r.Place).Connects; n != 1 {
			t.Errorf("place %s used %d connections; the test wants one", r.Place, n)
		}
	}
	// Beside the store: each schema holds one tenant.
	for _, id := range ids {
		p, err := reg.Tenant(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		e, err := cfg.Cluster.Endpoint(dal.Place{Shard: "s1", Schema: p.Placement.Schema}, id)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		var owner string
		if err := root.QueryRow("SELECT COUNT(*), MIN(tenant_id) FROM `"+e.Database+"`.heros").Scan(&n, &owner); err != nil || n != 1 || owner != string(id) {
			t.Errorf("database %s: %d rows, of %q, %v", e.Database, n, owner, err)
		}
	}
	if _, err := root.Exec("SET GLOBAL general_log = OFF"); err != nil {
		t.Fatal(err)
	}
	rows, err := root.Query("SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for rows.Next() {
		var kind, text string
		if err := rows.Scan(&kind, &text); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "heros") && kind != "Prepare" {
			seen++
		}
		if why := switches(kind, text); why != "" {
			t.Errorf("%s: %s: %s", why, kind, text)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	if seen < 3*len(paths)*len(ids) {
		t.Errorf("the server's log holds %d statements of the test", seen)
	}
	for _, text := range rec.take() {
		if why := switches("Query", text); why != "" {
			t.Errorf("%s: %s", why, text)
		}
	}
}

// switches returns why a command changes what a connection's later statements mean for a tenant.
func switches(kind, text string) string {
	upper := strings.ToUpper(strings.TrimSpace(text))
	switch {
	case kind == "Init DB" || kind == "Change user":
		return "T26: a connection was given another database"
	case strings.HasPrefix(upper, "USE "):
		return "T26: USE"
	case strings.HasPrefix(upper, "SET "):
		for _, word := range []string{"TENANT", "SEARCH_PATH", "T_ONE", "T_TWO", "'ONE'", "'TWO'", "'PLAIN'", " @"} {
			if strings.Contains(upper, word) {
				return "T25: a tenant in session state"
			}
		}
	}
	return ""
}

// T44: whatever is cached by the first tenant serves the second with its own rows. Both tenants' rows lie in one table on one shard.
func TestOwnSchema_T44_NothingOfTheFirstTenantIsCached(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	repo, err := dal.NewRepository[Item](g.Store)
	if err != nil {
		t.Fatal(err)
	}
	mine := func(db *gorm.DB) *gorm.DB { return db.Where("qty > ?", 0) } // made once, used by both
	names := func(items []Item, err error) ([]string, error) {
		var out []string
		for _, i := range items {
			out = append(out, string(i.TenantID)+"/"+i.Name)
		}
		return out, err
	}
	for name, read := range map[string]func(ctx context.Context) ([]string, error){
		"Find": func(ctx context.Context) ([]string, error) {
			var i []Item
			return names(i, g.player(ctx).Find(&i).Error)
		},
		"scopes": func(ctx context.Context) ([]string, error) {
			var i []Item
			err := g.player(ctx).Scopes(mine).Find(&i).Error
			return names(i, err)
		},
		"Preload": func(ctx context.Context) ([]string, error) {
			var u []User
			err := g.player(ctx).Preload("Items").Find(&u).Error
			if err != nil || len(u) == 0 {
				return nil, err
			}
			return names(u[0].Items, nil)
		},
		"generic": func(ctx context.Context) ([]string, error) {
			i, err := gorm.G[Item](g.player(ctx)).Where("qty > ?", 0).Find(ctx)
			return names(i, err)
		},
		"repository": func(ctx context.Context) ([]string, error) {
			i, err := repo.Get(ctx, "7", int64(1))
			return names([]Item{i}, err)
		},
		"transaction": func(ctx context.Context) ([]string, error) {
			var i []Item
			err := g.Transaction(ctx, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error { return tx.Find(&i).Error })
			return names(i, err)
		},
		"new session": func(ctx context.Context) ([]string, error) {
			var i []Item
			err := g.player(ctx).Session(&gorm.Session{NewDB: true}).Find(&i).Error
			return names(i, err)
		},
		"reused chain": func(ctx context.Context) ([]string, error) {
			base := g.player(ctx).Where("qty > 0").Session(&gorm.Session{})
			var i []Item
			err := errors.Join(base.Find(&[]Item{}).Error, base.Where("1 = 1").Find(&i).Error)
			return names(i, err)
		},
	} {
		for round := range 3 {
			for ctx, id := range map[context.Context]string{g.a: "a", g.b: "b"} {
				got, err := read(ctx)
				if name == "Find" && len(got) == 0 && err == nil {
					got, err = read(ctx)
				}
				if err != nil || len(got) == 0 && name != "Find" {
					t.Errorf("%s, round %d, tenant %s: %v, %v", name, round, id, got, err)
				}
				for _, row := range got {
					if row != id+"/"+id+"-item" {
						t.Errorf("%s, round %d: tenant %s reads %s", name, round, id, row)
					}
				}
			}
		}
	}
}

// Shifty's table changes its name while the program runs.
type Shifty struct {
	TenantID tenant.ID `gorm:"primaryKey;column:tenant_id"`
	ID       int64     `gorm:"primaryKey;autoIncrement:false"`
	PlayerID string
}

var shiftyName atomic.Value

func (Shifty) TableName() string { return shiftyName.Load().(string) }

// T49: a table's name that the model computes is fixed by the declaration. It cannot carry a tenant's schema, and where it comes out differently
// later it is refused: places that were not used yet ask the model anew.
func TestOwnSchema_T49_DynamicTableName(t *testing.T) { //nolint:paralleltest // it changes a global of its own
	for _, bad := range []string{"t_a.shifty", "other`.`shifty", "shifty; DROP TABLE users", "shifty AS x", ""} {
		shiftyName.Store(bad)
		cfg := dal.Config{Cluster: dal.SQLiteCluster("d", 1), Tables: []dal.Table{dal.Tenant[Shifty]("player", "player_id")}}
		if err := cfg.Validate(); !errors.Is(err, dal.ErrModel) {
			t.Errorf("table %q is declared: %v", bad, err)
		}
	}
	shiftyName.Store("users")
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = []dal.Table{dal.Tenant[Shifty]("player", "player_id"), dal.Tenant[Guild]("guild", "guild_id"), dal.Tenant[Item]("player", "player_id")}
	})
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		t.Fatal(err)
	}
	far := g.keyOn(t, g.other(t))
	if err := g.player(g.a).Find(&[]Shifty{}).Error; err != nil {
		t.Fatal(err)
	}
	g.scopedText(t, "users")
	shiftyName.Store("items") // the second tenant's turn
	for _, ctx := range []context.Context{g.b, g.a} {
		if err := g.player(ctx).Find(&[]Shifty{}).Error; err != nil {
			t.Fatal(err)
		}
		g.scopedText(t, "users") // what was declared, in the place that knows it
	}
	err = g.On(g.a, dal.Key("player", far)).Find(&[]Shifty{}).Error
	g.refusedAs(t, err, dal.ErrShape)
	if r.Place.Shard == g.other(t) {
		t.Fatal("the test needs two places")
	}
}

// careless is a registry that checks nothing.
type careless map[tenant.ID]tenant.Tenant

func (c careless) Tenant(_ context.Context, id tenant.ID) (tenant.Tenant, error) {
	t, ok := c[id]
	if !ok {
		return tenant.Tenant{}, &tenant.UnknownTenantError{ID: id}
	}
	return t, nil
}

// T46: neither a tenant's id nor a schema that a registry names becomes part of a text or a path unless it is a plain name.
func TestOwnSchema_T46_HostileNames(t *testing.T) {
	t.Parallel()
	var connected []dal.Place
	hostile := []string{
		"x`; DROP DATABASE game; --", `x"; DROP SCHEMA public; --`, "x'; --", "../../etc/passwd", "a/b", "a.b", "..", ".", "a b", "a\x00b", "A", "é", "mysql", "information_schema",
		"tdal_control", "public", strings.Repeat("x", 64),
	}
	reg := careless{"fine": {ID: "fine", Model: tenant.OwnSchema, Status: tenant.Active, Placement: tenant.Placement{Schema: "t_fine"}}}
	for i, name := range hostile {
		id := tenant.ID(fmt.Sprint("s", i))
		reg[id] = tenant.Tenant{ID: id, Model: tenant.OwnSchema, Status: tenant.Active, Placement: tenant.Placement{Schema: name}}
		reg[tenant.ID(name)] = tenant.Tenant{ID: tenant.ID(name), Model: tenant.SharedTable, Status: tenant.Active}
	}
	reg["sly"] = tenant.Tenant{ID: "sly", Model: tenant.SharedTable, Status: tenant.Active, Placement: tenant.Placement{Schema: "x`y"}}
	reg["slier"] = tenant.Tenant{ID: "slier", Model: tenant.OwnDatabase, Status: tenant.Active, Placement: tenant.Placement{Shards: []string{"../s1"}}}
	reg["bare"] = tenant.Tenant{ID: "bare", Model: tenant.OwnSchema, Status: tenant.Active} // would be the shared place
	reg["mask"] = tenant.Tenant{ID: "fine", Model: tenant.OwnSchema, Status: tenant.Active, Placement: tenant.Placement{Schema: "t_fine"}}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: []shardrouter.ShardID{"s1"}, Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}}})
	if err != nil {
		t.Fatal(err)
	}
	store, err := dal.OpenFixed(dal.Config{Registry: reg, Tables: gameTables()}, dal.Fixed{Topology: top, Dialect: dal.SQLite, Connect: func(p dal.Place) (driver.Connector, error) {
		connected = append(connected, p)
		return &plainConnector{closed: func() {}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	find := func(id tenant.ID) error {
		return store.On(tenant.NewContext(t.Context(), id), dal.Key("player", "7")).Find(&[]User{}).Error
	}
	for i, name := range hostile {
		if err := find(tenant.ID(fmt.Sprint("s", i))); err == nil || !strings.Contains(err.Error(), "Placement.Schema") {
			t.Errorf("schema %q: %v", name, err)
		}
		if tenant.ID(name).Validate() == nil { // "mysql" is a fine id: its schema is t_mysql
			continue
		}
		if err := find(tenant.ID(name)); !errors.Is(err, tenant.ErrInvalidID) {
			t.Errorf("tenant id %q: %v", name, err)
		}
	}
	for id, want := range map[tenant.ID]string{"sly": "Placement.Schema", "slier": "Placement.Shards", "bare": "schema", "mask": "the registry's answer"} {
		if err := find(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
	for _, p := range connected {
		t.Errorf("place %q was opened", p)
	}
	if err := find("fine"); err != nil || len(connected) != 1 {
		t.Errorf("a plain name: %v, %v", connected, err)
	}
	// A schema file of the store's own folder is never outside of it.
	dir := t.TempDir()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(filepath.Join(dir, "in"), 1), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	up(t, cfg)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries beside the folder: %v", len(entries)-1, err)
	}
}

package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// Hero is the model of the tests on real databases.
type Hero struct {
	dal.Model
	PlayerID string `gorm:"size:255;not null"`
	Name     string
	Gold     int64
}

// heroes is its schema; extra columns and keys can be added.
func heroes(mysqlExtra, sqliteExtra string) schema.Set {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return schema.Set{Name: "game", FS: fstest.MapFS{
		"mysql/0001_heros.sql": file("-- +goose Up\nCREATE TABLE IF NOT EXISTS heros (tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, " +
			"player_id VARBINARY(255) NOT NULL, name VARCHAR(100), gold BIGINT NOT NULL DEFAULT 0, created_at DATETIME(6), updated_at DATETIME(6), PRIMARY KEY (tenant_id, id)" +
			mysqlExtra + ");\n-- +goose Down\nDROP TABLE IF EXISTS heros;\n"),
		"postgres/0001_heros.sql": file("-- +goose Up\nCREATE TABLE IF NOT EXISTS heros (tenant_id VARCHAR(63) COLLATE \"C\" NOT NULL, id BIGINT NOT NULL, " +
			"player_id VARCHAR(255) COLLATE \"C\" NOT NULL, name VARCHAR(100), gold BIGINT NOT NULL DEFAULT 0, created_at TIMESTAMPTZ(6), updated_at TIMESTAMPTZ(6), " +
			"PRIMARY KEY (tenant_id, id)" + sqliteExtra + ");\n-- +goose Down\nDROP TABLE IF EXISTS heros;\n"),
		"sqlite/0001_heros.sql": file("-- +goose Up\nCREATE TABLE IF NOT EXISTS heros (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, name TEXT, " +
			"gold INTEGER NOT NULL DEFAULT 0, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id)" + sqliteExtra + ");\n-- +goose Down\nDROP TABLE IF EXISTS heros;\n"),
	}}
}

// threeModels are the tenants of the tests: one of each isolation model, and a second shared one.
func threeModels(tb testing.TB) *tenant.Static {
	tb.Helper()
	reg, err := tenant.NewStatic(
		tenant.Tenant{ID: "shared-a", Model: tenant.SharedTable}, tenant.Tenant{ID: "shared-b", Model: tenant.SharedTable},
		tenant.Tenant{ID: "schema-c", Model: tenant.OwnSchema}, tenant.Tenant{ID: "base-d", Model: tenant.OwnDatabase},
	)
	if err != nil {
		tb.Fatal(err)
	}
	return reg
}

// clusters returns a cluster of two shards on each kind of database.
func clusters() map[string]func(testing.TB) dal.Cluster {
	return map[string]func(testing.TB) dal.Cluster{
		"sqlite": func(tb testing.TB) dal.Cluster { return dal.SQLiteCluster(tb.TempDir(), 2) },
		"mariadb": func(tb testing.TB) dal.Cluster {
			servers := testutil.SharedMariaDB(tb, 2)
			var ends []dal.Endpoint
			for _, m := range servers {
				cfg := testutil.NewDatabase(tb, m)
				ends = append(ends, dal.Endpoint{Network: cfg.Net, Address: cfg.Addr, User: cfg.User, Password: cfg.Passwd, Database: cfg.DBName})
			}
			c := dal.MySQLCluster(ends...)
			c.LoginSecret = "a secret of the tests"
			return c
		},
		"postgres": func(tb testing.TB) dal.Cluster {
			var ends []dal.Endpoint
			for _, p := range testutil.SharedPostgres(tb, 2) {
				ends = append(ends, testutil.NewPostgresDatabase(tb, p))
			}
			c := dal.PostgresCluster(ends...)
			c.LoginSecret = "a secret of the tests"
			return c
		},
	}
}

// up makes the heroes' table everywhere.
func up(tb testing.TB, cfg dal.Config) {
	tb.Helper()
	if _, err := schema.Up(tb.Context(), cfg, heroes("", "")); err != nil {
		tb.Fatal(err)
	}
}

func TestPlaces_ThreeIsolationModels(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := threeModels(t)
			rec := &recorder{}
			cfg := dal.Config{Cluster: cluster(t), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			if _, err := dal.Open(t.Context(), cfg); !errors.Is(err, dal.ErrNotMigrated) {
				t.Errorf("before schema.Up: %v", err)
			}
			if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
				t.Fatal(err)
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
			tenants, err := reg.Tenants(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			where := map[dal.Place]bool{}
			for _, tn := range tenants {
				ctx := tenant.NewContext(t.Context(), tn.ID)
				for i := int64(1); i <= 20; i++ { // the same ids and players in each tenant
					h := Hero{Model: dal.Model{ID: i}, PlayerID: fmt.Sprint("p", i), Name: string(tn.ID), Gold: i}
					key := dal.Key("player", h.PlayerID)
					if err := store.On(ctx, key).Create(&h).Error; err != nil {
						t.Fatal(err)
					}
					r, err := store.Route(ctx, key)
					if err != nil {
						t.Fatal(err)
					}
					where[r.Place] = true
				}
			}
			if len(where) != 5 { // two shared, two of the schema tenant, one of the database tenant
				t.Errorf("places used: %v", where)
			}
			for _, tn := range tenants {
				ctx := tenant.NewContext(t.Context(), tn.ID)
				for i := int64(1); i <= 20; i++ {
					var h Hero
					if err := store.On(ctx, dal.Key("player", fmt.Sprint("p", i))).First(&h, i).Error; err != nil || h.Name != string(tn.ID) || h.TenantID != tn.ID {
						t.Fatalf("%s, hero %d: %+v, %v", tn.ID, i, h, err)
					}
				}
				res := store.On(ctx, dal.Key("player", "p1")).Model(&Hero{}).Where("1 = 1").Update("gold", 1000)
				if res.Error != nil || res.RowsAffected == 0 || res.RowsAffected > 20 {
					t.Errorf("%s: update of %d rows, %v", tn.ID, res.RowsAffected, res.Error)
				}
			}
			for _, text := range rec.take() {
				if strings.Contains(text, "heros") && !strings.Contains(text, "tenant_id") {
					t.Errorf("left without the tenant: %s", text)
				}
				if up := strings.ToUpper(text); strings.HasPrefix(up, "USE ") || strings.HasPrefix(up, "SET ") {
					t.Errorf("T25, T26: session state for tenancy: %s", text)
				}
			}
		})
	}
}

func TestPlaces_StartUpRefusesWhatCannotBeKeptApart(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: cluster(t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			set := heroes(", UNIQUE KEY u_name (name), KEY k_gold (gold)", ", UNIQUE (name)")
			if _, err := schema.Up(t.Context(), cfg, set); err != nil {
				t.Fatal(err)
			}
			_, err := dal.Open(t.Context(), cfg)
			var m *dal.ModelError
			if !errors.As(err, &m) || m.Table != "heros" || m.Mend == "" || !strings.Contains(err.Error(), "does not begin with tenant_id") {
				t.Errorf("T47: %v", err)
			}
			for _, place := range []string{"in s1:", "in s2:"} {
				if !strings.Contains(err.Error(), place) {
					t.Errorf("the error does not name place %s: %v", place, err)
				}
			}
		})
	}
}

func TestPlaces_T68_OnlyTheTenantThatIsBehindIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(dir, 1), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "s1.t_schema-c.db")
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("one tenant's place stops all: %v", err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	find := func(id tenant.ID) error {
		return store.On(tenant.NewContext(t.Context(), id), dal.Key("player", "p1")).Find(&[]Hero{}).Error
	}
	for range 2 {
		if err := find("schema-c"); !errors.Is(err, dal.ErrNotMigrated) {
			t.Errorf("the tenant without its file: %v", err)
		}
	}
	for _, id := range []tenant.ID{"shared-a", "base-d"} {
		if err := find(id); err != nil {
			t.Errorf("%s pays for it: %v", id, err)
		}
	}
	if err := os.WriteFile(file, saved, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := find("schema-c"); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
}

func TestPlaces_DatabaseOfAnotherPlaceIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(dir, 2), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
		t.Fatal(err)
	}
	one, two := filepath.Join(dir, "s1.db"), filepath.Join(dir, "s2.db")
	for _, mv := range [][2]string{{one, one + ".x"}, {two, one}, {one + ".x", two}} {
		if err := os.Rename(mv[0], mv[1]); err != nil {
			t.Fatal(err)
		}
	}
	_, err := dal.Open(t.Context(), cfg)
	var id *dal.IdentityError
	if !errors.As(err, &id) || !errors.Is(err, dal.ErrIdentity) {
		t.Errorf("two files were swapped: %v", err)
	}
}

func TestPlaces_OtherShardListIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(dir, 2), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
		t.Fatal(err)
	}
	cfg.Cluster = dal.SQLiteCluster(dir, 3)
	if _, err := dal.Open(t.Context(), cfg); !errors.Is(err, dal.ErrUnknownShard) {
		t.Errorf("three shards over a topology of two: %v", err)
	}
}

func TestPlaces_TenantOfTheControlDatabase(t *testing.T) {
	t.Parallel()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), 2), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
		t.Fatal(err)
	}
	open := cfg
	open.Registry = nil // the control database's own
	store, err := dal.Open(t.Context(), open)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	ctx := tenant.NewContext(t.Context(), "base-d")
	if err := store.On(ctx, dal.Key("player", "p1")).Create(&Hero{PlayerID: "p1"}).Error; err != nil {
		t.Error(err)
	}
	late := tenant.NewContext(t.Context(), "late")
	if err := store.On(late, dal.Key("player", "p1")).Create(&Hero{PlayerID: "p1"}).Error; !errors.Is(err, tenant.ErrUnknownTenant) {
		t.Errorf("before Provision: %v", err)
	}
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "late", Model: tenant.OwnDatabase})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Registry = reg
	if _, err := schema.Provision(t.Context(), cfg, "late", heroes("", "")); err != nil {
		t.Fatal(err)
	}
	h := Hero{PlayerID: "p1"}
	if err := store.On(late, dal.Key("player", "p1")).Create(&h).Error; err != nil || h.ID == 0 {
		t.Errorf("after Provision: %+v, %v", h, err)
	}
}

func TestPlaces_RegistryKnowsATenantThatWasNotProvisioned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(dir, 1), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
		t.Fatal(err)
	}
	for _, model := range []tenant.Model{tenant.OwnSchema, tenant.OwnDatabase} {
		reg := growing{threeModels(t), tenant.Tenant{ID: "late", Model: model}}
		cfg.Registry = reg
		store, err := dal.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.On(tenant.NewContext(t.Context(), "late"), dal.Key("player", "p1")).Find(&[]Hero{}).Error; !errors.Is(err, dal.ErrNotMigrated) {
			t.Errorf("%v: %v", model, err)
		}
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// growing is a registry that learns of a tenant after the store was opened.
type growing struct {
	*tenant.Static
	late tenant.Tenant
}

func (g growing) Tenant(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	if id == g.late.ID {
		return tenant.Place(withStatus(g.late))
	}
	return g.Static.Tenant(ctx, id)
}

func withStatus(t tenant.Tenant) tenant.Tenant {
	t.Status = tenant.Active
	return t
}

// servers are the databases that are servers, and so have locks between connections.
var servers = []string{"mariadb", "postgres"}

func TestPlaces_TimedOutWriteIsATimeout(t *testing.T) {
	t.Parallel()
	for _, kind := range servers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: clusters()[kind](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			store := openHeroes(t, cfg)
			ctx := tenant.NewContext(t.Context(), "shared-a")
			key := dal.Key("player", "p1")
			if err := store.On(ctx, key).Create(&Hero{Model: dal.Model{ID: 1}, PlayerID: "p1"}).Error; err != nil {
				t.Fatal(err)
			}
			err := store.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
				if err := tx.Model(&Hero{}).Where("id = 1").Update("gold", 1).Error; err != nil {
					return err
				}
				short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				if err := store.On(short, key).Model(&Hero{}).Where("id = 1").Update("gold", 2).Error; !dal.IsTimeout(err) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a write that waits for the row: %v", err)
				}
				if err := store.On(ctx, key).Model(&Hero{}).Where("id = 1").Update("gold", 3).Error; !dal.IsRetryable(err) { // LockWait
					t.Errorf("a write that waits longer than LockWait: %v", err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPlaces_DeadlockPoisons(t *testing.T) {
	t.Parallel()
	for _, kind := range servers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: clusters()[kind](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			if _, err := schema.Up(t.Context(), cfg, heroes("", "")); err != nil {
				t.Fatal(err)
			}
			store, err := dal.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = store.Close(context.Background()) }()
			ctx := tenant.NewContext(t.Context(), "shared-a")
			key := dal.Key("player", "p1")
			for i := int64(1); i <= 2; i++ {
				if err := store.On(ctx, key).Create(&Hero{Model: dal.Model{ID: i}, PlayerID: "p1"}).Error; err != nil {
					t.Fatal(err)
				}
			}
			// Two transactions take the two rows in opposite order; each waits until the other holds its first.
			ready := []chan struct{}{make(chan struct{}), make(chan struct{})}
			ends := make(chan error, 2)
			for me := range 2 {
				go func() {
					ends <- store.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
						add := func(id int) error {
							return tx.Model(&Hero{}).Where("id = ?", id).Update("gold", gorm.Expr("gold + 1")).Error
						}
						if err := add(1 + me); err != nil {
							return err
						}
						close(ready[me])
						<-ready[1-me]
						_ = add(2 - me) // swallowed: the commit must still fail for the victim
						return nil
					})
				}()
			}
			var failed, fine int
			for range 2 {
				err := <-ends
				switch {
				case err == nil:
					fine++
				case errors.Is(err, wire.ErrPoisoned) && dal.IsRetryable(err):
					failed++
				default:
					t.Errorf("unexpected: %v", err)
				}
			}
			if fine != 1 || failed != 1 {
				t.Errorf("%d committed, %d poisoned; want 1 and 1", fine, failed)
			}
			var sum int64
			if err := store.On(ctx, key).Model(&Hero{}).Select("SUM(gold)").Row().Scan(&sum); err != nil || sum != 2 {
				t.Errorf("sum %d, %v; want the winner's 2", sum, err)
			}
		})
	}
}

func TestPlaces_T38_TenantColumnIsBinary(t *testing.T) {
	t.Parallel()
	cfg := dal.Config{Cluster: clusters()["mariadb"](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	up(t, cfg)
	var level string
	ep, err := cfg.Cluster.Endpoint(dal.Place{Shard: "s1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("mysql", ep.MySQLConfig().FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if err := raw.QueryRow("SELECT collation_name FROM information_schema.columns WHERE table_schema = ? AND table_name = 'heros' AND column_name = 'tenant_id'", ep.Database).Scan(&level); err != nil || level != "ascii_bin" {
		t.Errorf("T38: tenant_id is %q, %v", level, err)
	}
}

package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/fstest"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// rivalSet makes the tables of the differential test by migrations.
func rivalSet() schema.Set {
	files := fstest.MapFS{}
	for folder, my := range map[string]bool{"sqlite": false, "mysql": true, "postgres": false} {
		for i, text := range rivalDDL(my, "") {
			files[fmt.Sprintf("%s/%04d_table.sql", folder, i+1)] = &fstest.MapFile{Data: []byte(
				"-- +goose Up\nCREATE TABLE IF NOT EXISTS" + text[len("CREATE TABLE"):] + ";\n-- +goose Down\nDROP TABLE IF EXISTS " + rivalNames[i] + ";\n")}
		}
	}
	return schema.Set{Name: "rivals", FS: files}
}

// rivalNames are the tables in the order of rivalDDL.
var rivalNames = []string{"actors", "tools", "jottings", "guilds", "prices", "jobs"}

// mariaDBWorlds returns an opener of duels on a MariaDB server: one store for the four tenants of a worker, and a database for each of them alone.
func mariaDBWorlds(server *testutil.MariaDB) func(tb testing.TB, rival int, sum *tally) *duel {
	var store *dal.Store
	var shared *sql.DB
	return func(tb testing.TB, rival int, sum *tally) *duel {
		tb.Helper()
		if rival == 0 {
			cfg := testutil.NewDatabase(tb, server)
			shared = rawMariaDB(tb, cfg)
			store = openRivals(tb, dal.MySQLCluster(dal.Endpoint{Network: cfg.Net, Address: cfg.Addr, User: cfg.User, Password: cfg.Passwd, Database: cfg.DBName}))
		}
		id := rivals[rival]
		d := &duel{id: id, shared: shared, single: rawMariaDB(tb, testutil.NewDatabase(tb, server)), my: true, tally: sum, store: store}
		for _, text := range rivalDDL(true, string(id)) {
			if _, err := d.single.Exec(text); err != nil {
				tb.Fatal(err)
			}
		}
		d.bind(tb, &mysql.Dialector{Config: &mysql.Config{
			Conn: d.single, SkipInitializeWithVersion: true, DontSupportForShareClause: true, DontSupportNullAsDefaultValue: true,
		}})
		return d
	}
}

// openRivals makes the tables and opens a store of the four tenants.
func openRivals(tb testing.TB, cluster dal.Cluster) *dal.Store {
	tb.Helper()
	cfg := dal.Config{Cluster: cluster, Registry: rivalRegistry(tb), Tables: rivalTables(), NodeID: 1}
	if _, err := schema.Up(tb.Context(), cfg, rivalSet()); err != nil {
		tb.Fatal(err)
	}
	store, err := dal.Open(tb.Context(), cfg)
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
	return store
}

// rivalRegistry knows the four tenants.
func rivalRegistry(tb testing.TB) *tenant.Static {
	tb.Helper()
	var tenants []tenant.Tenant
	for _, id := range rivals {
		tenants = append(tenants, tenant.Tenant{ID: id, Model: tenant.SharedTable})
	}
	reg, err := tenant.NewStatic(tenants...)
	if err != nil {
		tb.Fatal(err)
	}
	return reg
}

// rawMariaDB opens a database as the store's pools do.
func rawMariaDB(tb testing.TB, cfg *mysqldriver.Config) *sql.DB {
	tb.Helper()
	cfg = cfg.Clone()
	cfg.ClientFoundRows, cfg.ParseTime, cfg.InterpolateParams, cfg.Loc = true, true, true, time.UTC
	cfg.MultiStatements = true // the tables are filled by one call
	cfg.Params = map[string]string{"sql_mode": "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'", "time_zone": "'+00:00'"}
	connector, err := mysqldriver.NewConnector(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	db := sql.OpenDB(connector)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// startRivalServer returns the process's server. For a long run it does not wait for its disk at each commit, and gives up what takes too long: it runs
// for ever on some texts.
func startRivalServer(tb testing.TB) *testutil.MariaDB {
	tb.Helper()
	server := testutil.SharedMariaDB(tb, 1)[0]
	if os.Getenv("TENANTDAL_DIFFERENTIAL") != "" {
		c, err := mysqldriver.NewConnector(server.MySQLConfig())
		if err != nil {
			tb.Fatal(err)
		}
		db := sql.OpenDB(c)
		_, err = db.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 0, GLOBAL max_statement_time = 10")
		if err := errors.Join(err, db.Close()); err != nil {
			tb.Fatal(err)
		}
	}
	return server
}

func TestDifferential_MariaDB(t *testing.T) {
	t.Parallel()
	runDifferential(t, "mariadb", scopedShapes, 6*time.Second, mariaDBWorlds(startRivalServer(t)))
}

// TestDifferential_GateMariaDB is TestDifferential_Gate in MySQL's dialect.
func TestDifferential_GateMariaDB(t *testing.T) {
	t.Parallel()
	worlds := mariaDBWorlds(startRivalServer(t))
	runDifferential(t, "gate on mariadb", gateShapes, 3*time.Second, func(tb testing.TB, rival int, sum *tally) *duel {
		d := worlds(tb, rival, sum)
		d.throughGate()
		return d
	})
}

// Package testutil helps to test code that is built on tenantdal: a store without a database, stores over temporary files, real
// servers that a test starts for itself, and the checks that go with them. It is public, so that services can use it in their own tests; no other package of tenantdal imports it
// outside tests and examples.
//
// # A store without a database
//
// [NewMockStore] gives a service's unit tests a store in which a sqlmock stands behind each shard. The exact SQL is part of the
// test, and a statement that is not bound to its tenant fails it.
//
//	m := testutil.NewMockStore(t, []dal.Table{dal.Tenant[Item]("player", "player_id")})
//	m.On("acme", dal.Key("player", "7")).ExpectQuery("SELECT * FROM `items` WHERE `items`.`tenant_id` = ?").
//		WithArgs("acme").WillReturnRows(sqlmock.NewRows([]string{"id", "name"}).AddRow(1, "sword"))
//	service := NewService(m.Store)
//
// # Stores over SQLite files
//
// [NewSQLiteStore] gives a store over real databases that need nothing but Go, with the schema made by package schema.
//
//	store := testutil.NewSQLiteStore(t, dal.Config{Tables: tables}, schema.Set{Name: "game", FS: files})
//
// # A shadow run
//
// [RunShadow] calls every method of a repository beside canary rows of another tenant with equal keys, and fails with the method, the statement and the
// canary when anything of the other tenant shows or changes.
//
//	testutil.RunShadow(t, testutil.Shadow[*Inventory]{
//		Config: dal.Config{Tables: tables},
//		Sets:   []schema.Set{{Name: "game", FS: files}},
//		New:    func(w testutil.ShadowWorld) (*Inventory, error) { return NewInventory(w.Store) },
//	})
//
// # MariaDB servers
//
// Locks, isolation levels, deadlocks and time-outs are only worth testing on a real server. [StartMariaDB] starts an installed
// mariadbd as a process of its own: private data directory, private unix socket, no network, no system configuration.
//
//	server, err := testutil.StartMariaDB(ctx, testutil.MariaDBConfig{Dir: dir})
//	if err != nil {
//		return err // *NotInstalledError names the package to install
//	}
//	defer server.Stop(ctx)
//	connector, err := mysql.NewConnector(server.MySQLConfig())
//	db := sql.OpenDB(connector)
//
// In a test, one line gives running servers that are gone when the test is over, and skips the test where there is no
// mariadbd:
//
//	servers := testutil.NewMariaDBCluster(t, 3)
//	cfg := testutil.NewDatabase(t, servers[0]) // a database of this test's own
//
// [SharedMariaDB] hands out servers that all tests of one process share, which costs the start only once.
//
// A test run with TENANTDAL_REQUIRE_MARIADB=1 in its environment fails instead of skipping; `make test` sets it.
//
// # PostgreSQL servers
//
// [StartPostgres], [NewPostgresCluster] and [SharedPostgres] do the same with an installed postgres, which refuses to run as root and so runs as another
// user there; [NewPostgresDatabase] gives a test a database of its own. TENANTDAL_REQUIRE_POSTGRES=1 is the twin of the variable above.
//
//	cluster := dal.PostgresCluster(testutil.NewPostgresDatabase(t, testutil.SharedPostgres(t, 1)[0]))
//	cluster.LoginSecret = "of the tests"
//
// # Redis servers
//
// [StartRedis] gives a test a redis-server of its own, which it may kill and start again. TENANTDAL_REQUIRE_REDIS=1 is one more of these variables.
//
//	client := redis.NewClient(&redis.Options{Network: "unix", Addr: testutil.StartRedis(t).Socket()})
//
// The servers run wherever their programs do and the operating system is a unix; elsewhere [StartMariaDB] and [StartPostgres] return an error that
// is [errors.ErrUnsupported], and [StartRedis] skips the test.
package testutil

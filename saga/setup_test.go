package saga_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

func TestMain(m *testing.M) {
	_ = mysql.SetLogger(log.New(io.Discard, "", 0)) // it reports each connection that a test kills
	code := m.Run()
	if err := errors.Join(testutil.StopSharedMariaDB(), testutil.StopSharedPostgres()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// The tenants of every world, one of each model and a second shared one with equal keys.
const (
	acme   tenant.ID = "acme"
	globex tenant.ID = "globex"
	delta  tenant.ID = "delta" // a schema of its own
	omega  tenant.ID = "omega" // a database of its own
)

// everyModel are the tenants of a world that names none.
var everyModel = []tenant.Tenant{
	{ID: acme, Model: tenant.SharedTable},
	{ID: globex, Model: tenant.SharedTable},
	{ID: delta, Model: tenant.OwnSchema},
	{ID: omega, Model: tenant.OwnDatabase},
	{ID: "asleep", Model: tenant.SharedTable, Status: tenant.Suspended},
}

// watcher is an observer whose hooks a test swaps.
type watcher struct {
	before atomic.Pointer[func(context.Context, wire.Event) error]
	after  atomic.Pointer[func(context.Context, wire.Event, error)]
}

func (w *watcher) Before(ctx context.Context, e wire.Event) error {
	if f := w.before.Load(); f != nil {
		return (*f)(ctx, e)
	}
	return nil
}

func (w *watcher) After(ctx context.Context, e wire.Event, err error) {
	if f := w.after.Load(); f != nil {
		(*f)(ctx, e, err)
	}
}

func (w *watcher) onBefore(f func(context.Context, wire.Event) error) { w.before.Store(&f) }

func (w *watcher) onAfter(f func(context.Context, wire.Event, error)) { w.after.Store(&f) }

func (w *watcher) off() {
	w.before.Store(nil)
	w.after.Store(nil)
}

// world is a set of databases with a store over them.
type world struct {
	*testing.T
	cfg   dal.Config
	store *dal.Store
	watch *watcher
	sys   context.Context
	guild atomic.Int64 // for fresh names

	killed bool // idle connections were killed, and closing them is an error
}

// open makes the databases of cfg and a store over them.
func open(t *testing.T, cfg dal.Config, tenants ...tenant.Tenant) *world {
	t.Helper()
	if len(tenants) == 0 {
		tenants = everyModel
	}
	registry, err := tenant.NewStatic(tenants...)
	if err != nil {
		t.Fatal(err)
	}
	return openWith(t, cfg, registry)
}

// openWith is open with a registry of the test's own.
func openWith(t *testing.T, cfg dal.Config, registry tenant.Registry) *world {
	t.Helper()
	w := &world{T: t, watch: &watcher{}}
	w.sys = tenant.System(t.Context(), "test", saga.TableNames()...)
	cfg.Registry, cfg.Tables, cfg.NodeID = registry, saga.Tables(), 1
	cfg.Quota.MaxConns = 16
	if _, err := schema.Up(t.Context(), cfg, schema.Saga()); err != nil {
		t.Fatalf("schema.Up: %v", err)
	}
	w.cfg = dal.WithObserver(cfg, w.watch)
	w.store = w.openStore()
	return w
}

// openStore opens another store over the same databases, as another process would.
func (w *world) openStore() *dal.Store {
	w.Helper()
	store, err := dal.Open(w.Context(), w.cfg)
	if err != nil {
		w.Fatalf("dal.Open: %v", err)
	}
	w.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil && !w.killed {
			w.Errorf("Store.Close: %v", err)
		}
	})
	return store
}

// onSQLite opens a world of n files.
func onSQLite(t *testing.T, n int, tenants ...tenant.Tenant) *world {
	t.Helper()
	return open(t, dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), n)}, tenants...)
}

// onMariaDB opens a world of databases on n servers that all tests share.
func onMariaDB(t *testing.T, n int, tenants ...tenant.Tenant) *world {
	t.Helper()
	return open(t, dal.Config{Cluster: mariaCluster(t, testutil.SharedMariaDB(t, n))}, tenants...)
}

func mariaCluster(t *testing.T, servers []*testutil.MariaDB) dal.Cluster {
	t.Helper()
	shards := make([]dal.Endpoint, len(servers))
	for i, s := range servers {
		db := testutil.NewDatabase(t, s)
		shards[i] = dal.Endpoint{Network: db.Net, Address: db.Addr, User: db.User, Password: db.Passwd, Database: "x" + db.DBName[2:14]}
	}
	c := dal.MySQLCluster(shards...)
	c.LoginSecret = "of the tests"
	return c
}

func onPostgres(t *testing.T, n int, tenants ...tenant.Tenant) *world {
	t.Helper()
	return open(t, dal.Config{Cluster: postgresCluster(t, testutil.SharedPostgres(t, n))}, tenants...)
}

func postgresCluster(t *testing.T, servers []*testutil.Postgres) dal.Cluster {
	t.Helper()
	shards := make([]dal.Endpoint, len(servers))
	for i, s := range servers {
		shards[i] = testutil.NewPostgresDatabase(t, s)
	}
	c := dal.PostgresCluster(shards...)
	c.LoginSecret = "of the tests"
	return c
}

// onEach runs f on SQLite, MariaDB and PostgreSQL.
func onEach(t *testing.T, n int, f func(w *world), tenants ...tenant.Tenant) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(onSQLite(t, n, tenants...))
	})
	onServers(t, n, f, tenants...)
}

// onServers runs f on MariaDB and PostgreSQL, which have locks between connections.
func onServers(t *testing.T, n int, f func(w *world), tenants ...tenant.Tenant) {
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		f(onMariaDB(t, n, tenants...))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(onPostgres(t, n, tenants...))
	})
}

// donations returns donations over the world's store that are closed with the test.
func (w *world) donations(cfg saga.Config) *saga.Donations {
	w.Helper()
	return w.donationsOver(w.store, cfg)
}

func (w *world) donationsOver(store *dal.Store, cfg saga.Config) *saga.Donations {
	w.Helper()
	d, err := saga.NewDonations(store, cfg)
	if err != nil {
		w.Fatalf("NewDonations: %v", err)
	}
	w.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			w.Errorf("Donations.Close: %v", err)
		}
	})
	return d
}

// quiet is a configuration whose polls never come by themselves.
func quiet() saga.Config {
	return saga.Config{VoidAfter: saga.Never, PollMin: 24 * time.Hour, PollMax: 24 * time.Hour, PlacesEvery: 24 * time.Hour}
}

// as returns a context of the tenant.
func (w *world) as(id tenant.ID) context.Context { return tenant.NewContext(w.Context(), id) }

// must fails the test on an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fresh returns a donation of a player with bag items to an open guild, both of names never used before.
func (w *world) fresh(d *saga.Donations, id tenant.ID, bag, qty int64) saga.Donation {
	w.Helper()
	n := strconv.FormatInt(w.guild.Add(1), 10)
	don := saga.Donation{Key: "k", Player: "p" + n, Guild: "g" + n, Item: "gold", Qty: qty}
	w.must(d.Grant(w.as(id), "grant", don.Player, don.Item, bag))
	w.must(d.SetGuild(w.as(id), don.Guild, true))
	return don
}

// bag reads a cell of a bag through the data access layer, as a service would; 0 when it is not there.
func (w *world) bag(id tenant.ID, player, item string) int64 {
	w.Helper()
	var rows []saga.Bag
	w.must(w.store.On(w.as(id), dal.Key("player", player)).Where("player_id = ? AND item_id = ?", w.text(player), w.text(item)).Find(&rows).Error)
	if len(rows) == 0 {
		return 0
	}
	return rows[0].Qty
}

// warehouse reads a cell of a warehouse; 0 when it is not there.
func (w *world) warehouse(id tenant.ID, guild, item string) int64 {
	w.Helper()
	var rows []saga.Warehouse
	w.must(w.store.On(w.as(id), dal.Key("guild", guild)).Where("guild_id = ? AND item_id = ?", w.text(guild), w.text(item)).Find(&rows).Error)
	if len(rows) == 0 {
		return 0
	}
	return rows[0].Qty
}

func (w *world) text(s string) any {
	if w.cfg.Cluster.Dialect == dal.SQLite {
		return s
	}
	return []byte(s)
}

// journal reads a donation's journal row.
func (w *world) journal(d *saga.Donations, id tenant.ID, don saga.Donation) saga.Journal {
	w.Helper()
	var row saga.Journal
	saga := sagaID(id, don)
	err := w.store.On(w.as(id), dal.Key("player", don.Player)).Where("saga_id = ?", saga[:]).Take(&row).Error
	w.must(err)
	return row
}

// decisions counts the decision rows of a donation.
func (w *world) decisions(id tenant.ID, don saga.Donation) []saga.Decision {
	w.Helper()
	var rows []saga.Decision
	x := sagaID(id, don)
	w.must(w.store.On(w.as(id), dal.Key("guild", don.Guild)).Where("saga_id = ?", x[:]).Find(&rows).Error)
	return rows
}

func sagaID(id tenant.ID, don saga.Donation) saga.ID { return saga.DeriveID(id, don.Player, don.Key) }

// wantState fails unless the donation stands where it should.
func (w *world) wantState(d *saga.Donations, id tenant.ID, don saga.Donation, want saga.State, reason saga.Reason) {
	w.Helper()
	rec, err := d.State(w.as(id), don.Player, don.Key)
	if err != nil || rec.State != want || rec.Reason != reason {
		w.Errorf("State of %+v = %v %q, %v, want %v %q", don, rec.State, rec.Reason, err, want, reason)
	}
}

// wantBalances fails unless bag and warehouse hold what they should.
func (w *world) wantBalances(id tenant.ID, don saga.Donation, bag, warehouse int64) {
	w.Helper()
	if gotBag, gotWarehouse := w.bag(id, don.Player, don.Item), w.warehouse(id, don.Guild, don.Item); gotBag != bag || gotWarehouse != warehouse {
		w.Errorf("bag and warehouse of %+v = %d and %d, want %d and %d", don, gotBag, gotWarehouse, bag, warehouse)
	}
}

// wantConserved fails unless every account balances.
func (w *world) wantConserved(d *saga.Donations) {
	w.Helper()
	all, err := d.Conservation(w.sys)
	w.must(err)
	if len(all) == 0 {
		w.Error("Conservation() is empty")
	}
	for _, b := range all {
		if !b.Conserved() {
			w.Errorf("not conserved: %+v: held %v", b, b.Held())
		}
	}
}

// wantNothingOpen fails when a donation still holds items.
func (w *world) wantNothingOpen(d *saga.Donations) {
	w.Helper()
	all, err := d.Pending(w.sys)
	w.must(err)
	for _, b := range all {
		if b.Open() > 0 {
			w.Errorf("open in %s: %+v", b.Place, b)
		}
	}
}

// raw opens a place's database beside the library, as an operator's shell does.
func (w *world) raw(p dal.Place, owner tenant.ID) *sql.DB {
	w.Helper()
	e, err := w.cfg.Cluster.Endpoint(p, owner)
	w.must(err)
	var db *sql.DB
	switch e.Dialect {
	case dal.SQLite:
		path := (&url.URL{Scheme: "file", Opaque: url.PathEscape(filepath.ToSlash(e.Path)), RawQuery: "_pragma=busy_timeout(10000)&_txlock=immediate"}).String()
		db, err = sql.Open("sqlite", path)
		w.must(err)
	case dal.Postgres:
		op := w.cfg.Cluster.Server(p)
		cfg, perr := pgx.ParseConfig("sslmode=disable port=5432 host=" + filepath.Dir(op.Address))
		w.must(perr)
		cfg.User, cfg.Password, cfg.Database = op.User, op.Password, e.Database
		db = sql.OpenDB(questions{stdlib.GetConnector(*cfg)})
	default:
		connector, cerr := mysql.NewConnector(e.MySQLConfig())
		w.must(cerr)
		db = sql.OpenDB(connector)
	}
	w.Cleanup(func() { _ = db.Close() })
	return db
}

// questions is a connector to PostgreSQL whose texts have ? for placeholders.
type questions struct{ driver.Connector }

func (q questions) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := q.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return asking{c.(*stdlib.Conn)}, nil
}

type asking struct{ *stdlib.Conn }

func (a asking) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return a.Conn.ExecContext(ctx, wire.Dollars(text), args)
}

func (a asking) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return a.Conn.QueryContext(ctx, wire.Dollars(text), args)
}

// sourceOf and targetOf return a donation's places.
func (w *world) sourceOf(d *saga.Donations, id tenant.ID, don saga.Donation) dal.Place {
	w.Helper()
	p, _, err := d.SourceForTest(w.as(id), don)
	w.must(err)
	return p
}

func (w *world) targetOf(d *saga.Donations, id tenant.ID, don saga.Donation) dal.Place {
	w.Helper()
	_, p, err := d.SourceForTest(w.as(id), don)
	w.must(err)
	return p
}

// expire makes a donation's time be over.
func (w *world) expire(d *saga.Donations, id tenant.ID, don saga.Donation) {
	w.Helper()
	x := sagaID(id, don)
	_, err := w.raw(w.sourceOf(d, id, don), id).ExecContext(w.Context(), "UPDATE saga_out SET void_at = 1 WHERE tenant_id = ? AND saga_id = ?", string(id), x[:])
	w.must(err)
}

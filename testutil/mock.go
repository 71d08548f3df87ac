package testutil

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// MockConfig is what [NewMockStoreWith] makes a store of. The zero value of a field means its documented default; only Config.Tables has none.
type MockConfig struct {
	// Config is the store's own: the declared tables, quotas, logger, and so on, as the service has them in production. Cluster is not used. A zero
	// NodeID means 1.
	//
	// A nil Registry means the one of Tenants.
	Config dal.Config

	// Shards are the default shards.
	//
	// Nil means s1 and s2.
	Shards []shardrouter.ShardID

	// Tenants are the known tenants, with their limits and status, each completed by [tenant.Place]; every other is unknown. Tenants with a schema or
	// a database of their own get mocks of their own, see [MockStore.On].
	//
	// Nil means that every well-formed id is an active tenant of the shared tables. Tenants and Config.Registry are not given together.
	Tenants []tenant.Tenant
}

// MockStore is a [dal.Store] without a database: behind each shard stands a sqlmock, which compares the SQL of every statement with what the test
// expects, text for text.
//
//	m := testutil.NewMockStore(t, []dal.Table{dal.Tenant[Item]("player", "player_id")})
//	m.On("acme", dal.Key("player", "7")).
//		ExpectQuery("SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (`items`.`player_id` = ?)").
//		WithArgs("acme", "7").
//		WillReturnRows(sqlmock.NewRows([]string{"id", "name"}).AddRow(1, "sword"))
//	err := m.Store.On(ctx, dal.Key("player", "7")).Where("`items`.`player_id` = ?", "7").Find(&items).Error
//
// The text is MySQL's, as the store sends it in production. All of the store is real, routing, quotas and refusals included; only what stands behind
// the driver is not. Nothing is sent but what the test's own code sends.
//
// It fails the test when
//
//   - a statement is about to reach a mock whose scope is not that of its context: the statement is refused with an [*UnscopedError];
//   - an expectation is not met when the test is over. Then the store is closed as well.
//
// A statement that is not bound to its tenant never gets that far: the store refuses it as in production, with a [*dal.ShapeError] or [dal.ErrRefused].
// Statements under [tenant.System] are let through and listed in the test's log.
//
// Expectations are registered before the code under test runs; MatchExpectationsInOrder and all else is sqlmock's. Beside the text:
//
//   - gorm puts each Create, Update and Delete into a transaction of its own: ExpectBegin, ExpectExec, ExpectCommit, or ExpectRollback after an error.
//   - A transaction inside a transaction is ExpectExec("SAVEPOINT sp"), and ExpectExec("ROLLBACK TO SAVEPOINT sp") after an error: the random number in
//     the name of gorm's savepoints is passed over.
//   - Row ids and times differ from run to run: sqlmock.AnyArg() stands for them.
//   - The shards' expectations are apart: a statement for a key is expected on [MockStore.On] of that key.
//   - A query that was waiting when its context ended returns sqlmock.ErrCancelled, which is the context's error as well, as with a server.
//
// A MockStore works inside a testing/synctest bubble when it is made inside of it. It is safe for concurrent use; the methods that may fail the test run
// on its goroutine.
type MockStore struct {
	// Store is the store under the code that is tested.
	Store *dal.Store

	tb  TB
	log mockLog

	mu     sync.Mutex // guards mocks and closed
	mocks  map[dal.Place]*mock
	closed bool
}

// mock is one place's sqlmock.
type mock struct {
	sqlmock.Sqlmock
	keep   *sql.DB // holds one connection: sqlmock forgets a DSN without any
	dsn    string
	driver driver.Driver
}

// mocks counts the mocks of this process, since sqlmock takes each DSN once.
var mocks atomic.Int64

// NewMockStore returns a store of these tables over mocked shards, s1 and s2 when none are named, on which every well-formed tenant is known. It
// fails the test when the tables cannot be declared so.
func NewMockStore(tb TB, tables []dal.Table, shards ...shardrouter.ShardID) *MockStore {
	tb.Helper()
	return NewMockStoreWith(tb, MockConfig{Config: dal.Config{Tables: tables}, Shards: shards})
}

// NewMockStoreWith is [NewMockStore] with a configuration: named tenants, their limits, quotas, a logger.
func NewMockStoreWith(tb TB, cfg MockConfig) *MockStore {
	tb.Helper()
	m := &MockStore{tb: tb, mocks: map[dal.Place]*mock{}}
	tb.Cleanup(m.finish)
	if err := m.open(cfg); err != nil {
		tb.Fatalf("NewMockStore: %v", err)
	}
	return m
}

func (m *MockStore) open(cfg MockConfig) error {
	shards := cfg.Shards
	if len(shards) == 0 {
		shards = []shardrouter.ShardID{"s1", "s2"}
	}
	registry, tenants, err := mockRegistry(m.tb.Context(), cfg)
	if err != nil {
		return err
	}
	topology, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
		Epoch: 1, Shards: shards, Dedicated: dedicated(tenants), Keyspaces: cfg.Config.Keyspaces(),
	})
	if err != nil {
		return err
	}
	m.log.report = m.tb.Errorf
	cfg.Config.Registry = registry
	store, err := dal.OpenFixed(dal.WithObserver(cfg.Config, &m.log), dal.Fixed{
		Topology: topology,
		Dialect:  dal.MySQL,
		Connect: func(p dal.Place) (driver.Connector, error) {
			mk, err := m.at(p)
			if err != nil {
				return nil, err
			}
			return &mockConnector{mk.driver, mk.dsn}, nil
		},
	})
	if err != nil {
		return err
	}
	m.Store = store
	for _, s := range topology.Shards() {
		if _, err := m.at(dal.Place{Shard: s}); err != nil {
			return err
		}
	}
	return nil
}

// at returns the mock of a place, made at its first use.
func (m *MockStore) at(p dal.Place) (*mock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mk := m.mocks[p]; mk != nil {
		return mk, nil
	}
	if m.closed {
		return nil, fmt.Errorf("testutil: place %s: the test is over", p)
	}
	dsn := fmt.Sprintf("testutil/%d/%s", mocks.Add(1), p)
	keep, sm, err := sqlmock.NewWithDSN(dsn, sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(equalSQL)))
	if err != nil {
		return nil, fmt.Errorf("testutil: place %s: %w", p, err)
	}
	mk := &mock{Sqlmock: sm, keep: keep, dsn: dsn, driver: keep.Driver()}
	m.mocks[p] = mk
	return mk, nil
}

// savepointName is how gorm names the savepoint of a nested transaction.
var savepointName = regexp.MustCompile(`^((?:ROLLBACK TO )?SAVEPOINT sp)[0-9]+$`)

// equalSQL compares texts, but for runs of blanks and the random number in the name of a savepoint.
func equalSQL(expected, actual string) error {
	if name := savepointName.FindStringSubmatch(actual); name != nil {
		actual = name[1]
	}
	return sqlmock.QueryMatcherEqual.Match(expected, actual)
}

// Shard returns the mock of a default shard, or of a shard that a tenant has for itself. It fails the test for a shard that is neither.
func (m *MockStore) Shard(id shardrouter.ShardID) sqlmock.Sqlmock {
	m.tb.Helper()
	return m.Place(dal.Place{Shard: id})
}

// Place returns the mock of a place. It fails the test for a place that is neither the topology's nor one of the tenants'.
func (m *MockStore) Place(p dal.Place) sqlmock.Sqlmock {
	m.tb.Helper()
	places, err := m.Store.Places(m.system())
	if err == nil && !slices.Contains(places, p) {
		err = &dal.UnknownShardError{Shard: p.Shard}
		if p.Schema != "" {
			err = fmt.Errorf("testutil: no tenant has the place %s", p)
		}
	}
	if err != nil {
		m.tb.Fatalf("MockStore.Place(%s): %v", p, err)
	}
	return m.mustAt(p)
}

func (m *MockStore) mustAt(p dal.Place) sqlmock.Sqlmock {
	m.tb.Helper()
	mk, err := m.at(p)
	if err != nil {
		m.tb.Fatalf("MockStore: %v", err)
	}
	return mk.Sqlmock
}

// On returns the mock that a tenant's key lands on: the one of [MockStore.Owner] or, for a tenant with a schema of its own, that schema's. It fails the
// test for an unknown tenant, an unknown keyspace and a bad key.
func (m *MockStore) On(id tenant.ID, key dal.KeyRef) sqlmock.Sqlmock {
	m.tb.Helper()
	return m.mustAt(m.locate(id, key))
}

// Owner returns the shard that a tenant's key lands on. It fails the test for an unknown tenant, an unknown keyspace and a bad key.
func (m *MockStore) Owner(id tenant.ID, key dal.KeyRef) shardrouter.ShardID {
	m.tb.Helper()
	return m.locate(id, key).Shard
}

func (m *MockStore) locate(id tenant.ID, key dal.KeyRef) dal.Place {
	m.tb.Helper()
	r, err := m.Store.Locate(m.system(), id, key)
	if err != nil {
		m.tb.Fatalf("MockStore: locate key %q of tenant %q in keyspace %q: %v", key.Text(), id, key.Keyspace, err)
	}
	return r.Place
}

// system is the scope in which the mock store asks its own store for places. It opens no table of anybody's.
func (m *MockStore) system() context.Context {
	return tenant.System(m.tb.Context(), "mock store: where a key lands", "no table")
}

// Sent returns every statement that was handed to a mock so far, in order, over all places: the exact texts, to look at and to copy into expectations.
// BEGIN, COMMIT and ROLLBACK are not in it. A statement that a mock did not expect is.
func (m *MockStore) Sent() []MockStatement {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	return slices.Clone(m.log.sent)
}

// finish closes the store and judges the mocks.
func (m *MockStore) finish() {
	m.tb.Helper()
	if m.Store != nil {
		if err := m.Store.Close(context.Background()); err != nil {
			m.tb.Errorf("MockStore: close: %v", err)
		}
	}
	m.mu.Lock()
	m.closed = true
	all := maps.Clone(m.mocks)
	m.mu.Unlock()
	for _, p := range slices.SortedFunc(maps.Keys(all), dal.Place.Compare) {
		if err := all[p].ExpectationsWereMet(); err != nil {
			m.tb.Errorf("MockStore: place %s: %v", p, err)
		}
		_ = all[p].keep.Close() // sqlmock calls every Close that no test expects an error
	}
	for _, s := range m.Sent() {
		if s.System {
			m.tb.Logf("MockStore: place %s, under the system scope (%s): %s", s.Place, s.Reason, s.Text)
		}
	}
}

// mockRegistry returns the registry of cfg and the tenants that it lists.
func mockRegistry(ctx context.Context, cfg MockConfig) (tenant.Registry, []tenant.Tenant, error) {
	registry := cfg.Config.Registry
	switch {
	case registry != nil && cfg.Tenants != nil:
		return nil, nil, errors.New("testutil: MockConfig: Tenants and Config.Registry are both given: keep one")
	case cfg.Tenants != nil:
		static, err := tenant.NewStatic(cfg.Tenants...)
		if err != nil {
			return nil, nil, err
		}
		registry = static
	case registry == nil:
		return anyTenant{}, nil, nil
	}
	lister, ok := registry.(tenant.Lister)
	if !ok {
		return registry, nil, nil
	}
	tenants, err := lister.Tenants(ctx)
	return registry, tenants, err
}

// dedicated returns the shards of the tenants that have their own.
func dedicated(tenants []tenant.Tenant) map[string][]shardrouter.ShardID {
	all := map[string][]shardrouter.ShardID{}
	for _, t := range tenants {
		for _, s := range t.Placement.Shards {
			all[string(t.ID)] = append(all[string(t.ID)], shardrouter.ShardID(s))
		}
	}
	return all
}

// anyTenant knows every well-formed tenant, as an active one of the shared tables with the service's default limits.
type anyTenant struct{}

var _ tenant.Registry = anyTenant{}

// Tenant returns the tenant named id, or an [*tenant.InvalidIDError].
func (anyTenant) Tenant(_ context.Context, id tenant.ID) (tenant.Tenant, error) {
	return tenant.Place(tenant.Tenant{ID: id, Model: tenant.SharedTable})
}

package dal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// database is one physical database: its pools and its one *gorm.DB. It is immutable once opened: the place of one tenant that was
// closed and is opened again is another database.
type database struct {
	ordered sync.Map // table -> map[string]column, as [database.orderOf] first saw them
	store   *Store
	place   Place
	dialect Dialect
	gorm    *gorm.DB
	writer  *wire.Pool // SQLite: one connection; MySQL: the only pool; PostgreSQL: the tenants'
	reader  *wire.Pool // SQLite alone
	system  *wire.Pool // PostgreSQL alone: the login of system scopes
	roles   roles      // PostgreSQL alone
	reached            // MySQL alone
	maxOpen int        // connections that tenants can take; systemConns more are the library's
	lanes   lanes
	owner   tenant.ID // whose place it is; empty for a shared one that nobody asked for
	seat    *seat     // what keeps the place of one tenant open; nil for a shared place
	zone    string    // where it stands; empty: not said

	*replicaState // nil without replicas
}

// reached says how a MySQL place was reached.
type reached struct{ name, user, address string } // of the database, the user, and the server

// systemConns is how many connections of each place are the library's own: a tenant at its limit never stops its own refunds.
const systemConns = 4

// controlConns is how many connections the control database gets.
const controlConns = 4

// lanes names the queues of a place in quota.
type lanes struct{ pool, writer, system string }

func lanesOf(p Place) lanes {
	name := p.String()
	return lanes{pool: "pool of " + name, writer: "writer of " + name, system: "system of " + name}
}

var serverVersion = wire.RegisterSystem("dal/server version", "SELECT VERSION()", wire.Schema)

// openDatabase opens the pools of a place. It sends one statement, the server's version.
func (s *Store) openDatabase(ctx context.Context, p Place, e Endpoint) (*database, error) {
	db := &database{store: s, place: p, dialect: e.Dialect, maxOpen: s.cfg.MaxOpen, lanes: lanesOf(p)}
	opts := wire.Options{Shard: p.String(), Logger: s.log, Observer: s.cfg.observer, Wrote: s.written, Gate: s.gate}
	mariaDB := false
	var err error
	switch e.Dialect {
	case SQLite:
		err = db.openSQLite(ctx, e, s.cfg.Cluster.Synchronous, opts)
	case MySQL:
		if mariaDB, err = db.openMySQL(ctx, e, s.cfg.ConnMaxLifetime, opts); err == nil {
			err = db.openReplicas(e)
		}
	case Postgres:
		err = db.openPostgres(ctx, e, s.cfg.ConnMaxLifetime, opts)
	default:
		err = fmt.Errorf("dal: place %s: unknown dialect %q", p, e.Dialect)
	}
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	if err := db.openGorm(mariaDB); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

func (db *database) openSQLite(ctx context.Context, e Endpoint, synchronous string, opts wire.Options) error {
	if _, err := os.Stat(e.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: place %s has no file", ErrNotMigrated, db.place)
	}
	file := wire.SQLite{Path: e.Path, Synchronous: synchronous}
	var err error
	if db.writer, err = wire.OpenSQLite(file, opts); err != nil {
		return err
	}
	db.writer.SetMaxOpenConns(1)
	file.ReadOnly = true
	if db.reader, err = wire.OpenSQLite(file, opts); err != nil {
		return err
	}
	limit(db.reader, db.maxOpen+systemConns, 0)
	return db.writer.PingContext(ctx)
}

func (db *database) openMySQL(ctx context.Context, e Endpoint, lifetime time.Duration, opts wire.Options) (mariaDB bool, err error) {
	opts.Setup = []string{fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %d", int64(math.Ceil(db.store.cfg.LockWait.Seconds())))}
	if db.writer, err = wire.OpenMySQL(e.MySQLConfig(), opts); err != nil {
		return false, err
	}
	limit(db.writer, db.maxOpen+systemConns, lifetime)
	db.reached = reached{name: e.Database, user: e.User, address: e.Address}
	var version string
	row := db.writer.QueryRowContext(wire.With(ctx, &wire.Mark{Kind: wire.Library, Stmt: serverVersion}), serverVersion.Text())
	if err := row.Scan(&version); err != nil {
		return false, notMigratedOr(err, db.place)
	}
	return strings.Contains(version, "MariaDB"), nil
}

// roles are the names of a PostgreSQL place's two logins.
type roles struct{ tenant, system string }

// openPostgres opens the two pools of a place: the tenants', under the floor, and that of system scopes.
func (db *database) openPostgres(ctx context.Context, e Endpoint, lifetime time.Duration, opts wire.Options) (err error) {
	db.roles = roles{tenant: e.User, system: e.SystemUser}
	if db.writer, err = wire.OpenPostgres(e.postgres(db.store.cfg.LockWait, true), opts); err != nil {
		return err
	}
	limit(db.writer, db.maxOpen+systemConns, lifetime)
	e.User, e.Password = e.SystemUser, e.SystemPassword
	if db.system, err = wire.OpenPostgres(e.postgres(db.store.cfg.LockWait, false), opts); err != nil {
		return err
	}
	limit(db.system, systemConns, lifetime)
	for _, pool := range []*wire.Pool{db.writer, db.system} {
		if err := pool.PingContext(ctx); err != nil {
			return notMigratedOr(err, db.place)
		}
	}
	return nil
}

// postgres returns how the wire opens a PostgreSQL endpoint.
func (e Endpoint) postgres(lockWait time.Duration, floor bool) wire.Postgres {
	return wire.Postgres{
		Network: e.Network, Address: e.Address, User: e.User, Password: e.Password, Database: e.Database, Floor: floor, LockTimeout: lockWait,
	}
}

// notMigratedOr maps "unknown database" to [ErrNotMigrated], and on PostgreSQL, whose logins schema.Up makes, a login that is refused.
func notMigratedOr(err error, p Place) error {
	switch state := wire.SQLState(err); {
	case wire.Code(err) == 1049, state == "3D000", state == "28P01", state == "28000", state == "42501":
		return fmt.Errorf("%w: place %s: %w", ErrNotMigrated, p, err)
	}
	return err
}

func limit(p *wire.Pool, open int, lifetime time.Duration) {
	p.SetMaxOpenConns(open)
	p.SetMaxIdleConns(open)
	p.SetConnMaxIdleTime(time.Minute) // a place that is not used keeps no connections
	p.SetConnMaxLifetime(lifetime)
}

// openOver opens a place over a connector of the caller's, with no statement sent.
func (s *Store) openOver(p Place, d Dialect, inner driver.Connector) (*database, error) {
	db := &database{store: s, place: p, dialect: d, maxOpen: s.cfg.MaxOpen, lanes: lanesOf(p)}
	opts := wire.Options{Shard: p.String(), Logger: s.log, Observer: s.cfg.observer, Wrote: s.written, Gate: s.gate, Poisons: wire.PoisonsMySQL}
	switch d {
	case SQLite:
		opts.Poisons = wire.PoisonsSQLite
	case Postgres:
		opts.Poisons = wire.PoisonsPostgres
	}
	db.writer = wire.NewPool(inner, opts)
	if err := db.openGorm(false); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// openGorm makes the place's *gorm.DB. It stays behind the store: handles are sessions of it with a binding.
func (db *database) openGorm(mariaDB bool) error {
	unbound := &pool{&binding{store: db.store, db: db, err: &ShapeError{Shape: "handle without a tenant", Hint: "use Store.On"}}}
	g, err := gorm.Open(newDialector(db.dialect, unbound, mariaDB), gormConfig(db.store.log.With(slog.String("shard", db.place.String()))))
	if err != nil {
		return fmt.Errorf("dal: open gorm for place %s: %w", db.place, err)
	}
	db.gorm = g
	if err := db.store.tables.setupJoins(g); err != nil {
		return err
	}
	if err := scanTenantsAsText(g, db.store.tables); err != nil {
		return err
	}
	return registerScope(g)
}

// gormConfig is what every *gorm.DB of the store is opened with. Its log lines hold no values.
func gormConfig(log *slog.Logger) *gorm.Config {
	return &gorm.Config{
		NamingStrategy:       naming,
		DisableAutomaticPing: true,
		NowFunc:              func() time.Time { return time.Now().UTC().Round(time.Microsecond) },
		Logger:               &gormLogger{log, logger.Warn},
	}
}

// of returns the pool for a statement of a tenant's, or of a system scope.
func (db *database) of(system, write bool) *sql.DB {
	if system && db.system != nil {
		return db.system.DB
	}
	return db.sql(write)
}

// sql returns the pool for a write or a read.
func (db *database) sql(write bool) *sql.DB {
	if write || db.reader == nil {
		return db.writer.DB
	}
	return db.reader.DB
}

// tenantPermit admits a statement of a tenant: its rate, its share of the connections, then the queue for the pool itself.
func (db *database) tenantPermit(ctx context.Context, t tenant.Tenant, write bool) (wire.Permit, error) {
	line, size := db.lanes.pool, db.maxOpen
	if write && db.reader != nil {
		line, size = db.lanes.writer, 1
	}
	p, err := db.store.quota.AdmitPooled(ctx, t.ID, string(db.place.Shard), t.Limits, db.maxOpen, line, size)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// systemPermit admits the library's own statement, to connections that no tenant can take.
func (db *database) systemPermit(ctx context.Context) (wire.Permit, error) {
	p, err := db.store.quota.SystemAdmit(ctx, db.lanes.system, systemConns, 0)
	if err != nil {
		return nil, err
	}
	// On SQLite the library's writes stand in no line with the tenants': one tenant at a time holds or awaits the writing connection, so they wait for
	// one transaction of a tenant's, whatever the length of that line.
	return p, nil
}

func (db *database) stats() wire.Stats {
	s := db.writer.Stats()
	if db.reader != nil {
		s = s.Add(db.reader.Stats())
	}
	if db.system != nil {
		s = s.Add(db.system.Stats())
	}
	if db.replicaState != nil {
		for _, r := range db.replicas {
			s = s.Add(r.db.stats())
		}
	}
	return s
}

func (db *database) close() error {
	var errs []error
	if db.replicaState != nil {
		for _, r := range db.replicas {
			errs = append(errs, r.db.close())
		}
	}
	for _, p := range []*wire.Pool{db.reader, db.system, db.writer} {
		if p == nil {
			continue
		}
		if err := p.Close(); err != nil && !wire.IsConnection(err) { // a connection that broke has nothing left to close
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

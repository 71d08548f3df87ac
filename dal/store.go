package dal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// openParallelism bounds how many places are opened and checked at a time.
const openParallelism = 8

// Store is the one entry to the databases. It is safe for concurrent use, runs nothing in the background before [Store.Start], and is closed with [Store.Close]. Only the
// opening of a place may outlast the call that began it, for others that wait for it; Close ends and awaits it.
type Store struct {
	cfg      Config
	log      *slog.Logger
	began    time.Time
	tables   *tables
	gate     *gate.Gate
	quota    *quota.Quota
	registry tenant.Registry
	control  *control.Store // nil for a fixed store
	pool     *wire.Pool     // of the control database
	ids      *ids

	topology atomic.Pointer[shardrouter.Topology]
	watch    watcher
	// endpoints are the default shards that Config.Cluster has; nil for a fixed store, which reaches all.
	endpoints map[shardrouter.ShardID]bool
	directs   sync.Map   // front -> *sql.DB, of gorm's DB()
	places    sync.Map   // Place -> *database, of the shared places
	own       *ownPlaces // of the places that belong to one tenant each
	open      func(ctx context.Context, p Place, owner tenant.ID) (*database, error)
	nowhere   func() *gorm.DB // what refused handles are sessions of

	looks    atomic.Uint64 // grows with each Drain: every handle then looks its tenant up again
	uses     uses          // of system scopes
	hot      hot           // the busiest keys
	current  sync.Map      // Place -> string: its versions, when it was last looked at and up to date
	compared sync.Map      // Place -> string: its versions, when its tables were compared and found fit
	watchers writeWatchers // of what is written
	warned   sync.Map      // user@address -> true: logins whose rights were logged
	owners   sync.Map      // Place -> tenant.ID: whose place it is, as far as it was looked up

	opening    singleflight.Group // one opener a place
	refreshing singleflight.Group // one reader of the topology
	life       context.Context    // of what is opened in the background of a call; ends with Close
	end        context.CancelCauseFunc

	mu      sync.Mutex // guards closed, and that nothing is opened after it
	closed  bool
	openers sync.WaitGroup
}

// Open connects to every shared place whose shard is not down, compares the declared tables with each database, and returns the store. It never changes a schema. A place that is
// one tenant's own is opened and compared when it is first used: one that is not fit stops nobody else, and its tenant is refused with the error until it
// is mended.
//
// It returns [ErrNotMigrated] where schema.Up has not run, one joined error of [*ModelError] for every table that cannot be kept apart by tenant,
// and the driver's error inside a connect error that names the shard for a database that cannot be reached.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := newStore(cfg)
	if err != nil {
		return nil, err
	}
	s.open = func(ctx context.Context, p Place, owner tenant.ID) (*database, error) {
		e, err := s.cfg.Cluster.Endpoint(p, owner)
		if err != nil {
			return nil, err
		}
		return s.openDatabase(ctx, p, e)
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func newStore(cfg Config) (*Store, error) {
	cfg = cfg.WithDefaults()
	ts, err := newTables(cfg.Tables)
	if err != nil {
		return nil, err
	}
	q, err := quota.New(cfg.Quota)
	if err != nil {
		return nil, err
	}
	log := slog.New(tenant.NewLogHandler(cfg.Logger.Handler()))
	s := &Store{cfg: cfg, log: log, hot: newHot(), began: time.Now(), tables: ts, quota: q, registry: cfg.Registry}
	if s.gate, err = newGate(cfg.Cluster.Dialect, ts); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.own = newOwnPlaces(s)
	s.nowhere = sync.OnceValue(func() *gorm.DB { // needs no place, and no connection
		g, _ := gorm.Open(newDialector(s.Dialect(), &pool{&binding{store: s, err: ErrClosed}}, false), gormConfig(s.log))
		_ = registerScope(g)
		return g
	})
	return s, nil
}

// connect opens the control database, reads the topology, and opens and checks every shared place.
func (s *Store) connect(ctx context.Context) error {
	if err := s.connectControl(ctx); err != nil {
		return err
	}
	if s.cfg.NodeID != 0 {
		var err error
		if s.ids, err = fixedIDs(s.cfg.NodeID); err != nil {
			return err
		}
	} else {
		host, _ := os.Hostname()
		var err error
		if s.ids, err = leasedIDs(ctx, s.control, fmt.Sprintf("%s/%d", host, os.Getpid())); err != nil {
			return err
		}
	}
	if err := s.checkKeyspaces(ctx); err != nil {
		return err
	}
	if err := s.learnVersions(ctx); err != nil {
		return err
	}
	var mu sync.Mutex
	var errs []error
	g := errgroup.Group{}
	g.SetLimit(openParallelism)
	for _, id := range s.defaultShards() {
		if s.snapshot().Check(id) != nil {
			continue // down: opened and compared when it is back and first asked
		}
		g.Go(func() error {
			if _, err := s.at(ctx, Place{Shard: id}, ""); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

func (s *Store) connectControl(ctx context.Context) error {
	var err error
	if s.pool, err = openControl(ctx, s.cfg, s.log); err != nil {
		return err
	}
	s.control = control.New(s.pool, string(s.cfg.Cluster.Dialect))
	s.watch.source = s.control
	s.endpoints = map[shardrouter.ShardID]bool{}
	for _, id := range s.cfg.Cluster.ShardIDs() {
		s.endpoints[id] = true
	}
	if err := s.refresh(ctx); err != nil {
		return err
	}
	if s.registry == nil {
		s.registry = newCachedRegistry(s.control, s.cfg.TenantMaxAge)
	}
	return nil
}

// openControl opens the control database and asks whether it answers. With an error the pool is nil or still to be closed.
func openControl(ctx context.Context, cfg Config, log *slog.Logger) (pool *wire.Pool, err error) {
	e := cfg.Cluster.Control()
	opts := wire.Options{Shard: "control", Logger: log}
	switch e.Dialect {
	case SQLite:
		if _, serr := os.Stat(e.Path); serr != nil {
			return nil, fmt.Errorf("%w: there is no control database", ErrNotMigrated)
		}
		if pool, err = wire.OpenSQLite(wire.SQLite{Path: e.Path, Synchronous: cfg.Cluster.Synchronous}, opts); err == nil {
			pool.SetMaxOpenConns(1)
		}
	case MySQL:
		if pool, err = wire.OpenMySQL(e.MySQLConfig(), opts); err == nil {
			limit(pool, controlConns, cfg.ConnMaxLifetime)
		}
	case Postgres:
		if pool, err = wire.OpenPostgres(e.postgres(cfg.LockWait, false), opts); err == nil {
			limit(pool, controlConns, cfg.ConnMaxLifetime)
		}
	default:
		err = fmt.Errorf("dal: control database: unknown dialect %q", e.Dialect)
	}
	if err != nil {
		return nil, err
	}
	if err := pool.PingContext(ctx); err != nil {
		return pool, notMigratedOr(err, Place{Shard: "control"})
	}
	return pool, nil
}

// refresh reads the topology. A snapshot is never replaced by an older one.
func (s *Store) refresh(ctx context.Context) error {
	_, err, _ := s.refreshing.Do("topology", func() (any, error) {
		began := s.clock()
		t, err := s.control.Topology(ctx)
		if err != nil {
			return nil, migrated("read the topology", err)
		}
		if s.snapshot() == nil { // Open; a change while the store runs is told by Health
			if err := s.checkShards(t); err != nil {
				return nil, err
			}
		}
		s.adopt(t)
		s.confirmed(began)
		return nil, nil
	})
	return err
}

// checkShards compares the default shards with Config.Cluster when the store is opened. One that is joining owns nothing yet and may be missing there: the
// configuration of before goes on until the new one is everywhere.
func (s *Store) checkShards(t *shardrouter.Topology) error {
	want := s.cfg.Cluster.ShardIDs()
	slices.Sort(want)
	for _, id := range want {
		if !slices.Contains(t.Shards(), id) {
			return fmt.Errorf("%w: the topology has shards %v, Config.Cluster has %v: schema.Up adds shards", ErrUnknownShard, t.Shards(), want)
		}
	}
	for _, id := range s.lacking(t) {
		if t.Info(id).State != shardrouter.Joining {
			return fmt.Errorf("%w: the topology has shards %v, Config.Cluster has %v", ErrUnknownShard, t.Shards(), want)
		}
	}
	return nil
}

// checkKeyspaces refuses declared tables whose keyspace the topology lacks, and a Config.Routing that says otherwise than what is persisted. It warns of
// what is seldom meant.
func (s *Store) checkKeyspaces(ctx context.Context) error {
	var errs []error
	have := s.snapshot().Keyspaces()
	for _, k := range s.cfg.Keyspaces() {
		if !slices.ContainsFunc(have, func(h shardrouter.Keyspace) bool { return h.Name == k.Name }) {
			errs = append(errs, fmt.Errorf("%w: the topology has no keyspace %q", ErrNotMigrated, k.Name))
		}
	}
	if len(errs) == 0 && len(s.cfg.Routing) > 0 {
		if err := s.control.MatchKeyspaces(ctx, s.cfg.routing()); err != nil {
			errs = append(errs, fmt.Errorf("dal: Config.Routing: %w", err))
		}
	}
	for _, k := range have {
		for _, w := range k.Warnings() {
			s.log.Warn("dal: a keyspace is as it is seldom meant", "keyspace", k.Name, "warning", w)
		}
	}
	return errors.Join(errs...)
}

func (s *Store) snapshot() *shardrouter.Topology { return s.topology.Load() }

// ownedPlace is a place with the tenant that owns it, or none for a shared one.
type ownedPlace struct {
	Place
	owner tenant.ID
}

// known lists every place: the default shards, and those of the registry's tenants.
func (s *Store) known(ctx context.Context) ([]ownedPlace, error) {
	var all []ownedPlace
	for _, id := range s.defaultShards() {
		all = append(all, ownedPlace{Place: Place{Shard: id}})
	}
	lister, ok := s.registry.(tenant.Lister)
	if !ok {
		if s.control == nil {
			return all, nil
		}
		lister = s.control
	}
	tenants, err := lister.Tenants(ctx)
	if err != nil {
		return nil, fmt.Errorf("dal: list tenants: %w", err)
	}
	for _, tn := range tenants {
		if err := vouch(tn, tn.ID); err != nil {
			return nil, err
		}
		if tn.Model == tenant.SharedTable {
			continue
		}
		for _, p := range s.placesOf(tn) {
			all = append(all, ownedPlace{p, tn.ID})
		}
	}
	slices.SortFunc(all, func(a, b ownedPlace) int { return a.Compare(b.Place) })
	return all, nil
}

// placesOf lists the places of a tenant.
func (s *Store) placesOf(t tenant.Tenant) []Place {
	var places []Place
	if t.Model == tenant.OwnDatabase {
		for _, id := range t.Placement.Shards {
			places = append(places, Place{Shard: shardrouter.ShardID(id)})
		}
		return places
	}
	for _, id := range s.defaultShards() {
		places = append(places, Place{Shard: id, Schema: t.Placement.Schema})
	}
	return places
}

// defaultShards lists the default shards of the snapshot, sorted, without those that are joining, and so hold nothing, and that Config.Cluster lacks.
func (s *Store) defaultShards() []shardrouter.ShardID {
	t := s.snapshot()
	return slices.DeleteFunc(t.Shards(), func(id shardrouter.ShardID) bool {
		return t.Info(id).State == shardrouter.Joining && s.reach(t, id, false) != nil
	})
}

// shardsOf lists the shards of a tenant's places.
func (s *Store) shardsOf(t tenant.Tenant) []shardrouter.ShardID {
	var ids []shardrouter.ShardID
	for _, p := range s.placesOf(t) {
		ids = append(ids, p.Shard)
	}
	return ids
}

// checkVersions compares what schema.Up recorded of a place with what every place should have, and returns it as a text. While the control database
// cannot be reached, a place that was up to date when it was last looked at passes.
func (s *Store) checkVersions(ctx context.Context, p Place) (string, error) {
	sets, err := s.control.VersionsAt(ctx, p.Shard, p.Schema)
	if known, ok := s.current.Load(p); ok && wire.IsConnection(err) {
		return known.(string), nil
	}
	if err != nil {
		return "", migrated("read schema versions", err)
	}
	for _, v := range sets {
		if v.Version < v.Target {
			s.current.Delete(p)
			return "", fmt.Errorf("%w: place %s, set %q is at version %d, want %d", ErrNotMigrated, p, v.Set, v.Version, v.Target)
		}
	}
	now := versionText(sets)
	s.current.Store(p, now)
	return now, nil
}

// versionText writes versions as a text, in which two are equal if they are.
func versionText(sets []control.SetVersion) string {
	var b strings.Builder
	for _, v := range sets {
		fmt.Fprintf(&b, "%s %d ", v.Set, v.Version)
	}
	return b.String()
}

// learnVersions notes which places are up to date when the store is opened.
func (s *Store) learnVersions(ctx context.Context) error {
	rows, targets, err := s.control.Versions(ctx) // sorted by set
	if err != nil {
		return migrated("read schema versions", err)
	}
	fit := map[Place][]control.SetVersion{} // sets that are as they should be
	for _, r := range rows {
		if want, ok := targets[r.Set]; ok && r.Version >= want {
			p := Place{r.Shard, r.Schema}
			fit[p] = append(fit[p], control.SetVersion{Set: r.Set, Version: r.Version})
		}
	}
	for p, sets := range fit {
		if len(sets) == len(targets) {
			s.current.Store(p, versionText(sets))
		}
	}
	return nil
}

// migrated wraps an error of the control database; a missing table is [ErrNotMigrated].
func migrated(op string, err error) error {
	if errors.Is(err, control.ErrNotMigrated) {
		return fmt.Errorf("%w: %s: %w", ErrNotMigrated, op, err)
	}
	return fmt.Errorf("dal: %s: %w", op, err)
}

// openLimit bounds how long a place is opened and checked, for all callers that wait for it.
const openLimit = 30 * time.Second

// at returns the database of a place. The first call opens and checks it; what is not fit is refused, and looked at again by the next call. The place of
// one tenant may be closed again as soon as at has returned: see [database.use].
func (s *Store) at(ctx context.Context, p Place, owner tenant.ID) (*database, error) {
	if db, ok := s.places.Load(p); ok {
		return db.(*database), nil
	}
	if !s.shared(p) {
		seat, err := s.own.hold(ctx, p, owner)
		if err != nil {
			return nil, err
		}
		defer seat.release()
		return seat.db, nil
	}
	opened := s.opening.DoChan(p.String(), func() (any, error) {
		if !s.begin() {
			return nil, ErrClosed
		}
		defer s.openers.Done()
		if db, ok := s.places.Load(p); ok {
			return db, nil
		}
		ctx, cancel := context.WithTimeout(s.life, openLimit)
		defer cancel()
		db, err := s.fit(ctx, p, owner)
		if err != nil {
			return nil, err
		}
		return s.keep(db)
	})
	select {
	case r := <-opened:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*database), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("dal: open place %s: %w", p, context.Cause(ctx))
	}
}

// shared reports whether the place holds the shared tables of a default shard; any other belongs to one tenant.
func (s *Store) shared(p Place) bool {
	return p.Schema == "" && slices.Contains(s.snapshot().Shards(), p.Shard)
}

// fit opens a place and compares it with the declared tables. When it is opened anew its tables are compared only if schema.Up has changed it since: as of a
// place that stays open, what others change in it is not noticed.
func (s *Store) fit(ctx context.Context, p Place, owner tenant.ID) (*database, error) {
	version := ""
	if s.control != nil {
		var err error
		if version, err = s.checkVersions(ctx, p); err != nil {
			return nil, err
		}
	}
	db, err := s.open(ctx, p, owner)
	if err != nil {
		return nil, err
	}
	db.owner = owner
	if s.control != nil {
		before, compared := s.compared.Load(p)
		if err := db.check(ctx, compared && before == version); err != nil {
			return nil, errors.Join(err, db.close())
		}
		s.compared.Store(p, version)
	}
	return db, nil
}

// keep keeps a shared place open until the store is closed.
func (s *Store) keep(db *database) (*database, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(ErrClosed, db.close())
	}
	s.places.Store(db.place, db)
	return db, nil
}

// begin counts an opener in, unless the store is closed.
func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.openers.Add(1)
	return true
}

// shut reports whether the store was closed.
func (s *Store) shut() bool { return s.life.Err() != nil }

// drainPause is how often Close looks whether the last connection was given back.
const drainPause = 5 * time.Millisecond

// Close refuses what is new with [ErrClosed], waits until statements and transactions under way have ended or ctx ends, and closes every pool: what is
// left then ends with an error. It is safe to call twice.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	s.end(ErrClosed)
	s.openers.Wait()
	if !first {
		return nil
	}
	for st := s.quota.Stats(); st.InUse+st.SystemInUse > 0 && ctx.Err() == nil; st = s.quota.Stats() {
		select {
		case <-ctx.Done():
		case <-time.After(drainPause):
		}
	}
	var errs []error
	if err := s.ids.close(ctx); err != nil && !wire.IsConnection(err) { // the lease of a node number ends by itself
		errs = append(errs, err)
	}
	s.directs.Range(func(_, v any) bool {
		errs = append(errs, v.(*sql.DB).Close())
		return true
	})
	errs = append(errs, s.own.close())
	s.places.Range(func(_, v any) bool {
		errs = append(errs, v.(*database).close())
		return true
	})
	if s.pool != nil {
		if err := s.pool.Close(); err != nil && !wire.IsConnection(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Route says where a key lives.
type Route struct {
	Place  Place
	Epoch  shardrouter.Epoch
	Tenant tenant.Tenant
}

// Route returns the place of a key of the context's tenant. It does no I/O but what the registry does, and reads the topology again for a tenant whose
// shards it lacks.
//
// Errors: those of [tenant.FromContext], [tenant.ErrUnknownTenant], [tenant.ErrSuspended], [tenant.ErrDeleting], [shardrouter.ErrEmptyKey],
// [shardrouter.ErrZeroKey], an unknown keyspace, [shardrouter.ErrRoomNotFound], [shardrouter.ErrShardDown], [*ShardNotConfiguredError], [ErrNotMigrated] for a tenant whose places were not made yet. A suspended tenant is refused under
// [SuspendWrites] too: who asks for a route may write there.
func (s *Store) Route(ctx context.Context, key KeyRef) (Route, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return Route{}, err
	}
	r, err := s.route(ctx, id, key)
	if err != nil {
		return Route{}, err
	}
	if err := r.Tenant.CheckStatus(); err != nil {
		return Route{}, err
	}
	return r, nil
}

// Locate returns the place of a key of any tenant, whatever its status: the library's own relay and reconciler finish what a tenant began before
// it was suspended. It needs a system scope.
func (s *Store) Locate(ctx context.Context, id tenant.ID, key KeyRef) (Route, error) {
	if _, err := tenant.BypassFromContext(ctx); err != nil {
		return Route{}, err
	}
	return s.route(ctx, id, key)
}

func (s *Store) route(ctx context.Context, id tenant.ID, key KeyRef) (Route, error) {
	if s.shut() {
		return Route{}, ErrClosed
	}
	if key.err != nil {
		return Route{}, key.err
	}
	t, err := s.resolve(ctx, id)
	if err != nil {
		return Route{}, err
	}
	top := s.snapshot()
	if t.Model == tenant.OwnDatabase && len(top.Dedicated(string(id))) == 0 {
		if s.control != nil {
			if err := s.refresh(ctx); err != nil {
				return Route{}, err
			}
			top = s.snapshot()
		}
		if len(top.Dedicated(string(id))) == 0 {
			return Route{}, fmt.Errorf("%w: tenant %q has no shards in the topology", ErrNotMigrated, id)
		}
	}
	shard, err := top.Owner(key.Keyspace, string(id), key.key)
	if err != nil {
		return Route{}, err
	}
	if err := s.reach(top, shard, t.Model == tenant.OwnDatabase); err != nil {
		return Route{}, err
	}
	return Route{Place: Place{Shard: shard, Schema: t.Placement.Schema}, Epoch: top.Epoch(), Tenant: t}, nil
}

// resolve asks the registry who a tenant is.
func (s *Store) resolve(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	t, err := s.registry.Tenant(ctx, id)
	if err == nil {
		err = vouch(t, id)
	}
	if err != nil {
		return tenant.Tenant{}, err
	}
	return t, nil
}

// vouch checks what a registry answered. A registry of the user's own may not have: a schema's name becomes part of a database's name or a file's path.
func vouch(t tenant.Tenant, id tenant.ID) error {
	if t.ID != id {
		return &MismatchError{Handle: id, Other: t.ID, What: "the registry's answer"}
	}
	if t.Model == tenant.SharedTable && t.Placement.Schema == "" && len(t.Placement.Shards) == 0 {
		return nil
	}
	return t.Validate()
}

// On returns a handle bound to the context's tenant in the place of key: gorm's own *gorm.DB, on which every statement carries the tenant or is
// refused. It takes no connection. An error of [Store.Route] comes out of every method of the handle.
//
// Inside [Store.Transaction] it returns a handle on the open transaction; a key of another shard is refused with [*CrossShardError].
//
// With [Nearest] or [Replica] the handle's reads may go to a replica of the place, chosen anew for each statement. Such a handle writes nothing, wherever it
// reads: writes, locking reads, transactions and raw connections are refused with [*ReadOnlyError]. Inside [Store.Transaction] the options are refused with
// [ErrReplicaInTransaction]. An option that cannot be used is an [*OptionError].
func (s *Store) On(ctx context.Context, key KeyRef, opts ...Option) *gorm.DB {
	if ctx == nil {
		ctx = context.Background() // which names no tenant
	}
	h := &handleParts{}
	if err := s.bindTo(ctx, key, &h.binding); err != nil {
		return s.refused(ctx, err)
	}
	rd, err := readsOf(opts)
	if err != nil {
		return s.refused(ctx, err)
	}
	h.binding.asked = rd
	if t := heldBy(ctx, s); t != nil {
		if rd != nil {
			return s.refused(ctx, ErrReplicaInTransaction)
		}
		return t.join(ctx, &h.binding)
	}
	h.pool.binding = &h.binding
	return h.handle(ctx, &h.pool)
}

// bind resolves a key to a binding.
func (s *Store) bind(ctx context.Context, key KeyRef) (*binding, error) {
	b := &binding{}
	if err := s.bindTo(ctx, key, b); err != nil {
		return nil, err
	}
	return b, nil
}

// bindTo resolves a key and fills a new binding.
func (s *Store) bindTo(ctx context.Context, key KeyRef, b *binding) error {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return err
	}
	look := s.looks.Load()
	r, err := s.route(ctx, id, key)
	if err != nil {
		return err
	}
	st := s.standing(r.Tenant, look)
	if st.refused != nil {
		if h := heldBy(ctx, s); h == nil || h.tx.tenant.ID != id { // a transaction that has begun may finish
			return st.refused
		}
	}
	db, err := s.at(ctx, r.Place, r.Tenant.ID)
	if err != nil {
		return err
	}
	*b = binding{store: s, db: db, tenant: r.Tenant, id: r.Tenant.ID, keyspace: key.Keyspace, key: key.key, standing: st}
	return nil
}

// handleParts is what a handle needs for itself, in one piece of memory.
type handleParts struct {
	binding   binding
	pool      pool
	gorm      gorm.DB
	config    gorm.Config
	statement gorm.Statement
}

// handle makes a session of the place's *gorm.DB whose statements go through p. It is what gorm's Session{NewDB, Context} makes, without the copy of the
// place's own statement, of which a new chain takes nothing.
func (h *handleParts) handle(ctx context.Context, p gorm.ConnPool) *gorm.DB {
	root := h.pool.db.gorm
	h.config = *root.Config
	h.config.ConnPool = &h.pool // what a statement falls back to after its transaction
	h.statement = gorm.Statement{DB: &h.gorm, ConnPool: p, Context: ctx, Clauses: map[string]clause.Clause{}}
	h.gorm = *root // as opened: each chain on it begins anew
	h.gorm.Config, h.gorm.Statement = &h.config, &h.statement
	return &h.gorm
}

// handle makes a handle of binding b whose statements go through p.
func handle(ctx context.Context, b *binding, p gorm.ConnPool) *gorm.DB {
	h := &handleParts{pool: pool{b}}
	return h.handle(ctx, p)
}

// refused returns a handle on which everything fails with err and nothing is sent. err is not put into db.Error: on a live pool that would let
// Row().Scan panic and Begin leak a connection.
func (s *Store) refused(ctx context.Context, err error) *gorm.DB {
	b := &binding{store: s, err: err}
	h := s.nowhere().Session(&gorm.Session{NewDB: true, Context: ctx})
	h.ConnPool = &pool{b}
	h.Statement.ConnPool = &pool{b}
	return h
}

// Places lists every place of the topology and of the registry's tenants, sorted. It needs a system scope.
func (s *Store) Places(ctx context.Context) ([]Place, error) {
	if _, err := tenant.BypassFromContext(ctx); err != nil {
		return nil, err
	}
	known, err := s.known(ctx)
	if err != nil {
		return nil, err
	}
	places := make([]Place, len(known))
	for i, p := range known {
		places[i] = p.Place
	}
	return places, nil
}

// place returns the database of a known place.
func (s *Store) place(ctx context.Context, p Place) (*database, error) {
	if s.shut() {
		return nil, ErrClosed
	}
	if db, ok := s.places.Load(p); ok {
		return db.(*database), nil
	}
	if db := s.own.find(p); db != nil {
		return db, nil
	}
	if owner, ok := s.owners.Load(p); ok {
		return s.at(ctx, p, owner.(tenant.ID))
	}
	known, err := s.known(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		if k.Place == p {
			s.owners.Store(p, k.owner)
			return s.at(ctx, p, k.owner)
		}
	}
	return nil, &UnknownShardError{Shard: p.Shard}
}

// Dialect returns the family of SQL of every place.
func (s *Store) Dialect() Dialect { return s.cfg.Cluster.Dialect }

// Logger returns the store's logger; its records name the tenant of their context.
func (s *Store) Logger() *slog.Logger { return s.log }

// Stats returns the sum of what every place's pools have sent, those of closed places included.
func (s *Store) Stats() wire.Stats {
	sum := s.own.sent()
	s.places.Range(func(_, v any) bool {
		sum = sum.Add(v.(*database).stats())
		return true
	})
	return sum
}

// StatsOf returns what one place's pools have sent; zero for a place that was not used. Of a place that belongs to one tenant it returns what was sent
// since it was last opened.
func (s *Store) StatsOf(p Place) wire.Stats {
	if db, ok := s.places.Load(p); ok {
		return db.(*database).stats()
	}
	if db := s.own.find(p); db != nil {
		return db.stats()
	}
	return wire.Stats{}
}

// Permits returns the number of connections that a tenant holds on a shard, and the quota's counters.
func (s *Store) Permits(id tenant.ID, shard shardrouter.ShardID) (inUse int, stats quota.Stats) {
	return s.quota.InUse(id, string(shard)), s.quota.Stats()
}

// Note returns a fact that a program left about the deployment in the control database, and whether there is one. It needs a system scope.
func (s *Store) Note(ctx context.Context, name string) (value string, found bool, err error) {
	if err := s.controlled(ctx); err != nil {
		return "", false, err
	}
	return s.control.Note(ctx, name)
}

// SetNote writes such a fact: name is [a-z][a-z0-9_]{0,62}, value has at most [control.MaxNote] bytes. It needs a system scope.
func (s *Store) SetNote(ctx context.Context, name, value string) error {
	if err := s.controlled(ctx); err != nil {
		return err
	}
	return s.control.SetNote(ctx, name, value)
}

// controlled demands a system scope and a control database.
func (s *Store) controlled(ctx context.Context) error {
	if _, err := tenant.BypassFromContext(ctx); err != nil {
		return err
	}
	if s.control == nil {
		return errors.New("dal: a store of OpenFixed has no control database")
	}
	return nil
}

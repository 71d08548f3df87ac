package dal

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Config describes a store. The zero value of a field means its documented default.
type Config struct {
	// Cluster names the databases.
	Cluster Cluster
	// Registry knows the tenants. Nil: the control database's own registry, filled by schema.Up and schema.Provision.
	Registry tenant.Registry
	// Tables declares every table that a model may touch; an undeclared one is refused.
	Tables []Table
	// VirtualNodes is the number of ring points a shard, of a topology that schema.Up makes. Zero means 128.
	VirtualNodes int
	// Routing says how keyspaces of the declared tables place their keys, each at most once. A keyspace that it lacks is a ring of VirtualNodes. schema.Up
	// persists it with the keyspace; from then on the control database decides, and one that says otherwise is refused by schema.Up and [Open] with
	// [*control.TopologyMismatchError], except for what [Store.Change] made of the keyspace since. What is seldom meant, as ranges over growing ids, is logged
	// at warn by both.
	Routing []shardrouter.Keyspace
	// Quota holds the defaults of the tenants' limits.
	Quota quota.Config
	// MaxOpen is the largest number of connections to one place that tenants can take together; the library has 4 more for itself. A tenant's
	// permits never exceed it. Zero means 16. On SQLite it counts readers; there is one writer.
	MaxOpen int
	// MaxOwnPlaces is the largest number of places that belong to one tenant each (a schema or a database of its own) that are open at a time, over all
	// servers. They are opened when they are used; the one that was not used for longest makes room. One in use is never closed: a call that finds all of
	// them in use waits up to Quota.MaxWait, then gets [ErrPlacesBusy]. Each costs at most MaxOpen + 4 connections. Zero means 128.
	MaxOwnPlaces int
	// ServerConns is how many connections one server grants this process. A configuration whose shared places and control database alone could ask one
	// server for more (MaxOpen + 4 for each shard on it, 4 for the control database) is refused. Zero: not checked. SQLite has no server.
	ServerConns int
	// ConnMaxLifetime is how long a MySQL connection is used. Zero means 3 minutes.
	ConnMaxLifetime time.Duration
	// Zone is where this process runs, as [Endpoint.Zone] has it. [Nearest] reads there, and [Replica] prefers it. Empty: nowhere in particular.
	Zone string
	// ReplicaLag is how far behind a replica may be that [Nearest] reads from. Zero means 10s.
	ReplicaLag time.Duration
	// LockWait is how long a statement waits for another transaction's row lock, in whole seconds: MySQL's own default is 50. The error that follows is
	// [IsRetryable] and poisons its transaction. Zero means 3s. SQLite waits 5s for a lock of another process.
	LockWait time.Duration
	// TenantMaxAge is how long a tenant read from the control database's registry is used before it is read again; a minute longer while the
	// control database cannot be reached. Zero means 1s. A Registry of your own is asked at every On, and at this interval for a handle that is kept.
	TenantMaxAge time.Duration
	// Suspended says what a suspended tenant may still do. The zero value is [SuspendAll]: nothing.
	Suspended Suspension
	// StrictGrants refuses a MySQL or MariaDB login of shared places that has rights beyond its databases (any ON *.*, FILE, SUPER and PROCESS among them,
	// or GRANT OPTION). False: such rights are logged as a warning. What the login of a tenant with a database of its own can reach beyond it is always
	// refused.
	StrictGrants bool
	// NodeID fixes the node number in row ids, from 1 to 1023, for tests and for deployments that number their processes themselves.
	// Zero: a number is leased in the control database at Open and renewed inline.
	NodeID int64
	// TopologyPoll is how often a store that was started asks the control database for the topology's epoch: one row by primary key. Zero means 1s.
	TopologyPoll time.Duration
	// TopologyMaxAge is how long the topology may stay unconfirmed before [Store.Health] calls it stale, and the longest that one look takes. At least
	// TopologyPoll; zero means 30s.
	TopologyMaxAge time.Duration
	// StaleWrites says whether a stale topology stops writes. The zero value is [AllowStaleWrites].
	StaleWrites StaleWrites
	// Notifier tells of changes of the topology sooner than polling does, on [TopologyTopic]. Nil: polling alone.
	Notifier notify.Notifier
	// Logger gets the library's records. Nil: none. A statement that failed on the server is logged at error, one that took longer than 200 ms at
	// warn, others after gorm's Debug alone, all without their values; what the library does by itself at info or warn.
	Logger *slog.Logger

	observer wire.Observer
}

// WithDefaults returns a copy with every zero field filled.
func (c Config) WithDefaults() Config {
	if c.MaxOpen == 0 {
		c.MaxOpen = 16
	}
	if c.MaxOwnPlaces == 0 {
		c.MaxOwnPlaces = 128
	}
	if c.ConnMaxLifetime == 0 {
		c.ConnMaxLifetime = 3 * time.Minute
	}
	if c.ReplicaLag == 0 {
		c.ReplicaLag = 10 * time.Second
	}
	if c.LockWait == 0 {
		c.LockWait = 3 * time.Second
	}
	if c.TenantMaxAge == 0 {
		c.TenantMaxAge = time.Second
	}
	if c.TopologyPoll == 0 {
		c.TopologyPoll = time.Second
	}
	if c.TopologyMaxAge == 0 {
		c.TopologyMaxAge = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Quota = c.Quota.WithDefaults()
	return c
}

// Validate reports every mistake at once, each with its field's name.
func (c Config) Validate() error {
	var errs []error
	if err := c.Cluster.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.LockWait < 0 {
		errs = append(errs, errors.New("dal: Config.LockWait is negative"))
	}
	if c.ReplicaLag < 0 {
		errs = append(errs, errors.New("dal: Config.ReplicaLag is negative"))
	}
	if c.MaxOpen < 0 {
		errs = append(errs, errors.New("dal: Config.MaxOpen is negative"))
	}
	if c.MaxOwnPlaces < 0 {
		errs = append(errs, errors.New("dal: Config.MaxOwnPlaces is negative"))
	}
	if c.Suspended > SuspendWrites {
		errs = append(errs, fmt.Errorf("dal: Config.Suspended is %d: want SuspendAll or SuspendWrites", c.Suspended))
	}
	if c.TopologyPoll < 0 || c.TopologyMaxAge < 0 {
		errs = append(errs, errors.New("dal: Config.TopologyPoll or Config.TopologyMaxAge is negative"))
	} else if full := c.WithDefaults(); full.TopologyMaxAge < full.TopologyPoll {
		errs = append(errs, fmt.Errorf("dal: Config.TopologyMaxAge %v is below Config.TopologyPoll %v: the topology would be stale between two looks", full.TopologyMaxAge, full.TopologyPoll))
	}
	if c.StaleWrites > RefuseStaleWrites {
		errs = append(errs, fmt.Errorf("dal: Config.StaleWrites is %d: want AllowStaleWrites or RefuseStaleWrites", c.StaleWrites))
	}
	if c.ServerConns < 0 {
		errs = append(errs, errors.New("dal: Config.ServerConns is negative"))
	}
	errs = append(errs, c.checkServers()...)
	if c.NodeID < 0 || c.NodeID > maxNode {
		errs = append(errs, fmt.Errorf("dal: Config.NodeID %d is not in 0..%d", c.NodeID, maxNode))
	}
	if err := c.Quota.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("dal: Config.Quota: %w", err))
	}
	if _, err := newTables(c.Tables); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.checkRouting()...)
	return errors.Join(errs...)
}

// checkRouting refuses a Routing that names a keyspace of no table, or names one twice, or that makes no topology over the configured shards.
func (c Config) checkRouting() (errs []error) {
	names := keyspaceNames(c.Tables)
	seen := map[string]bool{}
	for _, k := range c.Routing {
		switch {
		case seen[k.Name]:
			errs = append(errs, &RoutingError{Keyspace: k.Name, Reason: "it is declared twice"})
		case !slices.Contains(names, k.Name):
			errs = append(errs, &RoutingError{Keyspace: k.Name, Reason: "no declared table is of it"})
		case k.Moving:
			errs = append(errs, &RoutingError{Keyspace: k.Name, Reason: "Moving is set, which only a reshard does"})
		}
		seen[k.Name] = true
	}
	if len(errs) > 0 || len(c.Routing) == 0 || len(c.Cluster.Shards) == 0 {
		return errs
	}
	for _, k := range c.routing() {
		if _, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: c.Cluster.ShardIDs(), Keyspaces: []shardrouter.Keyspace{k}}); err != nil {
			errs = append(errs, &RoutingError{Keyspace: k.Name, Reason: "it makes no topology", Err: err})
		}
	}
	return errs
}

// checkServers compares what the shared places can ask of each server with what it grants.
func (c Config) checkServers() (errs []error) {
	if c.ServerConns <= 0 || c.Cluster.Dialect == SQLite {
		return nil
	}
	full := c.WithDefaults()
	want := map[string]int{}
	var servers []string
	for i, e := range c.Cluster.Shards {
		at := e.Network + " " + e.Address
		want[at] += full.MaxOpen + systemConns
		if c.Cluster.Dialect == Postgres {
			want[at] += systemConns // the system scopes' pool
		}
		if i == 0 {
			want[at] += controlConns
		}
		servers = append(servers, at)
		for _, r := range e.Replicas {
			at := r.Network + " " + r.Address
			want[at] += full.MaxOpen + systemConns
			servers = append(servers, at)
		}
	}
	slices.Sort(servers)
	for _, at := range slices.Compact(servers) {
		if want[at] > c.ServerConns {
			errs = append(errs, fmt.Errorf("dal: Config.ServerConns is %d, and the shared places on server %s can ask it for %d connections: lower MaxOpen, or use more servers", c.ServerConns, at, want[at]))
		}
	}
	return errs
}

// Keyspaces returns the keyspaces of the declared tables, sorted by name, each once: as Routing has them, or with a name and the number of virtual nodes
// alone.
func (c Config) Keyspaces() []shardrouter.Keyspace {
	names := keyspaceNames(c.Tables)
	all := make([]shardrouter.Keyspace, len(names))
	routing := c.routing()
	for i, n := range names {
		all[i] = shardrouter.Keyspace{Name: n, VirtualNodes: c.VirtualNodes}
		if j := slices.IndexFunc(routing, func(k shardrouter.Keyspace) bool { return k.Name == n }); j >= 0 {
			all[i] = routing[j]
		}
	}
	return all
}

// routing returns Routing with the strategy and the number of virtual nodes filled in.
func (c Config) routing() []shardrouter.Keyspace {
	all := slices.Clone(c.Routing)
	for i := range all {
		all[i].Strategy = cmp.Or(all[i].Strategy, shardrouter.StrategyRing)
		all[i].VirtualNodes = cmp.Or(all[i].VirtualNodes, c.VirtualNodes)
	}
	return all
}

// WithObserver returns a copy of c whose pools report every operation to o. Only packages of this module can name an observer: tests use it to
// record statements and to break them.
func WithObserver(c Config, o wire.Observer) Config {
	c.observer = o
	return c
}

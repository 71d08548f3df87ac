package dal

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Dialect is the family of SQL that a database speaks.
type Dialect string

const (
	// SQLite is the embedded database: a file a place.
	SQLite Dialect = "sqlite"
	// MySQL is MySQL 8 or MariaDB 10.6 and later: a database a place.
	MySQL Dialect = "mysql"
	// Postgres is PostgreSQL 13 or later: a database a place, with row-level security under it.
	Postgres Dialect = "postgres"
)

// Endpoint says how to reach one physical database. Its String never holds a password.
type Endpoint struct {
	Dialect  Dialect
	Path     string // SQLite: the file
	Network  string // a server's: "tcp" or "unix"
	Address  string // a server's: host:port, or the socket's path; PostgreSQL's ends in .s.PGSQL.<port>
	User     string
	Password string
	Database string

	// PostgreSQL: the second login of a place, for system scopes. Its policies open the declared tables alone.
	SystemUser     string
	SystemPassword string

	// Shard is the id of the default shard that lives here, in [Cluster.Shards]. Empty: by the position in that list, s1 for the first. With ids of their
	// own the others keep theirs when one leaves the list.
	Shard shardrouter.ShardID

	// Zone is where the server stands: a name that [Config.Zone] is compared with. Empty: not said.
	Zone string
	// Replicas are servers that copy this one, every database and login of it, MySQL and MariaDB alone. Of each, Network, Address and Zone are needed; User and
	// Password where they differ from the primary's, and never for a login that the store derives. See [Replica].
	Replicas []Endpoint
}

// String names the endpoint without its password.
func (e Endpoint) String() string {
	if e.Dialect == SQLite {
		return "sqlite:" + e.Path
	}
	return fmt.Sprintf("%s://%s@%s(%s)/%s", cmp.Or(e.Dialect, MySQL), e.User, e.Network, e.Address, e.Database)
}

// MySQLConfig returns the driver's configuration for a MySQL endpoint.
func (e Endpoint) MySQLConfig() *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.DBName = e.Network, e.Address, e.User, e.Password, e.Database
	return cfg
}

// Cluster names the servers or files of a deployment. Shards are numbered unless they are named: Shards[0] serves s1, Shards[1] serves s2. The zero Cluster is
// not usable; make one with [SQLiteCluster], [MySQLCluster], [PostgresCluster] or [ParseURLs].
type Cluster struct {
	Dialect Dialect
	// Dir holds SQLite's files: control.db, s1.db, s1.<schema>.db, <tenant>-s1.db.
	Dir string
	// Shards are the default shards' databases, s1 first. The first one's server holds the control database, and its database's name is part of others:
	// it stays the first. With SQLite only their number and ids count. With PostgreSQL their logins are the operator's, which
	// owns the tables and which schema.Up alone uses; a store uses two logins of each database that are derived from LoginSecret.
	Shards []Endpoint
	// Dedicated is the server on which tenants with a database of their own get it. Nil: the first shard's server.
	Dedicated *Endpoint
	// LoginSecret is the key from which the passwords of dedicated tenants' logins, and of all logins on PostgreSQL, are derived. Empty: the first
	// shard's password, and if that is empty too a tenant with a database of its own, or a cluster on PostgreSQL, is refused with [ErrNoLoginSecret].
	LoginSecret string
	// Synchronous is SQLite's: OFF, NORMAL, FULL or EXTRA. Empty means NORMAL: every commit survives the end of the process (kill -9), the last
	// ones may be lost when the machine itself stops; FULL survives that too and costs a disk flush a commit.
	Synchronous string
}

// SQLiteCluster returns a cluster of n shards in files below dir.
func SQLiteCluster(dir string, n int) Cluster {
	return Cluster{Dialect: SQLite, Dir: dir, Shards: make([]Endpoint, max(n, 0))}
}

// MySQLCluster returns a cluster with one database a shard.
func MySQLCluster(shards ...Endpoint) Cluster {
	for i := range shards {
		shards[i].Dialect = MySQL
	}
	return Cluster{Dialect: MySQL, Shards: shards}
}

// PostgresCluster returns a cluster with one database a shard. The endpoints hold the operator's login.
func PostgresCluster(shards ...Endpoint) Cluster {
	for i := range shards {
		shards[i].Dialect = Postgres
	}
	return Cluster{Dialect: Postgres, Shards: shards}
}

// ParseURLs returns the cluster of a comma-separated list of mysql://user@host:port/database or postgres://user@host:port/database, one a shard and all
// of one kind. The password is passed apart, so that no URL holds one; a URL that does is refused.
//
// It returns [*URLError], whose message never repeats the URL's password.
func ParseURLs(list, password string) (Cluster, error) {
	var shards []Endpoint
	kind := MySQL
	for i, raw := range strings.Split(list, ",") {
		scheme, rest, ok := strings.Cut(strings.TrimSpace(raw), "://")
		if !ok || scheme != string(MySQL) && scheme != string(Postgres) {
			return Cluster{}, &URLError{Position: i + 1, Reason: "it does not begin with mysql:// or postgres://"}
		}
		if i > 0 && Dialect(scheme) != kind {
			return Cluster{}, &URLError{Position: i + 1, Reason: "it is of another kind than the first"}
		}
		kind = Dialect(scheme)
		user, rest, ok := strings.Cut(rest, "@")
		switch {
		case !ok || user == "":
			return Cluster{}, &URLError{Position: i + 1, Reason: "it names no user"}
		case strings.Contains(user, ":") || strings.Contains(rest, "@"):
			return Cluster{}, &URLError{Position: i + 1, Reason: "it holds a password; pass the password apart"}
		}
		addr, database, ok := strings.Cut(rest, "/")
		if !ok || database == "" || strings.ContainsAny(database, "/?&`.\\ \x00") || len(database) > maxDatabase {
			return Cluster{}, &URLError{Position: i + 1, Reason: "it names no database of at most 40 plain characters"}
		}
		host, port, err := net.SplitHostPort(addr)
		if n, perr := strconv.Atoi(port); err != nil || host == "" || perr != nil || n < 1 || n > 65535 {
			return Cluster{}, &URLError{Position: i + 1, Reason: "its address is not host:port"}
		}
		shards = append(shards, Endpoint{Network: "tcp", Address: addr, User: user, Password: password, Database: database})
	}
	if kind == Postgres {
		return PostgresCluster(shards...), nil
	}
	return MySQLCluster(shards...), nil
}

// ShardIDs returns the ids of the default shards, in the order of Shards: s1, s2, ... where an endpoint names none.
func (c Cluster) ShardIDs() []shardrouter.ShardID {
	ids := make([]shardrouter.ShardID, len(c.Shards))
	for i := range ids {
		ids[i] = cmp.Or(c.Shards[i].Shard, shardrouter.ShardID("s"+strconv.Itoa(i+1)))
	}
	return ids
}

// maxDatabase is the longest name of a given database from which others are made.
const maxDatabase = 40

// Validate reports every mistake in the cluster at once: none or unknown kind, no shards, no folder, two shards with one database, and
// [*shardrouter.InvalidShardError] and [*shardrouter.DuplicateShardError] for their ids.
func (c Cluster) Validate() error {
	var errs []error
	if len(c.Shards) == 0 {
		errs = append(errs, errors.New("dal: Cluster.Shards is empty: name at least one shard"))
	}
	ids := c.ShardIDs()
	for i, id := range ids {
		if err := id.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("dal: Cluster.Shards[%d]: %w", i, err))
		}
		if slices.Contains(ids[:i], id) {
			errs = append(errs, fmt.Errorf("dal: Cluster.Shards[%d]: %w", i, &shardrouter.DuplicateShardError{Shard: id}))
		}
	}
	if c.Dedicated != nil && c.Dedicated.Shard != "" {
		errs = append(errs, fmt.Errorf("dal: Cluster.Dedicated names shard %q: shards of tenants are named by their placement", c.Dedicated.Shard))
	}
	switch c.Dialect {
	case SQLite:
		errs = append(errs, c.checkReplicas()...)
		if c.Dir == "" {
			errs = append(errs, errors.New("dal: Cluster.Dir is empty: name the folder of the SQLite files"))
		}
	case MySQL, Postgres:
		errs = append(errs, c.checkReplicas()...)
		if c.Dialect == Postgres && c.secret() == "" && len(c.Shards) > 0 {
			errs = append(errs, ErrNoLoginSecret)
		}
		seen := map[string]int{}
		for i, s := range c.Shards {
			if s.Address == "" || s.Database == "" {
				errs = append(errs, fmt.Errorf("dal: Cluster.Shards[%d] has no address or no database", i))
			}
			at := s.Network + "|" + s.Address + "|" + s.Database
			if j, twice := seen[at]; twice {
				errs = append(errs, fmt.Errorf("dal: shards %s and %s are one database: %s: give each shard a database of its own", ids[j], ids[i], s))
			}
			seen[at] = i
			if c.Dialect == Postgres && len(s.Database) > maxDatabase {
				errs = append(errs, fmt.Errorf("dal: Cluster.Shards[%d]: database %q has more than %d bytes, which leaves no room for the names made from it", i, s.Database, maxDatabase))
			}
		}
	default:
		errs = append(errs, fmt.Errorf("dal: Cluster.Dialect %q is not sqlite, mysql or postgres", c.Dialect))
	}
	return errors.Join(errs...)
}

// checkReplicas refuses replicas that are not described as they should be.
func (c Cluster) checkReplicas() (errs []error) {
	check := func(of string, e Endpoint) {
		seen := map[string]bool{e.Network + "|" + e.Address: true}
		for i, r := range e.Replicas {
			bad := func(reason string) {
				errs = append(errs, &ReplicaConfigError{Field: fmt.Sprintf("%s.Replicas[%d]", of, i), Reason: reason})
			}
			at := r.Network + "|" + r.Address
			switch {
			case c.Dialect != MySQL:
				bad("replicas are for MySQL and MariaDB alone, not for " + string(c.Dialect))
			case r.Network == "" || r.Address == "":
				bad("it has no network or no address")
			case r.Dialect != "" && r.Dialect != MySQL:
				bad("its dialect is " + string(r.Dialect))
			case r.Database != "" && r.Database != e.Database:
				bad("it names another database than its primary")
			case len(r.Replicas) > 0:
				bad("it has replicas of its own: list them beside it")
			case r.Shard != "" && r.Shard != e.Shard:
				bad("it names another shard than its primary")
			case r.SystemUser != "" || r.SystemPassword != "" || r.Path != "":
				bad("it has a system user or a path, which are of other dialects")
			case seen[at]:
				bad("it is its primary, or named twice")
			}
			seen[at] = true
		}
	}
	for i, e := range c.Shards {
		check(fmt.Sprintf("Cluster.Shards[%d]", i), e)
	}
	if c.Dedicated != nil {
		check("Cluster.Dedicated", *c.Dedicated)
	}
	return errs
}

// derived reports a MySQL place whose login the cluster derives: that of a tenant with a database of its own.
func (c Cluster) derived(p Place) bool { return !slices.Contains(c.ShardIDs(), p.Shard) }

// Control returns the control database's endpoint: control.db, or the schema tdal_control on the first server, named after the first shard's
// database so that two deployments can share a server.
func (c Cluster) Control() Endpoint {
	if c.Dialect == SQLite {
		return Endpoint{Dialect: SQLite, Path: filepath.Join(c.Dir, "control.db")}
	}
	e := c.Shards[0]
	e.Database += "_tdal_control"
	e.Replicas = nil           // it is read where it is written
	if c.Dialect == Postgres { // no tenant has anything to do there
		e = c.logins(e, "control")
		e.User, e.Password = e.SystemUser, e.SystemPassword
	}
	return e
}

// secret is the key of the derived logins.
func (c Cluster) secret() string {
	if c.LoginSecret != "" || len(c.Shards) == 0 {
		return c.LoginSecret
	}
	return c.Shards[0].Password
}

// logins puts the two derived logins of a PostgreSQL place into its endpoint: one for tenants, one for system scopes. They are the place's own, so a login
// of one place is of no use in another.
func (c Cluster) logins(e Endpoint, place string) Endpoint {
	user, password := login(e.Database, c.secret(), tenant.ID("place "+place))
	e.User, e.Password = user+"_app", password
	user, password = login(e.Database, c.secret(), tenant.ID("system of "+place))
	e.SystemUser, e.SystemPassword = user+"_sys", password
	return e
}

// Endpoint returns the database of a place. owner is the tenant whose place it is, or "" for the shared tables of a default shard.
//
// It returns [*UnknownShardError] for a shard that is neither a default one nor the owner's, and [ErrNoLoginSecret].
func (c Cluster) Endpoint(p Place, owner tenant.ID) (Endpoint, error) {
	if c.Dialect == SQLite {
		name := string(p.Shard)
		if p.Schema != "" {
			name += "." + p.Schema
		}
		return Endpoint{Dialect: SQLite, Path: filepath.Join(c.Dir, name+".db")}, nil
	}
	for i, id := range c.ShardIDs() {
		if id != p.Shard {
			continue
		}
		e := c.Shards[i]
		if p.Schema != "" {
			e.Database = identifier(e.Database + "_" + p.Schema)
		}
		if c.Dialect == Postgres {
			e = c.logins(e, p.String())
		}
		return e, nil
	}
	if owner == "" {
		return Endpoint{}, &UnknownShardError{Shard: p.Shard}
	}
	e := c.Shards[0]
	if c.Dedicated != nil {
		base := e.Database
		if e = *c.Dedicated; e.Database == "" {
			e.Database = base
		}
		e.Dialect = c.Dialect
	}
	secret := c.secret()
	if secret == "" {
		return Endpoint{}, fmt.Errorf("tenant %q: %w", owner, ErrNoLoginSecret)
	}
	base := e.Database
	e.Database = identifier(base + "_" + string(p.Shard))
	if c.Dialect == Postgres {
		return c.logins(e, p.String()), nil
	}
	e.User, e.Password = login(base, secret, owner)
	return e, nil
}

// Server returns the endpoint, with the operator's login, of the server on which the place's database is made. The zero Place is the control
// database's.
func (c Cluster) Server(p Place) Endpoint {
	if p == (Place{}) {
		return c.Shards[0]
	}
	for i, id := range c.ShardIDs() {
		if id == p.Shard {
			return c.Shards[i]
		}
	}
	if c.Dedicated != nil {
		return *c.Dedicated
	}
	return c.Shards[0]
}

// login derives a login of a database: the same in every process that knows the secret, of no use for another owner. The owner is a tenant with a database
// of its own, or what no tenant is called.
func login(base, secret string, owner tenant.ID) (user, password string) {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("tenantdal login/1\x00" + base + "\x00" + string(owner)))
	sum := mac.Sum(nil)
	name := sha256.Sum256([]byte(base + "\x00" + string(owner)))
	return "tdal_" + hex.EncodeToString(name[:12]), base64.RawURLEncoding.EncodeToString(sum)
}

// identifier shortens a database's name to what MySQL (64 characters) and PostgreSQL (63 bytes) take, and keeps different names different. A GRANT writes
// _ and % with a backslash, which counts, so they count double here.
func identifier(name string) string {
	if width(name) <= 64 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := "$" + hex.EncodeToString(sum[:8])
	head := name
	for width(head)+len(tail) > 64 {
		head = head[:len(head)-1]
	}
	return head + tail
}

func width(name string) int {
	return len(name) + strings.Count(name, "_") + strings.Count(name, "%")
}

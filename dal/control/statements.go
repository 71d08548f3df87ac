package control

import (
	"strings"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// dialect holds the statements whose text differs between the databases.
type dialect struct {
	lock        *wire.Statement // locks the topology's row against other writers
	leases      *wire.Statement
	leaseInsert *wire.Statement
	leaseTake   *wire.Statement
	leaseRenew  *wire.Statement
	leaseFree   *wire.Statement
}

// The databases' clocks, in milliseconds since 1970 UTC. Neither depends on the session's time zone.
const (
	mysqlNow  = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
	sqliteNow = "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)"
	// Not now(), which stands still in a transaction.
	postgresNow = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
)

var dialects = map[string]dialect{
	"mysql": {
		// Reads the one row by primary key.
		lock:        register("control.lock.mysql", "SELECT epoch, hash FROM tdal_topology WHERE id = 1 FOR UPDATE"),
		leases:      register("control.leases.mysql", leasesText(mysqlNow)),
		leaseInsert: register("control.lease_insert.mysql", leaseInsertText(mysqlNow)),
		leaseTake:   register("control.lease_take.mysql", leaseTakeText(mysqlNow)),
		leaseRenew:  register("control.lease_renew.mysql", leaseRenewText(mysqlNow)),
		leaseFree:   register("control.lease_free.mysql", leaseFreeText(mysqlNow)),
	},
	"postgres": {
		// Reads the one row by primary key.
		lock:        register("control.lock.postgres", "SELECT epoch, hash FROM tdal_topology WHERE id = 1 FOR UPDATE"),
		leases:      register("control.leases.postgres", leasesText(postgresNow)),
		leaseInsert: register("control.lease_insert.postgres", leaseInsertText(postgresNow)),
		leaseTake:   register("control.lease_take.postgres", leaseTakeText(postgresNow)),
		leaseRenew:  register("control.lease_renew.postgres", leaseRenewText(postgresNow)),
		leaseFree:   register("control.lease_free.postgres", strings.ReplaceAll(leaseFreeText(postgresNow), "X''", "''")),
	},
	"sqlite": {
		// The transaction began with the file's write lock, so a plain read is a locked one.
		lock:        register("control.lock.sqlite", "SELECT epoch, hash FROM tdal_topology WHERE id = 1"),
		leases:      register("control.leases.sqlite", leasesText(sqliteNow)),
		leaseInsert: register("control.lease_insert.sqlite", leaseInsertText(sqliteNow)),
		leaseTake:   register("control.lease_take.sqlite", leaseTakeText(sqliteNow)),
		leaseRenew:  register("control.lease_renew.sqlite", leaseRenewText(sqliteNow)),
		leaseFree:   register("control.lease_free.sqlite", leaseFreeText(sqliteNow)),
	},
}

// The lease statements read or write by primary key, except leases, which reads the whole table of at most 1023 rows.

func leasesText(now string) string {
	return "SELECT node_id, fence, until_ms, until_ms <= " + now + " FROM tdal_node_leases ORDER BY node_id"
}

func leaseInsertText(now string) string {
	return "INSERT INTO tdal_node_leases (node_id, owner, fence, until_ms) VALUES (?, ?, 1, " + now + " + ?)"
}

func leaseTakeText(now string) string {
	return "UPDATE tdal_node_leases SET owner = ?, fence = fence + 1, until_ms = " + now + " + ? WHERE node_id = ? AND fence = ? AND until_ms <= " + now
}

func leaseRenewText(now string) string {
	return "UPDATE tdal_node_leases SET until_ms = " + now + " + ? WHERE node_id = ? AND owner = ? AND fence = ?"
}

// A released number keeps its row, so that its fence grows and the number that has been idle for longest is leased first.
func leaseFreeText(now string) string {
	return "UPDATE tdal_node_leases SET until_ms = " + now + ", owner = X'' WHERE node_id = ? AND owner = ? AND fence = ?"
}

// register makes a system statement. Polls are counted beside what callers read and write.
func register(name, text string) *wire.Statement { return wire.RegisterSystem(name, text, wire.Poll) }

var (
	// One statement, so one snapshot on every isolation level. Whole tables: one row, the shards, the keyspaces.
	// Pins come first: theirs are the types of the columns.
	stTopology = register("control.topology", "SELECT 3 AS kind, shard_key AS k, tenant_id AS a, keyspace AS b, shard AS c, 0 AS n, '' AS txt FROM tdal_pins "+
		"UNION ALL SELECT 4, shard_key, tenant_id, keyspace, shard, 0, '' FROM tdal_rooms "+
		"UNION ALL SELECT 0, '', hash, '', '', epoch, '' FROM tdal_topology "+
		"UNION ALL SELECT 1, '', shard, owner, state, weight, zone FROM tdal_shards "+
		"UNION ALL SELECT 2, '', name, strategy, '', virtual_nodes, COALESCE(definition, '') FROM tdal_keyspaces")
	// Primary key.
	stEpoch = register("control.epoch", "SELECT epoch FROM tdal_topology WHERE id = 1")
	// Primary key.
	stTopologyInsert = register("control.topology_insert", "INSERT INTO tdal_topology (id, epoch, hash) VALUES (1, 1, ?)")
	// Primary key.
	stEpochNext = register("control.epoch_next", "UPDATE tdal_topology SET epoch = epoch + 1 WHERE id = 1 AND epoch = ?")
	stShards    = register("control.shards", "SELECT shard FROM tdal_shards WHERE owner = '' ORDER BY ord") // unique key (owner, ord)
	// Primary key.
	stShardOwner  = register("control.shard_owner", "SELECT owner FROM tdal_shards WHERE shard = ?")
	stShardInsert = register("control.shard_insert", "INSERT INTO tdal_shards (shard, owner, ord) VALUES (?, ?, ?)")
	stKeyspaces   = register("control.keyspaces", "SELECT name, strategy, virtual_nodes, COALESCE(definition, '') FROM tdal_keyspaces ORDER BY name") // primary key, whole table
)

const tenantColumns = "SELECT t.tenant_id, t.model, t.status, t.schema_name, t.rate, t.burst, t.max_conns, t.max_queue, s.shard " +
	"FROM tdal_tenants t LEFT JOIN tdal_shards s ON s.owner = t.tenant_id "

var (
	// Primary key; the join by unique key (owner, ord).
	stTenant = register("control.tenant", tenantColumns+"WHERE t.tenant_id = ? ORDER BY s.ord")
	// Whole table in the order of its primary key.
	stTenants = register("control.tenants", tenantColumns+"ORDER BY t.tenant_id, s.ord")
	// Unique key (schema_name).
	stSchemaOwner  = register("control.schema_owner", "SELECT tenant_id FROM tdal_tenants WHERE schema_name = ?")
	stTenantInsert = register("control.tenant_insert", "INSERT INTO tdal_tenants "+
		"(tenant_id, model, status, schema_name, rate, burst, max_conns, max_queue) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
	// Primary key.
	stTenantUpdate = register("control.tenant_update", "UPDATE tdal_tenants SET status = ?, rate = ?, burst = ?, max_conns = ?, max_queue = ? "+
		"WHERE tenant_id = ? AND model = ?")
)

var (
	// One statement, so one snapshot. Whole tables.
	stVersions = register("control.versions", "SELECT 0 AS kind, shard, schema_name, set_name, version FROM tdal_versions "+
		"UNION ALL SELECT 1, '', '', set_name, version FROM tdal_targets")
	// Whole table of targets; the join by primary key.
	stVersionsAt = register("control.versions_at", "SELECT t.set_name, t.version, COALESCE(v.version, -1) FROM tdal_targets t "+
		"LEFT JOIN tdal_versions v ON v.set_name = t.set_name AND v.shard = ? AND v.schema_name = ? ORDER BY t.set_name")
	// Primary key.
	stTarget       = register("control.target", "SELECT version FROM tdal_targets WHERE set_name = ?")
	stTargetInsert = register("control.target_insert", "INSERT INTO tdal_targets (set_name, version) VALUES (?, ?)")
	// Primary key.
	stTargetUpdate = register("control.target_update", "UPDATE tdal_targets SET version = ? WHERE set_name = ? AND version = ?")
	// Primary key.
	stVersion       = register("control.version", "SELECT version FROM tdal_versions WHERE shard = ? AND schema_name = ? AND set_name = ?")
	stVersionInsert = register("control.version_insert", "INSERT INTO tdal_versions (shard, schema_name, set_name, version) VALUES (?, ?, ?, ?)")
	// Primary key.
	stVersionUpdate = register("control.version_update", "UPDATE tdal_versions SET version = ? WHERE shard = ? AND schema_name = ? AND set_name = ?")
)

// stLease reads one lease by primary key.
var stLease = register("control.lease", "SELECT owner, fence, until_ms FROM tdal_node_leases WHERE node_id = ?")

// Each by primary key.
var (
	stShardInfo      = register("control.shard_info", "UPDATE tdal_shards SET state = ?, zone = ?, weight = ? WHERE shard = ?")
	stShardAdd       = register("control.shard_add", "INSERT INTO tdal_shards (shard, owner, ord, state, zone, weight) VALUES (?, ?, ?, ?, ?, ?)")
	stShardDelete    = register("control.shard_delete", "DELETE FROM tdal_shards WHERE shard = ?")
	stKeyspaceDefine = register("control.keyspace_define", "INSERT INTO tdal_keyspaces (name, strategy, virtual_nodes, definition) VALUES (?, ?, ?, ?)")
	stKeyspaceUpdate = register("control.keyspace_update", "UPDATE tdal_keyspaces SET strategy = ?, virtual_nodes = ?, definition = ? WHERE name = ?")
	stPinInsert      = register("control.pin_insert", "INSERT INTO tdal_pins (tenant_id, keyspace, shard_key, shard) VALUES (?, ?, ?, ?)")
	stPinDelete      = register("control.pin_delete", "DELETE FROM tdal_pins WHERE tenant_id = ? AND keyspace = ? AND shard_key = ?")
	stRoomInsert     = register("control.room_insert", "INSERT INTO tdal_rooms (tenant_id, keyspace, shard_key, shard) VALUES (?, ?, ?, ?)")
	stRoomDelete     = register("control.room_delete", "DELETE FROM tdal_rooms WHERE tenant_id = ? AND keyspace = ? AND shard_key = ?")
	stLogInsert      = register("control.topology_log_insert", "INSERT INTO tdal_topology_log (epoch, actor, reason, changes, at_ms) VALUES (?, ?, ?, ?, ?)")
	stLog            = register("control.topology_log", "SELECT epoch, actor, reason, changes, at_ms FROM tdal_topology_log ORDER BY epoch DESC LIMIT ?")
)

// Unique key (owner, ord).
var stShardLast = register("control.shard_last", "SELECT COALESCE(MAX(ord), -1) FROM tdal_shards WHERE owner = ?")

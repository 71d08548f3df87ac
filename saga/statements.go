package saga

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// statement is one registered constant in the words of each dialect.
type statement struct{ sqlite, mysql, postgres *wire.Statement }

// in returns the constant for the dialect.
func (s statement) in(d dal.Dialect) *wire.Statement {
	switch d {
	case dal.SQLite:
		return s.sqlite
	case dal.Postgres:
		return s.postgres
	}
	return s.mysql
}

// Words in a text that the dialects spell differently. Times are microseconds of the database's own clock: no process's clock decides about a lease.
// The journal's writers go by the primary key: through k_due first, two of them would lock its entries and the rows in opposite orders.
var (
	sqliteWords = strings.NewReplacer(
		"{now}", "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
		"{by key}", "",
		"{share}", "",
		"{none}", "X''",
	)
	mysqlWords = strings.NewReplacer(
		"{now}", "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)",
		"{by key}", " FORCE INDEX (PRIMARY)",
		"{share}", " LOCK IN SHARE MODE",
		"{none}", "X''",
	)
	// Not now(), which stands still in a transaction.
	postgresWords = strings.NewReplacer(
		"{now}", "CAST(date_part('epoch', clock_timestamp()) * 1000000 AS BIGINT)",
		"{by key}", "",
		"{share}", " FOR SHARE",
		"{none}", "''::bytea",
	)
)

// forTenant registers a tenant's statement; tenantArgs are the positions of the arguments that are the tenant.
func forTenant(name string, class wire.Class, text string, tenantArgs ...int) statement {
	return statement{
		sqlite:   wire.Register("saga."+name+"/sqlite", sqliteWords.Replace(text), class, tenantArgs...),
		mysql:    wire.Register("saga."+name+"/mysql", mysqlWords.Replace(text), class, tenantArgs...),
		postgres: wire.Register("saga."+name+"/postgres", postgresWords.Replace(text), class, tenantArgs...),
	}
}

// forSystem registers a statement of the relay or the reconciler, one text for SQLite and PostgreSQL and one for MySQL.
func forSystem(name string, class wire.Class, text, mysql string) statement {
	return statement{
		sqlite:   wire.RegisterSystem("saga."+name+"/sqlite", sqliteWords.Replace(text), class),
		mysql:    wire.RegisterSystem("saga."+name+"/mysql", mysqlWords.Replace(mysql), class),
		postgres: wire.RegisterSystem("saga."+name+"/postgres", postgresWords.Replace(text), class),
	}
}

// listed is a tenant's statement whose text ends in an IN list, for 1, 2, 4, ... 64 ids. A list is padded by repeating an id.
type listed [7]statement

// forList registers a statement with a list for {ids}, its last arguments.
func forList(name string, class wire.Class, text string, tenantArgs ...int) listed {
	var l listed
	for i := range l {
		n := 1 << i
		ids := strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
		l[i] = forTenant(fmt.Sprintf("%s.%d", name, n), class, strings.ReplaceAll(text, "{ids}", ids), tenantArgs...)
	}
	return l
}

// of returns the constant for n ids, 1 to 64, and the arguments with the padded ids behind them.
func (l listed) of(d dal.Dialect, ids []ID, args ...any) (*wire.Statement, []any) {
	i := bits.Len(uint(len(ids) - 1))
	for j := range 1 << i {
		args = append(args, ids[min(j, len(ids)-1)].bytes())
	}
	return l[i].in(d), args
}

// bytes returns the ID as an argument of a statement.
func (id ID) bytes() []byte { return id[:] }

// T1, start: one transaction on the player's shard.
var (
	// By the primary key of bag.
	takeFromBag = forTenant("start.bag", wire.Rows,
		"UPDATE bag SET qty = qty - ? WHERE tenant_id = ? AND player_id = ? AND item_id = ? AND qty >= ?", 1)
	insertJournal = forTenant("start.journal", wire.Rows,
		"INSERT INTO saga_out (tenant_id, saga_id, state, player_id, request_key, guild_id, item_id, qty, body_hash, epoch, attempts, due_at, void_at,"+
			" lease_owner, lease_until, fence, reason, created_at, ended_at)"+
			" VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, {now} + ?, {now} + ?, {none}, 0, 0, '', {now}, 0)", 0)
	// By the primary key of saga_out.
	readJournal = forTenant("journal", wire.Rows,
		"SELECT state, body_hash, reason FROM saga_out WHERE tenant_id = ? AND saga_id = ?", 0)
	// The same, waiting for a transaction that holds the row: after a broken commit it tells what happened, not what is still happening.
	readJournalLocked = forTenant("journal.locked", wire.Rows,
		"SELECT state, body_hash, reason FROM saga_out WHERE tenant_id = ? AND saga_id = ?{share}", 0)
)

// T2 and T2', apply and void: one transaction on the guild's shard.
var (
	insertDecision = forTenant("decide", wire.Rows,
		"INSERT INTO saga_in (tenant_id, saga_id, outcome, player_id, guild_id, item_id, qty, body_hash, reason, epoch, decided_at)"+
			" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {now})", 0)
	// By the primary keys of warehouse and guild. The guild's status is part of the condition, so that the common path needs no read.
	addToWarehouse = forTenant("apply.warehouse", wire.Rows,
		"UPDATE warehouse SET qty = qty + ? WHERE tenant_id = ? AND guild_id = ? AND item_id = ? AND qty <= 9223372036854775807 - ?"+
			" AND EXISTS (SELECT 1 FROM guild WHERE guild.tenant_id = ? AND guild.guild_id = ? AND guild.status = 1)", 1, 5)
	readGuild = forTenant("apply.guild", wire.Rows,
		"SELECT status FROM guild WHERE tenant_id = ? AND guild_id = ?", 0)
	readWarehouse = forTenant("apply.cell", wire.Rows,
		"SELECT qty FROM warehouse WHERE tenant_id = ? AND guild_id = ? AND item_id = ?", 0)
	insertWarehouse = forTenant("apply.newcell", wire.Rows,
		"INSERT INTO warehouse (tenant_id, guild_id, item_id, qty) VALUES (?, ?, ?, ?)", 0)
	// Only on the row that the same transaction inserted.
	rejectDecision = forTenant("apply.reject", wire.Rows,
		"UPDATE saga_in SET outcome = 2, reason = ? WHERE tenant_id = ? AND saga_id = ? AND outcome = 1", 1)
	// By the primary key of saga_in.
	readDecision = forTenant("decision", wire.Rows,
		"SELECT outcome, body_hash, player_id, reason FROM saga_in WHERE tenant_id = ? AND saga_id = ?", 0)
	readDecisions = forList("decisions", wire.Poll,
		"SELECT saga_id, outcome, body_hash FROM saga_in WHERE tenant_id = ? AND saga_id IN ({ids})", 0)
)

// T3 and T3', settle and refund, and what the relay notes on the player's shard. All by the primary key of saga_out, compare-and-set on state and fence.
var (
	settleJournal = forList("settle", wire.Rows,
		"UPDATE saga_out{by key} SET state = 4, ended_at = {now} WHERE tenant_id = ? AND fence = ? AND state IN (1, 2) AND saga_id IN ({ids})", 0)
	refundJournal = forTenant("refund.journal", wire.Rows,
		"UPDATE saga_out{by key} SET state = 5, reason = ?, ended_at = {now} WHERE tenant_id = ? AND saga_id = ? AND fence = ? AND state IN (1, 2)", 1)
	// By the primary key of bag.
	addToBag = forTenant("refund.bag", wire.Rows,
		"UPDATE bag SET qty = qty + ? WHERE tenant_id = ? AND player_id = ? AND item_id = ? AND qty <= 9223372036854775807 - ?", 1)
	readBag = forTenant("refund.cell", wire.Rows,
		"SELECT qty FROM bag WHERE tenant_id = ? AND player_id = ? AND item_id = ?", 0)
	insertBag = forTenant("refund.newcell", wire.Rows,
		"INSERT INTO bag (tenant_id, player_id, item_id, qty) VALUES (?, ?, ?, ?)", 0)
	postponeJournal = forList("postpone", wire.Poll,
		"UPDATE saga_out{by key} SET due_at = {now} + ?, lease_until = 0 WHERE tenant_id = ? AND fence = ? AND state IN (1, 2) AND saga_id IN ({ids})", 1)
	quarantineJournal = forTenant("quarantine", wire.Rows,
		"UPDATE saga_out{by key} SET state = 3, reason = ? WHERE tenant_id = ? AND saga_id = ? AND fence = ? AND state IN (1, 2)", 1)
	replayJournal = forTenant("replay", wire.Rows,
		"UPDATE saga_out{by key} SET state = 1, reason = '', attempts = 0, due_at = {now}, void_at = {now} + ?, lease_until = 0, fence = fence + 1"+
			" WHERE tenant_id = ? AND saga_id = ? AND state = 3", 1)
)

// The relay's poll and claim.
var (
	// k_due: one descent for each tenant with open donations, and none for the others. MySQL's loose scan needs state in the grouping (MariaDB 10.11:
	// 53 rows read of a backlog of 10,000; without it, or by the walk that serves the others, all of them).
	dueTenants = forSystem("poll.tenants", wire.Poll, walkTenants(true),
		"SELECT state, tenant_id FROM saga_out FORCE INDEX FOR GROUP BY (k_due) WHERE state IN (1, 2) GROUP BY state, tenant_id HAVING MIN(due_at) <= {now}")
	openTenants = forSystem("open.tenants", wire.Poll, walkTenants(false),
		"SELECT state, tenant_id FROM saga_out FORCE INDEX FOR GROUP BY (k_due) WHERE state IN (1, 2) GROUP BY state, tenant_id")
	// k_due, covering.
	dueIDs = forTenant("poll.due", wire.Poll,
		"SELECT saga_id FROM saga_out WHERE state = ? AND tenant_id = ? AND due_at <= {now} ORDER BY due_at, saga_id LIMIT ?", 1)
	openIDs = forTenant("open.ids", wire.Poll,
		"SELECT saga_id FROM saga_out WHERE state = ? AND tenant_id = ?", 1)
	// A claim is an atomic compare-and-set, so no lock is held over the work that follows. A donation whose time is over becomes VOIDING here.
	claimDue = forList("claim.due", wire.Poll,
		"UPDATE saga_out{by key} SET lease_owner = ?, lease_until = {now} + ?, due_at = {now} + ?, fence = fence + 1, attempts = attempts + 1,"+
			" state = CASE WHEN void_at <= {now} THEN 2 ELSE state END"+
			" WHERE tenant_id = ? AND due_at <= {now} AND state IN (1, 2) AND saga_id IN ({ids})", 3)
	// The reconciler's: it takes over leases, which guard nothing.
	claimOpen = forList("claim.open", wire.Poll,
		"UPDATE saga_out{by key} SET lease_owner = ?, lease_until = {now} + ?, due_at = {now} + ?, fence = fence + 1, attempts = attempts + 1,"+
			" state = CASE WHEN void_at <= {now} THEN 2 ELSE state END"+
			" WHERE tenant_id = ? AND state IN (1, 2) AND saga_id IN ({ids})", 3)
	readClaimed = forList("claim.rows", wire.Poll,
		"SELECT saga_id, state, player_id, request_key, guild_id, item_id, qty, body_hash, epoch, attempts, fence FROM saga_out"+
			" WHERE tenant_id = ? AND lease_owner = ? AND state IN (1, 2) AND saga_id IN ({ids})", 0)
)

// sqliteTenants lists (state, tenant_id) with open donations by walking k_due from tenant to tenant, since SQLite has no loose index scan of its own.
func walkTenants(due bool) string {
	walk := func(name, state string) string {
		return name + "(tenant_id) AS (SELECT MIN(tenant_id) FROM saga_out WHERE state = " + state +
			" UNION ALL SELECT (SELECT MIN(o.tenant_id) FROM saga_out o WHERE o.state = " + state + " AND o.tenant_id > " + name + ".tenant_id)" +
			" FROM " + name + " WHERE " + name + ".tenant_id IS NOT NULL)"
	}
	pick := func(name, state string) string {
		text := "SELECT " + state + ", tenant_id FROM " + name + " WHERE tenant_id IS NOT NULL"
		if due {
			text += " AND (SELECT MIN(o.due_at) FROM saga_out o WHERE o.state = " + state + " AND o.tenant_id = " + name + ".tenant_id) <= {now}"
		}
		return text
	}
	return "WITH RECURSIVE " + walk("p", "1") + ", " + walk("v", "2") + " " + pick("p", "1") + " UNION ALL " + pick("v", "2")
}

// Mints, burns and guilds.
var (
	insertLedger = forTenant("ledger.insert", wire.Rows,
		"INSERT INTO ledger (tenant_id, mint_id, side, owner_id, kind, item_id, qty, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, {now})", 0)
	// By the primary key of ledger.
	readLedger = forTenant("ledger.read", wire.Rows,
		"SELECT kind, item_id, qty FROM ledger WHERE tenant_id = ? AND mint_id = ? AND side = ? AND owner_id = ?", 0)
	stockWarehouse = forTenant("stock.warehouse", wire.Rows,
		"UPDATE warehouse SET qty = qty + ? WHERE tenant_id = ? AND guild_id = ? AND item_id = ? AND qty <= 9223372036854775807 - ?", 1)
	takeFromWarehouse = forTenant("burn.warehouse", wire.Rows,
		"UPDATE warehouse SET qty = qty - ? WHERE tenant_id = ? AND guild_id = ? AND item_id = ? AND qty >= ?", 1)
	updateGuild = forTenant("guild.update", wire.Rows,
		"UPDATE guild SET status = ? WHERE tenant_id = ? AND guild_id = ?", 1)
	insertGuild = forTenant("guild.insert", wire.Rows,
		"INSERT INTO guild (tenant_id, guild_id, status) VALUES (?, ?, ?)", 0)
)

// What the reconciler and operators read. Each is one statement, and so one snapshot: at READ COMMITTED a transaction would be several.
var (
	// k_due for the states; the rows for their ages.
	countOpen = forSystem("pending", wire.Poll, countOpenText, countOpenText)
	// k_due.
	listQuarantined = forSystem("quarantined", wire.Poll, listQuarantinedText, listQuarantinedText)
	readClock       = forSystem("clock", wire.Poll, "SELECT {now}", "SELECT {now}")
	// Whole tables: bag, ledger and saga_out.
	sumSources = forSystem("sums.sources", wire.Poll, sumSourcesText, sumSourcesText)
	// Whole tables: warehouse, ledger and saga_in.
	sumTargets = forSystem("sums.targets", wire.Poll, sumTargetsText, sumTargetsText)
	// By the primary key of saga_in, page by page.
	listApplied = forSystem("applied", wire.Poll, listAppliedText, listAppliedText)
	// By the primary key of saga_out.
	readJournals = forList("journals", wire.Poll,
		"SELECT saga_id, state, body_hash FROM saga_out WHERE tenant_id = ? AND saga_id IN ({ids})", 0)
)

const (
	countOpenText       = "SELECT state, COUNT(*), {now} - MIN(created_at) FROM saga_out WHERE state IN (1, 2, 3) GROUP BY state"
	listQuarantinedText = "SELECT tenant_id, saga_id, player_id, request_key, guild_id, item_id, qty, reason, attempts FROM saga_out WHERE state = 3" +
		" ORDER BY tenant_id, saga_id"
	listAppliedText = "SELECT tenant_id, saga_id, player_id, guild_id, item_id, qty, body_hash FROM saga_in" +
		" WHERE outcome = 1 AND (tenant_id > ? OR (tenant_id = ? AND saga_id > ?)) ORDER BY tenant_id, saga_id LIMIT ?"
)

// The rows of the two sums: what (1 balance, 2 minted, 3 burned, 4 open or applied, 5 ended lately), tenant, item, guild or player, saga id, body hash,
// and the quantity in two halves, since sums pass 2^63-1.
const (
	sumSourcesText = "SELECT 1, tenant_id, item_id, {none}, {none}, {none}, SUM(qty >> 32), SUM(qty & 4294967295) FROM bag GROUP BY tenant_id, item_id" +
		" UNION ALL SELECT 1 + kind, tenant_id, item_id, {none}, {none}, {none}, SUM(qty >> 32), SUM(qty & 4294967295) FROM ledger" +
		" WHERE side = 1 AND kind IN (1, 2) GROUP BY kind, tenant_id, item_id" +
		" UNION ALL SELECT 4, tenant_id, item_id, guild_id, saga_id, body_hash, qty >> 32, qty & 4294967295 FROM saga_out WHERE state IN (1, 2, 3)" +
		" UNION ALL SELECT 5, tenant_id, item_id, guild_id, saga_id, body_hash, qty >> 32, qty & 4294967295 FROM saga_out WHERE state IN (4, 5) AND ended_at >= ?"
	sumTargetsText = "SELECT 1, tenant_id, item_id, {none}, {none}, {none}, SUM(qty >> 32), SUM(qty & 4294967295) FROM warehouse GROUP BY tenant_id, item_id" +
		" UNION ALL SELECT 1 + kind, tenant_id, item_id, {none}, {none}, {none}, SUM(qty >> 32), SUM(qty & 4294967295) FROM ledger" +
		" WHERE side = 2 AND kind IN (1, 2) GROUP BY kind, tenant_id, item_id" +
		" UNION ALL SELECT 4, tenant_id, item_id, player_id, saga_id, body_hash, qty >> 32, qty & 4294967295 FROM saga_in WHERE outcome = 1 AND decided_at >= ?"
)

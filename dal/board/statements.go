package board

import (
	"strconv"
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

// Words in a text that the dialects spell differently. Times are microseconds of the database's own clock: no process's clock decides about a lease. In a list of columns PostgreSQL does not infer the type of a placeholder.
var (
	sqliteWords   = strings.NewReplacer("{bytes}", "?", "{int}", "?", "{share}", "", "{now}", "CAST(unixepoch('subsec') * 1000000 AS INTEGER)")
	mysqlWords    = strings.NewReplacer("{bytes}", "?", "{int}", "?", "{share}", " LOCK IN SHARE MODE", "{now}", "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
	postgresWords = strings.NewReplacer("{bytes}", "CAST(? AS BYTEA)", "{int}", "CAST(? AS BIGINT)", "{share}", " FOR SHARE", "{now}", "CAST(date_part('epoch', clock_timestamp()) * 1000000 AS BIGINT)")
)

// register registers a tenant's statement, one text for SQLite and PostgreSQL and one for MySQL; tenantArgs are the positions of the arguments that are
// the tenant.
func register(name, text, mysql string, tenantArgs ...int) statement {
	return statement{
		sqlite:   wire.Register("board."+name+"/sqlite", sqliteWords.Replace(text), wire.Rows, tenantArgs...),
		mysql:    wire.Register("board."+name+"/mysql", mysqlWords.Replace(mysql), wire.Rows, tenantArgs...),
		postgres: wire.Register("board."+name+"/postgres", postgresWords.Replace(text), wire.Rows, tenantArgs...),
	}
}

// updates give a player of an open group a score, one statement a mode, by the primary keys of both tables. The lock of the group's row lasts as long as
// the statement's transaction: who closes the group waits for it, and none begins after. They affect no row where the group is not open, and in mode
// Best where the score is not better. MySQL assigns from left to right.
var updates = func() (all [Add + 1]statement) {
	const (
		insert = "INSERT INTO board_entries (tenant_id, place, player, board, score, at)" +
			" SELECT tenant_id, place, {bytes}, board, {int}, {int} FROM board_groups WHERE tenant_id = ? AND place = ? AND state = 1{share}"
		conflict  = insert + " ON CONFLICT (tenant_id, place, player) DO UPDATE SET "
		duplicate = insert + " ON DUPLICATE KEY UPDATE "
	)
	all[Set] = register("set",
		conflict+"score = excluded.score, at = excluded.at",
		duplicate+"board_entries.score = VALUES(score), board_entries.at = VALUES(at)", 3)
	all[Best] = register("best",
		conflict+"score = excluded.score, at = excluded.at"+
			" WHERE board_entries.score < excluded.score OR (board_entries.score = excluded.score AND board_entries.at > excluded.at)",
		duplicate+"board_entries.at = IF(board_entries.score < VALUES(score), VALUES(at),"+
			" IF(board_entries.score = VALUES(score), LEAST(board_entries.at, VALUES(at)), board_entries.at)),"+
			" board_entries.score = GREATEST(board_entries.score, VALUES(score))", 3)
	all[Add] = register("add",
		conflict+"score = board_entries.score + excluded.score, at = excluded.at",
		duplicate+"board_entries.score = board_entries.score + VALUES(score), board_entries.at = VALUES(at)", 3)
	return all
}()

var (
	// By the primary key of board_groups.
	readGroup = plain("group", "SELECT state FROM board_groups WHERE tenant_id = ? AND place = ?", 0)
	// The same, until the end of the transaction.
	shareGroup = plain("group.share", "SELECT state FROM board_groups WHERE tenant_id = ? AND place = ?{share}", 0)
	makeGroup  = register("group.make",
		"INSERT INTO board_groups (tenant_id, place, board, state) VALUES (?, ?, ?, ?) ON CONFLICT (tenant_id, place) DO NOTHING",
		"INSERT INTO board_groups (tenant_id, place, board, state) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE state = state", 0)

	// By the primary keys of both tables: a row with an absent entry for a player without one, and no row for a group without one.
	readEntry = plain("entry",
		"SELECT board_groups.state, board_entries.score, board_entries.at FROM board_groups LEFT JOIN board_entries"+
			" ON board_entries.tenant_id = ? AND board_entries.place = board_groups.place AND board_entries.player = ?"+
			" WHERE board_groups.tenant_id = ? AND board_groups.place = ?", 0, 2)
	removeEntry = plain("remove", "DELETE FROM board_entries WHERE tenant_id = ? AND place = ? AND player = ?", 0)
)

// Of a rebuild, by the primary keys.
var (
	// claim takes the lease of a definition that is as it was read.
	claim = plain("rebuild.claim", "UPDATE board_definitions SET next_groups = ?, next_keep = ?, owner = ?, lease_until = {now} + ?"+
		" WHERE tenant_id = ? AND board = ? AND generation = ? AND next_groups = ? AND next_keep = ? AND old_groups = ? AND lease_until <= {now}", 4)
	renew = plain("rebuild.renew", "UPDATE board_definitions SET lease_until = {now} + ? WHERE tenant_id = ? AND board = ? AND owner = ?", 1)
	// turn makes the new layout the board's. MySQL assigns from left to right.
	turn = plain("rebuild.turn", "UPDATE board_definitions SET old_groups = group_count, generation = generation + 1, group_count = next_groups,"+
		" keep_count = next_keep, next_groups = 0, next_keep = 0 WHERE tenant_id = ? AND board = ? AND generation = ? AND next_groups > 0 AND owner = ?", 0)
	finish = plain("rebuild.finish", "UPDATE board_definitions SET old_groups = 0, owner = ?, lease_until = 0"+
		" WHERE tenant_id = ? AND board = ? AND generation = ? AND next_groups = 0 AND owner = ?", 1)
	setKeep = plain("rebuild.keep", "UPDATE board_definitions SET keep_count = ?"+
		" WHERE tenant_id = ? AND board = ? AND generation = ? AND next_groups = 0 AND old_groups = 0", 1)

	closeGroup = register("group.close",
		"INSERT INTO board_groups (tenant_id, place, board, state) VALUES (?, ?, ?, 2) ON CONFLICT (tenant_id, place) DO UPDATE SET state = 2",
		"INSERT INTO board_groups (tenant_id, place, board, state) VALUES (?, ?, ?, 2) ON DUPLICATE KEY UPDATE state = 2", 0)
	openGroup = plain("group.open", "UPDATE board_groups SET state = 1 WHERE tenant_id = ? AND place = ? AND state = 3", 0)
	readPage  = plain("page", "SELECT player, score, at FROM board_entries WHERE tenant_id = ? AND place = ? AND player > ? ORDER BY player LIMIT ?", 0)
	clearPage = plain("clear", "DELETE FROM board_entries WHERE tenant_id = ? AND place = ? AND player <= ?", 0)
)

// copies insert 1, 2, 4, ... 64 entries where they are not there. A list is padded by repeating an entry.
var copies = func() (all [7]statement) {
	for i := range all {
		n := 1 << i
		rows := strings.TrimSuffix(strings.Repeat("(?, {bytes}, {bytes}, {bytes}, {int}, {int}), ", n), ", ")
		tenants := make([]int, n)
		for j := range tenants {
			tenants[j] = 6 * j
		}
		text := "INSERT INTO board_entries (tenant_id, place, player, board, score, at) VALUES " + rows
		all[i] = register("copy."+strconv.Itoa(n), text+" ON CONFLICT (tenant_id, place, player) DO NOTHING",
			text+" ON DUPLICATE KEY UPDATE board_entries.score = board_entries.score", tenants...)
	}
	return all
}()

// plain registers a tenant's statement that all dialects share but for {share}.
func plain(name, text string, tenantArgs ...int) statement {
	return register(name, text, text, tenantArgs...)
}

package board

import (
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

// Words in a text that the dialects spell differently. In a list of columns PostgreSQL does not infer the type of a placeholder.
var (
	sqliteWords   = strings.NewReplacer("{bytes}", "?", "{int}", "?", "{share}", "")
	mysqlWords    = strings.NewReplacer("{bytes}", "?", "{int}", "?", "{share}", " LOCK IN SHARE MODE")
	postgresWords = strings.NewReplacer("{bytes}", "CAST(? AS BYTEA)", "{int}", "CAST(? AS BIGINT)", "{share}", " FOR SHARE")
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

// plain registers a tenant's statement that all dialects share but for {share}.
func plain(name, text string, tenantArgs ...int) statement {
	return register(name, text, text, tenantArgs...)
}

-- The materialised best entries of each board, one row on the board's home shard, and when they were computed.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_globals (
	tenant_id TEXT NOT NULL,
	board TEXT NOT NULL,
	computed_at INTEGER NOT NULL,
	entries BLOB NOT NULL,
	PRIMARY KEY (tenant_id, board)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS board_globals;

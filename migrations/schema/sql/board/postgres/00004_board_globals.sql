-- The materialised best entries of each board, one row on the board's home shard, and when they were computed.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_globals (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	board BYTEA NOT NULL,
	computed_at BIGINT NOT NULL,
	entries BYTEA NOT NULL,
	PRIMARY KEY (tenant_id, board)
);

-- +goose Down
DROP TABLE IF EXISTS board_globals;

-- The materialised best entries of each board, one row on the board's home shard, and when they were computed.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_globals (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	board VARBINARY(64) NOT NULL,
	computed_at BIGINT NOT NULL,
	entries MEDIUMBLOB NOT NULL,
	PRIMARY KEY (tenant_id, board)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS board_globals;

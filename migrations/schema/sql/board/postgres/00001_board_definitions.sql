-- The number of groups of each board, which places its rows, and how many each group keeps for reads; and its rebuild: next_groups is above 0 until the
-- entries are copied, then old_groups until the old ones are removed. lease_until, by the database's clock, is when owner may be thought dead.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_definitions (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	board BYTEA NOT NULL,
	group_count INTEGER NOT NULL CHECK (group_count > 0),
	keep_count INTEGER NOT NULL CHECK (keep_count > 0),
	generation BIGINT NOT NULL DEFAULT 0,
	next_groups INTEGER NOT NULL DEFAULT 0,
	next_keep INTEGER NOT NULL DEFAULT 0,
	old_groups INTEGER NOT NULL DEFAULT 0,
	owner BYTEA NOT NULL DEFAULT '',
	lease_until BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant_id, board)
);

-- +goose Down
DROP TABLE IF EXISTS board_definitions;

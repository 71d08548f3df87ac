-- The number of groups of each board, which places its rows, and how many each group keeps for reads; and its rebuild: next_groups is above 0 until the
-- entries are copied, then old_groups until the old ones are removed. lease_until, by the database's clock, is when owner may be thought dead.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_definitions (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	board VARBINARY(64) NOT NULL,
	group_count INT NOT NULL CHECK (group_count > 0),
	keep_count INT NOT NULL CHECK (keep_count > 0),
	generation BIGINT NOT NULL DEFAULT 0,
	next_groups INT NOT NULL DEFAULT 0,
	next_keep INT NOT NULL DEFAULT 0,
	old_groups INT NOT NULL DEFAULT 0,
	owner VARBINARY(32) NOT NULL DEFAULT '',
	lease_until BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant_id, board)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS board_definitions;

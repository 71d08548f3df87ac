-- The number of groups of each board, which places its rows, and how many each group keeps for reads.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_definitions (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	board VARBINARY(64) NOT NULL,
	group_count INT NOT NULL CHECK (group_count > 0),
	keep_count INT NOT NULL CHECK (keep_count > 0),
	PRIMARY KEY (tenant_id, board)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS board_definitions;

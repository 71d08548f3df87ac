-- The number of groups of each board, which places its rows, and how many each group keeps for reads.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_definitions (
	tenant_id TEXT NOT NULL,
	board TEXT NOT NULL,
	group_count INTEGER NOT NULL CHECK (group_count > 0),
	keep_count INTEGER NOT NULL CHECK (keep_count > 0),
	PRIMARY KEY (tenant_id, board)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS board_definitions;

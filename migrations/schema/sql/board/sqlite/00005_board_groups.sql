-- One row a group, at the place of its entries: every update of the group shares a lock of this row, so that whoever changes its state waits for them.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_groups (
	tenant_id TEXT NOT NULL,
	place TEXT NOT NULL,
	board TEXT NOT NULL,
	state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3),
	PRIMARY KEY (tenant_id, place)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS board_groups;

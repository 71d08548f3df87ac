-- One row a group, at the place of its entries: every update of the group shares a lock of this row, so that whoever changes its state waits for them.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_groups (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	place BYTEA NOT NULL,
	board BYTEA NOT NULL,
	state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 3),
	PRIMARY KEY (tenant_id, place)
);

-- +goose Down
DROP TABLE IF EXISTS board_groups;

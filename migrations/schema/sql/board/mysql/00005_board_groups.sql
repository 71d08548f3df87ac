-- One row a group, at the place of its entries: every update of the group shares a lock of this row, so that whoever changes its state waits for them.

-- +goose Up
CREATE TABLE IF NOT EXISTS board_groups (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	place VARBINARY(80) NOT NULL,
	board VARBINARY(64) NOT NULL,
	state INT NOT NULL CHECK (state BETWEEN 1 AND 3),
	PRIMARY KEY (tenant_id, place)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS board_groups;

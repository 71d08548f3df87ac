-- One row for each key of a table with a capacity: whoever adds rows under the key locks it first.

-- +goose Up
CREATE TABLE IF NOT EXISTS capacity_turns (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	of_table VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	shard_key VARBINARY(255) NOT NULL,
	turns BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, of_table, shard_key)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS capacity_turns;

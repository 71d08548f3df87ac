-- One row for each key of a table with a capacity: whoever adds rows under the key locks it first.

-- +goose Up
CREATE TABLE IF NOT EXISTS capacity_turns (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	of_table VARCHAR(64) COLLATE "C" NOT NULL,
	shard_key BYTEA NOT NULL,
	turns BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, of_table, shard_key)
);

-- +goose Down
DROP TABLE IF EXISTS capacity_turns;

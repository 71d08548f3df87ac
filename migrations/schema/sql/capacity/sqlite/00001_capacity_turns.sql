-- One row for each key of a table with a capacity: whoever adds rows under the key locks it first.

-- +goose Up
CREATE TABLE IF NOT EXISTS capacity_turns (
	tenant_id TEXT NOT NULL,
	of_table TEXT NOT NULL,
	shard_key TEXT NOT NULL,
	turns INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, of_table, shard_key)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS capacity_turns;

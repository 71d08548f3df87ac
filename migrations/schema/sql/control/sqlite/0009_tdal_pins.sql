-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_pins (
	tenant_id TEXT NOT NULL,
	keyspace TEXT NOT NULL,
	shard_key BLOB NOT NULL,
	shard TEXT NOT NULL,
	PRIMARY KEY (tenant_id, keyspace, shard_key)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_pins;

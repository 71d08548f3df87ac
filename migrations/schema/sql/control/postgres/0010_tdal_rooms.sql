-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_rooms (
	tenant_id TEXT COLLATE "C" NOT NULL,
	keyspace TEXT COLLATE "C" NOT NULL,
	shard_key BYTEA NOT NULL,
	shard TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (tenant_id, keyspace, shard_key)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_rooms;

-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_pins (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	keyspace VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	shard_key VARBINARY(1024) NOT NULL,
	shard VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	PRIMARY KEY (tenant_id, keyspace, shard_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_pins;

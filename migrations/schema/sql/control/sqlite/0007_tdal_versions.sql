-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_versions (
	shard TEXT NOT NULL,
	schema_name TEXT NOT NULL,
	set_name TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (shard, schema_name, set_name)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_versions;

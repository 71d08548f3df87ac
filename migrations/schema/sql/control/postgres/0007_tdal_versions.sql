-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_versions (
	shard TEXT COLLATE "C" NOT NULL,
	schema_name TEXT COLLATE "C" NOT NULL,
	set_name TEXT COLLATE "C" NOT NULL,
	version BIGINT NOT NULL,
	PRIMARY KEY (shard, schema_name, set_name)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_versions;

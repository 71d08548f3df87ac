-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_shards (
	shard TEXT NOT NULL,
	owner TEXT NOT NULL,
	ord INTEGER NOT NULL,
	state TEXT NOT NULL DEFAULT 'active',
	zone TEXT NOT NULL DEFAULT '',
	weight INTEGER NOT NULL DEFAULT 1,
	PRIMARY KEY (shard),
	CONSTRAINT u_tdal_shards_owner UNIQUE (owner, ord)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_shards;

-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_shards (
	shard TEXT COLLATE "C" NOT NULL,
	owner TEXT COLLATE "C" NOT NULL,
	ord BIGINT NOT NULL,
	state TEXT COLLATE "C" NOT NULL DEFAULT 'active',
	zone TEXT COLLATE "C" NOT NULL DEFAULT '',
	weight INTEGER NOT NULL DEFAULT 1,
	PRIMARY KEY (shard),
	CONSTRAINT u_tdal_shards_owner UNIQUE (owner, ord)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_shards;

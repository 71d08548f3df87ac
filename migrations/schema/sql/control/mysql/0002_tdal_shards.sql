-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_shards (
	shard VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	owner VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	ord INT NOT NULL,
	state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'active',
	zone VARCHAR(64) NOT NULL DEFAULT '',
	weight INT NOT NULL DEFAULT 1,
	PRIMARY KEY (shard),
	CONSTRAINT u_tdal_shards_owner UNIQUE (owner, ord)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_shards;

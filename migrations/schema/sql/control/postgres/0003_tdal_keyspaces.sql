-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_keyspaces (
	name TEXT COLLATE "C" NOT NULL,
	strategy TEXT COLLATE "C" NOT NULL,
	virtual_nodes BIGINT NOT NULL,
	definition TEXT COLLATE "C" NULL,
	PRIMARY KEY (name)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_keyspaces;

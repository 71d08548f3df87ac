-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_keyspaces (
	name TEXT NOT NULL,
	strategy TEXT NOT NULL,
	virtual_nodes INTEGER NOT NULL,
	definition TEXT NULL,
	PRIMARY KEY (name)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_keyspaces;

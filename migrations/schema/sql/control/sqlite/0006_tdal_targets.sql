-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_targets (
	set_name TEXT NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (set_name)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_targets;

-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_notes (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (name)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_notes;

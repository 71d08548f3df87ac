-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_notes (
	name TEXT COLLATE "C" NOT NULL,
	value TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (name)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_notes;

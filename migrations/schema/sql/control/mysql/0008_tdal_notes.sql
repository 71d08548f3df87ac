-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_notes (
	name VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	value VARBINARY(1024) NOT NULL,
	PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_notes;

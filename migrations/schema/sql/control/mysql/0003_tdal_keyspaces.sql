-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_keyspaces (
	name VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	strategy VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	virtual_nodes BIGINT NOT NULL,
	definition LONGTEXT NULL,
	PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_keyspaces;

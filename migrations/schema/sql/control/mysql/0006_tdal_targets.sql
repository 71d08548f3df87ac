-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_targets (
	set_name VARCHAR(31) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	version BIGINT NOT NULL,
	PRIMARY KEY (set_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_targets;

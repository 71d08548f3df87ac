-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_topology (
	id TINYINT NOT NULL,
	epoch BIGINT NOT NULL,
	hash VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT c_tdal_topology_one CHECK (id = 1),
	CONSTRAINT c_tdal_topology_epoch CHECK (epoch >= 1)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_topology;

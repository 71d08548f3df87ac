-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_topology_log (
	epoch BIGINT NOT NULL,
	actor VARCHAR(255) NOT NULL,
	reason VARCHAR(1024) NOT NULL,
	changes LONGTEXT NOT NULL,
	at_ms BIGINT NOT NULL,
	PRIMARY KEY (epoch)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_topology_log;

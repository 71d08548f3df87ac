-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_node_leases (
	node_id INT NOT NULL,
	owner VARBINARY(255) NOT NULL,
	fence BIGINT NOT NULL,
	until_ms BIGINT NOT NULL,
	PRIMARY KEY (node_id),
	CONSTRAINT c_tdal_node_leases_id CHECK (node_id BETWEEN 1 AND 1023)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_node_leases;

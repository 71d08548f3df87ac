-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_node_leases (
	node_id INTEGER NOT NULL,
	owner BLOB NOT NULL,
	fence INTEGER NOT NULL,
	until_ms INTEGER NOT NULL,
	PRIMARY KEY (node_id),
	CONSTRAINT c_tdal_node_leases_id CHECK (node_id BETWEEN 1 AND 1023)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_node_leases;

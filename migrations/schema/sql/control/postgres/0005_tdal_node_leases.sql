-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_node_leases (
	node_id BIGINT NOT NULL,
	owner BYTEA NOT NULL,
	fence BIGINT NOT NULL,
	until_ms BIGINT NOT NULL,
	PRIMARY KEY (node_id),
	CONSTRAINT c_tdal_node_leases_id CHECK (node_id BETWEEN 1 AND 1023)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_node_leases;

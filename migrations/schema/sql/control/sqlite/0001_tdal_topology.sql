-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_topology (
	id INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	hash TEXT NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT c_tdal_topology_one CHECK (id = 1),
	CONSTRAINT c_tdal_topology_epoch CHECK (epoch >= 1)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_topology;

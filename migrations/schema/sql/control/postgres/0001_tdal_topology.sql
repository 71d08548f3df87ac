-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_topology (
	id BIGINT NOT NULL,
	epoch BIGINT NOT NULL,
	hash TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT c_tdal_topology_one CHECK (id = 1),
	CONSTRAINT c_tdal_topology_epoch CHECK (epoch >= 1)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_topology;

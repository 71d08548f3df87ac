-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_topology_log (
	epoch INTEGER NOT NULL,
	actor TEXT NOT NULL,
	reason TEXT NOT NULL,
	changes TEXT NOT NULL,
	at_ms INTEGER NOT NULL,
	PRIMARY KEY (epoch)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_topology_log;

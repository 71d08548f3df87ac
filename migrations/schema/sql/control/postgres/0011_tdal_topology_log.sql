-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_topology_log (
	epoch BIGINT NOT NULL,
	actor TEXT COLLATE "C" NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	changes TEXT COLLATE "C" NOT NULL,
	at_ms BIGINT NOT NULL,
	PRIMARY KEY (epoch)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_topology_log;

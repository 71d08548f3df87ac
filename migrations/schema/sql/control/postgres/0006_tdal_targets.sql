-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_targets (
	set_name TEXT COLLATE "C" NOT NULL,
	version BIGINT NOT NULL,
	PRIMARY KEY (set_name)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_targets;

-- What players won. A match rewards a player once: its number is the row's id.

-- +goose Up
CREATE TABLE IF NOT EXISTS rewards (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	id BIGINT NOT NULL,
	player_id VARBINARY(64) NOT NULL,
	gold BIGINT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (tenant_id, player_id, id)
);

-- +goose Down
DROP TABLE IF EXISTS rewards;

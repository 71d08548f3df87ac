-- One row a player and board, at the place of the player's group, "<board>/<group>".

-- +goose Up
CREATE TABLE IF NOT EXISTS board_entries (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	place BYTEA NOT NULL,
	player BYTEA NOT NULL,
	board BYTEA NOT NULL,
	score BIGINT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, place, player)
);

-- +goose Down
DROP TABLE IF EXISTS board_entries;

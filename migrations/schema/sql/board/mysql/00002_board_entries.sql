-- One row a player and board, at the place of the player's group, "<board>/<group>".

-- +goose Up
CREATE TABLE IF NOT EXISTS board_entries (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	place VARBINARY(80) NOT NULL,
	player VARBINARY(255) NOT NULL,
	board VARBINARY(64) NOT NULL,
	score BIGINT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, place, player),
	KEY board_entries_top (tenant_id, board, score DESC, at, player)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS board_entries;

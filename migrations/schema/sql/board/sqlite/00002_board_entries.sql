-- One row a player and board, at the place of the player's group, "<board>/<group>".

-- +goose Up
CREATE TABLE IF NOT EXISTS board_entries (
	tenant_id TEXT NOT NULL,
	place TEXT NOT NULL,
	player BLOB NOT NULL,
	board TEXT NOT NULL,
	score INTEGER NOT NULL,
	at INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, place, player)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS board_entries;

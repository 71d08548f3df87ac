-- What players won. A match rewards a player once: its number is the row's id.

-- +goose Up
CREATE TABLE IF NOT EXISTS rewards (
	tenant_id TEXT NOT NULL,
	id INTEGER NOT NULL,
	player_id TEXT NOT NULL,
	gold INTEGER NOT NULL,
	created_at DATETIME NOT NULL,
	updated_at DATETIME NOT NULL,
	PRIMARY KEY (tenant_id, player_id, id)
);

-- +goose Down
DROP TABLE IF EXISTS rewards;

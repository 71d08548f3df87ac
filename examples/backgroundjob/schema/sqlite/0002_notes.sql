-- What support reads when a player asks: one line a request.

-- +goose Up
CREATE TABLE IF NOT EXISTS notes (
	tenant_id TEXT NOT NULL,
	id INTEGER NOT NULL,
	player_id TEXT NOT NULL,
	text TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	updated_at DATETIME NOT NULL,
	PRIMARY KEY (tenant_id, player_id, id)
);

-- +goose Down
DROP TABLE IF EXISTS notes;

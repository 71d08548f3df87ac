-- +goose Up
CREATE TABLE IF NOT EXISTS items (
	tenant_id TEXT NOT NULL,
	player_id TEXT NOT NULL,
	id INTEGER NOT NULL,
	name TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	updated_at DATETIME NOT NULL,
	PRIMARY KEY (tenant_id, player_id, id)
);

-- +goose Down
DROP TABLE IF EXISTS items;

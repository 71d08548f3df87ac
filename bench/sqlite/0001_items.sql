-- +goose Up
CREATE TABLE IF NOT EXISTS items (
	tenant_id TEXT NOT NULL,
	id INTEGER NOT NULL,
	player_id TEXT NOT NULL,
	name TEXT NOT NULL,
	qty INTEGER NOT NULL,
	created_at DATETIME NOT NULL,
	updated_at DATETIME NOT NULL,
	PRIMARY KEY (tenant_id, id)
);

-- +goose Down
DROP TABLE IF EXISTS items;

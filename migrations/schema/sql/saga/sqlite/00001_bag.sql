-- What each player carries. A cell may be empty; it is never negative, and never a REAL: the table is STRICT.

-- +goose Up
CREATE TABLE IF NOT EXISTS bag (
	tenant_id TEXT NOT NULL,
	player_id TEXT NOT NULL,
	item_id TEXT NOT NULL,
	qty INTEGER NOT NULL CHECK (qty >= 0),
	PRIMARY KEY (tenant_id, player_id, item_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS bag;

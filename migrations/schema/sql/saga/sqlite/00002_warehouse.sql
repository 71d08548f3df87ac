-- What each guild owns. It lies beside its guild's row and the decisions about it.

-- +goose Up
CREATE TABLE IF NOT EXISTS warehouse (
	tenant_id TEXT NOT NULL,
	guild_id TEXT NOT NULL,
	item_id TEXT NOT NULL,
	qty INTEGER NOT NULL CHECK (qty >= 0),
	PRIMARY KEY (tenant_id, guild_id, item_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS warehouse;

-- Guilds: status 1 takes donations, 2 refuses them.

-- +goose Up
CREATE TABLE IF NOT EXISTS guild (
	tenant_id TEXT NOT NULL,
	guild_id TEXT NOT NULL,
	status INTEGER NOT NULL CHECK (status IN (1, 2)),
	PRIMARY KEY (tenant_id, guild_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS guild;

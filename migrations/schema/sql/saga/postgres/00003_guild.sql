-- Guilds: status 1 takes donations, 2 refuses them.

-- +goose Up
CREATE TABLE IF NOT EXISTS guild (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	guild_id BYTEA NOT NULL,
	status SMALLINT NOT NULL CHECK (status IN (1, 2)),
	PRIMARY KEY (tenant_id, guild_id)
);

-- +goose Down
DROP TABLE IF EXISTS guild;

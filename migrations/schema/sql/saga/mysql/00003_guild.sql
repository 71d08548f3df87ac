-- Guilds: status 1 takes donations, 2 refuses them.

-- +goose Up
CREATE TABLE IF NOT EXISTS guild (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	guild_id VARBINARY(255) NOT NULL,
	status TINYINT NOT NULL CHECK (status IN (1, 2)),
	PRIMARY KEY (tenant_id, guild_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS guild;

-- What each guild owns. It lies beside its guild's row and the decisions about it.

-- +goose Up
CREATE TABLE IF NOT EXISTS warehouse (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	guild_id VARBINARY(255) NOT NULL,
	item_id VARBINARY(255) NOT NULL,
	qty BIGINT NOT NULL CHECK (qty >= 0),
	PRIMARY KEY (tenant_id, guild_id, item_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS warehouse;

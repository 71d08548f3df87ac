-- What each guild owns. It lies beside its guild's row and the decisions about it.

-- +goose Up
CREATE TABLE IF NOT EXISTS warehouse (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	guild_id BYTEA NOT NULL,
	item_id BYTEA NOT NULL,
	qty BIGINT NOT NULL CHECK (qty >= 0),
	PRIMARY KEY (tenant_id, guild_id, item_id)
);

-- +goose Down
DROP TABLE IF EXISTS warehouse;

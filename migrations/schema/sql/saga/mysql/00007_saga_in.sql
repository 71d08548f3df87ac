-- The decisions about donations to guilds of this place: one row a donation, and whoever inserts it decides. It never changes after its transaction.
-- outcome 1 applied, 2 rejected, 3 voided.

-- +goose Up
CREATE TABLE IF NOT EXISTS saga_in (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	saga_id BINARY(16) NOT NULL,
	outcome TINYINT NOT NULL CHECK (outcome BETWEEN 1 AND 3),
	player_id VARBINARY(255) NOT NULL,
	guild_id VARBINARY(255) NOT NULL,
	item_id VARBINARY(255) NOT NULL,
	qty BIGINT NOT NULL CHECK (qty > 0),
	body_hash BINARY(16) NOT NULL,
	reason VARBINARY(255) NOT NULL,
	epoch BIGINT NOT NULL,
	decided_at BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, saga_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS saga_in;

-- The decisions about donations to guilds of this place: one row a donation, and whoever inserts it decides. It never changes after its transaction.
-- outcome 1 applied, 2 rejected, 3 voided.

-- +goose Up
CREATE TABLE IF NOT EXISTS saga_in (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	saga_id BYTEA NOT NULL CHECK (length(saga_id) = 16),
	outcome SMALLINT NOT NULL CHECK (outcome BETWEEN 1 AND 3),
	player_id BYTEA NOT NULL,
	guild_id BYTEA NOT NULL,
	item_id BYTEA NOT NULL,
	qty BIGINT NOT NULL CHECK (qty > 0),
	body_hash BYTEA NOT NULL CHECK (length(body_hash) = 16),
	reason BYTEA NOT NULL,
	epoch BIGINT NOT NULL,
	decided_at BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, saga_id)
);

-- +goose Down
DROP TABLE IF EXISTS saga_in;

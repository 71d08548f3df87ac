-- The journal of the donations that left this place, which is their outbox too: one row a donation.
-- state 1 pending, 2 voiding, 3 quarantined (all three still hold the items), 4 settled, 5 refunded. Times are microseconds of this database's clock.

-- +goose Up
CREATE TABLE IF NOT EXISTS saga_out (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	saga_id BYTEA NOT NULL CHECK (length(saga_id) = 16),
	state SMALLINT NOT NULL CHECK (state BETWEEN 1 AND 5),
	player_id BYTEA NOT NULL,
	request_key BYTEA NOT NULL,
	guild_id BYTEA NOT NULL,
	item_id BYTEA NOT NULL,
	qty BIGINT NOT NULL CHECK (qty > 0),
	body_hash BYTEA NOT NULL CHECK (length(body_hash) = 16),
	epoch BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	due_at BIGINT NOT NULL,
	void_at BIGINT NOT NULL,
	lease_owner BYTEA NOT NULL,
	lease_until BIGINT NOT NULL,
	fence BIGINT NOT NULL,
	reason BYTEA NOT NULL,
	created_at BIGINT NOT NULL,
	ended_at BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, saga_id)
);

-- +goose Down
DROP TABLE IF EXISTS saga_out;

-- The journal of the donations that left this place, which is their outbox too: one row a donation.
-- state 1 pending, 2 voiding, 3 quarantined (all three still hold the items), 4 settled, 5 refunded. Times are microseconds of this database's clock.
-- k_due is the relay's: the one index that is not led by tenant_id. It finds the tenants with work by a loose scan, whatever the size of a backlog.

-- +goose Up
CREATE TABLE IF NOT EXISTS saga_out (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	saga_id BINARY(16) NOT NULL,
	state TINYINT NOT NULL CHECK (state BETWEEN 1 AND 5),
	player_id VARBINARY(255) NOT NULL,
	request_key VARBINARY(255) NOT NULL,
	guild_id VARBINARY(255) NOT NULL,
	item_id VARBINARY(255) NOT NULL,
	qty BIGINT NOT NULL CHECK (qty > 0),
	body_hash BINARY(16) NOT NULL,
	epoch BIGINT NOT NULL,
	attempts INT NOT NULL,
	due_at BIGINT NOT NULL,
	void_at BIGINT NOT NULL,
	lease_owner VARBINARY(16) NOT NULL,
	lease_until BIGINT NOT NULL,
	fence BIGINT NOT NULL,
	reason VARBINARY(255) NOT NULL,
	created_at BIGINT NOT NULL,
	ended_at BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, saga_id),
	KEY k_due (state, tenant_id, due_at, saga_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS saga_out;

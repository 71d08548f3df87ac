-- The journal of the donations that left this place, which is their outbox too: one row a donation.
-- state 1 pending, 2 voiding, 3 quarantined (all three still hold the items), 4 settled, 5 refunded. Times are microseconds of this database's clock.

-- +goose Up
CREATE TABLE IF NOT EXISTS saga_out (
	tenant_id TEXT NOT NULL,
	saga_id BLOB NOT NULL CHECK (length(saga_id) = 16),
	state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),
	player_id TEXT NOT NULL,
	request_key TEXT NOT NULL,
	guild_id TEXT NOT NULL,
	item_id TEXT NOT NULL,
	qty INTEGER NOT NULL CHECK (qty > 0),
	body_hash BLOB NOT NULL CHECK (length(body_hash) = 16),
	epoch INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	due_at INTEGER NOT NULL,
	void_at INTEGER NOT NULL,
	lease_owner BLOB NOT NULL,
	lease_until INTEGER NOT NULL,
	fence INTEGER NOT NULL,
	reason TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	ended_at INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, saga_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS saga_out;

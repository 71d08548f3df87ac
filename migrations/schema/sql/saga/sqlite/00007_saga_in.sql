-- The decisions about donations to guilds of this place: one row a donation, and whoever inserts it decides. It never changes after its transaction.
-- outcome 1 applied, 2 rejected, 3 voided.

-- +goose Up
CREATE TABLE IF NOT EXISTS saga_in (
	tenant_id TEXT NOT NULL,
	saga_id BLOB NOT NULL CHECK (length(saga_id) = 16),
	outcome INTEGER NOT NULL CHECK (outcome BETWEEN 1 AND 3),
	player_id TEXT NOT NULL,
	guild_id TEXT NOT NULL,
	item_id TEXT NOT NULL,
	qty INTEGER NOT NULL CHECK (qty > 0),
	body_hash BLOB NOT NULL CHECK (length(body_hash) = 16),
	reason TEXT NOT NULL,
	epoch INTEGER NOT NULL,
	decided_at INTEGER NOT NULL,
	PRIMARY KEY (tenant_id, saga_id)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE IF EXISTS saga_in;

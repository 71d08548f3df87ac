-- What was minted and burned, one row each, written in the transaction that does it. Append-only: a row with the caller's id is the proof that its
-- effect happened. side 1 is a player's bag, 2 a guild's warehouse; kind 1 mints, 2 burns, 3 notes a guild's status (qty 0 closed, 1 open).

-- +goose Up
CREATE TABLE IF NOT EXISTS ledger (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	mint_id BYTEA NOT NULL,
	side SMALLINT NOT NULL CHECK (side IN (1, 2)),
	owner_id BYTEA NOT NULL,
	kind SMALLINT NOT NULL CHECK (kind IN (1, 2, 3)),
	item_id BYTEA NOT NULL,
	qty BIGINT NOT NULL CHECK (qty >= 0),
	created_at BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, mint_id, side, owner_id)
);

-- +goose Down
DROP TABLE IF EXISTS ledger;

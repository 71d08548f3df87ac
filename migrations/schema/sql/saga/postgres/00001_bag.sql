-- What each player carries. A cell may be empty; it is never negative. Keys are BYTEA, which takes every text.

-- +goose Up
CREATE TABLE IF NOT EXISTS bag (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	player_id BYTEA NOT NULL,
	item_id BYTEA NOT NULL,
	qty BIGINT NOT NULL CHECK (qty >= 0),
	PRIMARY KEY (tenant_id, player_id, item_id)
);

-- +goose Down
DROP TABLE IF EXISTS bag;

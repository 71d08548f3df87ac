-- What each player carries. A cell may be empty; it is never negative. Texts are compared byte by byte.

-- +goose Up
CREATE TABLE IF NOT EXISTS bag (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	player_id TEXT COLLATE "C" NOT NULL,
	item_id TEXT COLLATE "C" NOT NULL,
	qty BIGINT NOT NULL CHECK (qty >= 0),
	PRIMARY KEY (tenant_id, player_id, item_id)
);

-- +goose Down
DROP TABLE IF EXISTS bag;

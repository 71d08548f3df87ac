-- What each player carries. A cell may be empty; it is never negative. Keys are VARBINARY: a text collation would pad "a " to "a".

-- +goose Up
CREATE TABLE IF NOT EXISTS bag (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	player_id VARBINARY(255) NOT NULL,
	item_id VARBINARY(255) NOT NULL,
	qty BIGINT NOT NULL CHECK (qty >= 0),
	PRIMARY KEY (tenant_id, player_id, item_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS bag;

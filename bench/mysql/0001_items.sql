-- +goose Up
CREATE TABLE IF NOT EXISTS items (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	id BIGINT NOT NULL,
	player_id VARBINARY(64) NOT NULL,
	name VARCHAR(100) NOT NULL,
	qty BIGINT NOT NULL,
	created_at DATETIME(6) NOT NULL,
	updated_at DATETIME(6) NOT NULL,
	PRIMARY KEY (tenant_id, id)
) ENGINE=InnoDB;

-- +goose Down
DROP TABLE IF EXISTS items;

-- +goose Up
ALTER TABLE tdal_shards ADD COLUMN state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'active';

-- +goose Down
ALTER TABLE tdal_shards DROP COLUMN state;

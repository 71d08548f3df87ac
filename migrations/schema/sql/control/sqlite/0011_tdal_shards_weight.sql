-- +goose Up
ALTER TABLE tdal_shards ADD COLUMN weight INTEGER NOT NULL DEFAULT 1;

-- +goose Down
ALTER TABLE tdal_shards DROP COLUMN weight;

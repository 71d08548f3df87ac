-- +goose Up
ALTER TABLE tdal_shards ADD COLUMN weight INT NOT NULL DEFAULT 1;

-- +goose Down
ALTER TABLE tdal_shards DROP COLUMN weight;

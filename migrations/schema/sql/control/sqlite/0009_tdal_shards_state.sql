-- +goose Up
ALTER TABLE tdal_shards ADD COLUMN state TEXT NOT NULL DEFAULT 'active';

-- +goose Down
ALTER TABLE tdal_shards DROP COLUMN state;

-- +goose Up
ALTER TABLE tdal_shards ADD COLUMN state TEXT COLLATE "C" NOT NULL DEFAULT 'active';

-- +goose Down
ALTER TABLE tdal_shards DROP COLUMN state;

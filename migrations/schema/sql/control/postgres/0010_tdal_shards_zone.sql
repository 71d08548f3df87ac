-- +goose Up
ALTER TABLE tdal_shards ADD COLUMN zone TEXT COLLATE "C" NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tdal_shards DROP COLUMN zone;

-- +goose Up
ALTER TABLE tdal_keyspaces ADD COLUMN definition TEXT NULL;

-- +goose Down
ALTER TABLE tdal_keyspaces DROP COLUMN definition;

-- +goose Up
ALTER TABLE tdal_keyspaces ADD COLUMN definition TEXT COLLATE "C" NULL;

-- +goose Down
ALTER TABLE tdal_keyspaces DROP COLUMN definition;

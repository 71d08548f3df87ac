-- +goose Up
ALTER TABLE tdal_keyspaces ADD COLUMN definition LONGTEXT NULL;

-- +goose Down
ALTER TABLE tdal_keyspaces DROP COLUMN definition;

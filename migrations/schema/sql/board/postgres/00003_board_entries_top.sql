-- A board's entries in its own order: the best of a shard are the first of this index.

-- +goose Up
CREATE INDEX IF NOT EXISTS board_entries_top ON board_entries (tenant_id, board, score DESC, at, player);

-- +goose Down
DROP INDEX IF EXISTS board_entries_top;

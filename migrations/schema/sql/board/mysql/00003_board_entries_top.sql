-- board_entries_top was made with its table: MySQL 8 has no CREATE INDEX IF NOT EXISTS, and this step must be safe to run twice.

-- +goose Up
ALTER TABLE board_entries COMMENT = 'entries of boards; board_entries_top is the order of reads across groups';

-- +goose Down
ALTER TABLE board_entries COMMENT = '';

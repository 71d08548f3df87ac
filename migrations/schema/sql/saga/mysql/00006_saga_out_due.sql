-- k_due was made with its table: MySQL 8 has no CREATE INDEX IF NOT EXISTS, and this step must be safe to run twice. What is left to do here is to say
-- what the index is for, where an operator will look.

-- +goose Up
ALTER TABLE saga_out COMMENT = 'journal and outbox of donations; k_due is read by the relay alone';

-- +goose Down
ALTER TABLE saga_out COMMENT = '';

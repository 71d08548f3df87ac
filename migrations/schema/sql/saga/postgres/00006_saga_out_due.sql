-- The relay's index: the one that is not led by tenant_id. It finds the tenants with work by walking from one to the next, whatever the size of a backlog.

-- +goose Up
CREATE INDEX IF NOT EXISTS k_due ON saga_out (state, tenant_id, due_at, saga_id);

-- +goose Down
DROP INDEX IF EXISTS k_due;

-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_tenants (
	tenant_id TEXT NOT NULL,
	model TEXT NOT NULL,
	status TEXT NOT NULL,
	schema_name TEXT NULL,
	rate REAL NOT NULL,
	burst INTEGER NOT NULL,
	max_conns INTEGER NOT NULL,
	max_queue INTEGER NOT NULL,
	PRIMARY KEY (tenant_id),
	CONSTRAINT u_tdal_tenants_schema UNIQUE (schema_name)
) STRICT;

-- +goose Down
DROP TABLE IF EXISTS tdal_tenants;

-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_tenants (
	tenant_id VARCHAR(63) COLLATE "C" NOT NULL,
	model TEXT COLLATE "C" NOT NULL,
	status TEXT COLLATE "C" NOT NULL,
	schema_name TEXT COLLATE "C" NULL,
	rate DOUBLE PRECISION NOT NULL,
	burst BIGINT NOT NULL,
	max_conns BIGINT NOT NULL,
	max_queue BIGINT NOT NULL,
	PRIMARY KEY (tenant_id),
	CONSTRAINT u_tdal_tenants_schema UNIQUE (schema_name)
);

-- +goose Down
DROP TABLE IF EXISTS tdal_tenants;

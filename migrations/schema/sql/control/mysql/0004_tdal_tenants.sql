-- +goose Up
CREATE TABLE IF NOT EXISTS tdal_tenants (
	tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	model VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	schema_name VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NULL,
	rate DOUBLE NOT NULL,
	burst BIGINT NOT NULL,
	max_conns BIGINT NOT NULL,
	max_queue BIGINT NOT NULL,
	PRIMARY KEY (tenant_id),
	CONSTRAINT u_tdal_tenants_schema UNIQUE (schema_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS tdal_tenants;

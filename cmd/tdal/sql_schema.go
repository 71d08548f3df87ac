package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// schemaFile says which tables there are. It is read strictly: an unknown field is an error.
type schemaFile struct {
	// TenantColumn is the column that says whose row it is; tenant_id if it is left out.
	TenantColumn string `yaml:"tenant_column"`
	// Tenant tables have the column; there is at least one. Global tables are read by all. System tables are closed to tenants.
	Tenant []string `yaml:"tenant"`
	Global []string `yaml:"global"`
	System []string `yaml:"system"`
	// ShardKeys gives the shard-key column of a tenant table; optional.
	ShardKeys map[string]string `yaml:"shard_keys"`
}

// readSchema reads a schema file for a dialect.
func readSchema(data []byte, d gate.Dialect) (*gate.Schema, error) {
	var f schemaFile
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := dec.Decode(new(schemaFile)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	if len(f.Tenant) == 0 {
		return nil, errors.New("tenant: no table is listed")
	}
	if f.TenantColumn == "" {
		f.TenantColumn = "tenant_id"
	}
	var tables []gate.Table
	seen := map[string]bool{}
	for _, list := range []struct {
		class gate.Class
		names []string
	}{{gate.Tenant, f.Tenant}, {gate.Global, f.Global}, {gate.System, f.System}} {
		for _, name := range list.names {
			if key := strings.ToLower(name); seen[key] {
				return nil, fmt.Errorf("table %q is listed twice", name)
			} else {
				seen[key] = true
			}
			t := gate.Table{Name: name, Class: list.class}
			if list.class == gate.Tenant {
				t.ShardKey = f.ShardKeys[name]
			}
			tables = append(tables, t)
		}
	}
	for name := range f.ShardKeys {
		if !slices.Contains(f.Tenant, name) {
			return nil, fmt.Errorf("shard_keys: %q is not in the tenant list", name)
		}
	}
	return gate.NewSchema(d, f.TenantColumn, tables...)
}

// dialectOf returns the dialect of a flag's value.
func dialectOf(name string) (gate.Dialect, error) {
	for _, d := range []gate.Dialect{gate.MySQL, gate.SQLite, gate.Postgres} {
		if d.String() == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("--dialect %q: mysql, sqlite or postgres", name)
}

package schema

import "github.com/tenantdal/tenantdal/internal/wire"

// Observed returns the migrator with an observer under its pools, so that tests can stop it at any statement.
func (m Migrator) Observed(o wire.Observer) Migrator {
	m.observer = o
	return m
}

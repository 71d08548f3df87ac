package schema

import "github.com/tenantdal/tenantdal/internal/wire"

// LockName returns the name of the lock of one database of a server.
func LockName(database string) string { return lockName(database) }

// Split returns the statements that a file was judged by.
func Split(text string) (up, down string, err error) { return split(text) }

// Observed returns the migrator with an observer under its pools, so that tests can stop it at any statement.
func (m Migrator) Observed(o wire.Observer) Migrator {
	m.observer = o
	return m
}

// ControlSet returns the set of the control database's own tables.
func ControlSet() Set { return controlSet() }

// PostgresLockKey is the number of the lock of a PostgreSQL database.
const PostgresLockKey = postgresLockKey

package gate

import (
	"fmt"
	"strings"
)

// Class says whose rows a table holds.
type Class uint8

const (
	// Tenant tables have the tenant column.
	Tenant Class = iota + 1
	// Global tables are read by all and written by none of the tenants.
	Global
	// System tables are closed to tenants.
	System
)

// Table is a declared table.
type Table struct {
	Name     string
	Class    Class
	Keyspace string // of a Tenant table: a shard key is copied between tables of one keyspace alone
	ShardKey string // the column whose value says where a row lives; empty for a table without one
	Key      string // the first column of the primary key beside the tenant's, which is never NULL; may be empty
}

// Schema is the set of declared tables in one dialect. It is immutable and safe for concurrent use.
type Schema struct {
	dialect Dialect
	column  string
	tables  map[string]*Table // by folded name
}

// NewSchema returns the schema of the tables. Names are plain: ASCII letters, digits and _.
func NewSchema(d Dialect, tenantColumn string, tables ...Table) (*Schema, error) {
	if d < MySQL || d > Postgres {
		return nil, fmt.Errorf("gate: %s", d)
	}
	if !isPlain(tenantColumn) {
		return nil, fmt.Errorf("gate: the tenant column %q is not a plain name", tenantColumn)
	}
	s := &Schema{dialect: d, column: strings.ToLower(tenantColumn), tables: make(map[string]*Table, len(tables))}
	for _, t := range tables {
		if !isPlain(t.Name) || t.ShardKey != "" && !isPlain(t.ShardKey) {
			return nil, fmt.Errorf("gate: table %q, shard key %q: not plain names", t.Name, t.ShardKey)
		}
		if t.Class < Tenant || t.Class > System {
			return nil, fmt.Errorf("gate: table %q has no class", t.Name)
		}
		key := s.fold(t.Name)
		if old := s.tables[key]; old != nil && *old != t {
			return nil, fmt.Errorf("gate: table %q is declared twice", t.Name)
		}
		s.tables[key] = &t
	}
	return s, nil
}

// Dialect returns the dialect in which texts are read.
func (s *Schema) Dialect() Dialect { return s.dialect }

// fold returns a table name as the server compares it. MySQL's table names have case on most systems; where they have none, a name in another case
// is refused here, which is safe.
func (s *Schema) fold(name string) string {
	if s.dialect == SQLite {
		return strings.ToLower(name)
	}
	return name
}

// table looks a table up by a token's name.
func (s *Schema) table(n ident) *Table {
	if s.dialect == Postgres {
		return s.tables[foldPostgres(n)]
	}
	return s.tables[s.fold(n.name)]
}

// same reports that the server takes two names of tables, aliases or common table expressions for one. MySQL's have case on most systems; where they
// have none, names that differ in case alone are two here, which is safe: what binds one is not taken to bind the other.
func (s *Schema) same(a, b ident) bool {
	switch s.dialect {
	case SQLite:
		return strings.EqualFold(a.name, b.name)
	case Postgres:
		return foldPostgres(a) == foldPostgres(b)
	}
	return a.name == b.name
}

// foldPostgres returns a name as PostgreSQL compares it: in small letters unless it was quoted.
func foldPostgres(n ident) string {
	if n.quoted {
		return n.name
	}
	return strings.ToLower(n.name)
}

// similar reports a declared table whose name differs from n at most in case.
func (s *Schema) similar(name string) bool {
	for _, t := range s.tables {
		if strings.EqualFold(t.Name, name) {
			return true
		}
	}
	return false
}

// isTenantColumn reports the tenant column's name in any case. PostgreSQL's quoted "Tenant_ID" would be another column: see judge.number.
func (s *Schema) isTenantColumn(name string) bool { return strings.EqualFold(name, s.column) }

func isPlain(name string) bool {
	for i := range len(name) {
		if !isLetter(name[i]) && !isDigit(name[i]) {
			return false
		}
	}
	return name != "" && !isDigit(name[0])
}

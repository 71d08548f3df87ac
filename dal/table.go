package dal

import (
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

var gormValuerType = reflect.TypeFor[gorm.Valuer]()

// TenantColumn is the column that names the owner of a row, in every table of every tenant.
const TenantColumn = "tenant_id"

// Class says whose rows a table holds.
type Class uint8

const (
	// TenantClass tables have tenant_id, a keyspace and a shard-key column.
	TenantClass Class = iota + 1
	// LocalClass tables have tenant_id and no keyspace: a row belongs to the place of the transaction that writes it.
	LocalClass
	// GlobalClass tables have no tenant, exist in every place, are read by all and written under a system scope.
	GlobalClass
	// SystemClass tables are opened by a system scope that names them, and by nothing else.
	SystemClass
)

// Table declares one table. Make it with [Tenant], [Local], [Global] or [System].
type Table struct {
	Class    Class
	Keyspace string // for TenantClass
	ShardKey string // for TenantClass: the column whose value is the shard key
	model    reflect.Type
	limited  bool // it has a capacity: see Capacity
	limit    int
}

// Tenant declares M's table as a tenant's, in a keyspace, with the column that holds its shard key.
//
//	dal.Tenant[Item]("player", "player_id")
func Tenant[M any](keyspace, shardKey string) Table {
	return Table{Class: TenantClass, Keyspace: keyspace, ShardKey: shardKey, model: reflect.TypeFor[M]()}
}

// Local declares M's table as a tenant's without a keyspace: its rows live where the transaction that writes them runs.
func Local[M any]() Table { return Table{Class: LocalClass, model: reflect.TypeFor[M]()} }

// Global declares M's table as shared by all tenants: each place has a copy, and a system scope writes it.
func Global[M any]() Table { return Table{Class: GlobalClass, model: reflect.TypeFor[M]()} }

// System declares M's table as one that only a system scope that names it may touch.
func System[M any]() Table { return Table{Class: SystemClass, model: reflect.TypeFor[M]()} }

// TableName returns the table's name in the database, or "" for a model that gorm cannot parse.
func (t Table) TableName() string {
	if parsed, err := newTable(t, &sync.Map{}); err == nil {
		return parsed.name
	}
	return ""
}

// tables is the registry of declared tables. It is immutable after newTables.
type tables struct {
	byType map[reflect.Type]*table
	byName map[string]*table
	all    []*table
	joins  []join

	limited bool // one of them has a capacity
}

// table is a declared table with what its statements need.
type table struct {
	Table
	name     string
	schema   *schema.Schema
	tenant   *schema.Field // nil for Global
	shardKey *schema.Field // for TenantClass
	keys     []*schema.Field

	backQuoted, doubleQuoted string // see tenantColumn
}

// tenantColumn returns tenant_id with its table, quoted: both names are plain.
func (t *table) tenantColumn(d Dialect) string {
	if d == Postgres {
		return t.doubleQuoted
	}
	return t.backQuoted
}

// newTables parses every declared model and refuses what cannot be scoped, all in one error.
func newTables(decls []Table) (*tables, error) {
	ts := &tables{byType: map[reflect.Type]*table{}, byName: map[string]*table{}}
	cache := &sync.Map{}
	var errs []error
	for _, d := range decls {
		t, err := newTable(d, cache)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if problem, mend := t.capacityFault(); problem != "" {
			errs = append(errs, &ModelError{Table: t.name, Model: modelName(d.model), Problem: problem, Mend: mend})
			continue
		}
		t.keys = keysOf(t)
		if other := ts.byName[t.name]; other != nil && (other.Class != t.Class || other.Keyspace != t.Keyspace || other.ShardKey != t.ShardKey || other.limited != t.limited || other.limit != t.limit) {
			errs = append(errs, &ModelError{Table: t.name, Model: modelName(d.model), Problem: "it is declared twice, in different ways", Mend: "declare it once"})
			continue
		}
		if d.model != nil {
			if ts.byType[d.model] != nil {
				errs = append(errs, &ModelError{Table: t.name, Model: modelName(d.model), Problem: "it is declared twice", Mend: "declare it once"})
				continue
			}
			ts.byType[d.model] = t
		}
		if ts.byName[t.name] == nil {
			ts.byName[t.name] = t
		}
		ts.all = append(ts.all, t)
		ts.limited = ts.limited || t.limited
	}
	errs = append(errs, ts.linkJoins()...)
	return ts, errors.Join(errs...)
}

func newTable(d Table, cache *sync.Map) (*table, error) {
	if d.model == nil || d.model.Kind() != reflect.Struct {
		return nil, &ModelError{Model: modelName(d.model), Problem: "the model is not a struct", Mend: "declare the struct that gorm maps"}
	}
	s, err := schema.Parse(reflect.New(d.model).Interface(), cache, naming)
	if err != nil {
		return nil, &ModelError{Model: modelName(d.model), Problem: fmt.Sprintf("gorm cannot parse it: %v", err), Mend: "mend the model's tags"}
	}
	t := &table{Table: d, name: s.Table, schema: s}
	t.backQuoted, t.doubleQuoted = "`"+s.Table+"`.`"+TenantColumn+"`", `"`+s.Table+`"."`+TenantColumn+`"`
	fail := func(problem, mend string) (*table, error) {
		return nil, &ModelError{Table: s.Table, Model: modelName(d.model), Problem: problem, Mend: mend}
	}
	if problem, mend := unsafeFields(s); problem != "" {
		return fail(problem, mend)
	}
	t.tenant = s.FieldsByDBName[TenantColumn]
	if d.Class == SystemClass {
		return t, nil
	}
	if d.Class == GlobalClass {
		if t.tenant != nil {
			return fail("it has the column tenant_id", "declare it with dal.Tenant or dal.Local, or drop the column")
		}
		return t, nil
	}
	if t.tenant == nil {
		return fail("it has no column tenant_id", "embed dal.Model, or add TenantID tenant.ID `gorm:\"column:tenant_id\"`")
	}
	if t.tenant.FieldType != tenantIDType {
		return fail("its TenantID is a "+t.tenant.FieldType.String(), "make it a tenant.ID: a number compared with text matches other tenants")
	}
	for _, f := range s.PrimaryFields {
		// gorm takes an integer id for AUTO_INCREMENT unless told otherwise.
		if f.AutoIncrement && (f.TagSettings["AUTOINCREMENT"] != "" || !wideInteger(f.FieldType.Kind())) {
			return fail("its column "+f.DBName+" is AUTO_INCREMENT", "make it an int64 without autoIncrement: two shards would hand out one number; the library fills a zero id")
		}
	}
	if len(s.PrimaryFields) == 0 {
		return fail("it has no primary key", "embed dal.Model, or tag its key")
	}
	if d.Class == LocalClass {
		return t, nil
	}
	if d.Keyspace == "" {
		return fail("it has no keyspace", "dal.Tenant[M](\"player\", \"player_id\")")
	}
	t.shardKey = s.FieldsByDBName[d.ShardKey]
	if t.shardKey == nil || d.ShardKey == TenantColumn {
		return fail(fmt.Sprintf("it has no shard-key column %q", d.ShardKey), "name the column that the keyspace routes by")
	}
	return t, nil
}

// unsafeFields reports what a model's own types could do to a statement: write into its text, or build clauses that nobody judged.
func unsafeFields(s *schema.Schema) (problem, mend string) {
	if !isPlainName(s.Table) || strings.Contains(s.Table, ".") {
		return fmt.Sprintf("its name %q is not plain", s.Table), "use letters, digits and _"
	}
	seen := map[string]string{}
	for _, f := range s.Fields {
		if f.DBName == "" {
			continue
		}
		if !isPlainName(f.DBName) || strings.Contains(f.DBName, ".") {
			return fmt.Sprintf("its column %q is not plain", f.DBName), "use letters, digits and _"
		}
		if other, twice := seen[strings.ToLower(f.DBName)]; twice {
			return fmt.Sprintf("its fields %s and %s are one column, %q", other, f.Name, f.DBName), "map each column once"
		}
		seen[strings.ToLower(f.DBName)] = f.Name
		if writesSQL(f.IndirectFieldType) || writesSQL(f.FieldType) {
			return "its field " + f.Name + " is a " + f.FieldType.String() + ", which writes SQL of its own", "use a driver.Valuer"
		}
	}
	for _, list := range [][]clause.Interface{s.QueryClauses, s.CreateClauses, s.UpdateClauses, s.DeleteClauses} {
		for _, c := range list {
			switch c.(type) {
			case gorm.SoftDeleteQueryClause, gorm.SoftDeleteUpdateClause, gorm.SoftDeleteDeleteClause:
			default:
				return fmt.Sprintf("a field type builds clauses of its own (%T)", c), "use gorm.DeletedAt for soft deletes, and no other type with clauses"
			}
		}
	}
	return "", ""
}

func modelName(t reflect.Type) string {
	if t == nil {
		return ""
	}
	return t.String()
}

// keyspaceNames returns the declared keyspaces, sorted, each once.
func keyspaceNames(decls []Table) []string {
	seen := map[string]bool{}
	names := []string{}
	for _, d := range decls {
		if d.Keyspace != "" && !seen[d.Keyspace] {
			seen[d.Keyspace] = true
			names = append(names, d.Keyspace)
		}
	}
	sort.Strings(names)
	return names
}

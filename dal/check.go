package dal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// column, index and foreignKey are a database's own view of a table.
type (
	column struct {
		Name      string
		Type      string // lower case, without length
		Size      int64
		Nullable  bool
		Collation string // lower case; empty for numbers and binary strings
		Loose     bool   // its collation takes texts that differ for one (PostgreSQL)
		Auto      bool
	}
	index struct {
		Name    string
		Unique  bool
		Primary bool
		Columns []string
		Loose   []string // columns that the index compares case-folded (SQLite)
		Prefix  []string // columns of which the index holds a beginning alone (MySQL)
	}
	foreignKey struct {
		Name  string
		Table string
		From  []string
		To    []string
	}
	shape struct {
		Columns map[string]column
		Indexes []index
		Keys    []foreignKey
		Engine  string   // MySQL
		Floor   *floor   // PostgreSQL
		Rolls   []string // what rolls a whole transaction back on a broken constraint (SQLite)
	}
)

var (
	onConflictRollback = regexp.MustCompile(`(?i)ON\s+CONFLICT\s+ROLLBACK`)
	raiseRollback      = regexp.MustCompile(`(?i)RAISE\s*\(\s*ROLLBACK`)
)

// systemIndexes are the library's own, led by something else than tenant_id, used by its own system statements alone.
var systemIndexes = map[string]bool{"k_due": true}

// check compares the place's database with the place and with every declared table, and judges its login. All mistakes come in one error. Tables that
// were compared before are left out.
func (db *database) check(ctx context.Context, compared bool) error {
	if err := db.checkIdentity(ctx); err != nil {
		return err
	}
	var errs []error
	if db.dialect == Postgres {
		if err := db.checkRoles(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if db.dialect == MySQL {
		if err := db.checkGrants(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if compared {
		return errors.Join(errs...)
	}
	for _, t := range db.store.tables.all {
		s, err := db.inspect(ctx, t.name)
		if err != nil {
			errs = append(errs, fmt.Errorf("dal: place %s: inspect table %q: %w", db.place, t.name, err))
			continue
		}
		if len(s.Columns) == 0 {
			errs = append(errs, fmt.Errorf("%w: place %s has no table %q", ErrNotMigrated, db.place, t.name))
			continue
		}
		for _, m := range t.compare(s, db.dialect) {
			m.Place, m.Table, m.Model = db.place, t.name, modelName(t.model)
			errs = append(errs, m)
		}
	}
	if db.store.tables.limited {
		if s, err := db.inspect(ctx, capacityTable); err != nil {
			errs = append(errs, fmt.Errorf("dal: place %s: inspect table %q: %w", db.place, capacityTable, err))
		} else if len(s.Columns) == 0 {
			errs = append(errs, fmt.Errorf("%w: place %s has no table %q, which Table.Capacity needs: give schema.Up the set schema.Capacity()", ErrNotMigrated, db.place, capacityTable))
		}
	}
	return errors.Join(errs...)
}

// checkIdentity compares the place with what schema.Up wrote into its database, so that two servers named in another order are noticed before a row
// is looked for on the wrong one.
func (db *database) checkIdentity(ctx context.Context) error {
	var have Place
	err := db.each(ctx, placeOf, 1, func(rows *sql.Rows) error { return rows.Scan(&have.Shard, &have.Schema) })
	switch {
	case wire.IsMissing(err):
		return fmt.Errorf("%w: place %s: %w", ErrNotMigrated, db.place, err)
	case err == nil && have == Place{}:
		return fmt.Errorf("%w: place %s does not say which place it is", ErrNotMigrated, db.place)
	case err != nil:
		return fmt.Errorf("dal: place %s: %w", db.place, err)
	case have != db.place:
		return &IdentityError{Want: db.place, Have: have}
	}
	return nil
}

// compare lists what keeps the table from being kept apart by tenant.
func (t *table) compare(s shape, d Dialect) []*ModelError {
	var out []*ModelError
	bad := func(mend, problem string, args ...any) {
		out = append(out, &ModelError{Problem: fmt.Sprintf(problem, args...), Mend: mend})
	}
	for _, f := range t.schema.Fields {
		if _, ok := s.Columns[f.DBName]; f.DBName != "" && !f.IgnoreMigration && !ok {
			bad("migrate the table or drop the field", "it has no column %q", f.DBName)
		}
	}
	if s.Engine != "" && !strings.EqualFold(s.Engine, "InnoDB") {
		bad("ENGINE=InnoDB", "its engine is %s, which has no transactions", s.Engine)
	}
	for _, what := range s.Rolls {
		bad("ON CONFLICT ABORT, RAISE(ABORT)", "%s ends the whole transaction on a broken constraint: what follows would commit by itself", what)
	}
	if t.Class == GlobalClass || t.Class == SystemClass {
		return out
	}
	if s.Floor != nil {
		s.Floor.compare(bad)
	}
	for _, c := range s.Columns {
		if c.Auto && d == Postgres {
			bad("make it BIGINT NOT NULL: the library fills a zero id, two shards would hand out the same numbers", "column %q is an identity or a serial", c.Name)
		} else if c.Auto {
			bad("make it BIGINT NOT NULL: the library fills a zero id, two shards would hand out the same AUTO_INCREMENT numbers", "column %q is AUTO_INCREMENT", c.Name)
		}
	}
	if c, ok := s.Columns[TenantColumn]; ok {
		if c.Nullable {
			bad("tenant_id ... NOT NULL", "column tenant_id may be NULL")
		}
		if d == SQLite && kindOf(c.Type, d) != textKind {
			bad("tenant_id TEXT NOT NULL", "column tenant_id is %q, in which 7 and 007 are one tenant", c.Type)
		}
		if d == MySQL && (c.Type != "varchar" || c.Collation != "ascii_bin" || c.Size < 63) {
			bad("tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL", "column tenant_id is %s(%d) collate %q, in which two tenants may be equal", c.Type, c.Size, c.Collation)
		}
		if d == Postgres && (c.Type != "varchar" && c.Type != "text" || c.Loose || c.Size > 0 && c.Size < 63) {
			bad(`tenant_id VARCHAR(63) COLLATE "C" NOT NULL`, "column tenant_id is %s(%d) collate %q, in which two tenants may be equal", c.Type, c.Size, c.Collation)
		}
	}
	if t.shardKey != nil {
		if c := s.Columns[t.shardKey.DBName]; c.Nullable {
			bad(c.Name+" ... NOT NULL", "shard-key column %q may be NULL", c.Name)
		}
	}
	keyed := map[string]bool{}
	primary := false
	for _, ix := range s.Indexes {
		primary = primary || ix.Primary
		if systemIndexes[ix.Name] && strings.HasPrefix(t.name, "saga_") {
			continue
		}
		what := "index"
		switch {
		case ix.Primary:
			what = "primary key"
		case ix.Unique:
			what = "unique key"
		}
		if len(ix.Columns) == 0 || ix.Columns[0] != TenantColumn {
			bad("lead it with tenant_id", "%s %s (%s) does not begin with tenant_id", what, ix.Name, strings.Join(ix.Columns, ", "))
			continue
		}
		for _, c := range ix.Loose {
			if ix.Primary || ix.Unique || c == TenantColumn {
				bad("COLLATE BINARY", "%s %s compares column %q without regard to case or blanks", what, ix.Name, c)
			}
		}
		if !ix.Unique && !ix.Primary {
			continue
		}
		for _, c := range ix.Prefix {
			bad("index the whole column", "%s %s holds only the beginning of column %q: two keys that begin alike would be one row", what, ix.Name, c)
		}
		for _, c := range ix.Columns {
			keyed[c] = true
		}
		if t.shardKey != nil && !slices.Contains(ix.Columns, t.shardKey.DBName) && !t.libraryKey(ix) {
			bad("add "+t.shardKey.DBName+" to it, or keep the value in a table of its own whose shard key it is",
				"%s %s (%s) lacks the shard key %q: it can hold on one shard only", what, ix.Name, strings.Join(ix.Columns, ", "), t.shardKey.DBName)
		}
	}
	if !primary {
		bad("PRIMARY KEY (tenant_id, ...)", "it has no primary key")
	}
	if t.shardKey != nil {
		keyed[t.shardKey.DBName] = true
	}
	for name := range keyed {
		c := s.Columns[name]
		if f := t.schema.FieldsByDBName[name]; f != nil && name != TenantColumn {
			if want := kindOfField(f); want != otherKind && kindOf(c.Type, d) != otherKind && kindOf(c.Type, d) != want {
				bad("give column and field one kind of type", "key column %q is %q and its field %s a %s: texts that a number equals would be one row", name, c.Type, f.Name, f.FieldType)
			}
		}
		if d == Postgres && name != TenantColumn && (c.Loose || c.Type == "bpchar") {
			bad("make it VARCHAR or TEXT with a deterministic collation", "key column %q is %s collate %q, which pads blanks or folds case: two keys would be one row and two shards", name, c.Type, c.Collation)
		}
		if d == MySQL && name != TenantColumn && c.Collation != "" && !strings.Contains(c.Collation, "nopad_bin") && c.Collation != "utf8mb4_0900_bin" {
			bad("make it VARBINARY", "key column %q has collation %q, which pads blanks or folds case: two keys would be one row and two shards", name, c.Collation)
		}
	}
	for _, k := range s.Keys {
		if i := slices.Index(k.From, TenantColumn); i < 0 || i >= len(k.To) || k.To[i] != TenantColumn {
			bad("FOREIGN KEY (tenant_id, ...) REFERENCES "+k.Table+" (tenant_id, ...)", "foreign key %s to %q does not include tenant_id on both sides", k.Name, k.Table)
		}
	}
	slices.SortFunc(out, func(a, b *ModelError) int { return strings.Compare(a.Problem, b.Problem) })
	return out
}

// kind is what a column or field holds, as far as comparing is concerned.
type kind uint8

const (
	otherKind kind = iota
	textKind       // texts and bytes
	integerKind
)

// kindOf returns the kind of a column's type. SQLite's rules are those of its column affinity (https://www.sqlite.org/datatype3.html).
func kindOf(typ string, d Dialect) kind {
	if d == Postgres { // by their names in the catalogue
		switch typ {
		case "int2", "int4", "int8":
			return integerKind
		case "varchar", "text", "bpchar", "bytea":
			return textKind
		}
		return otherKind
	}
	typ = strings.ToUpper(typ)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(typ, p) })
	}
	if d == SQLite {
		switch {
		case has("INT"):
			return integerKind
		case has("CHAR", "CLOB", "TEXT", "BLOB", "BINARY"):
			return textKind
		}
		return otherKind
	}
	switch {
	case has("CHAR", "TEXT", "BINARY", "BLOB"):
		return textKind
	case has("INT"):
		return integerKind
	}
	return otherKind
}

// kindOfField returns the kind of a model's field.
func kindOfField(f *schema.Field) kind {
	switch f.FieldType.Kind() {
	case reflect.String:
		return textKind
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integerKind
	case reflect.Slice:
		if f.FieldType.Elem().Kind() == reflect.Uint8 {
			return textKind
		}
	}
	return otherKind
}

// libraryKey reports a key that is unique over all shards since the library makes its ids: (tenant_id, id).
func (t *table) libraryKey(ix index) bool {
	f := t.schema.PrioritizedPrimaryField
	return ix.Primary && len(ix.Columns) == 2 && f != nil && ix.Columns[1] == f.DBName && libraryFills(f)
}

// libraryFills reports a key field that [ids.fill] fills.
func libraryFills(f *schema.Field) bool {
	return f.FieldType == uuidType || wideInteger(f.FieldType.Kind())
}

var (
	placeOf = wire.RegisterSystem("dal/place", "SELECT shard, schema_name FROM tdal_place WHERE id = ?", wire.Schema)

	sqliteColumns  = wire.RegisterSystem("dal/sqlite columns", "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?)", wire.Schema)
	sqliteTable    = wire.RegisterSystem("dal/sqlite table", "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", wire.Schema)
	sqliteTriggers = wire.RegisterSystem("dal/sqlite triggers", "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", wire.Schema)
	sqliteIndexes  = wire.RegisterSystem("dal/sqlite indexes", "SELECT name, \"unique\", origin FROM pragma_index_list(?) ORDER BY name", wire.Schema)
	sqliteIndex    = wire.RegisterSystem("dal/sqlite index", "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno", wire.Schema)
	sqliteKeys     = wire.RegisterSystem("dal/sqlite foreign keys", "SELECT id, \"table\", \"from\", COALESCE(\"to\", \"from\") FROM pragma_foreign_key_list(?) ORDER BY id, seq", wire.Schema)

	mysqlColumns = wire.RegisterSystem("dal/mysql columns", "SELECT column_name, data_type, COALESCE(character_maximum_length, 0), is_nullable, COALESCE(collation_name, ''), extra FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?", wire.Schema)
	mysqlTable   = wire.RegisterSystem("dal/mysql table", "SELECT COALESCE(engine, '') FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", wire.Schema)
	mysqlIndexes = wire.RegisterSystem("dal/mysql indexes", "SELECT index_name, non_unique, COALESCE(column_name, ''), sub_part IS NOT NULL FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? ORDER BY index_name, seq_in_index", wire.Schema)
	mysqlKeys    = wire.RegisterSystem("dal/mysql foreign keys", "SELECT constraint_name, referenced_table_name, column_name, referenced_column_name FROM information_schema.key_column_usage WHERE table_schema = DATABASE() AND table_name = ? AND referenced_table_name IS NOT NULL ORDER BY constraint_name, ordinal_position", wire.Schema)
)

func (db *database) inspect(ctx context.Context, name string) (shape, error) {
	switch db.dialect {
	case SQLite:
		return db.inspectSQLite(ctx, name)
	case Postgres:
		return db.inspectPostgres(ctx, name)
	}
	return db.inspectMySQL(ctx, name)
}

// each runs one of the constants above and calls scan for each row. A nil arg is for a constant without a placeholder.
func (db *database) each(ctx context.Context, st *wire.Statement, arg any, scan func(rows *sql.Rows) error) error {
	return eachOf(ctx, db.sql(false), st, arg, scan)
}

func eachOf(ctx context.Context, pool *sql.DB, st *wire.Statement, arg any, scan func(rows *sql.Rows) error) error {
	var args []any
	if arg != nil {
		args = []any{arg}
	}
	rows, err := pool.QueryContext(wire.With(ctx, &wire.Mark{Kind: wire.Library, Stmt: st}), st.Text(), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (db *database) inspectSQLite(ctx context.Context, name string) (shape, error) {
	s := shape{Columns: map[string]column{}}
	var rowid []string
	err := db.each(ctx, sqliteColumns, name, func(rows *sql.Rows) error {
		var c column
		var notNull, pk int
		if err := rows.Scan(&c.Name, &c.Type, &notNull, &pk); err != nil {
			return err
		}
		c.Nullable = notNull == 0
		if pk > 0 {
			rowid = append(rowid, c.Name)
		}
		s.Columns[c.Name] = c
		return nil
	})
	if err != nil || len(s.Columns) == 0 {
		return s, err
	}
	err = db.each(ctx, sqliteTable, name, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		if onConflictRollback.MatchString(text) {
			s.Rolls = append(s.Rolls, "table "+name)
		}
		if len(rowid) == 1 && strings.Contains(strings.ToUpper(text), "AUTOINCREMENT") {
			c := s.Columns[rowid[0]]
			c.Auto = true
			s.Columns[rowid[0]] = c
		}
		return err
	})
	if err != nil {
		return s, err
	}
	primary := false
	err = db.each(ctx, sqliteTriggers, name, func(rows *sql.Rows) error {
		var trigger, text string
		err := rows.Scan(&trigger, &text)
		if raiseRollback.MatchString(text) || onConflictRollback.MatchString(text) {
			s.Rolls = append(s.Rolls, "trigger "+trigger)
		}
		return err
	})
	if err != nil {
		return s, err
	}
	err = db.each(ctx, sqliteIndexes, name, func(rows *sql.Rows) error {
		var ix index
		var origin string
		if err := rows.Scan(&ix.Name, &ix.Unique, &origin); err != nil {
			return err
		}
		ix.Primary = origin == "pk"
		primary = primary || ix.Primary
		s.Indexes = append(s.Indexes, ix)
		return nil
	})
	if err != nil {
		return s, err
	}
	for i := range s.Indexes {
		ix := &s.Indexes[i]
		err := db.each(ctx, sqliteIndex, ix.Name, func(rows *sql.Rows) error {
			var col, coll sql.NullString
			if err := rows.Scan(&col, &coll); err != nil {
				return err
			}
			ix.Columns = append(ix.Columns, col.String)
			if coll.Valid && !strings.EqualFold(coll.String, "BINARY") {
				ix.Loose = append(ix.Loose, col.String)
			}
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	if !primary && len(rowid) > 0 { // INTEGER PRIMARY KEY has no index of its own
		s.Indexes = append(s.Indexes, index{Name: "PRIMARY", Unique: true, Primary: true, Columns: rowid})
	}
	s.Keys, err = db.foreignKeys(ctx, sqliteKeys, name) // a key is named by its number
	return s, err
}

func (db *database) inspectMySQL(ctx context.Context, name string) (shape, error) {
	s := shape{Columns: map[string]column{}}
	err := db.each(ctx, mysqlColumns, name, func(rows *sql.Rows) error {
		var c column
		var nullable, extra string
		if err := rows.Scan(&c.Name, &c.Type, &c.Size, &nullable, &c.Collation, &extra); err != nil {
			return err
		}
		c.Type, c.Collation = strings.ToLower(c.Type), strings.ToLower(c.Collation)
		c.Nullable = strings.EqualFold(nullable, "YES")
		c.Auto = strings.Contains(strings.ToLower(extra), "auto_increment")
		s.Columns[c.Name] = c
		return nil
	})
	if err != nil || len(s.Columns) == 0 {
		return s, err
	}
	if err := db.each(ctx, mysqlTable, name, func(rows *sql.Rows) error { return rows.Scan(&s.Engine) }); err != nil {
		return s, err
	}
	err = db.each(ctx, mysqlIndexes, name, func(rows *sql.Rows) error {
		var name, col string
		var nonUnique, prefix bool
		if err := rows.Scan(&name, &nonUnique, &col, &prefix); err != nil {
			return err
		}
		if n := len(s.Indexes); n == 0 || s.Indexes[n-1].Name != name {
			s.Indexes = append(s.Indexes, index{Name: name, Unique: !nonUnique, Primary: name == "PRIMARY"})
		}
		ix := &s.Indexes[len(s.Indexes)-1]
		ix.Columns = append(ix.Columns, col)
		if prefix {
			ix.Prefix = append(ix.Prefix, col)
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	s.Keys, err = db.foreignKeys(ctx, mysqlKeys, name)
	return s, err
}

// foreignKeys reads a table's foreign keys by a constant that gives name, table, column and the column it refers to, in the keys' order.
func (db *database) foreignKeys(ctx context.Context, st *wire.Statement, name string) (keys []foreignKey, err error) {
	err = db.each(ctx, st, name, func(rows *sql.Rows) error {
		var name, table, from, to string
		if err := rows.Scan(&name, &table, &from, &to); err != nil {
			return err
		}
		if n := len(keys); n == 0 || keys[n-1].Name != name {
			keys = append(keys, foreignKey{Name: name, Table: table})
		}
		k := &keys[len(keys)-1]
		k.From, k.To = append(k.From, from), append(k.To, to)
		return nil
	})
	return keys, err
}

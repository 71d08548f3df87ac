package testutil

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/dal"
	migrate "github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

// shadowWorld is a store with its database, and what is written into it.
type shadowWorld struct {
	store  *dal.Store
	raw    *sql.DB // beside the store, for the run itself
	beside *sql.DB // beside the store, for the repository; recorded
	rec    *shadowRecorder

	key      string
	tables   []*shadowTable
	canaries []canary
}

// shadowTable is a declared table as the database has it.
type shadowTable struct {
	dal.Table
	name    string
	columns []*shadowColumn
}

// owned reports a table whose rows have an owner.
func (t *shadowTable) owned() bool { return t.Class == dal.TenantClass || t.Class == dal.LocalClass }

// shadowColumn is a column and what is written into it.
type shadowColumn struct {
	table    string
	name     string
	kind     string // lower case, without length
	size     int64  // characters; 0: no limit
	nullable bool
	key      bool // in the primary key or in a foreign key: equal in both tenants
	primary  bool
	shardKey bool
	fixed    func(n int) any

	world *shadowWorld
}

// The rows: 1 to ownRows in both tenants, and one more of the other tenant.
const (
	ownRows   = 3
	canaryRow = ownRows + 1
)

// openShadow makes the databases and opens a store on them. The world is returned with an error, too, for what has to be closed.
func openShadow(ctx context.Context, dir func() string, cfg dal.Config, sets []migrate.Set) (*shadowWorld, error) {
	var err error
	if cfg.Registry, err = tenant.NewStatic(
		tenant.Tenant{ID: shadowTenant, Model: tenant.SharedTable}, tenant.Tenant{ID: canaryTenant, Model: tenant.SharedTable},
	); err != nil {
		return nil, err
	}
	if cfg.Cluster.Dialect == "" {
		cfg.Cluster = dal.SQLiteCluster(dir(), 1)
	}
	if n := len(cfg.Cluster.Shards); n != 1 {
		return nil, fmt.Errorf("testutil: a shadow run needs a cluster of one shard, so that both tenants meet; this one has %d", n)
	}
	if cfg.NodeID == 0 {
		cfg.NodeID = 1
	}
	if _, err := migrate.Up(ctx, cfg, sets...); err != nil {
		return nil, err
	}
	end, err := cfg.Cluster.Endpoint(dal.Place{Shard: "s1"}, "")
	if err != nil {
		return nil, err
	}
	w := &shadowWorld{rec: &shadowRecorder{}}
	if w.raw, err = besidePool(end, nil); err != nil {
		return w, err
	}
	if w.beside, err = besidePool(end, w.rec); err != nil {
		return w, err
	}
	for _, d := range cfg.Tables {
		t := &shadowTable{Table: d, name: d.TableName()}
		if t.columns, err = w.inspect(ctx, end.Dialect, t); err != nil {
			return w, fmt.Errorf("testutil: table %q: %w", t.name, err)
		}
		w.tables = append(w.tables, t)
	}
	w.store, err = dal.Open(ctx, dal.WithObserver(cfg, w.rec))
	return w, err
}

func (w *shadowWorld) close() error {
	var errs []error
	if w.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
		defer cancel()
		errs = append(errs, w.store.Close(ctx))
	}
	for _, db := range []*sql.DB{w.beside, w.raw} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// What the run asks a database about a table: column, type, length, whether it may be NULL, whether it is in the primary key or in a foreign key.
const (
	columnsSQLite = `SELECT c.name, c.type, 0, c."notnull" = 0, c.pk > 0, EXISTS (SELECT 1 FROM pragma_foreign_key_list(?) AS f WHERE f."from" = c.name)
		FROM pragma_table_info(?) AS c ORDER BY c.cid`
	columnsMySQL = `SELECT c.column_name, c.data_type, COALESCE(c.character_maximum_length, 0), c.is_nullable = 'YES', c.column_key = 'PRI', EXISTS (
			SELECT 1 FROM information_schema.key_column_usage AS f WHERE f.table_schema = c.table_schema AND f.table_name = c.table_name
			AND f.column_name = c.column_name AND f.referenced_table_name IS NOT NULL)
		FROM information_schema.columns AS c WHERE c.table_schema = DATABASE() AND c.table_name IN (?, ?) AND c.extra NOT LIKE '%GENERATED%'
		ORDER BY c.ordinal_position`
)

func (w *shadowWorld) inspect(ctx context.Context, d dal.Dialect, t *shadowTable) ([]*shadowColumn, error) {
	query := columnsSQLite
	if d == dal.MySQL {
		query = columnsMySQL
	}
	rows, err := w.raw.QueryContext(ctx, query, t.name, t.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []*shadowColumn
	for rows.Next() {
		c := &shadowColumn{table: t.name, world: w}
		var primary, foreign bool
		if err := rows.Scan(&c.name, &c.kind, &c.size, &c.nullable, &primary, &foreign); err != nil {
			return nil, err
		}
		var length string
		c.kind, length, _ = strings.Cut(strings.ToLower(c.kind), "(")
		if n, err := strconv.ParseInt(strings.TrimRight(length, ")"), 10, 64); err == nil && c.size == 0 {
			c.size = n
		}
		c.primary, c.key = primary, primary || foreign
		c.shardKey = t.Class == dal.TenantClass && c.name == t.ShardKey
		all = append(all, c)
	}
	if len(all) == 0 && rows.Err() == nil {
		return nil, dal.ErrNotMigrated
	}
	return all, rows.Err()
}

// plan decides what is written into each column, and collects the canaries.
func (w *shadowWorld) plan(ctx context.Context, key string, fixed map[string]func(int) any) error {
	if w.key = key; key == "" {
		w.key = "7"
	}
	left := len(fixed)
	for _, t := range w.tables {
		for _, c := range t.columns {
			if c.fixed = fixed[t.name+"."+c.name]; c.fixed != nil {
				left--
			}
			for n := 1; n <= canaryRow; n++ {
				text, ok := c.marked(n)
				if ok && t.owned() {
					w.canaries = append(w.canaries, canary{text, fmt.Sprintf("%s.%s, row %d", t.name, c.name, n)})
				}
			}
		}
	}
	if left > 0 {
		return fmt.Errorf("testutil: Shadow.Values names %d columns that no declared table has", left)
	}
	// A seed that the schema refuses shows here, with the column, and not in the middle of a run.
	return w.seed(ctx, true)
}

// class sorts the types of both databases by what can be written into them.
func (c *shadowColumn) class() string {
	k := c.kind
	switch {
	case strings.Contains(k, "bool"), k == "tinyint", k == "bit":
		return "small"
	case strings.Contains(k, "int"):
		return "integer"
	case k == "date", k == "datetime", k == "timestamp", k == "time", k == "year":
		return "time"
	case strings.Contains(k, "real"), strings.Contains(k, "floa"), strings.Contains(k, "doub"), strings.Contains(k, "dec"), strings.Contains(k, "numeric"):
		return "integer"
	case k == "json":
		return "json"
	case k == "enum", k == "set":
		return "closed"
	}
	return "text"
}

// own is the value of row n that both tenants have, or that the caller alone has.
func (c *shadowColumn) own(n int) any {
	switch {
	case c.fixed != nil:
		return c.fixed(n)
	case c.shardKey:
		return c.world.key
	}
	switch c.class() {
	case "integer":
		return n
	case "small":
		return 1
	case "time":
		if c.nullable {
			return nil // deleted_at, say
		}
		if c.kind == "year" {
			return 2001
		}
		return time.Date(2001, 2, 3, 4, 5, n, 0, time.UTC)
	case "json":
		return `{}`
	case "closed":
		if c.nullable {
			return nil
		}
		return 1 // of an enumeration, its first
	}
	if c.key {
		return "k" + strconv.Itoa(n)
	}
	return cut(fmt.Sprintf("own %s %d", c.name, n), c.size)
}

// others is the value of row n of the other tenant.
func (c *shadowColumn) others(n int) any {
	text, ok := c.marked(n)
	switch {
	case !ok && c.key && n == canaryRow && !c.primary:
		return c.own(1) // a foreign key, to a row that is there
	case !ok:
		return c.own(n)
	case c.class() == "integer":
		v, _ := strconv.ParseInt(text, 10, 64)
		return v
	case c.class() == "json":
		return fmt.Sprintf(`{"canary":%q}`, text)
	}
	return text
}

// marked returns the canary that row n of the other tenant has in this column, and whether it has one: keys are equal in both, but for the last row's.
func (c *shadowColumn) marked(n int) (text string, ok bool) {
	if c.fixed != nil || c.shardKey || c.name == dal.TenantColumn || c.key && (n <= ownRows || !c.primary) {
		return "", false
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s.%s.%d", c.table, c.name, n)
	switch c.class() {
	case "integer":
		if strings.HasPrefix(c.kind, "small") || strings.HasPrefix(c.kind, "medium") {
			return "", false
		}
		return strconv.Itoa(1_900_000_000 + int(h.Sum32()%100_000_000)), true // fits 32 bits
	case "small", "time", "closed":
		return "", false
	case "json":
		return fmt.Sprintf("canary-%08x", h.Sum32()), true
	}
	text = fmt.Sprintf("canary-%08x-%s-%s-%d", h.Sum32(), c.table, c.name, n)
	if c.size > 0 && c.size < 8 {
		return "", false // too short to be told from other texts
	}
	if c.size > 0 && c.size < 15 {
		return fmt.Sprintf("%08x", h.Sum32()), true
	}
	return cut(text, c.size), true
}

func cut(s string, size int64) string {
	if size > 0 && int64(len(s)) > size {
		return s[:size]
	}
	return s
}

// canaryKey is an integer key that only the other tenant has.
func (w *shadowWorld) canaryKey(of *shadowColumn) int64 {
	if of == nil {
		of = w.column(func(c *shadowColumn) bool {
			return c.primary && c.class() == "integer" && c.fixed == nil && !c.shardKey
		})
	}
	if of == nil {
		return canaryRow
	}
	text, _ := of.marked(canaryRow)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return canaryRow
	}
	return n
}

// canaryText is a text that only the other tenant has.
func (w *shadowWorld) canaryText(of *shadowColumn) string {
	if of == nil {
		of = w.column(func(c *shadowColumn) bool { _, ok := c.marked(1); return ok && c.class() == "text" })
	}
	if of == nil {
		return w.key
	}
	if text, ok := of.marked(1); ok {
		return text
	}
	return w.key
}

// column returns the first column of a tenant's table that is fit, or nil.
func (w *shadowWorld) column(fit func(*shadowColumn) bool) *shadowColumn {
	for _, t := range w.tables {
		if i := slices.IndexFunc(t.columns, fit); t.owned() && i >= 0 {
			return t.columns[i]
		}
	}
	return nil
}

// columnNamed returns the column of a field, by its tag or by gorm's rule for names, or nil.
func (w *shadowWorld) columnNamed(tag, field string) *shadowColumn {
	if tag == "" {
		tag = schema.NamingStrategy{}.ColumnName("", field)
	}
	return w.column(func(c *shadowColumn) bool { return c.name == tag })
}

// seed empties every declared table and writes the caller's rows, and the other tenant's if asked for.
func (w *shadowWorld) seed(ctx context.Context, canaries bool) error {
	conn, err := w.raw.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	off, on := "PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON"
	if w.store.Dialect() == dal.MySQL {
		off, on = "SET FOREIGN_KEY_CHECKS = 0", "SET FOREIGN_KEY_CHECKS = 1"
	}
	if _, err := conn.ExecContext(ctx, off); err != nil {
		return err
	}
	for _, t := range w.tables {
		if _, err := conn.ExecContext(ctx, "DELETE FROM "+quoted(t.name)); err != nil {
			return err
		}
		switch {
		case t.Class == dal.GlobalClass:
			err = t.write(ctx, conn, "", ownRows)
		case t.owned():
			if err = t.write(ctx, conn, shadowTenant, ownRows); err == nil && canaries {
				err = t.write(ctx, conn, canaryTenant, canaryRow)
			}
		}
		if err != nil {
			return fmt.Errorf("testutil: made-up rows do not fit table %q, give Shadow.Values for its columns: %w", t.name, err)
		}
	}
	_, err = conn.ExecContext(ctx, on)
	return err
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// write adds n rows of an owner.
func (t *shadowTable) write(ctx context.Context, conn *sql.Conn, id tenant.ID, n int) error {
	names, holes := make([]string, len(t.columns)), make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i], holes[i] = quoted(c.name), "?"
	}
	text := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quoted(t.name), strings.Join(names, ", "), strings.Join(holes, ", "))
	for row := 1; row <= n; row++ {
		args := make([]any, len(t.columns))
		for i, c := range t.columns {
			switch {
			case id != "" && c.name == dal.TenantColumn:
				args[i] = string(id)
			case id == canaryTenant:
				args[i] = c.others(row)
			default:
				args[i] = c.own(row)
			}
		}
		if _, err := conn.ExecContext(ctx, text, args...); err != nil {
			return err
		}
	}
	return nil
}

// digest returns rows, one line each, in the order of all their columns: the caller's own, or all others.
func (w *shadowWorld) digest(ctx context.Context, own bool) ([]string, error) {
	var lines []string
	for _, t := range w.tables {
		where, args := "", []any(nil)
		switch {
		case !t.owned():
			if own {
				continue
			}
		case own:
			where, args = " WHERE tenant_id = ?", []any{string(shadowTenant)}
		default:
			where, args = " WHERE tenant_id <> ?", []any{string(shadowTenant)}
		}
		rows, err := w.raw.QueryContext(ctx, "SELECT * FROM "+quoted(t.name)+where, args...)
		if err != nil {
			return nil, err
		}
		columns, err := rows.Columns()
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		var line []string
		var of []string
		err = scanAll(rows, func(column string, v any) {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			if line = append(line, fmt.Sprintf("%s=%v", column, v)); len(line) == len(columns) {
				of, line = append(of, t.name+" ("+strings.Join(line, " ")+")"), nil
			}
		})
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		slices.Sort(of)
		lines = append(lines, of...)
	}
	return lines, nil
}

package dal

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// judge finds the statement's table and refuses every shape that the scope cannot be written into. Nothing has been built yet.
func (b *binding) judge(stmt *gorm.Statement, v verb) (*table, error) {
	if v == verbRaw || stmt.SQL.Len() > 0 {
		return nil, &ShapeError{Shape: "raw SQL", Hint: "use the builder's methods on a declared model"}
	}
	if stmt.TableExpr != nil {
		return nil, &ShapeError{Shape: "Table(...)", Table: stmt.Table, Hint: "use Model(&M{}); a DTO may be the destination"}
	}
	if stmt.Schema == nil {
		return nil, &ShapeError{Shape: "statement without a model", Table: stmt.Table, Hint: "name the declared model: Model(&M{})"}
	}
	t := b.store.tables.byType[stmt.Schema.ModelType]
	if t == nil {
		return nil, &UndeclaredError{Table: stmt.Table, Model: stmt.Schema.ModelType.String()}
	}
	switch {
	case stmt.Table != t.name:
		return nil, &ShapeError{Shape: "a table other than the model's", Table: stmt.Table, Hint: "use the declared model"}
	case len(stmt.Joins) > 0:
		return nil, &ShapeError{Shape: "Joins", Table: t.name, Hint: "use Preload, or two queries"}
	}
	if err := b.reaches(t, v); err != nil {
		return nil, err
	}
	if v == verbUpdate && len(stmt.Selects) == 1 && stmt.Selects[0] == "*" && stmt.Dest == stmt.Model {
		return nil, &ShapeError{Shape: "Save", Table: t.name, Hint: "use Create for a new row, Select(columns).Updates for an old one, or Repository.Update"}
	}
	return t, judgeClauses(stmt, t, v)
}

// reaches reports whether the handle may touch the table at all.
func (b *binding) reaches(t *table, v verb) error {
	write := v >= verbCreate
	if b.bypass != nil {
		if t.Class == GlobalClass && !write || b.opens(t) {
			return nil
		}
		return &ClosedTableError{Table: t.name, Reason: "the system scope does not name it"}
	}
	switch {
	case t.Class == GlobalClass && write:
		return &ClosedTableError{Table: t.name, Reason: "a Global table is written under tenant.System alone"}
	case t.Class == TenantClass && t.Keyspace != b.keyspace:
		return &KeyspaceError{Table: t.name, Keyspace: t.Keyspace, Handle: b.keyspace}
	}
	return nil
}

// owns refuses a shard key that another shard owns.
func (b *binding) owns(t *table, value any) error {
	key, err := shardrouter.KeyOf(plainKey(value))
	if err != nil {
		return fmt.Errorf("dal: table %q, column %q: %w", t.name, t.shardKey.DBName, err)
	}
	if b.bypass != nil {
		return nil // a system scope writes to the place that it chose
	}
	owner, err := b.store.snapshot().Owner(t.Keyspace, string(b.tenant.ID), key)
	if err != nil {
		return err
	}
	if owner != b.db.place.Shard {
		return &CrossShardError{Table: t.name, Held: b.db.place.Shard, Wanted: owner}
	}
	return nil
}

// plainKey unwraps pointers, so that a *string key routes as its string.
func plainKey(v any) any {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
		v = rv.Interface()
	}
	return v
}

// allowedClauses lists what each verb may carry; any other clause, hint or modifier is refused.
var allowedClauses = map[verb]map[string]bool{
	verbQuery:  {"WHERE": true, "SELECT": true, "ORDER BY": true, "GROUP BY": true, "LIMIT": true, "FOR": true, "FROM": true},
	verbRow:    {"WHERE": true, "SELECT": true, "ORDER BY": true, "GROUP BY": true, "LIMIT": true, "FOR": true, "FROM": true},
	verbCreate: {"WHERE": true, "ORDER BY": true, "LIMIT": true}, // left over from FirstOrCreate's query; no INSERT prints them
	verbUpdate: {"WHERE": true, "SET": true},
	verbDelete: {"WHERE": true},
}

// judgeClauses walks every clause of the statement; what it does not know is refused.
func judgeClauses(stmt *gorm.Statement, t *table, v verb) error {
	shape := func(format string, args ...any) error {
		return &ShapeError{Shape: fmt.Sprintf(format, args...), Table: t.name, Hint: "bind values, use plain columns of the model, and write sub-selects as queries of their own"}
	}
	for name, c := range stmt.Clauses {
		if name == softDeleteMark {
			continue
		}
		if !allowedClauses[v][name] {
			if name == "ON CONFLICT" {
				return &ShapeError{Shape: "upsert (ON CONFLICT)", Table: t.name, Hint: "Create, and on dal.IsDuplicateKey update"}
			}
			return shape("clause %s", name)
		}
		if c.Builder != nil || c.BeforeExpression != nil || c.AfterNameExpression != nil || c.AfterExpression != nil {
			return shape("hint or builder on %s", name)
		}
		if c.Expression == nil {
			continue
		}
		if why := judgeClause(c.Expression); why != "" {
			return shape("%s: %s", name, why)
		}
	}
	for _, s := range stmt.Selects {
		if s == "*" || stmt.Schema.LookUpField(s) != nil {
			continue
		}
		if v != verbQuery && v != verbRow {
			if s == clause.Associations || stmt.Schema.Relationships.Relations[s] != nil || strings.ContainsAny(s, ".(") {
				return shape("Select(%q)", s)
			}
			continue
		}
		if why := judgeText(s, false); why != "" {
			return shape("Select text: %s", why)
		}
	}
	return nil
}

func judgeClause(e clause.Expression) string {
	switch x := e.(type) {
	case clause.Where:
		return judgeAll(x.Exprs)
	case clause.Select:
		if x.Expression != nil {
			return judgeExpr(x.Expression)
		}
		return judgeColumns(x.Columns)
	case clause.OrderBy:
		if x.Expression != nil {
			return judgeExpr(x.Expression)
		}
		for _, c := range x.Columns {
			if why := judgeColumn(c.Column); why != "" {
				return why
			}
		}
		return ""
	case clause.GroupBy:
		if why := judgeColumns(x.Columns); why != "" {
			return why
		}
		return judgeAll(x.Having)
	case clause.Limit, clause.Set: // a Set is judged assignment by assignment
		return ""
	case clause.From:
		if len(x.Tables)+len(x.Joins) > 0 {
			return "tables or joins of the caller's own"
		}
		return ""
	case clause.Locking:
		switch {
		case x.Strength != "UPDATE" && x.Strength != "SHARE":
			return "lock strength other than UPDATE and SHARE"
		case x.Options != "" && x.Options != "NOWAIT" && x.Options != "SKIP LOCKED":
			return "lock option other than NOWAIT and SKIP LOCKED"
		case x.Table.Name != "" && x.Table.Name != clause.CurrentTable:
			return "lock of another table"
		}
		return ""
	}
	return judgeExpr(e)
}

func judgeAll(exprs []clause.Expression) string {
	for _, e := range exprs {
		if why := judgeExpr(e); why != "" {
			return why
		}
	}
	return ""
}

func judgeColumns(columns []clause.Column) string {
	for _, c := range columns {
		if why := judgeColumn(c); why != "" {
			return why
		}
	}
	return ""
}

// judgeExpr walks a condition: a closed list of gorm's own types.
func judgeExpr(e clause.Expression) string {
	switch x := e.(type) {
	case nil:
		return ""
	case clause.Expr:
		return judgeTextVars(x.SQL, x.Vars, false)
	case *clause.Expr:
		return judgeTextVars(x.SQL, x.Vars, false)
	case clause.NamedExpr:
		return judgeTextVars(x.SQL, x.Vars, true)
	case clause.AndConditions:
		return judgeAll(x.Exprs)
	case clause.OrConditions:
		return judgeAll(x.Exprs)
	case clause.NotConditions:
		return judgeAll(x.Exprs)
	case clause.Where:
		return judgeAll(x.Exprs)
	case clause.IN:
		if why := judgeColumn(x.Column); why != "" {
			return why
		}
		return judgeValues(x.Values)
	case clause.Eq:
		return judgePair(x.Column, x.Value)
	case clause.Neq:
		return judgePair(x.Column, x.Value)
	case clause.Gt:
		return judgePair(x.Column, x.Value)
	case clause.Gte:
		return judgePair(x.Column, x.Value)
	case clause.Lt:
		return judgePair(x.Column, x.Value)
	case clause.Lte:
		return judgePair(x.Column, x.Value)
	case clause.Like:
		return judgePair(x.Column, x.Value)
	case *scopedWhere:
		return "a scoped condition of another statement"
	}
	return fmt.Sprintf("expression of type %T", e)
}

func judgePair(column, value any) string {
	if why := judgeColumn(column); why != "" {
		return why
	}
	return judgeValue(value)
}

func judgeTextVars(text string, vars []any, named bool) string {
	if why := judgeText(text, named); why != "" {
		return why
	}
	return judgeValues(vars)
}

// judgeColumn passes names, which gorm quotes, and raw text that is closed in itself.
func judgeColumn(column any) string {
	switch c := column.(type) {
	case string:
		return judgeName(c)
	case clause.Column:
		if c.Raw {
			return judgeText(c.Name, false)
		}
		if why := judgeName(c.Name); why != "" {
			return why
		}
		if why := judgeName(c.Table); why != "" {
			return why
		}
		return judgeName(c.Alias)
	case []clause.Column:
		return judgeColumns(c)
	case clause.Expression:
		return judgeExpr(c)
	}
	return fmt.Sprintf("column of type %T", column)
}

// judgeName passes what gorm will quote: no quote of any kind may be inside.
func judgeName(name string) string {
	if strings.ContainsAny(name, "`\"'\\;\x00") {
		return "a name with a quote in it"
	}
	return ""
}

func judgeValues(values []any) string {
	for _, v := range values {
		if why := judgeValue(v); why != "" {
			return why
		}
	}
	return ""
}

// judgeValue passes what is bound, and refuses what gorm would print into the text: sub-queries and values that write SQL of their own.
func judgeValue(v any) string {
	switch x := v.(type) {
	case nil, string, []byte, bool, int, int64, float64, tenant.ID:
		return ""
	case *gorm.DB:
		return "a sub-query"
	case gorm.Valuer:
		return fmt.Sprintf("a value that writes SQL (%T)", v)
	case clause.Column, clause.Table:
		if c, ok := x.(clause.Column); ok {
			return judgeColumn(c)
		}
		return "a table as a value"
	case clause.Interface:
		return fmt.Sprintf("a clause as a value (%T)", v)
	case clause.Expression:
		return judgeExpr(x)
	case []any:
		return judgeValues(x)
	case map[string]any:
		for _, e := range x {
			if why := judgeValue(e); why != "" {
				return why
			}
		}
		return ""
	}
	rv := reflect.ValueOf(v)
	if isQuery(rv.Type(), 4) {
		return "a sub-query"
	}
	switch rv.Kind() {
	case reflect.Slice, reflect.Array:
		if rv.Type().Elem().Kind() == reflect.Uint8 {
			return ""
		}
		if k := rv.Type().Elem().Kind(); k != reflect.Interface && k != reflect.Struct && k != reflect.Pointer {
			return ""
		}
		for i := range rv.Len() {
			if why := judgeValue(rv.Index(i).Interface()); why != "" {
				return why
			}
		}
	}
	return ""
}

var gormDBType = reflect.TypeFor[gorm.DB]()

// isQuery reports what gorm prints as a sub-query: a *gorm.DB, one of its generic chains (unexported types of package gorm), or a struct that
// embeds either.
func isQuery(t reflect.Type, depth int) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == gormDBType || t.PkgPath() == gormDBType.PkgPath() && t.Name() != "DeletedAt" {
		return true
	}
	if t.Kind() != reflect.Struct || depth == 0 {
		return false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && (f.Type.Kind() == reflect.Interface || isQuery(f.Type, depth-1)) {
			return true
		}
	}
	return false
}

// refuseAssociations refuses a row that carries related rows: gorm would write them with upserts that take over rows by their key.
func refuseAssociations(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	for _, s := range stmt.Selects {
		if s == clause.Associations || stmt.Schema.Relationships.Relations[s] != nil {
			_ = db.AddError(&ShapeError{Shape: "Select of an association", Table: stmt.Table, Hint: "write related rows with statements of their own"})
			return
		}
	}
	selected, restricted := stmt.SelectAndOmitColumns(true, false)
	for name, rel := range stmt.Schema.Relationships.Relations {
		if rel.Schema != stmt.Schema {
			continue // gorm files the other end's relation here too
		}
		if on, said := selected[name]; said && !on || !said && restricted {
			continue
		}
		if carriesRelated(stmt, rel) {
			_ = db.AddError(&ShapeError{Shape: "association " + name, Table: stmt.Table, Hint: "Omit(clause.Associations), and write related rows with statements of their own"})
			return
		}
	}
}

// carriesRelated reports whether a row of the statement holds rows of the relation.
func carriesRelated(stmt *gorm.Statement, rel *schema.Relationship) bool {
	holds := func(row reflect.Value) bool {
		row = reflect.Indirect(row)
		if row.Kind() != reflect.Struct || row.Type() != stmt.Schema.ModelType {
			return false
		}
		_, zero := rel.Field.ValueOf(stmt.Context, row)
		if zero {
			return false
		}
		f := reflect.Indirect(rel.Field.ReflectValueOf(stmt.Context, row))
		return f.Kind() != reflect.Slice || f.Len() > 0
	}
	some := func(v reflect.Value) bool {
		v = reflect.Indirect(v)
		if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
			for i := range v.Len() {
				if holds(v.Index(i)) {
					return true
				}
			}
			return false
		}
		return holds(v)
	}
	return some(stmt.ReflectValue) || stmt.Dest != nil && some(reflect.ValueOf(stmt.Dest))
}

// asID returns the tenant that a value names, for a message; empty when it is none.
func asID(v any) tenant.ID {
	switch x := plainKey(v).(type) {
	case tenant.ID:
		return x
	case string:
		return tenant.ID(x)
	}
	return ""
}

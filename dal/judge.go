package dal

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// judge finds the statement's table and refuses every shape that the scope cannot be written into. Nothing has been built yet.
func (b *binding) judge(stmt *gorm.Statement, v verb) (*table, error) {
	if v == verbRaw || stmt.SQL.Len() > 0 {
		return nil, &ShapeError{Shape: "raw SQL", Hint: "use the builder's methods on a declared model"}
	}
	t, err := b.tableOf(stmt, v)
	if err != nil {
		return nil, err
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
	return t, judgeClauses(stmt, t, v)
}

// tableOf finds the declared table that the statement is about: by its model, or for a write by the name that Table was given.
func (b *binding) tableOf(stmt *gorm.Statement, v verb) (*table, error) {
	if stmt.Schema != nil {
		t := b.store.tables.byType[stmt.Schema.ModelType]
		switch {
		case t == nil && stmt.TableExpr == nil:
			return nil, &UndeclaredError{Table: stmt.Table, Model: stmt.Schema.ModelType.String()}
		case t == nil || stmt.TableExpr != nil && (v < verbCreate || !plainTable(stmt)):
			return nil, &ShapeError{Shape: "Table(...)", Table: stmt.Table, Hint: "use Model(&M{}); a DTO may be the destination"}
		}
		return t, nil
	}
	if stmt.TableExpr == nil || v < verbCreate || !plainTable(stmt) {
		return nil, &ShapeError{Shape: "statement without a model", Table: stmt.Table, Hint: "name the declared model: Model(&M{})"}
	}
	t := b.store.tables.byName[stmt.Table]
	if t == nil {
		return nil, &UndeclaredError{Table: stmt.Table}
	}
	if v == verbCreate { // its rows are maps, and need the model for their keys
		if err := stmt.Parse(reflect.New(t.schema.ModelType).Interface()); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// plainTable reports Table("name"), without alias, schema or text.
func plainTable(stmt *gorm.Statement) bool {
	return isPlainName(stmt.Table) && len(stmt.TableExpr.Vars) == 0 && stmt.TableExpr.SQL == stmt.Quote(stmt.Table)
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
	case t.Class == SystemClass:
		return &ClosedTableError{Table: t.name, Reason: "a System table is open to a tenant.System that names it alone"}
	case t.Class == GlobalClass && write:
		return &ClosedTableError{Table: t.name, Reason: "a Global table is written under tenant.System alone"}
	case t.Class == TenantClass && t.Keyspace != b.keyspace:
		return &KeyspaceError{Table: t.name, Keyspace: t.Keyspace, Handle: b.keyspace}
	}
	return nil
}

// owns refuses a shard key of the tenant's whose place is another than the handle's.
func (b *binding) owns(t *table, of tenant.Tenant, value any) error {
	key, err := shardrouter.KeyOf(plainKey(value))
	if err != nil {
		return fmt.Errorf("dal: table %q, column %q: %w", t.name, t.shardKey.DBName, err)
	}
	owner, err := b.store.snapshot().Owner(t.Keyspace, string(of.ID), key)
	if err != nil {
		return err
	}
	if want := (Place{Shard: owner, Schema: of.Placement.Schema}); want != b.db.place {
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
	verbCreate: {"ON CONFLICT": true, "RETURNING": true, "WHERE": true, "ORDER BY": true, "LIMIT": true}, // the last are left over from FirstOrCreate's query; no INSERT prints them
	verbUpdate: {"WHERE": true, "SET": true, "RETURNING": true},
	verbDelete: {"WHERE": true, "RETURNING": true},
}

// judgeClauses walks every clause of the statement; what it does not know is refused.
func judgeClauses(stmt *gorm.Statement, t *table, v verb) error {
	shape := func(format string, args ...any) error {
		return &ShapeError{Shape: fmt.Sprintf(format, args...), Table: t.name, Hint: "bind values, use plain columns of the model, and write sub-selects as queries of their own"}
	}
	for name, c := range stmt.Clauses {
		if name == softDeleteMark && c.Expression == nil {
			continue
		}
		if !allowedClauses[v][name] {
			return shape("clause %s", name)
		}
		if name == "RETURNING" {
			switch {
			case !returns(stmt):
				return &ShapeError{Shape: "RETURNING, which this database does not have", Table: t.name, Hint: "read the row in the same transaction"}
			case v == verbUpdate && stmt.Model != nil && reflect.ValueOf(stmt.Model).Kind() != reflect.Pointer:
				return &ShapeError{Shape: "RETURNING into a value", Table: t.name, Hint: "give Model a pointer"}
			}
		}
		if c.Name != "" && c.Name != name || c.Builder != nil || c.BeforeExpression != nil || c.AfterNameExpression != nil || c.AfterExpression != nil {
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
		if s == "*" || t.schema.LookUpField(s) != nil || v >= verbCreate { // a write prints none of them
			continue
		}
		if why := (fragment{text: s, bare: true}).judge(); why != "" {
			return shape("Select text: %s", why)
		}
	}
	return nil
}

// judgeClause judges one clause. WHERE stands inside parentheses of ours, all others stand bare.
func judgeClause(e clause.Expression) string {
	switch x := e.(type) {
	case clause.Where:
		return judgeAll(x.Exprs, false)
	case clause.Select:
		if x.Expression != nil {
			return judgeExpr(x.Expression, true)
		}
		return judgeColumns(x.Columns, true)
	case clause.OrderBy:
		if x.Expression != nil {
			return judgeExpr(x.Expression, true)
		}
		for _, c := range x.Columns {
			if why := judgeColumn(c.Column, true); why != "" {
				return why
			}
		}
		return ""
	case clause.GroupBy:
		if why := judgeColumns(x.Columns, true); why != "" {
			return why
		}
		return judgeAll(x.Having, true)
	case clause.Limit, clause.Set, clause.OnConflict: // a Set is judged assignment by assignment, and what a conflict updates too
		return ""
	case clause.Returning:
		return judgeColumns(x.Columns, true)
	case clause.From:
		return judgeFrom(x)
	case clause.Locking:
		switch {
		case x.Strength != "UPDATE" && x.Strength != "SHARE":
			return "lock strength other than UPDATE and SHARE"
		case x.Options != "" && x.Options != "NOWAIT" && x.Options != "SKIP LOCKED":
			return "lock option other than NOWAIT and SKIP LOCKED"
		case x.Table != clause.Table{} && x.Table != clause.Table{Name: clause.CurrentTable}:
			return "lock of another table"
		}
		return ""
	}
	return judgeExpr(e, true)
}

func judgeAll(exprs []clause.Expression, bare bool) string {
	for _, e := range exprs {
		if why := judgeExpr(e, bare); why != "" {
			return why
		}
	}
	return ""
}

func judgeColumns(columns []clause.Column, bare bool) string {
	for _, c := range columns {
		if why := judgeColumn(c, bare); why != "" {
			return why
		}
	}
	return ""
}

// judgeExpr walks a condition: a closed list of gorm's own types.
func judgeExpr(e clause.Expression, bare bool) string {
	switch x := e.(type) {
	case nil:
		return ""
	case clause.Expr, *clause.Expr:
		return judgeValue(x, bare)
	case clause.NamedExpr:
		return fragment{text: x.SQL, vars: x.Vars, named: true, bare: bare}.judge()
	case clause.AndConditions:
		return judgeAll(x.Exprs, bare)
	case clause.OrConditions:
		return judgeAll(x.Exprs, bare)
	case clause.NotConditions:
		return judgeAll(x.Exprs, bare)
	case clause.Where:
		return judgeAll(x.Exprs, bare)
	case clause.IN:
		if why := judgeColumn(x.Column, bare); why != "" {
			return why
		}
		return judgeValue(x.Values, bare)
	case clause.Eq:
		return judgePair(x.Column, x.Value, bare)
	case clause.Neq:
		return judgePair(x.Column, x.Value, bare)
	case clause.Gt:
		return judgePair(x.Column, x.Value, bare)
	case clause.Gte:
		return judgePair(x.Column, x.Value, bare)
	case clause.Lt:
		return judgePair(x.Column, x.Value, bare)
	case clause.Lte:
		return judgePair(x.Column, x.Value, bare)
	case clause.Like:
		return judgePair(x.Column, x.Value, bare)
	}
	return fmt.Sprintf("expression of type %T", e)
}

func judgePair(column, value any, bare bool) string {
	if why := judgeColumn(column, bare); why != "" {
		return why
	}
	return judgeValue(value, bare)
}

// judgeColumn passes plain names, which gorm quotes, and raw text that is closed in itself.
func judgeColumn(column any, bare bool) string {
	switch c := column.(type) {
	case string:
		return judgeName(c)
	case clause.Column:
		if why := judgeName(c.Table); why != "" {
			return why
		}
		if why := judgeName(c.Alias); why != "" {
			return why
		}
		if c.Raw {
			return fragment{text: c.Name, bare: bare}.judge()
		}
		return judgeName(c.Name)
	case []clause.Column:
		return judgeColumns(c, bare)
	case clause.Expr:
		return judgeValue(c, bare)
	}
	return fmt.Sprintf("column of type %T", column)
}

// judgeName passes names of letters, digits and _, with dots between them: what gorm's quoting keeps a name.
func judgeName(name string) string {
	if name == "" || name == clause.PrimaryKey || name == clause.CurrentTable || isPlainName(name) {
		return ""
	}
	return "a name that is not plain"
}

func isPlainName(name string) bool {
	start := true
	for i := range len(name) {
		switch c := name[i]; {
		case isWord(c):
			start = false
		case c == '.' && !start:
			start = true
		default:
			return false
		}
	}
	return !start
}

// same reports whether both are one pointer. What is no pointer is a value of its own.
func same(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer && x.Type() == y.Type() && x.Pointer() == y.Pointer()
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

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

// judge finds the declared table that a builder's statement is about, nil for a read of something else: what that names is judged in the text.
func (b *binding) judge(stmt *gorm.Statement, v verb) (*table, error) {
	t, err := b.tableOf(stmt, v)
	if t == nil || err != nil {
		return nil, err
	}
	if err := b.reaches(t, v); err != nil {
		return nil, err
	}
	if _, asked := stmt.Clauses["RETURNING"]; asked {
		switch {
		case v < verbCreate:
			return nil, &ShapeError{Shape: "RETURNING of a read", Table: t.name, Hint: "use Select"}
		case !returns(stmt):
			return nil, &ShapeError{Shape: "RETURNING, which this database does not have", Table: t.name, Hint: "read the row in the same transaction"}
		case v == verbUpdate && stmt.Model != nil && reflect.ValueOf(stmt.Model).Kind() != reflect.Pointer:
			return nil, &ShapeError{Shape: "RETURNING into a value", Table: t.name, Hint: "give Model a pointer"}
		}
	}
	if v > verbCreate && len(stmt.Joins) > 0 {
		return nil, &ShapeError{Shape: "joins of an update or delete, which gorm leaves out", Table: t.name, Hint: "use a sub-query as condition, or Exec"}
	}
	if v >= verbCreate && modified(stmt, t) {
		return nil, &ShapeError{Shape: "a modifier or another table in clause.Insert, Update or Delete", Table: t.name, Hint: "use clause.OnConflict, or the table's own model"}
	}
	return t, nil
}

// modified reports a clause of the caller's that changes what the statement does: INSERT OR REPLACE, UPDATE IGNORE, another table.
func modified(stmt *gorm.Statement, t *table) bool {
	other := func(of clause.Table, modifier string) bool {
		return modifier != "" || of.Name != "" && of.Name != t.name
	}
	insert, _ := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	update, _ := stmt.Clauses["UPDATE"].Expression.(clause.Update)
	remove, _ := stmt.Clauses["DELETE"].Expression.(clause.Delete)
	return other(insert.Table, insert.Modifier) || other(update.Table, update.Modifier) || remove.Modifier != ""
}

// tableOf finds the declared table by the statement's model, or for a write by the name that Table was given.
func (b *binding) tableOf(stmt *gorm.Statement, v verb) (*table, error) {
	if stmt.Schema != nil {
		t := b.store.tables.byType[stmt.Schema.ModelType]
		switch {
		case t == nil && stmt.TableExpr == nil:
			return nil, &UndeclaredError{Table: stmt.Table, Model: stmt.Schema.ModelType.String()}
		case t != nil && stmt.TableExpr == nil && stmt.Table != t.name:
			return nil, &ShapeError{Shape: "a table other than the model's", Table: stmt.Table, Hint: "use the declared model: its name is read once"}
		case v < verbCreate && stmt.TableExpr != nil:
			return nil, nil
		case t == nil || stmt.TableExpr != nil && !plainTable(stmt) || stmt.Table != t.name:
			return nil, &ShapeError{Shape: "a write to another table than the model's", Table: stmt.Table, Hint: "use the declared model"}
		}
		return t, nil
	}
	if v < verbCreate {
		return nil, nil
	}
	if stmt.TableExpr == nil || !plainTable(stmt) {
		return nil, &ShapeError{Shape: "a write without a model", Table: stmt.Table, Hint: "name the declared model, Model(&M{}), or its table"}
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

// opens reports a table that the handle's bypass opens to all tenants' rows.
func (b *binding) opens(t *table) bool { return b.bypass != nil && b.bypass.Opens(t.name) }

// owns refuses a shard key of the tenant's whose place is another than the handle's.
func (b *binding) owns(t *table, of tenant.Tenant, value any) error {
	key, err := shardrouter.KeyOf(plainKey(value))
	if err != nil {
		return fmt.Errorf("dal: table %q, column %q: %w", t.name, t.shardKey.DBName, err)
	}
	if err := t.takes(key); err != nil {
		return err
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

// takes refuses a key that the shard-key column would keep as another: "007" in a column of integers is 7, which may live elsewhere.
func (t *table) takes(key shardrouter.Key) error {
	if kind := t.shardKey.GORMDataType; kind != schema.Int && kind != schema.Uint || isDecimal(string(key)) {
		return nil
	}
	return &ShapeError{Shape: "a key of the integer column " + t.shardKey.DBName + " that is not written as an integer is", Table: t.name, Hint: "give the key as an integer: the column would take it for another"}
}

// isDecimal reports an integer's own text: no blank, sign of plus or leading zero.
func isDecimal(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return digits != "" && digits[0] != '0'
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

// subqueries refuses a sub-query of another tenant, place or keyspace: gorm swallows the errors of the ones that it builds.
func (b *binding) subqueries(stmt *gorm.Statement) error {
	w := subqueryWalk{b: b}
	if stmt.TableExpr != nil {
		w.values(stmt.TableExpr.Vars)
	}
	for _, c := range stmt.Clauses {
		if c.Expression != nil {
			w.expression(c.Expression)
		}
	}
	for _, j := range stmt.Joins {
		if j.Expression != nil {
			w.expression(j.Expression)
		}
		w.values(j.Conds)
		if j.On != nil {
			w.expression(*j.On)
		}
	}
	return w.err
}

// subqueryWalk looks for sub-queries in gorm's own types; in others the text shows what they are.
type subqueryWalk struct {
	b   *binding
	err error
}

func (w *subqueryWalk) values(list []any) {
	for _, v := range list {
		w.value(v)
	}
}

func (w *subqueryWalk) value(v any) {
	switch x := v.(type) {
	case nil, string, int, int64, []byte:
	case *clause.Expr:
		if x == nil && w.err == nil {
			w.err = &ShapeError{Shape: "a nil expression", Hint: "leave it out"}
		} else if x != nil {
			w.expression(*x)
		}
	case *gorm.DB:
		if x == nil || w.err != nil {
			return
		}
		w.err = w.b.subquery(x)
	case clause.Expression:
		w.expression(x)
	case []any:
		w.values(x)
	}
}

func (w *subqueryWalk) expressions(list []clause.Expression) {
	for _, e := range list {
		w.expression(e)
	}
}

func (w *subqueryWalk) expression(e clause.Expression) {
	switch x := e.(type) {
	case clause.Expr:
		w.values(x.Vars)
	case clause.NamedExpr:
		w.values(x.Vars)
	case clause.Where:
		w.expressions(x.Exprs)
	case parenthesized:
		w.expressions(x.user.Exprs)
	case clause.AndConditions:
		w.expressions(x.Exprs)
	case clause.OrConditions:
		w.expressions(x.Exprs)
	case clause.NotConditions:
		w.expressions(x.Exprs)
	case clause.GroupBy:
		w.expressions(x.Having)
	case clause.Select:
		if x.Expression != nil {
			w.expression(x.Expression)
		}
	case clause.OrderBy:
		if x.Expression != nil {
			w.expression(x.Expression)
		}
	case clause.IN:
		w.values(x.Values)
	case clause.Eq:
		w.value(x.Value)
	case clause.Neq:
		w.value(x.Value)
	case clause.Gt:
		w.value(x.Value)
	case clause.Gte:
		w.value(x.Value)
	case clause.Lt:
		w.value(x.Value)
	case clause.Lte:
		w.value(x.Value)
	case clause.Set:
		for _, a := range x {
			w.value(a.Value)
		}
	}
}

// subquery refuses a query that another handle's scope would have made, or that failed while it was written.
func (b *binding) subquery(db *gorm.DB) error {
	if db.Error != nil {
		return db.Error
	}
	other, err := bindingOf(db)
	if err != nil {
		return err
	}
	if err := other.matches(db.Statement.Context); err != nil {
		return err
	}
	switch {
	case other.tenant.ID != b.tenant.ID || (other.bypass == nil) != (b.bypass == nil):
		return &MismatchError{Handle: b.tenant.ID, Other: other.tenant.ID, What: "a sub-query"}
	case other.db.place != b.db.place:
		return &CrossShardError{Held: b.db.place.Shard, Wanted: other.db.place.Shard}
	}
	return nil
}

// isWord reports a letter, a digit or _.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isPlainName reports a name of ASCII letters, digits and _, with dots between them: what every server's quoting keeps a name.
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

package dal

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"slices"
	"strconv"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// newGate returns the gate over the declared tables, for every pool of the store.
func newGate(d Dialect, ts *tables) (*gate.Gate, error) {
	dialects := map[Dialect]gate.Dialect{MySQL: gate.MySQL, SQLite: gate.SQLite, Postgres: gate.Postgres}
	var declared []gate.Table
	for _, t := range ts.byName {
		g := gate.Table{Name: t.name, Keyspace: t.Keyspace, ShardKey: t.ShardKey, Class: gate.Tenant}
		if fields := t.identity(); len(fields) > 0 {
			g.Key = fields[0].DBName
		}
		switch t.Class {
		case GlobalClass:
			g.Class = gate.Global
		case SystemClass:
			g.Class = gate.System
		}
		declared = append(declared, g)
	}
	s, err := gate.NewSchema(dialects[d], TenantColumn, declared...)
	if err != nil {
		return nil, err
	}
	return gate.New(s), nil
}

// admit reads the statement's text as the server will, puts the tenant into what is not bound to it, and compares its values with the handle's
// tenant, keyspace and shard. The wire reads what leaves once more.
//
// t is the table that the builder wrote or read, and node the condition that it put in; both may be nil. write says that the statement changes rows, or
// locks them.
func (b *binding) admit(stmt *gorm.Statement, v verb, t *table, node *scopedWhere) (write bool, err error) {
	for _, value := range stmt.Vars {
		switch x := value.(type) {
		case failedPart:
			return false, x.err
		case sql.NamedArg:
			return false, &ShapeError{Shape: "a named argument that was not bound", Table: stmt.Table, Hint: "use @name in the text"}
		}
	}
	text := stmt.SQL.String()
	if b.bypass != nil {
		seen := b.store.gate.SystemVerdict(text)
		if seen.Refusal != nil {
			return false, refusal(seen.Refusal)
		}
		if why := wire.Opened(b.bypass, seen); why != nil {
			return false, refusal(why)
		}
		return seen.Write || seen.Locks, nil
	}
	seen := b.store.gate.Verdict(text)
	if seen.Refusal != nil {
		return false, refusal(seen.Refusal)
	}
	if node != nil && (node.built != 1 || !slices.Contains(seen.Bound, node.arg)) {
		return false, &ShapeError{Shape: "conditions that leave their parentheses", Table: stmt.Table, Hint: "write each condition as one whole, and leave WHERE to the builder"}
	}
	if v >= verbCreate && t != nil {
		for _, u := range seen.Tables {
			if u.Write && u.Table.Name != t.name {
				return false, &ShapeError{Shape: "a write to another table than the model's", Table: u.Table.Name, Hint: "use its own model"}
			}
		}
	}
	if seen.Args != len(stmt.Vars) {
		return false, &ShapeError{Shape: "more or fewer values than placeholders", Table: stmt.Table, Hint: "bind one for each ? outside quotes"}
	}
	if err := b.judgeValues(seen, stmt.Vars, v == verbCreate && t != nil); err != nil {
		return false, err
	}
	if r := seen.Rewrite; r != nil {
		vars := make([]any, len(r.Args))
		for i, from := range r.Args {
			if from == gate.TenantArg {
				vars[i] = b.id
			} else {
				vars[i] = stmt.Vars[from]
			}
		}
		stmt.SQL.Reset()
		stmt.SQL.WriteString(r.Text)
		stmt.Vars = vars
	}
	return seen.Write || seen.Locks, nil
}

// judgeValues compares what the caller bound with the handle's scope. built says that the rows of an INSERT were judged before.
func (b *binding) judgeValues(v *gate.Verdict, vars []any, built bool) error {
	for i := range v.Tables {
		if t := v.Tables[i].Table; t.Keyspace != "" && t.Keyspace != b.keyspace {
			return &KeyspaceError{Table: t.Name, Keyspace: t.Keyspace, Handle: b.keyspace}
		}
	}
	for _, i := range v.TenantArgs {
		if vars[i] == b.id {
			continue
		}
		if !names(vars[i], b.tenant.ID) {
			return &MismatchError{Handle: b.tenant.ID, Other: asID(vars[i]), What: "a value of tenant_id"}
		}
	}
	for _, name := range v.Names {
		if name != string(b.tenant.ID) {
			return &MismatchError{Handle: b.tenant.ID, Other: tenant.ID(name), What: "a value of tenant_id"}
		}
	}
	arg := func(i int) any { return vars[i] }
	if !built {
		if err := b.ownsAll(v, arg); err != nil {
			return err
		}
	}
	return b.ownsKeys(v, arg)
}

// ownsAll refuses inserted rows whose shard key lives elsewhere.
func (b *binding) ownsAll(v *gate.Verdict, arg func(int) any) error {
	for _, s := range v.ShardValues {
		var value any = s.Text
		if s.Arg >= 0 {
			value = arg(s.Arg)
			if valuer, ok := value.(driver.Valuer); ok {
				var err error
				if value, err = valuer.Value(); err != nil {
					return err
				}
			}
		}
		if err := b.owns(b.store.tables.byName[s.Table.Name], b.tenant, value); err != nil {
			return err
		}
	}
	return nil
}

// ownsKeys refuses conditions on a shard key that lives elsewhere: their rows are not in the handle's place. NULL, an empty key and 0 are no row's. A handle of
// one of many shards may name the keys of all: each shard has its part of them.
func (b *binding) ownsKeys(v *gate.Verdict, arg func(int) any) error {
	if b.reads {
		return nil
	}
	for i := range v.KeyValues {
		s := &v.KeyValues[i]
		if err := b.store.tables.byName[s.Table.Name].takes(b.key); err != nil && b.key != "" {
			return err
		}
		if s.Arg < 0 {
			if s.Text == string(b.key) {
				continue
			}
			if err := b.ownsKey(s, s.Text); err != nil {
				return err
			}
			continue
		}
		value := arg(s.Arg)
		if b.isKey(value) {
			continue
		}
		if err := b.ownsKey(s, value); err != nil {
			return err
		}
	}
	return nil
}

// isKey reports the handle's own key, which is where the handle is. It allocates nothing.
func (b *binding) isKey(v any) bool {
	var digits [20]byte
	switch x := v.(type) {
	case string:
		return x == string(b.key)
	case []byte:
		return string(x) == string(b.key)
	case int64:
		return string(strconv.AppendInt(digits[:0], x, 10)) == string(b.key)
	case int:
		return string(strconv.AppendInt(digits[:0], int64(x), 10)) == string(b.key)
	}
	return false
}

// ownsKey is ownsKeys for one value that is not the handle's key itself.
func (b *binding) ownsKey(s *gate.ShardValue, value any) error {
	if valuer, ok := value.(driver.Valuer); ok {
		var err error
		if value, err = valuer.Value(); err != nil {
			return err
		}
	}
	if value = plainKey(value); value == nil {
		return nil
	}
	if rv := reflect.ValueOf(value); rv.Kind() == reflect.Pointer { // nil: plainKey follows the others
		return nil
	}
	err := b.owns(b.store.tables.byName[s.Table.Name], b.tenant, value)
	if errors.Is(err, shardrouter.ErrEmptyKey) || errors.Is(err, shardrouter.ErrZeroKey) {
		return nil
	}
	return err
}

// names reports a value that is the tenant's id, or one whose driver value the wire will compare.
func names(v any, id tenant.ID) bool {
	switch x := plainKey(v).(type) {
	case string:
		return x == string(id)
	case tenant.ID:
		return x == id
	case driver.Valuer:
		return true
	}
	return false
}

// refusal gives a refusal of the gate the type that callers test for.
func refusal(r *gate.Refusal) error {
	switch r.Code {
	case gate.Undeclared:
		return &UndeclaredError{Table: r.Table}
	case gate.Closed:
		return &ClosedTableError{Table: r.Table, Reason: r.Reason + ": " + r.Hint}
	case gate.Immutable:
		return &ImmutableError{Table: r.Table, Column: r.Column}
	case gate.Foreign:
		return &MismatchError{What: r.Reason}
	}
	return &ShapeError{Shape: r.Reason, Table: r.Table, Hint: r.Hint}
}

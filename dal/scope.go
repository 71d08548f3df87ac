package dal

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// verb is one of gorm's processors.
type verb uint8

const (
	verbQuery verb = iota + 1
	verbRow
	verbCreate
	verbUpdate
	verbDelete
	verbRaw
)

// registerScope puts the scope in front of each of gorm's own senders, once, when a database is opened. The way of one statement:
//
//	judge    is it a declared table, in this handle's keyspace and place, in a shape that can be scoped
//	inject   write the tenant into it
//	build    make the text; nothing of the caller's runs after this
//	mark     let exactly this text pass the wire
//	send     gorm's own callback
//	unmark   before preload and hooks
func registerScope(db *gorm.DB) error {
	type processor interface {
		Get(name string) func(*gorm.DB)
		Replace(name string, fn func(*gorm.DB)) error
	}
	cb := db.Callback()
	for _, p := range []struct {
		verb verb
		name string
		of   processor
	}{
		{verbQuery, "gorm:query", cb.Query()},
		{verbRow, "gorm:row", cb.Row()},
		{verbCreate, "gorm:create", cb.Create()},
		{verbUpdate, "gorm:update", cb.Update()},
		{verbDelete, "gorm:delete", cb.Delete()},
		{verbRaw, "gorm:raw", cb.Raw()},
	} {
		send := p.of.Get(p.name)
		if err := p.of.Replace(p.name, func(db *gorm.DB) { scoped(db, p.verb, send) }); err != nil {
			return err
		}
	}
	// A write's shape is judged before gorm begins its transaction, so that a refused one costs no connection; hooks may change the statement, so it is
	// judged again when it is sent.
	for _, p := range []struct {
		verb     verb
		register func(name string, fn func(*gorm.DB)) error
	}{
		{verbCreate, cb.Create().Before("gorm:begin_transaction").Register},
		{verbUpdate, cb.Update().Before("gorm:begin_transaction").Register},
		{verbDelete, cb.Delete().Before("gorm:begin_transaction").Register},
	} {
		if err := p.register("tenantdal:judge", func(db *gorm.DB) { judgeEarly(db, p.verb) }); err != nil {
			return err
		}
	}
	// Associations are saved by statements of their own, with upserts: refused before anything is written.
	for _, p := range []struct {
		name string
		of   processor
	}{
		{"gorm:save_before_associations", cb.Create()},
		{"gorm:save_before_associations", cb.Update()},
		{"gorm:delete_before_associations", cb.Delete()},
	} {
		if err := p.of.Replace(p.name, refuseAssociations); err != nil {
			return err
		}
	}
	for _, p := range []processor{cb.Create(), cb.Update()} {
		if err := p.Replace("gorm:save_after_associations", func(*gorm.DB) {}); err != nil {
			return err
		}
	}
	// gorm begins a write's own transaction in one callback and ends it in another, with nothing that ends it when a hook between them panics.
	for _, p := range []struct {
		of    processor
		names []string
	}{
		{cb.Create(), []string{"gorm:before_create", "gorm:save_before_associations", "gorm:create", "gorm:after_create"}},
		{cb.Update(), []string{"gorm:setup_reflect_value", "gorm:before_update", "gorm:save_before_associations", "gorm:update", "gorm:after_update"}},
		{cb.Delete(), []string{"gorm:before_delete", "gorm:delete_before_associations", "gorm:delete", "gorm:after_delete"}},
	} {
		for _, name := range p.names {
			if err := p.of.Replace(name, guarded(p.of.Get(name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// guarded ends the write's own transaction when fn panics or ends the goroutine; the panic goes on.
func guarded(fn func(*gorm.DB)) func(*gorm.DB) {
	return func(db *gorm.DB) {
		returned := false
		defer func() {
			if returned {
				return
			}
			if _, own := db.InstanceGet("gorm:started_transaction"); own {
				db.Rollback()
				db.Statement.ConnPool = db.ConnPool
			}
		}()
		fn(db)
		returned = true
	}
}

// judgeEarly refuses a write before anything is begun for it.
func judgeEarly(db *gorm.DB, v verb) {
	if db.Error != nil {
		return
	}
	b, err := bindingOf(db)
	if err == nil {
		err = b.matches(db.Statement.Context)
	}
	var t *table
	if err == nil {
		t, err = b.judge(db.Statement, v)
	}
	if err == nil {
		err = b.judgeRows(db, t, v)
	}
	if err != nil {
		_ = db.AddError(err)
		return
	}
	refuseAssociations(db)
}

// judgeRows refuses by the statement's own values: rows of another tenant or shard, changed keys, a write to all rows that nobody asked for.
func (b *binding) judgeRows(db *gorm.DB, t *table, v verb) error {
	stmt := db.Statement
	if s := stmt.Schema; !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate || s.BeforeUpdate || s.BeforeDelete) {
		return nil // hooks may still fill keys and add conditions; the statement is judged when it is sent
	}
	if v == verbCreate {
		return b.eachRow(stmt, t, true, func(row reflect.Value) error { return b.admits(stmt.Context, t, row) })
	}
	if v == verbUpdate {
		if err := b.assignable(stmt, t); err != nil {
			return err
		}
	}
	if where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where); len(where.Exprs) > 0 || db.AllowGlobalUpdate {
		return nil
	}
	for _, of := range []any{stmt.Dest, stmt.Model} {
		if named(stmt.Context, t, reflect.Indirect(reflect.ValueOf(of))) {
			return nil
		}
	}
	return gorm.ErrMissingWhereClause
}

// named reports a model, or a slice of them, with a primary key beside the owner's. What is no model may name rows in a way of its own.
func named(ctx context.Context, t *table, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if named(ctx, t, reflect.Indirect(v.Index(i))) {
				return true
			}
		}
		return false
	case reflect.Struct:
		if v.Type() != t.schema.ModelType {
			return false
		}
		for _, f := range t.schema.PrimaryFields {
			if _, zero := f.ValueOf(ctx, v); !zero && f.DBName != TenantColumn {
				return true
			}
		}
	}
	return false
}

// bindingOf returns the handle's binding, and refuses a handle whose parts were exchanged.
func bindingOf(db *gorm.DB) (*binding, error) {
	p, ok := db.Config.ConnPool.(*pool)
	if !ok {
		return nil, &ShapeError{Shape: "Session{PrepareStmt}", Hint: "use the handle without PrepareStmt: prepared statements would be shared by all tenants"}
	}
	b := p.binding
	if b.err != nil {
		return nil, b.err
	}
	own := db.Dialector == b.db.gorm.Dialector
	switch at := db.Statement.ConnPool.(type) {
	case *pool:
		own = own && at.binding == b
	case *txPool:
		own = own && at.db == b.db && at.tenant.ID == b.tenant.ID && (at.bypass == nil) == (b.bypass == nil)
	default:
		own = false
	}
	if !own {
		return nil, &ShapeError{Shape: "handle whose pool or dialect was exchanged", Hint: "use the handle of Store.On as it is"}
	}
	return b, nil
}

// scoped sends one statement, or refuses it.
func scoped(db *gorm.DB, v verb, send func(*gorm.DB)) {
	if db.Error != nil {
		refuse(db, v, nil)
		return
	}
	b, err := bindingOf(db)
	if err == nil {
		err = b.matches(db.Statement.Context)
	}
	if err != nil {
		refuse(db, v, err)
		return
	}
	before := save(db.Statement)
	defer before.restore(db.Statement)
	owners, err := b.prepare(db, v)
	if err != nil {
		refuse(db, v, err)
		return
	}
	stmt := db.Statement
	if db.Error != nil || stmt.SQL.Len() == 0 {
		refuse(db, v, nil) // gorm found an error while it built, or there is nothing to update
		return
	}
	if db.DryRun {
		if v == verbRow {
			refuse(db, v, gorm.ErrDryRunModeUnsupported)
		}
		return // the text is built, and nothing is sent
	}
	ctx := stmt.Context
	kind := wire.Scoped
	if b.bypass != nil {
		kind = wire.Bypass
	}
	stmt.Context = wire.With(ctx, &wire.Mark{Kind: kind, Tenant: b.tenant.ID, Text: stmt.SQL.String(), TenantArgs: owners, Write: v >= verbCreate})
	defer func() { stmt.Context = ctx }()
	send(db)
}

// refuse reports err and leaves nothing that could be sent or used. Row() has no error of its own, so its row carries it.
func refuse(db *gorm.DB, v verb, err error) {
	if err != nil {
		_ = db.AddError(err)
		db.Statement.SQL.Reset()
		db.Statement.Vars = nil
	}
	if rows, _ := db.Get("rows"); v == verbRow && rows == false && db.Error != nil {
		db.Statement.Dest = errorRow(db.Error)
	}
}

// prepare judges, injects, builds and verifies. It returns which of the statement's values must be the tenant when it leaves.
func (b *binding) prepare(db *gorm.DB, v verb) (owners []int, err error) {
	stmt := db.Statement
	t, err := b.judge(stmt, v)
	if err != nil {
		return nil, err
	}
	if err := ownClauses(db, v); err != nil {
		return nil, err
	}
	var node *scopedWhere
	if v != verbCreate && t.tenant != nil && !b.opens(t) {
		node = inject(stmt, b.id)
	}
	switch v {
	case verbQuery, verbRow:
		callbacks.BuildQuerySQL(db)
	case verbCreate:
		owners, err = b.buildCreate(db, t)
	case verbUpdate:
		err = b.buildUpdate(db, t)
	case verbDelete:
		err = b.buildDelete(db, t)
	}
	if err != nil || db.Error != nil || stmt.SQL.Len() == 0 {
		return nil, err
	}
	if node != nil {
		if node.built != 1 {
			return nil, &ShapeError{Shape: "a clause that drops the tenant's condition", Table: t.name, Hint: "leave WHERE to the builder"}
		}
		if v >= verbCreate && !db.AllowGlobalUpdate && node.unconditional(stmt, t) {
			return nil, gorm.ErrMissingWhereClause
		}
		owners = []int{node.arg}
	}
	if why := verify(stmt, v, node); why != "" {
		return nil, &ShapeError{Shape: "statement with " + why, Table: t.name, Hint: "bind values, and use plain columns of the model"}
	}
	return owners, nil
}

// ownClauses refuses a statement that prints other clauses than its verb's.
func ownClauses(db *gorm.DB, v verb) error {
	cb := db.Callback()
	want := cb.Query().Clauses
	switch v {
	case verbCreate:
		want = cb.Create().Clauses
	case verbUpdate:
		want = cb.Update().Clauses
	case verbDelete:
		want = cb.Delete().Clauses
	}
	if !slices.Equal(db.Statement.BuildClauses, want) {
		return &ShapeError{Shape: "clauses of the caller's own", Table: db.Statement.Table}
	}
	return nil
}

// opens reports a table that the handle's bypass opens to all tenants' rows.
func (b *binding) opens(t *table) bool { return b.bypass != nil && b.bypass.Opens(t.name) }

// buildCreate stamps the rows and builds the INSERT with the columns that may not be missing, whatever Select and Omit say.
//
// It returns the positions of each row's tenant among the values.
func (b *binding) buildCreate(db *gorm.DB, t *table) ([]int, error) {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, true, func(row reflect.Value) error { return b.stamp(stmt.Context, t, row) }); err != nil {
		return nil, err
	}
	stmt.AddClauseIfNotExists(clause.Insert{})
	values := callbacks.ConvertToCreateValues(stmt)
	if db.Error != nil {
		return nil, nil
	}
	if err := b.force(stmt, t, &values); err != nil {
		return nil, err
	}
	owners, err := b.ownersOf(t, values)
	if err != nil {
		return nil, err
	}
	stmt.AddClause(values)
	stmt.Build(stmt.BuildClauses...)
	return owners, nil
}

// ownersOf judges every value of an INSERT, and finds each row's tenant among those that are bound.
func (b *binding) ownersOf(t *table, values clause.Values) ([]int, error) {
	owner := -1
	if t.tenant != nil && b.bypass == nil {
		owner = slices.IndexFunc(values.Columns, func(c clause.Column) bool { return c.Name == TenantColumn })
	}
	var owners []int
	bound := 0
	for _, row := range values.Values {
		for i, v := range row {
			if e, ok := v.(clause.Expr); ok && len(e.Vars) == 0 && (e.SQL == "DEFAULT" || e.SQL == "NULL") {
				continue // what gorm writes for a column with a default
			}
			why := judgeValue(v, true)
			if why == "" && !isBound(v) {
				why = fmt.Sprintf("a value of type %T", v)
			}
			if why != "" {
				return nil, &ShapeError{Shape: "inserted value: " + why, Table: t.name, Hint: "insert values, not expressions"}
			}
			if i == owner {
				if v != b.id {
					return nil, &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the row's TenantID"}
				}
				owners = append(owners, bound)
			}
			bound++
		}
	}
	return owners, nil
}

// isBound reports a value that gorm binds as one placeholder.
func isBound(v any) bool {
	switch v.(type) {
	case nil, []byte, driver.Valuer:
		return true
	case clause.Expression, clause.Column:
		return false
	}
	k := reflect.TypeOf(v).Kind()
	return k != reflect.Slice && k != reflect.Array || reflect.TypeOf(v).Elem().Kind() == reflect.Uint8
}

// eachRow calls fn for each row of the statement's value.
func (b *binding) eachRow(stmt *gorm.Statement, t *table, strict bool, fn func(reflect.Value) error) error {
	rv := reflect.Indirect(stmt.ReflectValue)
	switch rv.Kind() {
	case reflect.Struct:
		if rv.Type() != t.schema.ModelType {
			break
		}
		if !rv.CanAddr() && strict {
			return &ShapeError{Shape: "create by value", Table: t.name, Hint: "pass a pointer"}
		}
		return fn(rv)
	case reflect.Slice, reflect.Array:
		for i := range rv.Len() {
			row := reflect.Indirect(rv.Index(i))
			if !row.IsValid() || row.Kind() != reflect.Struct || row.Type() != t.schema.ModelType || !row.CanAddr() {
				if !strict {
					continue
				}
				return &ShapeError{Shape: "create of something that is not the model", Table: t.name, Hint: "pass the model's structs"}
			}
			if err := fn(row); err != nil {
				return err
			}
		}
		return nil
	}
	if strict {
		return &ShapeError{Shape: "create from a map or another struct", Table: t.name, Hint: "pass the model's struct"}
	}
	return nil
}

// admits refuses a new row of another tenant, or one whose key another shard owns.
func (b *binding) admits(ctx context.Context, t *table, row reflect.Value) error {
	if t.tenant != nil {
		v, zero := t.tenant.ValueOf(ctx, row)
		switch {
		case b.bypass != nil && zero:
			return &MismatchError{What: "a row without TenantID under a system scope"}
		case b.bypass == nil && !zero && v != b.id:
			return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the row's TenantID"}
		}
	}
	if t.shardKey == nil {
		return nil
	}
	v, _ := t.shardKey.ValueOf(ctx, row)
	return b.owns(t, v)
}

// stamp makes a new row the tenant's and gives it an id.
func (b *binding) stamp(ctx context.Context, t *table, row reflect.Value) error {
	if err := b.admits(ctx, t, row); err != nil {
		return err
	}
	if t.tenant != nil && b.bypass == nil {
		if err := t.tenant.Set(ctx, row, b.tenant.ID); err != nil {
			return err
		}
	}
	return b.store.ids.fill(ctx, t.schema, row)
}

// force adds tenant_id, the key and the shard key where Select or Omit dropped them.
func (b *binding) force(stmt *gorm.Statement, t *table, values *clause.Values) error {
	must := append([]*schema.Field{}, t.schema.PrimaryFields...)
	if t.tenant != nil {
		must = append(must, t.tenant)
	}
	if t.shardKey != nil {
		must = append(must, t.shardKey)
	}
	for _, f := range must {
		if slices.ContainsFunc(values.Columns, func(c clause.Column) bool { return c.Name == f.DBName }) {
			continue
		}
		values.Columns = append(values.Columns, clause.Column{Name: f.DBName})
		rv := reflect.Indirect(stmt.ReflectValue)
		for i := range values.Values {
			row := rv
			if rv.Kind() == reflect.Slice || rv.Kind() == reflect.Array {
				row = reflect.Indirect(rv.Index(i))
			}
			v, _ := f.ValueOf(stmt.Context, row)
			values.Values[i] = append(values.Values[i], v)
		}
	}
	return nil
}

// buildUpdate builds the UPDATE without the columns that may not change.
func (b *binding) buildUpdate(db *gorm.DB, t *table) error {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, false, func(row reflect.Value) error { return b.sameOwner(stmt.Context, t, row) }); err != nil {
		return err
	}
	if err := b.assignable(stmt, t); err != nil {
		return err
	}
	for _, c := range stmt.Schema.UpdateClauses {
		stmt.AddClause(c)
	}
	set, ok := stmt.Clauses["SET"].Expression.(clause.Set)
	if !ok {
		set = callbacks.ConvertToAssignments(stmt)
	}
	if db.Error != nil || len(set) == 0 {
		return nil
	}
	kept, err := b.mutable(stmt, t, set)
	if err != nil || len(kept) == 0 {
		return err
	}
	delete(stmt.Clauses, "SET")
	stmt.AddClause(kept)
	stmt.AddClauseIfNotExists(clause.Update{})
	stmt.Build(stmt.BuildClauses...)
	return nil
}

// assignable judges the caller's values before gorm copies them into the caller's model.
func (b *binding) assignable(stmt *gorm.Statement, t *table) error {
	if same(stmt.Dest, stmt.Model) {
		return nil
	}
	dest := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	var set clause.Set
	switch {
	case dest.Kind() == reflect.Map:
		for _, k := range dest.MapKeys() {
			if k.Kind() != reflect.String {
				return &ShapeError{Shape: "update from a map without text keys", Table: t.name, Hint: "use map[string]any"}
			}
			name := k.String()
			if f := stmt.Schema.LookUpField(name); f != nil && f.DBName != "" {
				name = f.DBName
			}
			set = append(set, clause.Assignment{Column: clause.Column{Name: name}, Value: dest.MapIndex(k).Interface()})
		}
	case dest.Kind() == reflect.Struct && dest.Type() == t.schema.ModelType:
		for _, f := range t.schema.Fields {
			if f.DBName == "" {
				continue
			}
			if v, zero := f.ValueOf(stmt.Context, dest); !zero {
				set = append(set, clause.Assignment{Column: clause.Column{Name: f.DBName}, Value: v})
			}
		}
	}
	_, err := b.mutable(stmt, t, set)
	return err
}

// mutable drops an assignment that repeats the row's own tenant, primary key or shard key and refuses any other change of them. An expression is put
// into parentheses, so that it stays one value.
func (b *binding) mutable(stmt *gorm.Statement, t *table, set clause.Set) (clause.Set, error) {
	model := reflect.Indirect(reflect.ValueOf(stmt.Model))
	repeats := func(name string, v any) bool { // what the model that names the row says itself
		f := t.schema.FieldsByDBName[name]
		if model.Kind() != reflect.Struct || model.Type() != t.schema.ModelType {
			return false
		}
		own, zero := f.ValueOf(stmt.Context, model)
		return !zero && reflect.DeepEqual(own, v)
	}
	kept := make(clause.Set, 0, len(set))
	for _, a := range set {
		f := stmt.Schema.FieldsByDBName[a.Column.Name]
		if f == nil || a.Column.Raw || a.Column.Table != "" && a.Column.Table != clause.CurrentTable && a.Column.Table != stmt.Table {
			return nil, &ShapeError{Shape: "assignment to a column that the model lacks", Table: t.name, Hint: "name a column of the model"}
		}
		why := judgeValue(a.Value, true)
		if e, ok := a.Value.(clause.Expr); ok {
			why = fragment{text: e.SQL, vars: e.Vars, bare: true, one: true}.judge()
		}
		if why != "" {
			return nil, &ShapeError{Shape: "assigned value: " + why, Table: t.name, Hint: "bind the value, or use gorm.Expr with plain columns"}
		}
		switch { // by name: each database has a parsed schema of its own
		case t.tenant != nil && f.DBName == TenantColumn:
			if b.bypass == nil && asID(a.Value) == b.tenant.ID {
				continue
			}
			return nil, &ImmutableError{Table: t.name, Column: f.DBName}
		case f.PrimaryKey && repeats(f.DBName, a.Value):
			continue
		case t.shardKey != nil && f.DBName == t.shardKey.DBName && repeats(f.DBName, a.Value):
			// A whole row is written back: its shard key says which row, it does not change it.
			stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: f.DBName}, Value: a.Value}}})
			continue
		case f.PrimaryKey, t.shardKey != nil && f.DBName == t.shardKey.DBName:
			return nil, &ImmutableError{Table: t.name, Column: f.DBName}
		}
		if e, ok := a.Value.(clause.Expr); ok {
			a.Value = clause.Expr{SQL: "(" + e.SQL + ")", Vars: e.Vars}
		} else if _, writes := a.Value.(clause.Expression); writes {
			return nil, &ShapeError{Shape: fmt.Sprintf("assigned value of type %T", a.Value), Table: t.name, Hint: "use gorm.Expr"}
		}
		kept = append(kept, a)
	}
	return kept, nil
}

// buildDelete builds the DELETE as gorm does; a soft-delete field type builds its own UPDATE from the same clauses.
func (b *binding) buildDelete(db *gorm.DB, t *table) error {
	stmt := db.Statement
	if err := b.eachRow(stmt, t, false, func(row reflect.Value) error { return b.sameOwner(stmt.Context, t, row) }); err != nil {
		return err
	}
	if len(stmt.Schema.DeleteClauses) > 0 && t.tenant != nil && t.tenant.PrimaryKey && !stmt.ReflectValue.CanAddr() && stmt.ReflectValue.Kind() == reflect.Struct {
		return &ShapeError{Shape: "soft delete by value of a model whose key holds tenant_id", Table: t.name, Hint: "pass a pointer"}
	}
	for _, c := range stmt.Schema.DeleteClauses {
		stmt.AddClause(c)
	}
	if stmt.SQL.Len() > 0 {
		return nil
	}
	stmt.AddClauseIfNotExists(clause.Delete{})
	var fields []*schema.Field // the owner is in the scope's condition
	var names []string
	for _, f := range stmt.Schema.PrimaryFields {
		if f.DBName != TenantColumn {
			fields, names = append(fields, f), append(names, f.DBName)
		}
	}
	keyed := func(v reflect.Value) {
		_, rows := schema.GetIdentityFieldValuesMap(stmt.Context, v, fields)
		column, values := schema.ToQueryValues(stmt.Table, names, rows)
		if len(values) > 0 {
			stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: values}}})
		}
	}
	keyed(stmt.ReflectValue)
	if stmt.ReflectValue.CanAddr() && !same(stmt.Dest, stmt.Model) && stmt.Model != nil {
		keyed(reflect.ValueOf(stmt.Model))
	}
	stmt.AddClauseIfNotExists(clause.From{})
	stmt.Build(stmt.BuildClauses...)
	return nil
}

// sameOwner refuses a row of another tenant as the model of an update or delete. Where tenant_id is part of gorm's key a zero one is filled, or the
// key would name nobody's row.
func (b *binding) sameOwner(ctx context.Context, t *table, row reflect.Value) error {
	if t.tenant == nil || b.bypass != nil {
		return nil
	}
	v, zero := t.tenant.ValueOf(ctx, row)
	switch {
	case zero && t.tenant.PrimaryKey && len(t.schema.PrimaryFields) > 1 && row.CanAddr():
		for _, f := range t.schema.PrimaryFields {
			if f == t.tenant {
				continue
			}
			if _, z := f.ValueOf(ctx, row); !z {
				return t.tenant.Set(ctx, row, b.tenant.ID)
			}
		}
		return nil
	case !zero && v != b.id:
		return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the model's TenantID"}
	}
	return nil
}

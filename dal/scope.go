package dal

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"

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
	// gorm saves associations with upserts by primary key, which would take over any row that has it.
	for _, p := range []struct {
		name string
		of   processor
		fn   func(*gorm.DB)
	}{
		{"gorm:save_before_associations", cb.Create(), relateBefore(true)},
		{"gorm:save_before_associations", cb.Update(), relateBefore(false)},
		{"gorm:save_after_associations", cb.Create(), relateAfter(true)},
		{"gorm:save_after_associations", cb.Update(), relateAfter(false)},
	} {
		if err := p.of.Replace(p.name, p.fn); err != nil {
			return err
		}
	}
	// gorm begins a write's own transaction in one callback and ends it in another, with nothing that ends it when a hook between them panics.
	for _, p := range []struct {
		of    processor
		names []string
	}{
		{cb.Create(), []string{"gorm:before_create", "gorm:save_before_associations", "gorm:create", "gorm:save_after_associations", "gorm:after_create"}},
		{cb.Update(), []string{"gorm:setup_reflect_value", "gorm:before_update", "gorm:save_before_associations", "gorm:update", "gorm:save_after_associations", "gorm:after_update"}},
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
	if err == nil {
		err = b.permits(db.Statement, v)
	}
	var t *table
	if err == nil {
		t, err = b.judge(db.Statement, v)
	}
	if err == nil {
		err = b.judgeRows(db, t, v)
	}
	if err == nil && v == verbCreate {
		err = b.store.ids.keep(db.Statement.Context) // not while a transaction is open
	}
	if err == nil {
		err = b.judgeRelations(db, t, v)
	}
	if err != nil {
		_ = db.AddError(err)
	}
}

// judgeRows refuses by the statement's own values: rows of another tenant or shard, changed keys, a write to all rows that nobody asked for.
func (b *binding) judgeRows(db *gorm.DB, t *table, v verb) error {
	stmt := db.Statement
	if s := stmt.Schema; s != nil && !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate || s.BeforeUpdate || s.BeforeDelete) {
		return nil // hooks may still fill keys and add conditions; the statement is judged when it is sent
	}
	if v == verbCreate {
		return b.admitAll(stmt, t)
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
		own = own && at.db == b.db && at.tenant.ID == b.tenant.ID && at.bypass == b.bypass
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
	if err == nil {
		err = b.permits(db.Statement, v)
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
	var joins []*joinScope
	switch v {
	case verbQuery, verbRow:
		var restore func()
		joins, restore, err = b.scopeJoins(stmt)
		defer restore()
		if err == nil {
			callbacks.BuildQuerySQL(db)
		}
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
	for _, j := range joins {
		if j.built != 1 {
			return nil, &ShapeError{Shape: "a clause that drops the tenant's condition", Table: j.table, Hint: "leave joins to the builder"}
		}
		owners = append(owners, j.arg)
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

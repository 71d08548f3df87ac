package dal

import (
	"context"
	"database/sql"
	"reflect"
	"time"

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
//	judge    what is it about: a declared table, in this handle's keyspace and place
//	inject   write the tenant into a plain statement over one table
//	build    make the text; nothing of the caller's writes SQL after this
//	admit    read the text as the server will, bind what is not bound, compare the values
//	mark     let exactly this text pass to the wire, which reads it once more
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
	for _, p := range []processor{cb.Create(), cb.Update(), cb.Delete()} {
		if err := registerDefaultTransaction(p); err != nil {
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
	if err := cb.Create().After("gorm:create").Before("gorm:save_after_associations").Register("tenantdal:conflict", nameConflict); err != nil {
		return err
	}
	if err := cb.Query().Replace("gorm:preload", preloading(cb.Query().Get("gorm:preload"))); err != nil {
		return err
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

// judgeEarly refuses a write before anything is begun for it.
func judgeEarly(db *gorm.DB, v verb) {
	if db.Error != nil {
		return
	}
	b, err := bindingOf(db)
	if err == nil {
		err = b.matches(db.Statement.Context)
	}
	if err == nil && b.asked != nil {
		err = b.refuseWrite("a write")
	}
	if err == nil {
		err = b.permits(db.Statement)
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

// hooked reports a model whose hooks run before its writes.
func hooked(stmt *gorm.Statement) bool {
	s := stmt.Schema
	return s != nil && !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate || s.BeforeUpdate || s.BeforeDelete)
}

// judgeRows refuses by the statement's own values: rows of another tenant or shard, changed keys, a write to all rows that nobody asked for.
func (b *binding) judgeRows(db *gorm.DB, t *table, v verb) error {
	stmt := db.Statement
	if hooked(stmt) {
		return nil // hooks may still fill keys and add conditions; the statement is judged when it is sent
	}
	if v == verbCreate {
		return b.admitAll(stmt, t)
	}
	if v == verbUpdate {
		if err := b.assignable(stmt, t); err != nil {
			return err
		}
		if set, ok := stmt.Clauses["SET"].Expression.(clause.Set); ok {
			if _, _, err := b.mutable(stmt, t, set); err != nil {
				return err
			}
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
	var b *binding
	switch p := unprepared(db.Config.ConnPool).(type) {
	case *pool:
		b = p.binding
	case *txPool: // Session{PrepareStmt} inside a transaction
		b = p.binding
	default:
		return nil, &ShapeError{Shape: "handle whose pool or dialect was exchanged", Hint: "use the handle of Store.On as it is"}
	}
	if b.err != nil {
		return nil, b.err
	}
	own := db.Dialector == b.db.gorm.Dialector
	switch at := unprepared(db.Statement.ConnPool).(type) {
	case *pool:
		own = own && at.binding == b
	case *txPool:
		own = own && at.db.place == b.db.place && at.tenant.ID == b.tenant.ID && at.bypass == b.bypass
	case *sql.Conn:
		own = own && b.took(at)
	case *sql.Tx: // begun on a connection of Connection(): what it sends passes the gate, whoever began it
	default:
		own = false
	}
	if !own {
		return nil, &ShapeError{Shape: "handle whose pool or dialect was exchanged", Hint: "use the handle of Store.On as it is"}
	}
	return b, nil
}

// unprepared returns what gorm's PrepareStmt sends through. Its statements would be kept for all tenants of the place and bypass the permits, so the
// option is taken and nothing is prepared: the driver puts the values into the text itself.
func unprepared(p gorm.ConnPool) gorm.ConnPool {
	switch x := p.(type) {
	case *gorm.PreparedStmtDB:
		return x.ConnPool
	case *gorm.PreparedStmtTX:
		return x.Tx
	}
	return p
}

// scoped sends one statement, or refuses it.
func scoped(db *gorm.DB, v verb, send func(*gorm.DB)) {
	if db.Error != nil {
		refuse(db, v, nil)
		return
	}
	b, err := bindingOf(db)
	if err == nil && !isGenericPart(db, v) {
		err = b.matches(db.Statement.Context)
	}
	if err != nil {
		refuse(db, v, err)
		return
	}
	var before saved
	before.save(db.Statement, v)
	defer before.restore(db.Statement)
	parts := &statementParts{}
	write, err := b.prepare(db, v, &parts.node)
	if _, locks := db.Statement.Clauses["FOR"]; locks { // SQLite's text does not show it
		write = true
	}
	if err == nil && write {
		if b.asked != nil {
			err = b.refuseWrite("a write or a locking read")
		} else {
			err = b.permits(db.Statement)
		}
	}
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
	counted, err := b.capped(ctx, stmt, v)
	if err != nil {
		refuse(db, v, err)
		return
	}
	kind := wire.Scoped
	if b.bypass != nil {
		kind = wire.Bypass
	}
	m := wire.Fill(ctx, &parts.marked)
	m.Kind, m.Tenant, m.Text, m.Bypass, m.Write = kind, b.tenant.ID, stmt.SQL.String(), b.bypass, write
	stmt.Context = &parts.marked
	at := stmt.ConnPool
	stmt.ConnPool = unprepared(at)
	defer func() { stmt.Context, stmt.ConnPool = ctx, at }()
	sent := time.Now()
	send(db)
	held := time.Since(sent)
	if tx, ok := stmt.ConnPool.(*txPool); ok && tx.owned {
		held = 0 // Store.Transaction counts the whole of its time
	}
	b.store.hot.note(b, 1, held)
	if counted != nil && db.Error == nil {
		_ = db.AddError(counted.count(ctx))
	}
}

// refuse reports err and leaves nothing that could be sent or used. Row() has no error of its own, so its row carries it.
func refuse(db *gorm.DB, v verb, err error) {
	if err != nil {
		_ = db.AddError(err)
		db.Statement.SQL.Reset()
		db.Statement.Vars = nil
	}
	if v == verbQuery && db.DryRun && db.Error != nil {
		db.Statement.Vars = []any{failedPart{db.Error}}
	}
	if rows, _ := db.Get("rows"); v == verbRow && rows == false && db.Error != nil {
		db.Statement.Dest = errorRow(db.Error)
	}
}

// statementParts is what a statement needs for itself, in one piece of memory.
type statementParts struct {
	node   scopedWhere
	marked wire.Marked
}

// prepare judges, injects, builds and admits. It makes the scope's condition out of node, which is unused. write says that the statement changes or locks
// rows.
func (b *binding) prepare(db *gorm.DB, v verb, node *scopedWhere) (write bool, err error) {
	stmt := db.Statement
	if v == verbRaw || stmt.SQL.Len() > 0 {
		return b.admit(stmt, v, nil, nil)
	}
	t, err := b.judge(stmt, v)
	if err != nil {
		return false, err
	}
	if err := b.subqueries(stmt); err != nil {
		return false, err
	}
	part := len(stmt.Vars) > 0 // gorm builds a sub-query with the values of the statement around it
	if v != verbCreate && b.injects(stmt, t) {
		node.id, node.column = b.id, t.tenantColumn(b.db.dialect)
		node.inject(stmt)
	} else {
		node = nil
	}
	switch v {
	case verbQuery, verbRow:
		callbacks.BuildQuerySQL(db)
	case verbCreate:
		err = b.buildCreate(db, t)
	case verbUpdate:
		err = b.buildUpdate(db, t)
	case verbDelete:
		err = b.buildDelete(db, t)
	}
	if err != nil || db.Error != nil || stmt.SQL.Len() == 0 {
		return false, err
	}
	if node != nil && v >= verbCreate && !db.AllowGlobalUpdate && node.unconditional(stmt, t) {
		return false, gorm.ErrMissingWhereClause
	}
	if part && db.DryRun {
		return false, nil // the statement around it is admitted as a whole
	}
	return b.admit(stmt, v, t, node)
}

// injects reports a statement over one tenant table whose WHERE filters that table's rows and nothing else; in any other the predicate is put into the
// text that gorm built.
func (b *binding) injects(stmt *gorm.Statement, t *table) bool {
	if t == nil || t.tenant == nil || b.bypass != nil || len(stmt.Joins) > 0 {
		return false
	}
	from, own := stmt.Clauses["FROM"].Expression.(clause.From)
	return !own || len(from.Tables)+len(from.Joins) == 0
}

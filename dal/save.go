package dal

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"
)

// isSave reports the create that gorm's Save falls back on: for a struct whose update found no row, and for a list. As gorm writes it, it would take
// over whichever row has the key.
func isSave(db *gorm.DB) bool {
	stmt := db.Statement
	c, ok := conflictOf(stmt)
	if !ok || db.DryRun || !c.UpdateAll || c.DoNothing || c.OnConstraint != "" || len(c.Columns)+len(c.DoUpdates)+len(c.Where.Exprs)+len(c.TargetWhere.Exprs) > 0 {
		return false
	}
	if _, list := stmt.Settings.Load("gorm:update_track_time"); list {
		return true
	}
	return stmt.SkipHooks && selectsAll(stmt)
}

// selectsAll reports the selection that Save makes.
func selectsAll(stmt *gorm.Statement) bool { return len(stmt.Selects) == 1 && stmt.Selects[0] == "*" }

// save writes the rows of a Save: it looks which of them are there, inside the tenant and locked, changes those, and inserts the others plainly. A key
// that is taken by a row it cannot see is a duplicate key. A soft-deleted row is brought back, as gorm does.
func (b *binding) save(db *gorm.DB, t *table) error {
	stmt := db.Statement
	if b.bypass != nil && t.tenant != nil {
		return &ShapeError{Shape: "Save under a system scope", Table: t.name, Hint: "use Create or Updates"}
	}
	var rows []reflect.Value
	if err := b.eachRow(stmt, t, true, func(row reflect.Value) error { rows = append(rows, row); return nil }); err != nil {
		return err
	}
	fields := t.identity()
	found, err := b.locate(db, t, fields, valuesOf(stmt.Context, fields, rows), "UPDATE", t.shardKey)
	if err != nil {
		return err
	}
	fresh := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(t.schema.ModelType)), 0, len(rows))
	n := int64(0)
	for _, row := range rows {
		old, ok := found[keyOf(stmt.Context, fields, row)]
		if !ok {
			fresh = reflect.Append(fresh, row.Addr())
			continue
		}
		if err := t.keepsShard(stmt.Context, old, row); err != nil {
			return err
		}
		if err := b.overwrite(db, t, row); err != nil {
			return err
		}
		n++
	}
	if fresh.Len() > 0 {
		tx := nested(db).Omit(append([]string{clause.Associations}, stmt.Omits...)...)
		if len(stmt.Selects) > 0 {
			tx = tx.Select(stmt.Selects)
		}
		tx = tx.Create(fresh.Interface())
		if tx.Error != nil {
			return tx.Error
		}
		n += tx.RowsAffected
	}
	db.RowsAffected = n
	if stmt.Result != nil {
		stmt.Result.RowsAffected = n
	}
	return nil
}

// overwrite writes the selected columns of a row that is there: all but its owner, its keys and its time of creation.
func (b *binding) overwrite(db *gorm.DB, t *table, row reflect.Value) error {
	stmt := db.Statement
	selected, restricted := stmt.SelectAndOmitColumns(true, true)
	values := map[string]any{}
	for _, name := range t.schema.DBNames {
		f := t.schema.FieldsByDBName[name]
		if on, said := selected[name]; said && !on || !said && restricted || t.immutable(name) || f.AutoCreateTime > 0 {
			continue
		}
		if f.HasDefaultValue && f.DefaultValueInterface == nil && f.DefaultValue != "NULL" {
			continue // the database's to fill
		}
		if f.AutoUpdateTime > 0 {
			if err := f.Set(stmt.Context, row, db.NowFunc()); err != nil {
				return err
			}
		}
		values[name], _ = f.ValueOf(stmt.Context, row)
	}
	if len(values) == 0 {
		return nil
	}
	return nested(db).Unscoped().Model(row.Addr().Interface()).Omit(clause.Associations).UpdateColumns(values).Error
}

// keepsShard refuses a row whose shard key is another than that of the row with its key.
func (t *table) keepsShard(ctx context.Context, old, row reflect.Value) error {
	if t.shardKey == nil {
		return nil
	}
	was, _ := t.shardKey.ValueOf(ctx, old)
	is, _ := t.shardKey.ValueOf(ctx, row)
	if !reflect.DeepEqual(was, is) {
		return &ImmutableError{Table: t.name, Column: t.shardKey.DBName}
	}
	return nil
}

// nested returns a handle for a statement of the library's own inside db's, on the same connection, without hooks.
func nested(db *gorm.DB) *gorm.DB {
	return db.Session(&gorm.Session{NewDB: true, SkipHooks: true, DisableNestedTransaction: true})
}

// identity is the primary key without tenant_id, which the scope adds to every statement.
func (t *table) identity() []*schema.Field {
	var fields []*schema.Field
	for _, f := range t.schema.PrimaryFields {
		if f != t.tenant {
			fields = append(fields, f)
		}
	}
	return fields
}

// valuesOf returns the fields' values of each row.
func valuesOf(ctx context.Context, fields []*schema.Field, rows []reflect.Value) [][]any {
	out := make([][]any, len(rows))
	for i, row := range rows {
		out[i] = make([]any, len(fields))
		for j, f := range fields {
			out[i][j], _ = f.ValueOf(ctx, row)
		}
	}
	return out
}

// keyOf returns the fields' values of a row as one text.
func keyOf(ctx context.Context, fields []*schema.Field, row reflect.Value) string {
	return utils.ToStringKey(valuesOf(ctx, fields, []reflect.Value{row})[0]...)
}

// locateChunk bounds the keys of one read.
const locateChunk = 500

// locate reads the rows, deleted ones too, whose fields have one of the given keys, inside the tenant, and locks them where the database locks rows
// (lock is "UPDATE" or "SHARE"; on SQLite the write transaction is the lock). It returns them by [keyOf], with these fields and the ones in also.
func (b *binding) locate(db *gorm.DB, t *table, fields []*schema.Field, keys [][]any, lock string, also ...*schema.Field) (map[string]reflect.Value, error) {
	var names, columns []string
	for _, f := range fields {
		names = append(names, f.DBName)
	}
	columns = append(columns, names...)
	for _, f := range also {
		if f != nil && !slices.Contains(columns, f.DBName) {
			columns = append(columns, f.DBName)
		}
	}
	found := make(map[string]reflect.Value, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), locateChunk)
		tx := nested(db).Unscoped().Select(columns)
		if b.db.dialect != SQLite && t.Class != GlobalClass { // whose rows a tenant may not even lock
			tx = tx.Clauses(clause.Locking{Strength: lock})
		}
		column, values := schema.ToQueryValues(clause.CurrentTable, names, keys[:n])
		keys = keys[n:]
		rows := reflect.New(reflect.SliceOf(t.schema.ModelType))
		if err := tx.Where(clause.IN{Column: column, Values: values}).Find(rows.Interface()).Error; err != nil {
			return nil, err
		}
		for i := range rows.Elem().Len() {
			row := rows.Elem().Index(i)
			found[keyOf(db.Statement.Context, fields, row)] = row
		}
	}
	return found, nil
}

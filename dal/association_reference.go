package dal

import (
	"context"
	"database/sql/driver"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"
)

// checkReferences reads the rows that the statement's foreign keys name, inside the tenant and under a shared lock, and refuses one that is not there:
// what a foreign key over (tenant_id, key) does, where the database has none. It looks at the model's belongs-to relations to tables that the handle
// reaches, and at values, not at expressions.
//
// s is the model as the place's schemas have it.
func (b *binding) checkReferences(db *gorm.DB, t *table, s *schema.Schema, bs *bonds, create bool) error {
	stmt := db.Statement
	if b.bypass != nil || len(s.Relationships.BelongsTo) == 0 {
		return nil
	}
	ctx := stmt.Context
	for _, rel := range s.Relationships.BelongsTo {
		target := b.store.tables.byType[rel.FieldSchema.ModelType]
		if target == nil || target.tenant == nil || b.reaches(target, verbQuery) != nil {
			continue
		}
		var refs []*schema.Reference
		var fields []*schema.Field
		for _, ref := range rel.References {
			if ref.PrimaryKey != nil && !ref.OwnPrimaryKey && ref.PrimaryKey.DBName != TenantColumn {
				refs, fields = append(refs, ref), append(fields, ref.PrimaryKey)
			}
		}
		if len(refs) == 0 || pointed(stmt, rel, refs) {
			continue
		}
		known := bs.named(ctx, rel, refs)
		if target == t && create { // rows of one statement may name each other
			_ = b.eachRow(stmt, t, false, func(row reflect.Value) error {
				known[keyOf(ctx, fields, row)] = true
				return nil
			})
		}
		var keys [][]any
		for _, key := range writtenKeys(stmt, s, refs, create) {
			if k := utils.ToStringKey(key...); !known[k] {
				known[k] = true
				keys = append(keys, key)
			}
		}
		found, err := b.locate(db, target, fields, keys, "SHARE")
		if err != nil {
			return err
		}
		for _, key := range keys {
			if !found[utils.ToStringKey(key...)].IsValid() {
				return &TargetError{Table: target.name, Relation: rel.Name}
			}
		}
	}
	return nil
}

// pointed reports that the statement's rows have just got the foreign keys of rel from rows that were read or written.
func pointed(stmt *gorm.Statement, rel *schema.Relationship, refs []*schema.Reference) bool {
	v, _ := stmt.Settings.Load(pointedKey{})
	by, _ := v.(*schema.Relationship)
	if by == nil || by.JoinTable != nil || by.FieldSchema.ModelType != rel.Schema.ModelType || by.Schema.ModelType != rel.FieldSchema.ModelType {
		return false
	}
	for _, ref := range refs {
		if !slices.ContainsFunc(by.References, func(r *schema.Reference) bool {
			return r.OwnPrimaryKey && r.ForeignKey.DBName == ref.ForeignKey.DBName && r.PrimaryKey.DBName == ref.PrimaryKey.DBName
		}) {
			return false
		}
	}
	return true
}

// named returns the keys of a belongs-to relation whose rows were read or written for this statement.
func (bs *bonds) named(ctx context.Context, rel *schema.Relationship, refs []*schema.Reference) map[string]bool {
	known := map[string]bool{}
	if bs == nil {
		return known
	}
	for _, bd := range bs.before {
		if bd.rel != rel {
			continue
		}
		for _, l := range bd.links {
			if l.seen { // further up, and not known to be there
				continue
			}
			key := make([]any, len(refs))
			for i, ref := range refs {
				key[i], _ = ref.ForeignKey.ValueOf(ctx, l.owner)
				key[i] = plainValue(key[i])
			}
			known[utils.ToStringKey(key...)] = true
		}
	}
	return known
}

// writtenKeys returns the foreign keys that the statement writes, without those that are zero or expressions.
func writtenKeys(stmt *gorm.Statement, s *schema.Schema, refs []*schema.Reference, create bool) [][]any {
	ctx := stmt.Context
	selected, restricted := stmt.SelectAndOmitColumns(create, !create)
	for _, ref := range refs {
		if on, said := selected[ref.ForeignKey.DBName]; said && !on || !said && restricted {
			return nil
		}
	}
	var keys [][]any
	add := func(cell func(f *schema.Field) any) {
		key := make([]any, len(refs))
		for i, ref := range refs {
			v := plainValue(cell(ref.ForeignKey))
			if v == nil || reflect.ValueOf(v).IsZero() || writesSQL(reflect.TypeOf(v)) || !isBound(v) {
				return
			}
			key[i] = v
		}
		keys = append(keys, key)
	}
	inMap := func(m map[string]any) {
		add(func(f *schema.Field) any {
			if v, ok := m[f.DBName]; ok {
				return v
			}
			return m[f.Name]
		})
	}
	inSet := func(set clause.Set) {
		m := map[string]any{}
		for _, a := range set {
			m[a.Column.Name] = a.Value
		}
		inMap(m)
	}
	if c, ok := conflictOf(stmt); ok && create {
		inSet(c.DoUpdates)
	}
	if set, ok := stmt.Clauses["SET"].Expression.(clause.Set); ok && !create {
		inSet(set)
	}
	if maps, _, ok := mapsOf(stmt.Dest); ok {
		for _, m := range maps {
			inMap(m)
		}
		return keys
	}
	of := stmt.ReflectValue
	if !create {
		of = reflect.ValueOf(stmt.Dest)
	}
	of = reflect.Indirect(of)
	rows := []reflect.Value{of}
	if of.Kind() == reflect.Slice || of.Kind() == reflect.Array {
		rows = rows[:0]
		for i := range of.Len() {
			rows = append(rows, reflect.Indirect(of.Index(i)))
		}
	}
	for _, row := range rows {
		if row.Kind() != reflect.Struct {
			continue
		}
		of := s
		if row.Type() != s.ModelType { // another struct, whose fields gorm takes by their columns
			other := &gorm.Statement{DB: stmt.DB}
			if other.Parse(row.Interface()) != nil {
				continue
			}
			of = other.Schema
		}
		add(func(f *schema.Field) any {
			if f = of.FieldsByDBName[f.DBName]; f == nil {
				return nil
			}
			v, _ := f.ValueOf(ctx, row)
			return v
		})
	}
	return keys
}

// plainValue unwraps pointers, nil ones too, and what a driver.Valuer holds.
func plainValue(v any) any {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return nil
		}
		if _, ok := rv.Interface().(driver.Valuer); ok {
			break
		}
		rv = rv.Elem()
	}
	if !rv.IsValid() {
		return nil
	}
	v = rv.Interface()
	if valuer, ok := v.(driver.Valuer); ok && !slices.Contains([]reflect.Type{uuidType}, rv.Type()) {
		if inner, err := valuer.Value(); err == nil {
			return inner
		}
	}
	return v
}

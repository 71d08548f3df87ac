package dal

import (
	"context"
	"reflect"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/tenant"
)

// eachRow calls fn for each struct of the model in the statement's value. strict says that there may be nothing else in it.
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
		return &ShapeError{Shape: "create from another struct", Table: t.name, Hint: "pass the model's struct, or a map[string]any"}
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
		case b.bypass != nil:
			return b.placed(ctx, t, asID(v), row)
		case !zero && v != b.id:
			return &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "the row's TenantID"}
		}
	}
	if t.shardKey == nil {
		return nil
	}
	v, _ := t.shardKey.ValueOf(ctx, row)
	return b.owns(t, b.tenant, v)
}

// placed refuses a row that a system scope writes for a tenant that is not known, or into a place that is not that tenant's for the row's key.
func (b *binding) placed(ctx context.Context, t *table, id tenant.ID, row reflect.Value) error {
	owner, err := b.store.resolve(ctx, id)
	if err != nil {
		return err
	}
	if t.shardKey != nil {
		v, _ := t.shardKey.ValueOf(ctx, row)
		return b.owns(t, owner, v)
	}
	for _, p := range b.store.placesOf(owner) {
		if p == b.db.place {
			return nil
		}
	}
	return &CrossShardError{Table: t.name, Held: b.db.place.Shard}
}

// stamp makes a new row the tenant's and gives it an id.
func (b *binding) stamp(ctx context.Context, t *table, row reflect.Value) error {
	if err := b.admits(ctx, t, row); err != nil {
		return err
	}
	if t.tenant != nil && b.bypass == nil {
		if err := t.tenant.Set(ctx, row, b.id); err != nil {
			return err
		}
	}
	return b.store.ids.fill(ctx, t.schema, row)
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

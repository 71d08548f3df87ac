package dal

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"
)

// link is a row that a relation of a statement's row names.
type link struct {
	owner, row reflect.Value // structs
	old        reflect.Value // the row as the database has it; invalid for a new one
	seen       bool          // it is being saved further up: a circle
	doubt      bool          // what is further up is an update, which may find no row
}

// bond is a relation that a statement saves, with its rows.
type bond struct {
	rel     *schema.Relationship
	target  *table
	through *table // the join table of many-to-many
	links   []link
}

// bonds are a statement's relations. Their rows are checked, all of them and before any is written, when the statement's hooks have run.
type bonds struct {
	before []bond                   // belongs-to: the rows are written before the statement's own, whose foreign keys they give
	after  []bond                   // the others
	owners map[string]reflect.Value // an update's rows as the database has them, by identity
}

// What statements inside a statement know of it, in its settings.
type (
	bondsKey   struct{} // its bonds
	seenKey    struct{} // the rows that are saved further up: map[any]bool of pointers
	pointedKey struct{} // the relation whose foreign keys were just taken from rows that are there
)

// heldBonds are the bonds of one statement; a clone of it has the same settings.
type heldBonds struct {
	stmt  *gorm.Statement
	first bool // no statement further up saves relations
	*bonds
}

// errorOr adds err to the statement, and reports whether there is one.
func errorOr(db *gorm.DB, err error) bool {
	if err != nil {
		_ = db.AddError(err)
	}
	return db.Error != nil
}

// relateBefore checks the related rows of a create or update and saves those that it belongs to. It stands where gorm's own callback stood, which
// saves with upserts by primary key.
func relateBefore(create bool) func(*gorm.DB) {
	return func(db *gorm.DB) {
		stmt := db.Statement
		if db.Error != nil || db.DryRun || stmt.Schema != nil && len(stmt.Schema.Relationships.Relations) == 0 {
			return
		}
		b, err := bindingOf(db)
		if err == nil {
			err = b.matches(stmt.Context)
		}
		if errorOr(db, err) {
			return
		}
		if stmt.Schema == nil { // an update by Table("name"): its values name rows too
			errorOr(db, b.checkNamed(db, create))
			return
		}
		t := b.store.tables.byType[stmt.Schema.ModelType]
		if t == nil {
			return // refused where it is sent
		}
		bs, err := b.gather(db, t, create)
		if errorOr(db, err) {
			return
		}
		if bs == nil {
			if _, old := stmt.Settings.Load(bondsKey{}); old { // of the chain's statement before
				stmt.Settings.Delete(bondsKey{})
			}
		} else {
			_, inner := stmt.Settings.Load(seenKey{})
			noteSaved(db, bs, create)
			stmt.Settings.Store(bondsKey{}, heldBonds{stmt: stmt, bonds: bs, first: !inner})
			if errorOr(db, b.find(db, t, bs, create)) || errorOr(db, b.saveParents(db, bs, create)) {
				return
			}
		}
		errorOr(db, b.checkReferences(db, t, stmt.Schema, bs, create))
	}
}

// relateAfter saves the related rows that need the statement's own: has-one, has-many, many-to-many.
func relateAfter(create bool) func(*gorm.DB) {
	return func(db *gorm.DB) {
		stmt := db.Statement
		v, _ := stmt.Settings.Load(bondsKey{})
		held, _ := v.(heldBonds)
		bs := held.bonds
		if bs == nil || held.stmt != stmt {
			return
		}
		defer stmt.Settings.Delete(bondsKey{})
		if held.first { // a chain that is used again begins anew
			defer stmt.Settings.Delete(seenKey{})
		}
		if db.Error != nil || !create && db.RowsAffected == 0 && savesAll(stmt) {
			return // Save goes on with a create, which comes back here
		}
		b, err := bindingOf(db)
		if errorOr(db, err) {
			return
		}
		t := b.store.tables.byType[stmt.Schema.ModelType]
		if _, upsert := conflictOf(stmt); upsert && create && len(bs.after) > 0 && !isSave(db) { // the row in the way has a key of its own
			if errorOr(db, b.findOwners(db, t, bs)) {
				return
			}
		}
		for i := range bs.after {
			if errorOr(db, b.saveChildren(db, t, bs, &bs.after[i], create)) {
				return
			}
		}
	}
}

// checkNamed checks the references of an update by Table("name").
func (b *binding) checkNamed(db *gorm.DB, create bool) error {
	t := b.store.tables.byName[db.Statement.Table]
	if t == nil || len(t.schema.Relationships.BelongsTo) == 0 {
		return nil
	}
	parsed := &gorm.Statement{DB: db}
	if err := parsed.Parse(reflect.New(t.schema.ModelType).Interface()); err != nil {
		return err
	}
	return b.checkReferences(db, t, parsed.Schema, nil, create)
}

// savesAll reports the update of a Save.
func savesAll(stmt *gorm.Statement) bool { return selectsAll(stmt) && same(stmt.Dest, stmt.Model) }

// judgeRelations refuses, before anything is begun, related rows of another tenant, keyspace or shard.
func (b *binding) judgeRelations(db *gorm.DB, t *table, v verb) error {
	stmt := db.Statement
	if stmt.Schema == nil || len(stmt.Schema.Relationships.Relations) == 0 {
		return nil
	}
	if v != verbDelete {
		if v == verbUpdate && !same(stmt.Dest, stmt.Model) { // gorm saves the model's relations; what other values hold is not looked at
			was := stmt.ReflectValue
			stmt.ReflectValue = reflect.Indirect(reflect.ValueOf(stmt.Model))
			defer func() { stmt.ReflectValue = was }()
		}
		_, err := b.gather(db, t, v == verbCreate)
		return err
	}
	if len(stmt.Selects) == 0 {
		return nil
	}
	selected, _ := stmt.SelectAndOmitColumns(true, false)
	for name, on := range selected {
		rel := stmt.Schema.Relationships.Relations[name]
		if !on || rel == nil || rel.Type == schema.BelongsTo {
			continue
		}
		model := rel.FieldSchema
		if rel.JoinTable != nil {
			model = rel.JoinTable
		}
		target := b.store.tables.byType[model.ModelType]
		if target == nil {
			return &UndeclaredError{Table: model.Table, Model: model.ModelType.String()}
		}
		if err := b.reaches(target, v); err != nil {
			return err
		}
	}
	return nil
}

// gather collects the related rows that the statement saves, and refuses those that it may not. It returns nil when there are none.
func (b *binding) gather(db *gorm.DB, t *table, create bool) (*bonds, error) {
	stmt := db.Statement
	if r := &stmt.Schema.Relationships; len(r.BelongsTo)+len(r.HasOne)+len(r.HasMany)+len(r.Many2Many) == 0 {
		return nil, nil // what gorm filed here is the other end's
	}
	var owners []reflect.Value
	_ = b.eachRow(stmt, t, false, func(row reflect.Value) error {
		owners = append(owners, row)
		return nil
	})
	bs := &bonds{}
	rels := &stmt.Schema.Relationships
	var selected map[string]bool
	var restricted bool
	for _, list := range [][]*schema.Relationship{rels.BelongsTo, rels.HasOne, rels.HasMany, rels.Many2Many} {
		for _, rel := range list {
			var links []link
			for _, owner := range owners {
				rows, err := related(stmt.Context, rel, owner)
				if err != nil {
					return nil, err
				}
				for _, row := range rows {
					links = append(links, link{owner: owner, row: row})
				}
			}
			if len(links) == 0 {
				continue
			}
			if selected == nil {
				selected, restricted = stmt.SelectAndOmitColumns(create, !create)
			}
			if on, said := selected[rel.Name]; said && !on || !said && restricted {
				continue
			}
			bd, err := b.judgeBond(stmt.Context, t, rel, links)
			if err != nil {
				return nil, err
			}
			if rel.Type == schema.BelongsTo {
				bs.before = append(bs.before, bd)
			} else {
				bs.after = append(bs.after, bd)
			}
		}
	}
	if len(bs.before)+len(bs.after) == 0 {
		return nil, nil
	}
	return bs, nil
}

// related returns the rows of a relation that owner holds.
func related(ctx context.Context, rel *schema.Relationship, owner reflect.Value) ([]reflect.Value, error) {
	if _, zero := rel.Field.ValueOf(ctx, owner); zero {
		return nil, nil
	}
	if !owner.CanAddr() {
		return nil, &ShapeError{Shape: "relation " + rel.Name + " of a row given by value", Table: rel.Schema.Table, Hint: "pass a pointer"}
	}
	f := reflect.Indirect(rel.Field.ReflectValueOf(ctx, owner))
	if f.Kind() == reflect.Struct {
		return []reflect.Value{f}, nil
	}
	rows := make([]reflect.Value, 0, f.Len())
	for i := range f.Len() {
		row := reflect.Indirect(f.Index(i))
		if !row.IsValid() {
			return nil, fmt.Errorf("%w: relation %s has a nil row", gorm.ErrInvalidData, rel.Name)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// judgeBond refuses what needs no database to be seen: a table that the handle does not reach, a row of another tenant or shard.
func (b *binding) judgeBond(ctx context.Context, t *table, rel *schema.Relationship, links []link) (bond, error) {
	bd := bond{rel: rel, target: b.store.tables.byType[rel.FieldSchema.ModelType], links: links}
	if bd.target == nil {
		return bd, &UndeclaredError{Table: rel.FieldSchema.Table, Model: rel.FieldSchema.ModelType.String()}
	}
	if b.bypass != nil {
		return bd, &ShapeError{Shape: "relation " + rel.Name + " under a system scope", Table: t.name, Hint: "write the related rows with statements of their own"}
	}
	verb := verbCreate
	if bd.target.Class == GlobalClass {
		verb = verbQuery // its rows can be named, and not written
	}
	if err := b.reaches(bd.target, verb); err != nil {
		return bd, err
	}
	if rel.JoinTable != nil {
		if bd.through = b.store.tables.byType[rel.JoinTable.ModelType]; bd.through == nil {
			return bd, &UndeclaredError{Table: rel.JoinTable.Table, Model: rel.JoinTable.ModelType.String()}
		}
		if err := b.reaches(bd.through, verbCreate); err != nil {
			return bd, err
		}
	}
	for _, l := range links {
		if f := bd.target.tenant; f != nil {
			if v, zero := f.ValueOf(ctx, l.row); !zero && v != b.id {
				return bd, &MismatchError{Handle: b.tenant.ID, Other: asID(v), What: "a row of relation " + rel.Name}
			}
		}
		if f := bd.target.shardKey; f != nil {
			if v, zero := f.ValueOf(ctx, l.row); !zero {
				if err := b.owns(bd.target, b.tenant, v); err != nil {
					return bd, err
				}
			}
		}
	}
	return bd, nil
}

// noteSaved notes the rows that are saved, and which of them are so already: rows may name each other in circles. The value says that the row is there,
// or will be.
func noteSaved(db *gorm.DB, bs *bonds, create bool) {
	v, _ := db.Statement.Settings.Load(seenKey{})
	seen, _ := v.(map[any]bool)
	if seen == nil {
		seen = map[any]bool{}
		db.Statement.Settings.Store(seenKey{}, seen)
	}
	for _, list := range [][]bond{bs.before, bs.after} {
		for i := range list {
			for _, l := range list[i].links {
				p := l.owner.Addr().Interface()
				seen[p] = seen[p] || create
			}
		}
	}
	for _, list := range [][]bond{bs.before, bs.after} {
		for i := range list {
			for j := range list[i].links {
				l := &list[i].links[j]
				p := l.row.Addr().Interface()
				there, noted := seen[p]
				l.seen, l.doubt = noted, noted && !there
				if !noted {
					seen[p] = true
				}
			}
		}
	}
}

// isNew reports a row whose key the library is to fill. Where the key is the caller's own, the database says whether it is new.
func (t *table) isNew(ctx context.Context, row reflect.Value) bool {
	for _, f := range t.identity() {
		if _, zero := f.ValueOf(ctx, row); zero {
			return true
		}
	}
	return false
}

// namesRows reports a table whose rows get their keys from the library: a key that a caller fills in names a row that is there.
func (t *table) namesRows() bool {
	f := t.schema.PrioritizedPrimaryField
	return t.Class == GlobalClass || f != nil && f.DBName != TenantColumn && (f.FieldType == uuidType || wideInteger(f.FieldType.Kind()))
}

// find reads the rows that the relations name, inside the tenant and under lock, and refuses a relation that names one which is not there.
func (b *binding) find(db *gorm.DB, t *table, bs *bonds, create bool) error {
	ctx := db.Statement.Context
	if !create && len(bs.after) > 0 {
		if err := b.findOwners(db, t, bs); err != nil {
			return err
		}
	}
	for _, list := range [][]bond{bs.before, bs.after} {
		for i := range list {
			bd := &list[i]
			var named []reflect.Value
			for _, l := range bd.links {
				if (!l.seen || l.doubt) && !bd.target.isNew(ctx, l.row) {
					named = append(named, l.row)
				}
			}
			fields := bd.target.identity()
			also := []*schema.Field{bd.target.shardKey}
			for _, ref := range bd.rel.References {
				if f := ref.ForeignKey; bd.rel.JoinTable == nil && f.Schema.ModelType == bd.target.schema.ModelType && bd.rel.Type != schema.BelongsTo {
					also = append(also, f)
				} else if f := ref.PrimaryKey; f != nil && f.Schema.ModelType == bd.target.schema.ModelType {
					also = append(also, f)
				}
			}
			found, err := b.locate(db, bd.target, fields, valuesOf(ctx, fields, named), "UPDATE", also...)
			if err != nil {
				return err
			}
			for j := range bd.links {
				l := &bd.links[j]
				if l.seen && !l.doubt {
					continue
				}
				isNew := bd.target.isNew(ctx, l.row)
				if !isNew {
					l.old = found[keyOf(ctx, fields, l.row)]
					isNew = !l.old.IsValid() && !bd.target.namesRows()
				}
				switch {
				case l.old.IsValid():
					if err := b.adopt(ctx, bd.target, l); err != nil {
						return err
					}
				case !isNew || l.doubt:
					return &TargetError{Table: bd.target.name, Relation: bd.rel.Name}
				case bd.target.Class == GlobalClass:
					return &ClosedTableError{Table: bd.target.name, Reason: "a Global table is written under tenant.System alone"}
				}
			}
		}
	}
	return nil
}

// adopt fills in what a row that names one of the database's left out, and refuses one that says it lives elsewhere.
func (b *binding) adopt(ctx context.Context, t *table, l *link) error {
	if t.tenant != nil {
		if err := t.tenant.Set(ctx, l.row, b.tenant.ID); err != nil {
			return err
		}
	}
	if t.shardKey == nil {
		return nil
	}
	if _, zero := t.shardKey.ValueOf(ctx, l.row); zero {
		v, _ := t.shardKey.ValueOf(ctx, l.old)
		return t.shardKey.Set(ctx, l.row, v)
	}
	return t.keepsShard(ctx, l.old, l.row)
}

// findOwners reads the rows of an update that relations hang on, and refuses when one is not there.
func (b *binding) findOwners(db *gorm.DB, t *table, bs *bonds) error {
	ctx := db.Statement.Context
	fields := t.identity()
	also := []*schema.Field{t.shardKey}
	var owners []reflect.Value
	for _, bd := range bs.after {
		for _, ref := range bd.rel.References {
			if ref.OwnPrimaryKey && ref.PrimaryKey != nil {
				also = append(also, ref.PrimaryKey)
			}
		}
		for _, l := range bd.links {
			if t.isNew(ctx, l.owner) {
				return fmt.Errorf("%w: relation %s", gorm.ErrPrimaryKeyRequired, bd.rel.Name)
			}
			owners = append(owners, l.owner)
		}
	}
	var err error
	bs.owners, err = b.locate(db, t, fields, valuesOf(ctx, fields, owners), "UPDATE", also...)
	if err != nil || savesAll(db.Statement) {
		return err
	}
	for _, o := range owners {
		if !bs.owners[keyOf(ctx, fields, o)].IsValid() {
			return &TargetError{Table: t.name, Relation: bs.after[0].rel.Name}
		}
	}
	return nil
}

// valueOf returns a field of a statement's row, or where it was left out, of the row in the database.
func (bs *bonds) valueOf(ctx context.Context, t *table, f *schema.Field, owner reflect.Value) any {
	v, zero := f.ValueOf(ctx, owner)
	if zero && bs.owners != nil {
		if old := bs.owners[keyOf(ctx, t.identity(), owner)]; old.IsValid() {
			v, _ = f.ValueOf(ctx, old)
		}
	}
	return v
}

// inherit gives a new row, which lies beside owner, its shard key where it was left out.
func (b *binding) inherit(ctx context.Context, bs *bonds, of *table, owner reflect.Value, t *table, row reflect.Value) error {
	if of.shardKey == nil || t.shardKey == nil || of.Keyspace != t.Keyspace {
		return nil
	}
	if _, zero := t.shardKey.ValueOf(ctx, row); !zero {
		return nil
	}
	return t.shardKey.Set(ctx, row, bs.valueOf(ctx, of, of.shardKey, owner))
}

// saveParents saves the rows that the statement's belong to, and gives these their foreign keys.
func (b *binding) saveParents(db *gorm.DB, bs *bonds, create bool) error {
	stmt := db.Statement
	ctx := stmt.Context
	t := b.store.tables.byType[stmt.Schema.ModelType]
	for i := range bs.before {
		bd := &bs.before[i]
		fresh, old, err := b.rowsToSave(ctx, bs, t, bd)
		if err != nil {
			return err
		}
		if err := b.saveRows(db, bd, fresh, old, create); err != nil {
			return err
		}
		for _, l := range bd.links {
			for _, ref := range bd.rel.References {
				if ref.OwnPrimaryKey || ref.PrimaryKey == nil {
					continue
				}
				v, zero := ref.PrimaryKey.ValueOf(ctx, l.row)
				if zero && l.old.IsValid() {
					v, _ = ref.PrimaryKey.ValueOf(ctx, l.old)
				}
				if err := ref.ForeignKey.Set(ctx, l.owner, v); err != nil {
					return err
				}
				if dest, ok := stmt.Dest.(map[string]any); ok {
					dest[ref.ForeignKey.DBName] = v
				}
			}
		}
	}
	return nil
}

// saveRows inserts the new rows of a relation. The old ones are written under FullSaveAssociations alone.
func (b *binding) saveRows(db *gorm.DB, bd *bond, fresh, old []reflect.Value, create bool) error {
	if len(fresh) > 0 {
		rows := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(bd.target.schema.ModelType)), 0, len(fresh))
		for _, row := range fresh {
			rows = reflect.Append(rows, row.Addr())
		}
		if err := relatedSession(db, bd.rel, create, false).Create(rows.Interface()).Error; err != nil {
			return err
		}
	}
	if !db.FullSaveAssociations || bd.target.Class == GlobalClass {
		return nil
	}
	for _, row := range old {
		if err := relatedSession(db, bd.rel, create, true).Unscoped().Updates(row.Addr().Interface()).Error; err != nil {
			return err
		}
	}
	return nil
}

// relatedSession returns a handle for the rows of a relation, with what the statement says of their columns: Select("Pets.Name"), Omit("Pets.Qty").
func relatedSession(db *gorm.DB, rel *schema.Relationship, create, all bool) *gorm.DB {
	stmt := db.Statement
	tx := db.Session(&gorm.Session{NewDB: true, Initialized: true, SkipHooks: stmt.SkipHooks, DisableNestedTransaction: true})
	stmt.Settings.Range(func(k, v any) bool {
		tx.Statement.Settings.Store(k, v)
		return true
	})
	tx.Statement.Settings.Store(pointedKey{}, rel)
	selected, restricted := stmt.SelectAndOmitColumns(create, !create)
	var selects, omits []string
	for name, on := range selected {
		column, ok := strings.CutPrefix(name, rel.Name+".")
		switch {
		case !ok || column == "":
		case on:
			selects = append(selects, column)
		default:
			omits = append(omits, column)
		}
	}
	slices.Sort(selects)
	slices.Sort(omits)
	if all {
		for _, f := range rel.FieldSchema.Fields {
			if f.AutoCreateTime > 0 {
				omits = append(omits, f.Name)
			}
		}
	}
	switch {
	case len(selects) > 0:
		tx = tx.Select(selects)
	case all:
		tx = tx.Select("*")
	case restricted && len(omits) == 0:
		tx = tx.Omit(clause.Associations)
	}
	if len(omits) > 0 {
		tx = tx.Omit(omits...)
	}
	return tx
}

// rowsToSave parts a relation's rows into those to insert, which inherit what their owner says of their place, and those to update. Rows that were
// seen before are neither.
func (b *binding) rowsToSave(ctx context.Context, bs *bonds, t *table, bd *bond) (fresh, old []reflect.Value, err error) {
	for _, l := range bd.links {
		switch {
		case l.seen:
		case l.old.IsValid():
			old = append(old, l.row)
		default:
			if err := b.inherit(ctx, bs, t, l.owner, bd.target, l.row); err != nil {
				return nil, nil, err
			}
			fresh = append(fresh, l.row)
		}
	}
	return fresh, old, nil
}

// saveChildren saves the rows of a has-one, has-many or many-to-many relation, now that the statement's own rows have their keys.
func (b *binding) saveChildren(db *gorm.DB, t *table, bs *bonds, bd *bond, create bool) error {
	stmt := db.Statement
	ctx := stmt.Context
	if bd.rel.JoinTable == nil {
		for _, l := range bd.links {
			if err := bs.point(ctx, t, bd.rel, l); err != nil {
				return err
			}
		}
	}
	fresh, old, err := b.rowsToSave(ctx, bs, t, bd)
	if err != nil {
		return err
	}
	if bd.rel.JoinTable == nil {
		if err := b.reparent(db, bd); err != nil {
			return err
		}
		return b.saveRows(db, bd, fresh, old, create)
	}
	selected, _ := stmt.SelectAndOmitColumns(create, !create)
	if on, said := selected[bd.rel.Name+".*"]; said && !on {
		if len(fresh) > 0 {
			return &TargetError{Table: bd.target.name, Relation: bd.rel.Name}
		}
	} else if err := b.saveRows(db, bd, fresh, old, create); err != nil {
		return err
	}
	return b.joinRows(db, t, bs, bd)
}

// point gives a related row the foreign key of its owner.
func (bs *bonds) point(ctx context.Context, t *table, rel *schema.Relationship, l link) error {
	for _, ref := range rel.References {
		var v any = ref.PrimaryValue
		if ref.OwnPrimaryKey {
			v = bs.valueOf(ctx, t, ref.PrimaryKey, l.owner)
		} else if ref.PrimaryValue == "" {
			continue
		}
		if err := ref.ForeignKey.Set(ctx, l.row, v); err != nil {
			return err
		}
	}
	return nil
}

// reparent writes the foreign keys of the relation's rows that are in the database and have others. A foreign key that is also the row's shard key or
// primary key says where it lives: it is not changed.
func (b *binding) reparent(db *gorm.DB, bd *bond) error {
	ctx := db.Statement.Context
	type group struct {
		values map[string]any
		rows   []reflect.Value
	}
	var order []string
	groups := map[string]*group{}
	for _, l := range bd.links {
		if l.seen || !l.old.IsValid() {
			continue
		}
		values := map[string]any{}
		var key []any
		for _, ref := range bd.rel.References {
			f := ref.ForeignKey
			was, _ := f.ValueOf(ctx, l.old)
			is, _ := f.ValueOf(ctx, l.row)
			if utils.ToStringKey(was) == utils.ToStringKey(is) || f.DBName == TenantColumn {
				continue
			}
			if bd.target.immutable(f.DBName) {
				return &ImmutableError{Table: bd.target.name, Column: f.DBName}
			}
			values[f.DBName] = is
			key = append(key, f.DBName, is)
		}
		if len(values) == 0 {
			continue
		}
		k := utils.ToStringKey(key...)
		if groups[k] == nil {
			groups[k] = &group{values: values}
			order = append(order, k)
		}
		groups[k].rows = append(groups[k].rows, l.row)
	}
	var names []string
	fields := bd.target.identity()
	for _, f := range fields {
		names = append(names, f.DBName)
	}
	for _, k := range order {
		g := groups[k]
		column, values := schema.ToQueryValues(clause.CurrentTable, names, valuesOf(ctx, fields, g.rows))
		tx := nested(db).Unscoped().Model(reflect.New(bd.target.schema.ModelType).Interface()).Where(clause.IN{Column: column, Values: values})
		tx.Statement.Settings.Store(pointedKey{}, bd.rel)
		if err := tx.UpdateColumns(g.values).Error; err != nil {
			return err
		}
	}
	return nil
}

// joinRows writes the join table's rows.
func (b *binding) joinRows(db *gorm.DB, t *table, bs *bonds, bd *bond) error {
	ctx := db.Statement.Context
	rows := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(bd.rel.JoinTable.ModelType)), 0, len(bd.links))
	for _, l := range bd.links {
		row := reflect.New(bd.rel.JoinTable.ModelType)
		for _, ref := range bd.rel.References {
			var v any
			switch {
			case ref.OwnPrimaryKey:
				v = bs.valueOf(ctx, t, ref.PrimaryKey, l.owner)
			case ref.PrimaryValue != "":
				v = ref.PrimaryValue
			default:
				var zero bool
				if v, zero = ref.PrimaryKey.ValueOf(ctx, l.row); zero && l.old.IsValid() {
					v, _ = ref.PrimaryKey.ValueOf(ctx, l.old)
				}
			}
			if err := ref.ForeignKey.Set(ctx, row.Elem(), v); err != nil {
				return err
			}
		}
		if err := b.inherit(ctx, bs, t, l.owner, bd.through, row.Elem()); err != nil {
			return err
		}
		if err := b.inherit(ctx, &bonds{}, bd.target, l.row, bd.through, row.Elem()); err != nil {
			return err
		}
		rows = reflect.Append(rows, row)
	}
	tx := db.Session(&gorm.Session{NewDB: true, SkipHooks: db.Statement.SkipHooks, DisableNestedTransaction: true})
	return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(rows.Interface()).Error
}

package dal

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// join is a many-to-many relation with the declared model of its join table. gorm makes a model of its own for it, which has no tenant_id.
type join struct {
	model   reflect.Type
	field   string
	through *table
}

// linkJoins finds the declared model of every join table, and refuses tenants' relations over a table that has none.
func (ts *tables) linkJoins() []error {
	var errs []error
	for _, t := range ts.all {
		for _, rel := range t.schema.Relationships.Many2Many {
			target := ts.byType[rel.FieldSchema.ModelType]
			owned := t.tenant != nil || target != nil && target.tenant != nil
			name := rel.JoinTable.Table
			through := ts.byName[name]
			if through == nil && !owned {
				continue // refused where it is used
			}
			bad := func(problem string) {
				columns := ""
				for _, ref := range rel.References {
					columns += ", " + ref.ForeignKey.DBName
				}
				errs = append(errs, &ModelError{
					Table: t.name, Model: modelName(t.model), Problem: "its relation " + rel.Name + " " + problem,
					Mend: fmt.Sprintf("declare a model of table %q with the columns tenant_id%s, by dal.Local, or by dal.Tenant with the shard key of its rows", name, columns),
				})
			}
			switch {
			case through == nil:
				bad(fmt.Sprintf("uses the automatic join table %q, whose rows have no owner", name))
				continue
			case owned && through.Class != TenantClass && through.Class != LocalClass:
				bad(fmt.Sprintf("uses the join table %q, whose rows have no owner", name))
				continue
			}
			lacks := slices.IndexFunc(rel.References, func(r *schema.Reference) bool { return through.schema.FieldsByDBName[r.ForeignKey.DBName] == nil })
			if lacks >= 0 {
				bad(fmt.Sprintf("needs the column %q in its join table %q", rel.References[lacks].ForeignKey.DBName, name))
				continue
			}
			ts.joins = append(ts.joins, join{model: t.model, field: rel.Name, through: through})
		}
	}
	return errs
}

// setupJoins makes gorm use the declared models for the join tables of a database's schemas.
func (ts *tables) setupJoins(g *gorm.DB) error {
	for _, j := range ts.joins {
		if err := g.SetupJoinTable(reflect.New(j.model).Interface(), j.field, reflect.New(j.through.model).Interface()); err != nil {
			return fmt.Errorf("dal: join table %q of %s: %w", j.through.name, j.model, err)
		}
	}
	return nil
}

package dal

import (
	"fmt"
	"reflect"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// textPool gives what a text column is scanned into.
var textPool schema.FieldNewValuePool = &sync.Pool{New: func() any { return new(*string) }}

// scanTenantsAsText lets gorm read each declared model's tenant_id as the string that it is. gorm has a short way for string and takes the long one, with
// reflection at each row, for a named type such as tenant.ID: 0.15 µs a row. It is called before the first statement, while nobody else has g.
func scanTenantsAsText(g *gorm.DB, ts *tables) error {
	for _, t := range ts.all {
		if t.tenant == nil || t.tenant.FieldType != tenantIDType {
			continue
		}
		stmt := &gorm.Statement{DB: g}
		if err := stmt.Parse(reflect.New(t.schema.ModelType).Interface()); err != nil {
			return fmt.Errorf("dal: parse %s: %w", t.schema.ModelType, err)
		}
		stmt.Schema.FieldsByDBName[TenantColumn].NewValuePool = textPool
	}
	return nil
}

package dal

import (
	"reflect"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/tenant"
)

// maxNode is the largest node number that fits a row id.
const maxNode = 1023

var (
	tenantIDType = reflect.TypeFor[tenant.ID]()
	// naming is gorm's own default, so that a declared model has the table that gorm would use.
	naming = schema.NamingStrategy{IdentifierMaxLength: 64}
)

// Model is the base of a tenant's row: an id that the library fills, time-ordered and unique over all shards, the owner, and the times.
// Embed it in place of gorm.Model. In the database the primary key is (tenant_id, id).
type Model struct {
	ID        int64     `gorm:"primaryKey;autoIncrement:false"`
	TenantID  tenant.ID `gorm:"column:tenant_id;size:63;not null"`
	CreatedAt time.Time
	UpdatedAt time.Time
}

// UUIDModel is [Model] with a UUIDv7 as id.
type UUIDModel struct {
	ID        uuid.UUID `gorm:"primaryKey;size:36"`
	TenantID  tenant.ID `gorm:"column:tenant_id;size:63;not null"`
	CreatedAt time.Time
	UpdatedAt time.Time
}

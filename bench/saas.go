package bench

import (
	"time"

	"github.com/go-saas/saas"
	saasgorm "github.com/go-saas/saas/gorm"
)

// SaaSModel is the base of a row with go-saas: the type of its tenant column filters and fills.
type SaaSModel struct {
	ID int64 `gorm:"primaryKey;autoIncrement:false"`
	saasgorm.MultiTenancy
	CreatedAt time.Time
	UpdatedAt time.Time
}

// SaaSItem is a row of table items with it.
type SaaSItem struct {
	SaaSModel
	PlayerID string
	Name     string
	Qty      int64
}

// TableName is the table of every peer.
func (SaaSItem) TableName() string { return "items" }

// openSaaS is go-saas's filter for gorm: the tenant comes from the context through the field's clauses.
func openSaaS(d *NullDriver) (map[Case]Op, func() error, error) {
	g, closer, err := openGorm(d)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := requestContext()
	ctx = saas.NewCurrentTenant(ctx, tenantID, "")
	ops := map[Case]Op{
		First: func() error {
			var it SaaSItem
			return g.WithContext(ctx).First(&it, itemID).Error
		},
		Find20: func() error {
			var its []SaaSItem
			return g.WithContext(ctx).Where("player_id = ?", playerID).Limit(20).Find(&its).Error
		},
		Update: func() error {
			return g.WithContext(ctx).Model(&SaaSItem{}).Where("id = ?", itemID).Update("qty", 5).Error
		},
		Create: func() error {
			return g.WithContext(ctx).Create(&SaaSItem{SaaSModel: SaaSModel{ID: itemID}, PlayerID: playerID, Name: "sword", Qty: 3}).Error
		},
	}
	return ops, func() error {
		cancel()
		return closer()
	}, nil
}

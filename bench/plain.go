package bench

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// PlainModel is what a service without a tenant layer embeds in place of gorm.Model.
type PlainModel struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false"`
	TenantID  string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// PlainItem is a row of table items as such a service declares it.
type PlainItem struct {
	PlainModel
	PlayerID string
	Name     string
	Qty      int64
}

// TableName is the table of every peer.
func (PlainItem) TableName() string { return "items" }

// openPlain is gorm with WithContext and a predicate written by hand: what a careful service does today.
func openPlain(d *NullDriver) (map[Case]Op, func() error, error) {
	g, closer, err := openGorm(d)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := requestContext()
	ops := handWritten(ctx, g)
	ops[First] = func() error {
		var it PlainItem
		return g.WithContext(ctx).Where("tenant_id = ?", tenantID).First(&it, itemID).Error
	}
	return ops, func() error {
		cancel()
		return closer()
	}, nil
}

// handWritten are the operations of a caller who writes the predicate himself.
func handWritten(ctx context.Context, g *gorm.DB) map[Case]Op {
	return map[Case]Op{
		First: func() error {
			var it PlainItem
			return g.WithContext(ctx).Where("tenant_id = ? AND id = ?", tenantID, itemID).First(&it).Error
		},
		Find20: func() error {
			var its []PlainItem
			return g.WithContext(ctx).Where("tenant_id = ? AND player_id = ?", tenantID, playerID).Limit(20).Find(&its).Error
		},
		Update: func() error {
			return g.WithContext(ctx).Model(&PlainItem{}).Where("tenant_id = ? AND id = ?", tenantID, itemID).Update("qty", 5).Error
		},
		Create: func() error {
			return g.WithContext(ctx).Create(&PlainItem{PlainModel: PlainModel{ID: itemID, TenantID: tenantID}, PlayerID: playerID, Name: "sword", Qty: 3}).Error
		},
	}
}

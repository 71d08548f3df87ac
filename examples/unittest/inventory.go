package unittest

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// ErrNotEnough reports that a player has less of an item than a recipe takes, or none of it. Possibly wrapped.
var ErrNotEnough = errors.New("unittest: not enough of the item")

// Item is a stack of one kind of thing in a player's bag.
type Item struct {
	dal.Model
	PlayerID string
	Name     string
	Qty      int64
}

// Tables declares the tables of the service.
func Tables() []dal.Table {
	return []dal.Table{dal.Tenant[Item]("player", "player_id")}
}

// Inventory keeps players' items. Each method works for the tenant of its context and touches one shard. It is safe for concurrent use.
//
// Errors are the store's own: [gorm.ErrRecordNotFound], [tenant.ErrNoTenant], [quota.ErrQuotaExceeded] and so on, wrapped.
type Inventory struct {
	store *dal.Store
	items *dal.Repository[Item]
}

// New returns an inventory on the store, in which [Tables] are declared.
func New(store *dal.Store) (*Inventory, error) {
	items, err := dal.NewRepository[Item](store)
	if err != nil {
		return nil, fmt.Errorf("unittest: %w", err)
	}
	return &Inventory{store, items}, nil
}

// Item returns one item of a player.
func (v *Inventory) Item(ctx context.Context, playerID string, id int64) (Item, error) {
	item, err := v.items.Get(ctx, playerID, id)
	if err != nil {
		return Item{}, fmt.Errorf("unittest: item %d of player %s: %w", id, playerID, err)
	}
	return item, nil
}

// Items returns a page of a player's items in the order of their ids, after the cursor of the page before (nil for the first).
func (v *Inventory) Items(ctx context.Context, playerID string, after []any, limit int) (dal.Page[Item], error) {
	page, err := v.items.List(ctx, playerID, after, limit)
	if err != nil {
		return page, fmt.Errorf("unittest: items of player %s: %w", playerID, err)
	}
	return page, nil
}

// Hoarded returns what a player has more than qty of, the largest stack first.
func (v *Inventory) Hoarded(ctx context.Context, playerID string, qty int64) ([]Item, error) {
	var items []Item
	err := v.store.On(ctx, dal.Key("player", playerID)).
		Where("player_id = ? AND qty > ?", playerID, qty).Order("qty DESC, id").Find(&items).Error
	if err != nil {
		return nil, fmt.Errorf("unittest: hoarded items of player %s: %w", playerID, err)
	}
	return items, nil
}

// Add puts a new item into its player's bag and fills in its id.
func (v *Inventory) Add(ctx context.Context, item *Item) error {
	if err := v.items.Create(ctx, item); err != nil {
		return fmt.Errorf("unittest: add %s to player %s: %w", item.Name, item.PlayerID, err)
	}
	return nil
}

// Rename gives an item another name.
func (v *Inventory) Rename(ctx context.Context, playerID string, id int64, name string) error {
	res := v.store.On(ctx, dal.Key("player", playerID)).
		Model(&Item{}).Where("player_id = ? AND id = ?", playerID, id).Update("name", name)
	err := res.Error
	if err == nil && res.RowsAffected == 0 {
		err = gorm.ErrRecordNotFound
	}
	if err != nil {
		return fmt.Errorf("unittest: rename item %d of player %s: %w", id, playerID, err)
	}
	return nil
}

// Drop takes an item out of a player's bag.
func (v *Inventory) Drop(ctx context.Context, playerID string, id int64) error {
	if err := v.items.Delete(ctx, playerID, id); err != nil {
		return fmt.Errorf("unittest: drop item %d of player %s: %w", id, playerID, err)
	}
	return nil
}

// Craft takes qty of an item and adds the product to the same bag: both or neither. Without enough of the item it returns [ErrNotEnough].
func (v *Inventory) Craft(ctx context.Context, playerID string, from, qty int64, product *Item) error {
	err := v.store.Transaction(ctx, dal.Key("player", playerID), func(_ context.Context, tx *gorm.DB) error {
		res := tx.Model(&Item{}).Where("player_id = ? AND id = ? AND qty >= ?", playerID, from, qty).
			Update("qty", gorm.Expr("qty - ?", qty))
		if res.Error == nil && res.RowsAffected == 0 {
			return ErrNotEnough
		}
		if res.Error != nil {
			return res.Error
		}
		return tx.Create(product).Error
	})
	if err != nil {
		return fmt.Errorf("unittest: craft %s for player %s: %w", product.Name, playerID, err)
	}
	return nil
}

package unittest_test

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/examples/unittest"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/testutil"
)

// migrations make the service's table on both databases.
func migrations() schema.Set {
	const down = "\n-- +goose Down\nDROP TABLE IF EXISTS items;\n"
	return schema.Set{Name: "unittest", FS: fstest.MapFS{
		"sqlite/0001_items.sql": {Data: []byte(`-- +goose Up
CREATE TABLE IF NOT EXISTS items (tenant_id TEXT NOT NULL, player_id TEXT NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, qty INTEGER NOT NULL,
	created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL, PRIMARY KEY (tenant_id, player_id, id));` + down)},
		"mysql/0001_items.sql": {Data: []byte(`-- +goose Up
CREATE TABLE IF NOT EXISTS items (tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, player_id VARBINARY(255) NOT NULL, id BIGINT NOT NULL,
	name VARCHAR(100) NOT NULL, qty BIGINT NOT NULL, created_at DATETIME(6) NOT NULL, updated_at DATETIME(6) NOT NULL, PRIMARY KEY (tenant_id, player_id, id));` + down)},
	}}
}

// Every method of the service, called beside canary rows of another tenant: nothing of them comes back, nothing of them changes, and no statement
// lacks the tenant. Methods are found by reflection, so that one added later is tested as well; Craft gets arguments of its own.
func TestInventory_Shadow(t *testing.T) {
	t.Parallel()
	testutil.RunShadow(t, testutil.Shadow[*unittest.Inventory]{
		Config: dal.Config{Tables: unittest.Tables()},
		Sets:   []schema.Set{migrations()},
		New:    func(w testutil.ShadowWorld) (*unittest.Inventory, error) { return unittest.New(w.Store) },
		Calls: map[string]func(context.Context, *unittest.Inventory) (any, error){
			"Craft": func(ctx context.Context, v *unittest.Inventory) (any, error) {
				product := unittest.Item{Model: dal.Model{ID: 50}, PlayerID: "7", Name: "potion", Qty: 1}
				return product, v.Craft(ctx, "7", 3, 2, &product)
			},
		},
	})
}

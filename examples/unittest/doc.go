// Package unittest is a small service on tenantdal whose unit tests need no database: see its tests.
//
// [Inventory] keeps the items of players. It knows nothing of tests: it is given a *dal.Store, and the tests give it one in which a sqlmock stands
// behind each shard (testutil.NewMockStore). Its tests state the exact SQL of every method, and fail if a statement is not bound to the tenant.
//
//	m := testutil.NewMockStore(t, unittest.Tables())
//	inventory, err := unittest.New(m.Store)
//	m.On("acme", dal.Key("player", "7")).ExpectQuery("SELECT ...").WithArgs("acme", "7", 1, 1).WillReturnRows(...)
//	item, err := inventory.Item(ctx, "7", 1)
package unittest

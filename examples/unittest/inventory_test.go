package unittest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/examples/unittest"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// The exact texts that the service sends. The tenant's condition is the library's: the service names it nowhere.
const (
	selectItem   = "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (`items`.`player_id` = ? AND `items`.`id` = ?) LIMIT ?"
	selectFirst  = "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (`items`.`player_id` = ?) ORDER BY `items`.`id` LIMIT ?"
	selectAfter  = "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (`items`.`player_id` = ? AND `items`.`id` > ?) ORDER BY `items`.`id` LIMIT ?"
	selectHoards = "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (player_id = ? AND qty > ?) ORDER BY qty DESC, id"
	insertItem   = "INSERT INTO `items` (`id`,`tenant_id`,`created_at`,`updated_at`,`player_id`,`name`,`qty`) VALUES (?,?,?,?,?,?,?)"
	updateName   = "UPDATE `items` SET `name`=?,`updated_at`=? WHERE `items`.`tenant_id` = ? AND (player_id = ? AND id = ?)"
	deleteItem   = "DELETE FROM `items` WHERE `items`.`tenant_id` = ? AND (`items`.`player_id` = ? AND `items`.`id` = ?)"
	takeQty      = "UPDATE `items` SET `qty`=(qty - ?),`updated_at`=? WHERE `items`.`tenant_id` = ? AND (player_id = ? AND id = ? AND qty >= ?)"
)

// anyValue stands for what differs from run to run: the ids and times that the store fills in.
var anyValue = sqlmock.AnyArg()

// rows returns a result with these items, given as id, tenant, name and quantity of player 7.
func rows(items ...[]any) *sqlmock.Rows {
	r := sqlmock.NewRows([]string{"id", "tenant_id", "created_at", "updated_at", "player_id", "name", "qty"})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, i := range items {
		r.AddRow(i[0], i[1], now, now, "7", i[2], i[3])
	}
	return r
}

// setup returns the service on a mocked store, the mock behind player 7 of tenant acme, and a context of that tenant.
func setup(t *testing.T) (v *unittest.Inventory, m *testutil.MockStore, mock sqlmock.Sqlmock, acme context.Context) {
	t.Helper()
	m = testutil.NewMockStore(t, unittest.Tables())
	return serve(t, m), m, m.On("acme", dal.Key("player", "7")), tenant.NewContext(t.Context(), "acme")
}

func serve(t *testing.T, m *testutil.MockStore) *unittest.Inventory {
	t.Helper()
	v, err := unittest.New(m.Store)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestInventory_Item(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectQuery(selectItem).WithArgs("acme", "7", 1, 1).WillReturnRows(rows([]any{1, "acme", "sword", 2}))
	mock.ExpectQuery(selectItem).WithArgs("acme", "7", 9, 1).WillReturnRows(rows())

	item, err := v.Item(acme, "7", 1)
	if err != nil || item.ID != 1 || item.TenantID != "acme" || item.Name != "sword" || item.Qty != 2 {
		t.Errorf("Item(1) = %+v, %v", item, err)
	}
	if _, err := v.Item(acme, "7", 9); !dal.IsNotFound(err) {
		t.Errorf("Item(9): %v, want not found", err)
	}
}

func TestInventory_Items(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	// A page of two asks for three, to learn whether another page follows.
	mock.ExpectQuery(selectFirst).WithArgs("acme", "7", 3).
		WillReturnRows(rows([]any{1, "acme", "sword", 1}, []any{2, "acme", "axe", 1}, []any{3, "acme", "bow", 1}))
	mock.ExpectQuery(selectAfter).WithArgs("acme", "7", 2, 3).WillReturnRows(rows([]any{3, "acme", "bow", 1}))

	page, err := v.Items(acme, "7", nil, 2)
	if err != nil || len(page.Rows) != 2 || page.Next == nil {
		t.Fatalf("the first page: %+v, %v", page, err)
	}
	page, err = v.Items(acme, "7", page.Next, 2)
	if err != nil || len(page.Rows) != 1 || page.Rows[0].Name != "bow" || page.Next != nil {
		t.Errorf("the last page: %+v, %v", page, err)
	}
}

func TestInventory_Hoarded(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectQuery(selectHoards).WithArgs("acme", "7", 50).WillReturnRows(rows([]any{4, "acme", "arrow", 99}))

	items, err := v.Hoarded(acme, "7", 50)
	if err != nil || len(items) != 1 || items[0].Qty != 99 {
		t.Errorf("Hoarded = %+v, %v", items, err)
	}
}

// gorm puts each write into a transaction of its own, which the mock sees.
func TestInventory_Add(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectBegin()
	mock.ExpectExec(insertItem).WithArgs(anyValue, "acme", anyValue, anyValue, "7", "sword", 1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()

	item := unittest.Item{PlayerID: "7", Name: "sword", Qty: 1}
	if err := v.Add(acme, &item); err != nil || item.ID <= 0 || item.TenantID != "acme" || item.CreatedAt.IsZero() {
		t.Errorf("Add = %v, item %+v", err, item)
	}
}

func TestInventory_AddTwice(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectBegin()
	mock.ExpectExec(insertItem).WithArgs(1, "acme", anyValue, anyValue, "7", "sword", 1).
		WillReturnError(&mysql.MySQLError{Number: 1062, Message: "Duplicate entry"})
	mock.ExpectRollback()

	err := v.Add(acme, &unittest.Item{Model: dal.Model{ID: 1}, PlayerID: "7", Name: "sword", Qty: 1})
	if !dal.IsDuplicateKey(err) {
		t.Errorf("Add: %v, want a duplicate key", err)
	}
}

func TestInventory_Rename(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectBegin()
	mock.ExpectExec(updateName).WithArgs("axe", anyValue, "acme", "7", 1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()
	mock.ExpectBegin()
	mock.ExpectExec(updateName).WithArgs("axe", anyValue, "acme", "7", 9).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectCommit()

	if err := v.Rename(acme, "7", 1, "axe"); err != nil {
		t.Errorf("Rename(1): %v", err)
	}
	if err := v.Rename(acme, "7", 9, "axe"); !dal.IsNotFound(err) {
		t.Errorf("Rename(9): %v, want not found", err)
	}
}

func TestInventory_Drop(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectBegin()
	mock.ExpectExec(deleteItem).WithArgs("acme", "7", 1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()

	if err := v.Drop(acme, "7", 1); err != nil {
		t.Errorf("Drop: %v", err)
	}
}

func TestInventory_Craft(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectBegin()
	mock.ExpectExec(takeQty).WithArgs(3, anyValue, "acme", "7", 1, 3).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectExec(insertItem).WithArgs(anyValue, "acme", anyValue, anyValue, "7", "potion", 1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()

	if err := v.Craft(acme, "7", 1, 3, &unittest.Item{PlayerID: "7", Name: "potion", Qty: 1}); err != nil {
		t.Errorf("Craft: %v", err)
	}
}

// A refusal by the service's own rules rolls back.
func TestInventory_CraftWithTooLittle(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectBegin()
	mock.ExpectExec(takeQty).WithArgs(3, anyValue, "acme", "7", 1, 3).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectRollback()

	if err := v.Craft(acme, "7", 1, 3, &unittest.Item{PlayerID: "7", Name: "potion", Qty: 1}); !errors.Is(err, unittest.ErrNotEnough) {
		t.Errorf("Craft: %v, want ErrNotEnough", err)
	}
}

// A failure of the server in the middle rolls back, and says whether the whole may be tried again.
func TestInventory_CraftRollsBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		retry bool
	}{
		"deadlock": {&mysql.MySQLError{Number: 1213, Message: "Deadlock found"}, true},
		"full":     {&mysql.MySQLError{Number: 1114, Message: "The table is full"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, _, mock, acme := setup(t)
			mock.ExpectBegin()
			mock.ExpectExec(takeQty).WithArgs(3, anyValue, "acme", "7", 1, 3).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectExec(insertItem).WillReturnError(c.err)
			mock.ExpectRollback()

			err := v.Craft(acme, "7", 1, 3, &unittest.Item{PlayerID: "7", Name: "potion", Qty: 1})
			if !errors.Is(err, c.err) || dal.IsRetryable(err) != c.retry {
				t.Errorf("Craft: %v, retryable %t; want %v, %t", err, dal.IsRetryable(err), c.err, c.retry)
			}
		})
	}
}

// A COMMIT whose answer is lost may have taken effect: the service must look before it tries again.
func TestInventory_CraftOutcomeUnknown(t *testing.T) {
	t.Parallel()
	v, _, mock, acme := setup(t)
	mock.ExpectBegin()
	mock.ExpectExec(takeQty).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectExec(insertItem).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit().WillReturnError(mysql.ErrInvalidConn)

	err := v.Craft(acme, "7", 1, 3, &unittest.Item{PlayerID: "7", Name: "potion", Qty: 1})
	if !errors.Is(err, dal.ErrOutcomeUnknown) || dal.IsRetryable(err) || dal.SafeToRetry(err) {
		t.Errorf("Craft: %v, want ErrOutcomeUnknown", err)
	}
}

// Without a tenant, or with one that is not served, no statement reaches the mock.
func TestInventory_T36_MissingTenant(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStoreWith(t, testutil.MockConfig{
		Config: dal.Config{Tables: unittest.Tables()},
		Tenants: []tenant.Tenant{
			{ID: "acme", Model: tenant.SharedTable},
			{ID: "sleepy", Model: tenant.SharedTable, Status: tenant.Suspended},
		},
	})
	v := serve(t, m)
	for name, c := range map[string]struct {
		ctx  context.Context
		want error
	}{
		"none":       {t.Context(), tenant.ErrNoTenant},
		"ill-formed": {tenant.NewContext(t.Context(), "Acme"), tenant.ErrInvalidID},
		"unknown":    {tenant.NewContext(t.Context(), "globex"), tenant.ErrUnknownTenant},
		"suspended":  {tenant.NewContext(t.Context(), "sleepy"), tenant.ErrSuspended},
		"system":     {tenant.System(t.Context(), "a test", "items"), tenant.ErrSystemScope},
	} {
		for method, call := range map[string]func() error{
			"Item":    func() error { _, err := v.Item(c.ctx, "7", 1); return err },
			"Items":   func() error { _, err := v.Items(c.ctx, "7", nil, 0); return err },
			"Hoarded": func() error { _, err := v.Hoarded(c.ctx, "7", 1); return err },
			"Add":     func() error { return v.Add(c.ctx, &unittest.Item{PlayerID: "7", Name: "sword"}) },
			"Rename":  func() error { return v.Rename(c.ctx, "7", 1, "axe") },
			"Drop":    func() error { return v.Drop(c.ctx, "7", 1) },
			"Craft":   func() error { return v.Craft(c.ctx, "7", 1, 1, &unittest.Item{PlayerID: "7"}) },
		} {
			if err := call(); !errors.Is(err, c.want) {
				t.Errorf("%s, tenant %s: %v, want %v", method, name, err, c.want)
			}
		}
	}
	if sent := m.Sent(); len(sent) != 0 {
		t.Errorf("%d statements reached a mock: %+v", len(sent), sent)
	}
}

// Equal players and equal ids of two tenants on one shard: each call names its own tenant, on one and the same mock.
func TestInventory_TwoTenantsOnOneShard(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, unittest.Tables(), "s1")
	v, mock := serve(t, m), m.Shard("s1")
	acme, globex := tenant.NewContext(t.Context(), "acme"), tenant.NewContext(t.Context(), "globex")
	mock.ExpectQuery(selectItem).WithArgs("acme", "7", 1, 1).WillReturnRows(rows([]any{1, "acme", "sword", 1}))
	mock.ExpectQuery(selectItem).WithArgs("globex", "7", 1, 1).WillReturnRows(rows([]any{1, "globex", "spoon", 1}))
	mock.ExpectBegin()
	mock.ExpectExec(deleteItem).WithArgs("globex", "7", 1).WillReturnResult(sqlmock.NewResult(0, 1))
	mock.ExpectCommit()

	if item, err := v.Item(acme, "7", 1); err != nil || item.Name != "sword" {
		t.Errorf("acme: %+v, %v", item, err)
	}
	if item, err := v.Item(globex, "7", 1); err != nil || item.Name != "spoon" {
		t.Errorf("globex: %+v, %v", item, err)
	}
	if err := v.Drop(globex, "7", 1); err != nil {
		t.Errorf("globex: %v", err)
	}
}

// Each key has its shard, and each shard its own expectations.
func TestInventory_TwoShards(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStore(t, unittest.Tables(), "s1", "s2", "s3")
	v, acme := serve(t, m), tenant.NewContext(t.Context(), "acme")
	used := map[shardrouter.ShardID]bool{}
	for _, player := range []string{"7", "8", "9", "10", "11", "12"} {
		key := dal.Key("player", player)
		m.On("acme", key).ExpectQuery(selectItem).WithArgs("acme", player, 1, 1).WillReturnRows(rows([]any{1, "acme", "sword", 1}))
		if _, err := v.Item(acme, player, 1); err != nil {
			t.Errorf("player %s on shard %s: %v", player, m.Owner("acme", key), err)
		}
		used[m.Owner("acme", key)] = true
	}
	if len(used) < 2 {
		t.Errorf("six players live on %d shards", len(used))
	}
}

// The rate is refused before anything is sent, with the time to come back.
func TestInventory_RateExceeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := testutil.NewMockStoreWith(t, testutil.MockConfig{
			Config:  dal.Config{Tables: unittest.Tables()},
			Tenants: []tenant.Tenant{{ID: "acme", Model: tenant.SharedTable, Limits: tenant.Limits{Rate: 2, Burst: 1}}},
		})
		v, acme := serve(t, m), tenant.NewContext(t.Context(), "acme")
		mock := m.On("acme", dal.Key("player", "7"))
		mock.ExpectQuery(selectItem).WillReturnRows(rows([]any{1, "acme", "sword", 1}))
		mock.ExpectQuery(selectItem).WillReturnRows(rows([]any{1, "acme", "sword", 1}))

		if _, err := v.Item(acme, "7", 1); err != nil {
			t.Fatal(err)
		}
		_, err := v.Item(acme, "7", 1)
		var exceeded *quota.ExceededError
		if !errors.As(err, &exceeded) || exceeded.Limit != quota.LimitRate || exceeded.RetryAfter != 500*time.Millisecond || !dal.SafeToRetry(err) {
			t.Fatalf("the second call: %v", err)
		}
		time.Sleep(exceeded.RetryAfter) // the bubble's time
		if _, err := v.Item(acme, "7", 1); err != nil {
			t.Errorf("after RetryAfter: %v", err)
		}
	})
}

// A tenant that uses all its connections is refused; its neighbour is not.
func TestInventory_ConnectionsExceeded(t *testing.T) {
	t.Parallel()
	m := testutil.NewMockStoreWith(t, testutil.MockConfig{
		Config: dal.Config{Tables: unittest.Tables(), Quota: quota.Config{MaxConns: 1, MaxQueue: -1}},
		Shards: []shardrouter.ShardID{"s1"},
	})
	v, mock := serve(t, m), m.Shard("s1")
	acme, globex := tenant.NewContext(t.Context(), "acme"), tenant.NewContext(t.Context(), "globex")
	mock.ExpectQuery("SELECT * FROM `items` WHERE `items`.`tenant_id` = ?").WithArgs("acme").WillReturnRows(rows()).RowsWillBeClosed()
	mock.ExpectQuery(selectItem).WithArgs("globex", "7", 1, 1).WillReturnRows(rows([]any{1, "globex", "spoon", 1}))
	mock.ExpectQuery(selectItem).WithArgs("acme", "7", 1, 1).WillReturnRows(rows([]any{1, "acme", "sword", 1}))

	open, err := m.Store.On(acme, dal.Key("player", "7")).Model(&unittest.Item{}).Rows()
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Item(acme, "7", 1)
	var exceeded *quota.ExceededError
	if !errors.As(err, &exceeded) || exceeded.Tenant != "acme" || exceeded.Limit != quota.LimitConns {
		t.Errorf("beside open rows: %v", err)
	}
	if _, err := v.Item(globex, "7", 1); err != nil {
		t.Errorf("the neighbour: %v", err)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Item(acme, "7", 1); err != nil {
		t.Errorf("after the rows were closed: %v", err)
	}
}

// A slow server ends with the caller's deadline: three seconds of the bubble's time, none of the test's.
func TestInventory_Deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v, _, mock, acme := setup(t)
		mock.ExpectQuery(selectItem).WillDelayFor(10 * time.Second).WillReturnRows(rows([]any{1, "acme", "sword", 1}))
		ctx, cancel := context.WithTimeout(acme, 3*time.Second)
		defer cancel()

		start := time.Now()
		_, err := v.Item(ctx, "7", 1)
		if !errors.Is(err, context.DeadlineExceeded) || !dal.IsTimeout(err) {
			t.Errorf("Item: %v, want a timeout", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("it took %v, want 3s", took)
		}
	})
}

// What is not bound to the tenant is refused, and no statement reaches the mock.
func TestInventory_E3_UnscopedStatement(t *testing.T) {
	t.Parallel()
	_, m, _, acme := setup(t)
	db := m.Store.On(acme, dal.Key("player", "7"))
	if err := db.Exec("TRUNCATE items").Error; !errors.Is(err, dal.ErrShape) {
		t.Errorf("raw SQL: %v, want ErrShape", err)
	}
	direct, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.ExecContext(acme, "DELETE FROM items"); !errors.Is(err, dal.ErrRefused) {
		t.Errorf("database/sql: %v, want ErrRefused", err)
	}
	if _, err := db.Statement.ConnPool.ExecContext(acme, "DELETE FROM items"); err == nil {
		t.Error("the pool behind gorm takes a statement of its own")
	}
	if sent := m.Sent(); len(sent) != 0 {
		t.Errorf("%d statements reached a mock: %+v", len(sent), sent)
	}
}

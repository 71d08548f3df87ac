package dal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// A hundred rows over eight shards, one of which meets a unique key: its shard rolls back, the seven others commit, and the caller is told which is which.
func TestCreateEach_S27_OneRowFails(t *testing.T) {
	t.Parallel()
	var shards []shardrouter.ShardID
	for i := range 8 {
		shards = append(shards, shardrouter.ShardID(fmt.Sprint("s", i+1)))
	}
	g := newGameOn(t, shards)
	rows := make([]Item, 100)
	for i := range rows {
		rows[i] = Item{PlayerID: fmt.Sprint("p", i), Qty: int64(i)}
	}
	rows[40].ID = 4040
	at, err := g.Route(g.a, dal.Key("player", rows[40].PlayerID))
	if err != nil {
		t.Fatal(err)
	}
	bad := at.Place.Shard
	if _, err := g.raw[bad].Exec("INSERT INTO items (tenant_id, id, player_id, name) VALUES ('a', 4040, 'p40', 'there before')"); err != nil {
		t.Fatal(err)
	}
	result, err := dal.CreateEach(g.a, g.Store, rows)
	var each *dal.FanOutError
	if !errors.As(err, &each) || len(each.Failed) != 1 || len(each.Done) != 7 || !strings.Contains(each.Failed[bad].Error(), "UNIQUE") {
		t.Fatalf("error %v, want shard %s alone to have met a duplicate", err, bad)
	}
	if len(result) != 8 || !slices.IsSortedFunc(result, func(a, b dal.ShardRows) int { return slices.Compare([]byte(a.Shard), []byte(b.Shard)) }) {
		t.Fatalf("result %+v, want eight shards in order", result)
	}
	total := 0
	for _, r := range result {
		total += len(r.Rows)
		var kept int
		if err := g.raw[r.Shard].QueryRow("SELECT COUNT(*) FROM items WHERE COALESCE(name, '') <> 'there before'").Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if r.Shard == bad {
			if r.Err == nil || kept != 0 {
				t.Errorf("shard %s: error %v and %d rows, want all of it rolled back", r.Shard, r.Err, kept)
			}
			continue
		}
		if r.Err != nil || kept != len(r.Rows) {
			t.Errorf("shard %s: error %v, %d rows of %d", r.Shard, r.Err, kept, len(r.Rows))
		}
		for _, i := range r.Rows { // each struct has the id of its own row, on its own shard
			var key string
			if err := g.raw[r.Shard].QueryRow("SELECT player_id FROM items WHERE tenant_id = 'a' AND id = ?", rows[i].ID).Scan(&key); err != nil || key != rows[i].PlayerID || rows[i].TenantID != "a" {
				t.Errorf("row %d: id %d names player %q, %v", i, rows[i].ID, key, err)
			}
		}
	}
	if total != len(rows) {
		t.Errorf("%d positions for %d rows", total, len(rows))
	}

	// Only the failed shard's rows are sent again, once the duplicate is mended.
	var again []Item
	for _, r := range result {
		if r.Err != nil {
			for _, i := range r.Rows {
				again = append(again, rows[i])
			}
		}
	}
	again[slices.IndexFunc(again, func(i Item) bool { return i.ID == 4040 })].ID = 0
	if _, err := dal.CreateEach(g.a, g.Store, again); err != nil {
		t.Fatal(err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM items WHERE tenant_id = 'a' AND COALESCE(name, '') <> 'there before'"); n != len(rows) {
		t.Errorf("%d rows, want %d", n, len(rows))
	}
}

func TestCreateEach_RefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	here, there := g.keyOn(t, "s1"), g.keyOn(t, "s2")
	create := func(rows ...Item) error {
		_, err := dal.CreateEach(g.a, g.Store, rows)
		return err
	}
	g.refusedAs(t, create(Item{PlayerID: here}, Item{}), shardrouter.ErrEmptyKey)
	g.refusedAs(t, create(Item{PlayerID: here}, Item{PlayerID: "0"}), shardrouter.ErrZeroKey)
	g.refusedAs(t, create(Item{PlayerID: here}, Item{Model: dal.Model{TenantID: "b"}, PlayerID: there}), dal.ErrTenantMismatch)
	_, err := dal.CreateEach(g.a, g.Store, []Stranger{{}})
	g.refusedAs(t, err, dal.ErrUndeclared)
	_, err = dal.CreateEach(g.a, g.Store, []Line{{No: 1}})
	g.refusedAs(t, err, dal.ErrShape)
	_, err = dal.CreateEach(t.Context(), g.Store, []Item{{PlayerID: here}})
	g.refusedAs(t, err, tenant.ErrNoTenant)
	_, err = dal.CreateEach(tenant.NewContext(t.Context(), "sleepy"), g.Store, []Item{{PlayerID: here}})
	g.refusedAs(t, err, tenant.ErrSuspended)
	if result, err := dal.CreateEach(g.a, g.Store, []Item{}); err != nil || result != nil {
		t.Errorf("no rows: %v, %v", result, err)
	}
	err = g.Transaction(g.a, dal.Key("player", here), func(ctx context.Context, _ *gorm.DB) error {
		_, err := dal.CreateEach(ctx, g.Store, []Item{{PlayerID: here}})
		return err
	})
	if !errors.Is(err, dal.ErrNested) {
		t.Errorf("inside a transaction: %v", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM items"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// A hook that panics on one shard panics in the caller's goroutine, and its shard keeps nothing.
func TestCreateEach_PanicInAHook(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	here, there := g.keyOn(t, "s1"), g.keyOn(t, "s2")
	handle := g.On(g.a, dal.Key("player", here))
	if err := handle.Callback().Create().Before("gorm:create").Register("test:panic", func(*gorm.DB) { panic("of a callback") }); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if p := recover(); p != "of a callback" {
				t.Errorf("recovered %v", p)
			}
		}()
		_, err := dal.CreateEach(g.a, g.Store, []Item{{PlayerID: here}, {PlayerID: there}})
		t.Errorf("no panic, error %v", err)
	}()
	if n := g.count(t, "SELECT COUNT(*) FROM items WHERE player_id = ?", here); n != 0 {
		t.Errorf("%d rows of the shard that panicked", n)
	}
}

package dal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Keys of several shards in one call: each shard is asked for its own, a key listed twice gives its rows once, and the order is the caller's.
func TestFindByKeys_S21_SplitAndOrder(t *testing.T) {
	t.Parallel()
	g := newGameOn(t, []shardrouter.ShardID{"s1", "s2", "s3"})
	var rows []Item
	for i := range 40 {
		for range 2 {
			rows = append(rows, Item{PlayerID: fmt.Sprint("p", i), Qty: int64(i)})
		}
	}
	if _, err := dal.CreateEach(g.a, g.Store, rows); err != nil {
		t.Fatal(err)
	}
	g.rec.take()
	asked := []string{"p31", "p2", "p17", "p2", "nobody", "p31", "p9"}
	got, err := dal.FindByKeys[Item](g.a, g.Store, asked, dal.FanOutSpec{})
	if err != nil {
		t.Fatal(err)
	}
	var players []string
	for i, r := range got.Rows {
		players = append(players, r.PlayerID)
		if i > 0 && got.Rows[i-1].PlayerID == r.PlayerID && got.Rows[i-1].ID >= r.ID {
			t.Errorf("rows of %s are not in the order of their ids", r.PlayerID)
		}
	}
	if want := []string{"p31", "p31", "p2", "p2", "p17", "p17", "p9", "p9"}; !slices.Equal(players, want) {
		t.Errorf("players %v, want %v", players, want)
	}
	groups, err := g.Group(g.a, "player", "p31", "p2", "p17", "nobody", "p9")
	if err != nil {
		t.Fatal(err)
	}
	texts := g.rec.take()
	if len(texts) != len(groups) || len(got.Report.Shards) != len(groups) {
		t.Fatalf("%d statements, want %d: %v", len(texts), len(groups), texts)
	}
	for i, at := range got.Report.Shards {
		if at.Shard != groups[i].Shard || !slices.Equal(at.Keys, groups[i].Keys) || at.Queries != 1 {
			t.Errorf("shard %+v, want the keys %v", at, groups[i])
		}
	}
	placeholders := 0
	for _, text := range texts {
		placeholders += strings.Count(text, "?") - 1 // one is the tenant's
	}
	if placeholders != 5 {
		t.Errorf("%d keys were sent, want five: %v", placeholders, texts)
	}
	if got, err := dal.FindByKeys[Item](g.b, g.Store, asked, dal.FanOutSpec{}); err != nil || len(got.Rows) != 0 {
		t.Errorf("another tenant: %d rows, %v", len(got.Rows), err)
	}
}

// A row that was put on a shard which does not own it is counted, and not returned.
func TestFindByKeys_S43_RowOnBothShards(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	there := g.keyOn(t, g.other(t))
	for _, shard := range g.shards {
		if _, err := g.raw[shard].Exec("INSERT INTO items (tenant_id, id, player_id, qty) VALUES ('a', 900, '7', 9), ('a', 901, ?, 9)", there); err != nil {
			t.Fatal(err)
		}
	}
	got, err := dal.FindByKeys[Item](g.a, g.Store, []string{"7", there}, dal.FanOutSpec{})
	if err != nil || len(got.Rows) != 5 || got.Report.Rows() != 5 {
		t.Errorf("%d rows of %d fetched, %v", len(got.Rows), got.Report.Rows(), err)
	}
}

func TestFindByKeys_RefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	try := func(keys ...string) error {
		_, err := dal.FindByKeys[Item](g.a, g.Store, keys, dal.FanOutSpec{})
		return err
	}
	g.refusedAs(t, try("7", ""), shardrouter.ErrEmptyKey)
	g.refusedAs(t, try("0"), shardrouter.ErrZeroKey)
	if err := try(); err != nil {
		t.Error(err)
	}
	_, err := dal.FindByKeys[Stranger](g.a, g.Store, []string{"7"}, dal.FanOutSpec{})
	g.refusedAs(t, err, dal.ErrUndeclared)
	_, err = dal.FindByKeys[Line](g.a, g.Store, []string{"7"}, dal.FanOutSpec{})
	g.refusedAs(t, err, dal.ErrShape)
	_, err = dal.FindByKeys[Item](t.Context(), g.Store, []string{"7"}, dal.FanOutSpec{})
	g.refusedAs(t, err, tenant.ErrNoTenant)
	g.rec.take()
	g.rec.breaks(nil)
	if _, err := dal.FindByKeys[Item](g.a, g.Store, []int{7}, dal.FanOutSpec{}); err != nil {
		t.Errorf("an integer is its decimal text: %v", err)
	}
	var fan *dal.FanOutError
	if errors.As(err, &fan) {
		t.Error("a refusal is not a failure of shards")
	}
}

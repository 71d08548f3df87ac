package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Nine rows, seven of one time and two without, in pages of two: a third shard is added between two pages, and the rows that it takes move by hand. The cursor
// goes on where it was, forward and backward, and each row comes once.
func TestScatter_S40_CursorSurvivesATopologyChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dsn := func(p dal.Place) string {
		return "file:" + dir + "/" + string(p.Shard) + ".db?_pragma=busy_timeout(5000)&_time_format=sqlite"
	}
	shards := []shardrouter.ShardID{"s1", "s2", "s3"}
	raw := map[shardrouter.ShardID]*sql.DB{}
	for _, id := range shards {
		db, err := sql.Open("sqlite", dsn(dal.Place{Shard: id}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if _, err := db.Exec(scoresDDL); err != nil {
			t.Fatal(err)
		}
		raw[id] = db
	}
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable})
	if err != nil {
		t.Fatal(err)
	}
	open := func(epoch shardrouter.Epoch, shards ...shardrouter.ShardID) *dal.Store {
		top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: epoch, Shards: shards, Keyspaces: []shardrouter.Keyspace{{Name: "player"}}})
		if err != nil {
			t.Fatal(err)
		}
		store, err := dal.OpenFixed(dal.Config{Registry: reg, Tables: []dal.Table{dal.Tenant[Score]("player", "player_id")}}, dal.Fixed{Topology: top, Dialect: dal.SQLite, Connect: func(p dal.Place) (driver.Connector, error) {
			return sqlite.NewConnector(dsn(p))
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return store
	}
	before, after := open(1, "s1", "s2"), open(2, shards...)
	ctx := tenant.NewContext(t.Context(), "a")
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	var scores []Score
	for i := range 9 {
		s := Score{Model: dal.Model{ID: int64(i + 1)}, PlayerID: fmt.Sprint("p", i)}
		if i != 3 && i != 6 {
			s.At = &at
		}
		scores = append(scores, s)
	}
	if _, err := dal.CreateEach(ctx, before, scores); err != nil {
		t.Fatal(err)
	}
	move := func() (moved int) {
		for _, s := range scores {
			from, err := before.Route(ctx, dal.Key("player", s.PlayerID))
			if err != nil {
				t.Fatal(err)
			}
			to, err := after.Route(ctx, dal.Key("player", s.PlayerID))
			if err != nil {
				t.Fatal(err)
			}
			if from.Place == to.Place {
				continue
			}
			moved++
			_, err = raw[to.Place.Shard].Exec("INSERT INTO scores (tenant_id, id, player_id, at) VALUES ('a', ?, ?, ?)", s.ID, s.PlayerID, s.At)
			if err == nil {
				_, err = raw[from.Place.Shard].Exec("DELETE FROM scores WHERE id = ?", s.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return moved
	}
	query := func(s *dal.Store) dal.Query[Score] {
		return dal.Scatter[Score](s).OrderBy(dal.Desc("at")).Limit(2)
	}
	want := []int64{1, 2, 3, 5, 6, 8, 9, 4, 7} // NULL is the least
	var all, back []int64
	store, cursor, last := before, "", ""
	for n := 0; ; n++ {
		if n == 2 {
			if moved := move(); moved == 0 || moved == len(scores) {
				t.Fatalf("%d rows moved, want some", moved)
			}
			store = after
		}
		got, err := query(store).Page(ctx, cursor)
		if err != nil {
			t.Fatal(err)
		}
		if n >= 2 && (got.Report.Epoch != 2 || len(got.Report.Shards) != 3) {
			t.Errorf("page %d by epoch %d over %d shards", n, got.Report.Epoch, len(got.Report.Shards))
		}
		all, last = append(all, scoreIDs(got.Rows)...), got.Prev
		if cursor = got.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
	for cursor = last; cursor != ""; {
		got, err := query(after).Page(ctx, cursor)
		if err != nil {
			t.Fatal(err)
		}
		back, cursor = append(scoreIDs(got.Rows), back...), got.Prev
	}
	if !slices.Equal(back, want[:8]) {
		t.Errorf("backward: %v, want %v", back, want[:8])
	}
}

// A guild of 40 over four shards: two to four are touched, each for its own members, and the sum of the parts is the sum of the whole.
func TestScatter_A10_GuildOf40(t *testing.T) {
	t.Parallel()
	g := newGameOn(t, []shardrouter.ShardID{"s1", "s2", "s3", "s4"})
	var rows []Item
	var members []string
	var keys []shardrouter.Key
	want := int64(0)
	for i := range 40 {
		id := fmt.Sprint(1000 + 7*i)
		rows = append(rows, Item{PlayerID: id, Name: "gold", Qty: int64(i*i + 1)})
		members, keys = append(members, id), append(keys, shardrouter.Key(id))
		want += int64(i*i + 1)
	}
	rows = append(rows, Item{PlayerID: "5", Name: "gold", Qty: 1_000_000}) // no member
	if _, err := dal.CreateEach(g.a, g.Store, rows); err != nil {
		t.Fatal(err)
	}
	groups, err := g.Group(g.a, "player", keys...)
	if err != nil || len(groups) < 2 || len(groups) > 4 {
		t.Fatalf("%d shards, %v, want 2 to 4", len(groups), err)
	}
	found, err := dal.FindByKeys[Item](g.a, g.Store, members, dal.FanOutSpec{})
	if err != nil || len(found.Rows) != 40 || len(found.Report.Shards) != len(groups) {
		t.Fatalf("%d rows of %d shards, %v", len(found.Rows), len(found.Report.Shards), err)
	}
	sum := int64(0)
	for _, r := range found.Rows {
		sum += r.Qty
	}
	parts, err := dal.Scatter[Item](g.Store).With(dal.FanOutSpec{Keys: keys}).Where("qty < ?", 1_000_000).Aggregate(g.a, dal.Sum("qty"), dal.Count())
	if err != nil || len(parts.Report.Shards) != len(groups) {
		t.Fatal(err)
	}
	if text := textOf(parts.Rows)[0]; sum != want || text != fmt.Sprintf("%d|40", want) {
		t.Errorf("sums %d and %s, want %d of 40", sum, text, want)
	}
}

// Conditions may name keys of several shards: each shard has its part, and the order, the limit and the sums are those of all.
func TestScatter_S21_ConditionOnKeys(t *testing.T) {
	t.Parallel()
	g, one := newScores(t, 200)
	keys := []string{"p1", "p5", "p9", "p13", "p21", "p33"}
	shardKeys := make([]shardrouter.Key, len(keys))
	for i, k := range keys {
		shardKeys[i] = shardrouter.Key(k)
	}
	groups, err := g.Group(g.a, "player", shardKeys...)
	if err != nil || len(groups) < 2 {
		t.Fatalf("the keys are on %d shards, %v", len(groups), err)
	}
	const where = "player_id IN ('p1', 'p5', 'p9', 'p13', 'p21', 'p33')"
	for shards, spec := range map[int]dal.FanOutSpec{3: {}, len(groups): {Keys: shardKeys}} {
		q := dal.Scatter[Score](g.Store).With(spec).Where("player_id IN ?", keys)
		got, err := q.OrderBy(dal.Desc("points")).Limit(7).Find(g.a)
		if err != nil {
			t.Fatal(err)
		}
		if want := idsOf(t, one, "SELECT id FROM scores WHERE "+where+" ORDER BY points DESC, id LIMIT 7"); !slices.Equal(scoreIDs(got.Rows), want) || len(got.Report.Shards) != shards {
			t.Errorf("%v of %d shards, want %v of %d", scoreIDs(got.Rows), len(got.Report.Shards), want, shards)
		}
		sum, err := q.Aggregate(g.a, dal.Count(), dal.Sum("points"))
		if err != nil {
			t.Fatal(err)
		}
		if want := asked(t, one, "SELECT COUNT(*), SUM(points) FROM scores WHERE "+where); !slices.Equal(textOf(sum.Rows), want) {
			t.Errorf("%v, want %v", textOf(sum.Rows), want)
		}
	}
	if got, err := dal.Scatter[Score](g.Store).Where("player_id IN ?", keys).Find(g.b); err != nil || len(got.Rows) != 0 {
		t.Errorf("another tenant: %d rows, %v", len(got.Rows), err)
	}
}

// A shard that holds thousands of rows which it does not own costs few queries, however few rows are asked for.
func TestScatter_S43_ManyRowsOfOthers(t *testing.T) {
	t.Parallel()
	g, _ := newScores(t, 0)
	mine, other := g.keyOn(t, "s1"), g.keyOn(t, "s2")
	if _, err := g.raw["s1"].Exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO scores (tenant_id, id, player_id, points) SELECT 'a', i, ?, i FROM n", other); err != nil {
		t.Fatal(err)
	}
	if _, err := g.raw["s1"].Exec("INSERT INTO scores (tenant_id, id, player_id, points) VALUES ('a', 6000, ?, 1)", mine); err != nil {
		t.Fatal(err)
	}
	got, err := dal.Scatter[Score](g.Store).OrderBy(dal.Asc("id")).Limit(1).Find(g.a)
	if err != nil || len(got.Rows) != 1 || got.Rows[0].ID != 6000 {
		t.Fatalf("%+v, %v", got.Rows, err)
	}
	if at := got.Report.Shards[0]; at.Dropped != 5000 || at.Queries > 20 {
		t.Errorf("%d queries for %d rows of others", at.Queries, at.Dropped)
	}
}

// Raw is a model whose shard key is bytes.
type Raw struct {
	dal.Model
	PlayerID []byte `gorm:"size:255;not null"`
}

// A key whose column holds bytes has rows as well: they are found before a pin moves the key away from them.
func TestChange_A12_RowsUnderAKeyOfBytes(t *testing.T) {
	t.Parallel()
	cfg := dal.Config{Cluster: clusters()["sqlite"](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Raw]("player", "player_id")}}
	upRaw(t, cfg)
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx := tenant.NewContext(t.Context(), "shared-a")
	if err := store.On(ctx, dal.Key("player", "seven")).Create(&Raw{PlayerID: []byte("seven")}).Error; err != nil {
		t.Fatal(err)
	}
	r, err := store.Route(ctx, dal.Key("player", "seven"))
	if err != nil {
		t.Fatal(err)
	}
	to := shardrouter.ShardID("s1")
	if r.Place.Shard == to {
		to = "s2"
	}
	pin := shardrouter.PutPin{Pin: shardrouter.Pin{Tenant: "shared-a", Keyspace: "player", Key: "seven", Shard: to}}
	if _, err := store.Change(tenant.System(t.Context(), "canary", "raws"), "ops", pin); !errors.Is(err, shardrouter.ErrNeedsReshard) || !strings.Contains(err.Error(), "raws") {
		t.Errorf("the pin of a key with a row: %v, want ErrNeedsReshard and the table", err)
	}
}

package dal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// textOf writes rows of an aggregate, a mean with four digits.
func textOf(rows []dal.AggregateRow) (out []string) {
	for _, r := range rows {
		var cells []string
		for _, v := range append(append([]any{}, r.Group...), r.Values...) {
			switch v := v.(type) {
			case *big.Rat:
				cells = append(cells, v.FloatString(4))
			case nil:
				cells = append(cells, "NULL")
			default:
				cells = append(cells, fmt.Sprint(v))
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

// asked asks the one database.
func asked(t *testing.T, one *sql.DB, query string) (out []string) {
	t.Helper()
	rows, err := one.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, to := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		var cells []string
		for _, v := range values {
			if !v.Valid {
				v.String = "NULL"
			}
			cells = append(cells, v.String)
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

// Groups of three shards are those of one database with all rows, whether the limit can be sent to the shards or not.
func TestAggregate_S34_AsOneDatabase(t *testing.T) {
	t.Parallel()
	g, one := newScores(t, 200)
	aggregates := []dal.Aggregation{dal.Count(), dal.Sum("points"), dal.Avg("points"), dal.Min("points"), dal.Max("title"), dal.CountDistinct("points"), dal.SumDistinct("points"), dal.CountDistinct("player_id")}
	const list = "COUNT(*), SUM(points), PRINTF('%.4f', AVG(points)), MIN(points), MAX(title), COUNT(DISTINCT points), SUM(DISTINCT points), COUNT(DISTINCT player_id)"
	for _, c := range []struct {
		by     []string
		orders []dal.Order
		text   string
	}{
		{[]string{"player_id"}, nil, "player_id"},
		{[]string{"title"}, []dal.Order{dal.Desc("title")}, "title DESC"},
		{[]string{"title", "points"}, []dal.Order{dal.Desc("points")}, "points DESC, title"},
		{[]string{"player_id"}, []dal.Order{dal.Desc("SUM(points)")}, "SUM(points) DESC, player_id"},
		{[]string{"player_id"}, []dal.Order{dal.Asc("MAX(title)"), dal.Desc("player_id")}, "MAX(title), player_id DESC"},
		{[]string{"title", "player_id"}, []dal.Order{dal.Desc("COUNT(*)"), dal.Asc("AVG(points)")}, "COUNT(*) DESC, AVG(points), title, player_id"},
	} {
		for _, page := range [][2]int{{5, 0}, {5, 3}, {1000, 0}} {
			got, err := dal.Scatter[Score](g.Store).Where("id > ? OR title = ?", 20, "a").OrderBy(c.orders...).Limit(page[0]).Offset(page[1]).GroupBy(c.by...).Aggregate(g.a, aggregates...)
			if err != nil {
				t.Fatal(c.text, err)
			}
			by := strings.Join(c.by, ", ")
			query := "SELECT " + by + ", " + list + " FROM scores WHERE id > 20 OR title = 'a' GROUP BY " + by + " ORDER BY " + c.text + fmt.Sprintf(" LIMIT %d OFFSET %d", page[0], page[1])
			want := strings.ReplaceAll(strings.Join(asked(t, one, query), "\n"), "|0.0000|NULL", "|NULL|NULL") // PRINTF of NULL
			if text := strings.Join(textOf(got.Rows), "\n"); text != want {
				t.Errorf("%s, %v:\n%s\nwant\n%s", c.text, page, text, want)
			}
		}
	}
	got, err := dal.Scatter[Score](g.Store).Limit(3).GroupBy("player_id").Aggregate(g.a, dal.Count())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range got.Report.Shards {
		if at.Rows > 3 {
			t.Errorf("a limit of 3 was not sent to the shard: %+v", at)
		}
	}
	whole, err := dal.Scatter[Score](g.Store).Aggregate(g.a, dal.Min("at"), dal.Max("at"))
	if err != nil || len(whole.Rows) != 1 {
		t.Fatal(whole, err)
	}
	if s := textOf(whole.Rows)[0]; !strings.HasPrefix(s, "2026-11-30 00:00:00 +0000 UTC|2026-11-30 00:00:06") {
		t.Errorf("the smallest and largest time: %s", s)
	}
}

// put writes items of the keys' owners: {1,1,2} on one shard, {2,3} on another, the third is empty.
func TestAggregate_S38_OverShards(t *testing.T) {
	t.Parallel()
	g := newGameOn(t, []shardrouter.ShardID{"s1", "s2", "s3"})
	all := []dal.Aggregation{dal.Avg("qty"), dal.CountDistinct("qty"), dal.SumDistinct("qty"), dal.Min("qty"), dal.Max("qty"), dal.Sum("qty"), dal.Count()}
	q := dal.Scatter[Item](g.Store)
	check := func(ctx context.Context, want string) {
		t.Helper()
		got, err := q.Aggregate(ctx, all...)
		if err != nil || len(got.Rows) != 1 || textOf(got.Rows)[0] != want {
			t.Errorf("%v, %v, want %s", textOf(got.Rows), err, want)
		}
	}
	put := func(shard shardrouter.ShardID, qty ...int64) {
		t.Helper()
		for _, n := range qty {
			row := Item{PlayerID: g.keyOn(t, shard), Qty: n}
			if err := g.On(g.a, dal.Key("player", row.PlayerID)).Create(&row).Error; err != nil {
				t.Fatal(err)
			}
		}
	}
	check(g.a, "NULL|0|NULL|NULL|NULL|NULL|0")
	put("s1", 1, 1, 2)
	put("s2", 2, 3)
	check(g.a, "1.8000|3|6|1|3|9|5")
	check(g.b, "NULL|0|NULL|NULL|NULL|NULL|0")
	if got, err := q.GroupBy("qty").Aggregate(g.b, dal.Count()); err != nil || len(got.Rows) != 0 {
		t.Errorf("groups of no rows: %v, %v", got.Rows, err)
	}
	// Sums beyond 64 bits, of one shard and of several.
	put("s1", math.MaxInt64, math.MaxInt64)
	put("s3", math.MaxInt64, -7)
	got, err := q.Aggregate(g.a, dal.Sum("qty"))
	want := new(big.Int).Add(new(big.Int).Mul(big.NewInt(3), big.NewInt(math.MaxInt64)), big.NewInt(2))
	if err != nil || textOf(got.Rows)[0] != want.String() {
		t.Errorf("%v, %v, want %s", textOf(got.Rows), err, want)
	}
}

// What cannot be merged exactly is refused by its column; what cannot be meant, before anything is sent.
func TestAggregate_S36_Refused(t *testing.T) {
	t.Parallel()
	g := newGameOn(t, []shardrouter.ShardID{"s1", "s2"}, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Score]("player", "player_id"))
	})
	for _, db := range g.raw {
		if _, err := db.Exec(strings.Replace(scoresDDL, "title TEXT", "title TEXT COLLATE NOCASE", 1)); err != nil {
			t.Fatal(err)
		}
	}
	q := dal.Scatter[Score](g.Store)
	for name, call := range map[string]func() error{
		"group":    func() error { _, err := q.GroupBy("title").Aggregate(g.a, dal.Count()); return err },
		"min":      func() error { _, err := q.Aggregate(g.a, dal.Min("title")); return err },
		"distinct": func() error { _, err := q.Aggregate(g.a, dal.CountDistinct("title")); return err },
	} {
		var order *dal.OrderError
		if err := call(); !errors.As(err, &order) || order.Column != "title" || !strings.Contains(order.Problem, "nocase") {
			t.Errorf("%s of a folding column: %v", name, err)
		}
	}
	refused := func(q dal.Grouped[Score], want error, aggregates ...dal.Aggregation) {
		t.Helper()
		g.rec.take()
		_, err := q.Aggregate(g.a, aggregates...)
		g.refusedAs(t, err, want)
	}
	refused(q.GroupBy("player_id"), dal.ErrOrder, dal.Sum("player_id"))
	refused(q.GroupBy("player_id"), dal.ErrShape)
	refused(q.GroupBy("tenant_id"), dal.ErrShape, dal.Count())
	refused(q.GroupBy("points", "points"), dal.ErrShape, dal.Count())
	refused(q.GroupBy("points"), dal.ErrShape, dal.Sum("points) FROM scores --"))
	refused(q.OrderBy(dal.Asc("at")).GroupBy("points"), dal.ErrShape, dal.Count())
	refused(q.Limit(0).GroupBy("points"), dal.ErrShape, dal.Count())
	refused(q.Offset(dal.MaxOffset+1).GroupBy("points"), dal.ErrOffset, dal.Count())
}

// More groups than the bound on one shard are refused, unless the limit makes them few.
func TestAggregate_TooManyGroups(t *testing.T) {
	t.Parallel()
	g, _ := newScores(t, 0)
	key := g.keyOn(t, "s2")
	if _, err := g.raw["s2"].Exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= ?) INSERT INTO scores (tenant_id, id, player_id, points) SELECT 'a', i, ?, i FROM n", dal.MaxGroups, key); err != nil {
		t.Fatal(err)
	}
	q := dal.Scatter[Score](g.Store).With(dal.FanOutSpec{Timeout: 2 * time.Minute}) // so many rows take long under the race detector
	var many *dal.GroupsError
	if _, err := q.Aggregate(g.a, dal.CountDistinct("points")); !errors.As(err, &many) || many.Shard != "s2" || !errors.Is(err, dal.ErrGroups) {
		t.Errorf("distinct values: %v", err)
	}
	if _, err := q.OrderBy(dal.Desc("COUNT(*)")).GroupBy("points").Aggregate(g.a, dal.Count()); !errors.Is(err, dal.ErrGroups) {
		t.Errorf("groups: %v", err)
	}
	if got, err := q.OrderBy(dal.Desc("points")).Limit(1).GroupBy("points").Aggregate(g.a, dal.Count()); err != nil || textOf(got.Rows)[0] != fmt.Sprint(dal.MaxGroups+1, "|1") {
		t.Errorf("the first group: %v, %v", textOf(got.Rows), err)
	}
}

// A key's rows lie on both shards: copied and not switched, then switched and not cleaned up. Each counts once, in every aggregate.
func TestAggregate_S43_RowsOnBothShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dsn := func(p dal.Place) string {
		return "file:" + dir + "/" + string(p.Shard) + ".db?_pragma=busy_timeout(5000)&_time_format=sqlite"
	}
	for _, insert := range []struct{ shard, row string }{
		{"s1", "1, 'moved', 10, 'x'"}, {"s2", "1, 'moved', 10, 'x'"}, {"s1", "2, 'moved', 5, 'y'"}, {"s2", "2, 'moved', 5, 'y'"}, {"s1", "3, 'stays', 7, 'x'"}, {"s2", "4, 'other', 100, 'x'"},
	} {
		db, err := sql.Open("sqlite", dsn(dal.Place{Shard: shardrouter.ShardID(insert.shard)}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(strings.Replace(scoresDDL, "CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1) + "; INSERT INTO scores (tenant_id, id, player_id, points, title) VALUES ('a', " + insert.row + ")")
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable})
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []shardrouter.ShardID{"s1", "s2"} {
		pin := func(key shardrouter.Key, at shardrouter.ShardID) shardrouter.Pin {
			return shardrouter.Pin{Tenant: "a", Keyspace: "player", Key: key, Shard: at}
		}
		top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
			Epoch: 1, Shards: []shardrouter.ShardID{"s1", "s2"}, Keyspaces: []shardrouter.Keyspace{{Name: "player", Moving: true}},
			Pins: []shardrouter.Pin{pin("moved", owner), pin("stays", "s1"), pin("other", "s2")},
		})
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
		ctx := tenant.NewContext(t.Context(), "a")
		q := dal.Scatter[Score](store)
		for want, get := range map[string]func() (dal.AggregateResult, error){
			"122|4|30.5000|5|4|122": func() (dal.AggregateResult, error) {
				return q.Aggregate(ctx, dal.Sum("points"), dal.Count(), dal.Avg("points"), dal.Min("points"), dal.CountDistinct("points"), dal.SumDistinct("points"))
			},
			"x|117|3 y|5|1": func() (dal.AggregateResult, error) {
				return q.GroupBy("title").Aggregate(ctx, dal.Sum("points"), dal.Count())
			},
			"x|117": func() (dal.AggregateResult, error) {
				return q.Limit(1).GroupBy("title").Aggregate(ctx, dal.Sum("points"))
			},
			"other|100 moved|15": func() (dal.AggregateResult, error) {
				return q.OrderBy(dal.Desc("SUM(points)")).Limit(2).GroupBy("player_id").Aggregate(ctx, dal.Sum("points"))
			},
			"0|NULL": func() (dal.AggregateResult, error) {
				return q.Where("points > ?", 1000).Aggregate(ctx, dal.Count(), dal.Sum("points"))
			},
		} {
			got, err := get()
			if text := strings.Join(textOf(got.Rows), " "); err != nil || text != want {
				t.Errorf("moved on %s: %s, %v, want %s", owner, text, err, want)
			}
		}
	}
}

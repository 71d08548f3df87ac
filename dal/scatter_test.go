package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Score is the model of the reads across shards.
type Score struct {
	dal.Model
	PlayerID string
	Points   *int64
	At       *time.Time
	Title    *string
}

const scoresDDL = "CREATE TABLE scores (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id TEXT NOT NULL, points INTEGER, at DATETIME, title TEXT, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id))"

// newScores is a game on three shards with the table of scores, and one database that holds the same rows as all of them.
func newScores(t *testing.T, rows int) (*game, *sql.DB) {
	t.Helper()
	g := newGameOn(t, []shardrouter.ShardID{"s1", "s2", "s3"}, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Score]("player", "player_id"))
	})
	one, err := sql.Open("sqlite", "file:"+t.TempDir()+"/one.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() })
	for _, db := range []*sql.DB{g.raw["s1"], g.raw["s2"], g.raw["s3"], one} {
		if _, err := db.Exec(scoresDDL); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(4, 5))
	titles := []string{"", "a", "A", "b", "é", "z ", "z"}
	base := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	var scores []Score
	for i := range rows {
		s := Score{Model: dal.Model{ID: int64(i + 1)}, PlayerID: fmt.Sprint("p", random.IntN(50)+1)}
		if n := int64(random.IntN(9)); n > 1 {
			s.Points = new(int64)
			*s.Points = n - 5
		}
		if random.IntN(4) > 0 {
			at := base.Add(time.Duration(random.IntN(5)) * 1500 * time.Millisecond)
			s.At = &at
		}
		if n := random.IntN(len(titles) + 1); n < len(titles) {
			s.Title = &titles[n]
		}
		scores = append(scores, s)
	}
	if _, err := dal.CreateEach(g.a, g.Store, scores); err != nil {
		t.Fatal(err)
	}
	for _, id := range g.shards {
		from, err := g.raw[id].Query("SELECT id, player_id, points, CAST(at AS TEXT), title FROM scores")
		if err != nil {
			t.Fatal(err)
		}
		for from.Next() {
			var v [5]any
			if err := from.Scan(&v[0], &v[1], &v[2], &v[3], &v[4]); err != nil {
				t.Fatal(err)
			}
			if _, err := one.Exec("INSERT INTO scores (tenant_id, id, player_id, points, at, title) VALUES ('a', ?, ?, ?, ?, ?)", v[:]...); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(from.Err(), from.Close()); err != nil {
			t.Fatal(err)
		}
	}
	g.rec.take()
	return g, one
}

// idsOf asks the one database.
func idsOf(t *testing.T, one *sql.DB, query string, args ...any) (ids []int64) {
	t.Helper()
	rows, err := one.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func scoreIDs(rows []Score) (ids []int64) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// orders are the orders of the tests, with their text.
func orders() map[string][]dal.Order {
	return map[string][]dal.Order{
		"id":                                   {dal.Asc("id")},
		"points DESC, id":                      {dal.Desc("points")},
		"points, id":                           {dal.Asc("points")},
		"at DESC, title, id DESC":              {dal.Desc("at"), dal.Asc("title"), dal.Desc("id")},
		"title DESC, points DESC, at, id":      {dal.Desc("title"), dal.Desc("points"), dal.Asc("at")},
		"player_id, at, points DESC, id":       {dal.Asc("player_id"), dal.Asc("at"), dal.Desc("points")},
		"points DESC, at, title DESC, id DESC": {dal.Desc("points"), dal.Asc("at"), dal.Desc("title"), dal.Desc("id")},
	}
}

// Whatever the order, rows of three shards are what one database with all rows returns.
func TestScatter_S34_AsOneDatabase(t *testing.T) {
	t.Parallel()
	g, one := newScores(t, 200)
	for text, order := range orders() {
		q := dal.Scatter[Score](g.Store).Where("points > ? OR title = ?", -1, "a").OrderBy(order...)
		for _, page := range [][2]int{{5, 0}, {20, 30}, {1000, 0}, {7, 199}} {
			got, err := q.Limit(page[0]).Offset(page[1]).Find(g.a)
			if err != nil {
				t.Fatal(err)
			}
			want := idsOf(t, one, "SELECT id FROM scores WHERE points > -1 OR title = 'a' ORDER BY "+text+" LIMIT ? OFFSET ?", page[0], page[1])
			if !slices.Equal(scoreIDs(got.Rows), want) {
				t.Errorf("%s, limit and offset %v: %v, want %v", text, page, scoreIDs(got.Rows), want)
			}
			for _, at := range got.Report.Shards {
				if at.Rows > int64(page[0]+page[1]) || at.Queries != 1 {
					t.Errorf("%s, %v: shard %+v", text, page, at)
				}
			}
		}
	}
	if got, err := dal.Scatter[Score](g.Store).Find(g.b); err != nil || len(got.Rows) != 0 {
		t.Errorf("another tenant: %d rows, %v", len(got.Rows), err)
	}
}

// Pages forward and backward give each row once, in the order of one database; ties and NULLs too. The last page costs a shard what the first does.
func TestScatter_S40_Pages(t *testing.T) {
	t.Parallel()
	g, one := newScores(t, 120)
	for text, order := range orders() {
		q := dal.Scatter[Score](g.Store).OrderBy(order...).Limit(7)
		var all, back []int64
		at, last := "", ""
		for n := 0; ; n++ {
			got, err := q.Page(g.a, at)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, scoreIDs(got.Rows)...)
			for _, shard := range got.Report.Shards {
				if shard.Rows > 8 || shard.Queries != 1 {
					t.Errorf("%s, page %d: shard %+v, want at most 8 rows in one query", text, n, shard)
				}
			}
			last = got.Prev
			if at = got.Next; at == "" {
				break
			}
		}
		if want := idsOf(t, one, "SELECT id FROM scores ORDER BY "+text); !slices.Equal(all, want) {
			t.Errorf("%s: %v, want %v", text, all, want)
		}
		for at = last; at != ""; {
			got, err := q.Page(g.a, at)
			if err != nil {
				t.Fatal(err)
			}
			back = append(scoreIDs(got.Rows), back...)
			at = got.Prev
		}
		if want := all[:len(back)]; len(back) < 112 || !slices.Equal(back, want) {
			t.Errorf("%s backward: %v, want %v", text, back, want)
		}
	}
}

func TestScatter_S32_OffsetOverShards(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	for i, points := range []int64{100, 95, 90, 85, 80, 75} {
		row := Item{PlayerID: g.keyOn(t, g.shards[i%2]), Qty: points}
		if err := g.On(g.a, dal.Key("player", row.PlayerID)).Create(&row).Error; err != nil {
			t.Fatal(err)
		}
	}
	got, err := dal.Scatter[Item](g.Store).OrderBy(dal.Desc("qty")).Limit(2).Offset(1).Find(g.a)
	if err != nil || len(got.Rows) != 2 || got.Rows[0].Qty != 95 || got.Rows[1].Qty != 90 {
		t.Errorf("%+v, %v, want 95, 90", got.Rows, err)
	}
}

// What cannot be answered is refused before anything is sent, by errors that say what to do.
func TestScatter_S39_S41_Refused(t *testing.T) {
	t.Parallel()
	g, _ := newScores(t, 3)
	q := dal.Scatter[Score](g.Store)
	find := func(q dal.Query[Score]) error { _, err := q.Find(g.a); return err }
	page := func(q dal.Query[Score], ctx context.Context, at string) error { _, err := q.Page(ctx, at); return err }
	deep := find(q.OrderBy(dal.Asc("points")).Offset(1_000_000))
	if g.refusedAs(t, deep, dal.ErrOffset); !strings.Contains(deep.Error(), "Query.Page") {
		t.Errorf("%v does not name the keyset call", deep)
	}
	g.refusedAs(t, find(q.Limit(1).Offset(1)), dal.ErrShape)
	g.refusedAs(t, find(q.Limit(0)), dal.ErrShape)
	g.refusedAs(t, find(q.OrderBy(dal.Asc("nothing"))), dal.ErrShape)
	g.refusedAs(t, find(q.OrderBy(dal.Asc("points"), dal.Desc("points"))), dal.ErrShape)
	g.refusedAs(t, page(q.OrderBy(dal.Asc("points")).Offset(1), g.a, ""), dal.ErrShape)
	g.refusedAs(t, page(q, t.Context(), ""), tenant.ErrNoTenant)
	if got, err := q.Limit(1).Find(g.a); err != nil || len(got.Rows) != 1 {
		t.Errorf("any row: %v, %v", got.Rows, err)
	}
	first, err := q.OrderBy(dal.Asc("points")).Limit(1).Page(g.a, "")
	if err != nil || first.Next == "" {
		t.Fatal(err)
	}
	g.rec.take()
	g.refusedAs(t, page(q.OrderBy(dal.Asc("points")), g.b, first.Next), dal.ErrCursor)
	g.refusedAs(t, page(q.OrderBy(dal.Desc("points")), g.a, first.Next), dal.ErrCursor)
	g.refusedAs(t, page(q.OrderBy(dal.Asc("points")), g.a, first.Next[1:]), dal.ErrCursor)
}

// Rows that a move has left on shards which do not own them are dropped and counted, and the limit is filled all the same.
func TestScatter_S43_RowsOnBothShards(t *testing.T) {
	t.Parallel()
	g, one := newScores(t, 60)
	copied := 0
	for _, from := range g.shards {
		rows, err := one.Query("SELECT id, player_id, points FROM scores")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id, player, points any
			if err := rows.Scan(&id, &player, &points); err != nil {
				t.Fatal(err)
			}
			res, err := g.raw[from].Exec("INSERT OR IGNORE INTO scores (tenant_id, id, player_id, points) VALUES ('a', ?, ?, ?)", id, player, points)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := res.RowsAffected()
			copied += int(n)
		}
		_ = rows.Close()
	}
	if copied != 120 {
		t.Fatalf("%d rows were placed by hand, want two copies of each of 60", copied)
	}
	q := dal.Scatter[Score](g.Store).OrderBy(dal.Desc("points"))
	got, err := q.Limit(10).Find(g.a)
	if err != nil {
		t.Fatal(err)
	}
	if want := idsOf(t, one, "SELECT id FROM scores ORDER BY points DESC, id LIMIT 10"); !slices.Equal(scoreIDs(got.Rows), want) {
		t.Errorf("%v, want %v", scoreIDs(got.Rows), want)
	}
	if all, err := q.Find(g.a); err != nil || len(all.Rows) != 60 || all.Report.Dropped() != 120 || all.Report.Rows() != 180 {
		t.Errorf("%d rows, %d dropped of %d, %v", len(all.Rows), all.Report.Dropped(), all.Report.Rows(), err)
	}
}

// A column whose collation folds case is refused by name, before a row is read.
func TestScatter_S36_FoldingCollation(t *testing.T) {
	t.Parallel()
	g := newGameOn(t, []shardrouter.ShardID{"s1", "s2"}, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Tenant[Score]("player", "player_id"))
	})
	for _, db := range g.raw {
		if _, err := db.Exec(strings.Replace(scoresDDL, "title TEXT", "title TEXT COLLATE NOCASE", 1)); err != nil {
			t.Fatal(err)
		}
	}
	var order *dal.OrderError
	if _, err := dal.Scatter[Score](g.Store).OrderBy(dal.Asc("title")).Find(g.a); !errors.As(err, &order) || order.Column != "title" || !strings.Contains(order.Problem, "nocase") {
		t.Errorf("an order by a folding collation: %v", err)
	}
}

// Each condition holds beside the others and the cursor, whatever blanks stand around its OR.
func TestScatter_S23_ConditionsAreKeptTogether(t *testing.T) {
	t.Parallel()
	g, one := newScores(t, 80)
	for _, or := range []string{"points > ?\nOR title = ?", "points > ? or\ttitle = ?", "(points > ?)OR(title = ?)"} {
		both := dal.Scatter[Score](g.Store).Where(or, 1, "a").Where("at IS NOT NULL\nOR id < 0")
		q := both.OrderBy(dal.Desc("points")).Limit(3)
		var all []int64
		for at := ""; ; {
			got, err := q.Page(g.a, at)
			if err != nil {
				t.Fatalf("%q: %v", or, err)
			}
			all = append(all, scoreIDs(got.Rows)...)
			if at = got.Next; at == "" {
				break
			}
		}
		want := idsOf(t, one, "SELECT id FROM scores WHERE (points > 1 OR title = 'a') AND (at IS NOT NULL OR id < 0) ORDER BY points DESC, id")
		if len(want) < 7 || !slices.Equal(all, want) {
			t.Errorf("%q: %v, want %v", or, all, want)
		}
		sum, err := both.Aggregate(g.a, dal.Count())
		if err != nil || textOf(sum.Rows)[0] != fmt.Sprint(len(want)) {
			t.Errorf("%q: count %v, %v, want %d", or, textOf(sum.Rows), err, len(want))
		}
	}
}

// Times that were written in several zones are one moment each to Go and texts to SQLite: they are ordered by the moment, or refused; no row is lost.
func TestScatter_S40_TimesOfSeveralZones(t *testing.T) {
	t.Parallel()
	g, _ := newScores(t, 0)
	base := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var scores []Score
	for i := range 24 {
		at := base.Add(time.Duration(i) * 20 * time.Minute).In(time.FixedZone("", (i%5-2)*3600*3))
		scores = append(scores, Score{Model: dal.Model{ID: int64(i + 1)}, PlayerID: fmt.Sprint("p", i), At: &at})
	}
	if _, err := dal.CreateEach(g.a, g.Store, scores); err != nil {
		t.Fatal(err)
	}
	for limit := 1; limit < 6; limit++ {
		q := dal.Scatter[Score](g.Store).OrderBy(dal.Asc("at")).Limit(limit)
		var all []int64
		for at := ""; ; {
			got, err := q.Page(g.a, at)
			if err != nil {
				t.Fatalf("pages of %d, after %v: %v", limit, all, err)
			}
			all = append(all, scoreIDs(got.Rows)...)
			if at = got.Next; at == "" {
				break
			}
		}
		if len(all) != 24 || !slices.IsSorted(all) {
			t.Errorf("pages of %d: %v, want 1 to 24", limit, all)
		}
	}
}

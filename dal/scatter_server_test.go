package dal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

// scoresSet is the table of [Score] on servers, with texts that are ordered by their bytes.
func scoresSet() schema.Set {
	file := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("-- +goose Up\n" + text + ";\n-- +goose Down\nDROP TABLE IF EXISTS scores;\n")}
	}
	return schema.Set{Name: "scores", FS: fstest.MapFS{
		"sqlite/0001_scores.sql": file(strings.Replace(scoresDDL, "CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1)),
		"mysql/0001_scores.sql": file("CREATE TABLE IF NOT EXISTS scores (tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, " +
			"player_id VARBINARY(255) NOT NULL, points BIGINT, at DATETIME(6), title VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin, " +
			"created_at DATETIME(6), updated_at DATETIME(6), PRIMARY KEY (tenant_id, id))"),
		"postgres/0001_scores.sql": file("CREATE TABLE IF NOT EXISTS scores (tenant_id VARCHAR(63) COLLATE \"C\" NOT NULL, id BIGINT NOT NULL, " +
			"player_id BYTEA NOT NULL, points BIGINT, at TIMESTAMPTZ(6), title VARCHAR(100) COLLATE \"C\", " +
			"created_at TIMESTAMPTZ(6), updated_at TIMESTAMPTZ(6), PRIMARY KEY (tenant_id, id))"),
	}}
}

// newServerScores is a store on two servers of one kind with rows of two tenants, and one SQLite database that holds the rows of each.
func newServerScores(t *testing.T, server string, ids ...tenant.ID) (*dal.Store, *sql.DB) {
	t.Helper()
	cfg := dal.Config{Cluster: clusters()[server](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Score]("player", "player_id")}}
	if _, err := schema.Up(t.Context(), cfg, scoresSet()); err != nil {
		t.Fatal(err)
	}
	store, err := dal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	one, err := sql.Open("sqlite", "file:"+t.TempDir()+"/one.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() })
	if _, err := one.Exec(scoresDDL); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(6, 7))
	base := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for _, id := range ids {
		var scores []Score
		for i := range 60 {
			s := Score{Model: dal.Model{ID: int64(i + 1)}, PlayerID: fmt.Sprint("p", random.IntN(20)+1)}
			var points, at, title any
			if n := int64(random.IntN(7)); n > 0 {
				n -= 4
				s.Points, points = &n, n
			}
			if n := random.IntN(5); n > 0 {
				when := base.Add(time.Duration(n) * 1500 * time.Millisecond)
				s.At, at = &when, when.Format("2006-01-02 15:04:05.000")
			}
			if n := random.IntN(7); n > 0 {
				text := []string{"", "a", "A", "é", "z ", "z"}[n-1]
				s.Title, title = &text, text
			}
			scores = append(scores, s)
			if _, err := one.Exec("INSERT INTO scores (tenant_id, id, player_id, points, at, title) VALUES (?, ?, ?, ?, ?, ?)", string(id), s.ID, s.PlayerID, points, at, title); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := dal.CreateEach(tenant.NewContext(t.Context(), id), store, scores); err != nil {
			t.Fatal(err)
		}
	}
	return store, one
}

// On servers, for a shared tenant and one with schemas of its own: pages of every order, with ties and NULLs, forward and backward, are those of one database.
func TestScatter_S40_Servers(t *testing.T) {
	t.Parallel()
	for _, server := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			ids := []tenant.ID{"shared-a", "schema-c"}
			store, one := newServerScores(t, server, ids...)
			for _, id := range ids {
				ctx := tenant.NewContext(t.Context(), id)
				for text, order := range orders() {
					q := dal.Scatter[Score](store).OrderBy(order...).Limit(7)
					var all, back []int64
					at, last := "", ""
					for {
						got, err := q.Page(ctx, at)
						if err != nil {
							t.Fatalf("%s: %v", text, err)
						}
						all, last = append(all, scoreIDs(got.Rows)...), got.Prev
						if at = got.Next; at == "" {
							break
						}
					}
					want := idsOf(t, one, "SELECT id FROM scores WHERE tenant_id = ? ORDER BY "+text, string(id))
					if !slices.Equal(all, want) {
						t.Errorf("%s: %v, want %v", text, all, want)
					}
					for at = last; at != ""; {
						got, err := q.Page(ctx, at)
						if err != nil {
							t.Fatalf("%s backward: %v", text, err)
						}
						back, at = append(scoreIDs(got.Rows), back...), got.Prev
					}
					if want := all[:56]; !slices.Equal(back, want) {
						t.Errorf("%s backward: %v, want %v", text, back, want)
					}
				}
			}
		})
	}
}

// On servers: the groups and aggregates of one database, and sums beyond 64 bits.
func TestAggregate_S34_S38_Servers(t *testing.T) {
	t.Parallel()
	for _, server := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			store, one := newServerScores(t, server, "shared-a")
			ctx := tenant.NewContext(t.Context(), "shared-a")
			aggregates := []dal.Aggregation{dal.Count(), dal.Sum("points"), dal.Avg("points"), dal.Min("points"), dal.Max("title"), dal.CountDistinct("points"), dal.SumDistinct("points"), dal.CountDistinct("player_id")}
			const list = "COUNT(*), SUM(points), PRINTF('%.4f', AVG(points)), MIN(points), MAX(title), COUNT(DISTINCT points), SUM(DISTINCT points), COUNT(DISTINCT player_id)"
			for order, o := range map[string]dal.Order{"SUM(points) DESC, title": dal.Desc("SUM(points)"), "title DESC": dal.Desc("title")} {
				got, err := dal.Scatter[Score](store).Limit(5).OrderBy(o).GroupBy("title").Aggregate(ctx, aggregates...)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Join(asked(t, one, "SELECT title, "+list+" FROM scores GROUP BY title ORDER BY "+order+" LIMIT 5"), "\n")
				if text := strings.Join(textOf(got.Rows), "\n"); text != want {
					t.Errorf("%s:\n%s\nwant\n%s", order, text, want)
				}
			}
			first, err := dal.Scatter[Score](store).Aggregate(ctx, dal.Min("at"), dal.Max("at"))
			if err != nil {
				t.Fatal(err)
			}
			base := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
			if got, want := first.Rows[0].Values, []any{base.Add(1500 * time.Millisecond), base.Add(6 * time.Second)}; !slices.Equal(got, want) {
				t.Errorf("the first and last time: %v, want %v", got, want)
			}
			none, err := dal.Scatter[Score](store).Where("points > ?", 100).Aggregate(ctx, aggregates...)
			if text := textOf(none.Rows); err != nil || len(text) != 1 || text[0] != "0|NULL|NULL|NULL|NULL|0|NULL|0" {
				t.Errorf("of no rows: %q, %v", text, err)
			}
			huge := int64(math.MaxInt64)
			rich := []Score{{Model: dal.Model{ID: 100}, PlayerID: "p1", Points: &huge}, {Model: dal.Model{ID: 101}, PlayerID: "p1", Points: &huge}, {Model: dal.Model{ID: 102}, PlayerID: "p2", Points: &huge}}
			if _, err := dal.CreateEach(ctx, store, rich); err != nil {
				t.Fatal(err)
			}
			got, err := dal.Scatter[Score](store).Where("points > ?", 1000).Aggregate(ctx, dal.Sum("points"), dal.SumDistinct("points"))
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint(new(big.Int).Mul(big.NewInt(3), big.NewInt(math.MaxInt64)), "|", huge); textOf(got.Rows)[0] != want {
				t.Errorf("%v, want %s", textOf(got.Rows), want)
			}
		})
	}
}

// On servers: a column in the default collation, which folds case or goes by a language, is refused by name for an order, a group and a greatest value.
func TestScatter_S36_Servers(t *testing.T) {
	t.Parallel()
	for _, server := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: clusters()[server](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			up(t, cfg)
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
			q := dal.Scatter[Hero](store)
			_, ordered := q.OrderBy(dal.Asc("name")).Find(ctx)
			_, grouped := q.GroupBy("name").Aggregate(ctx, dal.Count())
			_, greatest := q.Aggregate(ctx, dal.Max("name"))
			for what, err := range map[string]error{"an order": ordered, "a group": grouped, "a greatest value": greatest} {
				var order *dal.OrderError
				if !errors.As(err, &order) || order.Table != "heros" || order.Column != "name" || !strings.Contains(order.Problem, "collation") {
					t.Errorf("%s by the column: %v, want a refusal of its collation", what, err)
				}
			}
		})
	}
}

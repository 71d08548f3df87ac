package board_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
	"github.com/tenantdal/tenantdal/testutil"
)

// onEach runs f over three shards of SQLite, MariaDB and PostgreSQL.
func onEach(t *testing.T, f func(t *testing.T, cluster dal.Cluster)) {
	t.Helper()
	for name, cluster := range map[string]func(*testing.T) dal.Cluster{
		"sqlite":   func(t *testing.T) dal.Cluster { return dal.SQLiteCluster(t.TempDir(), 3) },
		"mariadb":  func(t *testing.T) dal.Cluster { return mariaCluster(t, testutil.SharedMariaDB(t, 3)) },
		"postgres": func(t *testing.T) dal.Cluster { return postgresCluster(t, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, cluster(t))
		})
	}
}

// opened returns a board of the context's tenant.
func opened(t *testing.T, ctx context.Context, store *dal.Store, cfg board.Config) *board.Board {
	t.Helper()
	b, err := board.Open(ctx, store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The neighbours of a player, with ranks, are those of the whole board's order, whatever groups and shards they lie on.
func TestBoard_Around(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cluster dal.Cluster) {
		store, a, b := open(t, cluster)
		cfg := board.Config{Name: "arena", Groups: 16, Keep: 50}
		mine, theirs := opened(t, a, store, cfg), opened(t, b, store, cfg)
		want, random := oracle{}, rand.New(rand.NewPCG(3, 4))
		for i := range 120 {
			e := board.Entry{Player: fmt.Sprint("p", i), Score: random.Int64N(9) - 4, At: time.UnixMicro(random.Int64N(4)).UTC()}
			want.update(board.Set, e)
			if err := errors.Join(mine.UpdateAt(a, e.Player, e.Score, e.At), theirs.UpdateAt(b, e.Player+"x", e.Score, e.At)); err != nil {
				t.Fatal(err)
			}
		}
		all := want.sorted()
		for _, c := range []struct{ at, n int }{{0, 5}, {3, 5}, {60, 1}, {60, 50}, {115, 10}, {119, 3}} {
			got, err := mine.Around(a, all[c.at].Player, c.n)
			var expected []board.Ranked
			for i := max(0, c.at-c.n); i <= min(len(all)-1, c.at+c.n); i++ {
				expected = append(expected, board.Ranked{Rank: int64(i + 1), Entry: all[i]})
			}
			if err != nil || !reflect.DeepEqual(got, expected) {
				t.Errorf("%d around rank %d: %v, %v, want %v", c.n, c.at+1, got, err, expected)
			}
		}
		var deep *board.TooDeepError
		if _, err := mine.Around(a, "p1", 51); !errors.As(err, &deep) {
			t.Errorf("51 around: %v", err)
		}
		var bad *board.ConfigError
		if _, err := mine.Around(a, "p1", 0); !errors.As(err, &bad) {
			t.Errorf("0 around: %v", err)
		}
		if _, err := mine.Around(a, "p1x", 1); !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Errorf("around another tenant's player: %v", err)
		}
		var other *board.TenantError
		if _, err := mine.Around(b, "p1x", 1); !errors.As(err, &other) {
			t.Errorf("under another tenant: %v", err)
		}
	})
}

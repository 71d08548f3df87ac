package board_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"sort"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/testutil"
)

// world is a store over three SQLite shards with the tenants a and b.
func world(t *testing.T) (store *dal.Store, a, b context.Context) {
	t.Helper()
	return open(t, dal.SQLiteCluster(t.TempDir(), 3))
}

func open(t *testing.T, cluster dal.Cluster) (store *dal.Store, a, b context.Context) {
	t.Helper()
	registry, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable}, tenant.Tenant{ID: "b", Model: tenant.SharedTable})
	if err != nil {
		t.Fatal(err)
	}
	cfg := dal.Config{Cluster: cluster, Tables: board.Tables(), Registry: registry}
	if _, err := schema.Up(t.Context(), cfg, schema.Board()); err != nil {
		t.Fatal(err)
	}
	if store, err = dal.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return store, tenant.NewContext(t.Context(), "a"), tenant.NewContext(t.Context(), "b")
}

// oracle is a board in memory.
type oracle map[string]board.Entry

func (o oracle) update(mode board.Mode, e board.Entry) {
	old, ok := o[e.Player]
	switch {
	case ok && mode == board.Best && (old.Score > e.Score || old.Score == e.Score && !old.At.After(e.At)):
		return
	case ok && mode == board.Add:
		e.Score += old.Score
	}
	o[e.Player] = e
}

func (o oracle) sorted() (all []board.Entry) {
	for _, e := range o {
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool {
		x, y := all[i], all[j]
		if x.Score != y.Score {
			return x.Score > y.Score
		}
		if !x.At.Equal(y.At) {
			return x.At.Before(y.At)
		}
		return x.Player < y.Player
	})
	return all
}

// 128 groups keep 100 each: the top 100 is exact, with ties in a total order, 101 is refused, and so is another number of groups.
func TestBoard_S45_TopAndRank(t *testing.T) {
	t.Parallel()
	topAndRank(t, world)
}

func TestBoard_S45_TopAndRankOnMariaDB(t *testing.T) {
	t.Parallel()
	servers := testutil.SharedMariaDB(t, 3)
	topAndRank(t, func(t *testing.T) (*dal.Store, context.Context, context.Context) {
		t.Helper()
		return open(t, mariaCluster(t, servers))
	})
}

func TestBoard_S45_TopAndRankOnPostgres(t *testing.T) {
	t.Parallel()
	topAndRank(t, func(t *testing.T) (*dal.Store, context.Context, context.Context) {
		t.Helper()
		return open(t, postgresCluster(t, 3))
	})
}

func topAndRank(t *testing.T, setUp func(*testing.T) (store *dal.Store, a, b context.Context)) {
	t.Helper()
	for name, mode := range map[string]board.Mode{"set": board.Set, "best": board.Best, "add": board.Add} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, a, b := setUp(t)
			cfg := board.Config{Name: "arena", Groups: 128, Keep: 100, Mode: mode}
			mine, err := board.Open(a, store, cfg)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := board.Open(b, store, cfg)
			if err != nil {
				t.Fatal(err)
			}
			want, random := oracle{}, rand.New(rand.NewPCG(1, 2))
			for range 400 {
				e := board.Entry{Player: fmt.Sprint("p\\\xff", random.IntN(250)), Score: random.Int64N(20), At: time.UnixMicro(random.Int64N(5)).UTC()}
				want.update(mode, e)
				if err := mine.UpdateAt(a, e.Player, e.Score, e.At); err != nil {
					t.Fatal(err)
				}
			}
			if err := theirs.UpdateAt(b, "p\\\xff1", 1000, time.UnixMicro(9)); err != nil {
				t.Fatal(err)
			}
			all := want.sorted()
			for _, n := range []int{1, 10, 100} {
				top, err := mine.Top(a, n)
				if err != nil || !reflect.DeepEqual(top, all[:n]) {
					t.Fatalf("top %d: %v, %v, want %v", n, top, err, all[:n])
				}
			}
			for _, i := range []int{0, 1, 57, len(all) - 1} {
				if rank, e, err := mine.Rank(a, all[i].Player); err != nil || rank != int64(i+1) || e != all[i] {
					t.Errorf("rank of %s: %d, %v, %v, want %d, %v", all[i].Player, rank, e, err, i+1, all[i])
				}
			}
			if top, err := theirs.Top(b, 100); err != nil || len(top) != 1 || top[0].Score != 1000 {
				t.Errorf("the other tenant's board: %v, %v, want its own p1 alone", top, err)
			}
			var deep *board.TooDeepError
			if _, err := mine.Top(a, 101); !errors.As(err, &deep) || deep.N != 101 || deep.Keep != 100 {
				t.Errorf("top 101: %v", err)
			}
			for _, other := range []board.Config{{Name: "arena", Groups: 64, Keep: 100}, {Name: "arena", Groups: 128, Keep: 50}} {
				var changed *board.GroupsChangedError
				if _, err := board.Open(a, store, other); !errors.As(err, &changed) || changed.Groups != 128 || changed.Keep != 100 {
					t.Errorf("opened with %+v: %v", other, err)
				}
			}
			if _, err := board.Open(a, store, cfg); err != nil {
				t.Errorf("opened again: %v", err)
			}
		})
	}
}

func TestBoard_Refusals(t *testing.T) {
	t.Parallel()
	store, a, b := world(t)
	var bad *board.ConfigError
	for _, cfg := range []board.Config{{}, {Name: "a/b"}, {Name: "x", Groups: -1}, {Name: "x", Keep: -1}, {Name: "x", Mode: 9}} {
		if _, err := board.Open(a, store, cfg); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	arena, err := board.Open(a, store, board.Config{Name: "arena"})
	if err != nil {
		t.Fatal(err)
	}
	var other *board.TenantError
	if err := arena.Update(b, "p", 1); !errors.As(err, &other) || other.Opened != "a" || other.Used != "b" {
		t.Errorf("used under another tenant: %v", err)
	}
	if err := arena.Update(t.Context(), "p", 1); !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("used without a tenant: %v", err)
	}
	if err := arena.Update(a, "", 1); !errors.As(err, &bad) {
		t.Errorf("no player: %v", err)
	}
	if _, err := arena.Top(a, 0); !errors.As(err, &bad) {
		t.Errorf("top 0: %v", err)
	}
	if _, _, err := arena.Rank(a, "nobody"); !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("rank of nobody: %v", err)
	}
}

func mariaCluster(t *testing.T, servers []*testutil.MariaDB) dal.Cluster {
	t.Helper()
	shards := make([]dal.Endpoint, len(servers))
	for i, s := range servers {
		db := testutil.NewDatabase(t, s)
		shards[i] = dal.Endpoint{Network: db.Net, Address: db.Addr, User: db.User, Password: db.Passwd, Database: "x" + db.DBName[2:14]}
	}
	c := dal.MySQLCluster(shards...)
	c.LoginSecret = "of the tests"
	return c
}

func postgresCluster(t *testing.T, n int) dal.Cluster {
	t.Helper()
	shards := make([]dal.Endpoint, n)
	for i, s := range testutil.SharedPostgres(t, n) {
		shards[i] = testutil.NewPostgresDatabase(t, s)
	}
	c := dal.PostgresCluster(shards...)
	c.LoginSecret = "of the tests"
	return c
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(testutil.StopSharedMariaDB(), testutil.StopSharedPostgres()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

package dal_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/bwmarrin/snowflake"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// Three processes make 100,000 ids each at once, and three that take their places do. Inside a process time is monotonic; a process whose clock stands
// 50 ms behind the one before it cannot make its ids again, since it is given a number that was not in use: no two of all the ids are equal.
func TestIDs_S29_ProcessesAndClocks(t *testing.T) {
	t.Parallel()
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable})
	if err != nil {
		t.Fatal(err)
	}
	cfg := dal.Config{Cluster: dal.SQLiteCluster(t.TempDir(), 1), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
	up(t, cfg)
	const processes, each = 3, 100_000
	generation := func() (ids []int64, nodes []int64) {
		stores := make([]*dal.Store, processes)
		for i := range stores {
			if stores[i], err = dal.Open(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
		made := make([][]int64, processes)
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				for range each {
					id, err := s.NextID(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					made[i] = append(made[i], id)
				}
			})
		}
		wg.Wait()
		for i, s := range stores {
			if !slices.IsSorted(made[i]) {
				t.Errorf("process %d: its ids are not in order", i)
			}
			for _, id := range made[i] {
				if node := snowflake.ParseInt64(id).Node(); node != snowflake.ParseInt64(made[i][0]).Node() {
					t.Fatalf("process %d: ids of the nodes %d and %d", i, node, snowflake.ParseInt64(made[i][0]).Node())
				}
			}
			ids = append(ids, made[i]...)
			nodes = append(nodes, snowflake.ParseInt64(made[i][0]).Node())
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		return ids, nodes
	}
	ids, nodes := generation()
	more, others := generation()
	ids, nodes = append(ids, more...), append(nodes, others...)
	slices.Sort(nodes)
	if distinct := slices.Compact(slices.Clone(nodes)); len(distinct) != 2*processes {
		t.Errorf("nodes %v: a number was used again at once", nodes)
	}
	slices.Sort(ids)
	if len(ids) != 2*processes*each || len(slices.Compact(ids)) != 2*processes*each {
		t.Errorf("%d ids, some of them equal", len(ids))
	}
}

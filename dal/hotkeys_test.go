package dal_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
)

// A key that has a fifth of the statements among a thousand others is found, with bounds that hold.
func TestHotKeys_B7_SkewedLoad(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	if got := g.HotKeys("s1"); len(got.Statements)+len(got.Time) != 0 {
		t.Fatalf("before any statement: %+v", got)
	}
	const writers, each, reads = 4, 200, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if i%4 == 0 {
					if err := g.player(g.a).Find(&[]Item{}).Error; err != nil {
						t.Error(err)
					}
				}
				other := dal.Key("player", fmt.Sprintf("w%d-%d", w, i))
				if err := g.On(g.b, other).Find(&[]Item{}).Error; err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	err := g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		for range reads {
			if err := tx.Find(&[]Item{}).Error; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const sent = writers*each/4 + reads
	got := g.HotKeys(g.shardOf(t))
	if len(got.Statements) == 0 || len(got.Statements) > 256 || len(got.Time) == 0 || len(got.Time) > 256 {
		t.Fatalf("%d and %d keys", len(got.Statements), len(got.Time))
	}
	seven := dal.HotKey{Tenant: "a", Keyspace: "player", Key: "7"}
	if top := got.Statements[0]; top.HotKey != seven || top.Least > sent || top.Most < sent || top.Most > 2*sent {
		t.Errorf("busiest %+v, want %+v with %d statements", top, seven, sent)
	}
	found := false
	for _, k := range got.Time {
		if k.HotKey == seven {
			found = true
			if k.Least <= 0 || k.Most < k.Least {
				t.Errorf("time %+v", k)
			}
		}
	}
	if !found {
		t.Errorf("%v is not among the keys by time", seven)
	}
	r, err := g.Route(g.a, dal.Key("player", "7"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range g.HotKeys(g.other(t)).Statements {
		if k.HotKey == seven {
			t.Errorf("%v is counted on %s, it lives on %s", seven, g.other(t), r.Place.Shard)
		}
	}
	if got := g.HotKeys(shardrouter.ShardID("nowhere")); len(got.Statements) != 0 {
		t.Errorf("a shard that is not there: %+v", got)
	}
}

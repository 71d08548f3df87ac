package dal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/snowflake"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// newLease returns ids whose lease ends in left, over a control database that cannot be reached.
func newLease(t *testing.T, left time.Duration) *ids {
	t.Helper()
	node, err := snowflake.NewNode(1)
	if err != nil {
		t.Fatal(err)
	}
	pool := wire.NewPool(refuser{errors.New("away")}, wire.Options{Shard: "control"})
	t.Cleanup(func() { _ = pool.Close() })
	return &ids{node: node, turn: make(chan struct{}, 1), control: control.New(pool, "sqlite"), lease: control.NodeLease{ID: 1}, until: time.Now().Add(left)}
}

func TestIDs_LeaseIsRenewedWithoutHoldingAnybodyUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left time.Duration
		fine bool
	}{
		"fresh":       {leaseTTL, true},
		"half over":   {leaseTTL/2 - time.Second, true}, // the failed renewal is nobody's error yet
		"nearly over": {leaseTTL / 20, false},
		"over":        {-time.Second, false},
	} {
		g := newLease(t, c.left)
		for range 3 {
			if err := g.keep(t.Context()); (err == nil) != c.fine {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	g := newLease(t, leaseTTL/2-time.Second)
	g.turn <- struct{}{} // somebody renews
	if err := g.keep(t.Context()); err != nil {
		t.Errorf("beside a renewal: %v", err)
	}
	g = newLease(t, -time.Second)
	g.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.keep(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a renewal that is needed: %v", err)
	}
}

func TestIDs_FailedRenewalsArePaused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		pool := wire.NewPool(refuser{errors.New("away")}, wire.Options{})
		defer func() { _ = pool.Close() }()
		node, err := snowflake.NewNode(1)
		if err != nil {
			t.Fatal(err)
		}
		g := &ids{node: node, turn: make(chan struct{}, 1), control: control.New(pool, "sqlite"), until: time.Now().Add(leaseTTL/2 - time.Second)}
		before := g.retry
		for range 100 {
			if err := g.keep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if g.retry != before {
				tries++
				before = g.retry
			}
			time.Sleep(100 * time.Millisecond) // of fake time: ten seconds in all
		}
		if tries < 2 || tries > 3 {
			t.Errorf("%d renewals in ten seconds, want one every %v", tries, renewPause)
		}
	})
}

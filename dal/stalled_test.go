package dal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// gateway stands before a server and hands everything on, until it is told to keep the server's answers back.
type gateway struct {
	net.Listener
	to [2]string // network and address of the server

	mu    sync.Mutex // guards both below
	open  *sync.Cond
	stops bool
	ends  []net.Conn
}

// newGateway listens until the test ends.
func newGateway(t *testing.T, network, address string) *gateway {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{Listener: l, to: [2]string{network, address}}
	g.open = sync.NewCond(&g.mu)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
			if err != nil {
				_ = client.Close()
				continue
			}
			g.mu.Lock()
			g.ends = append(g.ends, client, server)
			g.mu.Unlock()
			wg.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			wg.Go(func() { _, _ = io.Copy(heldBack{client, g}, server); _ = client.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.stall(false)
		g.mu.Lock()
		for _, c := range g.ends {
			_ = c.Close()
		}
		g.mu.Unlock()
		wg.Wait()
	})
	return g
}

// stall keeps the answers back, or lets them through.
func (g *gateway) stall(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops = on
	g.open.Broadcast()
}

// heldBack writes once the gateway is open.
type heldBack struct {
	io.Writer
	g *gateway
}

// Write waits.
func (w heldBack) Write(p []byte) (int, error) {
	w.g.mu.Lock()
	for w.g.stops {
		w.g.open.Wait()
	}
	w.g.mu.Unlock()
	return w.Writer.Write(p)
}

// A server of two takes statements and answers none: its deadline ends it and the error names it, rows of the other come if they were asked for, flagged, and
// its connections are given back.
func TestScatter_S44_ServerStalls(t *testing.T) {
	t.Parallel()
	cluster := clusters()["mariadb"](t)
	second := &cluster.Shards[1]
	gate := newGateway(t, second.Network, second.Address)
	second.Network, second.Address = "tcp", gate.Addr().String()
	cfg := dal.Config{Cluster: cluster, Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
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
	var heroes []Hero
	for i := range 40 {
		heroes = append(heroes, Hero{Model: dal.Model{ID: int64(i + 1)}, PlayerID: fmt.Sprint("p", i), Name: "n"})
	}
	placed, err := dal.CreateEach(ctx, store, heroes)
	if err != nil || len(placed) != 2 {
		t.Fatalf("rows of %d shards, %v", len(placed), err)
	}
	spec := dal.FanOutSpec{Timeout: time.Second}
	find := func(partial bool) (dal.ScatterResult[Hero], error) {
		spec.Partial = partial
		return dal.Scatter[Hero](store).With(spec).OrderBy(dal.Asc("player_id")).Find(ctx)
	}
	spec.Timeout = time.Minute
	if got, err := find(false); err != nil || len(got.Rows) != 40 {
		t.Fatalf("%d rows, %v", len(got.Rows), err)
	}
	spec.Timeout = time.Second
	gate.stall(true)
	for _, partial := range []bool{true, false} {
		got, err := find(partial)
		var fan *dal.FanOutError
		if !errors.As(err, &fan) || len(fan.Failed) != 1 || !errors.Is(fan.Failed["s2"], context.DeadlineExceeded) || len(fan.Done) != 1 || fan.Done[0] != "s1" {
			t.Fatalf("partial %t: %v, want s2 alone to have failed by its deadline", partial, err)
		}
		want := 0
		if partial {
			want = len(placed[0].Rows)
		}
		if len(got.Rows) != want || got.Report.Shards[1].Err == nil {
			t.Errorf("partial %t: %d rows, report %+v, want %d rows of s1", partial, len(got.Rows), got.Report, want)
		}
	}
	gate.stall(false)
	spec.Timeout = time.Minute
	if got, err := find(false); err != nil || len(got.Rows) != 40 {
		t.Errorf("once it answers: %d rows, %v", len(got.Rows), err)
	}
	deadline, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, id := range store.Topology().Shards() {
		for n, _ := store.Permits("shared-a", id); n != 0; n, _ = store.Permits("shared-a", id) {
			if deadline.Err() != nil {
				t.Fatalf("shard %s: %d connections are still held", id, n)
			}
		}
	}
}

package dal

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// source is a control database whose topology and failures a test sets.
type source struct {
	mu    sync.Mutex
	top   *shardrouter.Topology
	err   error
	reads int // of the whole topology
	looks int
}

func (s *source) Epoch(context.Context) (shardrouter.Epoch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.err != nil {
		return 0, s.err
	}
	return s.top.Epoch(), nil
}

func (s *source) Topology(context.Context) (*shardrouter.Topology, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.top, s.err
}

func (s *source) set(top *shardrouter.Topology, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.top, s.err = top, err
}

func (s *source) counts() (looks, reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.reads
}

// epochs is a topology of the epoch in which player 7 is pinned to s1 or, where the epoch is even, to s2.
func epochs(tb testing.TB, epoch shardrouter.Epoch) *shardrouter.Topology {
	tb.Helper()
	pin := shardrouter.Pin{Tenant: "a", Keyspace: "player", Key: "7", Shard: "s1"}
	if epoch%2 == 0 {
		pin.Shard = "s2"
	}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
		Epoch: epoch, Shards: []shardrouter.ShardID{"s1", "s2"},
		Keyspaces: []shardrouter.Keyspace{{Name: "player"}}, Pins: []shardrouter.Pin{pin},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return top
}

// watched is a store over a source. Its places cannot be opened: nothing here needs one.
func watched(tb testing.TB, src *source, cfg Config) *Store {
	tb.Helper()
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable})
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Registry = reg
	s, err := OpenFixed(cfg, Fixed{Topology: src.top, Dialect: SQLite, Connect: func(Place) (driver.Connector, error) { return nil, errors.New("no database") }})
	if err != nil {
		tb.Fatal(err)
	}
	s.watch.source = src
	return s
}

func TestStart_PollsAndReadsOnlyWhatIsNewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &source{top: epochs(t, 5)}
		s := watched(t, src, Config{})
		ctx := tenant.NewContext(t.Context(), "a")
		if err := errors.Join(s.Start(ctx), s.Start(ctx)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(3500 * time.Millisecond)
		if looks, reads := src.counts(); reads != 0 || looks != 4 {
			t.Errorf("unchanged for 3.5s: %d looks and %d reads, want 4 and 0", looks, reads)
		}
		src.set(epochs(t, 6), nil)
		time.Sleep(time.Second) // one poll
		synctest.Wait()
		r, err := s.Route(ctx, Key("player", 7))
		if _, reads := src.counts(); err != nil || r.Epoch != 6 || r.Place.Shard != "s2" || reads != 1 {
			t.Errorf("one poll after the change: %+v, %v, %d reads", r, err, reads)
		}
		src.set(epochs(t, 4), nil) // the control database was set back
		time.Sleep(time.Second)
		synctest.Wait()
		var older *OlderTopologyError
		h := s.Health()
		if s.Topology().Epoch() != 6 || !errors.As(h.Err, &older) || older.Have != 6 || older.Found != 4 || h.Age < time.Second {
			t.Errorf("set back: epoch %d, health %+v", s.Topology().Epoch(), h)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Health().Watching || !errors.Is(s.Start(ctx), ErrClosed) {
			t.Error("the watch outlives the store")
		}
	})
}

func TestStart_NoticeIsFasterThanThePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &source{top: epochs(t, 1)}
		n := notify.NewLocal()
		s := watched(t, src, Config{Notifier: n, TopologyPoll: time.Hour, TopologyMaxAge: 2 * time.Hour})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		src.set(epochs(t, 2), nil)
		if err := n.Publish(t.Context(), TopologyTopic, []byte("2")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := s.Topology().Epoch(); got != 2 {
			t.Errorf("epoch %d after the notice, want 2", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHealth_StaleTopologyRefusesWritesIfConfigured(t *testing.T) {
	t.Parallel()
	for _, mode := range []StaleWrites{AllowStaleWrites, RefuseStaleWrites} {
		synctest.Test(t, func(t *testing.T) {
			src := &source{top: epochs(t, 1)}
			s := watched(t, src, Config{StaleWrites: mode})
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			src.set(src.top, errors.New("gone"))
			time.Sleep(30 * time.Second)
			if h := s.Health(); h.Stale || h.Err == nil || s.fresh() != nil {
				t.Errorf("at the limit: %+v, %v", h, s.fresh())
			}
			time.Sleep(time.Second)
			h, err := s.Health(), s.fresh()
			refuses := mode == RefuseStaleWrites
			if !h.Stale || !h.Watching || h.WritesRefused != refuses || errors.Is(err, ErrStaleTopology) != refuses || err != nil && !SafeToRetry(err) {
				t.Errorf("mode %d, above the limit: %+v, %v", mode, h, err)
			}
			b := &binding{store: s}
			b.standing.until = s.clock() + time.Hour
			if got := b.serves(t.Context(), true); errors.Is(got, ErrStaleTopology) != refuses {
				t.Errorf("mode %d: a write: %v", mode, got)
			}
			if got := b.serves(t.Context(), false); got != nil {
				t.Errorf("mode %d: a read: %v", mode, got)
			}
			src.set(src.top, nil)
			time.Sleep(time.Second)
			synctest.Wait()
			if h := s.Health(); h.Stale || h.Err != nil || s.fresh() != nil {
				t.Errorf("back again: %+v", h)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A watch that is told to end says nothing of the topology: the last look stays the one before.
func TestStart_EndOfTheWatchIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		src := &source{top: epochs(t, 1)}
		s := watched(t, src, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		src.set(src.top, context.Canceled) // as a database answers whose caller has gone
		cancel()
		s.look(ctx)
		synctest.Wait()
		if h := s.Health(); h.Err != nil || h.Watching {
			t.Errorf("health %+v, want no error of a watch that has ended", h)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHealth_ShardThatIsNotConfiguredOrDown(t *testing.T) {
	t.Parallel()
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
		Epoch: 1, Shards: []shardrouter.ShardID{"s1", "s2", "s3"},
		Keyspaces: []shardrouter.Keyspace{{Name: "player"}}, Info: map[shardrouter.ShardID]shardrouter.ShardInfo{"s2": {State: shardrouter.Down}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := watched(t, &source{top: top}, Config{})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.endpoints = map[shardrouter.ShardID]bool{"s1": true, "s2": true}
	want := map[shardrouter.ShardID]error{"s2": shardrouter.ErrShardDown, "s3": ErrUnknownShard}
	ctx := tenant.NewContext(t.Context(), "a")
	seen := map[shardrouter.ShardID]bool{}
	for i := 1; i < 100; i++ {
		owner, err := top.Owner("player", "a", shardrouter.Key(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		seen[owner] = true
		if _, err := s.Route(ctx, Key("player", i)); !errors.Is(err, want[owner]) || (err == nil) != (want[owner] == nil) {
			t.Errorf("key %d of shard %s: %v, want %v", i, owner, err, want[owner])
		}
	}
	if len(seen) != 3 {
		t.Fatalf("the keys are on %v only", seen)
	}
	h := s.Health()
	if len(h.Shards) != 3 || h.Shards[0].Missing || h.Shards[1].Info.State != shardrouter.Down || !h.Shards[2].Missing {
		t.Errorf("health %+v", h.Shards)
	}
}

func TestTopology_S19_ReadersSeeWholeEpochs(t *testing.T) {
	t.Parallel()
	const flips, readers = 1000, 8
	tops := make([]*shardrouter.Topology, flips+1)
	for i := range tops {
		tops[i] = epochs(t, shardrouter.Epoch(i+1))
	}
	src := &source{top: tops[0]}
	s := watched(t, src, Config{})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ctx := tenant.NewContext(t.Context(), "a")
	var ended atomic.Bool
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			var last shardrouter.Epoch
			for !ended.Load() {
				r, err := s.Route(ctx, Key("player", 7))
				want := shardrouter.ShardID("s1")
				if r.Epoch%2 == 0 {
					want = "s2"
				}
				if err != nil || r.Place.Shard != want || r.Epoch < last {
					t.Errorf("epoch %d after %d: shard %s, want %s, %v", r.Epoch, last, r.Place.Shard, want, err)
					return
				}
				last = r.Epoch
			}
		})
	}
	for _, top := range tops[1:] {
		src.set(top, nil)
		var lookers sync.WaitGroup
		for range 2 { // who is late brings an older one
			lookers.Go(func() {
				var older *OlderTopologyError
				if err := s.confirm(ctx); err != nil && !errors.As(err, &older) {
					t.Error(err)
				}
			})
		}
		s.adopt(tops[0])
		lookers.Wait()
		if got := s.Topology().Epoch(); got != top.Epoch() {
			t.Fatalf("epoch %d, want %d", got, top.Epoch())
		}
	}
	ended.Store(true)
	wg.Wait()
}

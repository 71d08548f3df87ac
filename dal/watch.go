package dal

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/shardrouter"
)

// TopologyTopic is the topic on which a change of the topology is told to other processes. The payload is the new epoch in decimal, and nobody relies on
// it: who receives a notice looks into the control database.
const TopologyTopic = "tdal.topology"

// topologySource is where the topology is read: the control database.
type topologySource interface {
	// Epoch returns the present epoch: one row.
	Epoch(ctx context.Context) (shardrouter.Epoch, error)
	// Topology returns the whole topology as of one moment.
	Topology(ctx context.Context) (*shardrouter.Topology, error)
}

// watcher keeps the store's snapshot of the topology up to date, from Start to Close.
type watcher struct {
	source  topologySource // nil for a fixed store, whose topology never changes
	running atomic.Bool
	// confirmed is when a look began that found the snapshot up to date, on the store's clock.
	confirmed atomic.Int64

	mu  sync.Mutex // guards err
	err error      // of the last look; nil after one that succeeded
}

// Start begins to watch the topology: it asks for the epoch every Config.TopologyPoll, and sooner when Config.Notifier tells of a change, and reads the
// whole topology when the epoch has grown. The watch ends with ctx or [Store.Close], which waits for it. Without Start the store keeps the topology that
// it was opened with, but for tenants whose shards that lacks.
//
// A snapshot is only ever replaced by a whole newer one. A look that fails is logged and told by [Store.Health]; the next one comes after the usual time.
// A Notifier that cannot be reached is tried again after each look.
//
// It also calls [Store.Beat] every Config.TopologyPoll, which costs nothing without replicas.
//
// A second Start while the watch runs does nothing. It returns [ErrClosed] for a closed store.
func (s *Store) Start(ctx context.Context) error {
	if !s.begin() {
		return ErrClosed
	}
	if s.watch.source == nil || !s.watch.running.CompareAndSwap(false, true) {
		s.openers.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(s.life, cancel)
	go func() {
		defer s.openers.Done()
		defer s.watch.running.Store(false)
		defer cancel()
		defer unhook()
		// Apart from the watch: a shard that hangs must not let the topology grow stale.
		var beating sync.WaitGroup
		defer beating.Wait()
		beating.Go(func() { s.keepBeating(ctx) })
		s.watchTopology(ctx)
	}()
	return nil
}

// keepBeating writes heartbeats until ctx ends. A failure is logged once, until one succeeds: without heartbeats reads go to the primary.
func (s *Store) keepBeating(ctx context.Context) {
	tick := time.NewTicker(s.cfg.TopologyPoll)
	defer tick.Stop()
	failed := false
	for {
		err := s.beatWithin(ctx, s.cfg.TopologyMaxAge)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			s.log.Warn("dal: no heartbeat, replicas are not used once their lag is unknown", "err", err)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// beatWithin writes the heartbeats of one moment.
func (s *Store) beatWithin(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.Beat(ctx)
}

// watchTopology looks until ctx ends.
func (s *Store) watchTopology(ctx context.Context) {
	told := make(chan struct{}, 1)
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	tick := time.NewTicker(s.cfg.TopologyPoll)
	defer tick.Stop()
	for {
		if stop == nil && s.cfg.Notifier != nil {
			stop = s.subscribe(ctx, told)
		}
		// After the subscription: what changed before it is seen by this look.
		s.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-told:
		}
	}
}

// subscribe lets notices of the topology wake the watch. It returns nil where the carrier cannot be reached.
func (s *Store) subscribe(ctx context.Context, told chan<- struct{}) (stop func()) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.TopologyPoll)
	defer cancel()
	stop, err := s.cfg.Notifier.Subscribe(ctx, TopologyTopic, func(notify.Notice) {
		select {
		case told <- struct{}{}:
		default: // a look that has not begun yet will see this change too
		}
	})
	if err != nil {
		s.log.Warn("dal: no notices of the topology, polling only", "err", err)
		return nil
	}
	return stop
}

// look compares the epochs once, and replaces the snapshot if it is older.
func (s *Store) look(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, s.cfg.TopologyMaxAge)
	defer cancel()
	err := s.confirm(within)
	if ctx.Err() != nil { // the watch ends: that says nothing of the topology
		return
	}
	s.watch.mu.Lock()
	before := s.watch.err
	s.watch.err = err
	s.watch.mu.Unlock()
	switch {
	case err != nil && before == nil:
		s.log.Warn("dal: the topology cannot be confirmed", "epoch", uint64(s.snapshot().Epoch()), "err", err)
	case err == nil && before != nil:
		s.log.Info("dal: the topology is confirmed again", "epoch", uint64(s.snapshot().Epoch()))
	}
}

// confirm looks once. It notes when the look began: what was true then may have changed since.
func (s *Store) confirm(ctx context.Context) error {
	began := s.clock()
	epoch, err := s.watch.source.Epoch(ctx)
	if err != nil {
		return err
	}
	have := s.snapshot().Epoch()
	if epoch < have {
		return &OlderTopologyError{Have: have, Found: epoch}
	}
	if epoch > have {
		t, err := s.watch.source.Topology(ctx)
		if err != nil {
			return err
		}
		if t.Epoch() < epoch {
			return &OlderTopologyError{Have: epoch, Found: t.Epoch()}
		}
		s.adopt(t)
	}
	s.confirmed(began)
	return nil
}

// adopt replaces the snapshot unless it is as new. It is the one place that does.
func (s *Store) adopt(t *shardrouter.Topology) {
	for {
		old := s.topology.Load()
		if old != nil && old.Epoch() >= t.Epoch() {
			return
		}
		if s.topology.CompareAndSwap(old, t) {
			if old != nil {
				s.log.Info("dal: new topology", "from", uint64(old.Epoch()), "epoch", uint64(t.Epoch()))
			}
			if lacking := s.lacking(t); len(lacking) > 0 {
				s.log.Warn("dal: the topology has shards that Config.Cluster lacks", "epoch", uint64(t.Epoch()), slog.Any("shards", lacking))
			}
			return
		}
	}
}

// confirmed notes a look that began at the given time; an older one changes nothing.
func (s *Store) confirmed(began time.Duration) {
	for {
		old := s.watch.confirmed.Load()
		if old >= int64(began) || s.watch.confirmed.CompareAndSwap(old, int64(began)) {
			return
		}
	}
}

// lacking lists the default shards of the topology that Config.Cluster has no endpoint for.
func (s *Store) lacking(t *shardrouter.Topology) []shardrouter.ShardID {
	if s.endpoints == nil {
		return nil
	}
	return slices.DeleteFunc(t.Shards(), func(id shardrouter.ShardID) bool { return s.endpoints[id] })
}

// age is for how long the snapshot could not be confirmed. It is zero for a fixed store.
func (s *Store) age() time.Duration {
	if s.watch.source == nil {
		return 0
	}
	return s.clock() - time.Duration(s.watch.confirmed.Load())
}

// fresh returns why nothing may be written now: the snapshot could not be confirmed for too long, and the configuration refuses writes then.
func (s *Store) fresh() error {
	if s.cfg.StaleWrites == AllowStaleWrites {
		return nil
	}
	if age := s.age(); age > s.cfg.TopologyMaxAge {
		return &StaleTopologyError{Epoch: s.snapshot().Epoch(), Age: age, Limit: s.cfg.TopologyMaxAge}
	}
	return nil
}

// Topology returns the store's present snapshot of the topology, which never changes itself: a call that asks it several questions sees one epoch. It
// performs no I/O.
func (s *Store) Topology() *shardrouter.Topology { return s.snapshot() }

// reach returns why a default shard cannot be asked: it is down, or Config.Cluster lacks it.
func (s *Store) reach(t *shardrouter.Topology, id shardrouter.ShardID, own bool) error {
	if err := t.Check(id); err != nil {
		return fmt.Errorf("dal: %w", err)
	}
	if !own && s.endpoints != nil && !s.endpoints[id] {
		return &ShardNotConfiguredError{Shard: id, Epoch: t.Epoch()}
	}
	return nil
}

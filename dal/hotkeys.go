package dal

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

const (
	hotStripes = 8  // of a shard: a key is always counted in the same one, so that two keys seldom meet at its lock
	hotWatched = 32 // keys that a stripe watches, by each measure
)

// HotKey names a shard key of a tenant.
type HotKey struct {
	Tenant   tenant.ID
	Keyspace string
	Key      shardrouter.Key
}

// HotCount is how many statements were sent for a key: at least Least and at most Most.
type HotCount struct {
	HotKey
	Least, Most uint64
}

// HotTime is how long a key's statements and transactions held connections: at least Least and at most Most.
type HotTime struct {
	HotKey
	Least, Most time.Duration
}

// HotKeys are the busiest keys of a shard as this process saw them since the store was opened, the busiest by Most first.
type HotKeys struct {
	Statements []HotCount
	Time       []HotTime
}

// HotKeys returns the busiest shard keys of a shard, by statements and by the time for which they held connections: what a pin would move to a shard of its
// own. It counts the handles of [Store.On] and [Store.Transaction], statements that failed too, and is empty for a shard that was not used. It does no I/O.
//
// Memory is bounded, 256 keys a shard and measure, and so is the error: a key with more than a share of 1/32 of its stripe is always listed, and no bound is
// further from the truth than that share.
//
// Source: Space-Saving, Metwally, Agrawal, El Abbadi, Efficient computation of frequent and top-k elements in data streams, 2005.
func (s *Store) HotKeys(shard shardrouter.ShardID) HotKeys {
	var out HotKeys
	found, ok := s.hot.shards.Load(shard)
	if !ok {
		return out
	}
	h := found.(*hotShard)
	for i := range h.stripes {
		st := &h.stripes[i]
		st.mu.Lock()
		for _, e := range st.count.entries {
			out.Statements = append(out.Statements, HotCount{e.key, e.most - e.over, e.most})
		}
		for _, e := range st.time.entries {
			out.Time = append(out.Time, HotTime{e.key, time.Duration(e.most - e.over), time.Duration(e.most)}) //nolint:gosec // nanoseconds of a process's life
		}
		st.mu.Unlock()
	}
	slices.SortFunc(out.Statements, func(a, b HotCount) int {
		return cmp.Or(cmp.Compare(b.Most, a.Most), compareHot(a.HotKey, b.HotKey))
	})
	slices.SortFunc(out.Time, func(a, b HotTime) int { return cmp.Or(cmp.Compare(b.Most, a.Most), compareHot(a.HotKey, b.HotKey)) })
	return out
}

func compareHot(a, b HotKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Keyspace, b.Keyspace), cmp.Compare(a.Key, b.Key))
}

// hot holds what was seen of each shard.
type hot struct {
	seed   maphash.Seed
	shards sync.Map // shardrouter.ShardID -> *hotShard
}

func newHot() hot { return hot{seed: maphash.MakeSeed()} }

type hotShard struct {
	stripes [hotStripes]hotStripe
}

type hotStripe struct {
	mu          sync.Mutex // guards both sketches, for a look-up and an addition
	count, time sketch
	_           [64]byte // the next stripe's lock is on a line of its own
}

// note counts statements, and the time of a connection. A handle without a key, of a system scope or beside gorm, is nobody's.
func (h *hot) note(b *binding, statements int, held time.Duration) {
	if b.bypass != nil || b.key == "" {
		return
	}
	shard := b.db.place.Shard
	found, ok := h.shards.Load(shard)
	if !ok {
		found, _ = h.shards.LoadOrStore(shard, &hotShard{})
	}
	key := HotKey{b.tenant.ID, b.keyspace, b.key}
	st := &found.(*hotShard).stripes[maphash.Comparable(h.seed, key)%hotStripes]
	st.mu.Lock()
	defer st.mu.Unlock()
	if statements > 0 {
		st.count.add(key, uint64(statements))
	}
	if held > 0 {
		st.time.add(key, uint64(held))
	}
}

// sketch is a Space-Saving summary of weighted keys. Its zero value is empty.
type sketch struct {
	entries []hotEntry
	at      map[HotKey]int
}

// hotEntry is a watched key: its weight is at most most, and at least most - over.
type hotEntry struct {
	key        HotKey
	most, over uint64
}

// add counts a key. Where all places are taken the lightest key gives up its own, and the newcomer inherits its weight as what it may have too much.
func (s *sketch) add(key HotKey, weight uint64) {
	if i, ok := s.at[key]; ok {
		s.entries[i].most += weight
		return
	}
	if len(s.entries) < hotWatched {
		if s.at == nil {
			s.at = make(map[HotKey]int, hotWatched)
		}
		s.at[key] = len(s.entries)
		s.entries = append(s.entries, hotEntry{key: key, most: weight})
		return
	}
	lightest := 0
	for i := range s.entries {
		if s.entries[i].most < s.entries[lightest].most {
			lightest = i
		}
	}
	e := &s.entries[lightest]
	delete(s.at, e.key)
	s.at[key] = lightest
	*e = hotEntry{key: key, most: e.most + weight, over: e.most}
}

package cache

import "sync/atomic"

// Stats counts what a cache did since it was made.
type Stats struct {
	Hits, Misses uint64 // of Get between Start and Close, outside of transactions
	Loads        uint64 // statements sent
	Drops        uint64 // of a tenant's rows, or of everybody's, by writes and notices
	LostNotices  uint64 // that could not be published
}

type counters struct{ hits, misses, loads, drops, lost atomic.Uint64 }

// Stats returns the counts.
func (c *Cache[M, ID]) Stats() Stats {
	n := &c.count
	return Stats{Hits: n.hits.Load(), Misses: n.misses.Load(), Loads: n.loads.Load(), Drops: n.drops.Load(), LostNotices: n.lost.Load()}
}

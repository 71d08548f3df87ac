package board

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// DefaultSegmentsAge is when cached counts are too old, if [Config.SegmentsAge] is zero.
const DefaultSegmentsAge = time.Minute

// segmentsPerShard bounds the segments of a shard: at most twice as many. A segment has one score, or less than 2/1024 of the shard's entries.
const segmentsPerShard = 1024

// Bounds says where a player stands: Least <= rank <= Most.
type Bounds struct {
	Least, Most int64
	CountedAt   time.Time     // when the counting began; to the microsecond, in UTC
	Age         time.Duration // of CountedAt by the board's clock; not negative
}

// segment counts the entries with scores from Low to High.
type segment struct {
	High, Low, Count int64
}

// segments are the counts of a board, as of a time. They are immutable.
type segments struct {
	shards    [][]segment // of each shard, the highest scores first
	countedAt time.Time
}

// segmentCache holds the counts of the one tenant whose board it is.
type segmentCache struct {
	turn    chan struct{} // has room for the caller that counts
	mu      sync.Mutex    // guards what follows
	current *segments     // nil before the first count
}

// RankApprox returns bounds on the rank that the player's entry, as it is now, has among the entries that were counted, and that entry. The bounds are
// exact: when the counts were made, so many entries were better than it, at least Least-1 and at most Most-1. (Each shard was counted in one statement, the
// shards one after another or at once, not in one snapshot. A former entry of the player itself counts if it was better.)
// Most-Least is at most the number of entries with the player's score, or a 512th of the board.
//
// It costs one statement at the player's group while the counts, held in this Board, are younger than [Config.SegmentsAge]; else it counts first, as
// [Board.CountSegments]. Of several callers one counts, and the others wait for it, each until its own context ends.
//
// It returns [gorm.ErrRecordNotFound] for a player without an entry, else the errors of [Board.Rank].
func (b *Board) RankApprox(ctx context.Context, player string) (Bounds, Entry, error) {
	if err := b.checkUse(ctx, player); err != nil {
		return Bounds{}, Entry{}, err
	}
	own, err := b.ownNow(ctx, player)
	if err != nil {
		return Bounds{}, Entry{}, fmt.Errorf("board: rank in %q: %w", b.cfg.Name, err)
	}
	counts, err := b.counted(ctx, b.cfg.SegmentsAge)
	if err != nil {
		return Bounds{}, Entry{}, err
	}
	r := Bounds{Least: 1, Most: 1, CountedAt: counts.countedAt, Age: max(0, b.cfg.Now().Sub(counts.countedAt))}
	for _, shard := range counts.shards {
		least, most := above(shard, own.Score)
		r.Least += least
		r.Most += most
	}
	return r, own.entry(), nil
}

// ownNow reads the player's row by one statement, as long as its group is open: then the layout is the board's.
func (b *Board) ownNow(ctx context.Context, player string) (entry, error) {
	for {
		l := b.layout.Load()
		own, state, err := b.own(ctx, l, player)
		if state == open || err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
			return own, err
		}
		changed, aerr := b.adopt(ctx, l)
		if aerr != nil {
			return entry{}, aerr
		}
		if !changed {
			return own, err
		}
	}
}

// above returns how many entries of a shard are better than one with that score, at least and at most.
func above(shard []segment, score int64) (least, most int64) {
	for _, s := range shard {
		if s.High < score {
			break
		}
		most += s.Count
		if s.Low > score {
			least += s.Count
		}
	}
	return least, most
}

// CountSegments counts the scores anew, whatever the age of the counts, by one statement for each shard that owns a group: it reads the whole index and one row
// for each score. Counts that fail leave the old ones.
//
// It returns [*TenantError], and the errors of [dal.Store.FanOut].
func (b *Board) CountSegments(ctx context.Context) error {
	if err := b.checkTenant(ctx); err != nil {
		return err
	}
	_, err := b.counted(ctx, -1)
	return err
}

// counted returns counts that are not older than age, and new ones for a negative age.
func (b *Board) counted(ctx context.Context, age time.Duration) (*segments, error) {
	c := &b.segments
	young := func() *segments {
		c.mu.Lock()
		defer c.mu.Unlock()
		if age < 0 || c.current == nil || b.cfg.Now().Sub(c.current.countedAt) > age {
			return nil
		}
		return c.current
	}
	if s := young(); s != nil {
		return s, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s := young(); s != nil { // another caller counted meanwhile
		return s, nil
	}
	var s *segments
	err := b.current(ctx, func(l *layout) error {
		var err error
		s, err = b.count(ctx, l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("board: count segments of %q: %w", b.cfg.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = s
	return s, nil
}

// inUse reports whether anybody has asked for the counts.
func (c *segmentCache) inUse() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil
}

func (b *Board) count(ctx context.Context, l *layout) (*segments, error) {
	s := &segments{countedAt: time.UnixMicro(b.cfg.Now().UnixMicro()).UTC()}
	var mu sync.Mutex // guards s.shards
	err := b.each(ctx, l, "board count", func(at *dal.ShardRead, db *gorm.DB) error {
		rows, err := db.Model(&entry{}).Select("score, COUNT(*)").Group("score").Order("score DESC").Rows()
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // its error is that of Err
		shard := gatherer{n: segmentsPerShard}
		for rows.Next() {
			var score, count int64
			if err := rows.Scan(&score, &count); err != nil {
				return err
			}
			at.Rows++
			shard.add(score, count)
		}
		mu.Lock()
		defer mu.Unlock()
		s.shards = append(s.shards, shard.all)
		return rows.Err()
	})
	return s, err
}

// gatherer makes at most 2n segments of scores, which are added from the highest to the lowest: its memory does not grow with them. A segment of several
// scores has at most room entries. room is doubled only when there are more than 2n segments, of which any two neighbours have more than room entries
// together; so it stays below 2/n of all entries.
type gatherer struct {
	n    int
	room int64 // zero before the first doubling
	all  []segment
}

func (g *gatherer) add(score, count int64) {
	g.join(segment{High: score, Low: score, Count: count})
	for len(g.all) > 2*g.n {
		g.room = max(2, min(g.room, math.MaxInt64/2)*2)
		old := g.all
		g.all = g.all[:0]
		for _, s := range old {
			g.join(s)
		}
	}
}

// join adds a segment, to the last one if there is room for both.
func (g *gatherer) join(next segment) {
	if n := len(g.all); n > 0 && g.all[n-1].Count+next.Count <= g.room {
		g.all[n-1].Low = next.Low
		g.all[n-1].Count += next.Count
		return
	}
	g.all = append(g.all, next)
}

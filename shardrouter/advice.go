package shardrouter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Load is what was measured of one shard.
type Load struct {
	Shard            ShardID
	Rows             int64
	Bytes            int64
	QueriesPerSecond float64
	Connections      int
}

// AdvicePolicy says how much a shard carries, and how careful the advice is. A limit that is zero is not watched.
type AdvicePolicy struct {
	// MaxRows, MaxBytes, MaxQueriesPerSecond and MaxConnections are what one shard carries.
	MaxRows             int64
	MaxBytes            int64
	MaxQueriesPerSecond float64
	MaxConnections      int

	// High is the part of a limit from which a shard counts as loaded, 0 to 1. Zero means 0.75.
	High float64

	// Low is the part below which a loaded shard counts as relieved, less than High: between the two it stays what it was.
	// Zero means 0.6.
	Low float64

	// Hold is how long a shard must have been loaded without relief. Zero means 15 minutes.
	Hold time.Duration

	// CoolDown is how long after a proposal, answered or not, no other is made. Zero means 24 hours.
	CoolDown time.Duration
}

// WithDefaults returns a copy with every zero field filled, but for the limits.
func (p AdvicePolicy) WithDefaults() AdvicePolicy {
	if p.High == 0 {
		p.High = 0.75
	}
	if p.Low == 0 {
		p.Low = 0.6
	}
	if p.Hold == 0 {
		p.Hold = 15 * time.Minute
	}
	if p.CoolDown == 0 {
		p.CoolDown = 24 * time.Hour
	}
	return p
}

// Validate reports every mistake at once, each with its field's name.
func (p AdvicePolicy) Validate() error {
	p = p.WithDefaults()
	var errs []error
	if p.MaxRows < 0 || p.MaxBytes < 0 || !(p.MaxQueriesPerSecond >= 0) || p.MaxConnections < 0 {
		errs = append(errs, errors.New("shardrouter: AdvicePolicy: a limit is negative: use 0 for one that is not watched"))
	}
	if p.MaxRows == 0 && p.MaxBytes == 0 && p.MaxQueriesPerSecond == 0 && p.MaxConnections == 0 {
		errs = append(errs, errors.New("shardrouter: AdvicePolicy: no limit is set: there is nothing to watch"))
	}
	if !(0 < p.Low && p.Low < p.High && p.High <= 1) {
		errs = append(errs, fmt.Errorf("shardrouter: AdvicePolicy: Low is %v and High %v: want 0 < Low < High <= 1", p.Low, p.High))
	}
	if p.Hold < 0 || p.CoolDown < 0 {
		errs = append(errs, errors.New("shardrouter: AdvicePolicy: Hold or CoolDown is negative"))
	}
	return errors.Join(errs...)
}

// Proposal is the advice to add one shard. Nothing follows from it by itself: a person says yes, by a change of the
// topology.
type Proposal struct {
	// At is when it was made.
	At time.Time

	// Loaded are the shards that were loaded for so long, sorted.
	Loaded []ShardID

	// Reason names the greatest of the loads, in words.
	Reason string

	// Shards is the number of shards there are; one more is proposed.
	Shards int

	// Share is the part of the keys that a new shard of the same weight takes, 1/(Shards+1). Rows, Bytes and Slots are that
	// part of what was measured and of the 16384 slots: an estimate of what moves.
	Share float64
	Rows  int64
	Bytes int64
	Slots int
}

// Advisor tells when to grow, from measures that are given to it: it measures nothing itself and reads no clock. It is
// careful: a load must last ([AdvicePolicy].Hold), a load that swings around the threshold counts as one (High and Low),
// and after a proposal there is none for long (CoolDown). Advice to shrink is never given.
//
// It is not safe for concurrent use.
type Advisor struct {
	policy AdvicePolicy
	loaded map[ShardID]loaded
	round  int       // how often Observe was asked
	last   time.Time // of the last proposal; zero for none
}

// loaded is since when a shard is, without the time in which it was not measured.
type loaded struct {
	since time.Time
	at    time.Time // when it was measured last
	round int       // and in which round
}

// NewAdvisor returns an advisor. The errors are those of [AdvicePolicy.Validate].
func NewAdvisor(p AdvicePolicy) (*Advisor, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Advisor{policy: p.WithDefaults(), loaded: make(map[ShardID]loaded)}, nil
}

// Observe takes the loads of all shards as of one moment, each shard once, and returns a proposal or nil. A shard that is
// missing was not measured: it neither counts as relieved nor as loaded for longer.
//
// It returns [ErrNoShards], [*InvalidShardError] and [*DuplicateShardError] for a list that is none, and an error for a
// time before that of the last proposal; the advisor is unchanged then.
func (a *Advisor) Observe(now time.Time, loads []Load) (*Proposal, error) {
	ids := make([]ShardID, len(loads))
	for i, l := range loads {
		ids[i] = l.Shard
	}
	if _, errs := sortShards(ids); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if !a.last.IsZero() && now.Before(a.last) {
		return nil, fmt.Errorf("shardrouter: advice for %s, before the last proposal", now.Format(time.RFC3339))
	}
	a.round++
	var worst float64
	p := &Proposal{At: now, Shards: len(loads), Share: 1 / float64(len(loads)+1)}
	for _, l := range loads {
		part, what := a.policy.part(l)
		at, is := a.loaded[l.Shard]
		switch {
		case part < a.policy.Low:
			is = false
		case is && at.round < a.round-1:
			at.since = at.since.Add(now.Sub(at.at))
		case part >= a.policy.High && !is:
			at, is = loaded{since: now}, true
		}
		if !is {
			delete(a.loaded, l.Shard)
		} else {
			at.at, at.round = now, a.round
			a.loaded[l.Shard] = at
		}
		if is && now.Sub(at.since) >= a.policy.Hold {
			p.Loaded = append(p.Loaded, l.Shard)
			if part > worst {
				worst = part
				p.Reason = fmt.Sprintf("shard %s: %s at %.0f %% of the limit, loaded for %s", l.Shard, what, 100*part, now.Sub(at.since))
			}
		}
		p.Rows += l.Rows
		p.Bytes += l.Bytes
	}
	if len(p.Loaded) == 0 || !a.last.IsZero() && now.Sub(a.last) < a.policy.CoolDown {
		return nil, nil
	}
	a.last = now
	slices.SortFunc(p.Loaded, func(x, y ShardID) int { return strings.Compare(string(x), string(y)) })
	p.Rows, p.Bytes = int64(float64(p.Rows)*p.Share), int64(float64(p.Bytes)*p.Share)
	p.Slots = SlotCount / (len(loads) + 1)
	return p, nil
}

// part returns the greatest part of a limit that the shard uses, and of which.
func (p AdvicePolicy) part(l Load) (part float64, what string) {
	for _, m := range []struct {
		what       string
		have, most float64
	}{
		{"rows", float64(l.Rows), float64(p.MaxRows)},
		{"bytes", float64(l.Bytes), float64(p.MaxBytes)},
		{"queries per second", l.QueriesPerSecond, p.MaxQueriesPerSecond},
		{"connections", float64(l.Connections), float64(p.MaxConnections)},
	} {
		if m.most > 0 && m.have/m.most > part {
			part, what = m.have/m.most, m.what
		}
	}
	return part, what
}

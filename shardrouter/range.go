package shardrouter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Range places a key by its order: the ranges lie side by side, and each is of one shard. It is for logs and times, which
// grow at one end and are read by range; ranges are split as they grow. It is not a [Strategy], since a key that is no
// integer or time has no place in it.
//
// A Range is immutable and safe for concurrent use. A lookup does not allocate.
type Range struct {
	kind   RangeKind
	shards []ShardID // sorted, distinct
	splits []Split   // ascending; the first is from ""
	from   []rangeKey
}

// rangeKey is a key as it is ordered.
type rangeKey struct {
	sign int    // -1 before 0
	n    uint64 // of integers and times
	text string
}

func (a rangeKey) compare(b rangeKey) int {
	return cmp.Or(cmp.Compare(a.sign, b.sign), cmp.Compare(a.n, b.n), strings.Compare(a.text, b.text))
}

// NewRange returns the ranges of these splits, in any order, whose Tenant fields it does not read. Several ranges may be
// of one shard, and a shard may have none. No splits at all means one range, on the first shard by id.
//
// It returns, all joined into one error: [ErrNoShards], [*InvalidShardError], [*DuplicateShardError],
// [*UnknownShardError], a [*RangeKeyError] for a split at a key that is not of the kind or a kind that does not exist,
// and a [*SplitError] for two splits at one key, and for a lack of the range from "".
func NewRange(shards []ShardID, kind RangeKind, splits []Split) (*Range, error) {
	sorted, errs := sortShards(shards)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if kind == "" {
		kind = IntRange
	}
	if len(splits) == 0 {
		splits = []Split{{Shard: sorted[0]}}
	}
	r := &Range{kind: kind, shards: sorted}
	type bound struct {
		Split
		at rangeKey
	}
	var bounds []bound
	for _, s := range splits {
		b := bound{Split: s}
		if _, known := slices.BinarySearch(sorted, s.Shard); !known {
			errs = append(errs, &UnknownShardError{Shard: s.Shard})
		}
		if s.From == "" {
			b.at = rangeKey{sign: -2}
		} else if at, err := r.parse(s.From); err != nil {
			errs = append(errs, err)
		} else {
			b.at = at
		}
		bounds = append(bounds, b)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(bounds, func(a, b bound) int { return a.at.compare(b.at) })
	if bounds[0].From != "" {
		return nil, &SplitError{At: bounds[0].From, Reason: "the first range is to begin at \"\""}
	}
	for i, b := range bounds {
		if i > 0 && b.at == bounds[i-1].at {
			return nil, &SplitError{At: b.From, Reason: "two ranges begin there"}
		}
		r.splits, r.from = append(r.splits, b.Split), append(r.from, b.at)
	}
	return r, nil
}

func (r *Range) parse(key Key) (rangeKey, error) {
	switch r.kind {
	case IntRange:
		if n, err := strconv.ParseInt(string(key), 10, 64); err == nil {
			return signed(n), nil
		}
		if n, err := strconv.ParseUint(string(key), 10, 64); err == nil {
			return rangeKey{n: n}, nil
		}
	case TimeRange:
		at, err := time.Parse(time.RFC3339Nano, string(key))
		if err != nil {
			at, err = time.Parse(time.DateOnly, string(key))
		}
		if err == nil && 1678 <= at.Year() && at.Year() <= 2261 {
			return signed(at.UnixNano()), nil
		}
	case TextRange:
		return rangeKey{text: string(key)}, nil
	}
	return rangeKey{}, &RangeKeyError{Kind: r.kind, Key: Key(clip(string(key)))}
}

// signed keeps the order of negative numbers in n, which wraps around.
func signed(n int64) rangeKey {
	if n < 0 {
		return rangeKey{sign: -1, n: uint64(n)}
	}
	return rangeKey{n: uint64(n)}
}

// Name returns "range".
func (r *Range) Name() string { return StrategyRange }

// Kind returns what the keys are.
func (r *Range) Kind() RangeKind { return r.kind }

// Shards returns the shards, sorted, as a copy.
func (r *Range) Shards() []ShardID { return slices.Clone(r.shards) }

// Splits returns the ranges in ascending order, as a copy.
func (r *Range) Splits() []Split { return slices.Clone(r.splits) }

// Owner returns the shard that owns the key; a key that is not of the kind is a [*RangeKeyError].
func (r *Range) Owner(key Key) (ShardID, error) {
	at, err := r.parse(key)
	if err != nil {
		return "", err
	}
	return r.splits[r.find(at)].Shard, nil
}

// find returns the index of the last range that begins at or before the key.
func (r *Range) find(at rangeKey) int {
	lo, hi := 0, len(r.from)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); r.from[mid].compare(at) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Split returns new ranges where the one that holds the key at is cut there: what lies before stays, what begins with at
// goes to the shard, which may be the same. Nothing else changes.
//
// It returns a [*RangeKeyError], an [*UnknownShardError], and a [*SplitError] if a range begins at that key already.
func (r *Range) Split(at Key, shard ShardID) (*Range, error) {
	return NewRange(r.shards, r.kind, append(r.Splits(), Split{From: at, Shard: shard}))
}

// Merge returns new ranges where the one that begins at the key is joined to the one before, whose shard has both.
// Nothing else changes.
//
// It returns a [*RangeKeyError], and a [*SplitError] if no range begins at that key, or the first does.
func (r *Range) Merge(at Key) (*Range, error) {
	b, err := r.parse(at)
	if err != nil {
		return nil, err
	}
	i := r.find(b)
	if i == 0 || r.from[i] != b {
		return nil, &SplitError{At: at, Reason: "no range begins there"}
	}
	return NewRange(r.shards, r.kind, slices.Delete(r.Splits(), i, i+1))
}

// appendHotShare is the part of all writes from which the last of several ranges counts as hot.
const appendHotShare = 0.5

// AppendHot says from the writes to each range, len(writes) == len(Splits()), how great a part of them went to the last,
// 0 to 1, and whether that makes it hot: half or more, with three ranges or more, of at least 1000 writes. A hot last
// range means that keys grow, and that all new rows land on one shard.
//
// It panics if the length differs.
func (r *Range) AppendHot(writes []uint64) (share float64, hot bool) {
	if len(writes) != len(r.splits) {
		panic(fmt.Sprintf("shardrouter: %d counts for %d ranges", len(writes), len(r.splits)))
	}
	total := 0.0
	for _, n := range writes {
		total += float64(n)
	}
	if total == 0 {
		return 0, false
	}
	share = float64(writes[len(writes)-1]) / total
	return share, share >= appendHotShare && len(writes) >= 3 && total >= 1000
}

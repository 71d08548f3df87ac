package shardrouter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

func TestRange_OwnerByKind(t *testing.T) {
	t.Parallel()
	type split = shardrouter.Split
	for kind, c := range map[shardrouter.RangeKind]struct {
		splits []split
		want   map[shardrouter.Key]shardrouter.ShardID
		bad    []shardrouter.Key
	}{
		shardrouter.IntRange: {
			[]split{{From: "100", Shard: "s2"}, {From: "", Shard: "s1"}, {From: "9223372036854775808", Shard: "s3"}, {From: "-5", Shard: "s2"}, {From: "0", Shard: "s1"}},
			map[shardrouter.Key]shardrouter.ShardID{
				"-9223372036854775808": "s1", "-6": "s1", "-5": "s2", "-1": "s2", "1": "s1", "99": "s1", "100": "s2", "1000": "s2",
				"9223372036854775807": "s2", "9223372036854775808": "s3", "18446744073709551615": "s3",
			},
			[]shardrouter.Key{"a", "1.5", "18446744073709551616"},
		},
		shardrouter.TimeRange: {
			[]split{{From: "", Shard: "s1"}, {From: "1970-01-01", Shard: "s2"}, {From: "2026-11-30T12:00:00+01:00", Shard: "s3"}},
			map[shardrouter.Key]shardrouter.ShardID{
				"1969-12-31T23:59:59.999Z": "s1", "1970-01-01T00:00:00Z": "s2", "2026-11-30": "s2", "2026-11-30T10:59:59Z": "s2", "2026-11-30T11:00:00Z": "s3",
			},
			[]shardrouter.Key{"yesterday", "1500-01-01", "2300-01-01", "7"},
		},
		shardrouter.TextRange: {
			[]split{{From: "m", Shard: "s2"}, {From: "", Shard: "s1"}},
			map[shardrouter.Key]shardrouter.ShardID{"a": "s1", "lzz": "s1", "m": "s2", "z": "s2", "星": "s2", "M": "s1"},
			nil,
		},
	} {
		r, err := shardrouter.NewRange(names(3), kind, c.splits)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range c.want {
			if got, err := r.Owner(key); got != want || err != nil {
				t.Errorf("%s: Owner(%s) = %q, %v, want %q", kind, key, got, err, want)
			}
		}
		var bad *shardrouter.RangeKeyError
		for _, key := range c.bad {
			if got, err := r.Owner(key); got != "" || !errors.As(err, &bad) {
				t.Errorf("%s: Owner(%s) = %q, %v", kind, key, got, err)
			}
		}
	}
}

func TestRange_A6_SplitAndMerge(t *testing.T) {
	t.Parallel()
	r, err := shardrouter.NewRange(names(2), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	cut, err := r.Split("1000", "s2")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[shardrouter.Key]shardrouter.ShardID{"999": "s1", "1000": "s2"} {
		if got, _ := cut.Owner(key); got != want {
			t.Errorf("Owner(%s) = %q, want %q", key, got, want)
		}
		if got, _ := r.Owner(key); got != "s1" {
			t.Errorf("the old ranges changed: Owner(%s) = %q", key, got)
		}
	}
	whole, err := cut.Merge("1000")
	if err != nil || len(whole.Splits()) != 1 {
		t.Fatalf("Merge = %v, %v", whole, err)
	}
	var split *shardrouter.SplitError
	var unknown *shardrouter.UnknownShardError
	var key *shardrouter.RangeKeyError
	if _, err := cut.Split("1000", "s1"); !errors.As(err, &split) {
		t.Errorf("a second split there: %v", err)
	}
	if _, err := cut.Merge("1001"); !errors.As(err, &split) {
		t.Errorf("merging where no range begins: %v", err)
	}
	if _, err := cut.Split("5", "s9"); !errors.As(err, &unknown) {
		t.Errorf("unknown shard: %v", err)
	}
	if _, err := cut.Split("x", "s1"); !errors.As(err, &key) {
		t.Errorf("no integer: %v", err)
	}
	if _, err := shardrouter.NewRange(names(2), "", []shardrouter.Split{{From: "5", Shard: "s1"}}); !errors.As(err, &split) {
		t.Errorf("no first range: %v", err)
	}
	if _, err := shardrouter.NewRange(names(2), "float", []shardrouter.Split{{Shard: "s1"}, {From: "5", Shard: "s1"}}); !errors.As(err, &key) {
		t.Errorf("unknown kind: %v", err)
	}
}

func TestRange_AppendHot(t *testing.T) {
	t.Parallel()
	r, err := shardrouter.NewRange(names(2), "", []shardrouter.Split{{Shard: "s1"}, {From: "10", Shard: "s2"}, {From: "20", Shard: "s1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		writes []uint64
		hot    bool
	}{{[]uint64{0, 0, 0}, false}, {[]uint64{10, 20, 970}, true}, {[]uint64{0, 0, 999}, false}, {[]uint64{400, 300, 300}, false}, {[]uint64{2000, 0, 0}, false}} {
		if share, hot := r.AppendHot(c.writes); hot != c.hot {
			t.Errorf("AppendHot(%v) = %.2f, %v", c.writes, share, hot)
		}
	}
}

func TestKeyspace_A11_Warnings(t *testing.T) {
	t.Parallel()
	if got := (shardrouter.Keyspace{Name: "player", Strategy: "range"}).Warnings(); len(got) != 1 || !strings.Contains(got[0], "last range") {
		t.Errorf("ranges over ids: %q", got)
	}
	for _, k := range []shardrouter.Keyspace{{Name: "player"}, {Name: "log", Strategy: "range", Kind: shardrouter.TimeRange}, {Name: "player", Strategy: "slots"}} {
		if got := k.Warnings(); got != nil {
			t.Errorf("%+v: %q", k, got)
		}
	}
}

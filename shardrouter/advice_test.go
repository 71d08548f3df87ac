package shardrouter_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/shardrouter"
)

func newAdvisor(t *testing.T, p shardrouter.AdvicePolicy) *shardrouter.Advisor {
	t.Helper()
	a, err := shardrouter.NewAdvisor(p)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// minutes gives the advisor one measure a minute and returns the minutes in which it proposed.
func minutes(t *testing.T, a *shardrouter.Advisor, n int, queries func(minute int) float64) (at []int, first *shardrouter.Proposal) {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		p, err := a.Observe(start.Add(time.Duration(i)*time.Minute), []shardrouter.Load{
			{Shard: "s2", Rows: 3000, Bytes: 400, QueriesPerSecond: queries(i)},
			{Shard: "s1", Rows: 1000, Bytes: 200, QueriesPerSecond: 10},
		})
		if err != nil {
			t.Fatal(err)
		}
		if p != nil {
			at = append(at, i)
			if first == nil {
				first = p
			}
		}
	}
	return at, first
}

func TestAdvisor_B6_ProposesOnceForALastingLoad(t *testing.T) {
	t.Parallel()
	a := newAdvisor(t, shardrouter.AdvicePolicy{MaxQueriesPerSecond: 1000})
	at, p := minutes(t, a, 30*60, func(int) float64 { return 900 })
	if want := []int{15, 15 + 24*60}; !slices.Equal(at, want) {
		t.Fatalf("proposals in minutes %v, want %v", at, want)
	}
	if !slices.Equal(p.Loaded, []shardrouter.ShardID{"s2"}) || p.Shards != 2 || p.Rows != 1333 || p.Bytes != 200 || p.Slots != 5461 || p.Reason == "" {
		t.Errorf("the proposal is %+v, want s2 loaded and a third of 4000 rows, 600 bytes and 16384 slots", *p)
	}
}

// A load that swings around the threshold every minute is one load: one proposal in the hour, not one a swing.
func TestAdvisor_B6_S84_DoesNotFlap(t *testing.T) {
	t.Parallel()
	a := newAdvisor(t, shardrouter.AdvicePolicy{MaxQueriesPerSecond: 1000})
	at, _ := minutes(t, a, 60, func(i int) float64 { return []float64{700, 800}[i%2] })
	if want := []int{16}; !slices.Equal(at, want) {
		t.Errorf("proposals in minutes %v, want %v", at, want)
	}
}

// A load that is relieved before its time begins anew.
func TestAdvisor_B6_ShortPeaksAreNone(t *testing.T) {
	t.Parallel()
	a := newAdvisor(t, shardrouter.AdvicePolicy{MaxQueriesPerSecond: 1000})
	at, _ := minutes(t, a, 24*60, func(i int) float64 {
		if i%15 == 14 {
			return 500
		}
		return 1000
	})
	if len(at) != 0 {
		t.Errorf("proposals in minutes %v, want none", at)
	}
}

// A shard that is not measured for a while counts as loaded for the time in which it was.
func TestAdvisor_B6_TimeWithoutAMeasureDoesNotCount(t *testing.T) {
	t.Parallel()
	a := newAdvisor(t, shardrouter.AdvicePolicy{MaxQueriesPerSecond: 1000})
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var at []int
	for i := range 60 {
		loads := []shardrouter.Load{{Shard: "s1", QueriesPerSecond: 10}}
		if i <= 5 || i >= 40 {
			loads = append(loads, shardrouter.Load{Shard: "s2", QueriesPerSecond: 900})
		}
		p, err := a.Observe(start.Add(time.Duration(i)*time.Minute), loads)
		if err != nil {
			t.Fatal(err)
		}
		if p != nil {
			at = append(at, i)
		}
	}
	if want := []int{50}; !slices.Equal(at, want) { // five minutes before the gap, ten after it
		t.Errorf("proposals in minutes %v, want %v", at, want)
	}
}

func TestAdvisor_Refused(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]shardrouter.AdvicePolicy{
		"nothing to watch":  {},
		"low above high":    {MaxRows: 1, Low: 0.8},
		"high above all":    {MaxRows: 1, High: 1.5},
		"negative limit":    {MaxRows: -1},
		"negative duration": {MaxRows: 1, Hold: -time.Second},
	} {
		if _, err := shardrouter.NewAdvisor(p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	a := newAdvisor(t, shardrouter.AdvicePolicy{MaxRows: 1})
	now := time.Unix(1_800_000_000, 0)
	if _, err := a.Observe(now, nil); !errors.Is(err, shardrouter.ErrNoShards) {
		t.Errorf("no loads: %v, want ErrNoShards", err)
	}
	var twice *shardrouter.DuplicateShardError
	if _, err := a.Observe(now, []shardrouter.Load{{Shard: "s1"}, {Shard: "s1"}}); !errors.As(err, &twice) {
		t.Errorf("a shard twice: %v, want a DuplicateShardError", err)
	}
}

package bench_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/bench"
)

var routed uint64

// Every lookup allocates nothing, the keys are the 29 bytes that the table speaks of, and the plain ring is the same ring as ours.
func TestRoutingPeers(t *testing.T) {
	keys := bench.RoutingKeys(1 << 10)
	for _, k := range keys {
		if len(k) != 29 {
			t.Fatalf("key %q has %d bytes, want 29", k, len(k))
		}
	}
	for _, shards := range []int{3, 8, 64, 1024} {
		peers, err := bench.RoutingPeers(shards)
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]bench.RoutingPeer{}
		for _, p := range peers {
			byName[p.Name] = p
			if n := testing.AllocsPerRun(3, func() { routed += p.Pass(keys) }); n != 0 {
				t.Errorf("%s over %d shards: %v allocations for %d lookups, want 0", p.Name, shards, n, len(keys))
			}
		}
		for _, k := range keys {
			if got, want := byName[bench.PeerRing].Owner(k), byName[bench.PeerPlainRing].Owner(k); got != want {
				t.Fatalf("%s over %d shards: our ring says %s, the plain ring %s", k, shards, got, want)
			}
		}
	}
}

func TestMeasureRouting(t *testing.T) {
	results, err := bench.MeasureRouting([]int{3}, 2, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := bench.WriteRoutingTable(&table, results); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(table.String(), "\n"), len(results)+1; got != want {
		t.Errorf("%d lines, want %d:\n%s", got, want, table.String())
	}
	for _, r := range results {
		if len(r.Samples) != 2 || r.CPU() <= 0 {
			t.Errorf("%s: %d samples, %v ns, want 2 samples above 0", r.Peer, len(r.Samples), r.CPU())
		}
	}
}

// Growing moves about a ninth of the keys, and only to the new shard; modulo alone moves nearly all.
func TestCountMovement(t *testing.T) {
	t.Parallel()
	for _, p := range bench.Placements() {
		m, err := bench.CountMovement(p, 8, 50_000)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == "modulo" {
			if m.Moved < 0.85 || m.OldToOld < 0.7 {
				t.Errorf("modulo moved %.3f, %.3f of it between old shards: nothing else is to be expected than 8/9 and 7/9", m.Moved, m.OldToOld)
			}
			continue
		}
		if m.OldToOld != 0 || m.Moved < 0.08 || m.Moved > 0.15 {
			t.Errorf("%s moved %.4f of the keys, %.4f between old shards; want about 0.1111 and 0", p.Name, m.Moved, m.OldToOld)
		}
	}
}

// No shard of eight is without keys or has far more than its part.
func TestCountBalance(t *testing.T) {
	t.Parallel()
	for _, p := range bench.Placements() {
		b, err := bench.CountBalance(p, 8, 50_000)
		if err != nil {
			t.Fatal(err)
		}
		if b.Empty != 0 || b.MaxMin < 1 || b.MaxMin > 1.6 || b.MaxMean < 1 || b.MaxMean > 1.3 {
			t.Errorf("%s: %+v", p.Name, b)
		}
	}
}

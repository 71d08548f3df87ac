package bench_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/bench"
)

// Lookups go on while topologies are swapped, and each is answered by the snapshot that it loaded. A pin costs less than 200 bytes.
func TestMeasureSwap(t *testing.T) {
	r, err := bench.MeasureSwap(bench.SwapConfig{Shards: 64, Tenants: 1000, Pins: 10_000, Length: 30 * time.Millisecond, Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Phases) != 4 {
		t.Fatalf("%d phases, want 4", len(r.Phases))
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		if p.Wrong != 0 || p.Latencies.Total() == 0 || (i >= 2) != (p.Swaps > 0) {
			t.Errorf("%s: %d of %d lookups wrong, %d swaps", p.Name, p.Wrong, p.Latencies.Total(), p.Swaps)
		}
	}
	if r.BytesPerPin < 50 || r.BytesPerPin > 200 {
		t.Errorf("%.0f bytes a pin, want 50 to 200", r.BytesPerPin)
	}
	var table bytes.Buffer
	if err := bench.WriteSwapTable(&table, r); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(table.String(), "\n"), len(r.Phases)+4; got != want {
		t.Errorf("%d lines, want %d:\n%s", got, want, table.String())
	}
}

// A quantile is never below what was counted, and at most a sixteenth above.
func TestLatencies(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, 1, 31, 32, 33, 63, 64, 1000, 12345, time.Millisecond, time.Second, time.Hour} {
		var l bench.Latencies
		l.Add(d)
		l.Add(2 * time.Hour)
		if got := l.Quantile(0); got < d || float64(got) > float64(d)*17/16 {
			t.Errorf("%v is counted as %v", d, got)
		}
	}
	var l, o bench.Latencies
	for i := range 1000 {
		l.Add(time.Duration(i))
	}
	o.Add(2 * time.Millisecond)
	l.Merge(&o)
	if l.Total() != 1001 || l.OverMillisecond() != 1 || l.Max() != 2*time.Millisecond {
		t.Errorf("%d counted, %d over a millisecond, longest %v; want 1001, 1, 2ms", l.Total(), l.OverMillisecond(), l.Max())
	}
	if p := l.Quantile(0.5); p < 500 || p > 532 {
		t.Errorf("median %v of 0 to 999 ns", p)
	}
}

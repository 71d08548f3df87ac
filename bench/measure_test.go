package bench_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/bench"
)

// One short round of everything: each peer has its sample in each case, the first peer is its own measure, and the table has a line for each.
func TestMeasure(t *testing.T) {
	t.Parallel()
	peers := bench.Peers()
	results, err := bench.Measure(peers, bench.Config{Rounds: 2, Block: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(peers) * len(bench.Cases()); len(results) != want {
		t.Fatalf("%d results, want %d", len(results), want)
	}
	for i, r := range results {
		if len(r.Samples) != 2 || len(r.Ratios) != 2 {
			t.Errorf("%s, %s: %d samples and %d ratios, want 2", r.Peer, r.Case, len(r.Samples), len(r.Ratios))
		}
		if r.Peer == peers[0].Name && (r.Ratios[0] != 1 || r.Ratios[1] != 1) {
			t.Errorf("result %d, %s: the first peer has ratios %v to itself", i, r.Case, r.Ratios)
		}
		if wall := r.Median(func(s bench.Sample) float64 { return s.Wall }); wall < 100 {
			t.Errorf("%s, %s: %.0f ns a statement: nothing can have been sent", r.Peer, r.Case, wall)
		}
	}
	var table bytes.Buffer
	if err := bench.WriteTable(&table, results); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(table.String(), "\n"), len(results)+1; got != want {
		t.Errorf("the table has %d lines, want %d:\n%s", got, want, table.String())
	}
}

// The gate's texts are those that the layer sends, so that what is measured is what happens.
func TestMeasureGate(t *testing.T) {
	t.Parallel()
	results, err := bench.MeasureGate(bench.Config{Rounds: 1, Block: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(bench.GateTexts()); len(results) != want {
		t.Errorf("%d results, want %d", len(results), want)
	}
	for _, p := range bench.Peers() {
		for _, c := range bench.Cases() {
			if p.Name != "tenantdal" {
				continue
			}
			d := &bench.NullDriver{Rows: c.Rows()}
			d.Watch()
			ops, closer, err := p.Open(d)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(ops[c](), closer()); err != nil {
				t.Fatal(err)
			}
			if got, want := d.Last().Text, bench.GateTexts()[c]; got != want {
				t.Errorf("%s sends %q, the gate is measured with %q", c, got, want)
			}
		}
	}
}

// Every part of a profile is somebody's, and together they are all of it.
func TestShares(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal("the go command is needed for go tool pprof: ", err)
	}
	shares, err := bench.Shares(t.Context(), bench.Peers()[1], bench.First, 500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, p := range bench.Parts() {
		sum += shares[p]
	}
	if sum < 0.99 || sum > 1.01 || shares[bench.PartGorm] == 0 {
		t.Errorf("shares %v add up to %.3f", shares, sum)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.1: 1, 0.5: 3, 0.9: 5, 1: 5} {
		if got := bench.Quantile(values, q); got != want {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if values[0] != 5 {
		t.Error("Quantile sorted its argument")
	}
	if got := bench.Quantile(nil, 0.5); got != 0 {
		t.Errorf("Quantile of nothing = %v, want 0", got)
	}
}

// BenchmarkStatement runs each case of each peer by itself, for profiles and for benchstat.
func BenchmarkStatement(b *testing.B) {
	for _, c := range bench.Cases() {
		for _, p := range bench.Peers() {
			b.Run(string(c)+"/"+p.Name, func(b *testing.B) {
				ops, closer, err := p.Open(&bench.NullDriver{Rows: c.Rows()})
				if err != nil {
					b.Fatal(err)
				}
				defer func() {
					if err := closer(); err != nil {
						b.Error(err)
					}
				}()
				b.ReportAllocs()
				for b.Loop() {
					if err := ops[c](); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

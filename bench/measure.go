package bench

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Config says how long to measure.
type Config struct {
	// Rounds is how often each case of each peer is measured. Zero means 21.
	Rounds int
	// Block is how long one measurement takes. Zero means 100ms. It is long beside a cycle of the garbage collector, so that a peer pays for its own
	// garbage.
	Block time.Duration
	// Cases are the cases to measure. Nil means all.
	Cases []Case
	// Progress is called before each round of a case. Nil: none.
	Progress func(c Case, round int)
}

// WithDefaults returns a copy with every zero field filled.
func (c Config) WithDefaults() Config {
	if c.Rounds == 0 {
		c.Rounds = 21
	}
	if c.Block == 0 {
		c.Block = 100 * time.Millisecond
	}
	if c.Cases == nil {
		c.Cases = Cases()
	}
	return c
}

// Sample is what one operation cost, as the mean of one block.
type Sample struct {
	Wall   float64 // ns
	CPU    float64 // ns of user and system time of the whole process, the garbage collector included
	Allocs float64
	Bytes  float64
}

// Result holds the samples of one peer in one case.
type Result struct {
	Peer    string
	Case    Case
	Samples []Sample  // one a round
	Ratios  []float64 // CPU of a round to that of the first peer in the same round
}

// Median returns the median of what of gives for each sample.
func (r Result) Median(of func(Sample) float64) float64 {
	values := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		values[i] = of(s)
	}
	return Quantile(values, 0.5)
}

// least returns the smallest CPU time.
func (r Result) least() float64 {
	least := math.Inf(1)
	for _, s := range r.Samples {
		least = min(least, s.CPU)
	}
	return least
}

// Quantile returns the q-quantile of values, q in 0..1, by the nearest rank. It does not change values, and returns 0 for none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// Measure runs every case of every peer in turns: each round measures all peers of a case one after the other, beginning with another one each time,
// so that whatever else the machine does meets all of them. Results come case by case, in the order of peers.
func Measure(peers []Peer, cfg Config) ([]Result, error) {
	cfg = cfg.WithDefaults()
	var all []Result
	for _, c := range cfg.Cases {
		results, err := measureCase(peers, c, cfg)
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

func measureCase(peers []Peer, c Case, cfg Config) (results []Result, err error) {
	ops, counts := make([]Op, len(peers)), make([]int, len(peers))
	for i, p := range peers {
		all, closer, err := p.Open(&NullDriver{Rows: c.Rows()})
		if err != nil {
			return nil, fmt.Errorf("bench: open %s: %w", p.Name, err)
		}
		defer func() { _ = closer() }()
		ops[i] = all[c]
		if counts[i], err = calibrate(ops[i], cfg.Block); err != nil {
			return nil, fmt.Errorf("bench: %s, %s: %w", p.Name, c, err)
		}
		results = append(results, Result{Peer: p.Name, Case: c})
	}
	for round := range cfg.Rounds {
		if cfg.Progress != nil {
			cfg.Progress(c, round)
		}
		for i := range peers {
			at := (i + round) % len(peers)
			s, err := block(ops[at], counts[at])
			if err != nil {
				return nil, fmt.Errorf("bench: %s, %s: %w", peers[at].Name, c, err)
			}
			results[at].Samples = append(results[at].Samples, s)
		}
		for i := range results {
			results[i].Ratios = append(results[i].Ratios, results[i].Samples[round].CPU/results[0].Samples[round].CPU)
		}
	}
	return results, nil
}

// calibrate returns how many operations fill a block, and warms up whatever is cached.
func calibrate(op Op, length time.Duration) (int, error) {
	for n := 64; ; n *= 4 {
		start := time.Now()
		for range n {
			if err := op(); err != nil {
				return 0, err
			}
		}
		if took := time.Since(start); took > length/8 {
			return max(1, int(float64(n)*float64(length)/float64(took))), nil
		}
	}
}

// block runs an operation n times and returns the mean.
func block(op Op, n int) (Sample, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	for range n {
		if err := op(); err != nil {
			return Sample{}, err
		}
	}
	wall := time.Since(start)
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	per := float64(n)
	return Sample{
		Wall: float64(wall) / per, CPU: float64(cpu) / per,
		Allocs: float64(after.Mallocs-before.Mallocs) / per, Bytes: float64(after.TotalAlloc-before.TotalAlloc) / per,
	}, nil
}

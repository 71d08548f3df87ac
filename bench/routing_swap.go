package bench

import (
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// SwapConfig is the size of the topology that is swapped under lookups.
type SwapConfig struct {
	Shards  int           // default shards
	Tenants int           // on the default shards
	Pins    int           // spread evenly over the tenants
	Length  time.Duration // of each phase
	Every   time.Duration // between swaps
}

// topologyConfig makes every string anew, as a process does that reads the topology from its database, but shares a tenant's id among its pins.
func (c SwapConfig) topologyConfig(epoch shardrouter.Epoch) shardrouter.TopologyConfig {
	ids := ShardNames(c.Shards)
	cfg := shardrouter.TopologyConfig{Epoch: epoch, Shards: ids, Keyspaces: []shardrouter.Keyspace{{Name: "player"}}}
	tenants := c.tenantIDs()
	for i := range c.Pins {
		cfg.Pins = append(cfg.Pins, shardrouter.Pin{
			Tenant: tenants[i%c.Tenants], Keyspace: "player", Key: shardrouter.Key(strconv.Itoa(i + 1)), Shard: ids[(i+int(epoch))%len(ids)],
		})
	}
	return cfg
}

func (c SwapConfig) tenantIDs() []string {
	ids := make([]string, c.Tenants)
	for i := range ids {
		ids[i] = fmt.Sprintf("tenant-%05d", i)
	}
	return ids
}

// Latencies counts durations by their size, 16 steps to a doubling, so that a quantile is at most 6 % too great. The zero value is empty.
type Latencies struct {
	count [64 * 16]uint64
	total uint64
	over  uint64 // longer than a millisecond
	max   time.Duration
}

// Add counts one.
func (l *Latencies) Add(d time.Duration) {
	l.count[latencyStep(d)]++
	l.total++
	if d > time.Millisecond {
		l.over++
	}
	l.max = max(l.max, d)
}

// Merge adds what another counted.
func (l *Latencies) Merge(o *Latencies) {
	for i, n := range o.count {
		l.count[i] += n
	}
	l.total, l.over, l.max = l.total+o.total, l.over+o.over, max(l.max, o.max)
}

// Total returns how many were counted.
func (l *Latencies) Total() uint64 { return l.total }

// OverMillisecond returns how many were longer than a millisecond.
func (l *Latencies) OverMillisecond() uint64 { return l.over }

// Max returns the longest, exactly.
func (l *Latencies) Max() time.Duration { return l.max }

// Quantile returns the upper bound of the step that holds the q-quantile, q in 0..1, and 0 for none.
func (l *Latencies) Quantile(q float64) time.Duration {
	rank, seen := uint64(q*float64(l.total)), uint64(0)
	for i, n := range l.count {
		if seen += n; n > 0 && seen > rank {
			return min(latencyBound(i), l.max)
		}
	}
	return l.max
}

// latencyStep gives durations below 32 ns a step each, and 16 steps to each further doubling.
func latencyStep(d time.Duration) int {
	n := uint64(max(d, 0))
	shift := max(bits.Len64(n)-5, 0)
	return shift*16 + int(n>>shift)
}

// latencyBound returns the greatest duration of the step.
func latencyBound(step int) time.Duration {
	if step < 32 {
		return time.Duration(step)
	}
	shift := step/16 - 1
	return time.Duration((step-shift*16+1)<<shift - 1)
}

// SwapPhase is what lookups took while something else happened.
type SwapPhase struct {
	Name      string
	Swaps     int
	Latencies Latencies
	Wrong     uint64 // answers that are not the loaded snapshot's
}

// SwapResult is what [MeasureSwap] found.
type SwapResult struct {
	Phases         []SwapPhase
	BytesPerPin    float64       // of a topology, with the text of the keys and the tenants' ids
	BytesTopology  uint64        // of one without pins
	BytesPerTenant float64       // of the registry
	BytesDedicated float64       // of a topology, for each tenant with one shard of its own
	Build          time.Duration // of one topology, while nothing else ran
}

// MeasureSwap runs two goroutines of lookups on a topology behind an atomic pointer, four times: an empty body in the place of the lookup, which shows
// what the machine and the scheduler take by themselves; lookups alone; lookups while another goroutine swaps two topologies; and lookups while
// it builds each topology before it swaps it in.
func MeasureSwap(cfg SwapConfig) (SwapResult, error) {
	var r SwapResult
	if err := r.measureBytes(cfg); err != nil {
		return r, err
	}
	configs := [2]shardrouter.TopologyConfig{cfg.topologyConfig(1), cfg.topologyConfig(2)}
	var tops [2]*shardrouter.Topology
	for i := range tops {
		start := time.Now()
		top, err := shardrouter.NewTopology(configs[i])
		if err != nil {
			return r, err
		}
		tops[i], r.Build = top, time.Since(start)
	}
	for _, phase := range []struct {
		name  string
		empty bool
		next  func(swap int) (*shardrouter.Topology, error)
	}{
		{"empty body", true, nil},
		{"lookups", false, nil},
		{"lookups, swaps", false, func(swap int) (*shardrouter.Topology, error) { return tops[swap%2], nil }},
		{"lookups, builds and swaps", false, func(swap int) (*shardrouter.Topology, error) { return shardrouter.NewTopology(configs[swap%2]) }},
	} {
		p, err := runSwapPhase(cfg, tops[0], phase.empty, phase.next)
		if err != nil {
			return r, err
		}
		p.Name = phase.name
		r.Phases = append(r.Phases, p)
	}
	return r, nil
}

func runSwapPhase(cfg SwapConfig, first *shardrouter.Topology, empty bool, next func(swap int) (*shardrouter.Topology, error)) (p SwapPhase, err error) {
	var current atomic.Pointer[shardrouter.Topology]
	current.Store(first)
	ids, tenants := ShardNames(cfg.Shards), cfg.tenantIDs()
	keys := make([]shardrouter.Key, cfg.Pins)
	for i := range keys {
		keys[i] = shardrouter.Key(strconv.Itoa(i + 1))
	}
	runtime.GC() // what came before is not this phase's to collect

	var wg sync.WaitGroup
	var stop atomic.Bool
	var seen [2]Latencies
	var wrong [2]uint64
	for g := range seen {
		wg.Go(func() {
			own, bad := new(Latencies), uint64(0)
			for i := g; !stop.Load(); i += 7919 {
				i %= len(keys)
				start := time.Now()
				if empty {
					own.Add(time.Since(start))
					continue
				}
				top := current.Load()
				shard, err := top.Owner("player", tenants[i%len(tenants)], keys[i])
				own.Add(time.Since(start))
				if err != nil || shard != ids[(i+int(top.Epoch()))%len(ids)] {
					bad++
				}
			}
			seen[g], wrong[g] = *own, bad
		})
	}
	ticker := time.NewTicker(cfg.Every)
	defer ticker.Stop()
	for end := time.Now().Add(cfg.Length); time.Now().Before(end) && err == nil; {
		<-ticker.C
		if next == nil {
			continue
		}
		var top *shardrouter.Topology
		if top, err = next(p.Swaps); err == nil {
			current.Store(top)
			p.Swaps++
		}
	}
	stop.Store(true)
	wg.Wait()
	for g := range seen {
		p.Latencies.Merge(&seen[g])
		p.Wrong += wrong[g]
	}
	return p, err
}

// measureBytes compares the live heap before and after.
func (r *SwapResult) measureBytes(cfg SwapConfig) error {
	topology := func(c SwapConfig, dedicated int) (uint64, error) {
		before := liveHeap()
		tc := c.topologyConfig(1)
		if dedicated > 0 {
			tc.Dedicated = make(map[string][]shardrouter.ShardID, dedicated)
			for _, id := range (SwapConfig{Tenants: dedicated}).tenantIDs() {
				tc.Dedicated[id] = []shardrouter.ShardID{shardrouter.ShardID(id + "-s1")}
			}
		}
		top, err := shardrouter.NewTopology(tc)
		if err != nil {
			return 0, err
		}
		tc = shardrouter.TopologyConfig{}
		after := liveHeap()
		runtime.KeepAlive(top)
		return after - before, nil
	}
	none := SwapConfig{Shards: cfg.Shards, Tenants: cfg.Tenants}
	var err error
	if r.BytesTopology, err = topology(none, 0); err != nil {
		return err
	}
	pinned, err := topology(cfg, 0)
	if err != nil {
		return err
	}
	dedicated, err := topology(none, cfg.Tenants)
	if err != nil {
		return err
	}
	r.BytesPerPin = (float64(pinned) - float64(r.BytesTopology)) / float64(cfg.Pins)
	r.BytesDedicated = (float64(dedicated) - float64(r.BytesTopology)) / float64(cfg.Tenants)

	before := liveHeap()
	tenants := make([]tenant.Tenant, cfg.Tenants)
	for i, id := range cfg.tenantIDs() {
		tenants[i] = tenant.Tenant{ID: tenant.ID(id), Model: tenant.SharedTable, Limits: tenant.Limits{Rate: 100, Burst: 100, MaxConns: 4}}
	}
	registry, err := tenant.NewStatic(tenants...)
	if err != nil {
		return err
	}
	tenants = nil
	r.BytesPerTenant = (float64(liveHeap()) - float64(before)) / float64(cfg.Tenants)
	runtime.KeepAlive(registry)
	return nil
}

// WriteSwapTable prints the phases and the bytes.
func WriteSwapTable(w io.Writer, r SwapResult) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "two goroutines\tswaps\ttimed\tp50\tp99\tp99.9\tp99.99\tmax\tover 1ms\twrong\t\n")
	for i := range r.Phases {
		p := &r.Phases[i]
		l := &p.Latencies
		fmt.Fprintf(t, "%s\t%d\t%d\t%v\t%v\t%v\t%v\t%v\t%d\t%d\t\n", p.Name, p.Swaps, l.Total(),
			l.Quantile(0.5), l.Quantile(0.99), l.Quantile(0.999), l.Quantile(0.9999), l.Max(), l.OverMillisecond(), p.Wrong)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nlive heap: %.1f MB for a topology without pins, %.0f bytes a pin; %.0f bytes for a tenant with one shard of its own, 0 for any other; %.0f bytes a tenant in the registry\nbuilding a topology with its pins: %v\n",
		float64(r.BytesTopology)/1e6, r.BytesPerPin, r.BytesDedicated, r.BytesPerTenant, r.Build.Round(time.Millisecond))
	return err
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// ringSample is how many keys stand for all where a strategy has no ranges of hashes to be added up.
const ringSample = 100_000

// hashed is a strategy that places keys by a hash.
type hashed interface {
	shardrouter.Strategy
	OwnerBare(key string) shardrouter.ShardID
}

type ringOptions struct {
	strategy     string
	shards       []string
	virtualNodes int
	tenant       string
	keys         string
	add, remove  []string
	json         bool
}

// flags adds the flags that all the verbs have.
func (o *ringOptions) flags(c *cobra.Command) {
	c.Args = cobra.NoArgs
	c.Flags().StringVar(&o.strategy, "strategy", shardrouter.StrategyRing, "ring, modulo, ketama, rendezvous or slots")
	c.Flags().StringSliceVar(&o.shards, "shards", nil, "shards, in any order (required)")
	c.Flags().IntVar(&o.virtualNodes, "virtual-nodes", 0, "points per shard of a ring, 128 if left out; other strategies ignore it")
	c.Flags().StringVar(&o.tenant, "tenant", "", "tenant whose keys these are; without it the bare keys are hashed")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

func newRingOwner() *cobra.Command {
	var o ringOptions
	c := &cobra.Command{
		Use:   "owner --shards S1,S2,...",
		Short: "Say which shard owns each key",
		Long: `Owner reads keys from standard input, one a line, and prints each with the shard that owns it, separated by a tab; with --json one
object a line. Data is placed by tenant and key: give the tenant. Without it the bare key is hashed, as in the golden vectors.

No deployment is asked: pins and weights are not known, and slots are a new table over the shards. What a deployment does, route explain says.

Exit codes: 0 done, 2 wrong arguments or a key that cannot be.`,
		Example: `  seq 1 10 | tdal ring owner --shards s1,s2,s3 --tenant acme`,
		RunE: func(c *cobra.Command, _ []string) error {
			return ringOwner(o, c.InOrStdin(), c.OutOrStdout())
		},
	}
	o.flags(c)
	return c
}

func newRingPlan() *cobra.Command {
	var o ringOptions
	c := &cobra.Command{
		Use:   "plan --shards S1,S2,... --add S",
		Short: "Say what share of the keys moves when shards come or go",
		Long: `Plan prints each shard's share of the keys before and after, and the share that moves. The shares are those of all hashes: exact for
ring, ketama and slots, from a sample of keys for modulo and rendezvous. With --keys they are those of the keys in a file, one a line.

For slots the table before is a new one over the shards.

Exit codes: 0 done, 2 wrong arguments or a file that cannot be read.`,
		Example: `  tdal ring plan --shards s1,s2,s3 --add s4
  tdal ring plan --strategy slots --shards s1,s2,s3 --remove s2 --keys players.txt --tenant acme --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			return ringPlan(o, c.OutOrStdout())
		},
	}
	o.flags(c)
	c.Flags().StringSliceVar(&o.add, "add", nil, "shards to add")
	c.Flags().StringSliceVar(&o.remove, "remove", nil, "shards to remove")
	c.Flags().StringVar(&o.keys, "keys", "", "file of keys, one a line")
	return c
}

func newRingStats() *cobra.Command {
	var o ringOptions
	c := &cobra.Command{
		Use:   "stats --shards S1,S2,...",
		Short: "Say how evenly the keys are shared",
		Long: `Stats prints each shard's share of the keys, the greatest share over the least and over the mean. The shares are those of plan.

Exit codes: 0 done, 2 wrong arguments or a file that cannot be read.`,
		Example: `  tdal ring stats --shards s1,s2,s3 --virtual-nodes 512`,
		RunE: func(c *cobra.Command, _ []string) error {
			return ringStats(o, c.OutOrStdout())
		},
	}
	o.flags(c)
	c.Flags().StringVar(&o.keys, "keys", "", "file of keys, one a line")
	return c
}

func ringOwner(o ringOptions, in io.Reader, out io.Writer) error {
	s, err := o.build(shardIDs(o.shards))
	if err != nil {
		return err
	}
	owner := o.owner(s)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err = eachKey(in, func(key string) error {
		shard, err := owner(key)
		if err != nil {
			return err
		}
		if o.json {
			return enc.Encode(struct {
				Key   string              `json:"key"`
				Shard shardrouter.ShardID `json:"shard"`
			}{key, shard})
		}
		_, err = fmt.Fprintf(w, "%s\t%s\n", key, shard)
		return err
	})
	return errors.Join(err, w.Flush())
}

// ringShare is a shard's part of the keys, 0 to 1.
type ringShare struct {
	Shard  shardrouter.ShardID `json:"shard"`
	Before float64             `json:"before"`
	After  float64             `json:"after"`
}

func ringPlan(o ringOptions, out io.Writer) error {
	if len(o.add)+len(o.remove) == 0 {
		return errors.New("nothing to plan: give --add or --remove")
	}
	before, err := o.build(shardIDs(o.shards))
	if err != nil {
		return err
	}
	after, err := o.change(before)
	if err != nil {
		return err
	}
	m, err := o.measure(before, after)
	if err != nil {
		return err
	}
	plan := struct {
		Strategy string      `json:"strategy"`
		Basis    string      `json:"basis"`
		Moved    float64     `json:"moved"`
		Shards   []ringShare `json:"shards"`
	}{Strategy: o.strategy, Basis: m.basis, Moved: m.moved}
	all := append(before.Shards(), after.Shards()...)
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		plan.Shards = append(plan.Shards, ringShare{id, m.before[id], m.after[id]})
	}
	if o.json {
		return json.NewEncoder(out).Encode(plan)
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "shard\tbefore\tafter\n")
	for _, s := range plan.Shards {
		fmt.Fprintf(w, "%s\t%.4f\t%.4f\n", s.Shard, s.Before, s.After)
	}
	fmt.Fprintf(w, "moved\t%.4f\t%s\n", plan.Moved, plan.Basis)
	return w.Flush()
}

func ringStats(o ringOptions, out io.Writer) error {
	s, err := o.build(shardIDs(o.shards))
	if err != nil {
		return err
	}
	m, err := o.measure(s, s)
	if err != nil {
		return err
	}
	type share struct {
		Shard shardrouter.ShardID `json:"shard"`
		Share float64             `json:"share"`
	}
	stats := struct {
		Strategy   string   `json:"strategy"`
		Basis      string   `json:"basis"`
		MaxOverMin *float64 `json:"max_over_min"` // null when a shard has nothing
		MaxOverAvg float64  `json:"max_over_mean"`
		Shards     []share  `json:"shards"`
	}{Strategy: o.strategy, Basis: m.basis}
	lo, hi := 1.0, 0.0
	for _, id := range s.Shards() {
		stats.Shards = append(stats.Shards, share{id, m.before[id]})
		lo, hi = min(lo, m.before[id]), max(hi, m.before[id])
	}
	stats.MaxOverAvg = hi * float64(len(stats.Shards))
	ratio := "none: a shard has nothing"
	if lo > 0 {
		r := hi / lo
		stats.MaxOverMin, ratio = &r, fmt.Sprintf("%.4f", r)
	}
	if o.json {
		return json.NewEncoder(out).Encode(stats)
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "shard\tshare\n")
	for _, s := range stats.Shards {
		fmt.Fprintf(w, "%s\t%.4f\n", s.Shard, s.Share)
	}
	fmt.Fprintf(w, "max/min\t%s\nmax/mean\t%.4f\nbasis\t%s\n", ratio, stats.MaxOverAvg, stats.Basis)
	return w.Flush()
}

func shardIDs(names []string) []shardrouter.ShardID {
	ids := make([]shardrouter.ShardID, len(names))
	for i, n := range names {
		ids[i] = shardrouter.ShardID(n)
	}
	return ids
}

func (o ringOptions) build(shards []shardrouter.ShardID) (hashed, error) {
	switch o.strategy {
	case shardrouter.StrategyRing:
		return shardrouter.NewRing(shards, o.virtualNodes)
	case shardrouter.StrategyModulo:
		return shardrouter.NewModulo(shards)
	case shardrouter.StrategyKetama:
		return shardrouter.NewKetama(shards)
	case shardrouter.StrategyRendezvous:
		return shardrouter.NewRendezvous(shards, nil)
	case shardrouter.StrategySlots:
		return shardrouter.NewSlots(shards, nil)
	}
	return nil, fmt.Errorf("--strategy %q: want ring, modulo, ketama, rendezvous or slots", o.strategy)
}

// change adds and removes the shards.
func (o ringOptions) change(s hashed) (hashed, error) {
	slots, isSlots := s.(*shardrouter.Slots)
	shards := s.Shards()
	var err error
	for _, id := range shardIDs(o.add) {
		shards = append(shards, id)
		if isSlots {
			if slots, err = slots.AddShard(id, 0); err != nil {
				return nil, err
			}
		}
	}
	for _, id := range shardIDs(o.remove) {
		i := slices.Index(shards, id)
		if i < 0 {
			return nil, &shardrouter.UnknownShardError{Shard: id}
		}
		shards = slices.Delete(shards, i, i+1)
		if isSlots {
			if slots, err = slots.RemoveShard(id); err != nil {
				return nil, err
			}
		}
	}
	if isSlots {
		return slots, nil
	}
	return o.build(shards)
}

// owner is the strategy with the tenant, if there is one.
func (o ringOptions) owner(s hashed) func(key string) (shardrouter.ShardID, error) {
	var invalid error
	if o.tenant != "" {
		_, invalid = tenant.ParseID(o.tenant)
	}
	return func(key string) (shardrouter.ShardID, error) {
		if invalid != nil {
			return "", invalid
		}
		if key == "" {
			return "", shardrouter.ErrEmptyKey
		}
		if o.tenant == "" {
			return s.OwnerBare(key), nil
		}
		if err := shardrouter.Key(key).Validate(); err != nil {
			return "", err
		}
		return s.Owner(o.tenant, shardrouter.Key(key)), nil
	}
}

// measured are shares of keys, 0 to 1.
type measured struct {
	basis         string
	moved         float64
	before, after map[shardrouter.ShardID]float64
}

// ranged is a strategy whose shares can be added up.
type ranged interface {
	Ranges() []shardrouter.HashRange
}

func (o ringOptions) measure(before, after hashed) (measured, error) {
	m := measured{before: map[shardrouter.ShardID]float64{}, after: map[shardrouter.ShardID]float64{}}
	if b, exact := before.(ranged); exact && o.keys == "" {
		a := after.(ranged) // the same strategy
		m.basis = "all hashes"
		for _, r := range b.Ranges() {
			m.before[r.Shard] += width(r.First, r.Last)
		}
		for _, r := range a.Ranges() {
			m.after[r.Shard] += width(r.First, r.Last)
		}
		for _, r := range shardrouter.Diff(b.Ranges(), a.Ranges()) {
			m.moved += width(r.First, r.Last)
		}
		return m, nil
	}
	n := 0
	ownerBefore, ownerAfter := o.owner(before), o.owner(after)
	count := func(key string) error {
		from, err := ownerBefore(key)
		if err != nil {
			return err
		}
		to, err := ownerAfter(key)
		if err != nil {
			return err
		}
		n++
		m.before[from]++
		m.after[to]++
		if from != to {
			m.moved++
		}
		return nil
	}
	if o.keys == "" {
		for i := range ringSample {
			if err := count(fmt.Sprintf("player-%09d", i)); err != nil {
				return m, err
			}
		}
		m.basis = fmt.Sprintf("a sample of %d keys", n)
	} else {
		f, err := os.Open(o.keys)
		if err != nil {
			return m, err
		}
		defer f.Close()
		if err := eachKey(f, count); err != nil {
			return m, fmt.Errorf("%s: %w", o.keys, err)
		}
		if n == 0 {
			return m, fmt.Errorf("%s: no keys", o.keys)
		}
		m.basis = fmt.Sprintf("%d keys", n)
	}
	m.moved /= float64(n)
	for _, shares := range []map[shardrouter.ShardID]float64{m.before, m.after} {
		for id := range shares {
			shares[id] /= float64(n)
		}
	}
	return m, nil
}

// width is the part of all hashes from first to last, both included.
func width(first, last uint64) float64 { return (float64(last-first) + 1) / (1 << 64) }

// eachKey calls do for each line, and names the line in its error.
func eachKey(in io.Reader, do func(key string) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		if err := do(lines.Text()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

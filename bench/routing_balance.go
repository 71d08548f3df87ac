package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cespare/xxhash/v2"
	jump "github.com/dgryski/go-jump"

	"github.com/tenantdal/tenantdal/shardrouter"
)

// Placement is a strategy over one number of shards, and over one more.
type Placement struct {
	Name string

	// New returns the function from a key to its shard over the first n shards. A grown placement, if grow is true, is the one over n-1 shards with
	// one shard added.
	New func(n int, grow bool) (func(key string) shardrouter.ShardID, error)

	// MaxShards is the largest number of shards to count; zero means any. A lookup that scores every shard takes too long over a thousand.
	MaxShards int
}

// Placements returns the strategies of shardrouter that place by a hash, and go-jump.
func Placements() []Placement {
	owner := func(s interface {
		OwnerBare(key string) shardrouter.ShardID
	}, err error) (func(string) shardrouter.ShardID, error) {
		if err != nil {
			return nil, err
		}
		return s.OwnerBare, nil
	}
	return []Placement{
		{Name: "ring, 128 points", New: func(n int, _ bool) (func(string) shardrouter.ShardID, error) {
			return owner(shardrouter.NewRing(ShardNames(n), 128))
		}},
		{Name: "ring, 512 points", New: func(n int, _ bool) (func(string) shardrouter.ShardID, error) {
			return owner(shardrouter.NewRing(ShardNames(n), 512))
		}},
		{Name: "slots", New: func(n int, grow bool) (func(string) shardrouter.ShardID, error) {
			if !grow {
				return owner(shardrouter.NewSlots(ShardNames(n), nil))
			}
			s, err := shardrouter.NewSlots(ShardNames(n-1), nil)
			if err != nil {
				return nil, err
			}
			return owner(s.AddShard(ShardNames(n)[n-1], 1))
		}},
		{Name: "ketama", New: func(n int, _ bool) (func(string) shardrouter.ShardID, error) {
			return owner(shardrouter.NewKetama(ShardNames(n)))
		}},
		{Name: "rendezvous", MaxShards: 64, New: func(n int, _ bool) (func(string) shardrouter.ShardID, error) {
			return owner(shardrouter.NewRendezvous(ShardNames(n), nil))
		}},
		{Name: "modulo", New: func(n int, _ bool) (func(string) shardrouter.ShardID, error) {
			return owner(shardrouter.NewModulo(ShardNames(n)))
		}},
		{Name: "go-jump, xxhash", New: func(n int, _ bool) (func(string) shardrouter.ShardID, error) {
			ids := ShardNames(n)
			return func(key string) shardrouter.ShardID { return ids[jump.Hash(xxhash.Sum64String(key), n)] }, nil
		}},
	}
}

// Balance says how keys spread over shards.
type Balance struct {
	Shards  int
	MaxMin  float64 // keys of the fullest shard to those of the emptiest
	MaxMean float64 // keys of the fullest shard to the mean
	Empty   int     // shards without a key; MaxMin is then 0
}

// Movement says how keys move when one shard is added.
type Movement struct {
	Moved    float64 // share of all keys with another owner, 0 to 1
	OldToOld float64 // share that went from one old shard to another, which no growing needs
}

// sequentialKey is the i-th key for counting.
func sequentialKey(i int) string { return fmt.Sprintf(routingFormat, i+1) }

// CountBalance places that many keys with consecutive numbers over the shards.
func CountBalance(p Placement, shards, keys int) (Balance, error) {
	of, err := p.New(shards, false)
	if err != nil {
		return Balance{}, err
	}
	count := make(map[shardrouter.ShardID]int, shards)
	for i := range keys {
		count[of(sequentialKey(i))]++
	}
	var all []int
	for _, n := range count {
		all = append(all, n)
	}
	b := Balance{Shards: shards, Empty: shards - len(all), MaxMean: float64(slices.Max(all)) * float64(shards) / float64(keys)}
	if b.Empty == 0 {
		b.MaxMin = float64(slices.Max(all)) / float64(slices.Min(all))
	}
	return b, nil
}

// CountMovement adds one shard to that many, and counts the keys that move.
func CountMovement(p Placement, shards, keys int) (Movement, error) {
	before, err := p.New(shards, false)
	if err != nil {
		return Movement{}, err
	}
	after, err := p.New(shards+1, true)
	if err != nil {
		return Movement{}, err
	}
	added := ShardNames(shards + 1)[shards]
	moved, stray := 0, 0
	for i := range keys {
		k := sequentialKey(i)
		if from, to := before(k), after(k); from != to {
			moved++
			if to != added {
				stray++
			}
		}
	}
	return Movement{Moved: float64(moved) / float64(keys), OldToOld: float64(stray) / float64(keys)}, nil
}

// WriteBalanceTable counts and prints every placement: max/min and max/mean over each number of shards, and what moves from 8 shards to 9.
func WriteBalanceTable(w io.Writer, shards []int, keys int) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	over := strings.Trim(strings.ReplaceAll(fmt.Sprint(shards), " ", " / "), "[]")
	fmt.Fprintf(t, "strategy\tmax/min %s\tmax/mean %s\tmoved 8->9\told->old\t\n", over, over)
	for _, p := range Placements() {
		var least, mean []string
		for _, n := range shards {
			if p.MaxShards > 0 && n > p.MaxShards {
				least, mean = append(least, "-"), append(mean, "-")
				continue
			}
			b, err := CountBalance(p, n, keys)
			if err != nil {
				return err
			}
			least, mean = append(least, fmt.Sprintf("%.2f", b.MaxMin)), append(mean, fmt.Sprintf("%.2f", b.MaxMean))
		}
		m, err := CountMovement(p, 8, keys)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4f\t%.4f\t\n", p.Name, strings.Join(least, " / "), strings.Join(mean, " / "), m.Moved, m.OldToOld)
	}
	return t.Flush()
}

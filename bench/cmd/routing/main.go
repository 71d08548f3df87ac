// Command routing prints what it costs to find the shard of a key beside other ways to do it, how keys spread and move, and how long lookups take while
// the topology is swapped, and what a query over eight shards costs beside the slowest of them.
//
//	go run ./cmd/routing [-rounds 21] [-block 10ms] [-keys 1000000] [-phase 3s] [-parts lookup,balance,swap,scatter]
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenantdal/tenantdal/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "routing:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 21, "rounds of lookups of each router")
	block := flag.Duration("block", 10*time.Millisecond, "length of one measurement of lookups")
	keys := flag.Int("keys", 1_000_000, "keys that are counted for balance and movement")
	phase := flag.Duration("phase", 3*time.Second, "length of each phase of lookups under swaps")
	every := flag.Duration("every", 10*time.Millisecond, "time between swaps")
	deep := flag.Int("deep", 10_000, "pages that are read one after the other")
	parts := flag.String("parts", "lookup,balance,swap,scatter", "what to print")
	flag.Parse()

	shards := []int{3, 8, 64, 1024}
	wanted := strings.Split(*parts, ",")
	fmt.Println(bench.Machine())
	if slices.Contains(wanted, "lookup") {
		fmt.Printf("\n%d rounds of %v for each router, 4096 keys of 29 bytes, one goroutine\n\n", *rounds, *block)
		results, err := bench.MeasureRouting(shards, *rounds, *block)
		if err != nil {
			return err
		}
		if err := bench.WriteRoutingTable(os.Stdout, results); err != nil {
			return err
		}
	}
	if slices.Contains(wanted, "balance") {
		fmt.Printf("\n%d keys of 29 bytes with consecutive numbers\n\n", *keys)
		if err := bench.WriteBalanceTable(os.Stdout, shards, *keys); err != nil {
			return err
		}
	}
	if slices.Contains(wanted, "swap") {
		cfg := bench.SwapConfig{Shards: 1024, Tenants: 10_000, Pins: 100_000, Length: *phase, Every: *every}
		fmt.Printf("\n%d shards, %d tenants, %d pins, a swap every %v at most, %v a phase\n\n", cfg.Shards, cfg.Tenants, cfg.Pins, cfg.Every, cfg.Length)
		r, err := bench.MeasureSwap(cfg)
		if err != nil {
			return err
		}
		if err := bench.WriteSwapTable(os.Stdout, r); err != nil {
			return err
		}
	}
	if slices.Contains(wanted, "scatter") {
		cfg := bench.ScatterConfig{Shards: 8, Rows: *deep * 20, Limit: 20, Step: 5 * time.Millisecond, Rounds: *rounds}
		fmt.Printf("\n%d shards (SQLite files) whose statements take %v to %v longer, %d rows, pages of %d, %d rounds\n\n",
			cfg.Shards, cfg.Step, time.Duration(cfg.Shards)*cfg.Step, cfg.Rows, cfg.Limit, cfg.Rounds)
		r, err := bench.MeasureScatter(cfg)
		if err != nil {
			return err
		}
		return bench.WriteScatterTable(os.Stdout, r)
	}
	return nil
}

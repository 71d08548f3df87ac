// Command layer prints what the tenant layer costs above plain gorm, and what its peers cost, in one table.
//
//	go run ./cmd/layer [-rounds 21] [-block 100ms] [-case First] [-peers plain,tenantdal] [-heap 64] [-cpuprofile FILE | -shares 5s]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/tenantdal/tenantdal/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "layer:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	rounds := flag.Int("rounds", 21, "rounds of each case")
	block := flag.Duration("block", 100*time.Millisecond, "length of one measurement")
	only := flag.String("case", "", "one case instead of all: First, Find20, Update, Create")
	names := flag.String("peers", "", "peers whose name begins so, with commas between; empty means all")
	heap := flag.Int("heap", 64, "live memory of the process in MB; an empty process collects garbage hundreds of times a second")
	profile := flag.String("cpuprofile", "", "write a CPU profile of everything that is measured")
	shares := flag.Duration("shares", 0, "instead of the table, profile each case for so long and print which part of the CPU time is whose")
	flag.Parse()

	cfg := bench.Config{Rounds: *rounds, Block: *block}
	if *only != "" {
		c := bench.Case(*only)
		if !slices.Contains(bench.Cases(), c) {
			return fmt.Errorf("there is no case %q", *only)
		}
		cfg.Cases = []bench.Case{c}
	}
	peers := slices.DeleteFunc(bench.Peers(), func(p bench.Peer) bool {
		return *names != "" && !slices.ContainsFunc(strings.Split(*names, ","), func(n string) bool { return strings.HasPrefix(p.Name, n) })
	})
	if len(peers) == 0 {
		return errors.New("no peer has such a name")
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	live := make([]byte, *heap<<20)
	defer runtime.KeepAlive(&live)
	fmt.Println(bench.Machine())
	if *shares > 0 {
		fmt.Printf("%v of CPU profile for each case and peer\n\n", *shares)
		return bench.WriteShares(context.Background(), os.Stdout, peers, *shares)
	}
	results, err := bench.Measure(peers, cfg)
	if err != nil {
		return err
	}
	fmt.Printf("%d rounds of %v for each case and peer, one statement at a time, %d MB of live heap\n\n", *rounds, *block, *heap)
	if err := bench.WriteTable(os.Stdout, results); err != nil {
		return err
	}
	if *only != "" {
		return nil
	}
	verdicts, err := bench.MeasureGate(cfg)
	if err != nil {
		return err
	}
	fmt.Println()
	return bench.WriteGateTable(os.Stdout, verdicts)
}

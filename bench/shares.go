package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Part is a part of the program that time is attributed to.
type Part string

// The parts of [Shares]. What the runtime and the small standard packages do counts for whoever called them.
const (
	PartGorm    Part = "gorm"
	PartSQL     Part = "database/sql"
	PartDAL     Part = "dal" // with tenant and shardrouter
	PartQuota   Part = "quota"
	PartWire    Part = "wire, gate"
	PartDriver  Part = "null driver" // and the benchmark's own loop
	PartRuntime Part = "runtime"     // what nobody called: the garbage collector, the scheduler
)

// Parts lists every part, in the order of the table.
func Parts() []Part {
	return []Part{PartGorm, PartSQL, PartDAL, PartQuota, PartWire, PartDriver, PartRuntime}
}

// hidden are the packages whose time counts for their callers.
const hidden = `^(runtime|reflect|sync|internal/|strings|strconv|fmt|errors|time|slices|maps|context|unicode|hash|sort|math|bytes|log|testing|golang.org/x/time|[a-zA-Z]+$|type:)`

// partOf returns the part that a function belongs to.
func partOf(function string) Part {
	for _, p := range []struct {
		prefix string
		part   Part
	}{
		{"gorm.io/", PartGorm},
		{"github.com/jinzhu/", PartGorm},
		{"database/sql", PartSQL},
		{"github.com/tenantdal/tenantdal/bench", PartDriver},
		{"main.", PartDriver},
		{"github.com/tenantdal/tenantdal/quota", PartQuota},
		{"github.com/tenantdal/tenantdal/internal/", PartWire},
		{"github.com/tenantdal/tenantdal/", PartDAL},
	} {
		if strings.HasPrefix(function, p.prefix) {
			return p.part
		}
	}
	return PartRuntime
}

// Shares runs one case of a peer for a while and returns which part of its CPU time each part of the program took, from 0 to 1. It runs
// `go tool pprof`.
func Shares(ctx context.Context, p Peer, c Case, length time.Duration) (map[Part]float64, error) {
	ops, closer, err := p.Open(&NullDriver{Rows: c.Rows()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer() }()
	if _, err := calibrate(ops[c], 10*time.Millisecond); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "cpu")
	if err := profile(file, ops[c], length); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-unit=ms", "-nodecount=0", "-nodefraction=0", "-hide", hidden, file)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("bench: go tool pprof: %w: %s", err, complaints.String())
	}
	return readTop(string(out))
}

func profile(file string, op Op, length time.Duration) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for end := time.Now().Add(length); time.Now().Before(end); {
		for range 100 {
			if err := op(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readTop sums pprof's table of functions by part. What is in no line, since all of its functions are hidden, is the runtime's.
func readTop(out string) (map[Part]float64, error) {
	shares := map[Part]float64{}
	total, sum := 0.0, 0.0
	for line := range strings.Lines(out) {
		if _, after, ok := strings.Cut(line, "% of "); ok && strings.HasPrefix(line, "Showing nodes accounting for") {
			total = milliseconds(strings.Fields(after)[0])
		}
		f := strings.Fields(line)
		if total == 0 || len(f) < 6 || !strings.HasSuffix(f[1], "%") {
			continue
		}
		flat := milliseconds(f[0])
		shares[partOf(f[5])] += flat
		sum += flat
	}
	if total == 0 {
		return nil, errors.New("bench: go tool pprof printed no table")
	}
	shares[PartRuntime] += total - sum
	for p := range shares {
		shares[p] /= total
	}
	return shares, nil
}

func milliseconds(text string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(text, "ms"), 64)
	return n
}

// WriteShares prints a line of shares for each case of the peers.
func WriteShares(ctx context.Context, w io.Writer, peers []Peer, length time.Duration) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "CPU of\tcase\t")
	for _, part := range Parts() {
		fmt.Fprintf(t, "%s\t", part)
	}
	fmt.Fprintln(t)
	for _, c := range Cases() {
		for _, p := range peers {
			shares, err := Shares(ctx, p, c, length)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "%s\t%s\t", p.Name, c)
			for _, part := range Parts() {
				fmt.Fprintf(t, "%.1f%%\t", 100*shares[part])
			}
			fmt.Fprintln(t)
		}
	}
	return t.Flush()
}

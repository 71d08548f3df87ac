package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// workloadSeed makes the program's own workload, when no trace is given.
const workloadSeed = 1

// errUnfinished is the end of a run whose donations have not all ended, or whose items do not add up. The table has said why.
var errUnfinished = errors.New("not all donations ended, or the items do not add up")

// stopLimit bounds how long a stopped run waits for what is under way.
const stopLimit = 5 * time.Second

// job does the whole work.
func job(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opts, tr, err := input(args, stderr)
	if err != nil {
		return err
	}
	say := newProgress(stderr)
	log := slog.New(tenant.NewLogHandler(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})))

	where, err := openFolder(opts, tr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, where.close()) }()

	cluster, servers, err := deploy(ctx, opts, where.dir, tr, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.stop()) }()
	say.step("shards %s ready", opts.Shards)

	cfg, err := config(cluster, tr, log)
	if err != nil {
		return err
	}
	notes := notesOf(opts, tr)
	if opts.Shards.Kind == options.URLs { // of a folder its record has decided
		if err := sameRun(ctx, cluster.Control(), notes); err != nil {
			return err
		}
	}
	store, err := open(ctx, cfg, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	// A guild's shard that is away for long is waited for: the outcome depends on the trace alone.
	donations, err := saga.NewDonations(store, saga.Config{VoidAfter: saga.Never})
	if err != nil {
		return err
	}
	j := &work{store: store, donations: donations, trace: tr, notes: notes, workers: opts.Workers, say: say}

	finished := false
	err = patiently(ctx, func() (err error) {
		finished, err = j.finished(ctx)
		return err
	})
	if err != nil {
		return err
	}
	var sent int
	var took time.Duration
	if !finished {
		sent, took, err = j.donate(ctx)
		if err != nil {
			return j.stopped(context.WithoutCancel(ctx), err)
		}
	}
	var rep *report.Report
	var accounts []report.Conservation
	err = patiently(ctx, func() (err error) {
		rep, accounts, err = j.collect(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if rep.Pending == 0 && !finished {
		if err := j.note(ctx, noteFinished, "1"); err != nil {
			return err
		}
	}
	return finish(opts, tr, rep, accounts, report.Run{Tenants: declared(tr), Sent: sent, Elapsed: took}, stdout, stderr)
}

// open migrates and opens the store. A server of the program's own that dies meanwhile is restarted, so it is waited for; another's that cannot be
// reached is an error at once.
func open(ctx context.Context, cfg dal.Config, opts options.Options) (store *dal.Store, err error) {
	try := func() error {
		if _, err := schema.Up(ctx, cfg, schema.Saga()); err != nil {
			return err
		}
		store, err = dal.Open(ctx, cfg)
		return err
	}
	if opts.Shards.Kind == options.MariaDB {
		err = patiently(ctx, try)
	} else {
		err = try()
	}
	return store, err
}

// patiently tries again while a database is away.
func patiently(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(patience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if err == nil || !dal.IsConnection(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// input reads the command line and the whole trace.
func input(args []string, stderr io.Writer) (options.Options, *trace.Trace, error) {
	opts, err := options.Parse(args, stderr)
	if err != nil {
		return opts, nil, err
	}
	if opts.Report != "" {
		if err := report.CheckPath(opts.Report); err != nil {
			return opts, nil, &options.UsageError{Flag: "report", Reason: err.Error()}
		}
	}
	if opts.Trace == "" {
		return opts, trace.Generate(workloadSeed, trace.Workload{Donations: 5000, Grants: 2500}), nil
	}
	if one, err := os.Stat(opts.Trace); err == nil && opts.Report != "" {
		if other, err := os.Stat(opts.Report); err == nil && os.SameFile(one, other) {
			return opts, nil, &options.UsageError{Flag: "report", Reason: "it is the trace itself"}
		}
	}
	tr, err := trace.ReadFile(opts.Trace)
	if err != nil {
		return opts, nil, err
	}
	return opts, tr, fits(opts.Trace, tr)
}

// maxText is the width of the key columns.
const maxText = 255

// fits refuses setup lines whose texts no column holds; in donate lines they are outcomes.
func fits(file string, tr *trace.Trace) error {
	for _, l := range tr.Setup {
		for field, v := range map[string]string{"guild": l.Guild, "player": l.Player, "item": l.Item} {
			if len(v) > maxText {
				return &trace.LineError{File: file, Line: l.No, Field: field, Reason: fmt.Sprintf("has %d bytes, want at most %d", len(v), maxText)}
			}
		}
	}
	return nil
}

// config describes the store: the trace's tenants, the saga's tables.
func config(cluster dal.Cluster, tr *trace.Trace, log *slog.Logger) (dal.Config, error) {
	tenants := make([]tenant.Tenant, len(tr.Tenants))
	for i, t := range tr.Tenants {
		tenants[i] = tenant.Tenant{ID: t.ID, Model: t.Model}
		if t.Model == tenant.OwnDatabase {
			for n := 1; n <= min(2, len(cluster.Shards)); n++ { // two shards of its own, where there are two at all
				tenants[i].Placement.Shards = append(tenants[i].Placement.Shards, tenant.ShardName(t.ID, n))
			}
		}
	}
	registry, err := tenant.NewStatic(tenants...)
	if err != nil {
		return dal.Config{}, err
	}
	return dal.Config{Cluster: cluster, Registry: registry, Tables: saga.Tables(), Logger: log}, nil
}

func hash(tr *trace.Trace) string { return hex.EncodeToString(tr.SHA256[:]) }

// system is the scope of everything that the program does for all tenants.
func system(ctx context.Context) context.Context {
	return tenant.System(ctx, "guilddonation: the whole trace", saga.TableNames()...)
}

// work is one run over an open store.
type work struct {
	store     *dal.Store
	donations *saga.Donations
	trace     *trace.Trace
	notes     map[string]string // name to value
	workers   int
	say       *progress
}

// stopped ends a run that was interrupted or failed: it says what is left.
func (w *work) stopped(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	open, _, err := w.open(ctx)
	if err != nil {
		return fmt.Errorf("%w; the pending donations could not be counted: %w", cause, err)
	}
	w.say.step("stopped: %d donations are pending; run again on the same -dir to end them", open)
	return cause
}

// declared returns the trace's tenants for the table.
func declared(tr *trace.Trace) []report.Tenant {
	all := make([]report.Tenant, len(tr.Tenants))
	for i, t := range tr.Tenants {
		all[i] = report.Tenant{ID: string(t.ID), Model: t.Model.String()}
	}
	return all
}

// finish writes report and table, and judges the run.
func finish(opts options.Options, tr *trace.Trace, rep *report.Report, accounts []report.Conservation, run report.Run, stdout, stderr io.Writer) error {
	if opts.Report != "" {
		if err := report.WriteFile(opts.Report, rep); err != nil {
			return err
		}
	}
	summary := report.NewSummary(rep, accounts, run)
	write := summary.WriteText
	if opts.JSON {
		write = summary.WriteJSON
	}
	if err := write(stdout); err != nil {
		return err
	}
	if opts.Trace == "" {
		if wrong := report.Compare(trace.Expect(tr), rep); len(wrong) > 0 {
			for _, line := range wrong[:min(10, len(wrong))] {
				fmt.Fprintln(stderr, line)
			}
			return fmt.Errorf("%d outcomes or balances differ from what the workload must give", len(wrong))
		}
		fmt.Fprintln(stderr, "the workload's outcomes and balances are what they must be")
	}
	if !rep.Conserved || rep.Pending != 0 {
		return errUnfinished
	}
	return nil
}

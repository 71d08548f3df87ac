package bench

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// ScatterConfig says what [MeasureScatter] builds and how often it asks.
type ScatterConfig struct {
	// Shards is the number of shards, each an SQLite file.
	Shards int
	// Rows is the number of rows over all shards; Limit how many a query returns.
	Rows, Limit int
	// Step is how long a statement takes longer on each shard than on the one before: s1 takes Step, the last Shards * Step. It stands for the network and
	// for unequal servers, which one machine has not.
	Step time.Duration
	// Rounds is how often each is measured, one after the other in each round.
	Rounds int
}

// ScatterResult holds, for each round, the time of a query over all shards and of the same query on the slowest alone.
type ScatterResult struct {
	Config      ScatterConfig
	All, Single []time.Duration
	// Ratios are All to Single, round by round.
	Ratios []float64
	// RowsFirst and RowsDeep are the most rows that a shard sent for the first page, and for any of the Pages pages after it.
	RowsFirst, RowsDeep int64
	Pages               int
}

// slow delays the queries that tenants send to a shard, while it is on.
type slow struct {
	by map[string]time.Duration
	on atomic.Bool
}

func (s *slow) Before(ctx context.Context, e wire.Event) error {
	if !s.on.Load() || e.Kind != wire.Scoped || e.Op != "query" {
		return nil
	}
	select {
	case <-time.After(s.by[e.Shard]):
	case <-ctx.Done():
	}
	return nil
}

func (*slow) After(context.Context, wire.Event, error) {}

//go:embed sqlite mysql
var itemFiles embed.FS

// MeasureScatter measures what a query over all shards costs beside the same query on the slowest of them, and walks through all rows by keyset pages.
func MeasureScatter(cfg ScatterConfig) (r ScatterResult, err error) {
	r.Config = cfg
	ctx, cancel := requestContext()
	defer cancel()
	ctx = tenant.NewContext(ctx, tenantID)
	store, last, delays, closing, err := scatterStore(ctx, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closing()) }()

	all := dal.Scatter[Item](store).OrderBy(dal.Asc("id")).Limit(cfg.Limit)
	single := all.With(dal.FanOutSpec{Keys: []shardrouter.Key{last}})
	find := func(q dal.Query[Item]) (time.Duration, error) {
		began := time.Now()
		found, err := q.Find(ctx)
		took := time.Since(began)
		if err == nil && len(found.Rows) != cfg.Limit {
			err = fmt.Errorf("bench: %d rows, want %d", len(found.Rows), cfg.Limit)
		}
		return took, err
	}
	delays.on.Store(true)
	for i := range cfg.Rounds + 1 {
		a, err := find(all)
		if err != nil {
			return r, err
		}
		s, err := find(single)
		if err != nil {
			return r, err
		}
		if i > 0 { // the first opened the pools
			r.All, r.Single, r.Ratios = append(r.All, a), append(r.Single, s), append(r.Ratios, float64(a)/float64(s))
		}
	}
	delays.on.Store(false)
	return r, r.walk(ctx, all)
}

// walk reads every page.
func (r *ScatterResult) walk(ctx context.Context, q dal.Query[Item]) error {
	read := 0
	for at := ""; ; {
		page, err := q.Page(ctx, at)
		if err != nil {
			return err
		}
		for _, s := range page.Report.Shards {
			if r.Pages == 0 {
				r.RowsFirst = max(r.RowsFirst, s.Rows)
			} else {
				r.RowsDeep = max(r.RowsDeep, s.Rows)
			}
		}
		r.Pages++
		if read += len(page.Rows); page.Next == "" {
			break
		}
		at = page.Next
	}
	if read != r.Config.Rows {
		return fmt.Errorf("bench: %d rows in all pages, want %d", read, r.Config.Rows)
	}
	return nil
}

// scatterStore opens the shards and fills them; last is a key of the slowest.
func scatterStore(ctx context.Context, cfg ScatterConfig) (store *dal.Store, last shardrouter.Key, delays *slow, closing func() error, err error) {
	dir, err := os.MkdirTemp("", "tenantdal-bench-")
	if err != nil {
		return nil, "", nil, nil, err
	}
	closing = func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, closing())
		}
	}()
	registry, err := tenant.NewStatic(tenant.Tenant{ID: tenantID, Model: tenant.SharedTable, Limits: tenant.Limits{Rate: 1e9, Burst: 1e6, MaxConns: 8}})
	if err != nil {
		return nil, "", nil, closing, err
	}
	config := dal.Config{
		Cluster: dal.SQLiteCluster(filepath.Join(dir, "shards"), cfg.Shards), Registry: registry,
		Tables: []dal.Table{dal.Tenant[Item]("player", "player_id")},
	}
	if _, err = schema.Up(ctx, config, schema.Set{Name: "bench", FS: itemFiles}); err != nil {
		return nil, "", nil, closing, err
	}
	delays = &slow{by: map[string]time.Duration{}}
	for i, id := range config.Cluster.ShardIDs() {
		delays.by[string(id)] = time.Duration(i+1) * cfg.Step
	}
	if store, err = dal.Open(ctx, dal.WithObserver(config, delays)); err != nil {
		return nil, "", nil, closing, err
	}
	remove := closing
	closing = func() error { return errors.Join(store.Close(context.Background()), remove()) }

	slowest := config.Cluster.ShardIDs()[cfg.Shards-1]
	rows := make([]Item, cfg.Rows)
	for i := range rows {
		rows[i] = Item{PlayerID: fmt.Sprintf("player-%d", i+1), Name: "sword", Qty: 1}
		route, err := store.Route(ctx, dal.Key("player", rows[i].PlayerID))
		if err != nil {
			return nil, "", nil, closing, err
		}
		if route.Place.Shard == slowest {
			last = shardrouter.Key(rows[i].PlayerID)
		}
	}
	for part := range slices.Chunk(rows, 500) {
		if _, err = dal.CreateEach(ctx, store, part); err != nil {
			return nil, "", nil, closing, err
		}
	}
	return store, last, delays, closing, nil
}

// WriteScatterTable prints a result as one table: medians, and the quantiles of the ratio.
func WriteScatterTable(w io.Writer, r ScatterResult) error {
	ms := func(list []time.Duration) float64 {
		values := make([]float64, len(list))
		for i, d := range list {
			values[i] = float64(d) / float64(time.Millisecond)
		}
		return Quantile(values, 0.5)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "all shards ms\tslowest alone ms\tratio\t10%..90%\tpages\trows a shard, first page\tany later page\t\n")
	fmt.Fprintf(t, "%.2f\t%.2f\t%.2f\t%.2f..%.2f\t%d\t%d\t%d\t\n", ms(r.All), ms(r.Single),
		Quantile(r.Ratios, 0.5), Quantile(r.Ratios, 0.1), Quantile(r.Ratios, 0.9), r.Pages, r.RowsFirst, r.RowsDeep)
	return t.Flush()
}

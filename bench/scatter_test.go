package bench_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/bench"
)

// A page costs each shard no more rows, however deep it is, and a query over all shards is no sum of theirs.
func TestMeasureScatter(t *testing.T) {
	cfg := bench.ScatterConfig{Shards: 8, Rows: 400, Limit: 10, Step: time.Millisecond, Rounds: 2}
	r, err := bench.MeasureScatter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.All) != 2 || len(r.Single) != 2 || len(r.Ratios) != 2 {
		t.Errorf("%d, %d and %d times of 2 rounds", len(r.All), len(r.Single), len(r.Ratios))
	}
	if r.Pages != 40 || r.RowsFirst > int64(cfg.Limit)+1 || r.RowsDeep > r.RowsFirst {
		t.Errorf("%d pages, %d rows a shard for the first, %d for a later one, want 40 pages and never more than %d", r.Pages, r.RowsFirst, r.RowsDeep, cfg.Limit+1)
	}
	var table bytes.Buffer
	if err := bench.WriteScatterTable(&table, r); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(table.String(), "\n"); got != 2 {
		t.Errorf("%d lines, want 2:\n%s", got, table.String())
	}
}

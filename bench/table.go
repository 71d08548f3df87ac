package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteTable prints results as one table. Times are medians over the rounds; the ratio is the median, and the 10 % and 90 % quantile, of each round's
// CPU time to that of the first peer in the same round; least is the ratio of the two smallest CPU times, which a busy machine disturbs least; allocations
// and bytes are medians, with the difference to the first peer.
func WriteTable(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "case\tpeer\tns/op\tCPU ns/op\tCPU ratio\t10%..90%\tleast\tallocs\t+allocs\tB/op\t+B\t\n")
	var base Result
	for _, r := range results {
		if r.Case != base.Case {
			base = r
		}
		allocs, bytes := func(s Sample) float64 { return s.Allocs }, func(s Sample) float64 { return s.Bytes }
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.0f\t%.2f\t%.2f..%.2f\t%.2f\t%.0f\t%+.0f\t%.0f\t%+.0f\t\n", r.Case, r.Peer,
			r.Median(func(s Sample) float64 { return s.Wall }), r.Median(func(s Sample) float64 { return s.CPU }),
			Quantile(r.Ratios, 0.5), Quantile(r.Ratios, 0.1), Quantile(r.Ratios, 0.9), r.least()/base.least(),
			r.Median(allocs), r.Median(allocs)-base.Median(allocs), r.Median(bytes), r.Median(bytes)-base.Median(bytes))
	}
	return t.Flush()
}

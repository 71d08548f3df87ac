// Package report holds what a run of guilddonation says about itself: the report file, its comparison with the outcome a trace must have, the
// conservation lines, and the closing table.
//
//	r := &report.Report{Outcomes: outcomes, Backpacks: bags, Warehouses: stock, Shards: shards}
//	r.Conserved, r.Pending = report.Conserved(sums), pending
//	if err := report.WriteFile(path, r); err != nil {
//		return err
//	}
//	for _, difference := range report.Compare(trace.Expect(t), r) {
//		fmt.Fprintln(os.Stderr, difference)
//	}
//	err := report.NewSummary(r, sums, report.Run{Tenants: tenants, Sent: sent, Elapsed: elapsed}).WriteText(os.Stdout)
//
// The package reads no database and holds no clock: rows, sums and durations are handed in. Nothing in it is safe for concurrent use of one value.
package report

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Undeclared is the name under which a [Summary] counts the donations of all tenants that the trace does not declare. It is no tenant's id.
const Undeclared = "(undeclared)"

// maxViolations bounds the accounts that the text table prints; the JSON form holds all.
const maxViolations = 20

// Counts says how many donations ended in which state.
type Counts struct {
	Completed   int `json:"completed"`
	Compensated int `json:"compensated"`
	Rejected    int `json:"rejected"`
	// Unfinished counts outcomes in no final state. A run that went well has none.
	Unfinished int `json:"unfinished"`
}

// Total returns the number of donations counted.
func (c Counts) Total() int {
	return c.Completed + c.Compensated + c.Rejected + c.Unfinished
}

func (c *Counts) add(s State) {
	switch s {
	case Completed:
		c.Completed++
	case Compensated:
		c.Compensated++
	case Rejected:
		c.Rejected++
	default:
		c.Unfinished++
	}
}

// TenantCounts is one tenant's line of the closing table.
type TenantCounts struct {
	// Tenant is the tenant's id, or [Undeclared].
	Tenant string `json:"tenant"`
	// Model is the tenant's isolation model as text; empty for [Undeclared].
	Model string `json:"model,omitempty"`
	Counts
}

// Tenant names a tenant that the trace declares, with its isolation model as text.
type Tenant struct {
	ID, Model string
}

// Run is what a run knows beside the report.
type Run struct {
	// Tenants are the declared tenants; the table lists them in this order.
	Tenants []Tenant
	// Sent is the number of donate lines that this run sent. It is below the number of outcomes when an earlier run on the same data sent the others.
	Sent int
	// Elapsed is the time from the first donation sent to the last one ended.
	Elapsed time.Duration
}

// Summary is the closing table of a run.
type Summary struct {
	// Donations is the number of donate lines with an outcome.
	Donations int `json:"donations"`
	// Sent is the number of them that this run sent, Seconds the time it took, and PerSecond their quotient; 0 where nothing was sent.
	Sent      int     `json:"sent"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"donations_per_second"`
	States    Counts  `json:"states"`
	// Tenants has one element a declared tenant, in the order of [Run.Tenants], and at the end one for all others if they have donations.
	Tenants []TenantCounts `json:"tenants"`
	// Shards is sorted by id.
	Shards []Shard `json:"shards"`
	// ShardsTouched is the number of shards that hold a player, a guild or a donation.
	ShardsTouched int  `json:"shards_touched"`
	Pending       int  `json:"pending"`
	Conserved     bool `json:"conserved"`
	// Accounts is the number of (tenant, item) pairs compared with the ledger, Violations those that differ.
	Accounts   int            `json:"accounts"`
	Violations []Conservation `json:"violations"`
}

// NewSummary makes the closing table from a report, the accounts behind its conserved flag, and what the run knows beside.
func NewSummary(r *Report, accounts []Conservation, run Run) *Summary {
	s := &Summary{
		Donations: len(r.Outcomes), Sent: run.Sent, Seconds: run.Elapsed.Seconds(),
		Tenants: make([]TenantCounts, len(run.Tenants)), Shards: append([]Shard{}, r.Shards...),
		Pending: r.Pending, Conserved: r.Conserved,
		Accounts: len(accounts), Violations: []Conservation{},
	}
	for _, c := range Violations(accounts) {
		s.Violations = append(s.Violations, c.filled())
	}
	if run.Sent > 0 && run.Elapsed > 0 {
		s.PerSecond = float64(run.Sent) / run.Elapsed.Seconds()
	}
	index := make(map[string]int, len(run.Tenants))
	for i, t := range run.Tenants {
		s.Tenants[i] = TenantCounts{Tenant: t.ID, Model: t.Model}
		index[t.ID] = i
	}
	others := TenantCounts{Tenant: Undeclared}
	for _, o := range r.Outcomes {
		s.States.add(o.State)
		if i, declared := index[o.Tenant]; declared {
			s.Tenants[i].add(o.State)
		} else {
			others.add(o.State)
		}
	}
	if others.Total() > 0 {
		s.Tenants = append(s.Tenants, others)
	}
	slices.SortFunc(s.Shards, func(a, b Shard) int { return strings.Compare(a.ID, b.ID) })
	for _, shard := range s.Shards {
		if shard.Players+shard.Guilds+shard.Donations > 0 {
			s.ShardsTouched++
		}
	}
	return s
}

// WriteJSON writes the table as one JSON object, indented, with a line feed at the end.
func (s *Summary) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("report: write the closing table: %w", err)
	}
	return nil
}

// WriteText writes the table for people. Accounts are listed only where they differ, with their numbers.
func (s *Summary) WriteText(w io.Writer) error {
	var b bytes.Buffer
	rate := "nothing to send"
	if s.Sent > 0 {
		rate = fmt.Sprintf("%d sent in %.2f s, %.0f donations/s", s.Sent, s.Seconds, s.PerSecond)
	}
	fmt.Fprintf(&b, "%d donations: %d completed, %d compensated, %d rejected", s.Donations, s.States.Completed, s.States.Compensated, s.States.Rejected)
	if s.States.Unfinished > 0 {
		fmt.Fprintf(&b, ", %d UNFINISHED", s.States.Unfinished)
	}
	fmt.Fprintf(&b, " (%s)\n\n", rate)

	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "tenant\tmodel\tdonations\tcompleted\tcompensated\trejected")
	for _, t := range s.Tenants {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\n", t.Tenant, t.Model, t.Total(), t.Completed, t.Compensated, t.Rejected)
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "shard\tplayers\tguilds\tdonations")
	for _, shard := range s.Shards {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", shard.ID, shard.Players, shard.Guilds, shard.Donations)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("report: write the closing table: %w", err)
	}

	fmt.Fprintf(&b, "\nshards touched: %d of %d\npending: %d\n", s.ShardsTouched, len(s.Shards), s.Pending)
	fmt.Fprintf(&b, "conserved: %s: %s of %d accounts (tenant, item) differ from the ledger\n", yesNo(s.Conserved), countOrNone(len(s.Violations)), s.Accounts)
	for i, c := range s.Violations {
		if i == maxViolations {
			fmt.Fprintf(&b, "  and %d more\n", len(s.Violations)-i)
			break
		}
		fmt.Fprintf(&b, "  %v\n", c)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("report: write the closing table: %w", err)
	}
	return nil
}

func yesNo(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}

func countOrNone(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

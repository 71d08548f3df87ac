package report_test

import (
	"slices"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	full := small()
	expected := &report.Expected{Outcomes: full.Outcomes, Backpacks: full.Backpacks, Warehouses: full.Warehouses}
	for _, c := range []struct {
		name   string
		change func(*report.Report)
		want   []string
	}{
		{"Equal", func(*report.Report) {}, nil},
		{"ZeroRowsAreAbsentRows", func(r *report.Report) {
			r.Backpacks = append(r.Backpacks, report.Backpack{Tenant: "pub", Player: "8", Item: "gold"})
			r.Warehouses = append(r.Warehouses, report.Warehouse{Tenant: "pub", Guild: "8", Item: "gold"})
		}, nil},
		{
			"State", func(r *report.Report) { r.Outcomes[0].State = report.Compensated },
			[]string{`line 12 "pub"/"k2": compensated, want rejected`},
		},
		{
			"NoOutcomes", func(r *report.Report) { r.Outcomes = nil },
			[]string{"line 9: no outcome", "line 12: no outcome"},
		},
		{
			"OutcomeTwice", func(r *report.Report) { r.Outcomes = append(r.Outcomes, r.Outcomes[0]) },
			[]string{"line 12: two outcomes"},
		},
		{
			"OutcomeOfNoDonation", func(r *report.Report) { r.Outcomes = append(r.Outcomes, report.Outcome{Line: 10}) },
			[]string{"line 10: an outcome, but no donation"},
		},
		{
			"OutcomeOfAnotherKey", func(r *report.Report) { r.Outcomes[1].Key = "k9" },
			[]string{`line 9: outcome of "pub"/"k9", want "pub"/"k1"`},
		},
		{
			"OutcomeOfAnotherTenant", func(r *report.Report) { r.Outcomes[1].Tenant = "0" },
			[]string{`line 9: outcome of "0"/"k1", want "pub"/"k1"`},
		},
		{
			"BagMoved", func(r *report.Report) { r.Backpacks[2].Item = "gold  " },
			[]string{`backpacks ["pub" "007" "gold"]: 0, want 2`, `backpacks ["pub" "007" "gold  "]: 2, want 0`},
		},
		{
			"BagByOne", func(r *report.Report) { r.Backpacks[1].Qty-- },
			[]string{`backpacks ["pub" "007" "gold "]: 9223372036854775806, want 9223372036854775807`},
		},
		{
			"BagTwice", func(r *report.Report) { r.Backpacks = append(r.Backpacks, r.Backpacks[0]) },
			[]string{`backpacks ["pub" "7" "<b>"]: listed twice`},
		},
		{
			"WarehouseMissing", func(r *report.Report) { r.Warehouses = r.Warehouses[:1] },
			[]string{`warehouses ["0" "1" "o'neil\"s"]: 0, want 4`},
		},
		{"WarehouseNegative", func(r *report.Report) {
			r.Warehouses = append(r.Warehouses, report.Warehouse{Tenant: "pub", Guild: "9", Item: "gold", Qty: -1})
		}, []string{`warehouses ["pub" "9" "gold"]: -1, want 0`}},
		{"NotConserved", func(r *report.Report) { r.Conserved = false }, []string{"conserved: false, want true"}},
		{"Pending", func(r *report.Report) { r.Pending = 2 }, []string{"pending: 2, want 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := small()
			c.change(r)
			if got := report.Compare(expected, r); !slices.Equal(got, c.want) {
				t.Errorf("Compare = %q, want %q", got, c.want)
			}
		})
	}
}

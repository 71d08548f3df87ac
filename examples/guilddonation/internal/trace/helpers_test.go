package trace_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

const golden = "../../testdata/donations.ndjson"

func readGolden(t *testing.T) *trace.Trace {
	t.Helper()
	tr, err := trace.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func expectedGolden(t *testing.T) *report.Expected {
	t.Helper()
	f, err := os.Open("../../testdata/donations.expected.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := report.DecodeExpected(f)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// parse reads a trace of the given lines.
func parse(lines ...string) (*trace.Trace, error) {
	return trace.Read(strings.NewReader(strings.Join(lines, "\n")), "t.ndjson")
}

func mustParse(t *testing.T, lines ...string) *trace.Trace {
	t.Helper()
	tr, err := parse(lines...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func written(t *testing.T, tr *trace.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// asReport makes a report of what was expected, so that two expectations can be compared.
func asReport(e *report.Expected) *report.Report {
	return &report.Report{Outcomes: e.Outcomes, Backpacks: e.Backpacks, Warehouses: e.Warehouses, Conserved: true}
}

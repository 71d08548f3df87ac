package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
)

func small() *report.Report {
	return &report.Report{
		Outcomes: []report.Outcome{
			{Line: 12, Tenant: "pub", Key: "k2", State: report.Rejected},
			{Line: 9, Tenant: "pub", Key: "k1", State: report.Completed},
		},
		Backpacks: []report.Backpack{
			{Tenant: "pub", Player: "7", Item: "<b>", Qty: 1},
			{Tenant: "pub", Player: "007", Item: "gold ", Qty: 9223372036854775807},
			{Tenant: "pub", Player: "007", Item: "gold", Qty: 2},
		},
		Warehouses: []report.Warehouse{
			{Tenant: "pub", Guild: "2", Item: "星尘", Qty: 3},
			{Tenant: "0", Guild: "1", Item: "o'neil\"s", Qty: 4},
		},
		Shards:    []report.Shard{{ID: "s2", Players: 1}, {ID: "s1", Guilds: 2, Donations: 3}},
		Conserved: true,
	}
}

func TestReport_Encode(t *testing.T) {
	t.Parallel()
	const want = `{"outcomes": [
{"line":9,"tenant":"pub","key":"k1","state":"completed"},
{"line":12,"tenant":"pub","key":"k2","state":"rejected"}
],
"backpacks": [
{"tenant":"pub","player":"007","item":"gold","qty":2},
{"tenant":"pub","player":"007","item":"gold ","qty":9223372036854775807},
{"tenant":"pub","player":"7","item":"<b>","qty":1}
],
"warehouses": [
{"tenant":"0","guild":"1","item":"o'neil\"s","qty":4},
{"tenant":"pub","guild":"2","item":"星尘","qty":3}
],
"shards": [
{"id":"s1","players":0,"guilds":2,"donations":3},
{"id":"s2","players":1,"guilds":0,"donations":0}
],
"conserved": true, "pending": 0}
`
	r := small()
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("Encode wrote\n%s\nwant\n%s", b.String(), want)
	}
	if r.Outcomes[0].Line != 12 {
		t.Error("Encode reordered the caller's rows")
	}
	if !json.Valid(b.Bytes()) {
		t.Error("Encode wrote no valid JSON")
	}
	back, err := report.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	expected := &report.Expected{Outcomes: r.Outcomes, Backpacks: r.Backpacks, Warehouses: r.Warehouses}
	if bad := report.Compare(expected, back); bad != nil {
		t.Errorf("Decode(Encode(r)) differs: %q", bad)
	}
}

func TestReport_Encode_Empty(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := new(report.Report).Encode(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("Encode wrote %q: %v", b.String(), err)
	}
	for _, part := range []string{"outcomes", "backpacks", "warehouses", "shards"} {
		if rows, ok := got[part].([]any); !ok || len(rows) != 0 {
			t.Errorf("%s = %v, want an empty list", part, got[part])
		}
	}
}

func TestDecode_Refuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Empty": "", "Cut": `{"outcomes": [`, "After": `{} {}`, "Unknown": `{"outcome": []}`, "Qty": `{"backpacks": [{"qty": 1.5}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := report.Decode(strings.NewReader(text)); err == nil {
				t.Errorf("Decode(%q) = nil error", text)
			}
		})
	}
}

func TestDecodeExpected_Golden(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../testdata/donations.expected.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := report.DecodeExpected(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Outcomes) != 2062 || len(e.Backpacks) != 1145 || len(e.Warehouses) != 234 {
		t.Errorf("read %d outcomes, %d bags, %d warehouses; want 2062, 1145, 234", len(e.Outcomes), len(e.Backpacks), len(e.Warehouses))
	}
}

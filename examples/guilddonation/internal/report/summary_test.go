package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
)

// night is a run of four donations of two declared tenants and one that no line declares.
func night() (*report.Report, report.Run) {
	r := &report.Report{
		Outcomes: []report.Outcome{
			{Line: 1, Tenant: "pub", State: report.Completed},
			{Line: 2, Tenant: "pub", State: report.Compensated},
			{Line: 3, Tenant: "0", State: report.Completed},
			{Line: 4, Tenant: "Pub\t\n", State: report.Rejected},
		},
		Shards:    []report.Shard{{ID: "s2", Players: 2, Guilds: 1, Donations: 3}, {ID: "s1"}},
		Conserved: true,
	}
	tenants := []report.Tenant{{ID: "pub", Model: "shared"}, {ID: "0", Model: "database"}, {ID: "idle", Model: "schema"}}
	return r, report.Run{Tenants: tenants, Sent: 4, Elapsed: 2 * time.Second}
}

func TestSummary_WriteText(t *testing.T) {
	t.Parallel()
	r, run := night()
	const want = `4 donations: 2 completed, 1 compensated, 1 rejected (4 sent in 2.00 s, 2 donations/s)

tenant        model     donations  completed  compensated  rejected
pub           shared    2          1          1            0
0             database  1          1          0            0
idle          schema    0          0          0            0
(undeclared)            1          0          0            1

shard  players  guilds  donations
s1     0        0       0
s2     2        1       3

shards touched: 1 of 2
pending: 0
conserved: yes: none of 1 accounts (tenant, item) differ from the ledger
`
	var b bytes.Buffer
	if err := report.NewSummary(r, []report.Conservation{{Minted: big.NewInt(1), Bags: big.NewInt(1)}}, run).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("WriteText wrote\n%s\nwant\n%s", b.String(), want)
	}
}

func TestSummary_WriteText_Violations(t *testing.T) {
	t.Parallel()
	r, run := night()
	r.Conserved, r.Pending, run.Sent = false, 1, 0
	r.Outcomes[0].State = "pending"
	accounts := []report.Conservation{{Tenant: "pub", Item: "even"}}
	for i := range 25 {
		accounts = append(accounts, report.Conservation{Tenant: "pub", Item: fmt.Sprint("item", i), Minted: big.NewInt(int64(i) + 1)})
	}
	var b bytes.Buffer
	if err := report.NewSummary(r, accounts, run).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1 UNFINISHED", "(nothing to send)", "pending: 1\n", "conserved: NO: 25 of 26 accounts",
		`  tenant "pub" item "item19": bags 0 + pending 0 + warehouses 0 = 0, minted 20 - burned 0 = 20: 20 missing` + "\n  and 5 more\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	for _, not := range []string{"even", "item20"} {
		if strings.Contains(b.String(), not) {
			t.Errorf("the table mentions %q:\n%s", not, b.String())
		}
	}
}

func TestSummary_WriteJSON(t *testing.T) {
	t.Parallel()
	r, run := night()
	var b bytes.Buffer
	accounts := []report.Conservation{{Tenant: "pub", Item: "<gold>", Minted: past(1), Bags: past(0)}}
	if err := report.NewSummary(r, accounts, run).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	const want = `{"donations":4,"sent":4,"seconds":2,"donations_per_second":2,` +
		`"states":{"completed":2,"compensated":1,"rejected":1,"unfinished":0},` +
		`"tenants":[{"tenant":"pub","model":"shared","completed":1,"compensated":1,"rejected":0,"unfinished":0},` +
		`{"tenant":"0","model":"database","completed":1,"compensated":0,"rejected":0,"unfinished":0},` +
		`{"tenant":"idle","model":"schema","completed":0,"compensated":0,"rejected":0,"unfinished":0},` +
		`{"tenant":"(undeclared)","completed":0,"compensated":0,"rejected":1,"unfinished":0}],` +
		`"shards":[{"id":"s1","players":0,"guilds":0,"donations":0},{"id":"s2","players":2,"guilds":1,"donations":3}],` +
		`"shards_touched":1,"pending":0,"conserved":true,"accounts":1,` +
		`"violations":[{"tenant":"pub","item":"<gold>","minted":9223372036854775808,"burned":0,"bags":9223372036854775807,"pending":0,"warehouses":0}]}`
	var got bytes.Buffer
	if err := json.Compact(&got, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("WriteJSON wrote\n%s\nwant\n%s", got.String(), want)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWrite_ErrorIsReturned(t *testing.T) {
	t.Parallel()
	r, run := night()
	s := report.NewSummary(r, nil, run)
	for name, write := range map[string]error{
		"Encode": r.Encode(brokenWriter{}), "WriteText": s.WriteText(brokenWriter{}), "WriteJSON": s.WriteJSON(brokenWriter{}),
	} {
		if !errors.Is(write, errBroken) {
			t.Errorf("%s on a broken writer = %v, want it to wrap the writer's error", name, write)
		}
	}
}

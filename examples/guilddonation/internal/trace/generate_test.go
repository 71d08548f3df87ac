package trace_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/tenant"
)

func count(tr *trace.Trace, op trace.Op) int {
	n := 0
	for _, l := range tr.Setup {
		if l.Op == op {
			n++
		}
	}
	return n
}

func TestGenerate_ReadsBackEqual(t *testing.T) {
	t.Parallel()
	for _, w := range []trace.Workload{
		{},
		{Donations: 5000, Grants: 2500},
		{Tenants: 1, Donations: 1, Grants: 1},
		{Tenants: 40, Donations: 1000, Grants: 1000},
		{Donations: -1},
		{Grants: -1},
		{Donations: -1, Grants: -1},
		{Tenants: 3, Donations: 2000, Grants: 5},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%+v/Seed%d", w, seed), func(t *testing.T) {
				t.Parallel()
				tr := trace.Generate(seed, w)
				back, err := trace.Read(bytes.NewReader(written(t, tr)), "generated")
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(back, tr) {
					t.Error("written and read again, the trace differs")
				}
				full := w.WithDefaults()
				if got := [3]int{len(tr.Tenants), len(tr.Donations), count(tr, trace.OpGrant)}; got != [3]int{full.Tenants, full.Donations, full.Grants} {
					t.Errorf("%v tenants, donations and grants, want %+v", got, full)
				}
				if again := trace.Generate(seed, w); again.SHA256 != tr.SHA256 {
					t.Error("generated again, the trace differs")
				}
				if other := trace.Generate(seed+100, w); full.Donations+full.Grants > 0 && other.SHA256 == tr.SHA256 {
					t.Error("another seed gives the same trace")
				}
			})
		}
	}
}

// TestGenerate_Golden holds the hash of one trace. A kept folder of a run without a trace file is continued only while this hash stays: a change here
// makes such folders unusable, so it belongs in the change log.
func TestGenerate_Golden(t *testing.T) {
	t.Parallel()
	const want = "f80891131e2ef410490e308f8c98b2e3cd9a34e7d68ff68f193012138fe43dd6"
	tr := trace.Generate(1, trace.Workload{})
	if got := hex.EncodeToString(tr.SHA256[:]); got != want {
		t.Errorf("the trace of seed 1 hashes to %s, want %s", got, want)
	}
}

func TestGenerate_MeetsEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("Seed", seed), func(t *testing.T) {
			t.Parallel()
			tr := trace.Generate(seed, trace.Workload{})
			met := survey(tr)
			for _, want := range []string{
				"completed", "compensated", "rejected", "guild closed", "guild missing", "guild missing, with stock", "warehouse full",
				"warehouse filled to 2^63-1 by a donation", "bag of 2^63-1 donated", "bag too small", "no such item in the bag", "qty 0", "qty below 0", "tenant undeclared", "tenant ill-formed",
				"id empty", "id 0", "same key, same payload", "same key, other payload", "key free after a rejection", "key of two players", "key of two tenants",
				"player of two tenants", "ids differ in a zero", "items differ in a blank", "before its tenant", "total past 2^63-1",
				"model shared", "model schema", "model database",
			} {
				if met[want] == 0 {
					t.Errorf("no donation meets %q: %v", want, met)
				}
			}
			if n := met["completed"]; n < len(tr.Donations)/2 {
				t.Errorf("%d of %d donations are completed, want half of them at least", n, len(tr.Donations))
			}
		})
	}
}

// survey counts what the donations of a trace meet.
func survey(tr *trace.Trace) map[string]int {
	met := map[string]int{}
	status, stock, granted := map[[2]string]string{}, map[[2]string]bool{}, map[cellID]int64{}
	minted := map[[2]string]*big.Int{}
	tenantLine := map[string]int{}
	for _, l := range tr.Setup {
		switch l.Op {
		case trace.OpTenant:
			met["model "+l.Model.String()]++
			tenantLine[l.Tenant] = l.No
		case trace.OpGuild:
			status[[2]string{l.Tenant, l.Guild}] = l.Status
		case trace.OpStock:
			stock[[2]string{l.Tenant, l.Guild}] = true
		case trace.OpGrant:
			granted[cellID{l.Tenant, l.Player, l.Item}] += l.Qty
		}
		if l.Qty > 0 {
			sum := minted[[2]string{l.Tenant, l.Item}]
			if sum == nil {
				sum = new(big.Int)
				minted[[2]string{l.Tenant, l.Item}] = sum
			}
			if sum.Add(sum, big.NewInt(l.Qty)); !sum.IsInt64() {
				met["total past 2^63-1"]++
			}
		}
	}
	e := trace.Expect(tr)
	end := map[cellID]int64{}
	for _, w := range e.Warehouses {
		end[cellID{w.Tenant, w.Guild, w.Item}] = w.Qty
	}
	state := map[int]report.State{}
	for _, o := range e.Outcomes {
		state[o.Line] = o.State
		met[string(o.State)]++
	}
	keyPlayers, keyTenants, playerTenants := map[string]string{}, map[string]string{}, map[string]string{}
	seen := map[string]bool{}
	for _, chain := range trace.Chains(tr.Donations) {
		for i, l := range chain {
			note := func(what string, is bool) {
				if is {
					met[what]++
				}
			}
			g, s := status[[2]string{l.Tenant, l.Guild}], state[l.No]
			held := granted[cellID{l.Tenant, l.Player, l.Item}]
			_, illFormed := tenant.ParseID(l.Tenant)
			back, done := s == report.Compensated, s == report.Completed
			note("guild closed", back && g == trace.Closed)
			note("guild missing", back && g == "")
			note("guild missing, with stock", back && g == "" && stock[[2]string{l.Tenant, l.Guild}])
			note("warehouse full", back && g == trace.Open)
			note("warehouse filled to 2^63-1 by a donation", done && l.Qty < math.MaxInt64 && end[cellID{l.Tenant, l.Guild, l.Item}] == math.MaxInt64)
			note("bag of 2^63-1 donated", done && l.Qty == math.MaxInt64)
			note("bag too small", s == report.Rejected && held > 0 && l.Qty > held)
			note("no such item in the bag", s == report.Rejected && held == 0 && l.Qty > 0 && tenantLine[l.Tenant] > 0 && l.Item != "")
			note("qty 0", l.Qty == 0)
			note("qty below 0", l.Qty < 0)
			note("tenant undeclared", illFormed == nil && tenantLine[l.Tenant] == 0)
			note("tenant ill-formed", illFormed != nil)
			note("id empty", l.Player == "" || l.Guild == "" || l.Item == "")
			note("id 0", l.Player == "0" || l.Guild == "0")
			note("before its tenant", l.No < tenantLine[l.Tenant])
			if i > 0 {
				first := chain[0]
				same := first.Guild == l.Guild && first.Item == l.Item && first.Qty == l.Qty
				note("same key, same payload", same && state[first.No] == s && done)
				note("same key, other payload", !same && s == report.Rejected && state[first.No] == report.Completed)
				note("key free after a rejection", state[first.No] == report.Rejected && done)
			}
			if s == report.Rejected {
				continue
			}
			note("key of two players", keyPlayers[l.Tenant+" "+l.Key] != "" && keyPlayers[l.Tenant+" "+l.Key] != l.Player)
			note("key of two tenants", keyTenants[l.Key] != "" && keyTenants[l.Key] != l.Tenant)
			note("player of two tenants", playerTenants[l.Player] != "" && playerTenants[l.Player] != l.Tenant)
			keyPlayers[l.Tenant+" "+l.Key], keyTenants[l.Key], playerTenants[l.Player] = l.Player, l.Tenant, l.Tenant
			seen["player "+l.Player], seen["item "+l.Item] = true, true
		}
	}
	if seen["player 7"] && seen["player 007"] {
		met["ids differ in a zero"]++
	}
	if seen["item gold"] && seen["item gold "] {
		met["items differ in a blank"]++
	}
	return met
}

func TestChains(t *testing.T) {
	t.Parallel()
	line := func(no int, tenant, player, key string) trace.Line {
		return trace.Line{No: no, Op: trace.OpDonate, Tenant: tenant, Player: player, Key: key}
	}
	a1, b1, a2 := line(1, "pub", "7", "k"), line(2, "pub", "07", "k"), line(3, "pub", "7", "k")
	c1, d1, e1 := line(4, "pub", "7", "k "), line(5, "pub7", "", "k"), line(6, "", "", "")
	got := trace.Chains([]trace.Line{a1, b1, a2, c1, d1, e1})
	if want := [][]trace.Line{{a1, a2}, {b1}, {c1}, {d1}, {e1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("Chains = %+v, want %+v", got, want)
	}
	if got := trace.Chains(nil); len(got) != 0 {
		t.Errorf("Chains(nil) = %v, want none", got)
	}
}

package trace_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

// A schedule runs the donations of a trace step by step in a random order, as sagas do: a chain sends its next line, a guild decides on a donation in
// flight, a refund arrives. The weights say how eagerly; a step of weight 0 waits until nothing else is left to do.
type schedule struct {
	name                 string
	send, decide, refund int
}

var schedules = []schedule{
	{"Even", 1, 1, 1},
	{"RefundsAtTheEnd", 5, 5, 0},
	{"DecisionsAtTheEnd", 1, 0, 0},
	{"OneByOne", 1, 50, 1000},
}

type (
	sagaID    struct{ tenant, player, key string }
	cellID    struct{ tenant, owner, item string }
	modelSaga struct {
		guild, item string
		qty         int64
		state       report.State // empty while it is in flight
		bag         cellID
		warehouse   cellID
	}
)

// run plays the trace by the schedule and reports what it ended in.
func (s schedule) run(tr *trace.Trace, rng *rand.Rand) *report.Report {
	declared, open := map[string]bool{}, map[[2]string]bool{}
	bags, warehouses := map[cellID]int64{}, map[cellID]int64{}
	for _, l := range tr.Setup {
		switch l.Op {
		case trace.OpTenant:
			declared[l.Tenant] = true
		case trace.OpGuild:
			open[[2]string{l.Tenant, l.Guild}] = l.Status == trace.Open
		case trace.OpStock:
			warehouses[cellID{l.Tenant, l.Guild, l.Item}] += l.Qty
		case trace.OpGrant:
			bags[cellID{l.Tenant, l.Player, l.Item}] += l.Qty
		}
	}
	chains := trace.Chains(tr.Donations)
	journal := map[sagaID]*modelSaga{}
	var undecided, refundable []*modelSaga
	standsFor := map[int]*modelSaga{} // by line; none: rejected

	send := func(l trace.Line) {
		if !declared[l.Tenant] || l.Qty <= 0 || l.Key == "" || l.Item == "" || l.Player == "" || l.Player == "0" || l.Guild == "" || l.Guild == "0" {
			return
		}
		id := sagaID{l.Tenant, l.Player, l.Key}
		if first := journal[id]; first != nil {
			if first.guild == l.Guild && first.item == l.Item && first.qty == l.Qty {
				standsFor[l.No] = first
			}
			return
		}
		saga := &modelSaga{l.Guild, l.Item, l.Qty, "", cellID{l.Tenant, l.Player, l.Item}, cellID{l.Tenant, l.Guild, l.Item}}
		if bags[saga.bag] < l.Qty {
			return
		}
		bags[saga.bag] -= l.Qty
		journal[id], standsFor[l.No] = saga, saga
		undecided = append(undecided, saga)
	}
	decide := func(saga *modelSaga) {
		if open[[2]string{saga.warehouse.tenant, saga.guild}] && warehouses[saga.warehouse] <= math.MaxInt64-saga.qty {
			warehouses[saga.warehouse] += saga.qty
			saga.state = report.Completed
			return
		}
		refundable = append(refundable, saga)
	}
	for len(chains)+len(undecided)+len(refundable) > 0 {
		weights := [3]int{s.send * min(len(chains), 1), s.decide * min(len(undecided), 1), s.refund * min(len(refundable), 1)}
		if weights == [3]int{} {
			weights = [3]int{min(len(chains), 1), min(len(undecided), 1), 0}
			if weights == [3]int{} {
				weights[2] = 1
			}
		}
		switch n := rng.IntN(weights[0] + weights[1] + weights[2]); {
		case n < weights[0]:
			i := rng.IntN(len(chains))
			send(chains[i][0])
			if chains[i] = chains[i][1:]; len(chains[i]) == 0 {
				takeOut(&chains, i)
			}
		case n < weights[0]+weights[1]:
			decide(takeOut(&undecided, rng.IntN(len(undecided))))
		default:
			saga := takeOut(&refundable, rng.IntN(len(refundable)))
			bags[saga.bag] += saga.qty
			saga.state = report.Compensated
		}
	}

	r := &report.Report{Conserved: true}
	for _, l := range tr.Donations {
		o := report.Outcome{Line: l.No, Tenant: l.Tenant, Key: l.Key, State: report.Rejected}
		if saga := standsFor[l.No]; saga != nil {
			o.State = saga.state
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	for c, qty := range bags {
		r.Backpacks = append(r.Backpacks, report.Backpack{Tenant: c.tenant, Player: c.owner, Item: c.item, Qty: qty})
	}
	for c, qty := range warehouses {
		r.Warehouses = append(r.Warehouses, report.Warehouse{Tenant: c.tenant, Guild: c.owner, Item: c.item, Qty: qty})
	}
	return r
}

// takeOut removes the element i from a list whose order does not matter.
func takeOut[T any](list *[]T, i int) T {
	s := *list
	out := s[i]
	s[i] = s[len(s)-1]
	*list = s[:len(s)-1]
	return out
}

// checkSchedules plays the trace many times, and demands the expected end each time.
func checkSchedules(t *testing.T, tr *trace.Trace, times int) {
	t.Helper()
	expected := trace.Expect(tr)
	for _, s := range schedules {
		for seed := range uint64(times) {
			if bad := report.Compare(expected, s.run(tr, rand.New(rand.NewPCG(seed, 1)))); bad != nil {
				t.Errorf("schedule %s, seed %d: %d differences: %.5q", s.name, seed, len(bad), bad)
			}
		}
	}
}

func TestExpect_Golden_AnySchedule(t *testing.T) {
	t.Parallel()
	checkSchedules(t, readGolden(t), 5)
}

func TestExpect_Generated_AnySchedule(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("Seed", seed), func(t *testing.T) {
			t.Parallel()
			checkSchedules(t, trace.Generate(seed, trace.Workload{}), 2)
		})
	}
	for name, w := range map[string]trace.Workload{
		"Large": {Donations: 5000, Grants: 2500}, "FewGrants": {Donations: 3000, Grants: 100}, "FewDonations": {Donations: 100}, "OneTenant": {Tenants: 1, Donations: 2000, Grants: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkSchedules(t, trace.Generate(1, w), 2)
		})
	}
}

// TestSchedules_FindDependence shows that the schedules do find an outcome that hangs on the order or on a refund.
func TestSchedules_FindDependence(t *testing.T) {
	t.Parallel()
	donate := func(key, guild string) string {
		return `{"op":"donate","tenant":"pub","key":"` + key + `","player":"7","guild":"` + guild + `","item":"gold","qty":5}`
	}
	for name, lines := range map[string][]string{
		"Refund":    {pub, guild, text("grant", "", ""), donate("a", "missing"), donate("b", "1")},
		"Order":     {pub, guild, text("grant", "", ""), donate("a", "1"), donate("b", "1")},
		"Warehouse": {pub, guild, text("grant", "qty", "10"), text("stock", "qty", "9223372036854775800"), donate("a", "1"), donate("b", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := mustParse(t, lines...)
			found := 0
			for _, s := range schedules {
				for seed := range uint64(20) {
					if report.Compare(trace.Expect(tr), s.run(tr, rand.New(rand.NewPCG(seed, 1)))) != nil {
						found++
					}
				}
			}
			if found == 0 {
				t.Error("no schedule found that the outcome depends on the order")
			}
		})
	}
}

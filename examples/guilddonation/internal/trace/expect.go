package trace

import (
	"math"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
)

// Expect works out how a trace must end, one donation after the other, each refund at once. It knows no shards, no sagas and no databases: plain maps,
// written from the meaning of the lines alone, so that it can judge a run. The result is sorted, and leaves out cells that hold 0.
//
// A trace whose outcomes depend on the order of its chains or on when a refund arrives has other right outcomes than this one.
func Expect(t *Trace) *report.Expected {
	o := &oracle{
		declared: make(map[string]bool), open: make(map[owned]bool),
		bags: make(map[cell]int64), warehouses: make(map[cell]int64), stands: make(map[chainID]donation),
	}
	for i := range t.Setup {
		switch l := &t.Setup[i]; l.Op {
		case OpTenant:
			o.declared[l.Tenant] = true
		case OpGuild:
			o.open[owned{l.Tenant, l.Guild}] = l.Status == Open
		case OpStock:
			o.warehouses[cell{owned{l.Tenant, l.Guild}, l.Item}] += l.Qty
		case OpGrant:
			o.bags[cell{owned{l.Tenant, l.Player}, l.Item}] += l.Qty
		}
	}
	e := &report.Expected{Outcomes: make([]report.Outcome, 0, len(t.Donations)), Backpacks: []report.Backpack{}, Warehouses: []report.Warehouse{}}
	for i := range t.Donations {
		l := &t.Donations[i]
		e.Outcomes = append(e.Outcomes, report.Outcome{Line: l.No, Tenant: l.Tenant, Key: l.Key, State: o.donate(l)})
	}
	for c, qty := range o.bags {
		if qty != 0 {
			e.Backpacks = append(e.Backpacks, report.Backpack{Tenant: c.tenant, Player: c.id, Item: c.item, Qty: qty})
		}
	}
	for c, qty := range o.warehouses {
		if qty != 0 {
			e.Warehouses = append(e.Warehouses, report.Warehouse{Tenant: c.tenant, Guild: c.id, Item: c.item, Qty: qty})
		}
	}
	e.Sort()
	return e
}

// owned names a player or a guild of a tenant; cell names an item of theirs.
type (
	owned struct{ tenant, id string }
	cell  struct {
		owned
		item string
	}
)

// donation is what a key stands for once its first donation was accepted.
type donation struct {
	guild, item string
	qty         int64
	state       report.State
}

type oracle struct {
	declared   map[string]bool
	open       map[owned]bool // absent: no such guild
	bags       map[cell]int64
	warehouses map[cell]int64
	stands     map[chainID]donation
}

func (o *oracle) donate(l *Line) report.State {
	if !o.declared[l.Tenant] || l.Qty <= 0 || l.Key == "" || l.Item == "" || noID(l.Player) || noID(l.Guild) {
		return report.Rejected
	}
	if first, used := o.stands[l.chainID()]; used {
		if first.guild != l.Guild || first.item != l.Item || first.qty != l.Qty {
			return report.Rejected
		}
		return first.state
	}
	bag := cell{owned{l.Tenant, l.Player}, l.Item}
	if o.bags[bag] < l.Qty {
		return report.Rejected
	}
	state := report.Compensated
	warehouse := cell{owned{l.Tenant, l.Guild}, l.Item}
	if o.open[warehouse.owned] && o.warehouses[warehouse] <= math.MaxInt64-l.Qty {
		state = report.Completed
		o.bags[bag] -= l.Qty
		o.warehouses[warehouse] += l.Qty
	}
	o.stands[l.chainID()] = donation{l.Guild, l.Item, l.Qty, state}
	return state
}

func noID(id string) bool { return id == "" || id == "0" }

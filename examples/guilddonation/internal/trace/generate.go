package trace

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tenantdal/tenantdal/tenant"
)

// Workload says how large a generated trace is.
type Workload struct {
	// Tenants is the number of tenants. The first eight are of all three isolation models; those beyond share tables, so that many tenants do not need
	// many schemas and databases.
	//
	// Zero means 8.
	Tenants int
	// Donations is the number of donate lines.
	//
	// Zero means 4000; -1 means none.
	Donations int
	// Grants is the number of grant lines. With few grants for many donations the bags run dry, and the rest of the donations is rejected.
	//
	// Zero means 2000; -1 means none.
	Grants int
}

// WithDefaults returns the workload with the defaults filled in, and -1 as 0.
func (w Workload) WithDefaults() Workload {
	fill := func(n, zero int) int {
		if n == 0 {
			return zero
		}
		return max(n, 0)
	}
	w.Tenants, w.Donations, w.Grants = max(fill(w.Tenants, 8), 1), fill(w.Donations, 4000), fill(w.Grants, 2000)
	return w
}

// Generate invents a trace: the program's own workload. Equal seeds and workloads give equal traces, byte by byte, on every machine.
//
// It holds what a donation can meet: open, closed and missing guilds, warehouses that are full, almost full, or filled to the last unit, bags that hold
// too little and bags that hold 2^63-1, keys used again with the same and with another payload, keys that stay free after a rejection, equal keys of
// several players and tenants, undeclared and ill-formed tenants, quantities of 0 and less, and ids that differ in a blank, a zero, the case or the
// Unicode form alone. Some donations stand before the setup lines they need.
//
// No outcome depends on the order of the chains or on when a refund arrives:
//   - a bag holds enough for all donations that are meant to be accepted, refunded ones included, and less than any other donation asks for;
//   - a warehouse has room for all donations that are meant for it, or for none.
func Generate(seed uint64, w Workload) *Trace {
	w = w.WithDefaults()
	// A generator of its own sequence: rand.Rand promises no stable sequence of bounded numbers, and the hash of a trace is kept with the data of its run.
	g := &generator{rng: rand.NewPCG(seed, 0x7472616365), bags: make(map[cell]*bag), brims: make(map[string]int64), used: make(map[chainID]bool)}
	g.makeTenants(w.Tenants)
	g.makeGuilds()
	g.makeGrants(w)
	g.makeDonations(w.Donations)
	return g.trace()
}

// The guilds of each tenant. Open ones take what fits.
var openGuilds = []string{"7", "07", "7 ", "x", "X", "Nachtwölfe", "夜の灯", "o'guild \"%\"", "guild-of-the-very-long-name-000000000000000000000000000000001"}

const (
	closedGuild = "closed"        // open to nobody, with stock
	noGuild     = "never-founded" // no line declares it
	ghostGuild  = "ghost"         // no line declares it, and it has stock all the same
	vaultGuild  = "vault"         // open, and so full that nothing fits
	brimGuild   = "brim"          // open, and filled to 2^63-1 by its last donation
)

const (
	vaultItem  = "gold"       // the item of which the vault holds 2^63-2, so that donations of 2 or more do not fit
	brimItem   = "potion"     // the item of which the brim has room for exactly what is donated
	whaleItem  = "orichalcum" // the item of which whales hold 2^63-1
	absentItem = "never-minted"
)

var items = []string{vaultItem, vaultItem + " ", "Gold", brimItem, "50%_off", `raven's "edge" \ ?`, "星尘", "🗡️", "é", "e\u0301"}

var tenantIDs = []string{"pub", "pub-b", "region_eu", "0", "1", "pub-b-1", "channel-android-cn-00000000000000000000000000000000000000000001", "7"}

var models = []tenant.Model{
	tenant.SharedTable, tenant.OwnSchema, tenant.OwnDatabase, tenant.SharedTable, tenant.SharedTable, tenant.OwnSchema, tenant.OwnDatabase, tenant.SharedTable,
}

var playerIDs = []string{"7", "007", "7 ", "00", "-1", "18446744073709551615", "9223372036854775808", "o'brien", `100% \"`, "名無し", "🐉", "Ä", "A\u0308"}

// bag is one cell of a player's bag.
type bag struct {
	cell
	granted int64 // what all its grants add up to
	left    int64 // what no donation has been planned for; refunds are not counted back
}

type generator struct {
	rng       *rand.PCG
	tenants   []Tenant
	setup     []Line
	bags      map[cell]*bag
	order     []*bag           // the bags, in the order of their first grants
	brims     map[string]int64 // what is planned for the brim of each tenant
	whales    []*bag           // bags of 2^63-1 that have not donated
	used      map[chainID]bool // chains planned
	donations [][]Line         // the chains
	planned   int              // donate lines in them
}

// n returns a number from 0 to limit-1. The bias of the modulus does not matter here.
func (g *generator) n(limit int) int {
	return int(g.rng.Uint64() % uint64(limit))
}

func (g *generator) chance(percent int) bool { return g.n(100) < percent }

func pick[T any](g *generator, from []T) T { return from[g.n(len(from))] }

func (g *generator) makeTenants(count int) {
	for i := range count {
		id, model := fmt.Sprintf("tenant-%06d", i), tenant.SharedTable
		if i < len(tenantIDs) {
			id, model = tenantIDs[i], models[i]
		}
		g.tenants = append(g.tenants, Tenant{tenant.ID(id), model})
		g.setup = append(g.setup, Line{Op: OpTenant, Tenant: id, Model: model})
	}
}

func (g *generator) makeGuilds() {
	for _, t := range g.tenants {
		guild := func(id, status string) {
			g.setup = append(g.setup, Line{Op: OpGuild, Tenant: string(t.ID), Guild: id, Status: status})
		}
		stock := func(id, item string, qty int64) {
			g.setup = append(g.setup, Line{Op: OpStock, Tenant: string(t.ID), Guild: id, Item: item, Qty: qty})
		}
		for _, id := range openGuilds {
			guild(id, Open)
		}
		guild(closedGuild, Closed)
		guild(vaultGuild, Open)
		guild(brimGuild, Open)
		guild(brimGuild, Open) // declared again with the same status: nothing new
		stock(openGuilds[0], items[1], 5)
		stock(closedGuild, vaultItem, 11)
		// Three cells near 2^63-1: the tenant's total of the item is larger than any of its cells may be.
		stock(ghostGuild, vaultItem, math.MaxInt64)
		stock(vaultGuild, vaultItem, math.MaxInt64-2)
		stock(vaultGuild, vaultItem, 1)
		stock(vaultGuild, whaleItem, 1)
		stock(brimGuild, brimItem, math.MaxInt64) // lowered in trace, when it is known what will be donated
	}
}

func (g *generator) makeGrants(w Workload) {
	grant := func(c cell, qty int64) *bag {
		g.setup = append(g.setup, Line{Op: OpGrant, Tenant: c.tenant, Player: c.id, Item: c.item, Qty: qty})
		b := g.bags[c]
		if b == nil {
			b = &bag{cell: c}
			g.bags[c] = b
		}
		b.granted += qty
		b.left += qty
		return b
	}
	grants := w.Grants
	if grants >= 4*w.Tenants {
		for _, t := range g.tenants {
			// The fuller whale's bag takes two grants to fill.
			grant(cell{owned{string(t.ID), "whale"}, whaleItem}, math.MaxInt64-1)
			b := grant(cell{owned{string(t.ID), "whale"}, whaleItem}, 1)
			g.whales = append(g.whales, b)
			grants -= 2
		}
	}
	players := max(len(playerIDs), grants/(2*w.Tenants))
	for range grants {
		player := g.n(players)
		id := fmt.Sprintf("realm-3/player-%09d", player)
		if player < len(playerIDs) {
			id = playerIDs[player]
		}
		c := cell{owned{string(pick(g, g.tenants).ID), id}, pick(g, items)}
		known := g.bags[c] != nil
		if b := grant(c, int64(1+g.n(40))); !known {
			g.order = append(g.order, b)
		}
	}
}

// trace shuffles the chains into each other, puts all lines in order, and numbers them.
func (g *generator) trace() *Trace {
	t := &Trace{Tenants: g.tenants}
	for i := range g.setup {
		if l := &g.setup[i]; l.Op == OpStock && l.Guild == brimGuild {
			l.Qty = math.MaxInt64 - g.brims[l.Tenant]
		}
	}
	var turns []int // a chain's number, once for each of its lines
	for i, chain := range g.donations {
		for range chain {
			turns = append(turns, i)
		}
	}
	for i := len(turns) - 1; i > 0; i-- {
		j := g.n(i + 1)
		turns[i], turns[j] = turns[j], turns[i]
	}
	early, no := len(turns)/20, 0 // donations that stand among the setup lines, the first three before all of them
	for s, d := 0, 0; s < len(g.setup) || d < len(turns); {
		no++
		if s == len(g.setup) || d < min(early, 3) || d < early && g.n(len(g.setup)) < early {
			chain := &g.donations[turns[d]]
			l := (*chain)[0]
			*chain = (*chain)[1:]
			l.No = no
			t.Donations = append(t.Donations, l)
			d++
			continue
		}
		l := g.setup[s]
		l.No = no
		t.Setup = append(t.Setup, l)
		s++
	}
	hash := sha256.New()
	if err := Write(hash, t); err != nil {
		panic(err) // the numbers are right and the texts are ours
	}
	hash.Sum(t.SHA256[:0])
	return t
}

package trace

import (
	"crypto/sha256"

	"github.com/tenantdal/tenantdal/tenant"
)

// Op is the kind of a line.
type Op string

// The five kinds of lines. All but donate are setup lines.
const (
	OpTenant Op = "tenant" // registers a tenant and its isolation model
	OpGuild  Op = "guild"  // makes a guild
	OpStock  Op = "stock"  // mints into a guild's warehouse
	OpGrant  Op = "grant"  // mints into a player's bag
	OpDonate Op = "donate" // donates from a player's bag to a guild's warehouse
)

// The two statuses of a guild.
const (
	Open   = "open"
	Closed = "closed" // refuses donations
)

// Line is one line of a trace. Fields that its op does not have are zero. Ids, items and keys are compared byte by byte.
type Line struct {
	// No is the line's number in the file, counted from 1.
	No int
	Op Op
	// Tenant is the tenant's id; in a tenant line, the id that it declares. In a donate line it may be undeclared and ill-formed.
	Tenant string
	// Model is set in tenant lines.
	Model tenant.Model
	Guild string
	// Status is [Open] or [Closed] in guild lines.
	Status string
	Item   string
	Player string
	// Key is the caller's idempotency key of a donation, unique per tenant and player.
	Key string
	// Qty is above 0 in stock and grant lines, and anything in donate lines.
	Qty int64
}

// Tenant is a tenant that the trace declares.
type Tenant struct {
	ID    tenant.ID
	Model tenant.Model
}

// Trace is a whole trace that has been checked.
type Trace struct {
	// Setup holds the tenant, guild, stock and grant lines, in the order of the file.
	Setup []Line
	// Donations holds the donate lines, in the order of the file.
	Donations []Line
	// SHA256 is the hash of the file's bytes; of a generated trace, that of the bytes which [Write] writes.
	SHA256 [sha256.Size]byte
	// Tenants are the declared tenants, in the order of their lines; their ids differ.
	Tenants []Tenant
}

// chainID is what the saga id of a donation is derived from.
type chainID struct{ tenant, player, key string }

func (l *Line) chainID() chainID { return chainID{l.Tenant, l.Player, l.Key} }

// Chains groups donate lines by tenant, player and key. Lines of different chains may run concurrently; those of one chain keep their order.
//
// Each line is in exactly one chain, no chain is empty, and chains come in the order of their first lines.
func Chains(donations []Line) [][]Line {
	var chains [][]Line
	index := make(map[chainID]int)
	for _, l := range donations {
		i, ok := index[l.chainID()]
		if !ok {
			i = len(chains)
			index[l.chainID()] = i
			chains = append(chains, nil)
		}
		chains[i] = append(chains[i], l)
	}
	return chains
}

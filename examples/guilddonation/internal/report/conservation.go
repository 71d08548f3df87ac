package report

import (
	"fmt"
	"math/big"
)

// Conservation is the account of one item of one tenant: what the ledger says was minted and burned, and where it is now.
//
// Sums pass 2^63-1, since only a single cell is bounded by it, so all are big integers; nil counts as 0.
type Conservation struct {
	Tenant string `json:"tenant"`
	Item   string `json:"item"`
	// Minted and Burned are sums over the ledger.
	Minted *big.Int `json:"minted"`
	Burned *big.Int `json:"burned"`
	// Bags is the sum over the players' bags, Pending over donations that have left a bag and not ended, Warehouses over the guilds' warehouses.
	Bags       *big.Int `json:"bags"`
	Pending    *big.Int `json:"pending"`
	Warehouses *big.Int `json:"warehouses"`
}

// Held returns bags + pending + warehouses.
func (c Conservation) Held() *big.Int {
	sum := new(big.Int).Add(orZero(c.Bags), orZero(c.Pending))
	return sum.Add(sum, orZero(c.Warehouses))
}

// Owed returns minted - burned: what must be held.
func (c Conservation) Owed() *big.Int {
	return new(big.Int).Sub(orZero(c.Minted), orZero(c.Burned))
}

// Conserved says whether exactly what is owed is held.
func (c Conservation) Conserved() bool {
	return c.Held().Cmp(c.Owed()) == 0
}

// String gives the account in one line, with the difference if there is one.
func (c Conservation) String() string {
	text := fmt.Sprintf("tenant %q item %q: bags %v + pending %v + warehouses %v = %v, minted %v - burned %v = %v", c.Tenant, c.Item,
		orZero(c.Bags), orZero(c.Pending), orZero(c.Warehouses), c.Held(), orZero(c.Minted), orZero(c.Burned), c.Owed())
	switch diff := new(big.Int).Sub(c.Held(), c.Owed()); diff.Sign() {
	case 1:
		return fmt.Sprintf("%s: %v too many", text, diff)
	case -1:
		return fmt.Sprintf("%s: %v missing", text, diff.Neg(diff))
	default:
		return text
	}
}

// Conserved says whether every account is. It is true of no accounts at all: nothing minted, nothing held.
func Conserved(accounts []Conservation) bool {
	return len(Violations(accounts)) == 0
}

// Violations returns the accounts that do not add up, in the given order; nil if all do.
func Violations(accounts []Conservation) []Conservation {
	var bad []Conservation
	for _, c := range accounts {
		if !c.Conserved() {
			bad = append(bad, c)
		}
	}
	return bad
}

// filled returns the account with 0 where it has nil, so that its JSON form holds numbers alone.
func (c Conservation) filled() Conservation {
	c.Minted, c.Burned = orZero(c.Minted), orZero(c.Burned)
	c.Bags, c.Pending, c.Warehouses = orZero(c.Bags), orZero(c.Pending), orZero(c.Warehouses)
	return c
}

func orZero(n *big.Int) *big.Int {
	if n == nil {
		return new(big.Int)
	}
	return n
}

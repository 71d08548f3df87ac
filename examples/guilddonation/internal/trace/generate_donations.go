package trace

import (
	"fmt"
	"math"
)

// makeDonations plans chains until they hold count lines.
func (g *generator) makeDonations(count int) {
	for g.planned < count {
		chain := g.chain()
		chain = chain[:min(len(chain), count-g.planned)] // to cut off the last lines of a chain leaves bags and warehouses with room to spare
		g.donations = append(g.donations, chain)
		g.planned += len(chain)
	}
}

// chain plans all lines of one tenant, player and key.
func (g *generator) chain() []Line {
	if len(g.whales) > 0 && g.chance(5) {
		return g.whaleChain()
	}
	switch p := g.n(100); {
	case p < 80:
		if l, ok := g.accepted(); ok {
			return g.retried(l, nil)
		}
		return []Line{g.rejected()}
	case p < 85:
		// A rejection leaves the key free: the same key, asking for what is there, is accepted.
		if l, ok := g.accepted(); ok {
			l2 := l
			l2.Qty = -int64(g.n(2))
			return g.retried(l, []Line{l2, g.tooMuch(l)})
		}
		return []Line{g.rejected()}
	default:
		l := g.rejected()
		if g.chance(20) {
			return []Line{l, l}
		}
		return []Line{l}
	}
}

// accepted plans a donation that its bag can pay whatever else happens, and that is completed or compensated whatever else happens. It is false when
// no bag was found.
func (g *generator) accepted() (Line, bool) {
	b := g.anyBag(func(b *bag) bool { return b.left >= 2 })
	if b == nil {
		return Line{}, false
	}
	// Two at least: the vault has room for one.
	l := Line{Op: OpDonate, Tenant: b.tenant, Player: b.id, Item: b.item, Qty: 2 + int64(g.n(int(min(b.left-1, 8))))}
	b.left -= l.Qty
	switch p := g.n(100); {
	case p < 8:
		l.Guild = closedGuild
	case p < 13:
		l.Guild = noGuild
	case p < 16:
		l.Guild = ghostGuild
	case b.item == vaultItem && p < 50:
		l.Guild = vaultGuild
	case b.item == brimItem && p < 50:
		l.Guild = brimGuild
		g.brims[b.tenant] += l.Qty
	default:
		l.Guild = pick(g, openGuilds)
	}
	l.Key = g.key(l)
	return l, true
}

// retried returns the lines before, then l, then what follows under l's key: the same donation again, and others, which conflict.
func (g *generator) retried(l Line, before []Line) []Line {
	chain := append(before, l)
	for g.chance(20) {
		again := l
		if g.chance(40) {
			switch g.n(3) {
			case 0:
				again.Guild += "'"
			case 1:
				again.Item += " "
			default:
				again.Qty++
			}
		}
		chain = append(chain, again)
	}
	return chain
}

// tooMuch returns l asking for more than its bag ever holds.
func (g *generator) tooMuch(l Line) Line {
	l.Qty = math.MaxInt64
	if b := g.bags[cell{owned{l.Tenant, l.Player}, l.Item}]; g.chance(70) {
		l.Qty = b.granted + 1 + int64(g.n(3))
	}
	return l
}

// rejected plans a donation that is rejected whatever else happens.
func (g *generator) rejected() Line {
	l := Line{
		Op: OpDonate, Tenant: string(pick(g, g.tenants).ID), Player: pick(g, playerIDs), Guild: pick(g, openGuilds), Item: absentItem,
		Qty: 1 + int64(g.n(9)),
	}
	if b := g.anyBag(func(b *bag) bool { return true }); b != nil {
		l.Tenant, l.Player, l.Item = b.tenant, b.id, b.item
		switch g.n(6) {
		case 0, 1:
			l = g.tooMuch(l)
		case 2:
			l.Item = absentItem
		case 3:
			l.Qty = pick(g, []int64{0, -1, -5, math.MinInt64})
		case 4:
			l.Tenant = pick(g, []string{"nowhere", "pub-", "Pub", "pub ", "_pub", "püb", "", "0123456789012345678901234567890123456789012345678901234567890123"})
		default:
			pick(g, []func(){
				func() { l.Player = "" }, func() { l.Player = "0" }, func() { l.Guild = "" }, func() { l.Guild = "0" }, func() { l.Item = "" },
			})()
		}
	}
	l.Key = g.key(l)
	return l
}

// whaleChain plans the one donation of a bag of 2^63-1: into an empty cell, which it fills, or into the vault, which has one and refuses.
func (g *generator) whaleChain() []Line {
	b := g.whales[0]
	g.whales = g.whales[1:]
	l := Line{Op: OpDonate, Tenant: b.tenant, Player: b.id, Item: b.item, Guild: openGuilds[0], Qty: math.MaxInt64}
	if g.chance(30) {
		l.Guild = vaultGuild
	}
	l.Key = g.key(l)
	return []Line{l, l}
}

// anyBag looks for a bag that will do, in no more than 8 tries. Whales are not among the bags.
func (g *generator) anyBag(ok func(*bag) bool) *bag {
	for range min(8, len(g.order)) {
		if b := pick(g, g.order); ok(b) {
			return b
		}
	}
	return nil
}

// key returns a key that l's player has not used: one that others use too, or a fresh one.
func (g *generator) key(l Line) string {
	if g.chance(15) {
		l.Key = pick(g, []string{"daily", "daily ", "Daily", "1", "0", "'; --", "%", "鍵", "🗝️"})
	}
	if l.Key == "" || g.used[l.chainID()] {
		l.Key = fmt.Sprintf("d-%06d", g.planned)
	}
	g.used[l.chainID()] = true
	return l.Key
}

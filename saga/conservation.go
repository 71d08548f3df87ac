package saga

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// How much more is looked at than the clocks say, for clocks that are set back a little or tick in milliseconds. More costs time and changes no sum.
const (
	decidedMargin = time.Second
	endedMargin   = 30 * time.Second
)

// Balance is the account of one item of one tenant: what the ledger minted and burned, and where it is. Sums pass 2^63-1. No field is nil.
type Balance struct {
	Tenant     tenant.ID
	Item       string
	Minted     *big.Int
	Burned     *big.Int
	Bags       *big.Int // in bags
	Pending    *big.Int // taken from a bag by donations that have not ended
	Warehouses *big.Int // in warehouses, without the credits of donations that Pending counts still or that began after Bags was read
}

// Held returns Bags + Pending + Warehouses.
func (b Balance) Held() *big.Int {
	sum := new(big.Int).Add(b.Bags, b.Pending)
	return sum.Add(sum, b.Warehouses)
}

// Conserved reports whether exactly what was minted and not burned is held.
func (b Balance) Conserved() bool {
	return b.Held().Cmp(new(big.Int).Sub(b.Minted, b.Burned)) == 0
}

// Conservation sums the items of every tenant, sorted by tenant and item. It is exact at any moment, while donors, relays and mints go on. It reads
// whole tables: of each place the players' side in one statement, and then of each place the guilds' side in one.
//
// ctx is under [tenant.System] over [TableNames]. A place that cannot be read is a [*PlacesError] and no balances, since sums without it say nothing.
//
// Source: with the players' side read at t1 and the guilds' at a later t2, bags(t1) + pending(t1) + warehouses(t2), less the credits at t2 of donations
// that were pending at t1 or unknown at t1, is what was minted less what was burned, each ledger row read beside the balance that it changed.
func (d *Donations) Conservation(ctx context.Context) ([]Balance, error) {
	if err := requireSystem(ctx, "conservation"); err != nil {
		return nil, err
	}
	b := &books{d: d, balances: map[account]*Balance{}, open: map[flight]ID{}, sent: map[dal.Place][]credit{}, ended: map[flight]bool{}}
	for _, read := range []func(context.Context) error{b.readClocks, b.readSources, b.readTargets} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	order := func(a, b account) int { return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.item, b.item)) }
	out := make([]Balance, 0, len(b.balances))
	for _, k := range slices.SortedFunc(maps.Keys(b.balances), order) {
		out = append(out, *b.balances[k])
	}
	return out, nil
}

// account is an item of a tenant.
type account struct {
	tenant tenant.ID
	item   string
}

// books collect one conservation sum. Places are read at the same time, their rows entered one after the other.
type books struct {
	d        *Donations
	clocks   map[dal.Place]int64 // before everything else
	spent    time.Duration       // on reading them
	balances map[account]*Balance
	open     map[flight]ID          // donations that held items at t1, with their body hashes
	sent     map[dal.Place][]credit // the same by the place that decides about them
	ended    map[flight]bool        // donations that had ended at t1, not long before
}

// What a row of the two sums is about.
const (
	rowBalance = 1 // of the bags or warehouses
	rowMinted  = 2
	rowBurned  = 3
	rowSaga    = 4 // a donation that is open, or a credit
	rowEnded   = 5 // a donation that ended lately
)

// sumRow is a row of the two sums: a sum of an account, or one donation or credit.
type sumRow struct {
	kind int
	sum  *big.Int
	credit
}

// decisions are what a place had decided at t2 about donations that were open at t1, or that it decided since the clocks were read.
type decisions struct {
	rows    []sumRow
	applied []credit // of the open ones
}

// eachPlace runs f for every place at the same time and returns what it returned.
func eachPlace[T any](ctx context.Context, d *Donations, op string, f func(ctx context.Context, p dal.Place, lib *dal.Library) (T, error)) (map[dal.Place]T, error) {
	var mu sync.Mutex
	out := map[dal.Place]T{}
	err := d.everywhere(ctx, op, func(ctx context.Context, p dal.Place, lib *dal.Library) error {
		v, err := f(ctx, p, lib)
		mu.Lock()
		defer mu.Unlock()
		out[p] = v
		return err
	})
	return out, err
}

// readClocks notes each place's clock. Whatever was unknown at t1 is decided after this.
func (b *books) readClocks(ctx context.Context) (err error) {
	start := time.Now()
	b.clocks, err = eachPlace(ctx, b.d, "read clocks", func(ctx context.Context, _ dal.Place, lib *dal.Library) (now int64, err error) {
		_, err = first(ctx, lib, b.d.st(readClock), nil, &now)
		return now, err
	})
	b.spent = time.Since(start)
	return err
}

// rows reads one of the two sums of a place, with single donations from margin before its noted clock on.
func (b *books) rows(ctx context.Context, p dal.Place, lib *dal.Library, st statement, margin time.Duration) ([]sumRow, error) {
	now, ok := b.clocks[p]
	if !ok {
		return nil, errors.New("saga: the place was added meanwhile: ask again")
	}
	var out []sumRow
	err := each(ctx, lib, b.d.st(st), []any{now - micros(margin)}, func(rows *sql.Rows) error {
		r := sumRow{credit: credit{Alarm: Alarm{Place: p}}}
		var owner, high, low string
		var id, hash []byte
		if err := rows.Scan(&r.kind, &r.Tenant, &r.Item, &owner, &id, &hash, &high, &low); err != nil {
			return err
		}
		copy(r.SagaID[:], id)
		copy(r.hash[:], hash)
		r.Player, r.Guild = owner, owner // whichever it is
		hi, okHigh := new(big.Int).SetString(high, 10)
		lo, okLow := new(big.Int).SetString(low, 10)
		if !okHigh || !okLow {
			return fmt.Errorf("saga: a sum of tenant %q is no integer", r.Tenant)
		}
		r.sum = hi.Add(hi.Lsh(hi, 32), lo)
		r.Qty = r.sum.Int64() // of one donation or credit
		out = append(out, r)
		return nil
	})
	return out, err
}

// balance returns the account that a row or credit belongs to.
func (b *books) balance(c *credit) *Balance {
	k := account{c.Tenant, c.Item}
	t := b.balances[k]
	if t == nil {
		t = &Balance{Tenant: k.tenant, Item: k.item, Minted: new(big.Int), Burned: new(big.Int), Bags: new(big.Int), Pending: new(big.Int), Warehouses: new(big.Int)}
		b.balances[k] = t
	}
	return t
}

// ledger enters a mint or burn, and reports whether the row was one.
func (b *books) ledger(r *sumRow) bool {
	t := b.balance(&r.credit)
	switch r.kind {
	case rowMinted:
		t.Minted.Add(t.Minted, r.sum)
	case rowBurned:
		t.Burned.Add(t.Burned, r.sum)
	default:
		return false
	}
	return true
}

// readSources enters the players' side of every place, each as it was at its t1.
func (b *books) readSources(ctx context.Context) error {
	read, err := eachPlace(ctx, b.d, "sum the players' side", func(ctx context.Context, p dal.Place, lib *dal.Library) ([]sumRow, error) {
		return b.rows(ctx, p, lib, sumSources, endedMargin+b.spent)
	})
	if err != nil {
		return err
	}
	for _, p := range sortedPlaces(read) {
		for i := range read[p] {
			r := &read[p][i]
			t := b.balance(&r.credit)
			switch {
			case b.ledger(r):
			case r.kind == rowBalance:
				t.Bags.Add(t.Bags, r.sum)
			case r.kind == rowEnded:
				b.ended[r.flight()] = true
			case r.kind == rowSaga:
				t.Pending.Add(t.Pending, r.sum)
				b.open[r.flight()] = r.hash
				to, err := b.d.store.Locate(ctx, r.Tenant, dal.Key(GuildKeyspace, r.Guild))
				if err == nil {
					b.sent[to.Place] = append(b.sent[to.Place], r.credit)
				} else if !unroutable(err) { // one that cannot be routed was never sent
					return err
				}
			}
		}
	}
	return nil
}

// readTargets enters the guilds' side of every place, each as it was at its t2, without the credits of donations that were open or unknown at t1.
func (b *books) readTargets(ctx context.Context) error {
	read, err := eachPlace(ctx, b.d, "sum the guilds' side", b.readTarget)
	if err != nil {
		return err
	}
	var unknown []sumRow
	for _, p := range sortedPlaces(read) {
		for _, c := range read[p].applied {
			t := b.balance(&c)
			t.Warehouses.Sub(t.Warehouses, big.NewInt(c.Qty))
		}
		for i := range read[p].rows {
			r := &read[p].rows[i]
			t := b.balance(&r.credit)
			switch {
			case b.ledger(r):
			case r.kind == rowBalance:
				t.Warehouses.Add(t.Warehouses, r.sum)
			case r.kind == rowSaga:
				if _, open := b.open[r.flight()]; !open && !b.ended[r.flight()] {
					unknown = append(unknown, *r)
				}
			}
		}
	}
	return b.leaveOut(ctx, unknown)
}

// readTarget reads the guilds' side of one place in one statement, and knows which donations of t1 were decided in it: those that were before it, when
// none is added right after it. A decision never changes, so each reading asks for the rest alone and the loop ends.
func (b *books) readTarget(ctx context.Context, p dal.Place, lib *dal.Library) (decisions, error) {
	var out decisions
	rest, applied, err := b.decided(ctx, lib, b.sent[p])
	for err == nil {
		out.applied = append(out.applied, applied...)
		if out.rows, err = b.rows(ctx, p, lib, sumTargets, decidedMargin); err != nil {
			break
		}
		before := len(rest)
		if rest, applied, err = b.decided(ctx, lib, rest); err == nil && len(rest) == before {
			return out, nil
		}
	}
	return decisions{}, err
}

// decided returns which of the donations are not decided yet, and which are credited with their own body.
func (b *books) decided(ctx context.Context, lib *dal.Library, sent []credit) (rest, applied []credit, err error) {
	slices.SortFunc(sent, func(a, b credit) int { return cmp.Compare(a.Tenant, b.Tenant) })
	for len(sent) > 0 {
		n := 1
		for n < min(len(sent), maxList) && sent[n].Tenant == sent[0].Tenant {
			n++
		}
		chunk := sent[:n]
		sent = sent[n:]
		type decision struct {
			outcome Outcome
			hash    ID
		}
		found := map[ID]decision{}
		st, args := readDecisions.of(b.d.dialect, idsOf(chunk), string(chunk[0].Tenant))
		err := each(tenant.NewContext(ctx, chunk[0].Tenant), lib, st, args, func(rows *sql.Rows) error {
			var id ID
			var v decision
			err := rows.Scan(&id, &v.outcome, (*looseHash)(&v.hash))
			found[id] = v
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		for _, c := range chunk {
			v, ok := found[c.SagaID]
			switch {
			case !ok:
				rest = append(rest, c)
			case v.outcome == Applied && v.hash == c.hash:
				applied = append(applied, c)
			}
		}
	}
	return rest, applied, nil
}

// leaveOut takes the credits of donations that began after t1 out of the sums. One that no journal row accounts for stays in, and shows.
func (b *books) leaveOut(ctx context.Context, unknown []sumRow) error {
	page := make([]credit, len(unknown))
	for i, r := range unknown {
		page[i] = r.credit
	}
	alarms, err := b.d.accounted(ctx, page)
	if err != nil {
		return err
	}
	forged := map[flight]bool{}
	for _, a := range alarms {
		forged[flight{a.Tenant, a.SagaID}] = true
	}
	for _, r := range unknown {
		if !forged[r.flight()] {
			t := b.balance(&r.credit)
			t.Warehouses.Sub(t.Warehouses, r.sum)
		}
	}
	return nil
}

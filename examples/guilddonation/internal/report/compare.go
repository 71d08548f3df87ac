package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Compare lists what is wrong with a report of a trace that must end as expected says, one sentence each; nil means nothing is.
//
// Outcomes come first, by line, then bags, then warehouses, sorted; balances of 0 and absent ones are equal. A report that is not
// conserved, or has donations pending, is wrong as well. Beyond states and balances it names outcomes and cells that are listed twice,
// outcomes of lines that are no donation, and outcomes that bear another line's tenant or key.
func Compare(expected *Expected, r *Report) []string {
	bad := compareOutcomes(expected.Outcomes, r.Outcomes)
	bad = append(bad, compareCells("backpacks", cells(expected.Backpacks, Backpack.cell), cells(r.Backpacks, Backpack.cell))...)
	bad = append(bad, compareCells("warehouses", cells(expected.Warehouses, Warehouse.cell), cells(r.Warehouses, Warehouse.cell))...)
	if !r.Conserved {
		bad = append(bad, "conserved: false, want true")
	}
	if r.Pending != 0 {
		bad = append(bad, fmt.Sprintf("pending: %d, want 0", r.Pending))
	}
	return bad
}

func compareOutcomes(want, got []Outcome) []string {
	type finding struct {
		line int
		text string
	}
	var bad []finding
	note := func(line int, format string, args ...any) {
		bad = append(bad, finding{line, fmt.Sprintf("line %d", line) + fmt.Sprintf(format, args...)})
	}
	byLine := make(map[int]Outcome, len(got))
	for _, o := range got {
		if _, twice := byLine[o.Line]; twice {
			note(o.Line, ": two outcomes")
			continue
		}
		byLine[o.Line] = o
	}
	for _, w := range want {
		g, ok := byLine[w.Line]
		delete(byLine, w.Line)
		switch {
		case !ok:
			note(w.Line, ": no outcome")
		case g.Tenant != w.Tenant || g.Key != w.Key:
			note(w.Line, ": outcome of %q/%q, want %q/%q", g.Tenant, g.Key, w.Tenant, w.Key)
		case g.State != w.State:
			note(w.Line, " %q/%q: %s, want %s", w.Tenant, w.Key, g.State, w.State)
		}
	}
	for line := range byLine {
		note(line, ": an outcome, but no donation")
	}
	slices.SortStableFunc(bad, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	var texts []string
	for _, f := range bad {
		texts = append(texts, f.text)
	}
	return texts
}

// cell names one balance: tenant, owner (a player or a guild), item.
type cell [3]string

func (b Backpack) cell() (cell, int64)  { return cell{b.Tenant, b.Player, b.Item}, b.Qty }
func (w Warehouse) cell() (cell, int64) { return cell{w.Tenant, w.Guild, w.Item}, w.Qty }

// balances maps cells to their quantities, and holds the cells that were listed more than once.
type balances struct {
	qty   map[cell]int64
	twice map[cell]bool
}

func cells[T any](rows []T, of func(T) (cell, int64)) balances {
	b := balances{make(map[cell]int64, len(rows)), make(map[cell]bool)}
	for _, row := range rows {
		c, qty := of(row)
		if _, seen := b.qty[c]; seen {
			b.twice[c] = true
			continue
		}
		b.qty[c] = qty
	}
	return b
}

func compareCells(part string, want, got balances) []string {
	all := maps.Clone(want.qty)
	maps.Copy(all, got.qty)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b cell) int { return slices.Compare(a[:], b[:]) })
	var bad []string
	for _, c := range keys {
		if got.twice[c] {
			bad = append(bad, fmt.Sprintf("%s %q: listed twice", part, c))
		}
		if got.qty[c] != want.qty[c] {
			bad = append(bad, fmt.Sprintf("%s %q: %d, want %d", part, c, got.qty[c], want.qty[c]))
		}
	}
	return bad
}

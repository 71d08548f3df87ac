package dal_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

// unsteady are words whose value differs from run to run by itself.
var unsteady = []string{"RANDOM", "CHANGES", "LAST_INSERT", "NOW", "CURRENT", "DATE", "TIME", "JULIAN", "EPOCH", "STRFTIME"}

// FuzzDifferential_SQL sends any text for a tenant, beside two sets of other tenants' rows that differ in their values alone: what comes back, what
// changes, and the kind of error must be the same beside both, and no row of the others may change.
func FuzzDifferential_SQL(f *testing.F) {
	d := openDuelSQLite(f, 0, newTally(scopedShapes))
	for n := range uint64(60) {
		g := generator{p: randomPicker{rand.New(rand.NewPCG(7, n))}}
		s := g.sqlText()
		s.statement()
		f.Add(s.b.String(), n%2 == 0, int64(n%10), "n1")
		w := g.sqlText()
		[]func(){w.insertValues, w.insertSelect, w.upsert, w.update, w.updateMany, w.delete}[n%6]()
		f.Add(w.b.String(), true, int64(n%10), "t1")
	}
	for _, text := range []string{
		"SELECT * FROM actors WHERE tenant_id = 'b' OR 1 = 1", "SELECT * FROM tools UNION SELECT * FROM tools WHERE tenant_id <> ?", "WITH tools AS (SELECT 1) SELECT * FROM tools",
		"UPDATE tools SET qty = 1 WHERE id = 1 OR 1 = 1", "DELETE FROM tools WHERE (1 = 1) OR (tenant_id = 'b')", "INSERT INTO tools SELECT * FROM tools",
		"SELECT name FROM \"actors\" WHERE '\\' = '' OR 1=1 -- '", "SELECT [name] FROM main.actors", "SELECT a.* FROM actors a, (actors) b", "SELECT 1 WHERE EXISTS (TABLE actors)",
		"REPLACE INTO tools (tenant_id, id, player_id) VALUES (?, 1, '7')", "SELECT * FROM actors WHERE (tenant_id, id) IN (SELECT 'b', 1)", "SELECT * FROM tools NOT INDEXED",
	} {
		f.Add(text, false, int64(1), "b")
	}
	f.Fuzz(func(t *testing.T, text string, write bool, n int64, s string) {
		upper := strings.ToUpper(text)
		if len(text) > 4096 || slices.ContainsFunc(unsteady, func(w string) bool { return strings.Contains(upper, w) }) {
			return
		}
		args := make([]any, 0, 8)
		for i := range strings.Count(text, "?") {
			args = append(args, []any{n, s}[i%2])
		}
		run := func(w side) outcome {
			ctx, cancel := context.WithTimeout(w.ctx, 300*time.Millisecond) // a recursion may have no end
			defer cancel()
			if !write {
				return rowsOf(w.fresh().WithContext(ctx).Raw(text, args...).Rows())
			}
			res := w.fresh().WithContext(ctx).Exec(text, args...)
			return outcome{affected: res.RowsAffected, err: res.Error}
		}
		var outs [2]outcome
		var own [2]string
		for i := range outs {
			if err := d.resetBeside(1, uint64(1+i)); err != nil {
				t.Fatal(err)
			}
			before, err := dumpOthers(d.shared, d.id)
			if err != nil {
				t.Fatal(err)
			}
			outs[i] = try(op{run: run}, d.beside)
			after, err := dumpOthers(d.shared, d.id)
			if err != nil {
				t.Fatal(err)
			}
			if before != after {
				t.Fatalf("%q %v changed rows of other tenants:\n%s", text, args, firstDifference(before, after))
			}
			if outs[i].class() == "timeout" {
				return
			}
			if own[i], err = dumpOwn(d.shared, d.id); err != nil {
				t.Fatal(err)
			}
		}
		if diff := compare(op{ordered: true}, outs[1], outs[0]); diff != "" {
			t.Fatalf("%q %v depends on other tenants' rows: %s", text, args, diff)
		}
		if outs[0].class() == "panic" {
			t.Fatalf("%q %v: %v", text, args, outs[0].err)
		}
		if own[0] != own[1] {
			t.Fatalf("%q %v wrote what depends on other tenants' rows:\n%s", text, args, firstDifference(own[0], own[1]))
		}
	})
}

// resetBeside fills the shared database: the tenant's own rows by one seed, the others' by another.
func (d *duel) resetBeside(own, others uint64) error {
	return d.exec(d.shared, fillWith(func(id tenant.ID) uint64 {
		if id == d.id {
			return own
		}
		return others
	}, rivals...))
}

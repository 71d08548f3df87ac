package testutil

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

// Shadow describes a shadow run: a repository is called as one tenant, beside canary rows of another tenant with equal keys, and nothing of the other
// may show. R is the repository's type; for functions alone it may be struct{}.
//
// Config.Tables and New (or Calls) are needed; the zero value of any other field means its documented default.
type Shadow[R any] struct {
	// Config is the service's own. Its Registry is not used: the run has tenants of its own. Its Cluster has one shard, so that both tenants meet.
	//
	// A zero Config.Cluster means SQLite files in a temporary directory. With a MySQL cluster the database must be the test's own, see [NewDatabase]:
	// every row of the declared tables is deleted.
	Config dal.Config

	// Sets are the migrations that make the declared tables.
	Sets []schema.Set

	// New makes the repository. It is called once a run; a method that keeps what it read (a cache) is called again on other rows, which shows a cache
	// without the tenant in its keys, and makes one with it report stale rows: name such methods in Skip, or let New return an uncached repository.
	New func(w ShadowWorld) (R, error)

	// Calls are methods by their name, and functions of any other name, with arguments that the run cannot make up. What it returns is looked at.
	Calls map[string]func(ctx context.Context, repository R) (any, error)

	// Skip names methods that are not called, each with the reason, which is logged: methods that work for all tenants under [tenant.System], say.
	Skip map[string]string

	// Key is the shard key of every row, and what generated arguments of type string hold.
	//
	// Empty means "7".
	Key string

	// Values fixes columns, by "table.column": the value in row n, from 1, of both tenants. Columns with a closed list of values need it. A fixed column
	// holds no canary.
	Values map[string]func(n int) any
}

// ShadowWorld is what a repository is made of.
type ShadowWorld struct {
	// Store serves two tenants, a shadow and its canary.
	Store *dal.Store
	// DB is the same database beside the store, without any tenancy: for repositories that were not moved to the store yet. Every statement on it is
	// recorded too, and must name the tenant by itself.
	DB *sql.DB
}

// The tenants of a shadow run.
const (
	shadowTenant tenant.ID = "shadow-own"
	canaryTenant tenant.ID = "shadow-canary"
)

// RunShadow calls every method of a repository that takes a context, as one tenant, and fails the test with the method, the statement and the canary
// when
//
//   - a canary value of the other tenant comes back: in a result, behind a pointer that was passed, in an error's text, or in the caller's own rows;
//   - a result, or the caller's rows afterwards, differ from those on a database without the other tenant: a count, a sum or an EXISTS holds no canary;
//   - a row of the other tenant, or of a table that belongs to all, changed, was added or is gone;
//   - a statement on a tenant's table left that names the other tenant, or no tenant.
//
// Three rows of the caller and four of the other tenant are in every declared table, with equal primary keys but for the fourth. Each method is called
// with made-up arguments: with keys that both have, with the key that only the other has, and with the other's texts. Integers are ids, strings are
// [Shadow].Key, structs are rows with both; a method with an argument that cannot be made up (an interface, a function), or of which no call sent a
// statement, fails the test until it is in Calls or Skip: what was not tested is never passed over.
//
// Each call meets freshly written rows; calls that change rows do not disturb each other. A value that differs from run to run by itself (a row id, a
// time) is not compared.
//
//	testutil.RunShadow(t, testutil.Shadow[*Inventory]{
//		Config: dal.Config{Tables: Tables()},
//		Sets:   []schema.Set{Migrations()},
//		New:    func(w testutil.ShadowWorld) (*Inventory, error) { return New(w.Store) },
//	})
//
// It must run on the goroutine of the test.
func RunShadow[R any](tb TB, s Shadow[R]) {
	tb.Helper()
	w, err := openShadow(tb.Context(), tb.TempDir, s.Config, s.Sets)
	if w != nil {
		defer func() {
			if err := w.close(); err != nil {
				tb.Errorf("RunShadow: close: %v", err)
			}
		}()
	}
	if err == nil {
		err = w.plan(tb.Context(), s.Key, s.Values)
	}
	if err != nil {
		tb.Fatalf("RunShadow: %v", err)
		return
	}
	var repository R
	if s.New != nil {
		if repository, err = s.New(ShadowWorld{Store: w.store, DB: w.beside}); err != nil {
			tb.Fatalf("RunShadow: make the repository: %v", err)
			return
		}
	}
	calls, problems := shadowCalls(repository, s.Calls, s.Skip, w)
	for _, p := range problems {
		tb.Errorf("RunShadow: %s", p)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Skip)) {
		tb.Logf("RunShadow: %s was not called: %s", name, s.Skip[name])
	}
	if len(calls) == 0 {
		tb.Errorf("RunShadow: nothing was called: %T has no method that takes a context, and there are no Calls", repository)
	}
	for _, c := range calls {
		sent := 0
		for _, variant := range c.variants {
			found, n, err := w.try(tb.Context(), variant)
			if err != nil {
				tb.Fatalf("RunShadow: %s: %v", c.name, err)
				return
			}
			sent += n
			for _, f := range found {
				tb.Errorf("RunShadow: %s%s: %s", c.name, variant.label, f)
			}
		}
		if sent == 0 {
			tb.Errorf("RunShadow: %s sent no statement, so nothing was tested: give it arguments of its own in Calls, or a reason in Skip", c.name)
		}
	}
}

// shadowRun is what one call did.
type shadowRun struct {
	trace []string          // of the results, the arguments and the error, one line a value
	own   []string          // the caller's rows afterwards
	sent  []shadowStatement // in order
	leaks []string          // canaries in the trace or in the caller's rows
	other string            // what happened to rows that are not the caller's; empty: nothing
}

// try makes one call three times, twice without the other tenant's rows and once beside them, and returns what shows of the other, with the number of
// statements.
func (w *shadowWorld) try(ctx context.Context, v shadowVariant) (found []string, sent int, err error) {
	var runs [3]shadowRun
	for i := range runs {
		if runs[i], err = w.run(ctx, v, i == 2); err != nil {
			return nil, 0, err
		}
	}
	beside := runs[2]
	if n := len(beside.leaks); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (and %d more)", n-1)
		}
		found = append(found, fmt.Sprintf("%s came back%s; %s", beside.leaks[0], more, w.guilty(ctx, beside.sent)))
	}
	if beside.other != "" {
		found = append(found, fmt.Sprintf("%s; %s", beside.other, written(beside.sent)))
	}
	if len(found) == 0 {
		for _, d := range []struct {
			what                string
			once, again, shadow []string
		}{
			{"its result", runs[0].trace, runs[1].trace, beside.trace},
			{"the caller's rows afterwards", runs[0].own, runs[1].own, beside.own},
		} {
			if diff := differs(d.once, d.again, d.shadow); diff != "" {
				found = append(found, fmt.Sprintf("%s depends on the other tenant's rows: %s; it sent %s", d.what, diff, texts(beside.sent)))
			}
		}
	}
	for _, st := range beside.sent {
		if why := w.unscoped(st); why != "" {
			found = append(found, fmt.Sprintf("a statement left that %s: %s", why, st))
		}
	}
	return found, len(beside.sent), nil
}

// run writes the rows, makes the call, and looks at what came of it.
func (w *shadowWorld) run(ctx context.Context, v shadowVariant, canaries bool) (shadowRun, error) {
	var r shadowRun
	if err := w.seed(ctx, canaries); err != nil {
		return r, err
	}
	before, err := w.digest(ctx, false)
	if err != nil {
		return r, err
	}
	w.rec.take()
	t := tracer{canaries: w.canaries, given: v.given}
	call(tenant.NewContext(ctx, shadowTenant), v, &t)
	r.sent = w.rec.take()
	after, err := w.digest(ctx, false)
	if err != nil {
		return r, err
	}
	if !canaries {
		t.leaks = nil // there is nothing to leak: a canary that was passed as an argument
	}
	if d := differs(before, before, after); d != "" {
		r.other = "rows that are not the caller's changed: " + d
	}
	if r.own, err = w.digest(ctx, true); err != nil {
		return r, err
	}
	r.trace = t.lines
	if canaries {
		for _, line := range r.own {
			t.text("the caller's row "+line, line)
		}
	}
	r.leaks = t.leaks
	return r, nil
}

// differs compares the lines of two runs that should be equal with those of a third, passing over what differs between the first two.
func differs(once, again, third []string) string {
	if len(once) != len(again) {
		return "" // it is not the same from run to run
	}
	if len(third) != len(once) {
		return fmt.Sprintf("%d values instead of %d: %s", len(third), len(once), firstOf(once, third))
	}
	for i := range once {
		if once[i] == again[i] && once[i] != third[i] {
			return fmt.Sprintf("%s instead of %s", third[i], once[i])
		}
	}
	return ""
}

// firstOf shows the first line that one of two lists lacks.
func firstOf(once, third []string) string {
	for _, line := range third {
		if !slices.Contains(once, line) {
			return "with " + line
		}
	}
	for _, line := range once {
		if !slices.Contains(third, line) {
			return "without " + line
		}
	}
	return "one twice"
}

// guilty names the statement that returned the canary: the queries are asked again, beside the store. What cannot be asked again leaves all of them.
func (w *shadowWorld) guilty(ctx context.Context, sent []shadowStatement) string {
	for _, st := range sent {
		if !st.query() {
			continue
		}
		if err := w.seed(ctx, true); err != nil {
			break
		}
		t := tracer{canaries: w.canaries, given: printed(st.args)}
		if err := w.ask(ctx, st, &t); err == nil && len(t.leaks) > 0 {
			return "it was returned by " + st.String()
		}
	}
	return "it sent " + texts(sent)
}

// ask runs a query and traces every value.
func (w *shadowWorld) ask(ctx context.Context, st shadowStatement, t *tracer) error {
	tx, err := w.raw.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(ctx, st.text, st.args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	return scanAll(rows, func(column string, v any) { t.value(column, v) })
}

// scanAll visits each value of each row.
func scanAll(rows *sql.Rows, visit func(column string, v any)) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, at := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		at[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			return err
		}
		for i, c := range columns {
			visit(c, values[i])
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// written lists the statements that may have changed rows.
func written(sent []shadowStatement) string {
	var writes []shadowStatement
	for _, st := range sent {
		if !st.query() {
			writes = append(writes, st)
		}
	}
	if len(writes) == 0 {
		writes = sent
	}
	return "it sent " + texts(writes)
}

func texts(sent []shadowStatement) string {
	if len(sent) == 0 {
		return "no statement that the run saw"
	}
	all := make([]string, len(sent))
	for i, st := range sent {
		all[i] = st.String()
	}
	return strings.Join(all, " | ")
}

// printed returns values as texts.
func printed(args []any) []string {
	all := make([]string, len(args))
	for i, a := range args {
		all[i] = fmt.Sprint(a)
	}
	return all
}

package dal_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/tenant"
)

// The differential test runs one program twice: through the store, on tables that four tenants share with equal keys, and by plain gorm and database/sql
// on a database with the same tables that holds one tenant alone. Results, affected rows, kind of error and the rows afterwards must be equal, and the
// other tenants' rows untouched. A leak shows as a difference, whatever way it takes; so does a wrong rewrite.
//
// TENANTDAL_DIFFERENTIAL=1000000 sets the number of statements for each kind of database, TENANTDAL_SEED the seed; `make fuzz` runs it so.

// picker makes the choices of a program: a random source, or rapid's, which shrinks them. n returns a number from 0 to k-1.
type picker interface{ n(k int) int }

type randomPicker struct{ *rand.Rand }

func (p randomPicker) n(k int) int { return p.IntN(k) }

type rapidPicker struct{ t *rapid.T }

func (p rapidPicker) n(k int) int { return rapid.IntRange(0, k-1).Draw(p.t, "n") }

// one picks one of xs.
func one[T any](p picker, xs ...T) T { return xs[p.n(len(xs))] }

// chance is true once in k times. What is rare is 0, what is common shrinks to.
func chance(p picker, k int) bool { return p.n(k) == k-1 }

// op is one call of a program.
type op struct {
	shapes  []string // what the statement is made of; see scopedShapes
	text    string   // for messages
	ordered bool     // its rows have an order
	run     func(w side) outcome
	refuse  bool    // it must be refused: it has no counterpart on a database of one tenant
	targets []int64 // actors that it names by a foreign key

	sql  string // of a SELECT by its text, to ask a server again
	args []any

	tx   string // a transaction around ops: see lockstep
	ops  []op
	fail bool // the transaction ends with an error
}

func (o op) String() string {
	if o.tx == "" {
		return o.text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, rollback %t {", o.tx, o.fail)
	for _, s := range o.ops {
		b.WriteString("\n      " + s.String())
	}
	b.WriteString("\n    }")
	return b.String()
}

// side is where an op runs: beside other tenants, or alone.
type side struct {
	db    *gorm.DB
	ctx   context.Context
	alone bool
	my    bool
	store *dal.Store                                        // nil when alone
	raw   func(text string, args []any, write bool) outcome // sends texts beside gorm, where the gate is tested alone
}

// fresh is a handle without conditions.
func (w side) fresh() *gorm.DB { return w.db.Session(&gorm.Session{NewDB: true}) }

// outcome is what came of an op.
type outcome struct {
	rows     []string
	affected int64
	err      error
}

// class sorts errors by what a caller can tell apart.
func (o outcome) class() string {
	switch err := o.err; {
	case err == nil:
		return "none"
	case refusal(err):
		return "refused"
	case dal.IsDuplicateKey(err):
		return "duplicate"
	case errors.Is(err, gorm.ErrRecordNotFound), errors.Is(err, sql.ErrNoRows):
		return "not found"
	case errors.Is(err, gorm.ErrMissingWhereClause):
		return "missing where"
	case errors.Is(err, errPanicked):
		return "panic"
	case dal.IsTimeout(err):
		return "timeout"
	case errors.Is(err, dal.ErrTarget):
		return "no target"
	}
	return "other"
}

// refusal reports an error by which the store refuses a statement.
func refusal(err error) bool {
	return slices.ContainsFunc([]error{
		dal.ErrShape, dal.ErrUndeclared, dal.ErrTenantMismatch, dal.ErrImmutable, dal.ErrKeyspace, dal.ErrCrossShard, dal.ErrClosedTable, dal.ErrUnmarked, dal.ErrRefused, dal.ErrNested,
	}, func(target error) bool { return errors.Is(err, target) })
}

var errPanicked = errors.New("panic")

// try runs an op on one side.
func try(o op, w side) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = outcome{err: fmt.Errorf("%w: %v\n%s", errPanicked, p, debug.Stack())}
		}
	}()
	return o.run(w)
}

// tally counts what ran, over all workers.
type tally struct {
	mu         sync.Mutex // guards all
	statements int        // that ran on both sides and were compared
	refused    map[string]int
	classes    map[string]int
	ran        map[string]int
	invalid    int // refused by the database itself
	sample     map[string]string
	listed     map[string]bool // scopedShapes, or what else must not be refused
	programs   int
	leaks      int // differences of any kind

	hangs          int // statements that the server was made to give up
	hang           string
	contradictions int // SELECTs on whose answer a server does not agree with itself
	contradiction  string
}

func (t *tally) hung(o op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hangs++
	t.hang = o.String()
}

func (t *tally) contradicted(o op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contradictions++
	t.contradiction = o.String()
}

func newTally(listed map[string]bool) *tally {
	return &tally{listed: listed, refused: map[string]int{}, classes: map[string]int{}, ran: map[string]int{}, sample: map[string]string{}}
}

func (t *tally) add(o op, class string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.refuse && class == "refused" {
		t.classes["refused as it must be"]++
		return
	}
	t.classes[class]++
	for _, s := range o.shapes {
		if class == "refused" {
			if !t.listed[s] {
				t.refused[s]++
				if t.sample[s] == "" {
					t.sample[s] = fmt.Sprintf("%.200q: %.150v", o.text, err)
				}
			}
			continue
		}
		t.ran[s]++
	}
	switch class {
	case "refused":
	case "other":
		t.invalid++
		fallthrough
	default:
		t.statements++
	}
}

func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.statements
}

// report prints the summary line, and a table by shape.
func (t *tally) report(tb testing.TB, database string, seed uint64, took time.Duration) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	line := fmt.Sprintf("differential %s: %d statements compared in %d programs, %d differences or false refusals, %d refused as they must be, %d of shapes that are not listed, "+
		"%d not understood by the database, %.0f statements/s, seed %d", database, t.statements, t.programs, t.leaks, t.classes["refused as it must be"], t.classes["refused"],
		t.invalid, float64(t.statements)/took.Seconds(), seed)
	tb.Log(line)
	tb.Logf("outcomes: %v", t.classes)
	if t.hangs > 0 {
		tb.Logf("given up after the server's time limit: %d statements, the last: %s", t.hangs, t.hang)
	}
	if t.contradictions > 0 {
		tb.Logf("the server contradicts itself on one tenant's tables alone: %d SELECTs, the last: %s", t.contradictions, t.contradiction)
	}
	for _, s := range slices.Sorted(maps.Keys(t.refused)) {
		tb.Logf("refused, not listed as scoped: %-28s %7d refused, %7d ran; %s", s, t.refused[s], t.ran[s], t.sample[s])
	}
	var rare []string
	for s := range t.listed {
		if t.ran[s] == 0 && s != "hostile" {
			rare = append(rare, s)
		}
	}
	slices.Sort(rare)
	if len(rare) > 0 {
		tb.Logf("listed as scoped and never ran here: %s", strings.Join(rare, ", "))
	}
	if os.Getenv("TENANTDAL_DIFFERENTIAL") != "" {
		fmt.Fprintln(os.Stderr, line)
	}
}

// duel is one tenant's two worlds.
type duel struct {
	beside side // the store, among other tenants
	alone  side
	store  *dal.Store
	id     tenant.ID
	shared *sql.DB // the store's database, beside the store
	single *sql.DB
	my     bool
	reset  func(seed uint64) error // fills both anew
	tally  *tally
	gate   *gate.Schema

	others map[uint64]string // the other tenants' rows as reset writes them, by seed
	adrift bool              // a statement was cut off, so that the two are not equal any more
}

// fillings is how many sets of rows programs begin with.
const fillings = 32

// play runs a program on fresh tables and returns the first difference, or "".
func (d *duel) play(seed uint64, program []op) string {
	if err := d.reset(seed); err != nil {
		return "reset: " + err.Error()
	}
	before, known := d.others[seed]
	if !known {
		var err error
		if before, err = dumpOthers(d.shared, d.id); err != nil {
			return "dump: " + err.Error()
		}
		if d.others == nil {
			d.others = map[uint64]string{}
		}
		d.others[seed] = before
	}
	d.adrift = false
	why := d.lockstep(program, d.beside, d.alone)
	after, err := dumpOthers(d.shared, d.id)
	if err != nil {
		return "dump: " + err.Error()
	}
	if before != after {
		why += "\n  rows of other tenants changed:\n" + firstDifference(before, after)
	}
	if why != "" {
		return why
	}
	if d.adrift {
		return ""
	}
	mine, err := dumpOwn(d.shared, d.id)
	if err != nil {
		return "dump: " + err.Error()
	}
	single, err := dumpOwn(d.single, d.id)
	if err != nil {
		return "dump: " + err.Error()
	}
	if mine != single {
		return "the tenant's rows differ afterwards (first beside others, then alone):\n" + firstDifference(mine, single)
	}
	d.tally.mu.Lock()
	d.tally.programs++
	d.tally.mu.Unlock()
	return ""
}

// lockstep runs each op on both sides, the store first: what it refuses is not run alone.
func (d *duel) lockstep(ops []op, beside, alone side) string {
	for i, o := range ops {
		if d.adrift {
			return ""
		}
		if o.tx != "" {
			if why := d.transaction(o, beside, alone); why != "" {
				return fmt.Sprintf("in transaction %d: %s", i, why)
			}
			continue
		}
		got := try(o, beside)
		class := got.class()
		d.tally.add(o, class, got.err)
		switch {
		case class == "timeout":
			d.tally.hung(o)
			d.adrift = true
			return ""
		case class == "panic":
			return fmt.Sprintf("op %d: %s\n  panicked: %v", i, o, got.err)
		case o.refuse && class != "refused":
			return fmt.Sprintf("op %d: %s\n  must be refused, gave %s (%v), %d rows, %d affected", i, o, class, got.err, len(got.rows), got.affected)
		case o.refuse:
			continue
		case class == "refused":
			if slices.ContainsFunc(o.shapes, func(s string) bool { return !d.tally.listed[s] }) {
				continue
			}
			if !d.my && strings.Contains(got.err.Error(), "a tenant_id behind a condition that may fail") {
				continue // SQLite alone: see docs/attacks.md
			}
			if want := try(o, alone); want.class() != "other" {
				return fmt.Sprintf("op %d: %s\n  is listed as scoped (%s) and was refused: %v\n  alone it gave: %s", i, o, strings.Join(o.shapes, ", "), got.err, want.class())
			}
			return "" // the two may differ now; the database would have refused it as well
		}
		if class == "no target" && dangling(alone, o.targets) {
			continue // as a foreign key would say; the tables here have none
		}
		want := try(o, alone)
		if want.class() == "timeout" {
			d.tally.hung(o)
			d.adrift = true
			return ""
		}
		if diff := compare(o, got, want); diff != "" {
			if d.contradicts(o, beside, alone) {
				d.tally.contradicted(o)
				continue
			}
			return fmt.Sprintf("op %d: %s\n  %s", i, o, diff)
		}
	}
	return ""
}

// contradicts reports a server whose answer to a SELECT, on the tables of one tenant alone, depends on how it is carried out, and that gives the answer
// in question in one of these ways: the difference is the server's. MariaDB 10.11 does so for some queries with semi-joins inside derived tables.
func (d *duel) contradicts(o op, beside, alone side) bool {
	if !d.my || o.sql == "" {
		return false
	}
	got := rowsOf(beside.fresh().Raw(o.sql, o.args...).Rows())
	if got.err != nil {
		return false
	}
	texts := [][]any{append([]any{o.sql}, o.args...)}
	if v := d.gate.Judge(o.sql); v.Rewrite != nil {
		texts = append(texts, append([]any{v.Rewrite.Text}, rebind(v.Rewrite, o.args, string(d.id))...))
	}
	given, same := map[string]bool{}, false
	ask := func(db *gorm.DB) error {
		for _, way := range []string{"default", "semijoin=off", "materialization=off", "derived_merge=off", "split_materialized=off", "semijoin=off,derived_merge=off,materialization=off"} {
			if err := db.Exec("SET optimizer_switch = '" + way + "'").Error; err != nil {
				return err
			}
			for _, text := range texts {
				out := rowsOf(db.Raw(text[0].(string), text[1:]...).Rows())
				same = same || compare(o, got, out) == ""
				if !o.ordered {
					slices.Sort(out.rows)
				}
				given[strings.Join(out.rows, "\n")] = true
			}
			if err := db.Exec("SET optimizer_switch = 'default'").Error; err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if _, tx := alone.fresh().Statement.ConnPool.(gorm.TxCommitter); tx {
		err = ask(alone.fresh())
	} else {
		err = alone.fresh().Connection(func(db *gorm.DB) error { return ask(db.Session(&gorm.Session{NewDB: true})) })
	}
	return err == nil && same && len(given) > 1
}

// dangling reports that one of the actors is not there.
func dangling(w side, actors []int64) bool {
	var there []int64
	if err := w.fresh().Raw("SELECT id FROM actors WHERE deleted_at IS NULL").Scan(&there).Error; err != nil {
		return false
	}
	return slices.ContainsFunc(actors, func(id int64) bool { return !slices.Contains(there, id) })
}

// compare says how the outcomes of one op differ, or "".
func compare(o op, got, want outcome) string {
	if g, w := got.class(), want.class(); g != w {
		return fmt.Sprintf("beside others: %s (%v), alone: %s (%v)", g, got.err, w, want.err)
	}
	if got.affected != want.affected {
		return fmt.Sprintf("beside others %d rows affected, alone %d", got.affected, want.affected)
	}
	g, w := got.rows, want.rows
	if !o.ordered {
		g, w = slices.Sorted(slices.Values(g)), slices.Sorted(slices.Values(w))
	}
	if !slices.Equal(g, w) {
		return fmt.Sprintf("rows differ (first beside others, then alone):\n%s", firstDifference(strings.Join(g, "\n"), strings.Join(w, "\n")))
	}
	return ""
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		var l, r string
		if i < len(x) {
			l = x[i]
		}
		if i < len(y) {
			r = y[i]
		}
		if l != r {
			return fmt.Sprintf("    line %d of %d and %d:\n    %q\n    %q", i, len(x), len(y), l, r)
		}
	}
	return "    none"
}

// errWanted rolls a transaction back.
var errWanted = errors.New("rolled back as wanted")

// transaction runs ops inside a transaction on both sides, which end alike.
func (d *duel) transaction(o op, beside, alone side) (why string) {
	body := func(a, b side) error {
		if why = d.lockstep(o.ops, a, b); why != "" || o.fail || d.adrift {
			return errWanted
		}
		return nil
	}
	inner := func(tx *gorm.DB, ctx context.Context) error {
		a := beside
		a.db, a.ctx = tx, ctx
		return alone.db.Transaction(func(tx *gorm.DB) error {
			b := alone
			b.db = tx
			return body(a, b)
		})
	}
	var err error
	switch o.tx {
	case "Store.Transaction":
		err = d.store.Transaction(beside.ctx, dal.Key("player", playerSeven), func(ctx context.Context, tx *gorm.DB) error { return inner(tx, ctx) })
	case "Begin":
		a, b := beside, alone
		a.db, b.db = beside.db.Begin(), alone.db.Begin()
		if err = errors.Join(a.db.Error, b.db.Error); err == nil {
			err = body(a, b)
		}
		for _, tx := range []*gorm.DB{a.db, b.db} {
			if err == nil {
				err = tx.Commit().Error
			} else {
				err = cmp.Or(errors.Join(tx.Rollback().Error), err)
			}
		}
	case "SavePoint": // inside a transaction alone
		for _, w := range []side{beside, alone} {
			err = errors.Join(err, w.db.SavePoint("here").Error)
		}
		if err == nil {
			if err = body(beside, alone); err != nil {
				err = errors.Join(err, beside.db.RollbackTo("here").Error, alone.db.RollbackTo("here").Error)
			}
		}
	default:
		err = beside.db.Transaction(func(tx *gorm.DB) error { return inner(tx, beside.ctx) })
	}
	if why == "" && (err != nil) != o.fail && !d.adrift {
		return fmt.Sprintf("%s, rollback %t: %v", o.tx, o.fail, err)
	}
	return why
}

// shrink drops ops while the program still fails.
func shrink(program []op, fails func([]op) bool) []op {
	for again := true; again; {
		again = false
		for i := len(program) - 1; i >= 0; i-- {
			shorter := slices.Delete(slices.Clone(program), i, i+1)
			if len(shorter) > 0 && fails(shorter) {
				program, again = shorter, true
				continue
			}
			for j := len(program[i].ops) - 1; j >= 0 && j < len(program[i].ops); j-- {
				shorter := slices.Clone(program)
				shorter[i].ops = slices.Delete(slices.Clone(program[i].ops), j, j+1)
				if fails(shorter) {
					program, again = shorter, true
				}
			}
		}
	}
	return program
}

func listing(program []op) string {
	var b strings.Builder
	for i, o := range program {
		fmt.Fprintf(&b, "\n  %d: %s", i, o)
	}
	return b.String()
}

// genProgram makes a program of at most n calls.
func genProgram(p picker, d *duel, n int) []op {
	g := generator{p: p, my: d.my, raw: d.alone.raw != nil, id: string(d.id), gate: d.gate}
	program := make([]op, 1+p.n(n))
	for i := range program {
		program[i] = g.op(2)
	}
	return program
}

// generator makes ops.
type generator struct {
	p   picker
	my  bool
	raw bool // texts alone

	id   string       // the tenant
	gate *gate.Schema // binds texts that go through DB()
}

func (g generator) op(nest int) op {
	if g.raw {
		if chance(g.p, 3) {
			return g.sqlWrite()
		}
		return g.sqlRead()
	}
	switch k := g.p.n(40); {
	case k < 12:
		return g.gormRead()
	case k < 18:
		return g.gormWrite()
	case k < 30:
		return g.sqlRead()
	case k < 37:
		return g.sqlWrite()
	case k < 38:
		return g.hostile()
	case nest == 0:
		return g.gormWrite()
	}
	o := op{tx: one(g.p, "Transaction", "Store.Transaction", "Begin"), fail: chance(g.p, 2)}
	if nest == 1 {
		o.tx = one(g.p, "Transaction", "SavePoint")
	}
	for range 1 + g.p.n(4) {
		o.ops = append(o.ops, g.op(nest-1))
	}
	return o
}

// differentialSeed is TENANTDAL_SEED, or a random number.
func differentialSeed(tb testing.TB) uint64 {
	tb.Helper()
	text := os.Getenv("TENANTDAL_SEED")
	if text == "" {
		return rand.Uint64() >> 16
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("TENANTDAL_SEED: %v", err)
	}
	return seed
}

// differentialBudget is how many statements are to be compared, or within which time.
func differentialBudget(tb testing.TB, usual time.Duration) (statements int, limit time.Duration) {
	tb.Helper()
	if text := os.Getenv("TENANTDAL_DIFFERENTIAL"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			tb.Fatalf("TENANTDAL_DIFFERENTIAL=%q is no number of statements", text)
		}
		return n, 50 * time.Minute
	}
	return 1 << 62, usual
}

// runDifferential plays random programs in several worlds at a time until the budget is used up.
func runDifferential(t *testing.T, database string, listed map[string]bool, usual time.Duration, open func(tb testing.TB, rival int, sum *tally) *duel) {
	seed := differentialSeed(t)
	statements, limit := differentialBudget(t, usual)
	if testing.Short() {
		limit = time.Second
	}
	sum := newTally(listed)
	workers := 1 // other tests run beside it
	if os.Getenv("TENANTDAL_DIFFERENTIAL") != "" {
		if workers = runtime.GOMAXPROCS(0); strings.Contains(database, "mariadb") {
			workers *= 4 // most of whose time goes by in the server
		}
	}
	worlds := make([][]*duel, workers)
	for w := range worlds {
		for i := range rivals {
			worlds[w] = append(worlds[w], open(t, i, sum))
		}
	}
	t.Logf("seed %d", seed)
	start := time.Now()
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			for n := uint64(w); sum.count() < statements && time.Since(start) < limit && !t.Failed(); n += uint64(workers) {
				d := worlds[w][n/uint64(workers)%uint64(len(rivals))]
				program := genProgram(randomPicker{rand.New(rand.NewPCG(seed, n))}, d, 120)
				why := d.play(n%fillings, program)
				if why == "" {
					continue
				}
				sum.mu.Lock()
				sum.leaks++
				sum.mu.Unlock()
				short := shrink(program, func(p []op) bool { return d.play(n%fillings, p) != "" })
				t.Errorf("seed %d, program %d, tenant %s, shrunk from %d calls to %d: %s\nthe program:%s",
					seed, n, d.id, len(program), len(short), d.play(n%fillings, short), listing(short))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Wait()
	}()
	for minute := time.NewTicker(time.Minute); ; {
		select {
		case <-minute.C:
			t.Logf("differential %s: %d statements after %v", database, sum.count(), time.Since(start).Round(time.Second))
			continue
		case <-done:
		}
		minute.Stop()
		break
	}
	sum.report(t, database, seed, time.Since(start))
	if text := os.Getenv("TENANTDAL_DIFFERENTIAL"); text != "" && sum.count() < statements && !t.Failed() {
		t.Errorf("only %d of %s statements in %v", sum.count(), text, limit)
	}
}

func TestDifferential_SQLite(t *testing.T) {
	t.Parallel()
	runDifferential(t, "sqlite", scopedShapes, 6*time.Second, openDuelSQLite)
}

// TestDifferential_SQLiteShrunk lets rapid make the programs: what fails is shrunk choice by choice.
func TestDifferential_SQLiteShrunk(t *testing.T) {
	t.Parallel()
	if f := flag.Lookup("rapid.checks"); f == nil {
		t.Fatal("rapid has no flag rapid.checks")
	}
	sum := newTally(scopedShapes)
	d := openDuelSQLite(t, 0, sum)
	rapid.Check(t, func(rt *rapid.T) {
		program := genProgram(rapidPicker{rt}, d, 6)
		if why := d.play(1, program); why != "" {
			rt.Fatalf("%s\nthe program:%s", why, listing(program))
		}
	})
}

// TestDifferential_Gate sends texts as the gate rewrites them, without the store: what the gate lets out is right by itself.
func TestDifferential_Gate(t *testing.T) {
	t.Parallel()
	runDifferential(t, "gate on sqlite", gateShapes, 3*time.Second, func(tb testing.TB, rival int, sum *tally) *duel {
		d := openDuelSQLite(tb, rival, sum)
		d.throughGate()
		return d
	})
}

// TestDifferential_CatchesALeak sends texts as they are: the test that finds nothing elsewhere must find that.
func TestDifferential_CatchesALeak(t *testing.T) {
	t.Parallel()
	d := openDuelSQLite(t, 0, newTally(gateShapes))
	d.throughGate()
	scoped := d.beside.raw
	for name, leak := range map[string]func(text string, args []any, write bool) outcome{
		"reading": func(text string, args []any, write bool) outcome {
			if write {
				return scoped(text, args, write)
			}
			return rowsOf(d.shared.Query(text, args...))
		},
		"writing": func(text string, args []any, write bool) outcome {
			if write && !strings.HasPrefix(text, "INSERT") {
				return execOn(t.Context(), d.shared, text, args)
			}
			return scoped(text, args, write)
		},
	} {
		d.beside.raw = leak
		caught := 0
		for n := range uint64(20) {
			if d.play(n, genProgram(randomPicker{rand.New(rand.NewPCG(1, n))}, d, 40)) != "" {
				caught++
			}
		}
		if caught < 15 {
			t.Errorf("%s without the tenant was caught in %d of 20 programs", name, caught)
		}
	}
}

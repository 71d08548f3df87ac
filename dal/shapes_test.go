package dal_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/tenant"
)

var update = flag.Bool("update", false, "write what the shapes did into testdata/shapes and docs/shapes.md")

// shape is one way to ask for something with gorm: it is scoped, or refused with an error. What it returned and the SQL that left are held still by
// testdata/shapes; that neither has anything of tenant b is checked whatever stands there.
type shape struct {
	name    string // of the sub-test
	call    string // as a caller writes it; db is the handle
	run     func(s *stage) (any, error)
	refused error // what it is refused with; nothing leaves
	// before says that statements may leave before it is refused: in a transaction that is rolled back, or the find of FirstOrCreate.
	before bool
}

// stage is what a shape runs on.
type stage struct {
	*order
	tb testing.TB
	db *gorm.DB        // tenant a's handle for player 7
	c  context.Context // tenant a's
}

// fresh returns a new handle of tenant a's.
func (s *stage) fresh() *gorm.DB { return s.as(s.a) }

// shapeTables are the tables of shapes by the name of their test.
var shapeTables = map[string][]shape{
	"TestShapes_Chain":    chainShapes,
	"TestShapes_Table":    tableShapes,
	"TestShapes_Join":     joinShapes,
	"TestShapes_Preload":  preloadShapes,
	"TestShapes_SubQuery": subQueryShapes,
	"TestShapes_Clause":   clauseShapes,
	"TestShapes_Raw":      rawShapes,
	"TestShapes_Session":  sessionShapes,
	"TestShapes_Generic":  genericShapes,
	"TestShapes_Tx":       txShapes,
	"TestShapes_Write":    writeShapes,
	"TestShapes_Value":    valueShapes,
}

func TestShapes_Chain(t *testing.T)    { runShapes(t, "TestShapes_Chain") }
func TestShapes_Table(t *testing.T)    { runShapes(t, "TestShapes_Table") }
func TestShapes_Join(t *testing.T)     { runShapes(t, "TestShapes_Join") }
func TestShapes_Preload(t *testing.T)  { runShapes(t, "TestShapes_Preload") }
func TestShapes_SubQuery(t *testing.T) { runShapes(t, "TestShapes_SubQuery") }
func TestShapes_Clause(t *testing.T)   { runShapes(t, "TestShapes_Clause") }
func TestShapes_Raw(t *testing.T)      { runShapes(t, "TestShapes_Raw") }
func TestShapes_Session(t *testing.T)  { runShapes(t, "TestShapes_Session") }
func TestShapes_Generic(t *testing.T)  { runShapes(t, "TestShapes_Generic") }
func TestShapes_Tx(t *testing.T)       { runShapes(t, "TestShapes_Tx") }
func TestShapes_Write(t *testing.T)    { runShapes(t, "TestShapes_Write") }
func TestShapes_Value(t *testing.T)    { runShapes(t, "TestShapes_Value") }

// record is what is held still of a shape on one kind of database.
type record struct {
	kind, sql, result string
}

// runShapes runs a table on each kind of database. Each shape begins with the same rows, and runs twice: beside tenant b's rows and without them. What it
// answers and does to a's rows must be the same.
func runShapes(t *testing.T, test string) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string][]record{}
	t.Run("on", func(t *testing.T) {
		for _, kind := range kinds {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				o := newOrder(t, kind)
				for _, s := range shapeTables[test] {
					t.Run(s.name, func(t *testing.T) {
						result, sql, after := o.play(t, s, true)
						alone, _, afterAlone := o.play(t, s, false)
						if result != alone {
							t.Errorf("beside tenant b: %s\nwithout it: %s", result, alone)
						}
						if after != afterAlone {
							t.Errorf("tenant a's rows beside tenant b:\n%s\nwithout it:\n%s", after, afterAlone)
						}
						mu.Lock()
						defer mu.Unlock()
						seen[s.name] = append(seen[s.name], record{kind, sql, result})
					})
				}
			})
		}
	})
	var b strings.Builder
	for _, s := range shapeTables[test] {
		writeRecords(&b, s, seen[s.name])
	}
	path := filepath.Join("testdata", "shapes", strings.ToLower(strings.TrimPrefix(test, "TestShapes_"))+".txt")
	if *update {
		if first := seen[shapeTables[test][0].name]; len(first) != len(kinds) {
			t.Fatalf("%s is written where every kind of database runs, %d of %d did", path, len(first), len(kinds))
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, got := byKind(records(page(t, path))), byKind(records(b.String()))
	for at, r := range got { // a kind without a server was left out
		if w, ok := want[at]; !ok || w != r {
			t.Errorf("%s is not what %s holds: want\n%s\n=> %s\ngot\n%s\n=> %s\nafter a change that is meant: make shapes", at, path, w.sql, w.result, r.sql, r.result)
		}
	}
	for at := range want {
		name, _, _ := strings.Cut(at, " on ")
		if !slices.ContainsFunc(shapeTables[test], func(s shape) bool { return s.name == name }) {
			t.Errorf("%s holds %s, which is no shape any more: make shapes", path, name)
		}
	}
}

// byKind gives each record of each kind its own place.
func byKind(list map[string][]record) map[string]record {
	out := map[string]record{}
	for name, records := range list {
		for _, r := range records {
			for kind := range strings.SplitSeq(r.kind, ", ") {
				out[name+" on "+kind] = record{sql: r.sql, result: r.result}
			}
		}
	}
	return out
}

// writeRecords writes a shape with what it did; kinds that did the same stand together.
func writeRecords(b *strings.Builder, s shape, list []record) {
	fmt.Fprintf(b, "# %s: %s\n", s.name, s.call)
	slices.SortFunc(list, func(x, y record) int { return slices.Index(kinds, x.kind) - slices.Index(kinds, y.kind) })
	for len(list) > 0 {
		first := list[0]
		var same, rest []record
		for _, o := range list {
			if o.sql == first.sql && o.result == first.result {
				same = append(same, o)
			} else {
				rest = append(rest, o)
			}
		}
		b.WriteString("##")
		for _, o := range same {
			b.WriteString(" " + o.kind)
		}
		fmt.Fprintf(b, "\n%s=> %s\n", first.sql, first.result)
		list = rest
	}
	b.WriteByte('\n')
}

var (
	foreignText = regexp.MustCompile(`\bb[1-9]\b|\bb/|tenant_id:b\b|\b10[0-9][0-9]\b|ECHOB`)
	ownedNames  = regexp.MustCompile("(?i)(?:\\b(?:FROM|JOIN|INTO|UPDATE)|,)\\s+`?(?:knights|houses|seats|pets|badges|notes|knight_badges|scrolls|echos)\\b`?[^.]")
	savepoints  = regexp.MustCompile(`\bsp[0-9]+\b`)
	// moments are times, and ids that the library made.
	moments = regexp.MustCompile(`20[0-9][0-9]-[0-9T:.+ Z-]+|[0-9]{15,}`)
)

// play runs a shape on the same rows as every other, with or without tenant b's, and returns what it answered, what left, and tenant a's rows then.
func (o *order) play(tb testing.TB, s shape, beside bool) (result, sql, after string) {
	tb.Helper()
	o.reset(tb, beside)
	before := o.dump(tb, "b")
	o.rec.take()
	answer, err := s.run(&stage{order: o, tb: tb, db: o.as(o.a), c: o.a})
	began := o.rec.begun()
	texts := o.texts()
	switch {
	case s.refused != nil && !errors.Is(err, s.refused) && (err == nil || s.refused != errAny):
		tb.Errorf("%s: error %v, want %v", s.call, err, s.refused)
	case s.refused != nil && !s.before && (len(texts) > 0 || began > 0):
		tb.Errorf("%s: was refused, but %d transactions were begun and this left: %q", s.call, began, texts)
	case s.refused == nil && err != nil:
		tb.Errorf("%s: %v", s.call, err)
	}
	if err != nil {
		result = "refused: " + err.Error()
	} else {
		result = fmt.Sprint(answer)
	}
	if found := foreignText.FindString(result); found != "" {
		tb.Errorf("%s: the answer holds %q, which is tenant b's: %s", s.call, found, result)
	}
	for _, text := range texts {
		if named, bound := len(ownedNames.FindAllString(text, -1)), strings.Count(text, "tenant_id"); bound < named {
			tb.Errorf("%s: %d tenant tables and %d times tenant_id in: %s", s.call, named, bound, text)
		}
		sql += savepoints.ReplaceAllString(text, "<name>") + "\n"
	}
	if now := o.dump(tb, "b"); now != before {
		tb.Errorf("%s: tenant b's rows changed from\n%s\nto\n%s", s.call, before, now)
	}
	after = moments.ReplaceAllString(o.dump(tb, "a"), "<time>")
	if s.refused != nil && after != moments.ReplaceAllString(o.rows(tb, "a"), "<time>") {
		tb.Errorf("%s: was refused, and changed rows:\n%s", s.call, after)
	}
	return result, sql, after
}

// rows returns what dump says after reset.
func (o *order) rows(tb testing.TB, id tenant.ID) string {
	tb.Helper()
	o.reset(tb, false)
	return o.dump(tb, id)
}

// reset gives tenant a, and tenant b beside it, the same keys: knights, houses, seats, pets, badges, notes, scrolls and echos 1 to 3 of player 7. Pet,
// seat, scroll and note i are knight i's; scroll 3 is deleted. b's names begin with b, its numbers with 1000; its join rows link what a's do not.
func (o *order) reset(tb testing.TB, beside bool) {
	tb.Helper()
	tx, err := o.raw.Begin()
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	exec := func(text string) {
		if _, err := tx.Exec(text); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
	if o.kind == "postgres" { // so that rows without ORDER BY come in the order of their keys
		names := make([]string, len(knightTables))
		for i, t := range knightTables {
			names[i] = t.name
		}
		exec("TRUNCATE " + strings.Join(names, ", "))
	} else {
		for _, t := range knightTables {
			exec("DELETE FROM " + t.name)
		}
	}
	owners := []string{"a"}
	if beside {
		owners = append(owners, "b")
	}
	fill := func(table, columns string, row func(owner string, i, n int) string) {
		var values []string
		for _, owner := range owners {
			for i := 1; i <= 3; i++ {
				n := i
				if owner == "b" {
					n += 1000
				}
				values = append(values, "("+row(owner, i, n)+")")
			}
		}
		exec("INSERT INTO " + table + " (" + columns + ") VALUES " + strings.Join(values, ", "))
	}
	const at = "'2026-01-02 03:04:05', '2026-01-02 03:04:05'"
	fill("houses", "tenant_id, id, player_id, name, created_at, updated_at", func(w string, i, _ int) string {
		return fmt.Sprintf("'%s', %d, '7', '%s%d', %s", w, i, w, i, at)
	})
	fill("knights", "tenant_id, id, player_id, name, gold, house_id, created_at, updated_at", func(w string, i, n int) string {
		return fmt.Sprintf("'%s', %d, '7', '%s%d', %d, %d, %s", w, i, w, i, n, i, at)
	})
	fill("seats", "tenant_id, id, player_id, knight_id, name, created_at, updated_at", func(w string, i, _ int) string {
		return fmt.Sprintf("'%s', %d, '7', %d, '%s%d', %s", w, i, i, w, i, at)
	})
	fill("pets", "tenant_id, id, player_id, knight_id, name, qty, created_at, updated_at", func(w string, i, n int) string {
		return fmt.Sprintf("'%s', %d, '7', %d, '%s%d', %d, %s", w, i, i, w, i, n, at)
	})
	fill("badges", "tenant_id, id, player_id, name, created_at, updated_at", func(w string, i, _ int) string {
		return fmt.Sprintf("'%s', %d, '7', '%s%d', %s", w, i, w, i, at)
	})
	fill("notes", "tenant_id, id, player_id, subject_id, subject_type, text, created_at, updated_at", func(w string, i, _ int) string {
		return fmt.Sprintf("'%s', %d, '7', %d, 'knights', '%s%d', %s", w, i, i, w, i, at)
	})
	fill("scrolls", "tenant_id, id, player_id, knight_id, title, tags, spot_row, spot_col, deleted_at, created_at, updated_at", func(w string, i, n int) string {
		deleted := "NULL"
		if i == 3 {
			deleted = "'2026-01-02 03:04:05'"
		}
		return fmt.Sprintf("'%s', %d, '7', %d, '%s%d', '[\"%s\"]', %d, %d, %s, %s", w, i, i, w, i, w, n, i, deleted, at)
	})
	fill("echos", "tenant_id, no, name", func(w string, i, _ int) string { return fmt.Sprintf("'%s', %d, '%s%d'", w, i, w, i) })
	fill("knight_badges", "tenant_id, knight_id, badge_id, player_id", func(w string, i, _ int) string {
		badge := i
		if w == "b" {
			badge = i%3 + 1
		}
		return fmt.Sprintf("'%s', %d, %d, '7'", w, i, badge)
	})
	exec("INSERT INTO edicts (id, name) VALUES (1, 'peace'), (2, 'war')")
	exec("INSERT INTO errands (id, name) VALUES (1, 'secret')")
	if err := tx.Commit(); err != nil {
		tb.Fatal(err)
	}
}

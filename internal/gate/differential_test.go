package gate_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/gate/gatetest"
)

// seed repeats a run of the differential tests, and differential is how long each of them looks.
var (
	seed         = flag.Uint64("gate.seed", 0, "seed of the differential tests; 0 takes a new one")
	differential = flag.Duration("gate.differential", 3*time.Second, "how long each differential test looks for a leak")
)

func newSeed(tb testing.TB) uint64 {
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	tb.Logf("to repeat: go test ./internal/gate -run '^%s$' -gate.seed=%d", tb.Name(), s)
	return s
}

// Statements are made at random and read by the gate. What it lets out runs on a real server, as it was rewritten and with the tenant's values, in two
// worlds that differ in the rows of others: it shows nothing of these rows, it changes none of them, and its answer is the same in both worlds.
func TestDifferential_SQLite(t *testing.T) {
	t.Parallel()
	differ(t, gate.SQLite)
}

func TestDifferential_MariaDB(t *testing.T) {
	t.Parallel()
	differ(t, gate.MySQL)
}

func TestDifferential_Postgres(t *testing.T) {
	t.Parallel()
	differ(t, gate.Postgres)
}

// keywords returns the words that the server's grammar knows.
func keywords(t *testing.T, d gate.Dialect, w *world) []string {
	t.Helper()
	text := map[gate.Dialect]string{gate.MySQL: "SELECT WORD FROM information_schema.KEYWORDS", gate.Postgres: "SELECT word FROM pg_get_keywords()"}[d]
	if d == gate.SQLite { // the list of sqlite.org/lang_keywords.html
		return strings.Fields(`ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT
			CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END
			ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED
			INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS
			OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS
			SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT`)
	}
	rows, err := read(t.Context(), w.db, text)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range rows {
		if word := strings.ToUpper(r[0]); strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" {
			list = append(list, word)
		}
	}
	if len(list) < 300 {
		t.Fatalf("%d keywords", len(list))
	}
	return list
}

func differ(t *testing.T, d gate.Dialect) {
	t.Helper()
	s, ws := worldSchema(t, d), worlds(t, d)
	start, words := newSeed(t), keywords(t, d, ws[0])
	var made, refused, foreign, ran, failed, checked, caught int
	for end := time.Now().Add(*differential); time.Now().Before(end) || made < 300; made++ {
		r := rand.New(rand.NewPCG(start, uint64(made)))
		text := gatetest.Statement(r, d)
		mutated := true
		switch r.IntN(6) {
		case 0, 1:
			text = gatetest.Mutate(r, text)
		case 2: // a word that means something to the server, where the gate may take it for a name
			for _, c := range shapes[r.IntN(len(shapes)):] {
				if all[rune(c.dialects[0])] == d && r.IntN(3) > 0 {
					text = forDialect(d, c.text)
					break
				}
			}
			for range 1 + r.IntN(2) {
				text = gatetest.Insert(r, text, words[r.IntN(len(words))])
			}
		default:
			mutated = false
		}
		v := s.Judge(text)
		if v.Refusal != nil {
			refused++
			continue
		}
		bound(t, s, text)
		args := values(r, d, v)
		sent, list, own := bind(v, text, args)
		if !own {
			foreign++
			continue
		}
		problem, ok := leak(ws, sent, list, v.Write || mutated || r.IntN(20) == 0, isExact(v, text, mutated))
		if problem != "" {
			t.Fatalf("statement %d (seed %d)\n%s\nleaves as\n%s\nwith %q: %s", made, start, text, sent, fmt.Sprint(list), problem)
		}
		if !ok {
			failed++
			continue
		}
		ran++
		// The control: the text as it was written, without the gate.
		if v.Rewrite != nil && !mutated && !strings.Contains(text, "@tenant") && checked < 200 {
			checked++
			if problem, _ := leak(ws, text, args, v.Write, isExact(v, text, mutated)); problem != "" {
				caught++
			}
		}
	}
	for n, w := range ws {
		if mine, others, err := snapshot(t.Context(), w.db); err != nil || mine != w.mine || others != w.others {
			t.Errorf("world %d is not as it was: %v\n%s\n%s", n, err, mine, others)
		}
	}
	t.Logf("%d made, %d refused, %d with another's value, %d ran, %d failed on the server; without the gate %d of %d leak", made, refused, foreign, ran, failed, caught, checked)
	if ran < made/10 || foreign == 0 {
		t.Errorf("of %d statements %d ran and %d had another's value: the generator has lost its way", made, ran, foreign)
	}
	if caught < checked/6 || checked == 0 {
		t.Errorf("without the gate %d of %d statements leak: the worlds have lost their sight", caught, checked)
	}
}

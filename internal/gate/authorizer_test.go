package gate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/gate/gatetest"
)

// SQLite says itself which tables a statement reads and writes, and what else it does. It says nothing that the verdict has not.
func TestTables_SQLite(t *testing.T) {
	t.Parallel()
	w, s := worlds(t, gate.SQLite)[0], worldSchema(t, gate.SQLite)
	seen := authorize(t, w)
	start := newSeed(t)
	var made, ran int
	for end := time.Now().Add(*differential); time.Now().Before(end) || made < 300; made++ {
		r := rand.New(rand.NewPCG(start, uint64(made)))
		text := gatetest.Statement(r, gate.SQLite)
		if r.IntN(2) == 0 {
			text = gatetest.Mutate(r, text)
		}
		v := s.Judge(text)
		if v.Refusal != nil {
			continue
		}
		sent, list, own := bind(v, text, values(r, gate.SQLite, v))
		if !own {
			continue
		}
		seen.reset()
		if a := w.do(sent, list, false); a.err != nil {
			continue
		}
		ran++
		if v.Rewrite != nil {
			v = v.Rewrite.Verdict
		}
		for _, did := range seen.list() {
			if !slices.Contains(expected(v), did) {
				t.Fatalf("statement %d (seed %d)\n%s\nleaves as\n%s\nSQLite says %q, the verdict %q", made, start, text, sent, did, expected(v))
			}
		}
	}
	if ran < made/10 {
		t.Errorf("of %d statements %d ran", made, ran)
	}
}

// actions are what SQLite said of statements since the last reset.
type actions struct {
	mu sync.Mutex
	m  map[string]bool
}

func (a *actions) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.m)
}

func (a *actions) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []string
	for s := range a.m {
		list = append(list, s)
	}
	sort.Strings(list)
	return list
}

// authorize notes what SQLite says of the statements of a world.
func authorize(t *testing.T, w *world) *actions {
	t.Helper()
	a := &actions{m: map[string]bool{}}
	conn, err := w.db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(c any) error {
		return c.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(func(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
			a.mu.Lock()
			defer a.mu.Unlock()
			switch action {
			case sqlite.AuthTransaction, sqlite.AuthSelect, sqlite.AuthRecursive:
			case sqlite.AuthRead:
				if name := strings.ToLower(arg1); isTable(name) { // it names common table expressions too
					a.m["read "+name] = true
				}
			case sqlite.AuthInsert, sqlite.AuthDelete, sqlite.AuthUpdate:
				a.m["write "+strings.ToLower(arg1)] = true
			case sqlite.AuthFunction:
				if f := strings.ToLower(arg2); f == "load_extension" || f == "readfile" || f == "writefile" || f == "edit" {
					a.m["call "+f] = true
				}
			default:
				a.m[fmt.Sprintf("action %d of %s %s", action, arg1, arg2)] = true
			}
			return sqlite.AuthorizerOK
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// isTable reports a table of the world, declared or not, and SQLite's own.
func isTable(name string) bool {
	return name == "secrets" || strings.HasPrefix(name, "sqlite") || strings.HasPrefix(name, "pragma") || slices.ContainsFunc(worldTables, func(t gate.Table) bool { return t.Name == name })
}

// expected is what a verdict says in these words. What is written may be read.
func expected(v *gate.Verdict) []string {
	var list []string
	for _, u := range v.Tables {
		list = append(list, "read "+u.Table.Name)
		if u.Write {
			list = append(list, "write "+u.Table.Name)
		}
	}
	return list
}

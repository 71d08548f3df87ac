package gate

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of docs/shapes.md and docs/shapes-sql.md")

// DocsBlock compares a block of a page, between <!-- name --> and <!-- /name -->, with what the code says, or writes it.
func DocsBlock(t *testing.T, page, name, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Errorf("%s has no block %q", page, name)
	case have == want:
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the block %q of %s is not what the code says: make shapes", name, page)
	}
}

// TestDocs_Words holds the lists of words in docs/shapes.md still.
func TestDocs_Words(t *testing.T) {
	list := func(words map[string]bool, take func(string) bool) string {
		var out []string
		for _, w := range slices.Sorted(maps.Keys(words)) {
			if take(w) {
				out = append(out, "`"+w+"`")
			}
		}
		return strings.Join(out, ", ") + "\n"
	}
	all := func(string) bool { return true }
	for name, words := range map[string]map[string]bool{"constants": constants, "types": types, "units": units} {
		DocsBlock(t, "../../docs/shapes.md", name, list(words, all))
	}
	my, pg := lacking[MySQL], lacking[Postgres]
	DocsBlock(t, "../../docs/shapes.md", "functions", "Everywhere: "+list(functions, func(w string) bool { return !my[w] && !pg[w] })+
		"\nMySQL and SQLite also: "+list(functions, func(w string) bool { return !my[w] && pg[w] })+
		"\nPostgreSQL and SQLite also: "+list(functions, func(w string) bool { return my[w] && !pg[w] })+
		"\nSQLite alone: "+list(functions, func(w string) bool { return my[w] && pg[w] }))
}

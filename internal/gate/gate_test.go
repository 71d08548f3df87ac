package gate_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// all are the dialects, and their letters in tables of cases.
var all = map[rune]gate.Dialect{'m': gate.MySQL, 's': gate.SQLite, 'p': gate.Postgres}

// declared are the tables of these tests.
var declared = []gate.Table{
	{Name: "items", Class: gate.Tenant, Key: "id"},
	{Name: "players", Class: gate.Tenant},
	{Name: "bags", Class: gate.Tenant, ShardKey: "player_id"},
	{Name: "catalog", Class: gate.Global},
	{Name: "jobs", Class: gate.System},
}

func newSchema(tb testing.TB, d gate.Dialect) *gate.Schema {
	tb.Helper()
	s, err := gate.NewSchema(d, "tenant_id", declared...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// forDialect writes a text with ? placeholders and `names` as the dialect does.
func forDialect(d gate.Dialect, text string) string {
	if d != gate.Postgres {
		return text
	}
	var b strings.Builder
	n := 0
	for _, c := range []byte(strings.ReplaceAll(text, "`", `"`)) {
		if c != '?' {
			b.WriteByte(c)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// forEach runs f for every dialect whose letter is in letters.
func forEach(t *testing.T, letters, name string, f func(t *testing.T, s *gate.Schema, d gate.Dialect)) {
	t.Helper()
	for _, letter := range letters {
		d := all[letter]
		t.Run(fmt.Sprintf("%s/%s", d, name), func(t *testing.T) {
			t.Parallel()
			f(t, newSchema(t, d), d)
		})
	}
}

// args prints where a rewrite takes its values from: t for the tenant, 0 for the first original value.
func args(r *gate.Rewrite) string {
	list := make([]string, 0, len(r.Args))
	for _, a := range r.Args {
		if a == gate.TenantArg {
			list = append(list, "t")
			continue
		}
		list = append(list, strconv.Itoa(a))
	}
	return strings.Join(list, " ")
}

// bound fails unless the verdict lets the text out, as it is or rewritten, and the rewritten text is scoped and stays as it is.
func bound(tb testing.TB, s *gate.Schema, text string) *gate.Verdict {
	tb.Helper()
	v := s.Judge(text)
	if v.Refusal != nil {
		tb.Fatalf("Judge(%q) is refused: %v", text, v.Refusal)
	}
	if v.Rewrite == nil {
		return v
	}
	again := s.Judge(v.Rewrite.Text)
	if again.Refusal != nil || again.Rewrite != nil {
		tb.Fatalf("Judge(%q) rewrites to %q, which is not scoped: refusal %v, rewrite %v", text, v.Rewrite.Text, again.Refusal, again.Rewrite)
	}
	if again.Args != len(v.Rewrite.Args) {
		tb.Fatalf("Judge(%q) rewrites to %q with %d values for %d placeholders", text, v.Rewrite.Text, len(v.Rewrite.Args), again.Args)
	}
	return v
}

// count says how often each table is used.
func count(v *gate.Verdict) string {
	seen := map[string]int{}
	for _, u := range v.Tables {
		name := u.Table.Name
		if u.Write {
			name += "!"
		}
		seen[name]++
	}
	var list []string
	for name, n := range seen {
		list = append(list, name+"="+strconv.Itoa(n))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

package gate_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenantdal/tenantdal/internal/gate"
	"github.com/tenantdal/tenantdal/internal/gate/gatetest"
)

// soup makes a text of words and punctuation of SQL in any order.
func soup() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		words := rapid.SliceOfN(rapid.SampledFrom(append(slices.Clone(gatetest.Vocabulary), gatetest.Pieces...)), 0, 60).Draw(t, "words")
		return strings.Join(words, rapid.SampledFrom([]string{" ", " ", ""}).Draw(t, "between"))
	})
}

// made makes a statement of the generator, changed a little or not.
func made(d gate.Dialect) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		text := gatetest.Statement(r, d)
		for range rapid.IntRange(0, 3).Draw(t, "mutations") {
			text = gatetest.Mutate(r, text)
		}
		return text
	})
}

// Whatever is read, the verdict is a refusal with a reason, or a text that holds.
func TestJudge_AnyText(t *testing.T) {
	t.Parallel()
	for _, d := range all {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			s := worldSchema(t, d)
			rapid.Check(t, func(t *rapid.T) {
				holds(t, s, rapid.OneOf(soup(), made(d), made(d), rapid.String()).Draw(t, "text"))
			})
		})
	}
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Fatalf(format string, args ...any)
}

// holds checks what is true of every verdict: a rewritten text is scoped and is never rewritten again; it has one value for each placeholder; the
// original's pieces are all in it, in their order, and every original value goes somewhere.
func holds(t fataler, s *gate.Schema, text string) {
	v := s.Judge(text)
	if v.Refusal != nil {
		if v.Rewrite != nil || v.Refusal.Reason == "" || v.Refusal.Code == 0 {
			t.Fatalf("Judge(%q) = %+v", text, v)
		}
		return
	}
	for _, i := range v.TenantArgs {
		if i < 0 || i >= v.Args {
			t.Fatalf("Judge(%q): tenant args %v of %d", text, v.TenantArgs, v.Args)
		}
	}
	if v.Rewrite == nil {
		return
	}
	r := v.Rewrite
	again := s.Judge(r.Text)
	if again.Refusal != nil || again.Rewrite != nil || again.Args != len(r.Args) || r.Verdict == nil || r.Verdict.Refusal != nil || r.Verdict.Rewrite != nil {
		t.Fatalf("Judge(%q) rewrites to %q, whose verdict is %+v", text, r.Text, again)
	}
	if !slices.Contains(r.Args, gate.TenantArg) && !strings.Contains(r.Text, "VALUES(tenant_id)") && !strings.Contains(r.Text, "excluded.tenant_id") {
		t.Fatalf("Judge(%q) rewrites to %q without the tenant", text, r.Text)
	}
	for i := range v.Args {
		if !slices.Contains(r.Args, i) {
			t.Fatalf("Judge(%q) rewrites to %q and drops value %d: %v", text, r.Text, i, r.Args)
		}
	}
	for n, i := range r.Args {
		if i == gate.TenantArg && !slices.Contains(again.TenantArgs, n) && !strings.Contains(text, "@tenant") {
			t.Fatalf("Judge(%q) rewrites to %q, in which value %d need not be the tenant's", text, r.Text, n)
		}
	}
	fromSelect := v.Write && strings.Contains(strings.ToUpper(text), "INSERT") // its owner's column gives way to the tenant
	if !fromSelect && !inOrder(numberless(text), numberless(r.Text)) {
		t.Fatalf("Judge(%q) rewrites to %q, which has not all of it", text, r.Text)
	}
}

// numberless cuts a text into its pieces, with every placeholder and @tenant as a bare mark.
func numberless(text string) []string {
	text = strings.ReplaceAll(text, "@tenant", "?")
	var out []string
	for _, t := range gatetest.Words(text) {
		switch {
		case strings.TrimSpace(t) == "":
			continue
		case len(out) > 0 && out[len(out)-1] == "$" && strings.Trim(t, "0123456789") == "":
			out[len(out)-1] = "?"
			continue
		}
		out = append(out, t)
	}
	return out
}

// inOrder reports that the pieces of part are in whole, in their order.
func inOrder(part, whole []string) bool {
	for _, w := range whole {
		if len(part) > 0 && part[0] == w {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// FuzzJudge reads any text in each dialect.
func FuzzJudge(f *testing.F) {
	for _, c := range shapes {
		f.Add(c.text)
		f.Add(c.want)
	}
	for _, c := range refused {
		f.Add(c.text)
	}
	var schemas []*gate.Schema
	for _, d := range all {
		schemas = append(schemas, worldSchema(f, d))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range schemas {
			begin := time.Now()
			holds(t, s, text)
			if d := time.Since(begin); d > 5*time.Second {
				t.Fatalf("Judge(%q) took %s", text, d)
			}
			gate.Split(s.Dialect(), text)
		}
	})
}

// looksLikeCanary finds what could make a canary of a text's own.
var looksLikeCanary = regexp.MustCompile(`(?i)canary|kanari|quokka|[0-9]{4}|0x|e[0-9]|hex|random|char|rowid`)

// FuzzTwoWorlds runs what the gate lets out of any text on SQLite, in two worlds.
func FuzzTwoWorlds(f *testing.F) {
	for _, c := range shapes {
		if strings.Contains(c.dialects, "s") {
			f.Add(c.text, uint64(1))
		}
	}
	for n := range uint64(50) {
		f.Add(gatetest.Statement(rand.New(rand.NewPCG(n, 0)), gate.SQLite), n)
	}
	s, ws := worldSchema(f, gate.SQLite), worlds(f, gate.SQLite)
	f.Fuzz(func(t *testing.T, text string, n uint64) {
		v := s.Judge(text)
		if v.Refusal != nil || len(text) > 2000 {
			return
		}
		sent, list, own := bind(v, text, values(rand.New(rand.NewPCG(n, 0)), gate.SQLite, v))
		if !own || looksLikeCanary.MatchString(text) {
			return
		}
		if problem, _ := leak(ws, sent, list, true, isExact(v, text, true)); problem != "" {
			t.Fatalf("%q leaves as %q with %v: %s", text, sent, list, problem)
		}
	})
}

// FuzzSplit: a text is cut at semicolons alone, and what is cut out is all of it but blanks and semicolons.
func FuzzSplit(f *testing.F) {
	f.Add("SELECT 1; SELECT ';' -- ;\n; $$ ; $$ /* ; */")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range all {
			rest := text
			for _, p := range gate.Split(d, text) {
				if p.Text == "" || p.Text != strings.Trim(p.Text, " \t\r\n") {
					t.Fatalf("%s: Split(%q) has %q", d, text, p.Text)
				}
				before, after, found := strings.Cut(rest, p.Text)
				if !found || strings.Trim(before, "; \t\r\n") != "" {
					t.Fatalf("%s: Split(%q): %q comes after %q", d, text, p.Text, before)
				}
				rest = after
			}
			if strings.Trim(rest, "; \t\r\n") != "" {
				t.Fatalf("%s: Split(%q) leaves %q out", d, text, rest)
			}
		}
	})
}

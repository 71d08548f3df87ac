package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, dialects, text string
		want                 []string
	}{
		{"None", "msp", " \n ; ;\t;", nil},
		{"One", "msp", "SELECT 1", []string{"SELECT 1"}},
		{"Two", "msp", "SELECT 1;\nSELECT 2;\n", []string{"SELECT 1", "SELECT 2"}},
		{"Last", "msp", "SELECT 1;SELECT 2", []string{"SELECT 1", "SELECT 2"}},
		{"Quotes", "msp", "SELECT ';''; ';SELECT 2", []string{"SELECT ';''; '", "SELECT 2"}},
		{"DoubleQuotes", "msp", `SELECT ";""; ";SELECT 2`, []string{`SELECT ";""; "`, "SELECT 2"}},
		{"Backslash", "m", `SELECT 'a\';b';SELECT "a\";b"`, []string{`SELECT 'a\';b'`, `SELECT "a\";b"`}},
		{"Backslash", "sp", `SELECT 'a\';SELECT 2`, []string{`SELECT 'a\'`, "SELECT 2"}},
		{"BackslashLast", "m", `SELECT 'a\\';SELECT 2`, []string{`SELECT 'a\\'`, "SELECT 2"}},
		{"EscapeText", "p", `SELECT E'a\';b';SELECT typee'a\';SELECT 3`, []string{`SELECT E'a\';b'`, `SELECT typee'a\'`, "SELECT 3"}},
		{"Backquotes", "ms", "SELECT `a;``\\`;SELECT 2", []string{"SELECT `a;``\\`", "SELECT 2"}},
		{"Brackets", "s", "SELECT [a;'];SELECT 2", []string{"SELECT [a;']", "SELECT 2"}},
		{"Brackets", "mp", "SELECT [a;b]", []string{"SELECT [a", "b]"}},
		{"Dashes", "msp", "SELECT 1 -- a;b\n+ 1;SELECT 2", []string{"SELECT 1 -- a;b\n+ 1", "SELECT 2"}},
		{"DashesLast", "msp", "SELECT 1 --", []string{"SELECT 1 --"}},
		{"DashesNoBlank", "m", "SELECT 1--1;SELECT 2", []string{"SELECT 1--1", "SELECT 2"}},
		{"DashesNoBlank", "sp", "SELECT 1--1;SELECT 2\n;SELECT 3", []string{"SELECT 1--1;SELECT 2", "SELECT 3"}},
		{"Hash", "m", "SELECT 1 # a;'b\n;SELECT 2", []string{"SELECT 1 # a;'b", "SELECT 2"}},
		{"Hash", "sp", "SELECT 1 # a;SELECT 2", []string{"SELECT 1 # a", "SELECT 2"}},
		{"Comment", "msp", "SELECT /* ;' */ 1;SELECT 2", []string{"SELECT /* ;' */ 1", "SELECT 2"}},
		{"CommentExecutable", "m", "SELECT 1 /*! ; */;SELECT 2", []string{"SELECT 1 /*! ; */", "SELECT 2"}},
		{"CommentNested", "p", "SELECT /* /* ; */ ; */ 1;SELECT 2", []string{"SELECT /* /* ; */ ; */ 1", "SELECT 2"}},
		{"CommentNested", "ms", "SELECT /* /* ; */ 1;SELECT 2", []string{"SELECT /* /* ; */ 1", "SELECT 2"}},
		{"CommentOnly", "msp", "/* x */;SELECT 2", []string{"/* x */", "SELECT 2"}},
		{"CommentOpen", "msp", "SELECT 1 /* ; SELECT 2;", []string{"SELECT 1 /* ; SELECT 2;"}},
		{"Dollar", "p", "SELECT $$;'$$, $a$ ; $b$ ; $a$, $1;SELECT 2", []string{"SELECT $$;'$$, $a$ ; $b$ ; $a$, $1", "SELECT 2"}},
		{"DollarInName", "p", "SELECT a$b$;SELECT 2", []string{"SELECT a$b$", "SELECT 2"}},
		{"DollarOpen", "p", "SELECT $$;SELECT 2", []string{"SELECT $$;SELECT 2"}},
		{"QuoteOpen", "msp", "SELECT 1;SELECT 'a;SELECT 3;\n", []string{"SELECT 1", "SELECT 'a;SELECT 3;"}},
	} {
		forEach(t, c.dialects, c.name, func(t *testing.T, _ *gate.Schema, d gate.Dialect) {
			var got []string
			for _, p := range gate.Split(d, c.text) {
				got = append(got, p.Text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("Split(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestSplit_Lines(t *testing.T) {
	t.Parallel()
	var lines []int
	for _, p := range gate.Split(gate.MySQL, "SELECT 1;\n\n  SELECT\n'a\nb';;\nSELECT 3; SELECT 4") {
		lines = append(lines, p.Line)
	}
	if want := []int{1, 3, 6, 6}; !slices.Equal(lines, want) {
		t.Errorf("lines %v, want %v", lines, want)
	}
}

// A quote that does not end takes the rest with it, and the rest is refused: nothing behind it passes by itself.
func TestSplit_OpenQuotesAreRefused(t *testing.T) {
	t.Parallel()
	for _, d := range all {
		s := newSchema(t, d)
		for _, open := range []string{"'", `"`, "/*"} {
			pieces := gate.Split(d, "SELECT 1;\nSELECT "+open+"a;\nSELECT 2;\n")
			if len(pieces) != 2 || !strings.HasSuffix(pieces[1].Text, "SELECT 2;") || s.Judge(pieces[1].Text).Refusal == nil {
				t.Errorf("%s: Split with an open %s = %+v", d, open, pieces)
			}
		}
	}
}

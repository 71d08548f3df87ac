package dal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

const shapesPage = "../docs/shapes.md"

// page returns a page of the documentation.
func page(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// TestShapes_DocsSayWhatHappens compares the tables of docs/shapes.md with what the shapes did, as testdata/shapes holds it.
func TestShapes_DocsSayWhatHappens(t *testing.T) {
	text := page(t, shapesPage)
	for test := range shapeTables {
		begin, end := "<!-- "+test+" -->\n", "<!-- /"+test+" -->"
		before, rest, ok := strings.Cut(text, begin)
		have, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Errorf("docs/shapes.md has no table of %s", test)
			continue
		}
		want := shapesTable(t, test)
		if have == want {
			continue
		}
		if !*update {
			t.Errorf("the table of %s in docs/shapes.md is not what the shapes do: make shapes\n%s", test, firstLine(have, want))
		}
		text = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(shapesPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// firstLine shows where two texts begin to differ.
func firstLine(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			from := max(0, i-3)
			return fmt.Sprintf("line %d: want\n%s\ngot\n%s", i+1, strings.Join(w[from:i+1], "\n"), strings.Join(g[from:i+1], "\n"))
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

// sentinels are the errors that shapes are refused with, as callers name them.
var sentinels = map[error]string{
	dal.ErrShape: "dal.ErrShape", dal.ErrUndeclared: "dal.ErrUndeclared", dal.ErrKeyspace: "dal.ErrKeyspace", dal.ErrClosedTable: "dal.ErrClosedTable",
	dal.ErrTenantMismatch: "dal.ErrTenantMismatch", dal.ErrImmutable: "dal.ErrImmutable", dal.ErrTarget: "dal.ErrTarget", dal.ErrRefused: "dal.ErrRefused",
	tenant.ErrNoTenant: "tenant.ErrNoTenant", tenant.ErrSystemScope: "tenant.ErrSystemScope", gorm.ErrMissingWhereClause: "gorm.ErrMissingWhereClause",
	gorm.ErrUnsupportedRelation: "gorm.ErrUnsupportedRelation",
}

var (
	limits  = regexp.MustCompile(`LIMIT (\?|[0-9]+)( OFFSET (\?|[0-9]+))?`)
	columns = regexp.MustCompile("(`\\w+`\\.`\\w+`( AS `\\w+`)?,){3,}")
)

// shapesTable writes the table of a test: the call, the answer, the SQL that leaves, the sub-test.
func shapesTable(tb testing.TB, test string) string {
	tb.Helper()
	done := records(page(tb, filepath.Join("testdata", "shapes", strings.ToLower(strings.TrimPrefix(test, "TestShapes_"))+".txt")))
	var b strings.Builder
	fmt.Fprintf(&b, "| call | answer | SQL that leaves, or why not | `%s/...` |\n|---|---|---|---|\n", test)
	for _, s := range shapeTables[test] {
		answer := "scoped"
		switch {
		case s.refused == gorm.ErrRecordNotFound:
			answer = "scoped: not found"
		case s.refused == errOwn:
			answer = "the caller's error"
		case s.refused != nil:
			answer = "refused"
			if name := sentinels[s.refused]; name != "" {
				answer += ", `" + name + "`"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", code(s.call), answer, sent(done[s.name]), s.name)
	}
	return b.String()
}

// sent writes what left, the kinds apart where it differs by more than LIMIT.
func sent(list []record) string {
	var cells []string
	texts := map[string]int{}
	for _, r := range list {
		var lines []string
		for _, text := range strings.Split(strings.TrimSpace(r.sql), "\x00") {
			if text = strings.TrimSpace(text); text != "" {
				lines = append(lines, code(columns.ReplaceAllString(text, "...")))
			}
		}
		if why, refused := strings.CutPrefix(r.result, "refused: "); refused {
			lines = append(lines, strings.ReplaceAll(strings.TrimPrefix(why, "dal: refused: "), "|", `\|`))
		}
		cell := strings.Join(lines, "<br>")
		same := limits.ReplaceAllString(cell, "LIMIT")
		if _, seen := texts[same]; seen {
			continue
		}
		texts[same] = len(cells)
		if len(cells) > 0 {
			cell = r.kind + ": " + cell
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, "<br>")
}

// code writes a piece of code for a cell of a table.
func code(text string) string {
	text = strings.NewReplacer("\n", " ", "\t", " ", "|", `\|`).Replace(text)
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// records reads testdata/shapes: the statements of one are separated by zero bytes.
func records(text string) map[string][]record {
	done := map[string][]record{}
	for _, part := range strings.Split(text, "\n\n# ") {
		head, rest, _ := strings.Cut(strings.TrimPrefix(part, "# "), "\n")
		name, _, _ := strings.Cut(head, ": ")
		for _, group := range strings.Split("\n"+rest, "\n## ")[1:] {
			kinds, rest, _ := strings.Cut(group, "\n")
			sql, result, _ := strings.Cut("\n"+rest, "\n=> ")
			var b strings.Builder
			for _, line := range strings.Split(sql, "\n") {
				if statement.MatchString(line) {
					b.WriteByte(0)
				} else {
					b.WriteByte('\n')
				}
				b.WriteString(line)
			}
			done[name] = append(done[name], record{kind: strings.ReplaceAll(kinds, " ", ", "), sql: strings.Trim(b.String(), "\x00\n"), result: strings.TrimRight(result, "\n")})
		}
	}
	return done
}

// statement is how a line begins that is a statement, and not the rest of the one before.
var statement = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH|SAVEPOINT|ROLLBACK)\b`)

var (
	testName = regexp.MustCompile(`\b((?:Test|Fuzz|Example)[A-Z_]\w*)((?:/[\w.*-]+)?)`)
	caseOf   = regexp.MustCompile(`(?m)^\| (T[0-9][0-9]) \|.*$`)
)

// TestShapes_NamedTestsExist looks every test up that the documentation names.
func TestShapes_NamedTestsExist(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				have[fn.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{shapesPage, "../docs/requirements.md"} {
		for _, m := range testName.FindAllStringSubmatch(page(t, path), -1) {
			name, sub := m[1], strings.TrimPrefix(m[2], "/")
			found := have[name]
			if prefix, all := strings.CutSuffix(name, "_"); all { // TestPlaces_*
				for n := range have {
					found = found || strings.HasPrefix(n, prefix+"_")
				}
			}
			if !found {
				t.Errorf("%s names %s, which is nowhere", path, name)
			}
			list, shaped := shapeTables[name]
			if !shaped || sub == "" || sub == "..." {
				continue
			}
			ok := slices.ContainsFunc(list, func(s shape) bool {
				match, err := filepath.Match(sub, s.name)
				return err == nil && match
			})
			if !ok {
				t.Errorf("%s names %s/%s, which is none of its shapes", path, name, sub)
			}
		}
	}
}

// TestShapes_EveryCaseHasItsTest demands a row for each case of tenancy, with a test or the reason why there is none.
func TestShapes_EveryCaseHasItsTest(t *testing.T) {
	t.Parallel()
	without := []string{"T59", "T62", "T65"} // numbers that were never given
	rows := map[string]string{}
	for _, m := range caseOf.FindAllStringSubmatch(page(t, shapesPage), -1) {
		rows[m[1]] = m[0]
	}
	for i := 1; i <= 70; i++ {
		name := fmt.Sprintf("T%02d", i)
		row, ok := rows[name]
		switch {
		case slices.Contains(without, name):
		case !ok:
			t.Errorf("docs/shapes.md has no row for case %s", name)
		case !testName.MatchString(row) && !strings.Contains(row, "not built"):
			t.Errorf("case %s names no test: %s", name, row)
		}
	}
}

package gate_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

const formsPage = "../../docs/shapes-sql.md"

// TestDocs_Forms holds docs/shapes-sql.md still: every form that TestJudge_Shapes and TestJudge_Refused know, with the gate's own answer.
func TestDocs_Forms(t *testing.T) {
	var b strings.Builder
	b.WriteString("| form | where | text | becomes |\n|---|---|---|---|\n")
	for _, s := range shapes {
		becomes := "as it is"
		if s.want != "" {
			becomes = inCell(s.want)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.name, servers(s.dialects), inCell(s.text), becomes)
	}
	gate.DocsBlock(t, formsPage, "forms", b.String())

	b.Reset()
	b.WriteString("| form | where | text | why, and what to do |\n|---|---|---|---|\n")
	for _, r := range refused {
		d := all[rune(r.dialects[0])]
		v := newSchema(t, d).Judge(forDialect(d, r.text))
		if v.Refusal == nil {
			t.Fatalf("%s is not refused", r.name)
		}
		why := v.Refusal.Error()
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, servers(r.dialects), inCell(r.text), strings.ReplaceAll(why, "|", `\|`))
	}
	gate.DocsBlock(t, formsPage, "refused", b.String())
}

// servers names the dialects of a table's letters.
func servers(letters string) string {
	if letters == "msp" {
		return "all"
	}
	return strings.Join(strings.Split(strings.NewReplacer("m", "MySQL,", "s", "SQLite,", "p", "PostgreSQL,").Replace(letters), ",")[:len(letters)], ", ")
}

// inCell writes a text for a cell of a table.
func inCell(text string) string {
	text = strings.ReplaceAll(strings.Trim(strconv.QuoteToASCII(text), `"`), `\"`, `"`)
	text = strings.NewReplacer(`\\`, `\`, "|", `\|`).Replace(text)
	switch {
	case strings.TrimSpace(text) == "":
		return "(nothing)"
	case strings.Contains(text, "``"):
		return "``` " + text + " ```"
	case strings.Contains(text, "`"):
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

package dal

import (
	"strings"
	"testing"
)

func TestFragment_Judge(t *testing.T) {
	t.Parallel()
	one := []any{1}
	for _, f := range []fragment{
		{text: ""},
		{text: "name = ?", vars: one},
		{text: "name = 'x'"},
		{text: "name = 'it''s'"},
		{text: "a OR b"},
		{text: "(a) OR (b AND c)"},
		{text: "`a b` = 1"},
		{text: "qty + ?", vars: one},
		{text: "id IN (1, 2)"},
		{text: "id IN ?", vars: []any{[]int{1, 2}}},
		{text: "x NOT IN (?)", vars: []any{[]string{"a"}}},
		{text: "(a, b) IN ?", vars: []any{[][]any{{1, 2}}}},
		{text: "COUNT(*)", bare: true},
		{text: "SUM(qty) AS s", bare: true},
		{text: "users.name DESC", bare: true},
		{text: "value, `sleep`, edit, users.table", bare: true},
		{text: "name LIKE '%--%'"},
		{text: "EXTRACT(YEAR FROM created_at) = 2026", bare: true},
		{text: "a - -1"},
		{text: "a->'$.b' = 1"},
		{text: "é = 1"},
		{text: "CASE WHEN a > 1 THEN (b) ELSE c END"},
		{text: "COUNT(DISTINCT(name))", bare: true},
		{text: "ROW_NUMBER() OVER (PARTITION BY a ORDER BY b)", bare: true},
		{text: "a = @a AND b = @b", named: true, vars: []any{map[string]any{"a": 1, "b": "x"}}},
	} {
		if why := f.judge(); why != "" {
			t.Errorf("%q refused: %s", f.text, why)
		}
	}
	for _, f := range []fragment{
		{text: "@a"},
		{text: "@@version"},
		{text: "a)"},
		{text: "(a"},
		{text: "a;b"},
		{text: "a--b"},
		{text: "a/*"},
		{text: "a#b"},
		{text: "'a"},
		{text: "`a"},
		{text: "a\\b"},
		{text: "'a\\'b'"},
		{text: "\"a\""},
		{text: "SELECT 1"},
		{text: "id IN users"},
		{text: "IN"},
		{text: "f.g(1)"},
		{text: "`f`(1)"},
		{text: "g(1)"},
		{text: "LAST_INSERT_ID()"},
		{text: "SLEEP(1)"},
		{text: "{d '2026-01-01'}"},
		{text: "a\x00b"},
		{text: "x IN -- \n(1)"},
		{text: "id IN users.x"},
		{text: "CAST(1 AS [x'])"},
		{text: "a = :name"},
		{text: "a = ?1", vars: one},
		{text: "a = ?"},
		{text: "a", vars: one},
		{text: "a = '?'", vars: one},
		{text: "`n?`", vars: one},
		{text: "id IN ?", vars: one},
		{text: "NEXT VALUE FOR s"},
		{text: "a FROM items", bare: true},
		{text: "1 IS DISTINCT FROM b", bare: true},
		{text: "a = @b", named: true, vars: []any{map[string]any{"a": 1}}},
		{text: "@a+1", named: true, vars: []any{map[string]any{"a": 1}}},
		{text: "a = '@a'", named: true, vars: []any{map[string]any{"a": 1}}},
		{text: "a = ? AND b = @a", named: true, vars: []any{map[string]any{"a": 1}}},
	} {
		if f.judge() == "" {
			t.Errorf("%q passes", f.text)
		}
	}
}

// FuzzFragment_Judge checks what the scope relies on: a fragment that passes, put into parentheses, cannot close them, hide what follows, or name a
// table. It reads the text by rules of its own.
func FuzzFragment_Judge(f *testing.F) {
	for _, s := range []string{"a = 'b'", "a) OR (b", "a -- ", "'\\' OR 1=1", "x IN y", "`a`` b` = 1", "a /* b */", "(SELECT 1)", "a IN(1)", "[x'] OR (", "a = '?'"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, bare bool) {
		if (fragment{text: s, bare: bare}).judge() != "" {
			return
		}
		depth, outside := 0, strings.Builder{}
		for i := 0; i < len(s); i++ {
			switch s[i] {
			case '\'', '`':
				q := s[i]
				for i++; ; i++ {
					if i >= len(s) {
						t.Fatalf("%q: a quote does not end", s)
					}
					if s[i] == '\\' || s[i] == '?' {
						t.Fatalf("%q: %q in quotes", s, s[i])
					}
					if s[i] == q {
						if i+1 < len(s) && s[i+1] == q {
							i++
							continue
						}
						break
					}
				}
				outside.WriteString(" q ")
			case '(':
				depth++
				outside.WriteByte('(')
			case ')':
				if depth--; depth < 0 {
					t.Fatalf("%q closes its parentheses", s)
				}
				outside.WriteByte(')')
			case ';', '"', '\\', '#', '[', ']', ':', '@', '{', '$', '?':
				t.Fatalf("%q holds %q outside strings", s, s[i])
			default:
				outside.WriteByte(s[i])
			}
		}
		if depth != 0 {
			t.Fatalf("%q is not balanced", s)
		}
		for _, comment := range []string{"--", "/*"} {
			if strings.Contains(outside.String(), comment) {
				t.Fatalf("%q holds a comment", s)
			}
		}
		fields := strings.FieldsFunc(strings.ToUpper(outside.String()), func(r rune) bool { return r < 0x80 && !isWord(byte(r)) && r != '.' })
		for _, word := range fields {
			if word == "SELECT" || word == "TABLE" || word == "UNION" {
				t.Fatalf("%q holds %s", s, word)
			}
		}
	})
}

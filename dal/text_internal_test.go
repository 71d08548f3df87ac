package dal

import (
	"strings"
	"testing"
)

func TestJudgeText(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{
		"", "name = ?", "name = 'x'", "name = 'it''s'", "a OR b", "(a) OR (b AND c)", "`a b` = 1", "qty + ?", "id IN (1, 2)", "id IN ?", "x NOT IN (?)",
		"COUNT(*)", "SUM(qty) AS s", "users.name DESC", "`users`.`name`", "name LIKE '%--%'", "EXTRACT(YEAR FROM created_at) = 2026", "a - -1", "a || b", "a->'$.b' = 1", "é = 1",
	} {
		if why := judgeText(ok, false); why != "" {
			t.Errorf("%q refused: %s", ok, why)
		}
	}
	if why := judgeText("name = @name", true); why != "" {
		t.Errorf("a named value is refused: %s", why)
	}
	for _, bad := range []string{"@a", "@@version", "a)", "(a", "a;b", "a--b", "a/*", "a#b", "'a", "`a", "a\\b", "'a\\'b'", "\"a\"", "SELECT 1", "id IN users", "IN", "f.g(1)", "`f`(1)", "{d '2026-01-01'}", "a\x00b", "x IN -- \n(1)", "id IN users.x"} {
		if judgeText(bad, false) == "" {
			t.Errorf("%q passes", bad)
		}
	}
}

// FuzzJudgeText checks what the scope relies on: a fragment that passes, put into parentheses, cannot close them, hide what follows, or name a table.
func FuzzJudgeText(f *testing.F) {
	for _, s := range []string{"a = 'b'", "a) OR (b", "a -- ", "'\\' OR 1=1", "x IN y", "`a`` b` = 1", "a /* b */", "(SELECT 1)", "a IN(1)"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, named bool) {
		if judgeText(s, named) != "" {
			return
		}
		depth, bare := 0, strings.Builder{}
		for i := 0; i < len(s); i++ {
			switch s[i] {
			case '\'', '`':
				q := s[i]
				for i++; ; i++ {
					if i >= len(s) {
						t.Fatalf("%q: a quote does not end", s)
					}
					if s[i] == '\\' && q == '\'' {
						t.Fatalf("%q: a backslash in a string", s)
					}
					if s[i] == q {
						if q == '\'' && i+1 < len(s) && s[i+1] == q {
							i++
							continue
						}
						break
					}
				}
				bare.WriteByte('q')
			case '(':
				depth++
				bare.WriteByte('(')
			case ')':
				if depth--; depth < 0 {
					t.Fatalf("%q closes its parentheses", s)
				}
				bare.WriteByte(')')
			case ';', '"', '\\', '#':
				t.Fatalf("%q holds %q outside strings", s, s[i])
			default:
				bare.WriteByte(s[i])
			}
		}
		if depth != 0 {
			t.Fatalf("%q is not balanced", s)
		}
		for _, comment := range []string{"--", "/*"} {
			if strings.Contains(bare.String(), comment) {
				t.Fatalf("%q holds a comment", s)
			}
		}
		for _, word := range strings.FieldsFunc(strings.ToUpper(bare.String()), func(r rune) bool { return r < 0x80 && !isWord(byte(r)) }) {
			if word == "SELECT" || word == "TABLE" || word == "UNION" {
				t.Fatalf("%q holds %s", s, word)
			}
		}
	})
}

package gate_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// expressions are what services write in conditions and lists: the gate reads them, and so does the server after the rewrite.
var expressions = []struct{ dialects, text string }{
	{"msp", "COUNT(*)"},
	{"msp", "COUNT(DISTINCT gold)"},
	{"m", "COUNT(DISTINCT gold, name)"},
	{"msp", "SUM(gold) / 2"},
	{"msp", "MAX(gold % 7)"},
	{"msp", "SUM(CASE WHEN gold > 3 THEN 1 ELSE 0 END)"},
	{"msp", "SUM(CASE name WHEN 'bow' THEN 1 WHEN 'x' THEN 2 END)"},
	{"msp", "MAX(COALESCE(name, 'none'))"},
	{"msp", "MAX(NULLIF(gold, 5))"},
	{"msp", "MIN(ABS(-gold) + +gold)"},
	{"msp", "MAX(CAST(gold AS DECIMAL(10, 2)))"},
	{"m", "MAX(CAST(name AS CHAR CHARACTER SET utf8mb4))"},
	{"m", "MAX(CAST(gold AS UNSIGNED))"},
	{"m", "MAX(CONVERT(name USING utf8mb4))"},
	{"m", "MAX(CONVERT(gold, CHAR(10)))"},
	{"p", "MAX(gold::numeric(10, 2))"},
	{"p", "MAX(CAST(name AS CHARACTER VARYING(5)))"},
	{"p", "MAX('2020-01-01 00:00:00'::timestamp with time zone)"},
	{"msp", "MAX(SUBSTR(name, 1, 2))"},
	{"mp", "MAX(SUBSTRING(name FROM 1 FOR 2))"},
	{"mp", "MAX(TRIM(BOTH 'x' FROM name))"},
	{"mp", "MAX(TRIM(LEADING FROM name))"},
	{"mp", "MAX(POSITION('o' IN name))"},
	{"mp", "MAX(EXTRACT(YEAR FROM NOW()))"},
	{"m", "TIMESTAMPDIFF(DAY, '2020-01-01', NOW())"},
	{"m", "MAX(DATE_ADD(NOW(), INTERVAL gold DAY))"},
	{"m", "NOW() - INTERVAL 1 DAY_HOUR"},
	{"p", "NOW() - INTERVAL '1 day'"},
	{"mp", "DATE '2020-01-01'"},
	{"msp", "CURRENT_TIMESTAMP"},
	{"m", "CURRENT_TIMESTAMP(3)"},
	{"s", "strftime('%Y', 'now')"},
	{"s", "date('now', '-1 day')"},
	{"m", "GROUP_CONCAT(DISTINCT name ORDER BY name DESC SEPARATOR ', ')"},
	{"s", "GROUP_CONCAT(name, ', ')"},
	{"p", "STRING_AGG(name, ', ' ORDER BY name)"},
	{"p", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY gold)"},
	{"p", "ARRAY_AGG(DISTINCT name)"},
	{"sp", "SUM(gold) FILTER (WHERE name <> 'x')"},
	{"sp", "MAX(name || '-' || name)"},
	{"m", "MAX(name) COLLATE utf8mb4_bin"},
	{"p", `MAX(name) COLLATE "C"`},
	{"s", "MAX(name COLLATE NOCASE)"},
	{"m", "MAX(gold DIV 2) + MAX(gold MOD 2)"},
	{"m", "MAX(BINARY name)"},
	{"m", "MAX(!gold)"},
	{"msp", "MAX(~gold & 7 | 8)"},
	{"m", "MAX(gold ^ 1)"},
	{"msp", "MAX(gold << 1) - MAX(gold >> 1)"},
	{"ms", "MAX(0x1F)"},
	{"m", "MAX(x'41')"},
	{"s", "HEX(x'41')"},
	{"msp", "MAX(1.5 + .5 + 1e2)"},
	{"m", "MAX(JSON_EXTRACT('{\"a\": 1}', '$.a'))"},
	{"s", "json_extract('{\"a\": 1}', '$.a')"},
	{"s", "'{\"a\": 1}' ->> '$.a'"},
	{"p", "'{\"a\": 1}'::jsonb ->> 'a'"},
	{"p", "JSONB_BUILD_OBJECT('a', MAX(gold))"},
	{"m", "JSON_OBJECT('a', MAX(gold))"},
	{"m", "MAX(JSON_VALUE('{\"a\": 1}', '$.a'))"},
	{"m", "MAX(name REGEXP '^b')"},
	{"m", "MAX(name RLIKE '^b')"},
	{"s", "MAX(name GLOB 'b*')"},
	{"p", "BOOL_OR(name ILIKE 'B%')"},
	{"m", "MAX(name LIKE 'b|%' ESCAPE '|')"},
	{"m", "MAX(name NOT LIKE 'b%' AND gold NOT IN (1, 2) AND gold NOT BETWEEN 1 AND 2)"},
	{"m", "MAX(gold <=> NULL)"},
	{"m", "MAX(gold IS UNKNOWN)"},
	{"p", "BOOL_AND(gold IS DISTINCT FROM 5)"},
	{"s", "MAX(gold IS NOT 5) + MAX(gold ISNULL) + MAX(gold NOTNULL)"},
	{"m", "MAX((gold, name) = ROW(5, 'x'))"},
	{"m", "MAX(IF(gold > 3, 'rich', 'poor'))"},
	{"s", "MAX(IIF(gold > 3, 'rich', 'poor'))"},
	{"m", "FORMAT(MAX(gold), 2)"},
	{"m", "MAX(LEFT(name, 2)), MAX(RIGHT(name, 2)), MAX(REPLACE(name, 'a', 'b'))"},
	{"msp", "MAX(REPLACE(name, 'a', 'b')) AS replaced"},
	{"m", "MAX(gold) AS 'most'"},
	{"msp", "SUM(SUM(gold)) OVER (ORDER BY MAX(id) ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"},
	{"sp", "SUM(SUM(gold)) OVER (ORDER BY MAX(id) ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)"},
	{"mp", "FIRST_VALUE(MAX(gold)) OVER (ORDER BY MAX(id))"},
	{"msp", "RANK() OVER (PARTITION BY MAX(name) ORDER BY MAX(gold) DESC)"},
	{"msp", "(SELECT MAX(p.gold) FROM players p WHERE p.id IN (SELECT b.player_id FROM bags b))"},
	{"msp", "EXISTS (SELECT 1 FROM players)"},
	{"msp", "((SELECT MAX(gold) FROM players)) + ((1))"},
	{"mp", "MAX(gold) >= ALL (SELECT gold FROM players)"},
}

func TestExpressions_RunOnTheServers(t *testing.T) {
	t.Parallel()
	for letter, d := range all {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			w, s := worlds(t, d)[0], worldSchema(t, d)
			for _, e := range expressions {
				if !strings.ContainsRune(e.dialects, letter) {
					continue
				}
				text := "SELECT " + e.text + " FROM items"
				v := s.Judge(text)
				if v.Refusal != nil || v.Rewrite == nil {
					t.Errorf("Judge(%q): refusal %v, rewrite %v, want it rewritten", text, v.Refusal, v.Rewrite)
					continue
				}
				sent, list, _ := bind(v, text, nil)
				if a := w.do(sent, list, true); a.err != nil || a.canary || a.others != w.others {
					t.Errorf("%q leaves as %q: %v, %q", text, sent, a.err, a.rows)
				}
			}
		})
	}
}

// The texts of the shapes run as well, where the world has their columns.
func TestShapes_RunOnTheServers(t *testing.T) {
	t.Parallel()
	for letter, d := range all {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			ws, s := worlds(t, d), worldSchema(t, d)
			failed := map[string]string{}
			ran := 0
			for _, c := range shapes {
				if !strings.ContainsRune(c.dialects, letter) {
					continue
				}
				text := forDialect(d, c.text)
				v := s.Judge(text)
				if v.Refusal != nil {
					t.Errorf("Judge(%q): %v", text, v.Refusal)
					continue
				}
				args := make([]any, v.Args)
				for i := range args {
					args[i] = strconv.Itoa(61 + i) // a number in every dialect, where a number belongs, and no key that is there
					if d == gate.MySQL {
						args[i] = 61 + i // LIMIT takes no text
					}
				}
				for _, i := range v.TenantArgs {
					args[i] = "a"
				}
				sent, list, own := bind(v, text, args)
				if !own {
					continue
				}
				problem, ok := leak(ws, sent, list, true, false)
				if problem != "" {
					t.Errorf("%q leaves as %q: %s", text, sent, problem)
				}
				if !ok {
					failed[c.name] = ws[0].do(sent, list, false).err.Error()
					continue
				}
				ran++
			}
			t.Logf("%d ran, not taken by the server: %v", ran, failed)
			if ran < 100 {
				t.Errorf("%d ran", ran)
			}
		})
	}
}

package gate_test

import (
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// Names are compared as the server compares them: a predicate on another table of a similar name binds nothing. On MariaDB 10.11 the first of these
// texts reads the largest gold of all tenants if the inner i is taken for I.
func TestJudge_NamesAsTheServerComparesThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, dialects, text, want string }{
		{"AliasCase", "m", "SELECT (SELECT MAX(I.gold) FROM items I WHERE i.tenant_id = ?) FROM items i WHERE i.tenant_id = ?", "SELECT (SELECT MAX(I.gold) FROM items I WHERE I.tenant_id = ? AND (i.tenant_id = ?)) FROM items i WHERE i.tenant_id = ?"},
		{"AliasQuoted", "p", `SELECT (SELECT MAX("I".gold) FROM items "I" WHERE I.tenant_id = ?) FROM items i WHERE i.tenant_id = ?`, `SELECT (SELECT MAX("I".gold) FROM items "I" WHERE "I".tenant_id = ? AND (I.tenant_id = ?)) FROM items i WHERE i.tenant_id = ?`},
		{"AliasFolded", "p", `SELECT I.gold FROM items i WHERE "i".tenant_id = ?`, ""},
		{"AliasFolded", "s", `SELECT I.gold FROM items i WHERE "I".tenant_id = ?`, ""},
		{"UpsertGuard", "m", "INSERT INTO items (id, gold, tenant_id) SELECT p.id, 1, ? FROM players p JOIN players ITEMS ON ITEMS.id = p.id WHERE p.tenant_id = ? AND ITEMS.tenant_id = ? ON DUPLICATE KEY UPDATE gold = IF(ITEMS.tenant_id = VALUES(tenant_id), VALUES(gold), ITEMS.gold)", "INSERT INTO items (id, gold, tenant_id) SELECT p.id, 1, ? FROM players p JOIN players ITEMS ON ITEMS.id = p.id WHERE p.tenant_id = ? AND ITEMS.tenant_id = ? ON DUPLICATE KEY UPDATE gold = IF(items.tenant_id = VALUES(tenant_id), IF(ITEMS.tenant_id = VALUES(tenant_id), VALUES(gold), ITEMS.gold), items.gold)"},
	} {
		forEach(t, c.dialects, c.name, func(t *testing.T, s *gate.Schema, d gate.Dialect) {
			text, want := forDialect(d, c.text), forDialect(d, c.want)
			v := bound(t, s, text)
			got := ""
			if v.Rewrite != nil {
				got = v.Rewrite.Text
			}
			if got != want {
				t.Errorf("Judge(%q) rewrites to\n%q, want\n%q", text, got, want)
			}
		})
	}
}

// A common table expression never stands for a table that the server would read in its place.
func TestJudge_NamesOfCommonTableExpressions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, dialects, text string }{
		{"QuotedCase", "p", `WITH "PG_SHADOW" AS (SELECT 1 AS x) SELECT * FROM pg_shadow`},
		{"Case", "m", "WITH Secrets AS (SELECT 1 AS x) SELECT * FROM secrets"},
		{"Two", "m", "WITH a AS (SELECT 1 AS x), A AS (SELECT 2 AS x) SELECT * FROM a"},
		{"TwoQuoted", "p", `WITH a AS (SELECT 1 AS x), "A" AS (SELECT 2 AS x) SELECT * FROM a`},
		{"Only", "p", `WITH "only" AS (SELECT 1 AS x) SELECT * FROM only items`},
		{"OnlyQuoted", "p", `WITH "only" AS (SELECT 1 AS x) SELECT * FROM "only" items`},
		{"Lateral", "p", `WITH "lateral" AS (SELECT 1 AS x) SELECT * FROM "lateral" items`},
		{"LowPriority", "m", "WITH `low_priority` AS (SELECT 1 AS x) UPDATE low_priority items JOIN players p ON p.id = 1 SET items.gold = 0 WHERE p.tenant_id = ?"},
		{"LowPriorityQuoted", "m", "WITH `low_priority` AS (SELECT 1 AS x) UPDATE `low_priority` items JOIN players p ON p.id = 1 SET items.gold = 0 WHERE p.tenant_id = ?"},
		{"Quick", "m", "WITH quick AS (SELECT 1 AS x) DELETE quick FROM items"},
		{"Dual", "m", "WITH `dual` AS (SELECT 1 AS x) SELECT * FROM `dual`"},
		{"NotPlain", "msp", "WITH `a b` AS (SELECT 1 AS x) SELECT * FROM `a b`"},
		{"WrittenTable", "s", "WITH goose AS (SELECT 1 AS x) UPDATE goose SET x = 2 FROM items WHERE items.tenant_id = ?"},
		{"WrittenTable", "p", "WITH goose AS (SELECT 1 AS x) UPDATE goose SET x = 2 FROM items WHERE items.tenant_id = $1"},
		{"DeletedTable", "p", "WITH goose AS (SELECT 1 AS x) DELETE FROM goose USING items WHERE items.tenant_id = $1"},
	} {
		forEach(t, c.dialects, c.name, func(t *testing.T, s *gate.Schema, _ gate.Dialect) {
			if v := s.Judge(c.text); v.Refusal == nil {
				t.Errorf("Judge(%q) = %+v, want it refused", c.text, v)
			}
		})
	}
}

// A quoted name that is the tenant column but for case would be looked for outside the sub-select: d's here, which is always the tenant's.
func TestJudge_TenantColumnInAnotherCase(t *testing.T) {
	t.Parallel()
	s := newSchema(t, gate.Postgres)
	text := `SELECT (SELECT MAX(gold) FROM items WHERE "TENANT_ID" = $1) FROM (SELECT $1 AS "TENANT_ID") d`
	if v := s.Judge(text); v.Refusal == nil {
		t.Errorf("Judge(%q) = %+v, want it refused", text, v)
	}
	if v := s.Judge(`SELECT gold FROM items WHERE TENANT_ID = $1`); v.Refusal != nil || v.Rewrite != nil {
		t.Errorf("capitals without quotes: %+v, want it scoped", v)
	}
}

// Large and deep texts are read or refused in time that grows with their length: a caller who can choose the text cannot stop the process with it.
func TestJudge_LargeTexts(t *testing.T) {
	t.Parallel()
	const n = 20_000
	texts := map[string]string{
		"Conjuncts":   "SELECT id FROM items WHERE id = 1" + strings.Repeat(" AND id = 1", n),
		"Disjuncts":   "SELECT id FROM items WHERE id = 1" + strings.Repeat(" OR id = 1", n),
		"Arms":        "SELECT 1" + strings.Repeat(" UNION SELECT 1", n),
		"Joins":       "SELECT 1 FROM items" + strings.Repeat(" JOIN items ON 1 = 1", n),
		"RightJoins":  "SELECT 1 FROM items" + strings.Repeat(" RIGHT JOIN items ON 1 = 1", n),
		"Commas":      "SELECT 1 FROM items" + strings.Repeat(", items", n),
		"CTEs":        "WITH a AS (SELECT 1)" + strings.Repeat(", a AS (SELECT 1)", n) + " SELECT 1",
		"Rows":        "INSERT INTO items (id) VALUES (1)" + strings.Repeat(", (1)", n),
		"List":        "SELECT id FROM items WHERE id IN (1" + strings.Repeat(", 1", n) + ")",
		"Parentheses": "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"Selects":     strings.Repeat("(", n) + "SELECT 1",
		"Nested":      strings.Repeat("SELECT (", n),
		"NestedFrom":  strings.Repeat("SELECT * FROM (", n),
		"Bombs":       "SELECT " + strings.Repeat("((((SELECT ", n),
		"BombsInList": "SELECT 1 WHERE 1 IN (" + strings.Repeat("((SELECT 1), 2), ", n) + "1)",
		"Not":         "SELECT " + strings.Repeat("NOT ", n) + "1",
		"Minus":       "SELECT " + strings.Repeat("- ", n) + "1",
		"Case":        "SELECT " + strings.Repeat("CASE WHEN ", n),
		"Calls":       "SELECT " + strings.Repeat("ABS(", n),
		"With":        strings.Repeat("WITH a AS (", n),
		"Assignments": "UPDATE items SET gold = 1" + strings.Repeat(", gold = 1", n),
		"Targets":     "DELETE items" + strings.Repeat(", items", n) + " FROM items",
		"Hints":       "SELECT id FROM items" + strings.Repeat(" USE INDEX (a)", n),
		"Windows":     "SELECT 1 FROM items WINDOW a AS ()" + strings.Repeat(", a AS ()", n),
		"Words":       strings.Repeat("a ", n),
		"Quotes":      "SELECT '" + strings.Repeat("''", n) + "'",
	}
	for name, text := range texts {
		for _, d := range all {
			t.Run(name+"/"+d.String(), func(t *testing.T) {
				s := newSchema(t, d)
				if v := s.Judge(text); v.Refusal == nil {
					bound(t, s, text)
				}
			})
		}
	}
	if v := newSchema(t, gate.MySQL).Judge("SELECT '" + strings.Repeat("x", 9<<20) + "'"); v.Refusal == nil {
		t.Error("a text of 9 MiB passes")
	}
}

package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// keySchema has two tables of a keyspace and one without a key.
func keySchema(tb testing.TB, d gate.Dialect) *gate.Schema {
	tb.Helper()
	s, err := gate.NewSchema(d, "tenant_id",
		gate.Table{Name: "bags", Class: gate.Tenant, Keyspace: "player", ShardKey: "player_id"},
		gate.Table{Name: "users", Class: gate.Tenant, Keyspace: "player", ShardKey: "player_id"},
		gate.Table{Name: "notes", Class: gate.Tenant})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// keyValues prints the values that conditions compare with shard keys: ?n for a placeholder, 'x' for a text.
func keyValues(v *gate.Verdict) string {
	var out []string
	for _, k := range v.KeyValues {
		if k.Arg >= 0 {
			out = append(out, fmt.Sprintf("?%d", k.Arg))
		} else {
			out = append(out, "'"+k.Text+"'")
		}
	}
	return strings.Join(out, " ")
}

func TestVerdict_KeyValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SELECT id FROM bags":                                                                            "",
		"SELECT id FROM bags WHERE id = ?":                                                               "",
		"SELECT id FROM bags WHERE player_id = ?":                                                        "?0",
		"SELECT id FROM bags WHERE ? = bags.player_id":                                                   "?0",
		"SELECT id FROM bags b WHERE b.PLAYER_ID = 7 AND id > ?":                                         "'7'",
		"SELECT id FROM bags WHERE player_id = '7' OR player_id = ?":                                     "'7' ?0",
		"SELECT id FROM bags WHERE player_id IN (?, '8', 9)":                                             "?0 '8' '9'",
		"SELECT id FROM bags WHERE (id, player_id) IN ((?, ?), (?, ?))":                                  "?1 ?3",
		"SELECT id FROM bags WHERE (player_id, id) = (?, ?)":                                             "?0",
		"SELECT id FROM bags WHERE NOT (player_id = ?)":                                                  "",
		"SELECT id FROM bags WHERE player_id NOT IN (?)":                                                 "",
		"SELECT id FROM bags WHERE player_id <> ?":                                                       "",
		"SELECT id FROM bags WHERE CASE WHEN player_id = ? THEN 1 ELSE 0 END = 1":                        "",
		"SELECT id FROM bags WHERE player_id = -7":                                                       "'-7'",
		"SELECT id FROM bags WHERE player_id = ((7)) AND ('8') = player_id":                              "'7' '8'",
		"SELECT id FROM bags WHERE player_id = NULL":                                                     "",
		"SELECT id FROM bags WHERE player_id = LOWER(?) AND player_id = ?":                               "?1",
		"SELECT id FROM bags WHERE ? IN (player_id)":                                                     "?0",
		"SELECT id FROM bags WHERE player_id = LOWER(name)":                                              "",
		"SELECT player_id FROM bags GROUP BY player_id HAVING player_id = ?":                             "?0",
		"SELECT x.id FROM (SELECT id, player_id FROM bags) x WHERE x.player_id = ?":                      "?0",
		"SELECT x.id FROM (SELECT * FROM (SELECT * FROM bags) y) x WHERE player_id IN (?, ?)":            "?0 ?1",
		"SELECT x.id FROM (SELECT id, player_id FROM notes) x WHERE x.player_id = ?":                     "",
		"WITH x AS (SELECT id, player_id FROM bags) SELECT id FROM x WHERE player_id = ?":                "?0",
		"WITH x AS (SELECT * FROM bags), y AS (SELECT * FROM x) SELECT id FROM y WHERE player_id = ?":    "?0",
		"SELECT id FROM bags b WHERE EXISTS (SELECT 1 FROM notes n WHERE b.player_id = ?)":               "?0",
		"SELECT id FROM bags b WHERE EXISTS (SELECT 1 FROM notes b WHERE b.player_id = ?)":               "",
		"SELECT id FROM bags WHERE EXISTS (SELECT 1 FROM notes n WHERE player_id = ?)":                   "",
		"UPDATE bags SET n = 1 WHERE EXISTS (SELECT 1 FROM notes n WHERE bags.player_id = ?)":            "?0",
		"UPDATE bags SET n = 1 WHERE id IN (SELECT id FROM (SELECT * FROM users) x WHERE player_id = ?)": "?0",
		"SELECT id FROM notes WHERE player_id = ?":                                                       "",
		"SELECT id FROM notes WHERE id IN (SELECT id FROM bags WHERE player_id = ?)":                     "?0",
		"SELECT b.id FROM bags b JOIN users u ON u.player_id = b.player_id WHERE u.player_id = ?":        "?0",
		"SELECT b.id FROM bags b LEFT JOIN users u ON u.player_id = ? WHERE b.id = ?":                    "?0",
		"SELECT id FROM bags WHERE player_id = ? AND (player_id = ? OR id = ?)":                          "?0 ?1",
		"SELECT id FROM bags WHERE player_id = ? AND id = ? OR player_id IN (?) AND id < ?":              "?0 ?2",
		"UPDATE bags SET n = ? WHERE player_id = ?":                                                      "?1",
		"UPDATE bags SET n = 1 WHERE player_id = ? AND player_id <> ?":                                   "?0",
		"UPDATE bags SET n = 1 WHERE id = ?":                                                             "",
		"UPDATE bags SET n = 1 WHERE player_id IN (SELECT player_id FROM users WHERE id > ?)":            "",
		"DELETE FROM bags WHERE player_id = '7'":                                                         "'7'",
		"DELETE FROM bags":                                                                               "",
		"INSERT INTO bags (player_id, n) SELECT player_id, 1 FROM users u WHERE u.player_id = ?":         "?0",
		"SELECT id FROM bags WHERE player_id = ? UNION SELECT id FROM users WHERE player_id = '9'":       "?0 '9'",
		"WITH x AS (SELECT id FROM bags WHERE player_id = ?) SELECT id FROM x":                           "?0",
		"SELECT b.id FROM bags b JOIN notes n ON n.id = b.id WHERE player_id = ? OR b.player_id = ?":     "?0 ?1",
	} {
		for _, d := range []gate.Dialect{gate.MySQL, gate.SQLite} {
			v := keySchema(t, d).Judge(text)
			if v.Refusal != nil {
				t.Errorf("%v %s: %v", d, text, v.Refusal)
			} else if got := keyValues(v); got != want {
				t.Errorf("%v %s: values %q, want %q", d, text, got, want)
			}
		}
	}
}

// A statement whose OR leaves the keys that it names would be answered by one shard as if it were all of them.
func TestVerdict_S23_OrThatWidensTheKey(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"SELECT id FROM bags WHERE player_id = ? OR n = 5",
		"SELECT id FROM bags WHERE n = 5 OR player_id IN (?, ?)",
		"SELECT id FROM bags WHERE id > 1 AND (player_id = ? OR n = 5)",
		"SELECT id FROM bags WHERE player_id = ? OR player_id <> ?",
		"SELECT id FROM bags WHERE player_id = ? OR NOT (player_id = ?)",
		"SELECT b.id FROM bags b JOIN users u ON u.player_id = ? OR u.id = b.id",
		"SELECT id FROM notes WHERE id IN (SELECT id FROM bags WHERE player_id = ? OR n = 5)",
		"SELECT b.id FROM bags b LEFT JOIN users u ON u.player_id = ? WHERE b.n = 5 OR u.player_id = ?",
		"UPDATE bags SET n = 1 WHERE player_id = ? OR n = 5",
		"DELETE FROM bags WHERE player_id = ? OR n = 5",
	} {
		for _, d := range []gate.Dialect{gate.MySQL, gate.SQLite} {
			v := keySchema(t, d).Judge(text)
			if v.Refusal == nil || v.Refusal.Code != gate.Shape || !strings.Contains(v.Refusal.Reason, "OR") || v.Refusal.Hint == "" {
				t.Errorf("%v %s: %v, want the OR refused", d, text, v.Refusal)
			}
		}
	}
}

// A key that is computed, or written in a way that databases read differently, is some shard's key, and nobody could tell whose.
func TestVerdict_S24_ComputedKey(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"007", "-007", "1e3", "7.0", "0x37", "LOWER(?)", "CAST(? AS CHAR)", "CONCAT(?, '7')", "CASE WHEN 1 = 1 THEN '7' END", "? + 0", "7 + 0", "TRUE", "- 7", "(-(7))",
		"COALESCE(NULL, '7')", "x'37'",
	} {
		for _, d := range []gate.Dialect{gate.MySQL, gate.SQLite, gate.Postgres} {
			for _, cond := range []string{"player_id = " + value, "(" + value + ") = player_id", "player_id IN ('7', " + value + ")", "n = 1 OR player_id = " + value, "(id, player_id) = (1, " + value + ")"} {
				for _, text := range []string{
					"SELECT id FROM bags WHERE " + cond, "DELETE FROM bags WHERE " + cond, "SELECT id FROM (SELECT id, player_id, n FROM bags) x WHERE " + cond,
					"SELECT id FROM bags GROUP BY id, n, player_id HAVING " + cond,
				} {
					if d == gate.Postgres {
						text = strings.ReplaceAll(text, "?", "$1")
					}
					v := keySchema(t, d).Judge(text)
					if v.Refusal == nil || v.Refusal.Code != gate.Shape {
						t.Errorf("%v %s: %v, want the key refused", d, text, keyValues(v))
					}
				}
			}
			if v := keySchema(t, d).Judge(strings.ReplaceAll("SELECT id FROM bags WHERE player_id = '7' AND (player_id = "+value+")", "?", map[bool]string{true: "$1", false: "?"}[d == gate.Postgres])); v.Refusal != nil && value != "x'37'" {
				t.Errorf("%v beside a key, %s: %v", d, value, v.Refusal)
			}
		}
	}
}

// What compares as = does names a key as well.
func TestVerdict_S24_EqualInOtherWords(t *testing.T) {
	t.Parallel()
	for d, conds := range map[gate.Dialect][]string{
		gate.MySQL: {"player_id <=> '7'", "'7' <=> player_id"}, gate.SQLite: {"player_id IS '7'", "player_id IS NOT DISTINCT FROM '7'", "player_id == '7'"},
		gate.Postgres: {"player_id IS NOT DISTINCT FROM '7'"},
	} {
		for _, cond := range conds {
			for _, text := range []string{"SELECT id FROM bags WHERE " + cond, "DELETE FROM bags WHERE " + cond} {
				if v := keySchema(t, d).Judge(text); v.Refusal != nil || keyValues(v) != "'7'" {
					t.Errorf("%v %s: %v, values %s", d, text, v.Refusal, keyValues(v))
				}
			}
		}
	}
	for d, cond := range map[gate.Dialect]string{gate.SQLite: "player_id IS NOT '7'", gate.Postgres: "player_id IS DISTINCT FROM '7'"} {
		if v := keySchema(t, d).Judge("DELETE FROM bags WHERE " + cond); v.Refusal == nil {
			t.Errorf("%v %s: passed", d, cond)
		}
	}
}

// A write that names its keys by what they are not would change some of the rows that it means.
func TestVerdict_S24_WriteWithoutAPositiveKey(t *testing.T) {
	t.Parallel()
	for _, cond := range []string{
		"NOT (player_id = ?)", "NOT player_id = ?", "player_id <> ?", "player_id != ?", "player_id < ?", "player_id > ?", "player_id <= ?", "player_id >= ?",
		"player_id BETWEEN ? AND ?", "player_id NOT IN (?, ?)", "player_id LIKE ?", "player_id NOT LIKE ?", "player_id NOT BETWEEN ? AND ?", "player_id IS NOT NULL",
		"n = 1 AND player_id > ?", "n = 1 OR player_id > ?", "LOWER(player_id) = ?",
	} {
		for _, d := range []gate.Dialect{gate.MySQL, gate.SQLite} {
			for _, verb := range []string{"DELETE FROM bags WHERE ", "UPDATE bags SET n = 1 WHERE "} {
				v := keySchema(t, d).Judge(verb + cond)
				if v.Refusal == nil || v.Refusal.Code != gate.Shape || v.Refusal.Table != "bags" {
					t.Errorf("%v %s%s: %v, want it refused", d, verb, cond, v.Refusal)
				}
				if v := keySchema(t, d).Judge(verb + "player_id = ? AND (" + cond + ")"); v.Refusal != nil {
					t.Errorf("%v %splayer_id = ? AND (%s): %v", d, verb, cond, v.Refusal)
				}
			}
			if v := keySchema(t, d).Judge("SELECT id FROM bags WHERE " + cond); v.Refusal != nil {
				t.Errorf("%v a read with %s: %v", d, cond, v.Refusal)
			}
		}
	}
}

// A clause that the parser does not know is named, and nothing leaves.
func TestVerdict_S25_UnknownClause(t *testing.T) {
	t.Parallel()
	s := keySchema(t, gate.MySQL)
	for text, word := range map[string]string{
		"SELECT id FROM bags WHERE player_id = ? PROCEDURE ANALYSE()": "PROCEDURE",
		"SELECT id FROM bags WHERE player_id = ? INTO OUTFILE 'x'":    "INTO",
		"REPLACE INTO bags (player_id, n) VALUES (?, 1)":              "REPLACE",
		"LOAD DATA INFILE 'x' INTO TABLE bags":                        "LOAD",
		"HANDLER bags OPEN":                                           "HANDLER",
	} {
		v := s.Judge(text)
		if v.Refusal == nil || !strings.Contains(strings.ToUpper(v.Refusal.Reason+" "+v.Refusal.Hint), word) {
			t.Errorf("%s: %v, want a refusal that names %s", text, v.Refusal, word)
		}
	}
	for _, text := range []string{ // what it does know is scoped and routed
		"SELECT id FROM bags WHERE player_id = ? FOR UPDATE",
		"INSERT INTO bags (player_id, n) VALUES (?, 1) ON DUPLICATE KEY UPDATE n = n + 1",
		"SELECT b.id FROM bags b JOIN users u ON u.player_id = b.player_id WHERE b.player_id = ?",
		"SELECT id FROM bags WHERE id IN (SELECT id FROM users WHERE player_id = ?)",
	} {
		v := s.Judge(text)
		if v.Refusal != nil || len(v.KeyValues)+len(v.ShardValues) != 1 || v.Rewrite == nil || !slices.ContainsFunc(v.Rewrite.Args, func(a int) bool { return a == gate.TenantArg }) {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

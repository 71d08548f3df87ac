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
		"SELECT id FROM bags":                                                                        "",
		"SELECT id FROM bags WHERE id = ?":                                                           "",
		"SELECT id FROM bags WHERE player_id = ?":                                                    "?0",
		"SELECT id FROM bags WHERE ? = bags.player_id":                                               "?0",
		"SELECT id FROM bags b WHERE b.PLAYER_ID = 7 AND id > ?":                                     "'7'",
		"SELECT id FROM bags WHERE player_id = '7' OR player_id = ?":                                 "'7' ?0",
		"SELECT id FROM bags WHERE player_id IN (?, '8', 9)":                                         "?0 '8' '9'",
		"SELECT id FROM bags WHERE (id, player_id) IN ((?, ?), (?, ?))":                              "?1 ?3",
		"SELECT id FROM bags WHERE (player_id, id) = (?, ?)":                                         "?0",
		"SELECT id FROM bags WHERE NOT (player_id = ?)":                                              "",
		"SELECT id FROM bags WHERE player_id NOT IN (?)":                                             "",
		"SELECT id FROM bags WHERE player_id <> ?":                                                   "",
		"SELECT id FROM bags WHERE CASE WHEN player_id = ? THEN 1 ELSE 0 END = 1":                    "",
		"SELECT id FROM bags WHERE player_id = 007":                                                  "",
		"SELECT id FROM notes WHERE player_id = ?":                                                   "",
		"SELECT id FROM notes WHERE id IN (SELECT id FROM bags WHERE player_id = ?)":                 "?0",
		"SELECT b.id FROM bags b JOIN users u ON u.player_id = b.player_id WHERE u.player_id = ?":    "?0",
		"SELECT b.id FROM bags b LEFT JOIN users u ON u.player_id = ? WHERE b.id = ?":                "?0",
		"SELECT id FROM bags WHERE player_id = ? AND (player_id = ? OR id = ?)":                      "?0 ?1",
		"SELECT id FROM bags WHERE player_id = ? AND id = ? OR player_id IN (?) AND id < ?":          "?0 ?2",
		"UPDATE bags SET n = ? WHERE player_id = ?":                                                  "?1",
		"UPDATE bags SET n = 1 WHERE player_id = ? AND player_id <> ?":                               "?0",
		"UPDATE bags SET n = 1 WHERE id = ?":                                                         "",
		"UPDATE bags SET n = 1 WHERE player_id IN (SELECT player_id FROM users WHERE id > ?)":        "",
		"DELETE FROM bags WHERE player_id = '7'":                                                     "'7'",
		"DELETE FROM bags":                                                                           "",
		"INSERT INTO bags (player_id, n) SELECT player_id, 1 FROM users u WHERE u.player_id = ?":     "?0",
		"SELECT id FROM bags WHERE player_id = ? UNION SELECT id FROM users WHERE player_id = '9'":   "?0 '9'",
		"WITH x AS (SELECT id FROM bags WHERE player_id = ?) SELECT id FROM x":                       "?0",
		"SELECT b.id FROM bags b JOIN notes n ON n.id = b.id WHERE player_id = ? OR b.player_id = ?": "?0 ?1",
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

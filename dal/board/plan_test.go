package board_test

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/board"
	"github.com/tenantdal/tenantdal/testutil"
)

// On a board with 20,000 entries beside other boards, reads go by the index in the board's order: no sort, and no more rows than they answer with, whatever
// the number of groups in the condition.
func TestBoard_PlansUseTheIndex(t *testing.T) {
	t.Parallel()
	cluster := mariaCluster(t, testutil.SharedMariaDB(t, 1))
	store, a, _ := open(t, cluster)
	arena := opened(t, a, store, board.Config{Name: "arena", Groups: 512})
	if err := arena.Update(a, "me", 19_990); err != nil {
		t.Fatal(err)
	}
	e, err := cluster.Endpoint(dal.Place{Shard: "s1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	connector, err := mysql.NewConnector(e.MySQLConfig())
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	defer func() { _ = db.Close() }()
	for _, text := range []string{
		"INSERT INTO board_entries SELECT 'a', CONCAT('arena/', seq % 512), CONCAT('p', seq), 'arena', seq, seq FROM seq_1_to_20000",
		"INSERT INTO board_entries SELECT 'a', CONCAT('other/', seq % 512), CONCAT('p', seq), 'other', seq, seq FROM seq_1_to_20000",
		"INSERT INTO board_entries SELECT 'b', CONCAT('arena/', seq % 512), CONCAT('p', seq), 'arena', seq, seq FROM seq_1_to_20000",
		"ANALYZE TABLE board_entries",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	texts, err := arena.Texts(a, "me", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"top", "rank", "before", "after"} {
		if len(texts[name]) != 1 {
			t.Errorf("%s: %d statements for one shard", name, len(texts[name]))
		}
		for _, text := range texts[name] {
			var plan string
			if err := db.QueryRowContext(t.Context(), "EXPLAIN FORMAT=JSON "+text).Scan(&plan); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if !json.Valid([]byte(plan)) || !strings.Contains(plan, `"key": "board_entries_top"`) || strings.Contains(plan, "filesort") {
				t.Errorf("%s: %s\n%s", name, text, plan)
			}
			if _, err := db.ExecContext(t.Context(), "FLUSH STATUS"); err != nil {
				t.Fatal(err)
			}
			rows, err := db.QueryContext(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
			}
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
			var read int64
			if err := db.QueryRowContext(t.Context(), "SELECT SUM(variable_value) FROM information_schema.session_status WHERE variable_name LIKE 'Handler_read%'").Scan(&read); err != nil {
				t.Fatal(err)
			}
			if read > 20 {
				t.Errorf("%s read %d rows: %s\n%s", name, read, text, plan)
			}
		}
	}
}

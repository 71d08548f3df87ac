package dal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// TestShapes_ReadsAreBoundInTheText runs what the builder cannot bind by itself: gorm's text is read and the tenant is put into it. Tenant b has rows
// with the same keys on the same shard.
func TestShapes_ReadsAreBoundInTheText(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	type dto struct{ Name string }
	a := func() *gorm.DB { return g.player(g.a) }
	sub := func() *gorm.DB { return a().Model(&Item{}).Select("player_id") }
	for name, c := range map[string]struct {
		run  func(dest *[]map[string]any) error
		sql  string // what left
		rows int
	}{
		"T06 select text": {
			func(m *[]map[string]any) error {
				return a().Model(&User{}).Select("users.name, (SELECT count(*) FROM items) AS n").Find(m).Error
			},
			"SELECT users.name, (SELECT count(*) FROM items WHERE items.tenant_id = ?) AS n FROM `users` WHERE `users`.`tenant_id` = ? AND `users`.`deleted_at` IS NULL", 3,
		},
		"T07 raw join": {
			func(m *[]map[string]any) error {
				return a().Model(&User{}).Select("users.name").Joins("JOIN items ON items.player_id = users.player_id AND items.name = users.name").Find(m).Error
			},
			"SELECT users.name FROM `users` JOIN items ON items.player_id = users.player_id AND items.name = users.name WHERE `users`.tenant_id = ? AND items.tenant_id = ? AND (`users`.`deleted_at` IS NULL)", 0,
		},
		"T07 left join stays outer": {
			func(m *[]map[string]any) error {
				return a().Model(&User{}).Select("users.name").Joins("LEFT JOIN items ON items.id = users.id AND items.qty > ?", 1000000).Find(m).Error
			},
			"SELECT users.name FROM `users` LEFT JOIN items ON items.tenant_id = ? AND (items.id = users.id AND items.qty > ?) WHERE `users`.tenant_id = ? AND (`users`.`deleted_at` IS NULL)", 3,
		},
		"T07 comma join": {
			func(m *[]map[string]any) error {
				return a().Table("users u, items i").Select("u.name").Where("u.id = i.id").Find(m).Error
			},
			"SELECT u.name FROM users u, items i WHERE u.tenant_id = ? AND i.tenant_id = ? AND (u.id = i.id)", 3,
		},
		"T08 table": {
			func(m *[]map[string]any) error { return a().Table("users").Find(m).Error },
			"SELECT * FROM `users` WHERE `users`.tenant_id = ?", 3,
		},
		"T08 table with alias": {
			func(m *[]map[string]any) error {
				return a().Table("users AS y").Where("y.id > ? OR 1=1", 0).Find(m).Error
			},
			"SELECT * FROM users AS y WHERE y.tenant_id = ? AND (y.id > ? OR 1=1)", 3,
		},
		"T11 sub-query": {
			func(m *[]map[string]any) error {
				return a().Model(&User{}).Where("player_id IN (?)", sub()).Find(m).Error
			},
			"SELECT * FROM `users` WHERE `users`.`tenant_id` = ? AND (player_id IN (SELECT `player_id` FROM `items` WHERE `items`.`tenant_id` = ?)) AND `users`.`deleted_at` IS NULL", 3,
		},
		"T11 sub-query that names a table": {
			func(m *[]map[string]any) error {
				return a().Model(&User{}).Where("id NOT IN (?)", a().Table("items").Select("id")).Find(m).Error
			},
			"SELECT * FROM `users` WHERE `users`.`tenant_id` = ? AND (id NOT IN (SELECT id FROM `items` WHERE `items`.tenant_id = ?)) AND `users`.`deleted_at` IS NULL", 0,
		},
		"T11 table sub-query": {
			func(m *[]map[string]any) error { return a().Table("(?) AS u", sub()).Find(m).Error },
			"SELECT * FROM (SELECT `player_id` FROM `items` WHERE `items`.`tenant_id` = ?) AS u", 3,
		},
		"T11 raw sub-query": {
			func(m *[]map[string]any) error {
				return a().Model(&User{}).Where("id IN (?)", a().Raw("SELECT id FROM items WHERE qty > ?", -1)).Find(m).Error
			},
			"SELECT * FROM `users` WHERE `users`.`tenant_id` = ? AND (id IN (SELECT id FROM items WHERE items.tenant_id = ? AND (qty > ?))) AND `users`.`deleted_at` IS NULL", 3,
		},
		"raw": {
			func(m *[]map[string]any) error {
				return a().Raw("SELECT * FROM users WHERE gold >= ? OR 1=1", 0).Scan(m).Error
			},
			"SELECT * FROM users WHERE users.tenant_id = ? AND (gold >= ? OR 1=1)", 3,
		},
		"raw with @tenant": {
			func(m *[]map[string]any) error {
				return a().Raw("SELECT * FROM users WHERE tenant_id = @tenant AND id > @from", map[string]any{"from": 0}).Scan(m).Error
			},
			"SELECT * FROM users WHERE tenant_id = ? AND id > ?", 3,
		},
		"raw with its own predicate": {
			func(m *[]map[string]any) error {
				return a().Raw("SELECT * FROM users WHERE tenant_id = ?", "a").Scan(m).Error
			},
			"SELECT * FROM users WHERE tenant_id = ?", 3,
		},
		"raw with a literal": {
			func(m *[]map[string]any) error {
				return a().Raw("SELECT * FROM users WHERE tenant_id = 'a'").Scan(m).Error
			},
			"SELECT * FROM users WHERE users.tenant_id = ? AND (tenant_id = 'a')", 3,
		},
		"raw CTE": {
			func(m *[]map[string]any) error {
				return a().Raw("WITH rich AS (SELECT * FROM users WHERE gold >= ?) SELECT rich.id FROM rich LEFT JOIN items i ON i.id = rich.id", 0).Scan(m).Error
			},
			"WITH rich AS (SELECT * FROM users WHERE users.tenant_id = ? AND (gold >= ?)) SELECT rich.id FROM rich LEFT JOIN items i ON i.tenant_id = ? AND (i.id = rich.id)", 3,
		},
		"prepared session": {
			func(m *[]map[string]any) error {
				return a().Session(&gorm.Session{PrepareStmt: true}).Model(&User{}).Where("id > ?", 0).Find(m).Error
			},
			"SELECT * FROM `users` WHERE `users`.`tenant_id` = ? AND (id > ?) AND `users`.`deleted_at` IS NULL", 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g.rec.take()
			var rows []map[string]any
			if err := c.run(&rows); err != nil {
				t.Fatal(err)
			}
			if texts := g.rec.take(); !slices.Equal(texts, []string{c.sql}) {
				t.Errorf("left:\n%s\nwant:\n%s", strings.Join(texts, "\n"), c.sql)
			}
			if len(rows) != c.rows || strings.Contains(fmt.Sprint(rows), "tenant_id:b") {
				t.Errorf("%d rows, want %d: %v", len(rows), c.rows, rows)
			}
		})
	}
	for name, run := range map[string]func() error{
		"T66 another tenant's value":   func() error { return a().Where("tenant_id = ?", "b").Find(&[]User{}).Error },
		"T66 another tenant's literal": func() error { return a().Raw("SELECT * FROM users WHERE tenant_id = 'b'").Scan(&[]dto{}).Error },
		"T66 under OR":                 func() error { return a().Where("id = 1 OR tenant_id = ?", "b").Find(&[]User{}).Error },
		"T66 in a list":                func() error { return a().Where("tenant_id IN ?", []string{"a", "b"}).Find(&[]User{}).Error },
	} {
		g.refusedAs(t, run(), dal.ErrTenantMismatch)
		_ = name
	}
	g.refusedAs(t, a().Raw("SELECT * FROM guilds").Scan(&[]dto{}).Error, dal.ErrKeyspace)
	g.refusedAs(t, a().Raw("SELECT * FROM jobs").Scan(&[]dto{}).Error, dal.ErrClosedTable)
	g.refusedAs(t, a().Raw("SELECT * FROM strangers").Scan(&[]dto{}).Error, dal.ErrUndeclared)
}

func TestShapes_RawWritesAreBoundInTheText(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "b")
	a := func() *gorm.DB { return g.player(g.a) }
	for _, c := range []struct {
		text string
		args []any
		rows int64
	}{
		{"UPDATE users SET gold = gold + ?", []any{1}, 3},
		{"UPDATE users SET gold = (SELECT COUNT(*) FROM items) WHERE id > ? OR 1=1", []any{0}, 3},
		{"INSERT INTO items (id, player_id, name, qty) VALUES (?, ?, 'x', 1), (?, '7', 'y', 2)", []any{501, "7", 502}, 2},
		{"INSERT INTO items (id, player_id, qty) SELECT id + 1000, player_id, gold FROM users", nil, 3},
		{"INSERT INTO items (id, player_id, qty) VALUES (501, '7', 9) ON CONFLICT (id) DO UPDATE SET qty = excluded.qty", nil, 1},
		{"DELETE FROM items WHERE id IN (SELECT id + 1000 FROM users)", nil, 3},
		{"DELETE FROM items", nil, 5},
	} {
		res := a().Exec(c.text, c.args...)
		if res.Error != nil || res.RowsAffected != c.rows {
			t.Errorf("%s: %d rows, %v; want %d", c.text, res.RowsAffected, res.Error, c.rows)
		}
	}
	if after := g.dump(t, "b"); after != before {
		t.Errorf("tenant b changed:\n%s\nwas\n%s", after, before)
	}
	g.rec.take()
	g.refusedAs(t, a().Exec("INSERT INTO items (id, player_id) VALUES (?, ?)", 9, g.keyOn(t, g.other(t))).Error, dal.ErrCrossShard)
	g.refusedAs(t, a().Exec("UPDATE items SET tenant_id = ?", "b").Error, dal.ErrImmutable)
	g.refusedAs(t, a().Exec("UPDATE items SET player_id = ?", "7").Error, dal.ErrImmutable)
	g.refusedAs(t, a().Exec("INSERT INTO items (id, player_id, tenant_id) VALUES (9, '7', ?)", "b").Error, dal.ErrTenantMismatch)
	g.refusedAs(t, a().Exec("UPDATE catalogs SET name = 'x'").Error, dal.ErrClosedTable)
	g.refusedAs(t, a().Exec("REPLACE INTO items (id, player_id) VALUES (1, '7')").Error, dal.ErrShape)
	g.refusedAs(t, a().Exec("PRAGMA writable_schema = 1").Error, dal.ErrShape)
	g.refusedAs(t, a().Exec("SAVEPOINT x").Error, dal.ErrShape)
}

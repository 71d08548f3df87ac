package dal_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
)

// sayings are the ways in which a condition says that the shard key is one of the keys.
func sayings(keys ...any) map[string]func(*gorm.DB) *gorm.DB {
	all := map[string]func(*gorm.DB) *gorm.DB{
		"IN":        func(db *gorm.DB) *gorm.DB { return db.Where("player_id IN ?", keys) },
		"map":       func(db *gorm.DB) *gorm.DB { return db.Where(map[string]any{"player_id": keys}) },
		"qualified": func(db *gorm.DB) *gorm.DB { return db.Where("items.qty > 0 AND items.player_id IN ?", keys) },
		"or": func(db *gorm.DB) *gorm.DB {
			or := db.Session(&gorm.Session{NewDB: true})
			for _, k := range keys {
				or = or.Or("player_id = ?", k)
			}
			return db.Where(or)
		},
	}
	if len(keys) == 1 {
		all["struct"] = func(db *gorm.DB) *gorm.DB { return db.Where(&Item{PlayerID: keys[0].(string)}) }
		all["pointer"] = func(db *gorm.DB) *gorm.DB { k := keys[0].(string); return db.Where("? = player_id", &k) }
		all["bytes"] = func(db *gorm.DB) *gorm.DB { return db.Where("player_id = ?", []byte(keys[0].(string))) }
	}
	return all
}

// verbs send the condition as every kind of statement.
func verbs() map[string]func(*gorm.DB) error {
	return map[string]func(*gorm.DB) error{
		"find":   func(db *gorm.DB) error { return db.Find(&[]Item{}).Error },
		"count":  func(db *gorm.DB) error { var n int64; return db.Model(&Item{}).Count(&n).Error },
		"update": func(db *gorm.DB) error { return db.Model(&Item{}).Update("qty", 5).Error },
		"delete": func(db *gorm.DB) error { return db.Delete(&Item{}).Error },
	}
}

// A handle asks one shard. A list of keys of which some live elsewhere is refused by name of both shards, whatever the verb.
func TestRouting_S21_KeysOfAnotherShard(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	elsewhere := g.keyOn(t, g.other(t))
	before := g.dump(t, "a")
	for verb, do := range verbs() {
		for _, keys := range [][]any{{elsewhere}, {"7", elsewhere}, {elsewhere, "7", "7"}} {
			for form, say := range sayings(keys...) {
				err := do(say(g.player(g.a)))
				var cross *dal.CrossShardError
				if !errors.As(err, &cross) || cross.Held != g.shardOf(t) || cross.Wanted != g.other(t) || cross.Table != "items" {
					t.Errorf("%s, %s, %v: %v, want both shards", verb, form, keys, err)
				}
				g.refusedInTx(t, err, dal.ErrCrossShard) // a built write is judged inside gorm's own transaction
			}
		}
	}
	for text, args := range map[string][]any{
		"UPDATE items SET qty = 5 WHERE player_id = ?":                                          {elsewhere},
		"UPDATE items SET qty = 5 WHERE player_id = '" + elsewhere + "'":                        {},
		"DELETE FROM items WHERE (id, player_id) IN ((1, ?), (1, ?))":                           {"7", elsewhere},
		"DELETE FROM items WHERE id IN (SELECT id FROM users WHERE player_id = ?)":              {elsewhere},
		"INSERT INTO items (id, player_id) SELECT id, player_id FROM users WHERE player_id = ?": {elsewhere},
	} {
		g.refusedInTx(t, g.player(g.a).Exec(text, args...).Error, dal.ErrCrossShard)
	}
	g.refusedInTx(t, g.player(g.a).Raw("SELECT id FROM items WHERE player_id = @k", map[string]any{"k": elsewhere}).Scan(&[]int64{}).Error, dal.ErrCrossShard)
	direct, err := g.player(g.a).DB()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.ExecContext(g.a, "DELETE FROM items WHERE tenant_id = ? AND player_id = ?", "a", elsewhere); !errors.Is(err, dal.ErrCrossShard) {
		t.Errorf("beside gorm: %v", err)
	}
	if after := g.dump(t, "a"); after != before {
		t.Errorf("rows changed:\n%s\nwere\n%s", after, before)
	}
}

// Keys of the handle's own shard are asked together, whichever of them the handle was made for.
func TestRouting_S21_KeysOfTheShardItself(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	beside := g.keyOn(t, g.shardOf(t))
	if err := g.On(g.a, dal.Key("player", beside)).Create(&Item{PlayerID: beside, Qty: 1}).Error; err != nil {
		t.Fatal(err)
	}
	for form, say := range sayings("7", beside) {
		var items []Item
		if err := say(g.player(g.a)).Find(&items).Error; err != nil || len(items) != 4 && beside != "7" {
			t.Errorf("%s: %d items, %v", form, len(items), err)
		}
	}
	for _, value := range []any{nil, (*string)(nil), "", 0} { // nobody's key, on no shard
		var items []Item
		if err := g.player(g.a).Where("player_id = ?", value).Find(&items).Error; err != nil || len(items) != 0 {
			t.Errorf("%v: %d items, %v", value, len(items), err)
		}
	}
	g.rec.take()
	var kind *shardrouter.KeyTypeError
	if err := g.player(g.a).Where("player_id = ?", 1.5).Find(&[]Item{}).Error; !errors.As(err, &kind) || len(g.rec.take()) > 0 {
		t.Errorf("a key that is no key: %v", err)
	}
}

func TestRouting_S23_OrThatWidensTheKey(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	for verb, do := range verbs() {
		err := do(g.player(g.a).Where("player_id = ? OR qty = 5", "7"))
		var shape *dal.ShapeError
		if !errors.As(err, &shape) || shape.Hint == "" || shape.Table != "items" {
			t.Errorf("%s: %v, want a typed refusal with a hint", verb, err)
		}
		g.refusedInTx(t, err, dal.ErrShape)
		g.refusedInTx(t, do(g.player(g.a).Where("player_id = ?", "7").Or("qty = ?", 5)), dal.ErrShape)
	}
	var items []Item
	if err := g.player(g.a).Where("player_id = ? AND (qty = 1 OR name = 'x' OR player_id = ?)", "7", "7").Find(&items).Error; err != nil || len(items) != 3 {
		t.Errorf("an OR beside the key: %d items, %v", len(items), err)
	}
}

func TestRouting_S24_WriteWithoutAPositiveKey(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	before := g.dump(t, "a")
	conds := map[string]func(*gorm.DB) *gorm.DB{
		"Not":     func(db *gorm.DB) *gorm.DB { return db.Not("player_id = ?", "8") },
		"map":     func(db *gorm.DB) *gorm.DB { return db.Not(map[string]any{"player_id": []string{"8", "9"}}) },
		"<>":      func(db *gorm.DB) *gorm.DB { return db.Where("player_id <> ?", "8") },
		"range":   func(db *gorm.DB) *gorm.DB { return db.Where("player_id > ?", "1") },
		"BETWEEN": func(db *gorm.DB) *gorm.DB { return db.Where("player_id BETWEEN ? AND ?", "1", "9") },
		"NOT IN":  func(db *gorm.DB) *gorm.DB { return db.Where("player_id NOT IN ?", []string{"8"}) },
		"LIKE":    func(db *gorm.DB) *gorm.DB { return db.Where("player_id LIKE ?", "7%") },
	}
	for form, cond := range conds {
		for _, verb := range []string{"update", "delete"} {
			do := verbs()[verb]
			g.refusedInTx(t, do(cond(g.player(g.a))), dal.ErrShape)
		}
		var items []Item
		if err := cond(g.player(g.a)).Find(&items).Error; err != nil || len(items) != 3 {
			t.Errorf("a read, %s: %d items, %v", form, len(items), err)
		}
		g.rec.take()
	}
	g.refusedInTx(t, g.player(g.a).Exec("DELETE FROM items WHERE NOT (player_id = ?)", "8").Error, dal.ErrShape)
	if after := g.dump(t, "a"); after != before {
		t.Errorf("rows changed:\n%s\nwere\n%s", after, before)
	}
	if err := g.player(g.a).Where("player_id = ? AND player_id <> ?", "7", "8").Delete(&Item{}).Error; err != nil {
		t.Errorf("beside a positive key: %v", err)
	}
}

func TestRouting_S28_StatementOfAnotherKeyInATransaction(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	elsewhere := g.keyOn(t, g.other(t))
	err := g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
		g.rec.take()
		for verb, do := range verbs() {
			err := do(tx.Where("player_id = ?", elsewhere))
			var cross *dal.CrossShardError
			if !errors.As(err, &cross) || cross.Held != g.shardOf(t) || cross.Wanted != g.other(t) {
				t.Errorf("%s: %v, want both shards", verb, err)
			}
			g.refusedInTx(t, err, dal.ErrCrossShard)
		}
		return tx.Where("player_id = ?", "7").Find(&[]Item{}).Error
	})
	if err != nil {
		t.Fatal(err)
	}
}

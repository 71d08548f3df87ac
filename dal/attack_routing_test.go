package dal_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// A watcher that panics at a COMMIT leaves neither a connection nor a permit behind, the commit stands, and the other watchers are told of it.
func TestAttack_WatcherPanics(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	stop := g.WatchWrites(func([]dal.Written) { panic("a watcher") })
	var told []dal.Written
	g.WatchWrites(func(w []dal.Written) { told = append(told, w...) })
	for i := range 3 {
		err := g.Transaction(g.a, dal.Key("player", "7"), func(_ context.Context, tx *gorm.DB) error {
			return tx.Create(&Item{PlayerID: "7", Name: fmt.Sprint(i)}).Error
		})
		if err != nil {
			t.Fatalf("Transaction: %v, want the commit to stand", err)
		}
	}
	stop()
	if want := (dal.Written{Tenant: "a", Table: "items"}); len(told) != 3 || told[2] != want {
		t.Errorf("the other watcher was told %v, want %v thrice", told, want)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM items"); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

// Rows of a write that stay open while another statement runs on their connection: the commit comes when they are closed, and is told then.
func TestAttack_RowsOfAWriteStayOpen(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	var told []string
	g.WatchWrites(func(w []dal.Written) {
		for _, x := range w {
			told = append(told, x.Table)
		}
	})
	db, err := g.player(g.a).DB()
	if err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]func(text string, args ...any) (closes func() error, err error){
		"query": func(text string, args ...any) (func() error, error) {
			conn, err := db.Conn(g.a)
			if err != nil {
				return nil, err
			}
			rows, err := conn.QueryContext(g.a, text, args...)
			if err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			_, err = conn.ExecContext(g.a, "UPDATE users SET gold = 1 WHERE tenant_id = ? AND player_id = '7'", "a")
			return func() error { return errors.Join(rows.Err(), rows.Close(), conn.Close()) }, err
		},
		"prepared": func(text string, args ...any) (func() error, error) {
			conn, err := db.Conn(g.a)
			if err != nil {
				return nil, err
			}
			st, err := conn.PrepareContext(g.a, text)
			if err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			rows, err := st.QueryContext(g.a, args...)
			if err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			_, err = conn.ExecContext(g.a, "UPDATE users SET gold = 1 WHERE tenant_id = ? AND player_id = '7'", "a")
			return func() error { return errors.Join(rows.Err(), rows.Close(), st.Close(), conn.Close()) }, err
		},
	} {
		closes, err := query("UPDATE items SET qty = qty + 1 WHERE tenant_id = ? AND player_id = '7' RETURNING id", "a")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		told = nil
		if err := closes(); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(told, "items") {
			t.Errorf("%s: told %v when the rows were closed, want items", name, told)
		}
	}
}

// A function that ends its goroutine is no shard that was read.
func TestAttack_GoexitInFanOut(t *testing.T) {
	t.Parallel()
	for _, partial := range []bool{true, false} {
		g := newGame(t)
		var err error
		var report dal.FanOutReport
		report, err = g.FanOut(g.a, dal.FanOutSpec{Keyspace: "player", Partial: partial, Parallel: 1}, func(_ context.Context, at *dal.ShardRead, _ *gorm.DB) error {
			if at.Shard == "s1" {
				runtime.Goexit()
			}
			return nil
		})
		var fan *dal.FanOutError
		if !errors.As(err, &fan) || !errors.Is(fan.Failed["s1"], dal.ErrNoReturn) || !errors.Is(report.Shards[0].Err, dal.ErrNoReturn) || (len(fan.Done) == 1) != partial {
			t.Errorf("partial %v: %v, want s1 to have failed", partial, err)
		}
	}
}

// Leaver is a row whose hook ends the goroutine.
type Leaver struct {
	dal.Model
	PlayerID string `gorm:"not null"`
	Name     string
}

// TableName is the items' table.
func (Leaver) TableName() string { return "items" }

// AfterCreate leaves.
func (l *Leaver) AfterCreate(*gorm.DB) error {
	if l.Name == "leaves" {
		runtime.Goexit()
	}
	return nil
}

// A hook that ends its goroutine commits nothing, and its shard is not reported as written.
func TestAttack_GoexitInCreateEach(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(cfg *dal.Config, _ *[]tenant.Tenant) {
		cfg.Tables = []dal.Table{dal.Tenant[Leaver]("player", "player_id")}
	})
	var rows []Leaver
	have := map[shardrouter.ShardID]bool{}
	for i := 1; len(have) < 2; i++ {
		key := fmt.Sprint(i)
		r, err := g.Route(g.a, dal.Key("player", key))
		if err != nil {
			t.Fatal(err)
		}
		row := Leaver{PlayerID: key}
		if r.Place.Shard == "s2" {
			row.Name = "leaves"
		}
		have[r.Place.Shard] = true
		rows = append(rows, row)
	}
	groups, err := dal.CreateEach(g.a, g.Store, rows)
	var each *dal.FanOutError
	if !errors.As(err, &each) || !errors.Is(each.Failed["s2"], dal.ErrNoReturn) || len(each.Done) != 1 || !errors.Is(groups[1].Err, dal.ErrNoReturn) {
		t.Errorf("CreateEach: %v, want s2 to have failed", err)
	}
	if n := g.count(t, "SELECT COUNT(*) FROM items WHERE name = 'leaves'"); n != 0 {
		t.Errorf("%d rows of the shard that failed", n)
	}
}

// A handle that is kept beyond its call reads nothing any more, by whatever context and on whatever goroutine.
func TestAttack_FanOutHandleKept(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	var mu sync.Mutex
	var kept []*gorm.DB
	_, err := g.FanOut(g.a, dal.FanOutSpec{Keyspace: "player"}, func(_ context.Context, _ *dal.ShardRead, db *gorm.DB) error {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, db, db.Session(&gorm.Session{NewDB: true}), db.Model(&Item{}).Where("qty > 0"))
		return db.Find(&[]Item{}).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	g.rec.take()
	var wg sync.WaitGroup
	for _, db := range kept {
		wg.Go(func() {
			var items []Item
			if err := db.WithContext(g.a).Find(&items).Error; !errors.Is(err, dal.ErrHandleOver) {
				t.Errorf("a read after the call: %v, %d rows", err, len(items))
			}
			if err := db.WithContext(g.b).Find(&items).Error; !errors.Is(err, dal.ErrTenantMismatch) {
				t.Errorf("a read as b: %v, %d rows", err, len(items))
			}
			if err := db.WithContext(g.a).Create(&Item{PlayerID: "7"}).Error; !errors.Is(err, dal.ErrReadOnly) {
				t.Errorf("a write: %v", err)
			}
		})
	}
	wg.Wait()
	if sent := g.rec.take(); len(sent) != 0 {
		t.Errorf("sent after the call: %q", sent)
	}
}

// A key of another shard that stands where a condition on rows is easily overlooked is refused with both shards; one that cannot be read is refused as well.
func TestAttack_KeysInOtherWords(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	away := ""
	for i := 1; away == ""; i++ {
		if r, err := g.Route(g.a, dal.Key("player", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		} else if r.Place.Shard == g.other(t) {
			away = fmt.Sprint(i)
		}
	}
	before := g.dump(t, "a")
	g.rec.take()
	var rows []map[string]any
	for text, want := range map[string]error{
		"SELECT id FROM items WHERE player_id IS @k":                                                                     dal.ErrCrossShard,
		"SELECT id FROM items WHERE @k IN (player_id)":                                                                   dal.ErrCrossShard,
		"SELECT id FROM items WHERE player_id = " + away:                                                                 dal.ErrCrossShard,
		"SELECT player_id FROM items GROUP BY player_id HAVING player_id = @k":                                           dal.ErrCrossShard,
		"SELECT x.id FROM (SELECT id, player_id FROM items) x WHERE x.player_id = @k":                                    dal.ErrCrossShard,
		"WITH x AS (SELECT id, player_id FROM items) SELECT id FROM x WHERE player_id = @k":                              dal.ErrCrossShard,
		"SELECT id FROM items WHERE player_id = '7' UNION ALL SELECT id FROM items WHERE player_id = @k":                 dal.ErrCrossShard,
		"SELECT id FROM items i WHERE EXISTS (SELECT 1 FROM users u WHERE i.player_id = @k)":                             dal.ErrCrossShard,
		"SELECT i.id FROM items i JOIN users u ON u.player_id = @k":                                                      dal.ErrCrossShard,
		"UPDATE items SET qty = 0 WHERE id IN (SELECT id FROM (SELECT id, player_id FROM users) x WHERE player_id = @k)": dal.ErrCrossShard,
		"DELETE FROM items WHERE (id, player_id) = (1, @k)":                                                              dal.ErrCrossShard,
		"SELECT id FROM items WHERE player_id = LOWER(@k)":                                                               dal.ErrShape,
		"SELECT id FROM items WHERE player_id = 0" + away:                                                                dal.ErrShape,
		"SELECT id FROM items WHERE player_id = " + away + ".0":                                                          dal.ErrShape,
		"DELETE FROM items WHERE player_id = CAST(@k AS TEXT)":                                                           dal.ErrShape,
		"UPDATE items SET qty = 0 WHERE player_id IN ('7', CASE WHEN 1 = 1 THEN @k END)":                                 dal.ErrShape,
	} {
		var args []any
		if strings.Contains(text, "@k") {
			args = append(args, map[string]any{"k": away})
		}
		err := g.player(g.a).Raw(text, args...).Scan(&rows).Error
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		g.rec.take()
	}
	if after := g.dump(t, "a"); after != before {
		t.Errorf("rows were changed:\n%s", after)
	}
}

// forgery is the outside of a cursor.
type forgery struct {
	Version  int       `json:"v"`
	Check    string    `json:"c"`
	Backward bool      `json:"b,omitempty"`
	Values   []*string `json:"k"`
}

// A cursor of another tenant is refused; whatever is put into one's own shows own rows alone.
func TestAttack_ForgedCursors(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	forged := "t" + base64.RawURLEncoding.EncodeToString([]byte("' OR tenant_id = 'b' -- \x00\xff"))
	for _, order := range [][]dal.Order{{dal.Asc("name")}, {dal.Desc("name")}, {dal.Desc("player_id"), dal.Asc("qty")}} {
		q := dal.Scatter[Item](g.Store).OrderBy(order...).Limit(1)
		first, err := q.Page(g.a, "")
		if err != nil || first.Next == "" {
			t.Fatalf("Page: %q, %v", first.Next, err)
		}
		if r, err := q.Page(g.b, first.Next); !errors.Is(err, dal.ErrCursor) || len(r.Rows) > 0 {
			t.Errorf("b with a's cursor: %d rows, %v", len(r.Rows), err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(first.Next)
		if err != nil {
			t.Fatal(err)
		}
		var c forgery
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		for i, is := range c.Values {
			raw := "b" + (*is)[1:]
			for _, value := range []*string{nil, &forged, &raw} {
				for _, back := range []bool{false, true} {
					mine := forgery{Version: c.Version, Check: c.Check, Backward: back, Values: slices.Clone(c.Values)}
					mine.Values[i] = value
					text, err := json.Marshal(mine)
					if err != nil {
						t.Fatal(err)
					}
					r, _ := q.Page(g.a, base64.RawURLEncoding.EncodeToString(text))
					for _, row := range r.Rows {
						if row.TenantID != "a" {
							t.Errorf("%s: a row of %q", text, row.TenantID)
						}
					}
				}
			}
		}
	}
}

// SQL in the texts of a query over shards is refused, or reads own rows alone.
func TestAttack_TextInScatter(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	for _, where := range []string{
		"1=1 UNION SELECT * FROM items", "1=1 ORDER BY 1", "1=1 LIMIT 1", "name = 'x' -- ", "tenant_id = 'b'", "1=1; DELETE FROM items", "1=1 OR tenant_id = 'b'",
		"EXISTS (SELECT 1 FROM items WHERE tenant_id = 'b')",
	} {
		q := dal.Scatter[Item](g.Store).Where(where).OrderBy(dal.Asc("name"))
		if r, err := q.Find(g.a); err == nil || len(r.Rows) > 0 {
			t.Errorf("Find where %s: %d rows, %v, want it refused", where, len(r.Rows), err)
		}
		if r, err := dal.Scatter[Item](g.Store).Where(where).Aggregate(g.a, dal.Count()); err == nil || len(r.Rows) > 0 {
			t.Errorf("Aggregate where %s: %v, %v, want it refused", where, r.Rows, err)
		}
	}
	r, err := dal.Scatter[Item](g.Store).Where("1=1) OR (1=1").Find(g.a)
	for _, row := range r.Rows {
		if row.TenantID != "a" {
			t.Errorf("a row of %q, %v", row.TenantID, err)
		}
	}
	for _, column := range []string{"name; DROP TABLE items", "tenant_id", "TENANT_ID", "name DESC", "`name`", "items.name", "1", "(SELECT name FROM items)", ""} {
		_, sorted := dal.Scatter[Item](g.Store).OrderBy(dal.Asc(column)).Find(g.a)
		_, grouped := dal.Scatter[Item](g.Store).GroupBy(column).Aggregate(g.a, dal.Count())
		_, summed := dal.Scatter[Item](g.Store).Aggregate(g.a, dal.Sum(column))
		_, largest := dal.Scatter[Item](g.Store).Aggregate(g.a, dal.Max(column))
		for what, err := range map[string]error{"OrderBy": sorted, "GroupBy": grouped, "Sum": summed, "Max": largest} {
			if !errors.Is(err, dal.ErrShape) {
				t.Errorf("%s %q: %v, want it refused", what, column, err)
			}
		}
	}
	if n := g.count(t, "SELECT COUNT(*) FROM items"); n != 6 {
		t.Errorf("%d rows, want 6", n)
	}
}

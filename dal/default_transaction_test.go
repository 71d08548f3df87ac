package dal_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// ends lists what ended the transactions that the recorder saw.
func ends(g *game) *[]string {
	var seen []string
	g.rec.breaks(func(e wire.Event) error {
		if e.Op == "begin" || e.Op == "commit" || e.Op == "rollback" {
			seen = append(seen, e.Op)
		}
		return nil
	})
	return &seen
}

// Each write has one transaction of its own; what its hooks write is in it, and does not end it.
func TestDefaultTransaction_HoldsTheHooks(t *testing.T) {
	t.Parallel()
	refused := errors.New("the hook says no")
	for _, tt := range []struct {
		name string
		end  error
		want []string
		rows int
	}{
		{"a hook that agrees", nil, []string{"begin", "commit"}, 2},
		{"a hook that refuses", refused, []string{"begin", "rollback"}, 0},
	} {
		g := squires(t)
		seen := ends(g)
		ctx := hooks{"AfterCreate": func(tx *gorm.DB, s *Squire) error {
			if s.Name != "outer" {
				return nil
			}
			if err := tx.Create(&Squire{PlayerID: "7", Name: "inner"}).Error; err != nil {
				return err
			}
			return tt.end
		}}.under(g.a)
		if err := g.player(ctx).Create(&Squire{PlayerID: "7", Name: "outer"}).Error; !errors.Is(err, tt.end) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.end)
		}
		if !slices.Equal(*seen, tt.want) {
			t.Errorf("%s: sent %v, want %v", tt.name, *seen, tt.want)
		}
		if n := g.count(t, "SELECT COUNT(*) FROM squires WHERE name IN ('outer', 'inner')"); n != tt.rows {
			t.Errorf("%s: %d rows, want %d", tt.name, n, tt.rows)
		}
	}
}

// Inside a transaction, with SkipDefaultTransaction, and for a chain that is used again, each write has exactly the transaction that it should have.
func TestDefaultTransaction_Of(t *testing.T) {
	t.Parallel()
	g := newGame(t)
	g.seed(t)
	update := func(db *gorm.DB) error { return db.Model(&Item{}).Where("id = ?", 1).Update("qty", 9).Error }
	one := []string{"begin", "commit"}
	for _, tt := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"alone", func() error { return update(g.player(g.a)) }, one},
		{"in Transaction", func() error {
			return g.player(g.a).Transaction(func(tx *gorm.DB) error { return errors.Join(update(tx), update(tx)) })
		}, one},
		{"between Begin and Commit", func() error {
			tx := g.player(g.a).Begin()
			return errors.Join(tx.Error, update(tx), tx.Commit().Error)
		}, one},
		{"skipped", func() error { return update(g.player(g.a).Session(&gorm.Session{SkipDefaultTransaction: true})) }, nil},
		{"prepared", func() error { return update(g.player(g.a).Session(&gorm.Session{PrepareStmt: true})) }, one},
		{"a chain used twice", func() error {
			chain := g.player(g.a).Model(&Item{}).Where("id = ?", 1)
			return errors.Join(chain.Update("qty", 9).Error, chain.Update("qty", 10).Error)
		}, []string{"begin", "commit", "begin", "commit"}},
		{"a row that is not there", func() error {
			return g.player(g.a).Model(&Item{}).Where("id = ?", 99).Update("qty", 9).Error
		}, one},
	} {
		seen := ends(g)
		if err := tt.do(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !slices.Equal(*seen, tt.want) {
			t.Errorf("%s: sent %v, want %v", tt.name, *seen, tt.want)
		}
	}
	broken := errors.New("the line is cut")
	g.rec.breaks(func(e wire.Event) error {
		if e.Op == "commit" {
			return broken
		}
		return nil
	})
	if err := update(g.player(g.a)); !errors.Is(err, broken) {
		t.Errorf("a COMMIT that failed: %v, want %v", err, broken)
	}
	if err := g.player(g.a).Create(&Item{Model: dal.Model{ID: 50}, PlayerID: "7"}).Error; !errors.Is(err, broken) {
		t.Errorf("a COMMIT that failed: %v, want %v", err, broken)
	}
	g.rec.breaks(nil)
	if n := g.count(t, "SELECT COUNT(*) FROM items WHERE id = 50"); n != 0 {
		t.Errorf("%d rows were committed by a COMMIT that failed", n)
	}
	if inUse, _ := g.Permits("a", "s1"); inUse != 0 {
		t.Errorf("%d permits in use", inUse)
	}
}

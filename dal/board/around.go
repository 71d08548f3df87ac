package board

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// Ranked is an entry and its rank, 1 for the best.
type Ranked struct {
	Rank int64
	Entry
}

// Around returns the player's entry with the n entries before it and the n after it, in the board's order, with their ranks: fewer at either end of the
// board. It costs one statement at the player's group, then one count and two reads of at most n rows for each shard that owns a group, and one at the home shard.
//
// Exact as of the reads, which are not one snapshot: ranks are counted from the player's own, and a player whose entry moves meanwhile is returned at most
// once.
//
// It returns [gorm.ErrRecordNotFound] for a player without an entry, [*TooDeepError] for n above Keep, [*ConfigError] for n below 1, else the errors of
// [Board.Rank].
func (b *Board) Around(ctx context.Context, player string, n int) (around []Ranked, err error) {
	if err := b.checkUse(ctx, player); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, &ConfigError{Board: b.cfg.Name, Problem: fmt.Sprintf("%d entries around a player asked for", n)}
	}
	err = b.current(ctx, func(l *layout) error {
		if err := b.checkDepth(l, n); err != nil {
			return err
		}
		var err error
		around, err = b.around(ctx, l, player, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	return around, nil
}

func (b *Board) around(ctx context.Context, l *layout, player string, n int) ([]Ranked, error) {
	own, _, err := b.own(ctx, l, player)
	if err != nil {
		return nil, fmt.Errorf("board: around a player in %q: %w", b.cfg.Name, err)
	}
	var mu sync.Mutex // guards above, before and after
	var above int64
	var before, after []entry
	err = b.each(ctx, l, "board around", func(at *dal.ShardRead, db *gorm.DB) error {
		var count int64
		var up, down []entry
		if err := better(db.Model(&entry{}), own).Count(&count).Error; err != nil {
			return err
		}
		if err := backward(better(db, own)).Limit(n).Find(&up).Error; err != nil {
			return err
		}
		if err := inOrder(worse(db, own)).Limit(n).Find(&down).Error; err != nil {
			return err
		}
		at.Rows += int64(1 + len(up) + len(down))
		mu.Lock()
		defer mu.Unlock()
		above += count
		before, after = append(before, up...), append(after, down...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(before, compare)
	before = before[max(0, len(before)-n):]
	slices.SortFunc(after, compare)
	after = slices.DeleteFunc(after, func(e entry) bool { // it was read above before it fell
		return slices.ContainsFunc(before, func(o entry) bool { return string(o.Player) == string(e.Player) })
	})
	after = after[:min(n, len(after))]
	first := max(1, above+1-int64(len(before)))
	around := make([]Ranked, 0, len(before)+1+len(after))
	for _, e := range slices.Concat(before, []entry{own}, after) {
		around = append(around, Ranked{Rank: first + int64(len(around)), Entry: e.entry()})
	}
	return around, nil
}

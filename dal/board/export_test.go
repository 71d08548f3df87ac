package board

import (
	"context"
	"errors"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// RefresherOf returns a refresher of anything.
func RefresherOf(every time.Duration, refresh func(context.Context) error) *Refresher {
	return &Refresher{refresh: refresh, check: func(context.Context) error { return nil }, every: every}
}

// Texts returns the texts of the statements that Top, Rank and Around send to each shard, with their values in them.
func (b *Board) Texts(ctx context.Context, player string, n int) (map[string][]string, error) {
	own, _, err := b.own(ctx, b.layout.Load(), player)
	if err != nil {
		return nil, err
	}
	texts := map[string][]string{}
	var mu sync.Mutex
	err = b.each(ctx, b.layout.Load(), "texts", func(_ *dal.ShardRead, db *gorm.DB) error {
		dry := db.Session(&gorm.Session{DryRun: true})
		text := func(tx *gorm.DB) string { return tx.Dialector.Explain(tx.Statement.SQL.String(), tx.Statement.Vars...) }
		var count int64
		mu.Lock()
		defer mu.Unlock()
		texts["top"] = append(texts["top"], text(inOrder(dry).Limit(n).Find(&[]entry{})))
		texts["rank"] = append(texts["rank"], text(better(dry.Model(&entry{}), own).Count(&count)))
		texts["before"] = append(texts["before"], text(backward(better(dry, own)).Limit(n).Find(&[]entry{})))
		texts["after"] = append(texts["after"], text(inOrder(worse(dry, own)).Limit(n).Find(&[]entry{})))
		return nil
	})
	return texts, err
}

// RefreshOnce does what a [Refresher] of the board does at each interval.
func RefreshOnce(ctx context.Context, b *Board) error {
	r, err := NewRefresher(b, time.Hour)
	if err != nil {
		return err
	}
	return r.refresh(ctx)
}

// ErrDied is what [RebuildUntil] returns.
var ErrDied = errors.New("the rebuild died")

// RebuildUntil is a [Board.Rebuild] that dies before step n, counted from 0; its lease has ended then, if it is negative.
func RebuildUntil(ctx context.Context, b *Board, groups, keep, n int, lease time.Duration) error {
	r, err := b.rebuild(ctx, groups, keep, lease)
	if err != nil || r == nil {
		return err
	}
	r.step = func(context.Context) error {
		if n--; n < 0 {
			return ErrDied
		}
		return nil
	}
	return r.run(ctx)
}

// RebuildCancelled is a [Board.Rebuild] that calls cancel before step n.
func RebuildCancelled(ctx context.Context, b *Board, groups, keep, n int, cancel func()) error {
	r, err := b.rebuild(ctx, groups, keep, rebuildLease)
	if err != nil {
		return err
	}
	r.step = func(context.Context) error {
		if n--; n == 0 {
			cancel()
		}
		return nil
	}
	return r.end(ctx)
}

// RebuildStopped is a [Board.Rebuild] whose lease ends at once, and which calls meanwhile before step n.
func RebuildStopped(ctx context.Context, b *Board, groups, keep, n int, meanwhile func()) error {
	r, err := b.rebuild(ctx, groups, keep, -time.Second)
	if err != nil {
		return err
	}
	r.step = func(context.Context) error {
		if n--; n == -1 {
			meanwhile()
		}
		return nil
	}
	return r.run(ctx)
}

// HeldUpdate is an update whose transaction lasts as long as the call of during, which is given the first step of a rebuild for the player's group.
func HeldUpdate(ctx context.Context, b *Board, player string, score int64, during func(closeGroup func(context.Context) error)) error {
	l := b.layout.Load()
	g, err := b.spot(ctx, l.places[l.group(player)])
	if err != nil {
		return err
	}
	return g.lib.Tx(ctx, func(tx *dal.LibraryTx) error {
		if _, err := tx.Exec(ctx, updates[b.cfg.Mode].in(b.store.Dialect()), []byte(player), score, int64(1), string(b.tenant), g.place); err != nil {
			return err
		}
		during(func(ctx context.Context) error {
			_, err := g.lib.Exec(ctx, closeGroup.in(b.store.Dialect()), string(b.tenant), g.place, b.cfg.Name)
			return err
		})
		return nil
	})
}

// EntriesOf returns a query for all entries of a board on a shard, whatever their places.
func EntriesOf(db *gorm.DB, name string) *gorm.DB { return db.Model(&entry{}).Where("board = ?", name) }

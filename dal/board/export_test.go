package board

import (
	"context"
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
	own, err := b.own(ctx, player)
	if err != nil {
		return nil, err
	}
	texts := map[string][]string{}
	var mu sync.Mutex
	err = b.each(ctx, "texts", func(_ *dal.ShardRead, db *gorm.DB) error {
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

package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// Snapshot is a board's materialised best, as [Board.Refresh] stored it.
type Snapshot struct {
	Entries    []Entry       // at most Keep, in order
	ComputedAt time.Time     // when the refresh began to read; to the microsecond, in UTC
	Age        time.Duration // of ComputedAt by the board's clock; not negative
}

// stored is an entry of [global.Entries]. The player's bytes need not be UTF-8.
type stored struct {
	Player []byte `json:"p"`
	Score  int64  `json:"s"`
	At     int64  `json:"t"`
}

// Refresh computes the best Keep entries, by one statement for each shard that owns a group, and stores them with the time of the board's clock as one row
// at the board's home shard: readers see the old board or the new one as a whole, and a refresh that fails leaves the old one. One that began before
// the stored one did changes nothing.
//
// It returns [*TenantError], and the errors of [dal.Store.FanOut] and [dal.Store.On].
func (b *Board) Refresh(ctx context.Context) error {
	began := b.cfg.Now().UnixMicro()
	err := b.checkTenant(ctx)
	if err != nil {
		return err
	}
	var top []Entry
	err = b.current(ctx, func(l *layout) error {
		var err error
		top, err = b.top(ctx, l, l.keep)
		return err
	})
	if err != nil {
		return fmt.Errorf("board: refresh %q: %w", b.cfg.Name, err)
	}
	rows := make([]stored, len(top))
	for i, e := range top {
		rows[i] = stored{Player: []byte(e.Player), Score: e.Score, At: e.At.UnixMicro()}
	}
	text, err := json.Marshal(rows)
	if err == nil {
		err = b.put(ctx, global{Board: b.cfg.Name, ComputedAt: began, Entries: text})
	}
	if err != nil {
		return fmt.Errorf("board: refresh %q: %w", b.cfg.Name, err)
	}
	return nil
}

// put stores a row unless a later one is there. Each statement is a transaction of its own.
func (b *Board) put(ctx context.Context, row global) error {
	on := func() *gorm.DB { return b.store.On(ctx, dal.Key(Keyspace, row.Board)) }
	change := func() (int64, error) {
		res := on().Model(&global{}).Where("board = ? AND computed_at <= ?", row.Board, row.ComputedAt).
			Updates(map[string]any{"computed_at": row.ComputedAt, "entries": row.Entries})
		return res.RowsAffected, res.Error
	}
	changed, err := change()
	if err != nil || changed > 0 {
		return err
	}
	if err = on().Create(&row).Error; dal.IsDuplicateKey(err) { // a later one, or one that another caller made since
		_, err = change()
	}
	return err
}

// Global returns the materialised board and its age, by one statement at the board's home shard, however many shards there are.
//
// It returns [ErrNeverRefreshed], [*TenantError], and the errors of [dal.Store.On].
func (b *Board) Global(ctx context.Context) (Snapshot, error) {
	if err := b.checkTenant(ctx); err != nil {
		return Snapshot{}, err
	}
	var row global
	var rows []stored
	err := b.store.On(ctx, dal.Key(Keyspace, b.cfg.Name)).Where("board = ?", b.cfg.Name).Take(&row).Error
	if err == nil {
		err = json.Unmarshal(row.Entries, &rows)
	}
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = ErrNeverRefreshed
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("board: global %q: %w", b.cfg.Name, err)
	}
	s := Snapshot{Entries: make([]Entry, len(rows)), ComputedAt: time.UnixMicro(row.ComputedAt).UTC()}
	s.Age = max(0, b.cfg.Now().Sub(s.ComputedAt))
	for i, r := range rows {
		s.Entries[i] = Entry{Player: string(r.Player), Score: r.Score, At: time.UnixMicro(r.At).UTC()}
	}
	return s, nil
}

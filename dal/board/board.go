package board

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

const (
	// DefaultGroups is the number of groups when [Config.Groups] is zero.
	DefaultGroups = 128
	// DefaultKeep is what each group keeps when [Config.Keep] is zero.
	DefaultKeep = 100
	// MaxGroups is the largest number of groups.
	MaxGroups = 4096
	// MaxKeep is the largest K.
	MaxKeep = 10000

	maxName, maxPlayer = 64, 255 // bytes
)

// Mode says what an update does to the score that a player has.
type Mode uint8

const (
	// Set puts the new score in its place.
	Set Mode = iota
	// Best keeps the better of the two, and of equal scores the earlier.
	Best
	// Add adds the new score to it, with the time of the update.
	Add
)

// Config describes a board. Groups and Keep are persisted when the board is first opened; [Board.Rebuild] changes them.
type Config struct {
	Name   string           // [A-Za-z0-9_.-], 1 to 64 bytes
	Groups int              // zero means [DefaultGroups]
	Keep   int              // K: reads of up to K entries; zero means [DefaultKeep]
	Mode   Mode             // what updates do
	Now    func() time.Time // the clock of [Board.Update]; nil means time.Now

	// SegmentsAge is how old the counts may be that [Board.RankApprox] answers from. Zero means [DefaultSegmentsAge].
	SegmentsAge time.Duration
}

// Entry is a player's standing.
type Entry struct {
	Player string
	Score  int64
	At     time.Time // to the microsecond, in UTC
}

// Board is one tenant's leaderboard. It is safe for concurrent use.
type Board struct {
	store  *dal.Store
	cfg    Config
	tenant tenant.ID

	layout   atomic.Pointer[layout] // never nil
	segments segmentCache
}

// Open opens the board of the context's tenant, and persists its definition if it is new.
//
// It returns [*ConfigError], [*GroupsChangedError] for a board that was made with other Groups or Keep, and the errors of [dal.Store.On].
func Open(ctx context.Context, store *dal.Store, cfg Config) (*Board, error) {
	cfg.Groups, cfg.Keep = cmp.Or(cfg.Groups, DefaultGroups), cmp.Or(cfg.Keep, DefaultKeep)
	cfg.SegmentsAge = cmp.Or(cfg.SegmentsAge, DefaultSegmentsAge)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, err
	}
	b := &Board{store: store, cfg: cfg, tenant: id, segments: segmentCache{turn: make(chan struct{}, 1)}}
	made, err := b.define(ctx)
	if err != nil {
		return nil, fmt.Errorf("board: open %q: %w", cfg.Name, err)
	}
	if made.GroupCount != cfg.Groups || made.KeepCount != cfg.Keep {
		return nil, &GroupsChangedError{Tenant: id, Board: cfg.Name, Groups: made.GroupCount, Keep: made.KeepCount, AskGroups: cfg.Groups, AskKeep: cfg.Keep}
	}
	b.layout.Store(newLayout(cfg.Name, made.Generation, made.GroupCount, made.KeepCount))
	return b, nil
}

func (c Config) check() error {
	fail := func(problem string) error { return &ConfigError{Board: c.Name, Problem: problem} }
	if c.Name == "" || len(c.Name) > maxName {
		return fail(fmt.Sprintf("its name has %d bytes, want 1 to %d", len(c.Name), maxName))
	}
	for _, r := range c.Name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-') {
			return fail("its name has a character other than letters, digits and _.-")
		}
	}
	switch {
	case c.Groups < 1 || c.Groups > MaxGroups:
		return fail(fmt.Sprintf("%d groups, want 1 to %d", c.Groups, MaxGroups))
	case c.Keep < 1 || c.Keep > MaxKeep:
		return fail(fmt.Sprintf("Keep is %d, want 1 to %d", c.Keep, MaxKeep))
	case c.SegmentsAge < 0:
		return fail(fmt.Sprintf("SegmentsAge is %v, want more than 0", c.SegmentsAge))
	case c.Mode > Add:
		return fail(fmt.Sprintf("unknown mode %d", c.Mode))
	}
	return nil
}

// define returns the persisted definition. Of two that make a board at once the first decides.
func (b *Board) define(ctx context.Context) (definition, error) {
	found, err := b.definition(ctx)
	if !errors.Is(err, gorm.ErrRecordNotFound) {
		return found, err
	}
	made := definition{Board: b.cfg.Name, GroupCount: b.cfg.Groups, KeepCount: b.cfg.Keep}
	if err = b.store.On(ctx, dal.Key(Keyspace, b.cfg.Name)).Create(&made).Error; !dal.IsDuplicateKey(err) {
		return made, err
	}
	return b.definition(ctx)
}

// Update gives player a score at the time of the board's clock. See [Board.UpdateAt].
func (b *Board) Update(ctx context.Context, player string, score int64) error {
	return b.UpdateAt(ctx, player, score, b.cfg.Now())
}

// UpdateAt gives player a score at a time, as the board's mode says, by one statement at the place of the player's group: of updates of one player at
// once, each is applied, one after another. A deadlock is tried again a few times. It is a transaction of its own, and refused with [dal.ErrNested]
// inside [dal.Store.Transaction].
//
// It returns [*ConfigError] for a player id that is empty or longer than 255 bytes, [*OverflowError], [ErrRebuilding], [*TenantError], and the errors of
// [dal.Store.Route]. After a broken connection it is not known whether the update was applied.
func (b *Board) UpdateAt(ctx context.Context, player string, score int64, at time.Time) error {
	if err := b.checkUse(ctx, player); err != nil {
		return err
	}
	if err := b.update(ctx, player, score, at.UnixMicro()); err != nil {
		return fmt.Errorf("board: update %q: %w", b.cfg.Name, err)
	}
	return nil
}

// Top returns the n best entries of the tenant, in order: exact, by one statement for each shard that owns a group and one at the home shard.
//
// It returns [*TooDeepError] for n above Keep, [*ConfigError] for n below 1, [*TenantError], and the errors of [dal.Store.FanOut].
func (b *Board) Top(ctx context.Context, n int) (top []Entry, err error) {
	if err := b.checkTenant(ctx); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, &ConfigError{Board: b.cfg.Name, Problem: fmt.Sprintf("top %d asked for", n)}
	}
	err = b.current(ctx, func(l *layout) error {
		if err := b.checkDepth(l, n); err != nil {
			return err
		}
		var err error
		top, err = b.top(ctx, l, n)
		return err
	})
	return top, err
}

// checkDepth demands that n entries are no more than each group keeps.
func (b *Board) checkDepth(l *layout, n int) error {
	if n > l.keep {
		return &TooDeepError{Board: b.cfg.Name, N: n, Keep: l.keep}
	}
	return nil
}

func (b *Board) top(ctx context.Context, l *layout, n int) ([]Entry, error) {
	var mu sync.Mutex
	var all []entry
	err := b.each(ctx, l, "board top", func(at *dal.ShardRead, db *gorm.DB) error {
		var rows []entry
		err := inOrder(db).Limit(n).Find(&rows).Error
		at.Rows += int64(len(rows))
		mu.Lock()
		defer mu.Unlock()
		all = append(all, rows...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, compare)
	top := make([]Entry, 0, min(n, len(all)))
	for _, e := range all[:min(n, len(all))] {
		top = append(top, e.entry())
	}
	return top, nil
}

// compare is the board's order: below 0 for a better x.
func compare(x, y entry) int {
	return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.At, y.At), bytes.Compare(x.Player, y.Player))
}

// inOrder, backward, better and worse read by the index board_entries_top (tenant_id, board, score DESC, at, player).
func inOrder(db *gorm.DB) *gorm.DB { return db.Order("score DESC, at, player") }

func backward(db *gorm.DB) *gorm.DB { return db.Order("score, at DESC, player DESC") }

// better leaves the entries of other players that are better than e.
func better(db *gorm.DB, e entry) *gorm.DB {
	return db.Where("score >= ? AND (score > ? OR at < ? OR (at = ? AND player < ?)) AND player <> ?", e.Score, e.Score, e.At, e.At, e.Player, e.Player)
}

// worse leaves the entries of other players that are worse than e.
func worse(db *gorm.DB, e entry) *gorm.DB {
	return db.Where("score <= ? AND (score < ? OR at > ? OR (at = ? AND player > ?)) AND player <> ?", e.Score, e.Score, e.At, e.At, e.Player, e.Player)
}

func (e entry) entry() Entry {
	return Entry{Player: string(e.Player), Score: e.Score, At: time.UnixMicro(e.At).UTC()}
}

// Rank returns the player's rank, 1 for the best, and its entry: exact as of the reads, by one statement at the player's group, one count for each
// shard, and one statement at the home shard.
//
// It returns [gorm.ErrRecordNotFound] for a player without an entry, else the errors of [Board.Top].
func (b *Board) Rank(ctx context.Context, player string) (rank int64, of Entry, err error) {
	if err := b.checkUse(ctx, player); err != nil {
		return 0, Entry{}, err
	}
	err = b.current(ctx, func(l *layout) error {
		own, _, err := b.own(ctx, l, player)
		if err != nil {
			return fmt.Errorf("board: rank in %q: %w", b.cfg.Name, err)
		}
		var above atomic.Int64
		err = b.each(ctx, l, "board rank", func(at *dal.ShardRead, db *gorm.DB) error {
			var n int64
			err := better(db.Model(&entry{}), own).Count(&n).Error
			at.Rows++
			above.Add(n)
			return err
		})
		rank, of = above.Load()+1, own.entry()
		return err
	})
	if err != nil {
		return 0, Entry{}, err
	}
	return rank, of, nil
}

// each calls fn for each shard that owns groups, several at a time, with a handle on the entries of those groups,
// which may be used several times.
func (b *Board) each(ctx context.Context, l *layout, op string, fn func(at *dal.ShardRead, db *gorm.DB) error) error {
	_, err := b.store.FanOut(ctx, dal.FanOutSpec{Op: op, Keyspace: Keyspace, Keys: l.places}, func(_ context.Context, at *dal.ShardRead, db *gorm.DB) error {
		places := make([]string, len(at.Keys))
		for i, k := range at.Keys {
			places[i] = string(k)
		}
		return fn(at, db.Where("board = ? AND place IN ?", b.cfg.Name, places).Session(&gorm.Session{}))
	})
	return err
}

func (b *Board) checkUse(ctx context.Context, player string) error {
	if player == "" || len(player) > maxPlayer {
		return &ConfigError{Board: b.cfg.Name, Problem: fmt.Sprintf("a player id of %d bytes, want 1 to %d", len(player), maxPlayer)}
	}
	return b.checkTenant(ctx)
}

func (b *Board) checkTenant(ctx context.Context) error {
	id, err := tenant.FromContext(ctx)
	if err == nil && id != b.tenant {
		err = &TenantError{Board: b.cfg.Name, Opened: b.tenant, Used: id}
	}
	return err
}

package dal

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/tenant"
)

// keptUses is how many uses of a system scope a store remembers.
const keptUses = 32

// SystemUse is one handle of [Store.OnPlace] that was used.
type SystemUse struct {
	At     time.Time // of its first statement or transaction
	Reason string
	Tables []string // that the scope opens
	Place  Place
}

// SystemStats counts how often tenants were crossed on purpose.
type SystemStats struct {
	Uses   uint64      // since the store was opened
	Recent []SystemUse // the last ones, at most 32, oldest first; the log has them all
}

// uses counts the uses of system scopes. Its memory is bounded, whatever the reasons are made of.
type uses struct {
	mu     sync.Mutex // guards all below
	count  uint64
	recent [keptUses]SystemUse // count % keptUses is the next to be written
}

func (u *uses) add(use SystemUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.recent[u.count%keptUses] = use
	u.count++
}

// SystemUses returns how often system scopes were used on this store's handles, and the last uses. The library's own constants are not counted.
func (s *Store) SystemUses() SystemStats {
	s.uses.mu.Lock()
	defer s.uses.mu.Unlock()
	st := SystemStats{Uses: s.uses.count}
	for n := s.uses.count - min(s.uses.count, keptUses); n < s.uses.count; n++ {
		use := s.uses.recent[n%keptUses]
		use.Tables = slices.Clone(use.Tables)
		st.Recent = append(st.Recent, use)
	}
	return st
}

// systemScope is what a handle under a system scope remembers of the context that it was made with.
type systemScope struct {
	used  atomic.Bool
	done  <-chan struct{}
	cause func() error
}

func newSystemScope(ctx context.Context) *systemScope {
	return &systemScope{done: ctx.Done(), cause: func() error { return context.Cause(ctx) }}
}

// ended returns why the scope may not be used any more.
func (s *systemScope) ended() error {
	select {
	case <-s.done:
		return fmt.Errorf("%w: %w", ErrScopeEnded, s.cause())
	default:
		return nil
	}
}

// crosses checks a statement's context against the handle's system scope: it must be under the same one, and that must not have ended.
func (b *binding) crosses(ctx context.Context) error {
	now, err := tenant.BypassFromContext(ctx)
	if err != nil {
		return err
	}
	if now.Reason != b.bypass.Reason || !slices.Equal(now.Tables, b.bypass.Tables) {
		return fmt.Errorf("%w: the context is under another one; ask Store.OnPlace for a handle of that", ErrScopeEnded)
	}
	return b.scope.ended()
}

// audit writes the first use of a system scope's handle down, before anything is sent for it.
func (b *binding) audit(ctx context.Context) {
	if b.bypass == nil || b.scope.used.Swap(true) {
		return
	}
	b.store.uses.add(SystemUse{At: time.Now(), Reason: b.bypass.Reason, Tables: b.bypass.Tables, Place: b.db.place})
	b.store.log.LogAttrs(ctx, slog.LevelInfo, "system scope",
		slog.String(tenant.LogKeyShard, b.db.place.String()), slog.String(tenant.LogKeyReason, b.bypass.Reason), slog.Any("tables", b.bypass.Tables))
}

// OnPlace returns a handle for a system scope in one place: the tables that the scope names are open to it without a tenant's predicate, every other
// is refused. A tenant's context is refused with [tenant.ErrNotSystem]. The handle ends with ctx: it is refused with [ErrScopeEnded] afterwards, whatever
// context a statement brings.
//
// Its first use is logged at info with reason, tables and place, and counted: see [Store.SystemUses].
func (s *Store) OnPlace(ctx context.Context, p Place) *gorm.DB {
	if ctx == nil {
		ctx = context.Background()
	}
	bypass, err := tenant.BypassFromContext(ctx)
	if err != nil {
		return s.refused(ctx, err)
	}
	if heldBy(ctx, s) != nil {
		return s.refused(ctx, fmt.Errorf("%w: a system scope needs a connection of its own", ErrNested))
	}
	db, err := s.place(ctx, p)
	if err != nil {
		return s.refused(ctx, err)
	}
	b := &binding{store: s, db: db, bypass: bypass, scope: newSystemScope(ctx)}
	return handle(ctx, b, &pool{b})
}

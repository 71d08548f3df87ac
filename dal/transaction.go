package dal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/tenant"
)

// held is the transaction that a context carries.
type held struct {
	tx *txPool
}

type heldKey struct{}

// heldBy returns the transaction of s that ctx carries, or nil.
func heldBy(ctx context.Context, s *Store) *held {
	h, _ := ctx.Value(heldKey{}).(*held)
	if h == nil || h.tx.store != s {
		return nil
	}
	return h
}

// join returns a handle of binding b on the held transaction.
func (h *held) join(ctx context.Context, b *binding) *gorm.DB {
	if err := h.serves(b); err != nil {
		return b.store.refused(ctx, err)
	}
	return handle(ctx, b, &txPool{binding: b, transaction: h.tx.transaction})
}

// serves reports whether b lives where the transaction does.
func (h *held) serves(b *binding) error {
	switch {
	case h.tx.tenant.ID != b.tenant.ID:
		return fmt.Errorf("%w: %w", ErrNested, &MismatchError{Handle: h.tx.tenant.ID, Other: b.tenant.ID, What: "the nested call"})
	case h.tx.db.place != b.db.place: // one tenant's own place may have been opened anew
		return &CrossShardError{Held: h.tx.db.place.Shard, Wanted: b.db.place.Shard}
	}
	return nil
}

// Transaction runs fn in a transaction of the place of key, and commits it if fn returns nil; an error or a panic rolls it back. The context given
// to fn carries the transaction: On and Transaction under it join it (Transaction as a savepoint) instead of taking a second connection, and a key
// of another shard is refused with [*CrossShardError]. Code in fn that uses the outer context takes a connection of its own, waits no longer than
// Quota.MaxWait for it, and on SQLite fails so if it writes.
//
// A statement that ended by deadlock, lock wait, deadline or a broken connection poisons the transaction: it cannot be committed, whatever fn
// returns. The transaction of a suspended tenant that may still read is read-only. A COMMIT whose answer was lost is [ErrOutcomeUnknown]. Nothing is retried; see [IsRetryable].
func (s *Store) Transaction(ctx context.Context, key KeyRef, fn func(ctx context.Context, tx *gorm.DB) error) (err error) {
	b, err := s.bind(ctx, key)
	if err != nil {
		return err
	}
	if h := heldBy(ctx, s); h != nil {
		if err := h.serves(b); err != nil {
			return err
		}
		return h.join(ctx, b).Transaction(func(tx *gorm.DB) error { return fn(ctx, tx) })
	}
	var opts *sql.TxOptions
	if b.standing.readOnly != nil {
		opts = &sql.TxOptions{ReadOnly: true}
	}
	tx, err := (&pool{b}).begin(ctx, opts)
	if err != nil {
		return err
	}
	tx.owned = true
	began := time.Now()
	defer func() { s.hot.note(b, 0, time.Since(began)) }()
	done := false
	defer func() {
		if !done { // fn panicked, or the goroutine ends
			_ = tx.tx.Rollback()
		}
	}()
	inner := tenant.WithShard(context.WithValue(ctx, heldKey{}, &held{tx: tx}), b.db.place.String())
	err = fn(inner, handle(inner, b, tx))
	done = true
	if err != nil {
		if rerr := tx.tx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) {
			return errors.Join(err, rerr)
		}
		return err
	}
	return tx.commit(b.db.place.Shard)
}

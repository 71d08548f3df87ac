package dal

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// Written names a declared table, some rows of which a transaction or statement may have changed: Tenant is whose rows, "" for a write under a system scope,
// which may be anybody's.
type Written = wire.Written

// writeWatchers are the functions of WatchWrites. The list is replaced and never changed, so that a write reads it without a lock.
type writeWatchers struct {
	mu   sync.Mutex // for those who replace the list
	list atomic.Pointer[[]*writeWatcher]
}

type writeWatcher struct{ fn func([]Written) }

// WatchWrites calls fn with what each transaction has written, after its COMMIT and before the committer hears of it, and the same of each statement outside
// of a transaction: of handles, raw texts and DB() alike. fn is called as well where the outcome is open or a statement outside of a transaction has failed,
// and may be called twice. It runs on the writer's goroutine while the connection is held: it must not block, use the store, keep the slice, or
// end the goroutine. What it panics with is logged, and the commit stands.
//
// It does not see what other processes write, what the database writes by itself (a cascade, a trigger), migrations, nor the library's own tables.
// stop ends it; a call under way may outlast stop, which may be called twice.
func (s *Store) WatchWrites(fn func([]Written)) (stop func()) {
	w := &writeWatcher{fn}
	s.watchers.change(func(list []*writeWatcher) []*writeWatcher { return append(list, w) })
	return func() {
		s.watchers.change(func(list []*writeWatcher) []*writeWatcher {
			return slices.DeleteFunc(list, func(o *writeWatcher) bool { return o == w })
		})
	}
}

func (w *writeWatchers) change(fn func([]*writeWatcher) []*writeWatcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*writeWatcher
	if old := w.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = fn(list)
	w.list.Store(&list)
}

func (s *Store) written(w []Written) {
	if list := s.watchers.list.Load(); list != nil {
		for _, x := range *list {
			s.tell(x, w)
		}
	}
}

// tell calls one watcher. A panic in it must not pass through database/sql, which would keep the connection of a COMMIT for good, nor hide the write from
// the other watchers.
func (s *Store) tell(x *writeWatcher, w []Written) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Warn("dal: a function of WatchWrites panicked", "panic", p)
		}
	}()
	x.fn(w)
}

// InTransaction reports whether ctx carries an open [Store.Transaction] of this store: what is read under it may not be committed yet.
func (s *Store) InTransaction(ctx context.Context) bool { return heldBy(ctx, s) != nil }

// SchemaVersion returns the versions of a place's schema as a text, as they were when the place was last compared with what schema.Up recorded; "" for a
// place that was not looked at yet. Two texts are equal if the versions are. It does no I/O.
func (s *Store) SchemaVersion(p Place) string {
	if v, ok := s.current.Load(p); ok {
		return v.(string)
	}
	return ""
}

package dal

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// session remembers when its caller last wrote, by place.
type session struct {
	mu    sync.Mutex // guards wrote
	wrote map[sessionPlace]time.Duration
}

type sessionPlace struct {
	store *Store
	place Place
}

type sessionKey struct{}

// pinned is the time of a write whose commit may come at any later moment: no replica is known to have it.
const pinned = time.Duration(math.MaxInt64)

// NewSession returns a context in which reads see the writes before them: after a commit under it, a handle with [Replica] or [Nearest] reads from a
// replica only if that has the commit, and from the primary until then. Contexts made of it belong to the session; it ends with the last of them. It costs
// nothing for handles without such an option, and is safe for concurrent use. A transaction belongs to the session of the context it was begun with.
//
// A write whose end is not seen keeps the session's reads of that place on the primary: a COMMIT whose answer was lost, a connection taken by DB() or
// Connection(), rows returned by a write outside a transaction.
//
// A replica has the commit when it has a heartbeat that this process began to write after the commit's answer came. The primary's binary log holds the
// commit before that heartbeat, since a commit is in the log before it is answered, and the heartbeat was not sent yet; a replica that commits in the log's
// order has therefore applied the one when it shows the other. Both moments are on this process's monotonic clock, so no two clocks are compared.
func NewSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, &session{wrote: map[sessionPlace]time.Duration{}})
}

func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

// note remembers a write that was answered just now, or one that is pinned. It does nothing on nil.
func (s *session) note(store *Store, p Place, at time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sessionPlace{store, p}
	s.wrote[key] = max(s.wrote[key], at)
}

// ended notes a write that was sent and ended with err. One that the server answered with an error has committed nothing of its own; it counts all the same.
func (s *session) ended(store *Store, p Place, err error) {
	if s == nil {
		return
	}
	at := store.clock()
	if err != nil && (wire.Code(err) == 0 || wire.IsConnection(err)) { // it may yet commit
		at = pinned
	}
	s.note(store, p, at)
}

// writes is what a transaction remembers of the session that it belongs to.
type writes struct {
	session *session // nil for none
	store   *Store
	place   Place
}

// ended notes a COMMIT that ended with err.
func (w writes) ended(err error) { w.session.ended(w.store, w.place, err) }

// since returns when the session last wrote in a place; zero for never.
func (s *session) since(store *Store, p Place) time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrote[sessionPlace{store, p}]
}

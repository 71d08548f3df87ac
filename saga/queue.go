package saga

import "github.com/tenantdal/tenantdal/tenant"

// fairQueue holds entries of many tenants and gives them out in turn, one of each tenant that has any, so that a long queue of one delays no other by
// more than a round. Its owner's lock guards it.
type fairQueue[T any] struct {
	lines map[tenant.ID]*line[T]
	turn  []*line[T] // tenants with entries, the next to be served first
	size  int
}

// line is the entries of one tenant, oldest first.
type line[T any] struct {
	tenant  tenant.ID
	entries []T
}

// push adds an entry. When more than limit entries wait, the newest of the longest line is dropped and returned: a tenant that floods the queue loses
// its own. A limit of 0 means none.
func (q *fairQueue[T]) push(id tenant.ID, entry T, limit int) (dropped T, full bool) {
	if q.lines == nil {
		q.lines = map[tenant.ID]*line[T]{}
	}
	l := q.lines[id]
	if l == nil {
		l = &line[T]{tenant: id}
		q.lines[id] = l
		q.turn = append(q.turn, l)
	}
	l.entries = append(l.entries, entry)
	q.size++
	if limit == 0 || q.size <= limit {
		return dropped, false
	}
	longest := l
	for _, other := range q.turn {
		if len(other.entries) > len(longest.entries) {
			longest = other
		}
	}
	last := len(longest.entries) - 1
	dropped = longest.entries[last]
	longest.entries = longest.entries[:last]
	q.size--
	if last == 0 { // only of a limit below the number of tenants
		q.remove(longest)
	}
	return dropped, true
}

// remove takes an empty line out.
func (q *fairQueue[T]) remove(l *line[T]) {
	delete(q.lines, l.tenant)
	for i, other := range q.turn {
		if other == l {
			q.turn = append(q.turn[:i:i], q.turn[i+1:]...)
			return
		}
	}
}

// take removes up to n entries, one of each tenant in turn.
func (q *fairQueue[T]) take(n int) []T {
	out := make([]T, 0, min(n, q.size))
	for len(out) < n && q.size > 0 {
		l := q.turn[0]
		q.turn = q.turn[1:]
		out = append(out, l.entries[0])
		l.entries = l.entries[1:]
		q.size--
		if len(l.entries) == 0 {
			delete(q.lines, l.tenant)
			continue
		}
		q.turn = append(q.turn, l)
	}
	return out
}

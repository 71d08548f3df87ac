package control_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/wire"
)

const minute = time.Minute

// deadlock is what a server says to a transaction that lost to another one.
var deadlock = &mysql.MySQLError{Number: 1213, Message: "Deadlock found"}

// expire ends every lease, as the passing of time would: the database's clock cannot be turned, so the row is.
func expire(t *testing.T, b bench, id int64, untilMS int64) {
	t.Helper()
	b.edit(t, "UPDATE tdal_node_leases SET until_ms = ? WHERE node_id = ?", untilMS, id)
}

func lease(t *testing.T, s *control.Store, owner string) control.NodeLease {
	t.Helper()
	l, err := s.LeaseNode(t.Context(), owner, minute)
	if err != nil {
		t.Fatalf("LeaseNode(%q): %v", owner, err)
	}
	return l
}

func TestLeaseNode_Life(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		first, second := lease(t, s, "p"), lease(t, s, "p")
		if first.ID != 1 || second.ID != 2 || first.Fence != 1 || first.Owner != "p" {
			t.Fatalf("LeaseNode twice: got %+v and %+v, want 1 and 2", first, second)
		}
		renewed, err := s.RenewNode(ctx, first, 10*minute)
		if err != nil || renewed.ID != 1 || renewed.Fence != 1 || renewed.Until.Sub(first.Until) < 8*minute {
			t.Fatalf("RenewNode: got %+v, %v, want an end about nine minutes after %v", renewed, err, first.Until)
		}
		if err := s.ReleaseNode(ctx, first); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "ReleaseNode twice", s.ReleaseNode(ctx, first), control.ErrLeaseLost)
		_, err = s.RenewNode(ctx, first, minute)
		wantIs(t, "RenewNode after ReleaseNode", err, control.ErrLeaseLost)
		// A number that nobody ever had comes before one that somebody had.
		if third := lease(t, s, "q"); third.ID != 3 {
			t.Fatalf("LeaseNode: got %+v, want node 3", third)
		}
		_, err = s.RenewNode(ctx, control.NodeLease{ID: 2, Owner: "q", Fence: 1}, minute)
		wantIs(t, "RenewNode by another owner", err, control.ErrLeaseLost)
		_, err = s.RenewNode(ctx, control.NodeLease{ID: 2, Owner: "p", Fence: 2}, minute)
		wantIs(t, "RenewNode with another fence", err, control.ErrLeaseLost)
	})
}

func TestLeaseNode_AllTaken(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		var rows []string
		for id := 1; id <= control.MaxNode; id++ {
			rows = append(rows, fmt.Sprintf("(%d, 'other', 4, 99999999999999)", id))
		}
		if b.path != "" {
			for i := range rows {
				rows[i] = strings.Replace(rows[i], "'other'", "X'6f74686572'", 1)
			}
		}
		b.edit(t, "INSERT INTO tdal_node_leases (node_id, owner, fence, until_ms) VALUES "+strings.Join(rows, ", "))
		_, err := s.LeaseNode(t.Context(), "p", minute)
		wantIs(t, "LeaseNode with all taken", err, control.ErrNoNode)
		expire(t, b, 700, 2000)
		expire(t, b, 900, 1000)
		expire(t, b, 800, 3000)
		if l := lease(t, s, "p"); l.ID != 900 || l.Fence != 5 {
			t.Fatalf("LeaseNode: got %+v, want node 900, idle for longest, with fence 5", l)
		}
		if l := lease(t, s, "p"); l.ID != 700 {
			t.Fatalf("LeaseNode: got %+v, want node 700", l)
		}
		// The old holder of 900 comes back.
		_, err = s.RenewNode(t.Context(), control.NodeLease{ID: 900, Owner: "other", Fence: 4}, minute)
		wantIs(t, "RenewNode by the old holder", err, control.ErrLeaseLost)
		wantIs(t, "ReleaseNode by the old holder", s.ReleaseNode(t.Context(), control.NodeLease{ID: 900, Owner: "other", Fence: 4}), control.ErrLeaseLost)
		// The holder of 800 comes back late, but before anybody else.
		if l, err := s.RenewNode(t.Context(), control.NodeLease{ID: 800, Owner: "other", Fence: 4}, minute); err != nil || l.Fence != 4 {
			t.Fatalf("RenewNode of an ended lease that nobody took: got %+v, %v", l, err)
		}
	})
}

func TestLeaseNode_Concurrent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		initialised(t, b)
		const processes, each = 6, 5
		var mu sync.Mutex
		seen := map[int64]int{}
		var errs []error
		var wg sync.WaitGroup
		for range processes {
			s := b.store(t)
			wg.Go(func() {
				for range each {
					l, err := s.LeaseNode(t.Context(), "p", minute)
					mu.Lock()
					seen[l.ID]++
					errs = append(errs, err)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if len(seen) != processes*each {
			t.Fatalf("%d leases gave %d numbers: %v", processes*each, len(seen), seen)
		}
	})
}

func TestLeaseNode_BadArguments(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		for _, owner := range []string{"", strings.Repeat("x", control.MaxOwnerLen+1)} {
			if l, err := s.LeaseNode(t.Context(), owner, minute); err == nil {
				t.Errorf("LeaseNode(%q): got %+v, want an error", owner, l)
			}
		}
		for _, ttl := range []time.Duration{0, -minute, time.Microsecond} {
			if l, err := s.LeaseNode(t.Context(), "p", ttl); err == nil {
				t.Errorf("LeaseNode(%v): got %+v, want an error", ttl, l)
			}
			if l, err := s.RenewNode(t.Context(), control.NodeLease{ID: 1}, ttl); err == nil {
				t.Errorf("RenewNode(%v): got %+v, want an error", ttl, l)
			}
		}
		// Any bytes make an owner, and nobody else is that owner.
		odd := lease(t, s, "häuptling \x00'\"; --")
		same := odd
		same.Owner += " "
		_, err := s.RenewNode(t.Context(), same, minute)
		wantIs(t, "RenewNode with a padded owner", err, control.ErrLeaseLost)
		if _, err := s.RenewNode(t.Context(), odd, minute); err != nil {
			t.Fatal(err)
		}
	})
}

// No statement carries a time of this process: whatever its clock says, only the database's counts.
func TestLeases_Q34_DatabaseClock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		initialised(t, b)
		seen := &recorder{}
		s := control.New(b.pool(t, seen), b.dialect)
		l := lease(t, s, "p")
		l, err := s.RenewNode(t.Context(), l, minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ReleaseNode(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		expire(t, b, 1, 1)
		lease(t, s, "p")
		checked := 0
		for _, e := range seen.all() {
			for _, a := range e.Args {
				checked++
				if _, isTime := a.Value.(time.Time); isTime {
					t.Errorf("%q was sent a time of this process", e.Text)
				}
				if n, ok := a.Value.(int64); ok && n > 10*minute.Milliseconds() {
					t.Errorf("%q was sent %d, which looks like a time of this process", e.Text, n)
				}
			}
		}
		if checked < 6 {
			t.Fatalf("checked %d arguments, want more", checked)
		}
	})
}

// A transaction that loses to another one is run again; after a few losses the error comes out.
func TestStore_RunsALoserAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		initialised(t, b)
		lost := 0
		s := control.New(b.pool(t, &recorder{before: func(e wire.Event) error {
			// The last statement before COMMIT: what was written must not stay.
			if e.Op == "query" && strings.HasPrefix(e.Text, "SELECT owner, fence") && lost < 3 {
				lost++
				return deadlock
			}
			return nil
		}}), b.dialect)
		if l := lease(t, s, "p"); l.ID != 1 || l.Fence != 1 || lost != 3 {
			t.Fatalf("LeaseNode after %d lost transactions: got %+v, want node 1 with fence 1", lost, l)
		}
		s = control.New(b.pool(t, &recorder{before: func(e wire.Event) error {
			if e.Op == "exec" {
				lost++
				return deadlock
			}
			return nil
		}}), b.dialect)
		lost = 0
		_, err := s.LeaseNode(t.Context(), "p", minute)
		if !wire.IsDeadlock(err) || lost < 2 || lost > 20 {
			t.Fatalf("LeaseNode that always loses: got %v after %d attempts", err, lost)
		}
	})
}

package control

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/tenantdal/tenantdal/internal/wire"
)

// MaxNode is the largest node number; the smallest is 1. Ten bits of a row id hold it.
const MaxNode = 1023

// MaxOwnerLen is the largest length of a lease's owner in bytes.
const MaxOwnerLen = 255

// NodeLease is a node number that one process may put into row ids until the lease ends.
type NodeLease struct {
	ID    int64  // 1 to [MaxNode]
	Owner string // as given to [Store.LeaseNode]
	Fence int64  // grows each time the number is leased anew
	// Until is when the lease ends by the database's clock. A process compares it with nothing of its own: it counts the ttl from the moment
	// before it asked.
	Until time.Time
}

// LeaseNode leases a free node number for ttl: one that was never leased, else the one whose lease ended longest ago. owner says who holds it, for
// people who read the table; two processes with one owner get two numbers.
//
// ttl is counted in milliseconds by the database's clock, from the moment of the call. LeaseNode returns [ErrNoNode] when all numbers are leased,
// [ErrNotMigrated], and an error for an owner that is empty or longer than [MaxOwnerLen] and for a ttl below a millisecond.
func (s *Store) LeaseNode(ctx context.Context, owner string, ttl time.Duration) (NodeLease, error) {
	if owner == "" || len(owner) > MaxOwnerLen {
		return NodeLease{}, fmt.Errorf("control: a lease's owner has %d bytes: want 1 to %d", len(owner), MaxOwnerLen)
	}
	if ttl < time.Millisecond {
		return NodeLease{}, fmt.Errorf("control: a lease of %v: want a millisecond at least", ttl)
	}
	var lease NodeLease
	err := s.tx(ctx, "lease a node number", func(tx *sql.Tx) error {
		// The lock makes lessees come one after the other: a thousand processes that start at once would else all want the same number.
		epoch, _, err := s.lockTopology(ctx, tx)
		if err != nil {
			return err
		}
		if epoch == 0 {
			return fmt.Errorf("there is no topology: %w", ErrNotMigrated)
		}
		id, fence, err := s.freeNode(ctx, tx)
		if err != nil {
			return err
		}
		if fence == 0 {
			err = execOne(ctx, tx, s.dialect.leaseInsert, id, []byte(owner), ttl.Milliseconds())
		} else {
			err = execOne(ctx, tx, s.dialect.leaseTake, []byte(owner), ttl.Milliseconds(), id, fence)
		}
		if err != nil {
			return err
		}
		lease, err = readLease(ctx, tx, id)
		return err
	})
	if err != nil {
		return NodeLease{}, err
	}
	return lease, nil
}

// freeNode returns a free number, with the fence of its last lease or 0 when it was never leased.
func (s *Store) freeNode(ctx context.Context, tx *sql.Tx) (id, fence int64, err error) {
	next := int64(1) // the lowest number without a row so far
	var oldest, oldestFence, oldestUntil int64
	err = query(ctx, tx, s.dialect.leases, nil, func(rows *sql.Rows) error {
		var id, fence, until int64
		var free bool
		if err := rows.Scan(&id, &fence, &until, &free); err != nil {
			return err
		}
		if id == next {
			next++
		}
		if free && (oldest == 0 || until < oldestUntil) {
			oldest, oldestFence, oldestUntil = id, fence, until
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, 0, err
	case next <= MaxNode:
		return next, 0, nil
	case oldest != 0:
		return oldest, oldestFence, nil
	}
	return 0, 0, ErrNoNode
}

// RenewNode makes the lease last for ttl from now, by the database's clock, and returns it with the new end. A lease that has ended can be renewed
// while nobody else has leased the number.
//
// It returns [ErrLeaseLost] when the number is another's or was released, [ErrNotMigrated], and an error for a ttl below a millisecond.
func (s *Store) RenewNode(ctx context.Context, lease NodeLease, ttl time.Duration) (NodeLease, error) {
	if ttl < time.Millisecond {
		return NodeLease{}, fmt.Errorf("control: a lease of %v: want a millisecond at least", ttl)
	}
	var renewed NodeLease
	err := s.tx(ctx, fmt.Sprintf("renew node %d", lease.ID), func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, s.dialect.leaseRenew, ttl.Milliseconds(), lease.ID, []byte(lease.Owner), lease.Fence)
		if err != nil {
			return err
		}
		if n != 1 {
			return ErrLeaseLost
		}
		renewed, err = readLease(ctx, tx, lease.ID)
		return err
	})
	if err != nil {
		return NodeLease{}, err
	}
	return renewed, nil
}

// ReleaseNode ends the lease now, so that another process can have the number.
//
// It returns [ErrLeaseLost] when the number is another's or was released before, and [ErrNotMigrated].
func (s *Store) ReleaseNode(ctx context.Context, lease NodeLease) error {
	return s.tx(ctx, fmt.Sprintf("release node %d", lease.ID), func(tx *sql.Tx) error {
		n, err := exec(ctx, tx, s.dialect.leaseFree, lease.ID, []byte(lease.Owner), lease.Fence)
		if err == nil && n != 1 {
			return ErrLeaseLost
		}
		return err
	})
}

func readLease(ctx context.Context, tx *sql.Tx, id int64) (NodeLease, error) {
	lease := NodeLease{ID: id}
	found := false
	err := query(ctx, tx, stLease, []any{id}, func(rows *sql.Rows) error {
		var owner []byte
		var until int64
		found = true
		err := rows.Scan(&owner, &lease.Fence, &until)
		lease.Owner, lease.Until = string(owner), time.UnixMilli(until).UTC()
		return err
	})
	if err == nil && !found {
		err = ErrLeaseLost
	}
	return lease, err
}

// number reads one number, if there is a row.
func number(ctx context.Context, tx *sql.Tx, st *wire.Statement, args ...any) (n int64, found bool, err error) {
	err = query(ctx, tx, st, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&n)
	})
	return n, found, err
}

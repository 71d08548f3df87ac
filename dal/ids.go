package dal

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/dal/control"
)

const (
	// leaseTTL is how long a node number stays leased; it is renewed inline once half of it has passed.
	leaseTTL = 10 * time.Minute
)

var uuidType = reflect.TypeFor[uuid.UUID]()

// ids makes row ids. It is safe for concurrent use.
type ids struct {
	node    *snowflake.Node
	control *control.Store // nil: the number is the caller's to keep unique
	turn    chan struct{}  // holds one token: whoever has it renews

	mu    sync.Mutex // guards the fields below; never held over I/O
	lease control.NodeLease
	until time.Time // the lease ends, by this process's clocks
	retry time.Time // no renewal is tried before
}

// fixedIDs makes ids under a node number that the caller keeps unique.
func fixedIDs(node int64) (*ids, error) {
	n, err := snowflake.NewNode(node)
	if err != nil {
		return nil, fmt.Errorf("dal: node id %d: %w", node, err)
	}
	return &ids{node: n, turn: make(chan struct{}, 1)}, nil
}

// leasedIDs leases a node number in the control database.
func leasedIDs(ctx context.Context, c *control.Store, owner string) (*ids, error) {
	asked := time.Now()
	lease, err := c.LeaseNode(ctx, owner, leaseTTL)
	if err != nil {
		return nil, fmt.Errorf("dal: lease a node id: %w", err)
	}
	out, err := fixedIDs(lease.ID)
	if err != nil {
		return nil, err
	}
	out.control, out.lease, out.until = c, lease, asked.Add(leaseTTL)
	return out, nil
}

// next returns a new id. It fails rather than use a number that may be another's by now.
func (g *ids) next(ctx context.Context) (int64, error) {
	if err := g.keep(ctx); err != nil {
		return 0, err
	}
	return g.node.Generate().Int64(), nil
}

const (
	renewLimit = time.Second     // how long one renewal may take
	renewPause = 5 * time.Second // after one that failed
)

// keep renews the lease inline once half of it has passed: one caller does, the others go on while it is valid, and wait, as long as their context
// lasts, only when it is nearly over.
func (g *ids) keep(ctx context.Context) error {
	if g.control == nil {
		return nil
	}
	left, _ := g.left()
	if left > leaseTTL/2 {
		return nil
	}
	valid := left > leaseTTL/10
	if valid {
		select {
		case g.turn <- struct{}{}:
		default:
			return nil
		}
	} else {
		select {
		case g.turn <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("dal: row ids: wait for the node's lease: %w", context.Cause(ctx))
		}
	}
	defer func() { <-g.turn }()
	if left, wait := g.left(); left > leaseTTL/2 || valid && wait {
		return nil
	}
	err := g.renew(ctx)
	if err != nil && !valid {
		return fmt.Errorf("dal: row ids: the node's lease could not be renewed: %w", err)
	}
	return nil
}

// left returns how long the lease is still valid, by the monotonic clock and by the wall's (which goes on while a machine sleeps), and whether a
// renewal that failed is too recent to try again.
func (g *ids) left() (left time.Duration, wait bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	return min(g.until.Sub(now), g.until.Round(0).Sub(now.Round(0))), now.Before(g.retry)
}

func (g *ids) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	asked := time.Now()
	g.mu.Lock()
	old := g.lease
	g.mu.Unlock()
	lease, err := g.control.RenewNode(ctx, old, leaseTTL)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.retry = asked.Add(renewPause)
		return err
	}
	g.lease, g.until = lease, asked.Add(leaseTTL)
	return nil
}

func (g *ids) close(ctx context.Context) error {
	if g == nil || g.control == nil {
		return nil
	}
	g.mu.Lock()
	lease := g.lease
	g.mu.Unlock()
	return g.control.ReleaseNode(ctx, lease)
}

// fill sets a zero primary key of the row: an int64 named ID, or a UUID. Other keys are the caller's.
func (g *ids) fill(ctx context.Context, s *schema.Schema, row reflect.Value) error {
	f := s.PrioritizedPrimaryField
	if f == nil || f.DBName == TenantColumn {
		return nil
	}
	if _, zero := f.ValueOf(ctx, row); !zero {
		return nil
	}
	switch {
	case f.FieldType == uuidType:
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("dal: new uuid: %w", err)
		}
		return f.Set(ctx, row, id)
	case wideInteger(f.FieldType.Kind()):
		id, err := g.next(ctx)
		if err != nil {
			return err
		}
		return f.Set(ctx, row, id)
	}
	return nil
}

// wideInteger reports a kind that holds every row id.
func wideInteger(k reflect.Kind) bool {
	switch k {
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		return strconv.IntSize == 64 || k == reflect.Int64 || k == reflect.Uint64
	}
	return false
}

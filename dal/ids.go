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
	node *snowflake.Node

	mu      sync.Mutex // guards the lease; held while it is renewed, so that one call renews it
	control *control.Store
	lease   control.NodeLease
	until   time.Time // on this process's monotonic clock
}

// fixedIDs makes ids under a node number that the caller keeps unique.
func fixedIDs(node int64) (*ids, error) {
	n, err := snowflake.NewNode(node)
	if err != nil {
		return nil, fmt.Errorf("dal: node id %d: %w", node, err)
	}
	return &ids{node: n}, nil
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

// next returns a new id. It renews the lease inline when half of it has passed, and fails rather than use a number that may be another's.
func (g *ids) next(ctx context.Context) (int64, error) {
	if g.control != nil {
		if err := g.keep(ctx); err != nil {
			return 0, err
		}
	}
	return g.node.Generate().Int64(), nil
}

func (g *ids) keep(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.until.Sub(now) > leaseTTL/2 {
		return nil
	}
	lease, err := g.control.RenewNode(ctx, g.lease, leaseTTL)
	switch {
	case err == nil:
		g.lease, g.until = lease, now.Add(leaseTTL)
	case g.until.Sub(now) < leaseTTL/10:
		return fmt.Errorf("dal: row ids: the lease of node %d could not be renewed: %w", g.lease.ID, err)
	}
	return nil
}

func (g *ids) close(ctx context.Context) error {
	if g == nil || g.control == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.control.ReleaseNode(ctx, g.lease)
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

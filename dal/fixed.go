package dal

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// Fixed stands in for the control database: the topology is given, and each place is opened over a connector of the caller's. testutil's mock store
// is made of it.
type Fixed struct {
	Topology *shardrouter.Topology
	Dialect  Dialect
	// Connect returns the connector of a place. It is called once a place, at its first use.
	Connect func(Place) (driver.Connector, error)
}

// OpenFixed returns a store without a control database, start-up check, node lease or version query: nothing is sent before the first statement of a
// caller. cfg.Cluster is not used; cfg.Registry is needed; a zero cfg.NodeID means 1. Every other rule of the store holds.
func OpenFixed(cfg Config, f Fixed) (*Store, error) {
	if cfg.Registry == nil || f.Topology == nil || f.Connect == nil {
		return nil, errors.New("dal: OpenFixed needs Config.Registry, Fixed.Topology and Fixed.Connect")
	}
	cfg.Cluster.Dialect = f.Dialect
	s, err := newStore(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.NodeID == 0 {
		cfg.NodeID = 1
	}
	if s.ids, err = fixedIDs(cfg.NodeID); err != nil {
		return nil, err
	}
	s.topology.Store(f.Topology)
	s.open = func(_ context.Context, p Place, _ tenant.ID) (*database, error) {
		c, err := f.Connect(p)
		if err != nil {
			return nil, err
		}
		return s.openOver(p, f.Dialect, c)
	}
	return s, nil
}

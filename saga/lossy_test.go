package saga_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// lossy is a network that loses connections during COMMIT: before it arrives, or with its answer.
type lossy struct {
	inner driver.Connector
	ask   func() (lose, after bool) // asked at each COMMIT
	gate  *atomic.Bool              // while true nothing can be opened or sent
}

var errDown = errors.New("the network is down")

func (l *lossy) Connect(ctx context.Context) (driver.Conn, error) {
	if l.gate.Load() {
		return nil, errDown
	}
	c, err := l.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Conn: c, of: l}, nil
}

func (l *lossy) Driver() driver.Driver { return l.inner.Driver() }

// lossyConn forwards what the real drivers offer.
type lossyConn struct {
	driver.Conn
	of *lossy
}

func (c *lossyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return &lossyTx{tx, c.of}, nil
}

func (c *lossyConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c *lossyConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	if c.of.gate.Load() {
		return nil, driver.ErrBadConn
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c *lossyConn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *lossyConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

type lossyTx struct {
	driver.Tx
	of *lossy
}

func (t *lossyTx) Commit() error {
	lose, after := t.of.ask()
	switch {
	case lose && after:
		if err := t.Tx.Commit(); err != nil {
			return err
		}
		return driver.ErrBadConn
	case lose:
		_ = t.Tx.Rollback() // the server does, for the connection is gone
		return driver.ErrBadConn
	}
	return t.Tx.Commit()
}

// overLossy opens a store over the world's databases through a lossy network.
func (w *world) overLossy(ask func() (lose, after bool)) (*dal.Store, *atomic.Bool) {
	w.Helper()
	gate := &atomic.Bool{}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{
		Epoch: 1, Hash: shardrouter.HashName, Shards: w.cfg.Cluster.ShardIDs(), Keyspaces: w.cfg.Keyspaces(),
		Dedicated: map[string][]shardrouter.ShardID{string(omega): {shardrouter.ShardID(tenant.ShardName(omega, 1))}},
	})
	w.must(err)
	store, err := dal.OpenFixed(w.cfg, dal.Fixed{Topology: top, Dialect: w.cfg.Cluster.Dialect, Connect: func(p dal.Place) (driver.Connector, error) {
		e, err := w.cfg.Cluster.Endpoint(p, omega)
		if err != nil {
			return nil, err
		}
		if e.Dialect == dal.SQLite {
			dsn, err := wire.SQLite{Path: e.Path}.DSN()
			if err != nil {
				return nil, err
			}
			inner, err := sqlite.NewConnector(dsn)
			return &lossy{inner, ask, gate}, err
		}
		if e.Dialect == dal.Postgres { // as the role to which every tenant is open: this store has one pool for tenants and systems
			inner, err := wire.Postgres{Network: e.Network, Address: e.Address, User: e.SystemUser, Password: e.SystemPassword, Database: e.Database}.Connector()
			return &lossy{inner, ask, gate}, err
		}
		cfg := e.MySQLConfig()
		cfg.ClientFoundRows, cfg.InterpolateParams = true, true
		inner, err := mysql.NewConnector(cfg)
		return &lossy{inner, ask, gate}, err
	}})
	w.must(err)
	w.Cleanup(func() { _ = store.Close(context.Background()) })
	return store, gate
}

// The connection breaks during the COMMIT of T1. Whichever way it went, one donation is there afterwards, and the caller is told so.
func TestDonate_Q21_UnknownCommitOutcome(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(w *world) {
		for name, after := range map[string]bool{"lost before it arrived": false, "lost with its answer": true} {
			var left atomic.Int64
			store, _ := w.overLossy(func() (bool, bool) { return left.Add(-1) >= 0, after })
			d := w.donationsOver(store, quiet())
			don := w.fresh(d, acme, 10, 4)
			left.Store(1)
			rec, err := d.Donate(w.as(acme), don)
			if err != nil || rec.State != saga.Pending || rec.Replayed {
				t.Errorf("%s: Donate = %+v, %v, want a pending donation", name, rec, err)
			}
			w.wantBalances(acme, don, 6, 0)
			// Mints resolve the same way, by their ledger rows.
			left.Store(1)
			if err := d.Grant(w.as(acme), "more", don.Player, don.Item, 1); err != nil {
				t.Errorf("%s: Grant: %v", name, err)
			}
			w.wantBalances(acme, don, 7, 0)
			// So do decision, settlement and refund: the relay looks again.
			for range 3 {
				left.Store(1)
				if _, err := d.Drain(w.sys); err != nil {
					w.Logf("%s: Drain: %v", name, err)
				}
			}
			left.Store(0)
			_, err = d.Drain(w.sys)
			w.must(err)
			w.wantState(d, acme, don, saga.Settled, "")
			w.wantBalances(acme, don, 7, 4)
			w.wantConserved(d)
		}
	})
}

// Where the journal cannot be read either, the caller is told that nobody knows, and the same call later finds out.
func TestDonate_Q21_UnknownAndUnreachable(t *testing.T) {
	t.Parallel()
	w := onSQLite(t, 2)
	for name, after := range map[string]bool{"lost before it arrived": false, "lost with its answer": true} {
		var left atomic.Int64
		var gate *atomic.Bool
		var down sync.Once
		store, gate := w.overLossy(func() (bool, bool) {
			lose := left.Add(-1) >= 0
			if lose {
				down.Do(func() { gate.Store(true) })
			}
			return lose, after
		})
		d := w.donationsOver(store, quiet())
		don := w.fresh(d, acme, 10, 4)
		left.Store(1)
		var unknown *saga.UnknownOutcomeError
		_, err := d.Donate(w.as(acme), don)
		if !errors.As(err, &unknown) || !errors.Is(err, saga.ErrUnknownOutcome) || unknown.SagaID != sagaID(acme, don) || !errors.Is(err, errDown) {
			t.Errorf("%s: Donate = %v, want an UnknownOutcomeError for the network", name, err)
		}
		gate.Store(false)
		rec, err := d.Donate(w.as(acme), don)
		if err != nil || rec.Replayed != after {
			t.Errorf("%s: Donate again = %+v, %v, want Replayed %v", name, rec, err, after)
		}
		w.wantBalances(acme, don, 6, 0)
	}
}

// The caller gives up before COMMIT: nothing happened. The caller gives up after COMMIT: the donation stands and the relay has it.
func TestDonate_Q22_ContextEnds(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(w *world) {
		for _, c := range []struct {
			name  string
			hook  func(cancel func())
			stays bool
		}{
			{"before the first statement", nil, false},
			{"before COMMIT", func(cancel func()) {
				w.watch.onAfter(func(_ context.Context, e wire.Event, _ error) {
					if e.InTx && e.Op == "exec" && e.Text[:6] == "INSERT" {
						cancel()
					}
				})
			}, false},
			{"after COMMIT", func(cancel func()) {
				w.watch.onAfter(func(_ context.Context, e wire.Event, _ error) {
					if e.Op == "commit" {
						cancel()
					}
				})
			}, true},
		} {
			d := w.donations(quiet())
			don := w.fresh(d, acme, 10, 4)
			w.must(d.Start(w.Context()))
			ctx, cancel := context.WithCancel(w.as(acme))
			if c.hook == nil {
				cancel()
			} else {
				c.hook(cancel)
			}
			rec, err := d.Donate(ctx, don)
			w.watch.off()
			w.must(d.Close(w.Context()))
			if c.stays {
				if err != nil || rec.State != saga.Pending {
					t.Errorf("%s: %+v, %v, want a donation", c.name, rec, err)
				}
				w.wantState(d, acme, don, saga.Settled, "")
				w.wantBalances(acme, don, 6, 4)
				continue
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", c.name, err)
			}
			if _, err := d.State(w.as(acme), don.Player, don.Key); !errors.Is(err, saga.ErrNoDonation) {
				t.Errorf("%s: State: %v, want ErrNoDonation", c.name, err)
			}
			w.wantBalances(acme, don, 10, 0)
			cancel()
		}
		w.wantConserved(w.donations(quiet()))
	})
}

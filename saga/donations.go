package saga

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// Donations moves items from players' bags to guilds' warehouses, across shards, so that each donation ends exactly once. Make it with
// [NewDonations]. It is safe for concurrent use, and any number of them, in any number of processes, may work on the same databases.
type Donations struct {
	store   *dal.Store
	cfg     Config
	dialect dal.Dialect
	log     *slog.Logger
	relay   *relay
}

// NewDonations returns donations over the store's places, which hold the tables of [Tables]. It starts nothing and does no I/O.
func NewDonations(store *dal.Store, cfg Config) (*Donations, error) {
	if store == nil {
		return nil, errors.New("saga: NewDonations needs a store")
	}
	cfg = cfg.WithDefaults()
	if cfg.Workers == 0 {
		cfg.Workers = 2
		if store.Dialect() == dal.SQLite {
			cfg.Workers = 1
		}
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Donations{store: store, cfg: cfg, dialect: store.Dialect(), log: store.Logger()}
	d.relay = newRelay(d)
	return d, nil
}

// Start lets the relay carry donations on: those handed over by [Donations.Donate], and those that polls find. It lists the places once, so a control
// database that is away is an error; a place that is away is not. ctx bounds the start alone.
//
// It returns [ErrStarted] the second time and [ErrClosed] after Close.
func (d *Donations) Start(ctx context.Context) error { return d.relay.start(ctx) }

// Close stops polling, refuses new donations, and lets those that were handed over come to their end until ctx ends; what is left then is cancelled
// with the cause [ErrClosed] and stays pending for the next start. It waits for every goroutine. It is safe to call twice, from several
// goroutines, and without Start. The store stays open.
func (d *Donations) Close(ctx context.Context) error { return d.relay.close(ctx) }

// Cancel is Close without the draining: work under way is cancelled at once, and waited for.
func (d *Donations) Cancel() {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrClosed)
	_ = d.relay.close(ctx)
}

// st returns a constant in the store's dialect.
func (d *Donations) st(s statement) *wire.Statement { return s.in(d.dialect) }

// text returns a text as the argument that compares byte by byte: text for SQLite's TEXT, bytes for VARBINARY and BYTEA.
func (d *Donations) text(s string) any {
	if d.dialect == dal.SQLite {
		return s
	}
	return []byte(s)
}

// system returns ctx under a system scope over this package's tables.
func system(ctx context.Context, reason string) context.Context {
	return tenant.System(ctx, reason, TableNames()...)
}

// requireSystem checks that the caller's scope opens every table that the call may touch.
func requireSystem(ctx context.Context, op string) error {
	b, err := tenant.BypassFromContext(ctx)
	if err != nil {
		return err
	}
	for _, name := range TableNames() {
		if !b.Opens(name) {
			return &ScopeError{Op: op, Table: name}
		}
	}
	return nil
}

// step bounds one step of the relay.
func (d *Donations) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d.cfg.StepTimeout, errStepTimeout)
}

// errStepTimeout is the cause of a step that took longer than Config.StepTimeout.
var errStepTimeout = errors.New("saga: the step took longer than Config.StepTimeout")

// micros returns a span as an argument of a statement.
func micros(d time.Duration) int64 { return d.Microseconds() }

package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// Migrator runs [Up], [Provision], [Status] and [Resolve] with settings other than the defaults. The zero Migrator is what those functions use. It holds
// no state and is safe for concurrent use.
type Migrator struct {
	// Parallelism is the largest number of places that are worked on at a time. Each takes up to three connections.
	//
	// Zero means 4.
	Parallelism int

	// LockWait is how long a run waits for another one to finish: with SQLite the whole run, with MySQL and MariaDB each place. A statement
	// waits as long for transactions that use its table.
	//
	// Zero means one minute.
	LockWait time.Duration

	// Progress is called each time a place has ended, well or not, one call at a time, in the order in which they end. Nil: not at all.
	Progress func(PlaceReport)

	observer wire.Observer
}

// WithDefaults returns a copy with every zero field filled.
func (m Migrator) WithDefaults() Migrator {
	if m.Parallelism == 0 {
		m.Parallelism = 4
	}
	if m.LockWait == 0 {
		m.LockWait = time.Minute
	}
	return m
}

// Validate reports every mistake at once, each with its field's name.
func (m Migrator) Validate() error {
	var errs []error
	if m.Parallelism < 0 {
		errs = append(errs, fmt.Errorf("schema: Migrator.Parallelism is %d: want at least 1, or 0 for the default", m.Parallelism))
	}
	if m.LockWait < 0 {
		errs = append(errs, fmt.Errorf("schema: Migrator.LockWait is %v: want a positive time, or 0 for the default", m.LockWait))
	}
	return errors.Join(errs...)
}

// Up brings the whole deployment to the last file of every set. It makes the control database, the topology (with epoch 1; one that is there wins, and a
// list that lacks one of its shards is refused), writes the registry's tenants down, and makes and changes the database of every place, several at a time. With
// MySQL and MariaDB a tenant with a database of its own gets it together with a login that may read and write rows there and nothing else.
//
// A list with more shards than the topology has makes the new shards' places, those of tenants with a schema of their own too, and then adds the shards in the
// state joining: they own nothing until [github.com/tenantdal/tenantdal/dal.Store.Change] makes them active. Stores that were opened with the shorter list go
// on. A tenant that is provisioned by the shorter list while Up runs gets its places on the new shards by the next run.
//
// Every tenant counts, whatever its status; so do those that the control database knows and the registry no longer has, since their databases are still
// there. With a nil cfg.Registry only the control database's are known. Whatever is done already is not done again, so Up can run at every start, and a run
// that failed is taken up by the next one. Several runs at the same time come one after the other.
//
// The version that each set should have is written down before the places are worked on: from then on a store refuses a place that is behind, until its
// turn has come.
//
// Errors. Nothing is touched after an invalid cfg, [ErrLint], or [ErrRegistry] for a registry that is no [tenant.Lister]. The others come as one
// [*UpError], and the report is not nil then:
//
//   - Before any place is begun: [*github.com/tenantdal/tenantdal/dal/control.TopologyMismatchError],
//     [*github.com/tenantdal/tenantdal/dal/control.PlacementChangeError], [*PlaceConflictError]; and [*ChecksumError], [*OutOfOrderError] and
//     [*IdentityError], found by reading every place that can be reached.
//   - For the control database or single places: [*wire.ConnectError] for a database that cannot be reached, [*GrantError], [*LoginError], [*LockedError],
//     [ErrLockLost], [*DirtyError], the server's own error about a statement, and that of ctx.
func Up(ctx context.Context, cfg dal.Config, sets ...Set) (*Report, error) {
	return Migrator{}.Up(ctx, cfg, sets...)
}

// Provision makes the places of one tenant that was added after [Up] ran: it writes the tenant down and, for a tenant with a schema or a database of its
// own, makes and fills its databases. A tenant in the shared tables needs no place of its own, and the shared places are left as they are. The tenant comes
// from cfg.Registry. It may be repeated, and takes up what an earlier one left undone.
//
// The errors are those of [Up]; beside them [ErrRegistry] for a nil registry, the registry's own error, [tenant.ErrUnknownTenant] among them, and
// [ErrNotMigrated] when Up never ran. Provision does not change the versions that sets should have: a set that is left out here, or an older one, leaves a
// place that a store refuses.
func Provision(ctx context.Context, cfg dal.Config, id tenant.ID, sets ...Set) (*Report, error) {
	return Migrator{}.Provision(ctx, cfg, id, sets...)
}

// Status says for the control database and every place what each set has, lacks and is refused for. It takes no lock, runs no DDL and makes no file.
//
// The control database comes first, then the places, sorted; for each one entry per set. A place that cannot be read has its error in its entries; the
// error of Status itself is about cfg, the sets or the registry, as with [Up], or about a control database that cannot be read.
func Status(ctx context.Context, cfg dal.Config, sets ...Set) ([]PlaceStatus, error) {
	return Migrator{}.Status(ctx, cfg, sets...)
}

// Up is the function [Up] with this migrator's settings.
func (m Migrator) Up(ctx context.Context, cfg dal.Config, sets ...Set) (*Report, error) {
	r, err := m.newRun("up", cfg, sets)
	if err != nil {
		return nil, err
	}
	tenants, err := r.registered(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.result(r.up(ctx, tenants))
}

// Provision is the function [Provision] with this migrator's settings.
func (m Migrator) Provision(ctx context.Context, cfg dal.Config, id tenant.ID, sets ...Set) (*Report, error) {
	r, err := m.newRun("provision", cfg, sets)
	if err != nil {
		return nil, err
	}
	t, err := r.tenant(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.result(r.provision(ctx, t))
}

// run is one call. Its fields are set by the goroutine of the call before others start.
type run struct {
	Migrator
	op      string
	cfg     dal.Config
	dialect dal.Dialect
	sets    []loadedSet
	control *controlDB // nil until it is open
	folder  *lock      // SQLite: the lock of the folder
	report  Report
}

// newRun validates everything that can be judged without a database.
func (m Migrator) newRun(op string, cfg dal.Config, sets []Set) (*run, error) {
	if err := errors.Join(m.Validate(), cfg.Validate()); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	loaded, err := load(sets, cfg.Cluster.Dialect)
	if err != nil {
		return nil, err
	}
	return &run{Migrator: m.WithDefaults(), op: op, cfg: cfg, dialect: cfg.Cluster.Dialect, sets: loaded}, nil
}

// close gives back what the run holds. It has no errors that matter: every change was committed before.
func (r *run) close() {
	if r.control != nil {
		r.control.close()
	}
	if r.folder != nil {
		r.folder.release()
	}
}

// mark lets the migrator's statements pass: any text, which is why nothing but this package makes such a context.
func mark(ctx context.Context) context.Context {
	return wire.With(ctx, &wire.Mark{Kind: wire.Migration})
}

package schema

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
)

// database is one physical database, open under the migrator's mark.
type database struct {
	place   dal.Place // zero: the control database
	dialect dal.Dialect
	name    string // without a password
	pool    *wire.Pool
	grants  grants       // how a missing right is named
	target  dal.Endpoint // PostgreSQL: the database with its own two logins
}

// errMissing means that the database is not there, and was not to be made.
var errMissing = errors.New("schema: the database does not exist yet")

func (d *database) close() { _ = d.pool.Close() } // everything was committed before

// text returns a text of this package's own in the words of the database.
func (d *database) text(text string) string {
	if d.dialect == dal.Postgres {
		return wire.Dollars(text)
	}
	return text
}

// options are those of every pool of the migrator. No statement's text and no value is ever logged.
func (r *run) options(name string) wire.Options {
	return wire.Options{Shard: name, Logger: r.cfg.Logger, Observer: r.observer}
}

// openPlace opens the database of a place, and makes it first when create is set. Without create it changes nothing, and a database that does not exist
// is [errMissing].
func (r *run) openPlace(ctx context.Context, p plannedPlace, create bool) (*database, error) {
	if r.dialect == dal.SQLite {
		return r.openSQLite(ctx, p.Place, p.endpoint, create)
	}
	server := r.cfg.Cluster.Server(p.Place)
	if r.dialect == dal.Postgres {
		return r.openPostgres(ctx, p.Place, server, p.endpoint, create)
	}
	server.Dialect = dal.MySQL
	if create {
		if err := r.createMySQL(ctx, server, p.endpoint, p.dedicated); err != nil {
			return nil, err
		}
	}
	operator := server
	operator.Database = p.endpoint.Database
	return r.openMySQL(ctx, p.Place, operator, p.dedicated)
}

// openControlDB opens the control database, in the same way.
func (r *run) openControlDB(ctx context.Context, create bool) (*database, error) {
	e := r.cfg.Cluster.Control()
	e.Dialect = r.dialect
	if r.dialect == dal.SQLite {
		return r.openSQLite(ctx, dal.Place{}, e, create)
	}
	if r.dialect == dal.Postgres {
		return r.openPostgres(ctx, dal.Place{}, r.cfg.Cluster.Server(dal.Place{}), e, create)
	}
	if create {
		if err := r.createMySQL(ctx, r.cfg.Cluster.Server(dal.Place{}), e, false); err != nil {
			return nil, err
		}
	}
	return r.openMySQL(ctx, dal.Place{}, e, false)
}

func (r *run) openSQLite(ctx context.Context, p dal.Place, e dal.Endpoint, create bool) (*database, error) {
	if !create {
		if _, err := os.Stat(e.Path); errors.Is(err, fs.ErrNotExist) {
			return nil, errMissing
		}
	}
	pool, err := wire.OpenSQLite(wire.SQLite{Path: e.Path, Create: create, Synchronous: r.cfg.Cluster.Synchronous}, r.options(poolName(p)))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	db := &database{place: p, dialect: dal.SQLite, name: e.String(), pool: pool}
	if err := pool.PingContext(ctx); err != nil {
		db.close()
		return nil, err
	}
	return db, nil
}

func poolName(p dal.Place) string {
	if p == (dal.Place{}) {
		return controlName
	}
	return p.String()
}

// makeFolder makes the folder of the SQLite files, for this user alone.
func (r *run) makeFolder() error {
	if err := os.MkdirAll(r.cfg.Cluster.Dir, 0o700); err != nil {
		return fmt.Errorf("schema: make the folder of the databases: %w", err)
	}
	return nil
}

// lockPath is the file whose lock a run over SQLite holds.
func (r *run) lockPath() string { return filepath.Join(r.cfg.Cluster.Dir, "migrate.lock") }

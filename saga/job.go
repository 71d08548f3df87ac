package saga

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"maps"
	"slices"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// job is one donation on its way through the relay. It always names its tenant; a job without one cannot be read from a journal.
type job struct {
	tenant   tenant.ID
	id       ID
	source   dal.Place // where its journal row lies
	target   dal.Place // where its guild lives
	player   string
	key      string
	guild    string
	item     string
	qty      int64
	hash     ID
	epoch    int64 // of the route to target
	fence    int64 // of the claim; 0 when it was handed over in process
	attempts int
	void     bool
}

// scope returns ctx bound to the job's tenant.
func (j *job) scope(ctx context.Context) context.Context { return tenant.NewContext(ctx, j.tenant) }

// flight names the job in process.
func (j *job) flight() flight { return flight{j.tenant, j.id} }

// attrs are what every log record about the job holds.
func (j *job) attrs(p dal.Place, more ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{slog.String("tenant", string(j.tenant)), slog.String("shard", p.String()), slog.String("saga", j.id.String())}, more...)
}

// compareID orders jobs by their decision rows.
func compareID(a, b *job) int {
	if c := cmp.Compare(a.tenant, b.tenant); c != 0 {
		return c
	}
	return slices.Compare(a.id[:], b.id[:])
}

// compareCell orders jobs by the warehouse cells that they credit.
func compareCell(a, b *job) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.guild, b.guild), cmp.Compare(a.item, b.item), compareID(a, b))
}

// querier runs a constant that returns rows: a [dal.Library] or a [dal.LibraryTx].
type querier interface {
	Query(ctx context.Context, st *wire.Statement, args ...any) (*sql.Rows, error)
}

var (
	_ querier = (*dal.Library)(nil)
	_ querier = (*dal.LibraryTx)(nil)
)

// each calls scan for every row.
func each(ctx context.Context, q querier, st *wire.Statement, args []any, scan func(rows *sql.Rows) error) error {
	rows, err := q.Query(ctx, st, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// first reads the first row into dest and reports whether there was one.
func first(ctx context.Context, q querier, st *wire.Statement, args []any, dest ...any) (found bool, err error) {
	err = each(ctx, q, st, args, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(dest...)
	})
	return found && err == nil, err
}

// changed runs a statement of a transaction and returns the number of rows that it matched.
func changed(ctx context.Context, tx *dal.LibraryTx, st *wire.Statement, args ...any) (int64, error) {
	res, err := tx.Exec(ctx, st, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// sortedPlaces returns the places of a map, in order.
func sortedPlaces[V any](m map[dal.Place]V) []dal.Place {
	return slices.SortedFunc(maps.Keys(m), dal.Place.Compare)
}

package control

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/tenant"
)

// Tenant returns the tenant named id, whatever its status.
//
// It returns a [*tenant.InvalidIDError] for an ill-formed id, without asking the database, a [*tenant.UnknownTenantError] for one that is not
// there, [ErrNotMigrated] and [*CorruptError].
func (s *Store) Tenant(ctx context.Context, id tenant.ID) (tenant.Tenant, error) {
	if err := id.Validate(); err != nil {
		return tenant.Tenant{}, err
	}
	found, err := readTenants(ctx, s.pool, &id)
	if err != nil {
		return tenant.Tenant{}, failed("read a tenant", err)
	}
	if len(found) == 0 {
		return tenant.Tenant{}, &tenant.UnknownTenantError{ID: id}
	}
	return found[0], nil
}

// Tenants returns every tenant, whatever its status, sorted by id, as of one moment. It may be empty.
//
// It returns [ErrNotMigrated] and [*CorruptError].
func (s *Store) Tenants(ctx context.Context) ([]tenant.Tenant, error) {
	all, err := readTenants(ctx, s.pool, nil)
	if err != nil {
		return nil, failed("list the tenants", err)
	}
	return all, nil
}

// readTenants reads one tenant, or all of them for a nil id. A tenant with several shards comes as several rows in sequence.
func readTenants(ctx context.Context, q querier, id *tenant.ID) ([]tenant.Tenant, error) {
	st, args := stTenants, []any(nil)
	if id != nil {
		st, args = stTenant, []any{string(*id)}
	}
	var all []tenant.Tenant
	err := query(ctx, q, st, args, func(rows *sql.Rows) error {
		var name, model, status string
		var schema, shard sql.NullString
		var t tenant.Tenant
		l := &t.Limits
		if err := rows.Scan(&name, &model, &status, &schema, &l.Rate, &l.Burst, &l.MaxConns, &l.MaxQueue, &shard); err != nil {
			return err
		}
		if n := len(all); n > 0 && string(all[n-1].ID) == name {
			all[n-1].Placement.Shards = append(all[n-1].Placement.Shards, shard.String)
			return nil
		}
		t.ID, t.Placement.Schema = tenant.ID(name), schema.String
		if shard.Valid {
			t.Placement.Shards = []string{shard.String}
		}
		if err := t.Model.UnmarshalText([]byte(model)); err != nil {
			return &CorruptError{Table: "tdal_tenants", Err: err}
		}
		if err := t.Status.UnmarshalText([]byte(status)); err != nil {
			return &CorruptError{Table: "tdal_tenants", Err: err}
		}
		all = append(all, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if err := t.Validate(); err != nil {
			return nil, &CorruptError{Table: "tdal_tenants", Err: err}
		}
	}
	return all, nil
}

// PutTenant writes a tenant down. A new one is inserted, and its dedicated shards, if it has any, enter the topology with the next epoch. For a
// known one limits and status may change; model and placement may not, since its rows would stay behind. Only package migrations/schema calls it.
//
// The placement is completed by [tenant.Place], whose errors it returns. It returns a [*PlacementChangeError] for a known tenant with another
// model or placement, a [*PlacementTakenError] for a new one whose shard or schema serves somebody else, [ErrNotMigrated] when there is no
// topology, and [*CorruptError]; nothing is changed then.
func (s *Store) PutTenant(ctx context.Context, t tenant.Tenant) error {
	t, err := tenant.Place(t)
	if err != nil {
		return err
	}
	return s.tx(ctx, fmt.Sprintf("put tenant %q", t.ID), func(tx *sql.Tx) error {
		epoch, _, err := s.lockTopology(ctx, tx)
		if err != nil {
			return err
		}
		if epoch == 0 {
			return fmt.Errorf("there is no topology: %w", ErrNotMigrated)
		}
		known, err := readTenants(ctx, tx, &t.ID)
		if err != nil {
			return err
		}
		if len(known) > 0 {
			return updateTenant(ctx, tx, known[0], t)
		}
		if err := insertTenant(ctx, tx, t); err != nil || len(t.Placement.Shards) == 0 {
			return err
		}
		return execOne(ctx, tx, stEpochNext, int64(epoch))
	})
}

// SamePlacement reports whether two complete tenants have one isolation model and one placement. The order of shards does not count, since
// routing sorts them.
func SamePlacement(a, b tenant.Tenant) bool {
	return a.Model == b.Model && a.Placement.Schema == b.Placement.Schema &&
		slices.Equal(slices.Sorted(slices.Values(a.Placement.Shards)), slices.Sorted(slices.Values(b.Placement.Shards)))
}

// NewPlacementChangeError returns the error about a tenant that is known as have and asked for as want.
func NewPlacementChangeError(have, want tenant.Tenant) *PlacementChangeError {
	return &PlacementChangeError{Tenant: want.ID, Have: place(have), Want: place(want)}
}

func updateTenant(ctx context.Context, tx *sql.Tx, have, want tenant.Tenant) error {
	if !SamePlacement(have, want) {
		return NewPlacementChangeError(have, want)
	}
	if have.Status == want.Status && have.Limits == want.Limits {
		return nil
	}
	l := want.Limits
	return execOne(ctx, tx, stTenantUpdate, want.Status.String(), l.Rate, l.Burst, l.MaxConns, l.MaxQueue, string(want.ID), want.Model.String())
}

func insertTenant(ctx context.Context, tx *sql.Tx, t tenant.Tenant) error {
	var schema any
	if name := t.Placement.Schema; name != "" {
		schema = name
		owner, taken, err := ownerOf(ctx, tx, stSchemaOwner, name)
		if err != nil {
			return err
		}
		if taken {
			return &PlacementTakenError{Tenant: t.ID, What: fmt.Sprintf("schema %q", name), Owner: owner}
		}
	}
	for i, shard := range t.Placement.Shards {
		owner, taken, err := ownerOf(ctx, tx, stShardOwner, shard)
		if err != nil {
			return err
		}
		if taken {
			return &PlacementTakenError{Tenant: t.ID, What: fmt.Sprintf("shard %q", shard), Owner: owner}
		}
		if err := execOne(ctx, tx, stShardInsert, shard, string(t.ID), i); err != nil {
			return err
		}
	}
	l := t.Limits
	return execOne(ctx, tx, stTenantInsert, string(t.ID), t.Model.String(), t.Status.String(), schema, l.Rate, l.Burst, l.MaxConns, l.MaxQueue)
}

// ownerOf returns who has a schema or a shard; "" stands for the default shards.
func ownerOf(ctx context.Context, tx *sql.Tx, st *wire.Statement, name string) (owner tenant.ID, taken bool, err error) {
	err = query(ctx, tx, st, []any{name}, func(rows *sql.Rows) error {
		taken = true
		return rows.Scan(&owner)
	})
	return owner, taken, err
}

// place describes model and placement in a few words.
func place(t tenant.Tenant) string {
	switch t.Model {
	case tenant.OwnSchema:
		return fmt.Sprintf("%s %q", t.Model, t.Placement.Schema)
	case tenant.OwnDatabase:
		return fmt.Sprintf("%s on shards [%s]", t.Model, strings.Join(t.Placement.Shards, " "))
	default:
		return t.Model.String()
	}
}

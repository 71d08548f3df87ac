package tenant

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Tenant is what the registry knows about one tenant.
type Tenant struct {
	ID        ID
	Model     Model
	Status    Status
	Placement Placement
	Limits    Limits
}

// Placement says which shards and which schema serve a tenant. The three isolation models differ in nothing else.
type Placement struct {
	// Shards are the tenant's own shards, each [A-Za-z0-9._-]{1,64} and listed once. Nil means the topology's default
	// shards. Only OwnDatabase has shards of its own.
	Shards []string

	// Schema is the tenant's own schema on each of the default shards. Empty means none. Only OwnSchema has one.
	Schema string
}

// Limits are a tenant's quotas. The zero value of each field means the service's default.
type Limits struct {
	// Rate is the number of statements per second.
	//
	// Zero means the service's default; -1 means unlimited.
	Rate float64

	// Burst is the number of statements that may come at once, before Rate holds them back.
	//
	// Zero means the service's default.
	Burst int

	// MaxConns is the number of connections per shard that the tenant uses at a time.
	//
	// Zero means the service's default; -1 means no limit.
	MaxConns int

	// MaxQueue is the number of calls that wait for a connection per shard; the next one is refused.
	//
	// Zero means the service's default; -1 means no waiting: a call that finds no connection free is refused at once.
	MaxQueue int
}

// Validate returns nil when every limit is in range, else one error that names each field that is not.
func (l Limits) Validate() error {
	var errs []error
	if math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) || (l.Rate < 0 && l.Rate != -1) {
		errs = append(errs, fmt.Errorf("tenant: Limits.Rate is %v: want a number of statements per second, 0 for the default or -1 for unlimited", l.Rate))
	}
	for _, f := range []struct {
		name  string
		value int
		least int
		also  string
	}{
		{"Burst", l.Burst, 0, ""},
		{"MaxConns", l.MaxConns, -1, ", or -1 for no limit"},
		{"MaxQueue", l.MaxQueue, -1, ", or -1 for no waiting"},
	} {
		if f.value < f.least || f.value > math.MaxInt32 {
			errs = append(errs, fmt.Errorf("tenant: Limits.%s is %d: want 1 to 2147483647, 0 for the default%s", f.name, f.value, f.also))
		}
	}
	return errors.Join(errs...)
}

// Validate returns nil when t is complete: a well-formed ID, a model, a status, limits in range, and a placement that
// agrees with the model. Else it returns all problems as one error. It fills nothing in; see [Place].
func (t Tenant) Validate() error {
	errs := []error{t.ID.Validate(), t.Model.Validate(), t.Status.Validate(), t.Limits.Validate()}
	if t.Model.Validate() == nil {
		errs = append(errs, t.checkPlacement())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("tenant: tenant %q: %w", clip(string(t.ID)), err)
	}
	return nil
}

// CheckStatus returns nil when the tenant is Active, else a [*StatusError], which is [ErrSuspended] or [ErrDeleting].
func (t Tenant) CheckStatus() error {
	if t.Status == Active {
		return nil
	}
	return &StatusError{Tenant: t.ID, Status: t.Status}
}

func (t Tenant) checkPlacement() error {
	p := t.Placement
	var errs []error
	wantNone := func(what, name string) {
		errs = append(errs, fmt.Errorf("tenant: Placement.%s is set, but the %s model has no %s of its own: clear it or change the model", name, t.Model, what))
	}
	if t.Model == OwnDatabase {
		errs = append(errs, checkShards(p.Shards))
	} else if len(p.Shards) > 0 {
		wantNone("shards", "Shards")
	}
	if t.Model == OwnSchema {
		errs = append(errs, checkSchema(p.Schema))
	} else if p.Schema != "" {
		wantNone("schema", "Schema")
	}
	return errors.Join(errs...)
}

func checkShards(shards []string) error {
	if len(shards) == 0 {
		return errors.New("tenant: Placement.Shards is empty: the database model needs at least one shard of its own")
	}
	var errs []error
	for i, s := range shards {
		if !validShard(s) {
			errs = append(errs, fmt.Errorf("tenant: Placement.Shards: invalid shard %q: want [A-Za-z0-9._-]{1,64}", clip(s)))
		}
		if slices.Contains(shards[:i], s) {
			errs = append(errs, fmt.Errorf("tenant: Placement.Shards: shard %q is listed twice", clip(s)))
		}
	}
	return errors.Join(errs...)
}

// validShard reports whether s is a shard id. It is the shape that package shardrouter parses; this package imports
// nothing of the project, so it has the few lines itself.
func validShard(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return 0 < len(s) && len(s) <= maxShardLen
}

// Place returns t with its placement filled in by its model, validated and complete. It shares no memory with t.
//
// A zero Status becomes Active. OwnSchema without a schema gets [SchemaName]; OwnDatabase without shards gets
// [ShardName](ID, 1); what is already set stays. A placement that contradicts the model is an error, as is all that
// [Tenant.Validate] refuses.
func Place(t Tenant) (Tenant, error) {
	if t.Status == 0 {
		t.Status = Active
	}
	t.Placement.Shards = slices.Clone(t.Placement.Shards)
	// A name is only made from a well-formed id.
	if t.ID.Validate() == nil {
		switch {
		case t.Model == OwnSchema && t.Placement.Schema == "":
			t.Placement.Schema = SchemaName(t.ID)
		case t.Model == OwnDatabase && len(t.Placement.Shards) == 0:
			t.Placement.Shards = []string{ShardName(t.ID, 1)}
		}
	}
	if len(t.Placement.Shards) == 0 {
		t.Placement.Shards = nil
	}
	if err := t.Validate(); err != nil {
		return Tenant{}, err
	}
	return t, nil
}

// clone returns a copy of t that shares no memory with it.
func (t Tenant) clone() Tenant {
	t.Placement.Shards = slices.Clone(t.Placement.Shards)
	return t
}

func compareTenants(a, b Tenant) int { return strings.Compare(string(a.ID), string(b.ID)) }

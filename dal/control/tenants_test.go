package control_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/tenant"
)

func shared(id string) tenant.Tenant {
	return tenant.Tenant{ID: tenant.ID(id), Model: tenant.SharedTable, Status: tenant.Active}
}

func ownDatabase(id string, shards ...string) tenant.Tenant {
	return tenant.Tenant{ID: tenant.ID(id), Model: tenant.OwnDatabase, Placement: tenant.Placement{Shards: shards}}
}

func ownSchema(id, schema string) tenant.Tenant {
	return tenant.Tenant{ID: tenant.ID(id), Model: tenant.OwnSchema, Placement: tenant.Placement{Schema: schema}}
}

func TestPutTenant_RoundTrip(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		limits := tenant.Limits{Rate: 0.1, Burst: math.MaxInt32, MaxConns: -1, MaxQueue: 7}
		var want []tenant.Tenant
		for _, in := range []tenant.Tenant{
			{ID: "a", Model: tenant.SharedTable, Limits: tenant.Limits{Rate: 1e300}},
			ownDatabase("b"),
			ownDatabase("c", "c-z", "c-a", "c-m"),
			{ID: "d", Model: tenant.OwnSchema, Status: tenant.Suspended, Limits: limits},
			{ID: "e_1", Model: tenant.SharedTable, Status: tenant.Deleting, Limits: tenant.Limits{Rate: -1}},
		} {
			if err := s.PutTenant(ctx, in); err != nil {
				t.Fatalf("PutTenant(%+v): %v", in, err)
			}
			full, err := tenant.Place(in)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, full)
		}
		got, err := s.Tenants(ctx)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("Tenants: got %+v, %v, want %+v", got, err, want)
		}
		for _, w := range want {
			if got, err := s.Tenant(ctx, w.ID); err != nil || !reflect.DeepEqual(got, w) {
				t.Fatalf("Tenant(%q): got %+v, %v, want %+v", w.ID, got, err, w)
			}
		}
		if epoch, _ := s.Epoch(ctx); epoch != 3 {
			t.Fatalf("Epoch after two dedicated tenants: got %d, want 3", epoch)
		}
	})
}

func TestTenant_UnknownAndIllFormed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		_, err := s.Tenant(ctx, "ghost")
		wantIs(t, "Tenant(ghost)", err, tenant.ErrUnknownTenant)
		for _, id := range []tenant.ID{"", "ACME", "x' OR '1'='1"} {
			_, err := s.Tenant(ctx, id)
			wantIs(t, fmt.Sprintf("Tenant(%q)", id), err, tenant.ErrInvalidID)
		}
		if all, err := s.Tenants(ctx); err != nil || len(all) != 0 {
			t.Fatalf("Tenants: got %v, %v, want none", all, err)
		}
	})
}

// A database whose collation folds case would answer for ACME, and one that pads for "acme ".
func TestTenant_T38_ExactNames(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		for _, shard := range []string{"Big", "big"} {
			if err := s.PutTenant(t.Context(), ownDatabase("t-"+string(shard[0]|0x20)+fmt.Sprint(shard == "Big"), shard)); err != nil {
				t.Fatalf("shard %q: %v", shard, err)
			}
		}
		top, err := s.Topology(t.Context())
		if err != nil || !top.Has("Big") || !top.Has("big") {
			t.Fatalf("two shards that differ in case: got %v, %v", top, err)
		}
	})
}

func TestPutTenant_Changes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		s := initialised(t, b)
		ctx := t.Context()
		for _, in := range []tenant.Tenant{shared("sh"), ownSchema("sc", "t_sc"), ownDatabase("db", "db-1", "db-2")} {
			if err := s.PutTenant(ctx, in); err != nil {
				t.Fatal(err)
			}
		}
		before, err := s.Tenants(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []tenant.Tenant{
			ownSchema("sh", ""), ownDatabase("sh"), shared("sc"), ownSchema("sc", "t_other"), shared("db"),
			ownDatabase("db", "db-1"), ownDatabase("db", "db-1", "db-2", "db-3"), ownDatabase("db", "db-1", "db-9"),
		} {
			err := s.PutTenant(ctx, in)
			var change *control.PlacementChangeError
			if !errors.As(err, &change) || change.Tenant != in.ID || !errors.Is(err, control.ErrPlacementChange) {
				t.Fatalf("PutTenant(%+v): got %v, want a *PlacementChangeError", in, err)
			}
		}
		for _, in := range []tenant.Tenant{
			ownDatabase("new1", "s1"), ownDatabase("new2", "new2-s1", "db-2"), ownSchema("new3", "t_sc"),
		} {
			err := s.PutTenant(ctx, in)
			var taken *control.PlacementTakenError
			if !errors.As(err, &taken) || taken.Tenant != in.ID || !errors.Is(err, control.ErrPlacementTaken) {
				t.Fatalf("PutTenant(%+v): got %v, want a *PlacementTakenError", in, err)
			}
		}
		if after, err := s.Tenants(ctx); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("after refusals: got %+v, %v, want %+v", after, err, before)
		}
		if top, err := s.Topology(ctx); err != nil || top.Epoch() != 2 || top.Has("new2-s1") {
			t.Fatalf("after refusals: got %+v, %v: a refusal left a shard or an epoch behind", top, err)
		}
		// The same again, in another order, and with other limits.
		again := ownDatabase("db", "db-2", "db-1")
		again.Status, again.Limits.Rate = tenant.Suspended, 5
		if err := s.PutTenant(ctx, again); err != nil {
			t.Fatal(err)
		}
		got, err := s.Tenant(ctx, "db")
		if err != nil || got.Status != tenant.Suspended || got.Limits.Rate != 5 {
			t.Fatalf("Tenant(db): got %+v, %v", got, err)
		}
		if epoch, _ := s.Epoch(ctx); epoch != 2 {
			t.Fatalf("Epoch: got %d, want 2: limits and status are no topology", epoch)
		}
	})
}

// An id that is no id never reaches a statement.
func TestPutTenant_T46_RefusedBeforeSQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		seen := &recorder{}
		s := control.New(b.pool(t, seen), b.dialect)
		for _, in := range []tenant.Tenant{
			shared(`x"; DROP SCHEMA public; --`), shared("x`; DROP DATABASE mysql; --"), shared("../s1"),
			ownSchema("ok", "x`y"), ownSchema("ok", "mysql"), ownSchema("ok", "T_ACME"), ownDatabase("ok", "a/b"), ownDatabase("ok", "x`"),
			{ID: "ok"},
			{ID: "ok", Model: tenant.SharedTable, Limits: tenant.Limits{Rate: math.NaN()}},
		} {
			if err := s.PutTenant(t.Context(), in); err == nil {
				t.Errorf("PutTenant(%+v): got nil, want an error", in)
			}
		}
		if got := seen.all(); len(got) != 0 {
			t.Fatalf("%d operations reached the database, want none: %+v", len(got), got)
		}
	})
}

func TestPutTenant_Concurrent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, b bench) {
		initialised(t, b)
		const processes, tenants = 4, 6
		var wg sync.WaitGroup
		errs := make([]error, processes)
		for i := range processes {
			s := b.store(t)
			wg.Go(func() {
				for n := range tenants {
					errs[i] = errors.Join(errs[i], s.PutTenant(t.Context(), ownDatabase(fmt.Sprintf("t%d", n))))
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		top, err := b.store(t).Topology(t.Context())
		if err != nil || top.Epoch() != 1+tenants || len(top.AllShards()) != 2+tenants {
			t.Fatalf("Topology: got epoch %d, shards %v, %v; want epoch %d: each tenant counts once", top.Epoch(), top.AllShards(), err, 1+tenants)
		}
	})
}

func TestTenants_Corrupt(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"id":        "UPDATE tdal_tenants SET tenant_id = 'ACME'",
		"model":     "UPDATE tdal_tenants SET model = 'dedicated'",
		"status":    "UPDATE tdal_tenants SET status = ''",
		"placement": "UPDATE tdal_tenants SET schema_name = 'sys'",
		"shard":     "INSERT INTO tdal_shards (shard, owner, ord) VALUES ('x', 'acme', 0)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, b bench) {
				s := initialised(t, b)
				if err := s.PutTenant(t.Context(), shared("acme")); err != nil {
					t.Fatal(err)
				}
				b.edit(t, text)
				_, err := s.Tenants(t.Context())
				wantIs(t, "Tenants", err, control.ErrCorrupt)
			})
		})
	}
}

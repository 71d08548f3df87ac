package schema_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/dal/control"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestProvision(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.tenants(sharedTenant("acme"))
		b.mustUp(game1)
		b.tenants(sharedTenant("acme"), schemaTenant("zeta"), databaseTenant("big", "big-s1", "big-s2"), sharedTenant("small"))
		for _, tc := range []struct {
			id     tenant.ID
			places []string
			epoch  shardrouter.Epoch
		}{
			{"small", nil, 1}, {"zeta", []string{"s1/t_zeta", "s2/t_zeta"}, 1}, {"big", []string{"big-s1", "big-s2"}, 2}, {"big", []string{"big-s1", "big-s2"}, 2},
		} {
			rep, err := schema.Provision(ctx, b.cfg, tc.id, game2)
			if err != nil {
				t.Fatalf("Provision(%s): %v", tc.id, err)
			}
			var got []string
			for _, p := range rep.Places {
				got = append(got, p.Place.String())
				if p.Tenant != tc.id || p.Sets[0].Version != 3 {
					t.Errorf("Provision(%s): got %+v, want version 3", tc.id, p)
				}
			}
			if !slices.Equal(got, tc.places) || rep.Epoch != tc.epoch {
				t.Fatalf("Provision(%s): got places %v at epoch %d, want %v at %d", tc.id, got, rep.Epoch, tc.places, tc.epoch)
			}
			if known, err := b.control().Tenant(ctx, tc.id); err != nil || known.ID != tc.id {
				t.Fatalf("Provision(%s): the control database has %+v, %v", tc.id, known, err)
			}
		}
		// The other places are as they were: that is what Up is for.
		for _, s := range b.status(game2) {
			if s.Place.Shard != "" && (s.Version == 1) != (s.Tenant == "") {
				t.Errorf("Status: got %+v, want the shared places at 1 and the others at 3", s)
			}
		}
		if _, targets, err := b.control().Versions(ctx); err != nil || targets["game"] != 1 {
			t.Fatalf("Versions: got targets %v, %v, want 1", targets, err)
		}
		b.mustUp(game2)
		b.wantUpToDate(game2)
	})
}

// Until a tenant is provisioned a store does not serve it; then it does.
func TestProvision_StoreServesAfter(t *testing.T) {
	t.Parallel()
	type Hero struct {
		dal.Model
		PlayerID string
	}
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.cfg.Tables = []dal.Table{dal.Tenant[Hero]("player", "player_id")}
		heroes := heroSet()
		b.mustUp(heroes)
		ctx := tenant.NewContext(t.Context(), "zeta")
		open := func() (*dal.Store, dal.Config) {
			cfg := b.cfg
			cfg.Registry = nil
			s, err := dal.Open(t.Context(), cfg)
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			return s, cfg
		}
		s, _ := open()
		if _, err := s.Route(ctx, dal.Key("player", "7")); !errors.Is(err, tenant.ErrUnknownTenant) {
			t.Fatalf("Route before: got %v, want an unknown tenant", err)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.tenants(schemaTenant("zeta"))
		if _, err := schema.Provision(t.Context(), b.cfg, "zeta", heroes); err != nil {
			t.Fatal(err)
		}
		s, _ = open()
		defer func() { _ = s.Close(context.Background()) }()
		hero := Hero{PlayerID: "7"}
		if err := s.On(ctx, dal.Key("player", "7")).Create(&hero).Error; err != nil {
			t.Fatalf("Create after: %v", err)
		}
		if got := b.list(dal.Place{Shard: "s1", Schema: "t_zeta"}, "zeta", "SELECT tenant_id FROM heros"); !slices.Equal(got, []string{"zeta"}) {
			t.Fatalf("rows: got %v, want one of zeta's in its own schema", got)
		}
	})
}

func TestProvision_Refused(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.tenants(schemaTenant("zeta"))
		if _, err := schema.Provision(ctx, b.cfg, "zeta", game1); !errors.Is(err, schema.ErrNotMigrated) {
			t.Fatalf("Provision before Up: got %v, want ErrNotMigrated", err)
		}
		if !b.server() {
			if _, err := os.Stat(filepath.Join(b.cfg.Cluster.Dir, "control.db")); err == nil {
				t.Fatal("Provision before Up made a control database")
			}
		}
		b.mustUp(game1)
		if _, err := schema.Provision(ctx, b.cfg, "ghost", game1); !errors.Is(err, tenant.ErrUnknownTenant) {
			t.Errorf("Provision(ghost): got %v, want ErrUnknownTenant", err)
		}
		if _, err := schema.Provision(ctx, b.cfg, "Zeta", game1); !errors.Is(err, tenant.ErrInvalidID) {
			t.Errorf("Provision(Zeta): got %v, want ErrInvalidID", err)
		}
		b.tenants(sharedTenant("zeta"))
		if _, err := schema.Provision(ctx, b.cfg, "zeta", game1); !errors.Is(err, control.ErrPlacementChange) {
			t.Errorf("Provision with another placement: got %v, want ErrPlacementChange", err)
		}
		b.cfg.Registry = listing{sharedTenant("other")}
		if _, err := schema.Provision(ctx, b.cfg, "zeta", game1); !errors.Is(err, schema.ErrRegistry) {
			t.Errorf("Provision with a registry that answers with another tenant: got %v, want ErrRegistry", err)
		}
		b.cfg.Registry = nil
		if _, err := schema.Provision(ctx, b.cfg, "zeta", game1); !errors.Is(err, schema.ErrRegistry) {
			t.Errorf("Provision without a registry: got %v, want ErrRegistry", err)
		}
		b.cfg.Registry = noLister{} // it need not list here
		if _, err := schema.Provision(ctx, b.cfg, "zeta", game1); !errors.Is(err, tenant.ErrUnknownTenant) {
			t.Errorf("Provision with a registry that cannot list: got %v, want ErrUnknownTenant", err)
		}
		b.tenants(databaseTenant("evil", "s1")).cfg.Tables = nil
		if _, err := schema.Provision(ctx, b.cfg, "evil", game1); !errors.Is(err, schema.ErrPlaceConflict) && !errors.Is(err, control.ErrPlacementTaken) {
			t.Errorf("Provision on a default shard: got %v, want it refused", err)
		}
		b.tenants(databaseTenant("big"))
		more := slices.Clone(b.cfg.Cluster.Shards)
		b.cfg.Cluster.Shards = append(more, more[0])
		if b.server() {
			b.cfg.Cluster.Shards[1].Database += "x"
		}
		if _, err := schema.Provision(ctx, b.cfg, "big", game1); !errors.Is(err, control.ErrMismatch) {
			t.Errorf("Provision with another list of shards: got %v, want ErrMismatch", err)
		}
	})
}

// A provisioning that dies anywhere is taken up by the next one.
func TestProvision_DiesAnywhere(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.mustUp(game1)
		step := 1
		switch {
		case b.postgres():
			step = 9
		case b.server() || raceEnabled:
			step = 4
		}
		finished := false
		for n := 1; !finished; n += step {
			id := tenant.ID(fmt.Sprintf("n%d", n))
			b.tenants(databaseTenant(id))
			m := schema.Migrator{}.Observed(&hook{before: func(i int, _ wire.Event) error {
				if i >= n {
					return errDied
				}
				return nil
			}})
			_, err := m.Provision(t.Context(), b.cfg, id, game1)
			finished = err == nil
			if !finished && !errors.Is(err, errDied) || n > 500 {
				t.Fatalf("died at operation %d: got %v", n, err)
			}
			rep, err := schema.Provision(t.Context(), b.cfg, id, game1)
			if err != nil || len(rep.Places) != 1 || rep.Places[0].Sets[0].Version != 1 {
				t.Fatalf("died at operation %d, second run: got %+v, %v", n, rep, err)
			}
		}
		b.wantUpToDate(game1)
	})
}

func TestProvision_Concurrent(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.mustUp(game1)
		b.tenants(databaseTenant("a"), databaseTenant("b"), schemaTenant("c"))
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i, id := range []tenant.ID{"a", "b", "c", "a", "b"} {
			wg.Go(func() { _, errs[i] = schema.Provision(t.Context(), b.cfg, id, game1) })
		}
		wg.Go(func() { _, errs[5] = b.up(game1) })
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		b.wantUpToDate(game1)
		if epoch, err := b.control().Epoch(t.Context()); err != nil || epoch != 3 {
			t.Fatalf("Epoch: got %d, %v, want 3", epoch, err)
		}
	})
}

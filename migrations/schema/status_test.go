package schema_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/internal/wire"
	"github.com/tenantdal/tenantdal/migrations/schema"
)

// Before the first run everything is pending, and looking at it makes nothing.
func TestStatus_NothingExists(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, b *bench) {
		b.tenants(schemaTenant("zeta"), databaseTenant("big"))
		all := b.status(game2)
		var names []string
		for _, s := range all {
			names = append(names, s.Place.String()+"|"+s.Set)
			if s.Exists || s.Version != 0 || s.UpToDate() || s.Err != nil || int64(len(s.Pending)) != s.Target {
				t.Errorf("Status: got %+v, want all files pending", s)
			}
		}
		if want := []string{"|control", "big-s1|game", "s1|game", "s1/t_zeta|game", "s2|game", "s2/t_zeta|game"}; !reflect.DeepEqual(names, want) {
			t.Fatalf("Status: got %v, want %v", names, want)
		}
		if !b.server() {
			if _, err := os.Stat(b.cfg.Cluster.Dir); err == nil {
				t.Fatal("Status made the folder")
			}
			return
		}
		for _, s := range b.status(game2) {
			if s.Exists {
				t.Fatal("Status made a database")
			}
		}
	})
}

// Status sends nothing that changes anything.
func TestStatus_ReadsOnly(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.tenants(schemaTenant("zeta"), databaseTenant("big"))
		b.mustUp(game1)
		sent := 0
		m := schema.Migrator{}.Observed(&hook{before: func(_ int, e wire.Event) error {
			sent++
			if !strings.HasPrefix(e.Text, "SELECT ") || strings.Contains(e.Text, "GET_LOCK") || strings.Contains(e.Text, "FOR UPDATE") {
				t.Errorf("Status sent %q (%s)", e.Text, e.Op)
			}
			return nil
		}})
		all, err := m.Status(t.Context(), b.cfg, game2, schema.Saga())
		if err != nil || len(all) != 1+3*2 || sent < 10 {
			t.Fatalf("Status: got %d entries after %d operations, %v", len(all), sent, err)
		}
		for _, s := range all[1:] {
			want := schema.PlaceStatus{Place: s.Place, Tenant: s.Tenant, Set: "game", Exists: true, Version: 1, Target: 3, Pending: []string{"0002_level.sql", "0003_item.sql"}}
			if s.Set == "saga" {
				if s.Version != 0 || len(s.Pending) != last(t, schema.Saga().FS) {
					t.Errorf("Status: got %+v, want all of saga pending", s)
				}
				continue
			}
			if !reflect.DeepEqual(s, want) {
				t.Errorf("Status: got %+v, want %+v", s, want)
			}
		}
	})
}

// A newer process was here: Status says so by the numbers, and there is nothing to do.
func TestStatus_Ahead(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, 1)
	b.mustUp(game2)
	if s := b.status(game1)[1]; s.Version != 3 || s.Target != 1 || !s.UpToDate() {
		t.Fatalf("Status: got %+v, want version 3 over target 1", s)
	}
}

// A history that this library did not write is refused, not guessed at.
func TestStatus_ForeignHistory(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.mustUp(game1)
		b.exec(s1, "", "DELETE FROM tdal_checksums")
		if s := b.status(game1)[1]; !reflect.DeepEqual(s.Changed, []string{"0001_hero.sql"}) {
			t.Fatalf("Status: got %+v, want 0001_hero.sql refused", s)
		}
		_, err := b.up(game1)
		var ce *schema.ChecksumError
		if !errors.As(err, &ce) || ce.Applied != "" {
			t.Fatalf("Up: got %v, want a *ChecksumError without a recorded checksum", err)
		}
	})
}

// A file that was rolled back by hand, with goose's own command, is pending again.
func TestUp_AfterDownByHand(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, b *bench) {
		b.mustUp(game1)
		b.exec(s1, "", "DROP TABLE hero")
		b.exec(s1, "", "DELETE FROM tdal_version_game WHERE version_id = 1")
		if s := b.status(game1)[1]; !reflect.DeepEqual(s.Pending, []string{"0001_hero.sql"}) || s.Dirty != nil {
			t.Fatalf("Status: got %+v, want 0001_hero.sql pending", s)
		}
		b.mustUp(game1)
		if len(b.columns(dal.Place{Shard: "s1"}, "", "hero")) != 2 {
			t.Fatal("hero was not made again")
		}
	})
}

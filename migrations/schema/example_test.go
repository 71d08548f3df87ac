package schema_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

// A deployment of two files with one tenant in the shared tables and one in a schema of its own; then a tenant that is added later.
func ExampleUp() {
	dir, err := os.MkdirTemp("", "tenantdal")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	const heroes = `-- +goose Up
CREATE TABLE IF NOT EXISTS hero (
	tenant_id VARCHAR(63) NOT NULL,
	id BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, id)
);
-- +goose Down
DROP TABLE IF EXISTS hero;
`
	// In a program these are files, embedded with go:embed.
	game := schema.Set{Name: "game", FS: fstest.MapFS{
		"sqlite/0001_hero.sql": {Data: []byte(heroes)},
		"mysql/0001_hero.sql":  {Data: []byte(heroes)},
	}}
	registry, err := tenant.NewStatic(
		tenant.Tenant{ID: "acme", Model: tenant.SharedTable},
		tenant.Tenant{ID: "zeta", Model: tenant.OwnSchema},
		tenant.Tenant{ID: "big", Model: tenant.OwnDatabase},
	)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	cfg := dal.Config{Cluster: dal.SQLiteCluster(filepath.Join(dir, "data"), 2), Registry: registry}
	report, err := schema.Up(ctx, cfg, game)
	if err != nil {
		panic(err)
	}
	for _, p := range report.Places {
		fmt.Println(p.Place, p.Tenant, p.Sets[0].Set, p.Sets[0].Version)
	}

	// Nothing is left to do.
	states, err := schema.Status(ctx, cfg, game)
	if err != nil {
		panic(err)
	}
	for _, s := range states {
		if !s.UpToDate() {
			fmt.Println(s.Place, "lacks", s.Pending)
		}
	}
	// Output:
	// big-s1 big game 1
	// s1  game 1
	// s1/t_zeta zeta game 1
	// s2  game 1
	// s2/t_zeta zeta game 1
}

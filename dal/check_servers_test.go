package dal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/tenant"
)

// fileSet is a set of one table, with its text on each kind of database.
func fileSet(name string, texts map[string]string) schema.Set {
	files := fstest.MapFS{}
	for kind, text := range texts {
		files[kind+"/0001_"+name+".sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE IF NOT EXISTS " + name + " (" + text + ");\n-- +goose Down\nDROP TABLE IF EXISTS " + name + ";\n")}
	}
	return schema.Set{Name: name, FS: files}
}

func upRaw(t *testing.T, cfg dal.Config) {
	t.Helper()
	set := fileSet("raws", map[string]string{
		"sqlite": "tenant_id TEXT NOT NULL, id INTEGER NOT NULL, player_id BLOB NOT NULL, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id)",
		"mysql": "tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, player_id VARBINARY(255) NOT NULL, " +
			"created_at DATETIME(6), updated_at DATETIME(6), PRIMARY KEY (tenant_id, id)",
	})
	if _, err := schema.Up(t.Context(), cfg, set); err != nil {
		t.Fatal(err)
	}
}

// A unique key that lacks the shard key holds on one shard alone: the table is refused before a row is written, and the way on is a table of its own whose
// shard key the value is, where it is unique over all shards.
func TestOpen_S31_UniqueKeyWithoutTheShardKey(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := dal.Config{Cluster: cluster(t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
			if _, err := schema.Up(t.Context(), cfg, heroes(", UNIQUE KEY k_name (tenant_id, name)", ", UNIQUE (tenant_id, name)")); err != nil {
				t.Fatal(err)
			}
			store, err := dal.Open(t.Context(), cfg)
			if err == nil {
				_ = store.Close(context.Background())
			}
			if !errors.Is(err, dal.ErrModel) || !strings.Contains(err.Error(), "(tenant_id, name) lacks the shard key \"player_id\"") || !strings.Contains(err.Error(), "a table of its own") {
				t.Errorf("Open: %v, want a refusal that names the key and the way on", err)
			}
		})
	}
	t.Run("lookup table", func(t *testing.T) {
		t.Parallel()
		cfg := dal.Config{Cluster: clusters()["sqlite"](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Email]("email", "email")}}
		set := fileSet("emails", map[string]string{
			"sqlite": "tenant_id TEXT NOT NULL, email TEXT NOT NULL, player_id TEXT NOT NULL, PRIMARY KEY (tenant_id, email)",
			"mysql":  "tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, email VARBINARY(255) NOT NULL, player_id VARBINARY(255) NOT NULL, PRIMARY KEY (tenant_id, email)",
		})
		if _, err := schema.Up(t.Context(), cfg, set); err != nil {
			t.Fatal(err)
		}
		store, err := dal.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		ctx := tenant.NewContext(t.Context(), "shared-a")
		for i := range 10 {
			address := fmt.Sprintf("player%d@example.com", i)
			for _, player := range []string{"7", "8"} {
				err := store.On(ctx, dal.Key("email", address)).Create(&Email{Email: address, PlayerID: player}).Error
				if player == "7" && err != nil || player == "8" && !dal.IsDuplicateKey(err) {
					t.Errorf("%s for player %s: %v", address, player, err)
				}
			}
		}
	})
}

// Email says whose an address is, on the shard that owns the address.
type Email struct {
	TenantID tenant.ID `gorm:"column:tenant_id;primaryKey;size:63;not null"`
	Email    string    `gorm:"primaryKey;size:255;not null"`
	PlayerID string    `gorm:"size:255;not null"`
}

// Keys that a server takes for equal and a hash does not: a key column that folds case or pads blanks is refused at start, and in one that does neither each
// of them is a row of its own, found under its own key.
func TestOpen_S12_KeysThatTheServerTakesForEqual(t *testing.T) {
	t.Parallel()
	const columns = "tenant_id VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, id BIGINT NOT NULL, player_id %s NOT NULL, name VARCHAR(100), " +
		"gold BIGINT NOT NULL DEFAULT 0, created_at DATETIME(6), updated_at DATETIME(6), PRIMARY KEY (tenant_id, id)"
	open := func(t *testing.T, key string) (*dal.Store, error) {
		t.Helper()
		cfg := dal.Config{Cluster: clusters()["mariadb"](t), Registry: threeModels(t), Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id")}}
		set := fileSet("heros", map[string]string{"mysql": fmt.Sprintf(columns, key), "sqlite": "tenant_id TEXT NOT NULL"})
		if _, err := schema.Up(t.Context(), cfg, set); err != nil {
			t.Fatal(err)
		}
		store, err := dal.Open(t.Context(), cfg)
		if err == nil {
			t.Cleanup(func() {
				if err := store.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		return store, err
	}
	for _, collation := range []string{"utf8mb4_general_ci", "utf8mb4_bin"} {
		if _, err := open(t, "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE "+collation); !errors.Is(err, dal.ErrModel) || !strings.Contains(err.Error(), "player_id") || !strings.Contains(err.Error(), "VARBINARY") {
			t.Errorf("%s: %v, want a refusal of the column with its mend", collation, err)
		}
	}
	store, err := open(t, "VARBINARY(255)")
	if err != nil {
		t.Fatal(err)
	}
	ctx := tenant.NewContext(t.Context(), "shared-a")
	keys := []string{"Bob", "bob", "bob ", "BOB"}
	for i, key := range keys {
		if err := store.On(ctx, dal.Key("player", key)).Create(&Hero{PlayerID: key, Gold: int64(i)}).Error; err != nil {
			t.Fatal(err)
		}
	}
	found, err := dal.FindByKeys[Hero](ctx, store, keys, dal.FanOutSpec{})
	if err != nil || len(found.Rows) != len(keys) {
		t.Fatalf("%d rows, %v", len(found.Rows), err)
	}
	for i, row := range found.Rows {
		if row.PlayerID != keys[i] || row.Gold != int64(i) {
			t.Errorf("under %q: %+v", keys[i], row)
		}
	}
}

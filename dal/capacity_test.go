package dal_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

// guildOf opens a store whose heroes are limited to a number for each player key.
func guildOf(tb testing.TB, c dal.Cluster, limit int) (*dal.Store, context.Context) {
	tb.Helper()
	reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable}, tenant.Tenant{ID: "b", Model: tenant.SharedTable})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := dal.Config{Cluster: c, Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id").Capacity(limit)}}
	if _, err := schema.Up(tb.Context(), cfg, heroes(", KEY k_player (tenant_id, player_id)", ""), schema.Capacity()); err != nil {
		tb.Fatal(err)
	}
	store, err := dal.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return store, tenant.NewContext(tb.Context(), "a")
}

func heroesOf(tb testing.TB, s *dal.Store, ctx context.Context, key string) int64 {
	tb.Helper()
	var n int64
	if err := s.On(ctx, dal.Key("player", key)).Model(&Hero{}).Where("player_id = ?", key).Count(&n).Error; err != nil {
		tb.Fatal(err)
	}
	return n
}

// Twenty writers fill a guild of fifty with rows, batches and transactions: fifty get in, whoever is refused is told why, and the other guild is not touched.
func TestCapacity_B7_ExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 50
			s, ctx := guildOf(t, cluster(t), limit)
			key := dal.Key("player", "guild")
			var in atomic.Int64
			var wg sync.WaitGroup
			for w := range 20 {
				wg.Go(func() {
					for tries := 0; tries < 500; tries++ {
						rows := make([]Hero, 1+w%3)
						for i := range rows {
							rows[i] = Hero{PlayerID: "guild", Name: fmt.Sprint(w)}
						}
						var err error
						if w%2 == 0 {
							err = s.On(ctx, key).Create(&rows).Error
						} else {
							err = s.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
								if err := tx.Find(&[]Hero{}, "player_id = ?", "guild").Error; err != nil { // it begins to read before the others commit
									return err
								}
								return tx.Create(&rows).Error
							})
						}
						var full *dal.CapacityError
						switch {
						case err == nil:
							in.Add(int64(len(rows)))
						case errors.As(err, &full):
							if full.Limit != limit || full.Key != "guild" || full.Table != "heros" || !errors.Is(err, dal.ErrCapacity) {
								t.Errorf("refused by %+v", full)
							}
							if len(rows) == 1 {
								return
							}
							w = 0 // the last places are single ones
						case dal.IsRetryable(err), dal.IsQuota(err), dal.IsTimeout(err):
						default:
							t.Errorf("writer %d: %v", w, err)
							return
						}
					}
					t.Errorf("writer %d never was refused", w)
				})
			}
			wg.Wait()
			if n := heroesOf(t, s, ctx, "guild"); n != limit || in.Load() != limit {
				t.Errorf("%d rows, %d told that they are in, want %d", n, in.Load(), limit)
			}
			if err := s.On(tenant.NewContext(ctx, "b"), key).Create(&Hero{PlayerID: "guild"}).Error; err != nil {
				t.Errorf("the other tenant's guild: %v", err)
			}
			if err := s.On(ctx, key).Where("player_id = ? AND name = ?", "guild", "0").Limit(1).Delete(&Hero{}).Error; err != nil {
				t.Fatal(err)
			}
			if n := heroesOf(t, s, ctx, "guild"); n < limit {
				if err := s.On(ctx, key).Create(&Hero{PlayerID: "guild"}).Error; err != nil {
					t.Errorf("after a row has left: %v", err)
				}
			}
		})
	}
}

func TestCapacity_EveryWayToInsert(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := guildOf(t, cluster(t), 2)
			key := dal.Key("player", "g")
			on := func() *gorm.DB { return s.On(ctx, key) }
			first := []Hero{{Model: dal.Model{ID: 1}, PlayerID: "g"}, {Model: dal.Model{ID: 2}, PlayerID: "g"}}
			if err := on().Create(&first).Error; err != nil {
				t.Fatal(err)
			}
			upsert := func(id int64) error {
				return on().Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).
					Create(&Hero{Model: dal.Model{ID: id}, PlayerID: "g", Name: "met"}).Error
			}
			if err := upsert(2); err != nil {
				t.Errorf("an upsert that meets its row: %v", err)
			}
			insert := "INSERT INTO heros (id, player_id, gold) VALUES (?, ?, 0)"
			for way, err := range map[string]error{
				"create":        on().Create(&Hero{PlayerID: "g"}).Error,
				"batches":       on().CreateInBatches(&[]Hero{{PlayerID: "g"}, {PlayerID: "g"}, {PlayerID: "g"}}, 2).Error,
				"map":           on().Model(&Hero{}).Create(map[string]any{"player_id": "g", "name": "x"}).Error,
				"upsert":        upsert(3),
				"Save":          on().Save(&Hero{Model: dal.Model{ID: 4}, PlayerID: "g"}).Error,
				"FirstOrCreate": on().Where("name = ?", "nobody").FirstOrCreate(&Hero{PlayerID: "g"}).Error,
				"text": s.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
					return tx.Exec(insert, 5, "g").Error
				}),
				"text, error ignored": s.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
					_ = tx.Exec(insert, 6, "g").Error
					return nil
				}),
				"create, error ignored": s.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
					_ = tx.Create(&Hero{PlayerID: "g"}).Error
					return nil
				}),
			} {
				if !errors.Is(err, dal.ErrCapacity) {
					t.Errorf("%s: %v, want the capacity to refuse it", way, err)
				}
			}
			direct, err := on().DB()
			if err != nil {
				t.Fatal(err)
			}
			hole := "?, ?, ?"
			if s.Dialect() == dal.Postgres {
				hole = "$1, $2, $3"
			}
			_, err = direct.ExecContext(ctx, "INSERT INTO heros (tenant_id, id, player_id, gold) VALUES ("+hole+", 0)", "a", 7, "g")
			for way, err := range map[string]error{
				"beside gorm":                err,
				"text outside a transaction": on().Exec(insert, 8, "g").Error,
				"without gorm's transaction": on().Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&Hero{PlayerID: "g"}).Error,
				"keys from a SELECT": s.Transaction(ctx, key, func(_ context.Context, tx *gorm.DB) error {
					return tx.Exec("INSERT INTO heros (id, player_id, gold) SELECT id + 10, player_id, 0 FROM heros").Error
				}),
			} {
				if !errors.Is(err, dal.ErrShape) {
					t.Errorf("%s: %v, want it refused by its shape", way, err)
				}
			}
			if n := heroesOf(t, s, ctx, "g"); n != 2 {
				t.Errorf("%d rows, want 2", n)
			}
		})
	}
}

// Limits that could not be kept are refused when the store is opened.
func TestCapacity_SetIsMissing(t *testing.T) {
	t.Parallel()
	for name, cluster := range clusters() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg, err := tenant.NewStatic(tenant.Tenant{ID: "a", Model: tenant.SharedTable})
			if err != nil {
				t.Fatal(err)
			}
			cfg := dal.Config{Cluster: cluster(t), Registry: reg, Tables: []dal.Table{dal.Tenant[Hero]("player", "player_id").Capacity(2)}}
			if _, err := schema.Up(t.Context(), cfg, heroes(", KEY k_player (tenant_id, player_id)", "")); err != nil {
				t.Fatal(err)
			}
			if _, err := dal.Open(t.Context(), cfg); !errors.Is(err, dal.ErrNotMigrated) || !strings.Contains(err.Error(), "schema.Capacity()") {
				t.Errorf("got %v, want ErrNotMigrated with the set", err)
			}
		})
	}
}

func TestCapacity_Declarations(t *testing.T) {
	t.Parallel()
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: []shardrouter.ShardID{"s1"}, Keyspaces: []shardrouter.Keyspace{{Name: "player"}, {Name: "guild"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]dal.Table{
		"zero": dal.Tenant[Item]("player", "player_id").Capacity(0), "negative": dal.Tenant[Item]("player", "player_id").Capacity(-1),
		"soft delete": dal.Tenant[User]("player", "player_id").Capacity(5), "local": dal.Local[Line]().Capacity(5), "global": dal.Global[Catalog]().Capacity(5),
	} {
		reg, err := tenant.NewStatic()
		if err != nil {
			t.Fatal(err)
		}
		_, err = dal.OpenFixed(dal.Config{Registry: reg, Tables: []dal.Table{table}}, dal.Fixed{Topology: top, Dialect: dal.SQLite, Connect: func(dal.Place) (driver.Connector, error) {
			return nil, errors.New("nothing is opened")
		}})
		var model *dal.ModelError
		if !errors.As(err, &model) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

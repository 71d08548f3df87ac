package bench_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/tenantdal/tenantdal/bench"
	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/shardrouter"
	"github.com/tenantdal/tenantdal/tenant"
)

var handle *gorm.DB

// BenchmarkPiece runs the layer's parts by themselves: what a handle costs beside gorm's own WithContext, where a key lives, and the admission.
func BenchmarkPiece(b *testing.B) {
	d := &bench.NullDriver{Rows: 1}
	limits := tenant.Limits{Rate: 1e9, Burst: 1e6, MaxConns: 8}
	top, err := shardrouter.NewTopology(shardrouter.TopologyConfig{Epoch: 1, Shards: []shardrouter.ShardID{"s1", "s2", "s3", "s4"}, Keyspaces: []shardrouter.Keyspace{{Name: "player"}}})
	if err != nil {
		b.Fatal(err)
	}
	registry, err := tenant.NewStatic(tenant.Tenant{ID: "acme", Model: tenant.SharedTable, Limits: limits})
	if err != nil {
		b.Fatal(err)
	}
	store, err := dal.OpenFixed(dal.Config{Registry: registry, Tables: []dal.Table{dal.Tenant[bench.Item]("player", "player_id")}},
		dal.Fixed{Topology: top, Dialect: dal.MySQL, Connect: func(dal.Place) (driver.Connector, error) { return d, nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := store.Close(context.Background()); err != nil {
			b.Error(err)
		}
	}()
	q, err := quota.New(quota.Config{})
	if err != nil {
		b.Fatal(err)
	}
	pool := sql.OpenDB(d)
	defer func() { _ = pool.Close() }()
	plain, err := gorm.Open(mysql.New(mysql.Config{Conn: pool, SkipInitializeWithVersion: true}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		b.Fatal(err)
	}
	ctx := tenant.NewContext(b.Context(), "acme")

	b.Run("WithContext", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			handle = plain.WithContext(ctx)
		}
	})
	b.Run("On", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			handle = store.On(ctx, dal.Key("player", "7"))
		}
	})
	b.Run("Route", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Route(ctx, dal.Key("player", "7")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Owner", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := top.Owner("player", "acme", "7"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("AdmitPooled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, err := q.AdmitPooled(ctx, "acme", "s1", limits, 16, "pool of s1", 16)
			if err != nil {
				b.Fatal(err)
			}
			p.Release()
		}
	})
	b.Run("Charge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q.Charge("acme", limits, 1)
		}
	})
}
